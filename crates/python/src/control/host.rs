//! The engine's controllers, driven from Python.

use super::decision::{PyDecision, PyLimits, PyNeeds};
use super::packets::{PyArrived, PyNewFrame, PyOutgoing, PySent};
use super::report::PyReport;
use crate::errors::{RunError, bad};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_controllers::Content;
use tidegate_core::control::{self, ControllerHost, Decision, Limits, ReceiverHost, Urgency};
use tidegate_core::{Rate, Size, Stream, Time};

/// The internals of the last call by name.
fn internals<'py>(py: Python<'py>, notes: &control::Notes) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in &notes.values {
        dict.set_item(name.as_ref(), value)?;
    }
    Ok(dict)
}

fn unpack<T>(answer: Result<T, control::Failure>) -> PyResult<T> {
    answer.map_err(|failure| RunError::new_err(failure.to_string()))
}

fn convert_decision(answer: Result<&Decision, control::Failure>) -> PyResult<PyDecision> {
    unpack(answer).map(PyDecision::from_core)
}

/// Locks a host, since Python may call from any thread.
fn lock<T>(host: &Mutex<T>) -> MutexGuard<'_, T> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of tidegate's controllers, to be driven by hand: in a loop of your own, in a test, on a socket.
///
/// Time is an integer of nanoseconds and may begin anywhere, but never goes back.
#[pyclass(module = "tidegate", name = "ControllerHost")]
pub(crate) struct PyControllerHost {
    host: Mutex<ControllerHost>,
}

impl PyControllerHost {
    /// The host, behind its lock.
    pub(crate) fn host(&self) -> &Mutex<ControllerHost> {
        &self.host
    }
}

#[pymethods]
impl PyControllerHost {
    /// A feedback report.
    fn on_report(&self, now_ns: i64, report: &PyReport) -> PyResult<PyDecision> {
        convert_decision(lock(&self.host).report(Time::from_nanos(now_ns), &report.inner))
    }
    /// The alarm of the last decision.
    fn on_alarm(&self, now_ns: i64) -> PyResult<PyDecision> {
        convert_decision(lock(&self.host).alarm(Time::from_nanos(now_ns)))
    }
    /// New bounds, a new wanted rate, or a new route.
    fn on_limits(&self, now_ns: i64, limits: &PyLimits) -> PyResult<PyDecision> {
        convert_decision(lock(&self.host).limits(Time::from_nanos(now_ns), &limits.to_core()))
    }
    /// One packet has left.
    fn on_sent(&self, now_ns: i64, packet: &PySent) -> PyResult<PyDecision> {
        convert_decision(lock(&self.host).sent(Time::from_nanos(now_ns), &packet.to_core()))
    }
    /// A frame of media has come into the pacer.
    fn on_frame(&self, now_ns: i64, frame: &PyNewFrame) -> PyResult<PyDecision> {
        convert_decision(lock(&self.host).frame(Time::from_nanos(now_ns), &frame.to_core()))
    }
    /// Header extension of a packet that is about to leave: (id, bytes) or None.
    fn stamp(&self, now_ns: i64, packet: &PyOutgoing) -> Option<(u8, Vec<u8>)> {
        lock(&self.host).stamp(Time::from_nanos(now_ns), &packet.to_core()).map(|e| (e.id, e.data))
    }
    /// Needs of the controller.
    #[getter]
    fn needs(&self) -> PyNeeds {
        PyNeeds::from_core(lock(&self.host).needs())
    }
    /// Whether it needs calls of `on_sent`.
    #[getter]
    fn needs_sent(&self) -> bool {
        lock(&self.host).needs_sent()
    }
    /// Whether it needs calls of `on_frame`.
    #[getter]
    fn needs_frames(&self) -> bool {
        lock(&self.host).needs_frames()
    }
    /// The last decision.
    #[getter]
    fn decision(&self) -> PyDecision {
        PyDecision::from_core(lock(&self.host).decision())
    }
    /// Bytes in flight, if the controller counts them itself.
    fn in_flight(&self) -> Option<u64> {
        lock(&self.host).in_flight().map(Size::as_bytes)
    }
    /// The rate that it has calculated, in bit/s, if it can be coupled with others.
    fn coupled_rate(&self) -> Option<u64> {
        lock(&self.host).coupled_rate().map(Rate::as_bps)
    }
    /// Sets the rate that coupling assigns to it, in bit/s.
    fn on_coupled(&self, now_ns: i64, rate_bps: u64) -> PyResult<PyDecision> {
        convert_decision(lock(&self.host).coupled(Time::from_nanos(now_ns), Rate::from_bps(rate_bps)))
    }
    /// Named values of the last call; for a name with several values, the last one.
    #[getter]
    fn internals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        internals(py, &lock(&self.host).notes)
    }
}

