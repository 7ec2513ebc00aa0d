//! Runs of a scenario from Python, and the recordings that they leave.

use crate::control::half::{PyHalf, Raised, exception_text};
use crate::encoder::{self, Tapes};
use crate::errors::{RunError, bad, check_environment, refused};
use crate::gym::PyAgentController;
use crate::table::Table;
use crate::trace::PyTrace;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tidegate_core::Time;
use tidegate_sim::Refusal;
use tidegate_sim::engine::world::Stopped;
use tidegate_sim::record::capture::Side;
use tidegate_sim::scenario::assemble::{self, EncoderRequest, Halves, Makers};
use tidegate_sim::scenario::{ControllerSpec, Scenario};
use tidegate_sim::scenario::{Outcome, Run};

/// Interval in wall time at which a run checks for Ctrl-C and reports its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Largest number of events between two readings of the wall clock: about a millisecond of work.
const MAX_EVENTS: u64 = 4096;

/// The results of a run: metrics, tables, hashes.
#[pyclass(frozen, module = "tidegate._core")]
pub(crate) struct Recording {
    outcome: Outcome,
    tapes: Tapes,
    run_seconds: f64,
}

#[pymethods]
impl Recording {
    /// All metrics, as JSON.
    fn summary_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.outcome.summary).map_err(bad)
    }

    /// Hash of all that was recorded, in hex: the same scenario and seed give the same digest on every machine.
    #[getter]
    fn digest(&self) -> &str {
        &self.outcome.summary.digest
    }

    /// The draws of each random substream, as JSON: {name: {count, checkpoints: [[draws, hash]]}}.
    fn draws_json(&self) -> PyResult<String> {
        let draws: BTreeMap<&str, serde_json::Value> = self
            .outcome
            .draws
            .iter()
            .map(|d| (&*d.name, serde_json::json!({"count": d.count, "checkpoints": d.checkpoints})))
            .collect();
        serde_json::to_string(&draws).map_err(bad)
    }

    /// The names of the tables there are.
    fn table_names(&self) -> Vec<&'static str> {
        let mut names = self.outcome.recording.table_names();
        names.extend((!self.tapes.is_empty()).then_some("slices"));
        names
    }

    /// One table.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let find = || match name {
            "slices" if !self.tapes.is_empty() => Some(encoder::slices(&self.tapes)),
            _ => self.outcome.recording.table(name),
        };
        let table = py.detach(find);
        let names = || self.table_names().join(", ");
        Table::new(
            table.ok_or_else(|| bad(format!("no table {name:?} at this level; available: {}", names())))?,
        )
    }

    /// The capture file (pcapng) of what one side sees of all flows: "sender" or "receiver".
    fn pcapng<'py>(&self, py: Python<'py>, side: &str) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        let side = match side {
            "sender" => Side::Sender,
            "receiver" => Side::Receiver,
            _ => return Err(bad(format!("side: found {side}; expected sender or receiver"))),
        };
        let bytes = py.detach(|| self.outcome.recording.pcapng(side)).map_err(bad)?;
        Ok(pyo3::types::PyBytes::new(py, &bytes))
    }

    /// The byte stream of a flow's encoder in the loop: parameter sets and slices.
    fn encoded<'py>(&self, py: Python<'py>, flow: &str) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        for tape in &self.tapes {
            let bits = encoder::on(tape, |tape| {
                (tape.flow == flow).then(|| pyo3::types::PyBytes::new(py, &tape.bits))
            });
            if let Some(bits) = bits {
                return Ok(bits);
            }
        }
        Err(bad(format!("{flow} has no encoder in the loop")))
    }

    /// Events that the engine handled.
    #[getter]
    fn events(&self) -> u64 {
        self.outcome.events
    }

    /// Packets that left a link, counted at every link.
    #[getter]
    fn hops(&self) -> u64 {
        self.outcome.hops
    }

    /// Wall seconds that the run took, without building the world and writing results.
    #[getter]
    fn run_seconds(&self) -> f64 {
        self.run_seconds
    }
}

