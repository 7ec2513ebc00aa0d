//! Sessions by the wall clock: real programs on the links of a scenario (Linux).

use crate::control::half::Raised;
use crate::encoder::Tapes;
use crate::errors::{RunError, bad};
use crate::run::{Recording, prepare};
use crate::trace::PyTrace;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;
use tidegate_core::Time;
use tidegate_live::network;
use tidegate_live::shell::arrival::{arrivals, fates};
use tidegate_live::shell::forward::{self, Port, Shell, StopReason};
use tidegate_live::shell::lateness::LatenessSummary;
use tidegate_live::shell::log::Log;
use tidegate_live::shell::replay::{difference, replay};
use tidegate_live::shell::{Names, usual_names};

fn system(what: &str, error: io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), format!("{what}: {error}")))
}

fn failed(error: forward::Error) -> PyErr {
    match error {
        forward::Error::Model(stopped) => RunError::new_err(stopped.to_string()),
        forward::Error::System(error) => system("forwarding", error),
    }
}

/// The names of the flows of both sides: those given, or the usual ones.
fn names(sides: Option<(Vec<String>, Vec<String>)>) -> Names {
    sides.map_or_else(usual_names, |(a, b)| [a, b])
}

/// A scenario's links between two devices in real time; only on Linux.
#[pyclass(frozen, module = "tidegate._core", name = "Shell")]
pub(crate) struct PyShell {
    shell: Mutex<Option<Box<Shell>>>,
}

impl PyShell {
    fn with<R>(&self, operation: impl FnOnce(&mut Option<Box<Shell>>) -> PyResult<R>) -> PyResult<R> {
        operation(
            &mut *self
                .shell
                .try_lock()
                .map_err(|_| PyRuntimeError::new_err("this session is in use by another call"))?,
        )
    }
}

fn finished_error() -> PyErr {
    bad("this session has finished")
}

#[pymethods]
impl PyShell {
    /// A session, which begins now. It writes `arrivals.csv` and `fates.csv` in `folder`, and with `pcap` a capture
    /// file for each side. `sides` has the names of each side's external flows. The other arguments are those of `run`.
    #[new]
    #[pyo3(signature = (folder, scenario_json, traces=Vec::new(), objects: "_Objects" = BTreeMap::new(), pcap=false, sides=None))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        scenario_json: &str,
        traces: Vec<PyRef<'_, PyTrace>>,
        objects: BTreeMap<String, Py<PyAny>>,
        pcap: bool,
        sides: Option<(Vec<String>, Vec<String>)>,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let (_, run, _) = prepare(py, scenario_json, &traces, &objects, &raised)?;
        let log = Log::begin(&folder, pcap).map_err(|error| system(&folder.display().to_string(), error))?;
        let shell = Shell::new(run, log, &names(sides)).map_err(bad)?;
        Ok(Self { shell: Mutex::new(Some(Box::new(shell))) })
    }

    /// Forwards between two packet sockets until the scenario's end ("over"), until the descriptor `stop` can be read
    /// ("stopped"), until a signal arrives ("interrupted"), or until the model lags by a second ("behind").
    fn forward(&self, py: Python<'_>, a: i32, b: i32, stop: i32) -> PyResult<&'static str> {
        let socket = |number| Port::of(number).map_err(|error| system("packet socket", error));
        let (a, b) = (socket(a)?, socket(b)?);
        let stop = forward::descriptor(stop).map_err(|error| system("stop descriptor", error))?;
        self.with(|shell| {
            let shell = shell.as_mut().ok_or_else(finished_error)?;
            let end = py.detach(|| shell.forward([&a, &b], &stop)).map_err(failed)?;
            Ok(match end {
                StopReason::Over => "over",
                StopReason::Stopped => "stopped",
                StopReason::Interrupted => "interrupted",
                StopReason::Behind(_) => "behind",
            })
        })
    }

    /// Flows, counts and lateness so far, as JSON.
    fn summary_json(&self) -> PyResult<String> {
        self.with(|shell| {
            let shell = shell.as_ref().ok_or_else(finished_error)?;
            let (counts, late, clamped) = shell.summary();
            let quantiles = |late: LatenessSummary| {
                serde_json::json!({
                    "count": late.count, "p50_ms": late.p50_ms, "p99_ms": late.p99_ms, "worst_ms": late.worst_ms,
                })
            };
            let flows: Vec<_> = shell
                .flows()
                .tuples()
                .iter()
                .map(|tuple| {
                    serde_json::json!({
                        "protocol": tuple.protocol, "address_a": tuple.address_a.to_string(), "port_a": tuple.port_a,
                        "address_b": tuple.address_b.to_string(), "port_b": tuple.port_b,
                    })
                })
                .collect();
            let summary = serde_json::json!({
                "flows": flows,
                "packets": counts.packets, "other": counts.not_ipv4, "clamped": counts.clamped,
                "unstamped": counts.unstamped, "unwritten": counts.unwritten, "missed": counts.overflowed,
                "shared": shell.flows().shared(),
                "clock_steps": counts.steps,
                "lateness": quantiles(late), "clamped_by": quantiles(clamped),
            });
            serde_json::to_string(&summary).map_err(bad)
        })
    }

    /// Ends the session now and completes its files. Returns the session's time in nanoseconds.
    fn finish(&self, py: Python<'_>) -> PyResult<i64> {
        let shell = self.with(|shell| shell.take().ok_or_else(finished_error))?;
        py.detach(|| shell.finish()).map(|(end, _)| end.as_nanos()).map_err(failed)
    }
}

