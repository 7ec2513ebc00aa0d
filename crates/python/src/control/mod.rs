//! The controller contract in Python: its values, the engine calling controllers that are Python classes ([`half`]),
//! and Python calling the engine's controllers ([`host`]).

pub(crate) mod decision;
pub(crate) mod half;
pub(crate) mod host;
mod pacing;
pub(crate) mod packets;
pub(crate) mod report;

use crate::errors::bad;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use tidegate_core::Rate;

/// A rate from Python: a non-negative finite number of bit/s.
pub(crate) fn rate_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let wrong = || bad(format!("{name}: found {}; it must be a number of bit/s", describe(value)));
    if value.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    let number: f64 = value.extract().map_err(|_| wrong())?;
    if !number.is_finite() || number < 0.0 {
        return Err(bad(format!("{name}: found {number}; a rate must be finite and not negative")));
    }
    Ok(Rate::from_bps_f64(number).as_bps())
}

/// A whole number from Python that is not negative.
pub(crate) fn whole_of(value: &Bound<'_, PyAny>, name: &str, unit: &str) -> PyResult<i64> {
    let number: i64 = value.extract().map_err(|_| {
        bad(format!("{name}: found {}; it must be a whole number of {unit}", describe(value)))
    })?;
    if number < 0 {
        return Err(bad(format!("{name}: found {number}; it must not be negative")));
    }
    Ok(number)
}

/// A time span from Python: a whole number of nanoseconds that is not negative.
fn span_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    whole_of(value, name, "nanoseconds")
}

/// A number of bytes from Python.
pub(crate) fn bytes_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    whole_of(value, name, "bytes").map(|bytes| bytes as u64)
}

/// A value that may be missing, as Python writes it.
fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| value.to_string())
}

/// Reads what may be `None`.
fn maybe<'py, T>(
    value: Option<&Bound<'py, PyAny>>,
    read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    value.filter(|value| !value.is_none()).map(read).transpose()
}

/// A value with its type, for an error.
pub(crate) fn describe(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    match value.repr() {
        Ok(repr) => format!("{} of type {kind}", repr.to_string_lossy()),
        Err(_) => format!("an object of type {kind}"),
    }
}
