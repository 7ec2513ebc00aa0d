//! Recordings of calls that others made, as runs.

use crate::control::host::PyControllerHost;
use crate::errors::bad;
use crate::table::Table;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::PoisonError;
use tidegate_core::ControllerHost;
use tidegate_recordings::import::{self, Format, Imported, Wrong};
use tidegate_recordings::session::Clocks;

/// A call that was recorded elsewhere.
#[pyclass(frozen, module = "tidegate._core", name = "ImportedCall")]
pub(crate) struct PyImported {
    inner: Imported,
}

#[pymethods]
impl PyImported {
    /// The metrics that are known, as JSON.
    fn summary_json(&self) -> String {
        self.inner.recorded.summary().to_string()
    }

    /// The names of the tables there are.
    fn table_names(&self) -> Vec<&'static str> {
        self.inner.recorded.table_names()
    }

    /// One table by name.
    fn table(&self, name: &str) -> PyResult<Table> {
        let table = self.inner.recorded.table(name);
        Table::new(table.ok_or_else(|| bad(format!("no table {name:?} in this recording")))?)
    }

    /// What has to be known of how the call was put together: sentences.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        self.inner.session.remarks.clone()
    }

    /// For each file the first things that could not be read, and how many there were.
    #[getter]
    fn problems(&self) -> Vec<(Vec<String>, usize)> {
        let told = |one: &tidegate_recordings::Problems| one.first.iter().map(ToString::to_string).collect();
        self.inner.problems.iter().map(|one| (told(one), one.count)).collect()
    }

    /// Unix time at which it begins, in ms, where a file says so.
    #[getter]
    fn begun_ms(&self) -> Option<i64> {
        self.inner.begun
    }
}

/// What kind of recording a file is: "event log" or "capture"; ValueError for none that can be imported.
#[pyfunction]
pub(crate) fn recording_format(data: &[u8]) -> PyResult<&'static str> {
    match import::format(data) {
        Ok(Format::EventLog) => Ok("event log"),
        Ok(Format::Capture) => Ok("capture"),
        Err(problem) => Err(bad(problem)),
    }
}

/// Imports the event logs of one end, and of the other one. `same_clock`: whether both ends had one.
///
/// ValueError for a file that is wrong: its place among them, and what is wrong with it.
#[pyfunction]
#[pyo3(signature = (files: "Sequence[bytes]", same_clock, replay=None))]
pub(crate) fn import_event_logs(
    py: Python<'_>,
    files: Vec<Vec<u8>>,
    same_clock: bool,
    replay: Option<PyRef<'_, PyControllerHost>>,
) -> PyResult<PyImported> {
    let read =
        |clocks, replay: Option<&mut ControllerHost>| import::event_logs(&slices(&files), clocks, replay);
    imported(py, same_clock, replay, read)
}

/// Imports the captures of one place, and of a second one. `same_clock`: whether both had one.
///
/// ValueError for a file that is wrong: its place among both, and what is wrong with it.
#[pyfunction]
#[pyo3(signature = (near: "Sequence[bytes]", far: "Sequence[bytes]", same_clock, replay=None))]
pub(crate) fn import_captures(
    py: Python<'_>,
    near: Vec<Vec<u8>>,
    far: Vec<Vec<u8>>,
    same_clock: bool,
    replay: Option<PyRef<'_, PyControllerHost>>,
) -> PyResult<PyImported> {
    let read = |clocks, replay: Option<&mut ControllerHost>| {
        import::captures(&slices(&near), &slices(&far), clocks, replay)
    };
    imported(py, same_clock, replay, read)
}

fn slices(files: &[Vec<u8>]) -> Vec<&[u8]> {
    files.iter().map(Vec::as_slice).collect()
}

/// Reads a call while other threads of Python go on.
fn imported(
    py: Python<'_>,
    same_clock: bool,
    replay: Option<PyRef<'_, PyControllerHost>>,
    read: impl FnOnce(Clocks, Option<&mut ControllerHost>) -> Result<Imported, Wrong> + Send,
) -> PyResult<PyImported> {
    let host = replay.as_deref().map(PyControllerHost::host);
    let clocks = if same_clock { Clocks::Same } else { Clocks::Own };
    let done = py.detach(|| {
        let mut held = host.map(|host| host.lock().unwrap_or_else(PoisonError::into_inner));
        read(clocks, held.as_deref_mut())
    });
    let wrong = |wrong: Wrong| PyValueError::new_err((wrong.file, wrong.problem.to_string()));
    done.map(|inner| PyImported { inner }).map_err(wrong)
}
