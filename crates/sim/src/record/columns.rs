//! Columns with names: what a recording hands out.

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Floats; NaN where there is no value.
    F64(Vec<f64>),
    /// Unsigned integers.
    U64(Vec<u64>),
    /// Small unsigned integers.
    U32(Vec<u32>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Words from a list: codes into it.
    Words {
        /// The list.
        words: Vec<String>,
        /// For each row the place in the list.
        codes: Vec<u32>,
    },
}

impl Column {
    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F64(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::Words { codes, .. } => codes.len(),
        }
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Columns of equal length, each with a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name and column, in order.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// Adds a column.
    ///
    /// # Panics
    /// If its length differs from the others'.
    #[must_use]
    pub fn with(mut self, name: &'static str, column: Column) -> Self {
        if let Some((other, first)) = self.columns.first() {
            assert_eq!(first.len(), column.len(), "columns {other} and {name} differ in length");
        }
        self.columns.push((name, column));
        self
    }

    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }
}
