//! Reads fields of wire objects from Python values. Errors have the path of the value: `Nack.pairs[3][0]`.

use super::{ReportBlock, TwccStatus};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
#[cfg(feature = "stubs")]
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyTuple};
use std::convert::Infallible;
use std::marker::PhantomData;

/// Bytes from any Python object with the buffer protocol.
pub(crate) struct Octets<'py>(Bound<'py, PyBytes>);

impl Octets<'_> {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'py> FromPyObject<'_, 'py> for Octets<'py> {
    type Error = PyErr;
    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Self(bytes.to_owned()));
        }
        let view = PyMemoryView::from(&value)?;
        Ok(Self(view.call_method0("tobytes")?.cast_into()?))
    }
}

/// The argument for a field of type `T`, which is read when its name is known.
pub(super) struct FieldArgument<'py, T>(Bound<'py, PyAny>, PhantomData<T>);

impl<T: Field> FieldArgument<'_, T> {
    /// The value of the field `field` of the class `class`.
    pub(super) fn read(&self, class: &str, field: &str) -> PyResult<T> {
        T::read(&self.0).map_err(|FieldError { path, expected, value_text, range }| {
            let message = format!("{class}.{field}{path} must be {expected}, found {value_text}");
            if range { PyValueError::new_err(message) } else { PyTypeError::new_err(message) }
        })
    }
}

impl<'py, T: IntoPyObject<'py>> FromPyObject<'_, 'py> for FieldArgument<'py, T> {
    type Error = Infallible;
    #[cfg(feature = "stubs")]
    const INPUT_TYPE: PyStaticExpr = T::OUTPUT_TYPE;
    fn extract(value: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(value.to_owned(), PhantomData))
    }
}

/// Reason why a value does not fit its field.
pub(super) struct FieldError {
    /// Indices of the value in the field.
    path: String,
    /// Description of valid values.
    expected: String,
    /// The value, as Python writes it.
    value_text: String,
    /// Whether it has a valid type but is out of range.
    range: bool,
}

impl FieldError {
    fn new(value: &Bound<'_, PyAny>, expected: impl Into<String>, range: bool) -> Self {
        let value_text = value.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
        let value_text = if value_text.chars().count() > 60 {
            value_text.chars().take(57).chain("...".chars()).collect()
        } else {
            value_text
        };
        Self { path: String::new(), expected: expected.into(), value_text, range }
    }

    fn at_index(mut self, index: usize) -> Self {
        self.path.insert_str(0, &format!("[{index}]"));
        self
    }
}

/// A type of field.
pub(super) trait Field: Sized {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError>;

    /// Reads a list of it; lists of octets are bytes.
    fn read_list(value: &Bound<'_, PyAny>) -> Result<Vec<Self>, FieldError> {
        let values = value.try_iter().map_err(|_| FieldError::new(value, "a list", false))?;
        let read_item = |(index, item): (usize, PyResult<Bound<'_, PyAny>>)| {
            let item = item.map_err(|_| FieldError::new(value, "a list", false))?;
            Self::read(&item).map_err(|wrong| wrong.at_index(index))
        };
        values.enumerate().map(read_item).collect()
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
                whole(value, i128::from(Self::MIN), i128::from(Self::MAX), |value| value.extract())
            }
        }
    )*};
}
integers!(u16, i16, u32, i32, u64, i64);

fn whole<T>(
    value: &Bound<'_, PyAny>,
    min: i128,
    max: i128,
    extract: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>,
) -> Result<T, FieldError> {
    extract(value).map_err(|error| {
        let beyond = error.is_instance_of::<PyOverflowError>(value.py());
        FieldError::new(value, format!("a whole number from {min} to {max}"), beyond)
    })
}

impl Field for u8 {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        whole(value, 0, 255, |value| value.extract())
    }

    fn read_list(value: &Bound<'_, PyAny>) -> Result<Vec<Self>, FieldError> {
        let bytes = value.extract::<Octets<'_>>().map_err(|_| FieldError::new(value, "bytes", false))?;
        Ok(bytes.as_bytes().to_vec())
    }
}

impl Field for bool {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        value.extract().map_err(|_| FieldError::new(value, "True or False", false))
    }
}

impl Field for ReportBlock {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        value.extract().map_err(|_| FieldError::new(value, "a ReportBlock", false))
    }
}

impl Field for TwccStatus {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        if value.is_none() {
            return Ok(Self::NotReceived);
        }
        if value.extract::<&str>().is_ok_and(|word| word == "untimed") {
            return Ok(Self::Untimed);
        }
        i16::read(value).map(Self::Delta).map_err(|wrong| FieldError {
            expected: "None, a delta in 250 us from -32768 to 32767, or \"untimed\"".to_owned(),
            ..wrong
        })
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        T::read_list(value)
    }
}

impl<T: Field> Field for Option<T> {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        if value.is_none() { Ok(None) } else { T::read(value).map(Some) }
    }
}

/// The parts of a tuple or list of `count`.
fn parts<'py>(value: &Bound<'py, PyAny>, count: usize) -> Result<Vec<Bound<'py, PyAny>>, FieldError> {
    let parts: Option<Vec<_>> = if let Ok(tuple) = value.cast::<PyTuple>() {
        Some(tuple.iter().collect())
    } else {
        value.cast::<PyList>().ok().map(|list| list.iter().collect())
    };
    let parts_of_count = parts.filter(|parts| parts.len() == count);
    parts_of_count.ok_or_else(|| FieldError::new(value, format!("a tuple of {count}"), false))
}

fn part<T: Field>(parts: &[Bound<'_, PyAny>], index: usize) -> Result<T, FieldError> {
    T::read(&parts[index]).map_err(|wrong| wrong.at_index(index))
}

impl<A: Field, B: Field> Field for (A, B) {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        let parts = parts(value, 2)?;
        Ok((part(&parts, 0)?, part(&parts, 1)?))
    }
}

impl<A: Field, B: Field, C: Field> Field for (A, B, C) {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, FieldError> {
        let parts = parts(value, 3)?;
        Ok((part(&parts, 0)?, part(&parts, 1)?, part(&parts, 2)?))
    }
}