impl Recording {
    pub(crate) fn new(outcome: Outcome, tapes: Tapes, run_seconds: f64) -> Self {
        Self { outcome, tapes, run_seconds }
    }
}

/// The exception of a run that stopped, with the pending Python exception as its cause.
pub(crate) fn with_cause(py: Python<'_>, message: String, raised: &Raised) -> PyErr {
    let error = RunError::new_err(message);
    if let Ok(mut raised) = raised.lock()
        && let Some(cause) = raised.take()
    {
        error.set_cause(py, Some(cause));
    }
    error
}

fn refusal_at(py: Python<'_>, key: String, message: String) -> PyErr {
    refused(py, &Refusal { key, value: message, expected: String::new() })
}

/// Builds the world of a scenario. `scenario_json` is as in the crate's `scenario` module, with `traces` by index.
/// `objects` are factories by key: of Python controllers (called once for each flow, they return the controller or a
/// pair of controller and receiver half), and of iterators over pictures for encoders in the loop. Their exceptions go
/// to `raised`.
pub(crate) fn prepare(
    py: Python<'_>,
    scenario_json: &str,
    traces: &[PyRef<'_, PyTrace>],
    objects: &BTreeMap<String, Py<PyAny>>,
    raised: &Raised,
) -> PyResult<(Scenario, Run, Tapes)> {
    prepare_with(py, scenario_json, traces, objects, raised, &mut |_| None)
}

/// As [`prepare`], but `first` may make each controller, before `objects` and the registry.
pub(crate) fn prepare_with(
    py: Python<'_>,
    scenario_json: &str,
    traces: &[PyRef<'_, PyTrace>],
    objects: &BTreeMap<String, Py<PyAny>>,
    raised: &Raised,
    first: &mut dyn FnMut(&ControllerSpec) -> Option<Halves>,
) -> PyResult<(Scenario, Run, Tapes)> {
    check_environment()?;
    let scenario: Scenario = serde_json::from_str(scenario_json)
        .map_err(|error| refusal_at(py, "scenario".to_owned(), error.to_string()))?;
    let traces: Vec<_> = traces.iter().map(|trace| trace.inner.clone()).collect();
    let mut make = |spec: &ControllerSpec| -> Result<Halves, Refusal> {
        if let Some(halves) = first(spec) {
            return Ok(halves);
        }
        if spec.python { from_python(py, spec, objects, raised) } else { assemble::from_registry(spec) }
    };
    let mut tapes = Tapes::new();
    let mut encoder = |request: &EncoderRequest<'_>| encoder::make(request, objects, raised, &mut tapes);
    let mut makers = Makers { controller: &mut make, encoder: &mut encoder };
    match Run::with(&scenario, &traces, &mut makers) {
        Ok(run) => Ok((scenario, run, tapes)),
        Err(error) => {
            let error = refused(py, &error);
            if let Some(cause) = raised.lock().ok().and_then(|mut raised| raised.take()) {
                error.set_cause(py, Some(cause));
            }
            Err(error)
        }
    }
}

/// Runs a scenario to its end.
///
/// `scenario_json` is as in the crate's `scenario` module, with `traces` by index. `objects` are the factories of
/// controllers in Python by key (called once a flow, they give the controller or a pair of controller and receiver
/// half), and of what iterates over pictures for encoders in the loop. `progress`, if any, is called with the share of
/// simulated time that is done.
#[pyfunction]
#[pyo3(signature = (scenario_json, traces=Vec::new(), objects: "_Objects" = BTreeMap::new(), progress: "Callable[[float], object] | None" = None))]
pub(crate) fn run(
    py: Python<'_>,
    scenario_json: &str,
    traces: Vec<PyRef<'_, PyTrace>>,
    objects: BTreeMap<String, Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Recording> {
    let raised = Raised::default();
    let (_, mut run, tapes) = prepare(py, scenario_json, &traces, &objects, &raised)?;
    if let Some(key) = run.external().first() {
        let message = "an external link or flow needs a driver; run this scenario inside tidegate.simpy";
        return Err(refusal_at(py, key, message.to_owned()));
    }
    let started = Instant::now();
    let end = Time::ZERO + run.duration();
    let drive = || {
        let report_progress = |py: Python<'_>, run: &Run| {
            py.check_signals()?;
            let share = run.now().as_secs_f64() / end.as_secs_f64();
            progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
        };
        drive(&mut run, |run, events| run.run_events(end, events), report_progress)?;
        let run_seconds = started.elapsed().as_secs_f64();
        let outcome = run.finish()?;
        Ok(Recording { outcome, tapes, run_seconds })
    };
    outcome_of(py, py.detach(drive), &raised)
}

/// Converts the end of a run, successful or not, for Python.
pub(crate) fn outcome_of<T>(py: Python<'_>, result: Result<T, RunFailure>, raised: &Raised) -> PyResult<T> {
    match result {
        // a stamp that failed after the last feedback, which nothing has reported yet
        Ok(_) if raised.lock().is_ok_and(|raised| raised.is_some()) => Err(with_cause(
            py,
            "the method stamp of a controller failed at the end of the run".to_owned(),
            raised,
        )),
        Ok(result) => Ok(result),
        Err(RunFailure::Stopped(stopped)) => Err(with_cause(py, stopped.to_string(), raised)),
        Err(RunFailure::Raised(error)) => Err(error),
    }
}

pub(crate) fn from_python(
    py: Python<'_>,
    spec: &ControllerSpec,
    objects: &BTreeMap<String, Py<PyAny>>,
    raised: &Raised,
) -> Result<Halves, Refusal> {
    let factory = objects
        .get(&spec.name)
        .ok_or_else(|| format!("{}: the Python controller was not passed to the run", spec.name))?;
    let halves = (|| -> PyResult<Halves> {
        let product = factory.bind(py).call0().map_err(|error| {
            let outer = bad(exception_text(py, "the constructor", &error));
            outer.set_cause(py, Some(error));
            outer
        })?;
        if let Ok(agent) = product.cast::<PyAgentController>() {
            return Ok((Box::new(agent.get().controller(py, raised)), None));
        }
        let (controller, half) = match product.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
            Ok(pair) => pair,
            Err(_) => (product, py.None().into_bound(py)),
        };
        let controller = PyHalf::controller(&controller, raised.clone(), spec.content)?;
        let half = if half.is_none() {
            None
        } else {
            let half = PyHalf::receiver(&half, raised.clone())?;
            Some(Box::new(half) as Box<dyn tidegate_core::control::ReceiverHalf>)
        };
        Ok((Box::new(controller), half))
    })();
    halves.map_err(|error| {
        let reason = format!("{}: {}", spec.name, error.value(py)).into();
        if let (Some(cause), Ok(mut raised)) = (error.cause(py), raised.lock()) {
            raised.get_or_insert(cause);
        }
        reason
    })
}

/// Reason why a run ended early.
pub(crate) enum RunFailure {
    Stopped(Stopped),
    Raised(PyErr),
}

impl From<Stopped> for RunFailure {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// Calls `advance` with an event budget until it returns true, and `progress` every [`PROGRESS_INTERVAL`].
pub(crate) fn drive(
    run: &mut Run,
    mut advance: impl FnMut(&mut Run, u64) -> Result<bool, Stopped>,
    report_progress: impl Fn(Python<'_>, &Run) -> PyResult<()>,
) -> Result<(), RunFailure> {
    let mut last_progress = Instant::now();
    // in events, because an interval of simulated time may have any number of them
    let mut events = MAX_EVENTS;
    loop {
        let before = Instant::now();
        if advance(run, events)? {
            return Ok(());
        }
        // a controller in Python may take seconds for one event
        let slow = before.elapsed() > PROGRESS_INTERVAL;
        events = if slow { (events / 2).max(1) } else { (events * 2).min(MAX_EVENTS) };
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            Python::attach(|py| report_progress(py, run)).map_err(RunFailure::Raised)?;
        }
    }
}
