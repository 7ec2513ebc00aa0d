//! A world that Python drives: steps of the engine, packets handed over to the driver, and packets fed by it.

use crate::control::half::Raised;
use crate::encoder::Tapes;
use crate::errors::{bad, check_environment};
use crate::guard::{InternalError, catch_panic};
use crate::run::{Recording, RunFailure, drive, outcome_of, prepare};
use crate::table::Table;
use crate::trace::PyTrace;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;
use tidegate_core::datagram::{Ecn, RtpBody};
use tidegate_core::outbox::Handed;
use tidegate_core::{Cause, NodeId, Packet, Time};
use tidegate_sim::engine::world::Stopped;
use tidegate_sim::link::LinkChange;
use tidegate_sim::scenario::{CallMove, ExternalFlow, Run};

/// Names of flows by number, and of external links by node.
struct Names {
    flows: Vec<Py<PyString>>,
    links: BTreeMap<NodeId, Py<PyString>>,
}

/// A packet that a world has handed to its driver.
///
/// Times are nanoseconds of its world; sizes are bytes on the wire, IP and UDP headers included.
#[pyclass(frozen, module = "tidegate._core", name = "Packet")]
pub(crate) struct PyPacket {
    packet: Packet,
    node: NodeId,
    number: u64,
    names: Arc<Names>,
    /// Object whose `forward` and `drop` are called for it.
    holder: Option<Py<PyAny>>,
}

impl PyPacket {
    fn rtp_body(&self) -> Option<&RtpBody> {
        self.packet.rtp()
    }
}

#[pymethods]
impl PyPacket {
    /// Name of its flow.
    #[getter]
    fn flow(&self, py: Python<'_>) -> Py<PyString> {
        self.names.flows[self.packet.flow.0 as usize].clone_ref(py)
    }
    /// The external link that it waits at; None for one that has arrived.
    #[getter]
    fn link(&self, py: Python<'_>) -> Option<Py<PyString>> {
        self.names.links.get(&self.node).map(|name| name.clone_ref(py))
    }
    /// One of "video", "audio", "padding", "retransmission", "repair", "rtcp", "data", "ack" or "datagram".
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, self.packet.kind.name())
    }
    /// Bytes on the wire.
    #[getter]
    fn size(&self) -> u32 {
        self.packet.size
    }
    /// Running number of its sender's packets of this flow, as in the table of packets.
    #[getter]
    fn sequence(&self) -> u32 {
        self.packet.sequence
    }
    /// When its sender put it on the wire.
    #[getter]
    fn sent_ns(&self) -> i64 {
        self.packet.sent.as_nanos()
    }
    /// The number that it was fed with; None for packets that were not fed.
    #[getter]
    fn tag(&self) -> Option<u64> {
        self.packet.tag()
    }
    /// The bytes of an RTCP packet above UDP; None for other kinds.
    #[getter]
    fn rtcp<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.packet.rtcp().map(|bytes| PyBytes::new(py, bytes))
    }
    /// RTP sequence number; None if it is no RTP.
    #[getter]
    fn rtp_sequence(&self) -> Option<u16> {
        self.rtp_body().map(|body| body.sequence)
    }
    /// RTP timestamp; None if it is no RTP.
    #[getter]
    fn timestamp(&self) -> Option<u32> {
        self.rtp_body().map(|body| body.timestamp)
    }
    /// RTP payload type; None if it is no RTP.
    #[getter]
    fn payload_type(&self) -> Option<u8> {
        self.rtp_body().map(|body| body.payload_type)
    }
    /// Transport-wide sequence number; None where no header extension carries it.
    #[getter]
    fn transport_sequence(&self) -> Option<u16> {
        self.rtp_body().and_then(|body| body.transport_sequence)
    }
    /// Whether it is the last packet of its frame; None if it is no RTP.
    #[getter]
    fn marker(&self) -> Option<bool> {
        self.rtp_body().map(|_| self.packet.frame.is_last())
    }
    /// Object whose `forward` and `drop` are called for it.
    #[getter]
    fn holder(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.holder.as_ref().map(|holder| holder.clone_ref(py))
    }

    /// Sends it on, now: its holder does.
    fn forward(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().require_holder(slf.py())?.call_method1("forward", (slf,)).map(drop)
    }

    /// Lets it die, now, of "loss", "queue", "corrupt", "outage" or "too-big": its holder does.
    #[pyo3(signature = (cause="loss"))]
    fn drop(slf: &Bound<'_, Self>, cause: &str) -> PyResult<()> {
        slf.get().require_holder(slf.py())?.call_method1("drop", (slf, cause)).map(drop)
    }

    fn __repr__(&self) -> String {
        let Packet { sequence, kind, sent, .. } = &self.packet;
        format!("<tidegate Packet {sequence} ({}, {} B) sent at {sent}>", kind.name(), self.packet.size)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.holder.as_ref().map_or(Ok(()), |holder| visit.call(holder))
    }
}