/// The receiving half of one of tidegate's controllers, to be driven by hand.
#[pyclass(module = "tidegate", name = "ReceiverHost")]
pub(crate) struct PyReceiverHost {
    host: Mutex<ReceiverHost>,
}

fn urgency_name(urgency: Urgency) -> (&'static str, Option<i64>) {
    match urgency {
        Urgency::None => ("none", None),
        Urgency::Regular => ("regular", None),
        Urgency::Early(within) => ("early", Some(within.as_nanos())),
        Urgency::Now => ("now", None),
    }
}

#[pymethods]
impl PyReceiverHost {
    /// A data packet has arrived; answers how soon the half wants to speak: ("none" | "regular" |
    /// "early" | "now", for "early" the nanoseconds within which).
    #[pyo3(signature = (now_ns, packet) -> "tuple[_Urgency, int | None]")]
    fn on_packet(&self, now_ns: i64, packet: &PyArrived) -> PyResult<(&'static str, Option<i64>)> {
        let stamp = packet.stamp();
        let arrived = packet.to_core(stamp.as_ref());
        unpack(lock(&self.host).packet(Time::from_nanos(now_ns), &arrived)).map(urgency_name)
    }
    /// Whether it needs the true one-way delays of packets, which no receiver can measure.
    #[getter]
    fn needs_true_delay(&self) -> bool {
        lock(&self.host).needs_true_delay()
    }
    /// Its alarm is due.
    #[pyo3(signature = (now_ns) -> "tuple[_Urgency, int | None]")]
    fn on_alarm(&self, now_ns: i64) -> PyResult<(&'static str, Option<i64>)> {
        unpack(lock(&self.host).alarm(Time::from_nanos(now_ns))).map(urgency_name)
    }
    /// Its feedback as RTCP packets (see ``tidegate.wire``).
    #[pyo3(signature = (now_ns) -> "list[_Packet]")]
    fn message<'py>(&self, py: Python<'py>, now_ns: i64) -> PyResult<Bound<'py, PyList>> {
        let packets = unpack(lock(&self.host).message(Time::from_nanos(now_ns)))?;
        crate::wire::packets_to_python(py, &packets)
    }
    /// Time of its alarm in nanoseconds.
    #[getter]
    fn alarm_ns(&self) -> Option<i64> {
        lock(&self.host).alarm_at.map(Time::as_nanos)
    }
    /// Named values of the last call.
    #[getter]
    fn internals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        internals(py, &lock(&self.host).notes)
    }
}

fn find(name: &str) -> PyResult<&'static tidegate_controllers::Entry> {
    tidegate_controllers::find(name).ok_or_else(|| {
        let names: Vec<&str> = tidegate_controllers::registry().iter().map(|entry| entry.name).collect();
        bad(format!("{name}: no such controller; available: {}", names.join(", ")))
    })
}

fn overrides(settings_json: &str) -> PyResult<serde_json::Value> {
    serde_json::from_str(settings_json).map_err(|error| bad(format!("settings: {error}")))
}

fn preset_or_default<'a>(entry: &'a tidegate_controllers::Entry, preset: &'a str) -> &'a str {
    if preset.is_empty() { entry.default_preset() } else { preset }
}

/// Makes a controller to be driven by hand; its first call is ``on_limits(now_ns, limits)``.
#[pyfunction]
#[pyo3(signature = (name, preset="", settings_json="{}", seed=0, now_ns=0, limits=None))]
pub(crate) fn controller(
    name: &str,
    preset: &str,
    settings_json: &str,
    seed: u64,
    now_ns: i64,
    limits: Option<PyRef<'_, PyLimits>>,
) -> PyResult<PyControllerHost> {
    let entry = find(name)?;
    let built = (entry.build)(preset_or_default(entry, preset), &overrides(settings_json)?).map_err(bad)?;
    let limits = limits.map_or_else(Limits::default, |limits| limits.to_core());
    let rng = Stream::new(seed, name, "controller");
    let mut host = unpack(ControllerHost::new(name, built, rng, Time::from_nanos(now_ns), &limits))?;
    host.notes.wanted = true;
    Ok(PyControllerHost { host: Mutex::new(host) })
}

