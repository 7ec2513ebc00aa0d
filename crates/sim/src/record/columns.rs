//! Tables of named columns, the output of a recording.

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
    /// Words, as codes into a list.
    Words {
        /// The distinct words.
        words: Vec<String>,
        /// For each row the index into `words`.
        codes: Vec<u32>,
    },
}

impl Column {
    /// Number of rows.
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
        if let Some((first_name, first)) = self.columns.first() {
            assert_eq!(first.len(), column.len(), "columns {first_name} and {name} differ in length");
        }
        self.columns.push((name, column));
        self
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }
}
