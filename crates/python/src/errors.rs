//! Errors as Python sees them.

use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    _core,
    RunError,
    PyRuntimeError,
    "A run stopped before its end: the message names the component, the simulated time and the reason."
);

/// A wrong input.
pub(crate) fn bad(message: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}

/// A file that cannot be used, with its name.
pub(crate) fn file_error(path: &str, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string(), path.to_owned())),
        None => PyOSError::new_err(format!("{path}: {error}")),
    }
}