impl PyPacket {
    fn require_holder<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let holder = self.holder.as_ref().map(|holder| holder.bind(py).clone());
        holder.ok_or_else(|| bad("this packet has no holder; give it to World.forward or World.drop"))
    }
}

/// State of a world.
enum State {
    Running(Box<Run>),
    Over(&'static str),
}

/// A scenario that is run in steps; external links and flows are for its driver.
///
/// Times are nanoseconds from its beginning; those that are passed must not go back.
#[pyclass(frozen, module = "tidegate._core", name = "World")]
pub(crate) struct PyWorld {
    state: Mutex<State>,
    raised: Raised,
    tapes: Tapes,
    names: Arc<Names>,
    /// (driver's time so far, wall seconds spent so far).
    spent: Mutex<(Time, f64)>,
    duration: i64,
    flows: BTreeMap<String, ExternalFlow>,
}

impl PyWorld {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        check_environment()?;
        match self.state.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "this world is running: code inside it or in another thread cannot drive it",
            )),
            Err(TryLockError::Poisoned(_)) => {
                Err(PyRuntimeError::new_err("this world cannot be used after a panic"))
            }
        }
    }

    /// Performs an action of the driver at `at`.
    fn act<R>(&self, at: i64, action: impl FnOnce(&mut Run, Time) -> PyResult<R>) -> PyResult<R> {
        let mut state = self.lock()?;
        let run = running(&mut state)?;
        let mut spent = self.spent.lock().map_err(bad)?;
        let (time, reached) = (Time::from_nanos(at), spent.0.max(run.now()));
        if time < reached {
            return Err(bad(format!("at {time}: the world has already reached {reached}")));
        }
        let result = match catch_panic(|| action(run, time)) {
            Ok(result) => result?,
            Err(panic) => {
                *state = State::Over("has stopped with an error");
                return Err(InternalError::new_err(panic));
            }
        };
        spent.0 = time;
        Ok(result)
    }

    /// Reads something from the run.
    fn look<R>(&self, look: impl FnOnce(&mut Run) -> PyResult<R>) -> PyResult<R> {
        let mut state = self.lock()?;
        match catch_panic(|| look(running(&mut state)?)) {
            Ok(result) => result,
            Err(panic) => {
                *state = State::Over("has stopped with an error");
                Err(InternalError::new_err(panic))
            }
        }
    }

    /// Continues a run by `some`, which handles a number of events and returns whether it is done, or until Ctrl-C.
    fn go_on(
        &self,
        py: Python<'_>,
        run: &mut Run,
        some: impl FnMut(&mut Run, u64) -> Result<bool, Stopped> + Send,
    ) -> PyResult<Result<(), RunFailure>> {
        let started = Instant::now();
        let result = catch_panic(|| py.detach(|| drive(run, some, |py, _| py.check_signals())));
        self.spent.lock().map_err(bad)?.1 += started.elapsed().as_secs_f64();
        Ok(result.unwrap_or_else(|panic| Err(RunFailure::Raised(InternalError::new_err(panic)))))
    }

    fn decide(&self, packet: &PyPacket, at: i64, cause: Option<Cause>) -> PyResult<()> {
        if !Arc::ptr_eq(&self.names, &packet.names) {
            return Err(bad(format!("{} belongs to another world", packet.__repr__())));
        }
        self.act(at, |run, at| {
            if run.decide(packet.node, packet.number, at, cause) {
                return Ok(());
            }
            let waits = self.names.links.contains_key(&packet.node);
            let why = if waits { "was already forwarded or dropped" } else { "has arrived" };
            Err(bad(format!("{} {why}", packet.__repr__())))
        })
    }
}

/// Changes of a link from their JSON.
fn of_json(changes: &str) -> PyResult<Vec<LinkChange>> {
    serde_json::from_str(changes).map_err(|error| bad(format!("changes: {error}")))
}

fn call_of_json(change: &str) -> PyResult<CallMove> {
    serde_json::from_str(change).map_err(|error| bad(format!("change: {error}")))
}

fn running(state: &mut State) -> PyResult<&mut Run> {
    match state {
        State::Running(run) => Ok(run),
        State::Over(why) => Err(bad(format!("this world {why}"))),
    }
}

