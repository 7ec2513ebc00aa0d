//! A panic of Rust code as Python sees it: an ordinary exception that says where.
//!
//! PyO3 catches whatever panics behind a function, method, constructor, attribute or slot of the extension, the
//! conversion of its arguments and result included, and raises its `PanicException` with what the panic said.
//! That class is no `Exception`, so that it would pass everything that handles errors, and its base cannot be
//! changed. But Python makes an exception by calling its class, and raises whatever exception the call gives:
//! the class gets a `__new__` that gives an `InternalError`. So nothing has to be done where a function is
//! written, and nothing can be forgotten there.

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

create_exception!(
    tidegate._core,
    InternalError,
    PyRuntimeError,
    "A bug in tidegate: the message names the place in its source."
);

thread_local! {
    /// Where this thread panicked, until an exception tells of it.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes every panic of the extension an `InternalError`.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    note_places();
    py.get_type::<PanicException>().setattr("__new__", wrap_pyfunction!(internal_error, py)?)
}

/// Makes panics note their place; what they say is printed only where no exception will tell of it.
fn note_places() {
    let usual = take_hook();
    set_hook(Box::new(move |info| {
        let here = info.location().map(ToString::to_string).unwrap_or_default();
        let earlier = PLACE.replace(here);
        // a panic while another one unwinds aborts the process
        if !earlier.is_empty() {
            eprintln!("after a panic at {earlier}:");
            usual(info);
        }
    }));
}

/// What is made where `PanicException(said)` is called.
#[pyfunction]
fn internal_error<'py>(_class: &Bound<'py, PyType>, said: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // Python 3.11 calls the class again with what an earlier call made, as that is not of the class
    if said.is_instance_of::<InternalError>() {
        return Ok(said);
    }
    said.py().get_type::<InternalError>().call1((format!("{}: {said}", PLACE.take()),))
}

/// The result of a call, or what its panic said, with its place: for callers that have to do something about it.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    // what the call was changing is either dropped with it or, as an object of Python, says so itself
    let done = catch_unwind(AssertUnwindSafe(call));
    done.map_err(|payload| format!("{}: {}", PLACE.take(), said(&*payload)))
}

fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic from Rust code")
}