/// Makes the receiving half of a controller to be driven by hand.
#[pyfunction]
#[pyo3(signature = (name, preset="", settings_json="{}", seed=0))]
pub(crate) fn receiver(name: &str, preset: &str, settings_json: &str, seed: u64) -> PyResult<PyReceiverHost> {
    let entry = find(name)?;
    let Some(make) = entry.receiver else {
        let having: Vec<&str> = tidegate_controllers::registry()
            .iter()
            .filter(|entry| entry.receiver.is_some())
            .map(|entry| entry.name)
            .collect();
        let others = if having.is_empty() { "none".to_owned() } else { having.join(", ") };
        return Err(bad(format!("{name} has no receiver half; controllers with a receiver half: {others}")));
    };
    let half = make(preset_or_default(entry, preset), &overrides(settings_json)?).map_err(bad)?;
    let mut host = ReceiverHost::new(name, half, Stream::new(seed, name, "receiver"));
    host.notes.wanted = true;
    Ok(PyReceiverHost { host: Mutex::new(host) })
}

/// Converts a table of settings to JSON.
fn settings_json_list(table: &[tidegate_controllers::Setting]) -> serde_json::Value {
    table
        .iter()
        .map(|s| serde_json::json!({"name": s.name, "unit": s.unit, "doc": s.doc, "source": s.source}))
        .collect()
}

/// Every controller with its presets and settings, as JSON: `settings` are those of the default preset, and
/// `own_settings` those of the presets that have others; `in_call` has what a call sets of a preset, by what its video
/// shows.
#[pyfunction]
pub(crate) fn controllers_json() -> PyResult<String> {
    let list: Vec<serde_json::Value> = tidegate_controllers::registry()
        .iter()
        .map(|entry| {
            let defaults: serde_json::Map<String, serde_json::Value> = entry
                .presets
                .iter()
                .map(|preset| Ok(((*preset).to_owned(), (entry.defaults)(preset).map_err(bad)?)))
                .collect::<PyResult<_>>()?;
            let usual = (entry.settings)(entry.default_preset());
            let own: serde_json::Map<String, serde_json::Value> = entry
                .presets
                .iter()
                .map(|preset| (*preset, (entry.settings)(preset)))
                .filter(|(_, table)| *table != usual)
                .map(|(preset, table)| (preset.to_owned(), settings_json_list(table)))
                .collect();
            let in_call: serde_json::Map<String, serde_json::Value> = entry
                .presets
                .iter()
                .map(|preset| {
                    let [camera, screen] =
                        [Content::Camera, Content::Screen].map(|content| (entry.in_call)(preset, content));
                    ((*preset).to_owned(), serde_json::json!({"camera": camera, "screen": screen}))
                })
                .collect();
            let needs = (entry.build)(entry.default_preset(), &serde_json::Value::Null).map_err(bad)?.needs();
            Ok(serde_json::json!({
                "name": entry.name,
                "summary": entry.summary,
                "presets": entry.presets,
                "settings": settings_json_list(usual),
                "own_settings": own,
                "in_call": in_call,
                "defaults": defaults,
                "needs": needs.feedback.name(),
                "ecn": needs.ecn.name(),
                "receiver": entry.receiver.is_some(),
            }))
        })
        .collect::<PyResult<_>>()?;
    serde_json::to_string(&list).map_err(bad)
}

/// All settings of a preset, as JSON.
#[pyfunction]
pub(crate) fn controller_defaults(name: &str, preset: &str) -> PyResult<String> {
    let entry = find(name)?;
    let defaults = (entry.defaults)(preset_or_default(entry, preset)).map_err(bad)?;
    serde_json::to_string(&defaults).map_err(bad)
}

/// Needs of a controller with these settings.
#[pyfunction]
#[pyo3(signature = (name, preset="", settings_json="{}"))]
pub(crate) fn controller_needs(name: &str, preset: &str, settings_json: &str) -> PyResult<PyNeeds> {
    let entry = find(name)?;
    let built = (entry.build)(preset_or_default(entry, preset), &overrides(settings_json)?).map_err(bad)?;
    Ok(PyNeeds::from_core(built.needs()))
}

/// Raises ValueError if the settings would not make a controller.
#[pyfunction]
#[pyo3(signature = (name, preset="", settings_json="{}"))]
pub(crate) fn check_controller(name: &str, preset: &str, settings_json: &str) -> PyResult<()> {
    let entry = find(name)?;
    (entry.build)(preset_or_default(entry, preset), &overrides(settings_json)?).map(drop).map_err(bad)
}
