//! Fields of wire objects from Python values. What does not fit is told with its place: `Nack.pairs[3][0]`.

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
pub(super) struct Given<'py, T>(Bound<'py, PyAny>, PhantomData<T>);

impl<T: Field> Given<'_, T> {
    /// The value of the field `field` of the class `class`.
    pub(super) fn read(&self, class: &str, field: &str) -> PyResult<T> {
        T::read(&self.0).map_err(|Wrong { place, expected, found, range }| {
            let message = format!("{class}.{field}{place} must be {expected}, found {found}");
            if range { PyValueError::new_err(message) } else { PyTypeError::new_err(message) }
        })
    }
}

impl<'py, T: IntoPyObject<'py>> FromPyObject<'_, 'py> for Given<'py, T> {
    type Error = Infallible;
    #[cfg(feature = "stubs")]
    const INPUT_TYPE: PyStaticExpr = T::OUTPUT_TYPE;
    fn extract(value: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(value.to_owned(), PhantomData))
    }
}

/// Why a value is none for its field.
pub(super) struct Wrong {
    /// Where inside the field.
    place: String,
    /// What would be right.
    expected: String,
    /// What it is.
    found: String,
    /// It has the right type, but lies outside the range.
    range: bool,
}

impl Wrong {
    fn new(value: &Bound<'_, PyAny>, expected: impl Into<String>, range: bool) -> Self {
        let found = value.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
        let found = if found.chars().count() > 60 {
            found.chars().take(57).chain("...".chars()).collect()
        } else {
            found
        };
        Self { place: String::new(), expected: expected.into(), found, range }
    }

    fn at(mut self, index: usize) -> Self {
        self.place.insert_str(0, &format!("[{index}]"));
        self
    }
}

/// What a field can hold.
pub(super) trait Field: Sized {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong>;

    /// A list of it; octets do otherwise.
    fn read_list(value: &Bound<'_, PyAny>) -> Result<Vec<Self>, Wrong> {
        let values = value.try_iter().map_err(|_| Wrong::new(value, "a list", false))?;
        let one = |(index, item): (usize, PyResult<Bound<'_, PyAny>>)| {
            let item = item.map_err(|_| Wrong::new(value, "a list", false))?;
            Self::read(&item).map_err(|wrong| wrong.at(index))
        };
        values.enumerate().map(one).collect()
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
                whole(value, i128::from(Self::MIN), i128::from(Self::MAX), |value| value.extract())
            }
        }
    )*};
}
integers!(u16, i16, u32, i32, u64, i64);

fn whole<T>(
    value: &Bound<'_, PyAny>,
    least: i128,
    most: i128,
    extract: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>,
) -> Result<T, Wrong> {
    extract(value).map_err(|error| {
        let beyond = error.is_instance_of::<PyOverflowError>(value.py());
        Wrong::new(value, format!("a whole number from {least} to {most}"), beyond)
    })
}

impl Field for u8 {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        whole(value, 0, 255, |value| value.extract())
    }

    fn read_list(value: &Bound<'_, PyAny>) -> Result<Vec<Self>, Wrong> {
        let octets = value.extract::<Octets<'_>>().map_err(|_| Wrong::new(value, "bytes", false))?;
        Ok(octets.as_bytes().to_vec())
    }
}

impl Field for bool {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        value.extract().map_err(|_| Wrong::new(value, "True or False", false))
    }
}

impl Field for ReportBlock {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        value.extract().map_err(|_| Wrong::new(value, "a ReportBlock", false))
    }
}

impl Field for TwccStatus {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        if value.is_none() {
            return Ok(Self::NotReceived);
        }
        if value.extract::<&str>().is_ok_and(|word| word == "untimed") {
            return Ok(Self::Untimed);
        }
        i16::read(value).map(Self::Delta).map_err(|wrong| Wrong {
            expected: "None, a delta in 250 us from -32768 to 32767, or \"untimed\"".to_owned(),
            ..wrong
        })
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        T::read_list(value)
    }
}

impl<T: Field> Field for Option<T> {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        if value.is_none() { Ok(None) } else { T::read(value).map(Some) }
    }
}

/// The parts of a tuple or list of `count`.
fn parts<'py>(value: &Bound<'py, PyAny>, count: usize) -> Result<Vec<Bound<'py, PyAny>>, Wrong> {
    let parts: Option<Vec<_>> = if let Ok(tuple) = value.cast::<PyTuple>() {
        Some(tuple.iter().collect())
    } else {
        value.cast::<PyList>().ok().map(|list| list.iter().collect())
    };
    let right = parts.filter(|parts| parts.len() == count);
    right.ok_or_else(|| Wrong::new(value, format!("a tuple of {count}"), false))
}

fn part<T: Field>(parts: &[Bound<'_, PyAny>], index: usize) -> Result<T, Wrong> {
    T::read(&parts[index]).map_err(|wrong| wrong.at(index))
}

impl<A: Field, B: Field> Field for (A, B) {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        let parts = parts(value, 2)?;
        Ok((part(&parts, 0)?, part(&parts, 1)?))
    }
}

impl<A: Field, B: Field, C: Field> Field for (A, B, C) {
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, Wrong> {
        let parts = parts(value, 3)?;
        Ok((part(&parts, 0)?, part(&parts, 1)?, part(&parts, 2)?))
    }
}