/// Replays a session in virtual time from the texts of its `arrivals.csv` and `fates.csv`. Returns the recording, and
/// the first difference from the session, if any. `sides` is that of the session; the other arguments are those of
/// `run`. Only on Linux.
#[pyfunction]
#[pyo3(signature = (arrivals_csv, fates_csv, end_ns, scenario_json, traces=Vec::new(), objects: "_Objects" = BTreeMap::new(), sides=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn replay_session(
    py: Python<'_>,
    arrivals_csv: &str,
    fates_csv: &str,
    end_ns: i64,
    scenario_json: &str,
    traces: Vec<PyRef<'_, PyTrace>>,
    objects: BTreeMap<String, Py<PyAny>>,
    sides: Option<(Vec<String>, Vec<String>)>,
) -> PyResult<(Recording, Option<String>)> {
    let raised = Raised::default();
    let (_, run, _) = prepare(py, scenario_json, &traces, &objects, &raised)?;
    let names = names(sides);
    let started = Instant::now();
    let result = py.detach(|| -> Result<_, String> {
        let arrivals = arrivals(arrivals_csv).map_err(|error| format!("arrivals.csv: {error}"))?;
        let live = fates(fates_csv).map_err(|error| format!("fates.csv: {error}"))?;
        let replayed = replay(run, &names, &arrivals, Time::from_nanos(end_ns))?;
        let differs = difference(&live, &replayed.fates).map(|(number, live, replayed)| {
            format!("packet {number}: {live:?} in the session, {replayed:?} in the replay")
        });
        Ok((replayed.outcome, differs))
    });
    let (outcome, differs) = result.map_err(bad)?;
    Ok((Recording::new(outcome, Tapes::new(), started.elapsed().as_secs_f64()), differs))
}

/// Makes a network namespace and returns its file descriptor; only on Linux.
#[pyfunction]
pub(crate) fn make_network() -> PyResult<i32> {
    network::make().map(IntoRawFd::into_raw_fd).map_err(|error| system("network namespace", error))
}

/// Moves the calling thread, and the threads and programs that it starts from now on, into a network namespace; only on
/// Linux.
#[pyfunction]
pub(crate) fn enter_network(namespace: i32) -> PyResult<()> {
    let enter = |namespace: OwnedFd| network::enter(&namespace);
    forward::descriptor(namespace).and_then(enter).map_err(|error| system("network namespace", error))
}

/// Removes the rights in the namespaces from the calling thread, and from programs that it starts from now on; only on
/// Linux.
#[pyfunction]
pub(crate) fn drop_rights() -> PyResult<()> {
    network::drop_rights().map_err(|error| system("capabilities", error))
}
