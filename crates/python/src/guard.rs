//! A panic of Rust code as Python sees it: an ordinary exception that says where.

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

create_exception!(
    tidegate._core,
    InternalError,
    PyRuntimeError,
    "A bug in tidegate: the message names the place in its source."
);

thread_local! {
    /// How many guarded calls this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Where the last of its panics was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes panics inside guarded calls note their place instead of printing it.
pub(crate) fn note_places() {
    let usual = take_hook();
    set_hook(Box::new(move |info| {
        if DEPTH.get() == 0 {
            usual(info);
        } else {
            PLACE.set(info.location().map(ToString::to_string).unwrap_or_default());
        }
    }));
}

/// The result of a call, or what its panic said, with its place.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    DEPTH.set(DEPTH.get() + 1);
    // what the call was changing is either dropped with it or, as an object of Python, says so itself
    let done = catch_unwind(AssertUnwindSafe(call));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|payload| format!("{}: {}", PLACE.take(), said(&*payload)))
}

/// A call whose panics are exceptions of Python.
pub(crate) fn guarded<T>(call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(call).unwrap_or_else(|panic| Err(InternalError::new_err(panic)))
}

fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

/// Panics with a message, so that tests see what becomes of it.
#[pyfunction]
#[pyo3(name = "_panic")]
#[allow(clippy::panic)]
pub(crate) fn panic(message: &str) -> PyResult<()> {
    guarded(|| panic!("{message}"))
}
