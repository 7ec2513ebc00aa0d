//! Exceptions for Python.

use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tidegate_core::math;
use tidegate_sim::Refusal;

create_exception!(
    _core,
    RunError,
    PyRuntimeError,
    "A run stopped before its end: the message names the component, the simulated time and the reason."
);

create_exception!(
    _core,
    Refused,
    PyValueError,
    "A scenario that cannot be run.\n\n`place` is its dotted key, `found` what is there (a sentence where \
     `expected` is empty), `expected` what would be right."
);

/// The exception of a refusal, with its parts as attributes.
pub(crate) fn refused(py: Python<'_>, error: &Refusal) -> PyErr {
    let raised = Refused::new_err(error.to_string());
    let parts = [("place", &error.key), ("found", &error.value), ("expected", &error.expected)];
    match parts.into_iter().try_for_each(|(name, part)| raised.value(py).setattr(name, part)) {
        Ok(()) => raised,
        Err(error) => error,
    }
}

/// The exception for an invalid input.
pub(crate) fn bad(message: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}

/// Checks that floating-point numbers are rounded in this thread as on every machine: Python's process may hold code
/// that changes it.
pub(crate) fn check_environment() -> PyResult<()> {
    math::check_environment().map_err(|other| RunError::new_err(other.to_string()))
}

/// The exception for a file that cannot be used, with its name.
pub(crate) fn file_error(path: &str, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string(), path.to_owned())),
        None => PyOSError::new_err(format!("{path}: {error}")),
    }
}
