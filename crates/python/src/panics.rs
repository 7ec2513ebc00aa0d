//! A class that panics wherever Python can reach it, for tests of the handling of panics.
#![allow(clippy::panic)]

use pyo3::prelude::*;
use std::convert::Infallible;

/// A value that panics when it is taken from Python or given to it.
struct Unconvertible;

impl FromPyObject<'_, '_> for Unconvertible {
    type Error = PyErr;
    fn extract(_: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        panic!("argument")
    }
}

impl<'py> IntoPyObject<'py> for Unconvertible {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;
    fn into_pyobject(self, _: Python<'py>) -> Result<Self::Output, Self::Error> {
        panic!("result")
    }
}

/// Compares and hashes by panicking, as a derived implementation might.
struct Incomparable;

impl PartialEq for Incomparable {
    fn eq(&self, _: &Self) -> bool {
        panic!("eq")
    }
}

impl std::hash::Hash for Incomparable {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {
        panic!("hash")
    }
}

/// Every operation on it panics with the operation's name; the constructor and the destructor only if asked to.
#[pyclass(frozen, eq, hash, module = "tidegate._core", name = "_Panics")]
#[derive(PartialEq, Hash)]
pub(crate) struct Panics {
    inner: Incomparable,
    at_end: bool,
}

#[pymethods]
impl Panics {
    #[new]
    #[pyo3(signature = (at_once=false, at_end=false))]
    fn new(at_once: bool, at_end: bool) -> Self {
        let panics = Self { inner: Incomparable, at_end };
        assert!(!at_once, "new");
        panics
    }

    fn method(&self, said: &str) {
        panic!("{said}")
    }

    /// Panics with a payload that is no text.
    #[staticmethod]
    fn speechless() {
        std::panic::panic_any(0)
    }

    fn argument(&self, value: Unconvertible) {
        let _ = value;
    }

    fn result(&self) -> Unconvertible {
        Unconvertible
    }

    #[getter]
    fn attribute(&self) -> i64 {
        panic!("getter")
    }

    #[setter]
    fn set_attribute(&self, value: i64) {
        panic!("setter {value}")
    }

    fn __repr__(&self) -> String {
        panic!("repr")
    }

    fn __len__(&self) -> usize {
        panic!("len")
    }

    fn __bool__(&self) -> bool {
        panic!("bool")
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self) -> Option<i64> {
        panic!("next")
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        assert!(!self.at_end, "drop");
    }
}
