//! Imports recordings of calls that other programs made, as runs.

use crate::control::host::PyControllerHost;
use crate::errors::{bad, check_environment};
use crate::table::Table;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::PoisonError;
use tidegate_core::ControllerHost;
use tidegate_recordings::capture::At;
use tidegate_recordings::import::{self, FileProblem, Format, Hints, Imported};
use tidegate_recordings::session::Clocks;

/// A call that was imported from recordings.
#[pyclass(frozen, module = "tidegate._core", name = "ImportedCall")]
pub(crate) struct PyImported {
    inner: Imported,
}

#[pymethods]
impl PyImported {
    /// The metrics that the recording determines, as JSON.
    fn summary_json(&self) -> String {
        self.inner.recorded.summary().to_string()
    }

    /// The names of the available tables.
    fn table_names(&self) -> Vec<&'static str> {
        self.inner.recorded.table_names()
    }

    /// One table by name.
    fn table(&self, name: &str) -> PyResult<Table> {
        let table = self.inner.recorded.table(name);
        Table::new(table.ok_or_else(|| bad(format!("this recording has no table {name:?}")))?)
    }

    /// Assumptions and omissions in putting the call together, as sentences.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        self.inner.session.remarks.clone()
    }

    /// Reasons to doubt the call's numbers, as sentences.
    #[getter]
    fn doubts(&self) -> Vec<String> {
        self.inner.session.doubts.clone()
    }

    /// The first problems of each file, and the count of all its problems.
    #[getter]
    fn problems(&self) -> Vec<(Vec<String>, usize)> {
        let messages = |problems: &tidegate_recordings::Problems| {
            problems.first.iter().map(ToString::to_string).collect()
        };
        self.inner.problems.iter().map(|problems| (messages(problems), problems.count)).collect()
    }

    /// Unix time at which the call begins, in ms, if a file has it.
    #[getter]
    fn begun_ms(&self) -> Option<i64> {
        self.inner.start_unix_ms
    }
}

/// Detects the format of a recording: "event log" or "capture"; ValueError for a file that cannot be imported.
#[pyfunction]
pub(crate) fn recording_format(data: &[u8]) -> PyResult<&'static str> {
    match import::format(data) {
        Ok(Format::EventLog) => Ok("event log"),
        Ok(Format::Capture) => Ok("capture"),
        Err(problem) => Err(bad(problem)),
    }
}

/// Imports the event log of one end, or those of both. `same_clock`: whether both ends had one clock.
///
/// ValueError for a file that cannot be imported: its index, and its problem.
#[pyfunction]
#[pyo3(signature = (files: "Sequence[bytes]", same_clock, replay=None))]
pub(crate) fn import_event_logs(
    py: Python<'_>,
    files: Vec<Vec<u8>>,
    same_clock: bool,
    replay: Option<PyRef<'_, PyControllerHost>>,
) -> PyResult<PyImported> {
    let import =
        |clocks, replay: Option<&mut ControllerHost>| import::event_logs(&slices(&files), clocks, replay);
    convert(py, same_clock, replay, import)
}

/// Imports the captures of one or two capture points. `same_clock`: whether both points had one clock. `at`: "sender",
/// "receiver" or "middle", where the first one was made. `rtp`: an address and port from or to which all that may be RTP is
/// RTP.
///
/// ValueError for a file that cannot be imported: its index among all files, and its problem.
#[pyfunction]
#[pyo3(signature = (near: "Sequence[bytes]", far: "Sequence[bytes]", same_clock, at=None, rtp=None, replay=None))]
pub(crate) fn import_captures(
    py: Python<'_>,
    near: Vec<Vec<u8>>,
    far: Vec<Vec<u8>>,
    same_clock: bool,
    at: Option<&str>,
    rtp: Option<&str>,
    replay: Option<PyRef<'_, PyControllerHost>>,
) -> PyResult<PyImported> {
    let at = match at {
        None => None,
        Some("sender") => Some(At::Sender),
        Some("receiver") => Some(At::Receiver),
        Some("middle") => Some(At::Middle),
        Some(other) => return Err(bad(format!("at: found {other}; expected sender, receiver or middle"))),
    };
    let address = |text: &str| {
        let wrong =
            || bad(format!("rtp: found {text}; expected an address and a port such as 192.0.2.1:5004"));
        text.parse().map_err(|_| wrong())
    };
    let hints = Hints { at, rtp: rtp.map(address).transpose()? };
    let import = |clocks, replay: Option<&mut ControllerHost>| {
        import::captures(&slices(&near), &slices(&far), hints, clocks, replay)
    };
    convert(py, same_clock, replay, import)
}

fn slices(files: &[Vec<u8>]) -> Vec<&[u8]> {
    files.iter().map(Vec::as_slice).collect()
}

/// Imports a call without the GIL, and converts the result for Python.
fn convert(
    py: Python<'_>,
    same_clock: bool,
    replay: Option<PyRef<'_, PyControllerHost>>,
    import: impl FnOnce(Clocks, Option<&mut ControllerHost>) -> Result<Imported, FileProblem> + Send,
) -> PyResult<PyImported> {
    check_environment()?;
    let host = replay.as_deref().map(PyControllerHost::host);
    let clocks = if same_clock { Clocks::Same } else { Clocks::Separate };
    let result = py.detach(|| {
        let mut guard = host.map(|host| host.lock().unwrap_or_else(PoisonError::into_inner));
        import(clocks, guard.as_deref_mut())
    });
    let error = |error: FileProblem| PyValueError::new_err((error.file, error.problem.to_string()));
    result.map(|inner| PyImported { inner }).map_err(error)
}