#[pymethods]
impl PyWorld {
    /// Builds the world of a scenario; the arguments are those of `run`.
    #[new]
    #[pyo3(signature = (scenario_json, traces=Vec::new(), objects: "_Objects" = BTreeMap::new()))]
    fn new(
        py: Python<'_>,
        scenario_json: &str,
        traces: Vec<PyRef<'_, PyTrace>>,
        objects: BTreeMap<String, Py<PyAny>>,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let (scenario, run, tapes) = prepare(py, scenario_json, &traces, &objects, &raised)?;
        let text = |name: &str| PyString::intern(py, name).unbind();
        let external = run.external();
        let names = Names {
            flows: scenario.flows.iter().map(|flow| text(&flow.name)).collect(),
            links: external.links.iter().map(|(name, node)| (*node, text(name))).collect(),
        };
        let flows = external.flows.iter();
        Ok(Self {
            flows: flows.map(|flow| (flow.name.clone(), flow.clone())).collect(),
            names: Arc::new(names),
            duration: run.duration().as_nanos(),
            state: Mutex::new(State::Running(Box::new(run))),
            raised,
            tapes,
            spent: Mutex::new((Time::ZERO, 0.0)),
        })
    }

    /// Names of the external links.
    #[getter]
    fn links(&self, py: Python<'_>) -> Vec<Py<PyString>> {
        self.names.links.values().map(|name| name.clone_ref(py)).collect()
    }

    /// Names of the external flows.
    #[getter]
    fn flows(&self) -> Vec<&str> {
        self.flows.keys().map(String::as_str).collect()
    }

    /// Duration of the scenario.
    #[getter]
    fn duration_ns(&self) -> i64 {
        self.duration
    }

    /// The time of its last event.
    #[getter]
    fn now_ns(&self) -> PyResult<i64> {
        running(&mut *self.lock()?).map(|run| run.now().as_nanos())
    }

    /// Time of the next event, as far as it is known; None if there is none before the end.
    fn peek(&self) -> PyResult<Option<i64>> {
        running(&mut *self.lock()?).map(|run| run.peek().map(Time::as_nanos))
    }

    /// Runs up to and including `until_ns`, but stops after an event in which packets were handed over: those that wait
    /// at external links, and those that arrived on external flows. Returns these packets; an empty list says that
    /// `until_ns` was reached. `holder` is the object that their `forward` and `drop` call.
    #[pyo3(signature = (until_ns, holder: "object" = None))]
    fn run_until(&self, py: Python<'_>, until_ns: i64, holder: Option<Py<PyAny>>) -> PyResult<Vec<PyPacket>> {
        let mut state = self.lock()?;
        let run = running(&mut state)?;
        let until = Time::from_nanos(until_ns);
        let some = move |run: &mut Run, events| Ok(run.run_driven(until, events)? || run.has_handed());
        if let Err(error) = self.go_on(py, run, some)? {
            *state = State::Over("has stopped with an error");
            return outcome_of(py, Err(error), &self.raised);
        }
        let packet = |Handed { node, number, packet }| PyPacket {
            packet,
            node,
            number,
            names: self.names.clone(),
            holder: holder.as_ref().map(|holder| holder.clone_ref(py)),
        };
        Ok(run.take_handed().into_iter().map(packet).collect())
    }

    /// Sends a packet on along its route, at `at_ns`.
    fn forward(&self, packet: &PyPacket, at_ns: i64) -> PyResult<()> {
        self.decide(packet, at_ns, None)
    }

    /// Lets a packet die at `at_ns`, of "queue", "loss", "corrupt", "outage" or "too-big".
    fn drop(&self, packet: &PyPacket, cause: &str, at_ns: i64) -> PyResult<()> {
        let drop_cause = Cause::ALL.into_iter().find(|candidate| candidate.name() == cause);
        let drop_cause = drop_cause.ok_or_else(|| {
            let names: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
            bad(format!("cause: found {cause:?}; available: {}", names.join(", ")))
        })?;
        self.decide(packet, at_ns, Some(drop_cause))
    }

    /// Sends a datagram of `size` bytes on the wire on an external flow at `at_ns`; `tag` is for its receiver.
    fn feed(&self, flow: &str, size: u32, tag: u64, at_ns: i64) -> PyResult<()> {
        let Some(ExternalFlow { source, start, stop, .. }) = self.flows.get(flow) else {
            let names = if self.flows.is_empty() { "none".to_owned() } else { self.flows().join(", ") };
            return Err(bad(format!("{flow}: no such external flow; available: {names}")));
        };
        if !(1..=65535).contains(&size) {
            return Err(bad(format!("{flow}: found a packet of {size} bytes; expected 1 to 65535")));
        }
        self.act(at_ns, |run, at| {
            if at < *start || at >= *stop {
                return Err(bad(format!(
                    "{flow}: found a packet at {at}; the flow runs from {start} until before {stop}"
                )));
            }
            if run.feed(*source, at, size, Ecn::NotEct, tag) {
                Ok(())
            } else {
                Err(bad(format!("{flow}: the flow takes no packets")))
            }
        })
    }

