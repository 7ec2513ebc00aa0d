//! Turns panics of Rust code into ordinary Python exceptions with the place of the panic.
//!
//! PyO3 catches a panic in a function, method, constructor, attribute or slot of the extension, and in the conversion
//! of its arguments and result. It raises its `PanicException` with the panic's message. That class is no `Exception`,
//! so that handlers of errors do not catch it, and its base cannot be changed. But Python makes an exception by calling
//! its class, and raises the exception that the call returns. The class therefore gets a `__new__` that returns an
//! `InternalError`. This covers every function without any code in it.

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
    /// Place of this thread's last panic, until an exception reports it.
    static PANIC_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes every panic of the extension an `InternalError`.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    record_places();
    py.get_type::<PanicException>().setattr("__new__", wrap_pyfunction!(internal_error, py)?)
}

/// Installs a hook that records the place of a panic. It prints the message only if no exception will report it.
fn record_places() {
    let default_hook = take_hook();
    set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let earlier = PANIC_PLACE.replace(place);
        // a panic while another one unwinds aborts the process
        if !earlier.is_empty() {
            eprintln!("after a panic at {earlier}:");
            default_hook(info);
        }
    }));
}

/// The `__new__` of `PanicException`: makes an `InternalError`.
#[pyfunction]
fn internal_error<'py>(
    _class: &Bound<'py, PyType>,
    message: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // Python 3.11 calls the class again with the result of an earlier call, since that is not an instance of the class
    if message.is_instance_of::<InternalError>() {
        return Ok(message);
    }
    message.py().get_type::<InternalError>().call1((format!("{}: {message}", PANIC_PLACE.take()),))
}

/// Calls a function; the error is the place and the message of its panic.
pub(crate) fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    // data that the call was changing is dropped with it, or is an object of Python that marks itself as broken
    let result = catch_unwind(AssertUnwindSafe(call));
    result.map_err(|payload| format!("{}: {}", PANIC_PLACE.take(), panic_message(&*payload)))
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic from Rust code")
}