    /// Makes changes of a managed link at `at_ns`, one after the other: a JSON list of tables with new properties.
    fn change(&self, link: &str, at_ns: i64, changes: &str) -> PyResult<()> {
        let changes = of_json(changes)?;
        self.act(at_ns, |run, at| {
            changes.iter().try_for_each(|change| run.changeable(link, change)).map_err(bad)?;
            changes.iter().try_for_each(|change| run.change(link, at, change)).map_err(bad)
        })
    }

    /// Plans changes of a managed link, as moves of the scenario: they are made before all other events at `at_ns`.
    fn plan(&self, link: &str, at_ns: i64, changes: &str) -> PyResult<()> {
        let changes = of_json(changes)?;
        self.look(|run| {
            changes.iter().try_for_each(|change| run.changeable(link, change)).map_err(bad)?;
            let time = Time::from_nanos(at_ns);
            changes.into_iter().try_for_each(|change| run.plan(link, time, change)).map_err(bad)
        })
    }

    /// Changes a flow of a call at `at_ns`: a JSON table with another path, or limits of its rates.
    fn change_call(&self, flow: &str, at_ns: i64, change: &str) -> PyResult<()> {
        let change = call_of_json(change)?;
        self.act(at_ns, |run, at| run.change_call(flow, at, &change).map_err(bad))
    }

    /// Plans a change of a flow of a call, as a move of the scenario: it is made before all other events at `at_ns`.
    fn plan_call(&self, flow: &str, at_ns: i64, change: &str) -> PyResult<()> {
        let change = call_of_json(change)?;
        self.look(|run| run.plan_call(flow, Time::from_nanos(at_ns), &change).map_err(bad))
    }

    /// Runs all events before `until_ns`, or before the end; for a world without external links and flows. Ctrl-C stops
    /// it between two events.
    fn step(&self, py: Python<'_>, until_ns: i64) -> PyResult<()> {
        let mut state = self.lock()?;
        let run = running(&mut state)?;
        let until = Time::from_nanos(until_ns);
        let done = self.go_on(py, run, move |run, events| run.run_before(until, events))?;
        // the run stops between two events, so that it can go on after Ctrl-C
        let interrupted = matches!(&done, Err(RunFailure::Raised(error)) if error.is_instance_of::<PyKeyboardInterrupt>(py));
        if done.is_err() && !interrupted {
            *state = State::Over("has stopped with an error");
        }
        outcome_of(py, done, &self.raised)
    }

    /// The time before which all events have been run.
    #[getter]
    fn reached_ns(&self) -> PyResult<i64> {
        self.look(|run| Ok(run.reached().as_nanos()))
    }

    /// The metrics so far, as JSON: those of a run that ends now, without those that are known only at the end.
    fn summary_json(&self) -> PyResult<String> {
        self.look(|run| serde_json::to_string(&run.summary_so_far()).map_err(bad))
    }

    /// The names of the tables there are.
    fn table_names(&self) -> PyResult<Vec<&'static str>> {
        self.look(|run| Ok(run.recording().table_names()))
    }

    /// One table, as it is so far.
    fn table(&self, name: &str) -> PyResult<Table> {
        let table = self.look(|run| Ok(run.recording().table(name)))?;
        Table::new(table.ok_or_else(|| bad(format!("the recording has no table {name:?} at this level")))?)
    }

    /// Ends the run after `at_ns`, or at its end if that is earlier.
    #[pyo3(signature = (at_ns=None))]
    fn finish(&self, py: Python<'_>, at_ns: Option<i64>) -> PyResult<Recording> {
        let at = at_ns.unwrap_or(self.duration);
        self.act(at, |_, _| Ok(()))?;
        let started = Instant::now();
        let State::Running(run) = std::mem::replace(&mut *self.lock()?, State::Over("has finished")) else {
            return Err(bad("this world has finished"));
        };
        let outcome = py.detach(|| run.finish_at(Time::from_nanos(at)));
        let run_seconds = self.spent.lock().map_err(bad)?.1 + started.elapsed().as_secs_f64();
        let done = outcome.map(|outcome| Recording::new(outcome, self.tapes.clone(), run_seconds));
        outcome_of(py, done.map_err(Into::into), &self.raised)
    }
}
