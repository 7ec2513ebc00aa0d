//! The controller contract in Python: its values, Python classes in the engine's seat, and the
//! engine's controllers in a Python loop.

use crate::errors::{RunError, bad};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_core::control::{
    self, Arrived, Ask, Context, Controller, Decision, Feedback, Limits, LossReport, Outgoing, PacketResult,
    Probe, ReceiverHalf, ReceiverSeat, Report, Seat, Sent, Urgency,
};
use tidegate_core::packet::{Ecn, Extension};
use tidegate_core::wire::rtcp;
use tidegate_core::{Rate, RemoteTime, Size, Span, Stream, Time};

/// What feedback says of one packet, joined with what was sent.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "PacketResult")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyPacketResult {
    /// Transport-wide sequence number, unwrapped.
    sequence: u64,
    /// Bytes: payload and RTP header with extensions, without IP and UDP.
    size: u64,
    /// When it was sent, by our clock, in nanoseconds.
    sent_ns: i64,
    /// When it arrived, by the far clock, in nanoseconds; None: reported as not received.
    arrival_ns: Option<i64>,
    /// The ECN field as it arrived: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    ecn: u8,
    /// The probe it was part of.
    probe: Option<u32>,
}

#[pymethods]
impl PyPacketResult {
    #[new]
    #[pyo3(signature = (sequence, size, sent_ns, arrival_ns=None, ecn=0, probe=None))]
    fn new(
        sequence: u64,
        size: u64,
        sent_ns: i64,
        arrival_ns: Option<i64>,
        ecn: u8,
        probe: Option<u32>,
    ) -> Self {
        Self { sequence, size, sent_ns, arrival_ns, ecn, probe }
    }

    fn __repr__(&self) -> String {
        let arrival = self.arrival_ns.map_or("None".to_owned(), |at| at.to_string());
        format!(
            "PacketResult(sequence={}, size={}, sent_ns={}, arrival_ns={arrival}, ecn={})",
            self.sequence, self.size, self.sent_ns, self.ecn
        )
    }
}

impl PyPacketResult {
    fn from_core(result: &PacketResult) -> Self {
        Self {
            sequence: result.sequence,
            size: result.size.as_bytes(),
            sent_ns: result.sent.as_nanos(),
            arrival_ns: result.arrival.map(RemoteTime::as_nanos),
            ecn: result.ecn as u8,
            probe: result.probe,
        }
    }

    fn to_core(&self) -> PacketResult {
        PacketResult {
            sequence: self.sequence,
            size: Size::from_bytes(self.size),
            sent: Time::from_nanos(self.sent_ns),
            arrival: self.arrival_ns.map(RemoteTime::from_nanos),
            ecn: Ecn::from_bits(self.ecn),
            probe: self.probe,
        }
    }
}

/// What a receiver report says (RFC 3550 section 6.4.1).
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "LossReport")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyLossReport {
    /// Fraction lost since the last report, in 1/256.
    fraction_lost: u8,
    /// Packets lost since the session began.
    cumulative_lost: i32,
    /// Extended highest sequence number received.
    highest_sequence: u32,
    /// Interarrival jitter in nanoseconds.
    jitter_ns: i64,
    /// Packets expected since the last report.
    expected: u32,
}

#[pymethods]
impl PyLossReport {
    #[new]
    #[pyo3(signature = (fraction_lost, cumulative_lost=0, highest_sequence=0, jitter_ns=0, expected=0))]
    fn new(
        fraction_lost: u8,
        cumulative_lost: i32,
        highest_sequence: u32,
        jitter_ns: i64,
        expected: u32,
    ) -> Self {
        Self { fraction_lost, cumulative_lost, highest_sequence, jitter_ns, expected }
    }

    fn __repr__(&self) -> String {
        format!(
            "LossReport(fraction_lost={}, cumulative_lost={}, highest_sequence={}, jitter_ns={}, expected={})",
            self.fraction_lost, self.cumulative_lost, self.highest_sequence, self.jitter_ns, self.expected
        )
    }
}

/// One feedback report, joined with what was sent.
#[pyclass(frozen, module = "tidegate", name = "Report")]
pub(crate) struct PyReport {
    inner: Report,
}

#[pymethods]
impl PyReport {
    #[new]
    #[pyo3(signature = (packets=Vec::new(), *, in_flight=0, rtt_ns=None, loss=None, remb_bps=None, messages=Vec::new(), reporter=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        packets: Vec<PyRef<'_, PyPacketResult>>,
        in_flight: u64,
        rtt_ns: Option<i64>,
        loss: Option<PyRef<'_, PyLossReport>>,
        remb_bps: Option<u64>,
        messages: Vec<(String, Vec<u8>)>,
        reporter: u32,
    ) -> PyResult<Self> {
        let messages = messages
            .into_iter()
            .map(|(name, data)| {
                let name = <[u8; 4]>::try_from(name.as_bytes())
                    .map_err(|_| bad(format!("a message named {name:?}; a name is four ASCII characters")))?;
                Ok(rtcp::App { subtype: 0, ssrc: reporter, name, data })
            })
            .collect::<PyResult<_>>()?;
        Ok(Self {
            inner: Report {
                reporter,
                packets: packets.iter().map(|packet| packet.to_core()).collect(),
                in_flight: Size::from_bytes(in_flight),
                rtt: rtt_ns.map(Span::from_nanos),
                loss: loss.map(|loss| LossReport {
                    fraction_lost: loss.fraction_lost,
                    cumulative_lost: loss.cumulative_lost,
                    highest_sequence: loss.highest_sequence,
                    jitter: Span::from_nanos(loss.jitter_ns),
                    expected: loss.expected,
                }),
                remb: remb_bps.map(Rate::from_bps),
                messages,
            },
        })
    }

    /// SSRC of the reporter.
    #[getter]
    fn reporter(&self) -> u32 {
        self.inner.reporter
    }
    /// Per-packet results in order of sequence.
    #[getter]
    fn packets(&self) -> Vec<PyPacketResult> {
        self.inner.packets.iter().map(PyPacketResult::from_core).collect()
    }
    /// Their sequence numbers as an array.
    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.inner.packets.iter().map(|p| p.sequence))
    }
    /// Their sizes in bytes as an array.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.inner.packets.iter().map(|p| p.size.as_bytes()))
    }
    /// Their sending times in nanoseconds as an array.
    #[getter]
    fn sent_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.packets.iter().map(|p| p.sent.as_nanos()))
    }
    /// Their arrival times in nanoseconds of the far clock as floats; NaN: not received.
    #[getter]
    fn arrival_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let arrival = |p: &PacketResult| p.arrival.map_or(f64::NAN, |at| at.as_nanos() as f64);
        PyArray1::from_iter(py, self.inner.packets.iter().map(arrival))
    }
    /// Bytes sent and not yet reported on.
    #[getter]
    fn in_flight(&self) -> u64 {
        self.inner.in_flight.as_bytes()
    }
    /// A fresh round-trip sample in nanoseconds.
    #[getter]
    fn rtt_ns(&self) -> Option<i64> {
        self.inner.rtt.map(Span::as_nanos)
    }
    /// Receiver-report statistics.
    #[getter]
    fn loss(&self) -> Option<PyLossReport> {
        self.inner.loss.map(|loss| PyLossReport {
            fraction_lost: loss.fraction_lost,
            cumulative_lost: loss.cumulative_lost,
            highest_sequence: loss.highest_sequence,
            jitter_ns: loss.jitter.as_nanos(),
            expected: loss.expected,
        })
    }
    /// A REMB rate in bit/s.
    #[getter]
    fn remb_bps(&self) -> Option<u64> {
        self.inner.remb.map(Rate::as_bps)
    }
    /// The scheme's own messages as (name, bytes).
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let name = |app: &rtcp::App| String::from_utf8_lossy(&app.name).into_owned();
        self.inner.messages.iter().map(|app| (name(app), PyBytes::new(py, &app.data))).collect()
    }
    fn __repr__(&self) -> String {
        format!(
            "<Report on {} packets, {} bytes in flight>",
            self.inner.packets.len(),
            self.inner.in_flight.as_bytes()
        )
    }
}

/// What the session allows and wants.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Limits")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyLimits {
    /// Never less than this, in bit/s.
    min_bps: u64,
    /// Never more than this, in bit/s.
    max_bps: u64,
    /// Begin with this, in bit/s.
    start_bps: u64,
    /// What the sources would use if they could, in bit/s; None: as much as there is.
    wanted_bps: Option<u64>,
    /// Whether the sources use less than the target lately.
    app_limited: bool,
    /// The network route changed.
    route_changed: bool,
}

#[pymethods]
impl PyLimits {
    #[new]
    #[pyo3(signature = (min_bps=30_000, max_bps=10_000_000, start_bps=300_000, wanted_bps=None, app_limited=false, route_changed=false))]
    fn new(
        min_bps: u64,
        max_bps: u64,
        start_bps: u64,
        wanted_bps: Option<u64>,
        app_limited: bool,
        route_changed: bool,
    ) -> Self {
        Self { min_bps, max_bps, start_bps, wanted_bps, app_limited, route_changed }
    }

    fn __repr__(&self) -> String {
        format!("Limits(min_bps={}, max_bps={}, start_bps={})", self.min_bps, self.max_bps, self.start_bps)
    }
}

impl PyLimits {
    fn from_core(limits: &Limits) -> Self {
        Self {
            min_bps: limits.min.as_bps(),
            max_bps: limits.max.as_bps(),
            start_bps: limits.start.as_bps(),
            wanted_bps: limits.wanted.map(Rate::as_bps),
            app_limited: limits.app_limited,
            route_changed: limits.route_changed,
        }
    }

    fn to_core(&self) -> Limits {
        Limits {
            min: Rate::from_bps(self.min_bps),
            max: Rate::from_bps(self.max_bps),
            start: Rate::from_bps(self.start_bps),
            wanted: self.wanted_bps.map(Rate::from_bps),
            app_limited: self.app_limited,
            route_changed: self.route_changed,
        }
    }
}

/// The complete present policy of a controller.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Decision")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyDecision {
    /// What the encoder may use, in bit/s.
    target_bps: u64,
    /// What the pacer may send, in bit/s.
    pacing_bps: u64,
    /// Keep at least this much on the wire, in bit/s.
    padding_bps: u64,
    /// At least this much time between two packets, in nanoseconds.
    min_gap_ns: Option<i64>,
    /// At most so many bytes in flight.
    window: Option<u64>,
    /// When to be called next, in nanoseconds; later than now.
    alarm_ns: Option<i64>,
    /// A burst of probe packets: (id, rate in bit/s, length in ns, least packets).
    probe: Option<(u32, u64, i64, u32)>,
}

#[pymethods]
impl PyDecision {
    #[new]
    #[pyo3(signature = (target_bps, pacing_bps=None, padding_bps=None, min_gap_ns=None, window=None, alarm_ns=None, probe=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        target_bps: &Bound<'_, PyAny>,
        pacing_bps: Option<&Bound<'_, PyAny>>,
        padding_bps: Option<&Bound<'_, PyAny>>,
        min_gap_ns: Option<i64>,
        window: Option<u64>,
        alarm_ns: Option<i64>,
        probe: Option<(u32, u64, i64, u32)>,
    ) -> PyResult<Self> {
        let target_bps = rate_of(target_bps, "target_bps")?;
        let pacing_bps = pacing_bps.map_or(Ok(target_bps), |rate| rate_of(rate, "pacing_bps"))?;
        let padding_bps = padding_bps.map_or(Ok(0), |rate| rate_of(rate, "padding_bps"))?;
        Ok(Self { target_bps, pacing_bps, padding_bps, min_gap_ns, window, alarm_ns, probe })
    }

    fn __repr__(&self) -> String {
        let option = |value: Option<i64>| value.map_or("None".to_owned(), |v| v.to_string());
        format!(
            "Decision(target_bps={}, pacing_bps={}, padding_bps={}, window={}, alarm_ns={})",
            self.target_bps,
            self.pacing_bps,
            self.padding_bps,
            option(self.window.map(|w| w as i64)),
            option(self.alarm_ns)
        )
    }
}

impl PyDecision {
    fn from_core(decision: &Decision) -> Self {
        Self {
            target_bps: decision.target.as_bps(),
            pacing_bps: decision.pacing.as_bps(),
            padding_bps: decision.padding.as_bps(),
            min_gap_ns: decision.min_gap.map(Span::as_nanos),
            window: decision.window.map(Size::as_bytes),
            alarm_ns: decision.alarm.map(Time::as_nanos),
            probe: decision.probe.map(|p| (p.id, p.rate.as_bps(), p.length.as_nanos(), p.min_packets)),
        }
    }

    fn to_core(&self) -> Decision {
        Decision {
            target: Rate::from_bps(self.target_bps),
            pacing: Rate::from_bps(self.pacing_bps),
            padding: Rate::from_bps(self.padding_bps),
            min_gap: self.min_gap_ns.map(Span::from_nanos),
            window: self.window.map(Size::from_bytes),
            alarm: self.alarm_ns.map(Time::from_nanos),
            probe: self.probe.map(|(id, rate, length, min_packets)| Probe {
                id,
                rate: Rate::from_bps(rate),
                length: Span::from_nanos(length),
                min_packets,
            }),
        }
    }
}

/// A data packet that has arrived at the receiver.
#[pyclass(frozen, get_all, module = "tidegate", name = "Arrived")]
pub(crate) struct PyArrived {
    /// Transport-wide sequence number, unwrapped.
    sequence: u64,
    /// Bytes: payload and RTP header with extensions, without IP and UDP.
    size: u64,
    /// Abs-send-time in 2^-18 s, 24 bits (wraps every 64 s).
    abs_send_time: u32,
    /// SSRC of its stream.
    ssrc: u32,
    /// RTP sequence number, unwrapped.
    rtp_sequence: u64,
    /// RTP timestamp.
    timestamp: u32,
    /// Whether it is the last of its frame.
    marker: bool,
    /// The ECN field as it arrived.
    ecn: u8,
    /// What the sending half stamped on it: (id, bytes).
    extension: Option<(u8, Vec<u8>)>,
}

#[pymethods]
impl PyArrived {
    #[new]
    #[pyo3(signature = (sequence, size, abs_send_time, *, ssrc=0, rtp_sequence=None, timestamp=0, marker=false, ecn=0, extension=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        sequence: u64,
        size: u64,
        abs_send_time: u32,
        ssrc: u32,
        rtp_sequence: Option<u64>,
        timestamp: u32,
        marker: bool,
        ecn: u8,
        extension: Option<(u8, Vec<u8>)>,
    ) -> PyResult<Self> {
        if abs_send_time >= 1 << 24 {
            return Err(bad(format!("an abs_send_time of {abs_send_time}; it has 24 bits")));
        }
        let rtp_sequence = rtp_sequence.unwrap_or(sequence);
        Ok(Self { sequence, size, abs_send_time, ssrc, rtp_sequence, timestamp, marker, ecn, extension })
    }
}

/// A rate from Python: a non-negative finite number of bit/s.
fn rate_of(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    let number: f64 =
        value.extract().map_err(|_| bad(format!("{what}: {} is not a number of bit/s", describe(value))))?;
    if !number.is_finite() || number < 0.0 {
        return Err(bad(format!("{what}: {number} is not a rate; it must be finite and not negative")));
    }
    Ok(Rate::from_bps_f64(number).as_bps())
}

fn describe(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    match value.repr() {
        Ok(repr) => format!("{} of type {kind}", repr.to_string_lossy()),
        Err(_) => format!("an object of type {kind}"),
    }
}

/// Where the exception of a Python controller waits until the run has stopped.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// A Python object in the seat of a controller or a receiver half.
pub(crate) struct PyHalf {
    object: Py<PyAny>,
    raised: Raised,
    on_alarm: bool,
    on_sent: bool,
    stamp: bool,
    /// Why `stamp` failed, until a call that can say so.
    broken: Option<String>,
}

/// An exception in one line.
pub(crate) fn told(py: Python<'_>, method: &str, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map_or_else(|_| "error".to_owned(), |name| name.to_string());
    let text = error.value(py).to_string();
    if text.is_empty() {
        format!("{method} raised {kind}")
    } else {
        format!("{method} raised {kind}: {text}")
    }
}

impl PyHalf {
    /// Takes `object` for a seat.
    ///
    /// # Errors
    /// When it lacks one of the `required` methods.
    pub(crate) fn new(object: &Bound<'_, PyAny>, raised: Raised, required: &[&str]) -> PyResult<Self> {
        for method in required {
            if !object.hasattr(*method)? {
                let what = describe(object);
                return Err(bad(format!("{what} has no method {method}; it needs {}", required.join(", "))));
            }
        }
        // a base class may define a method that does nothing and mark it as such, to spare the calls
        let has = |method: &str| -> PyResult<bool> {
            Ok(object.hasattr(method)? && !object.getattr(method)?.hasattr("_tidegate_default")?)
        };
        Ok(Self {
            on_alarm: has("on_alarm")?,
            on_sent: has("on_sent")?,
            stamp: has("stamp")?,
            object: object.clone().unbind(),
            raised,
            broken: None,
        })
    }

    fn failed(&self, py: Python<'_>, method: &str, error: PyErr, cx: &mut Context<'_>) {
        cx.fail(told(py, method, &error));
        self.keep(error);
    }

    /// Keeps the exception of a failed call for the error of the run.
    fn keep(&self, error: PyErr) {
        if let Ok(mut raised) = self.raised.lock() {
            raised.get_or_insert(error);
        }
    }

    fn decide(
        &self,
        method: &str,
        cx: &mut Context<'_>,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Decision {
        if let Some(reason) = &self.broken {
            cx.fail(reason.clone());
            return cx.unchanged();
        }
        Python::attach(|py| {
            let answer =
                call(self.object.bind(py)).and_then(|answer| decision_of(answer.bind(py), method, cx));
            match answer {
                Ok(decision) => decision,
                Err(error) => {
                    self.failed(py, method, error, cx);
                    cx.unchanged()
                }
            }
        })
    }
}

/// What a Python controller may answer: a `Decision`, a rate, or `None` for no change.
fn decision_of(answer: &Bound<'_, PyAny>, method: &str, cx: &Context<'_>) -> PyResult<Decision> {
    if answer.is_none() {
        return Ok(cx.unchanged());
    }
    if let Ok(decision) = answer.cast::<PyDecision>() {
        return Ok(decision.get().to_core());
    }
    if answer.extract::<f64>().is_err() {
        return Err(bad(format!(
            "{method} returned {}; it must be a Decision, a rate in bit/s, or None for no change",
            describe(answer)
        )));
    }
    rate_of(answer, method).map(|bps| Decision::rate(Rate::from_bps(bps)))
}

impl Controller for PyHalf {
    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let decision = self.decide("on_report", cx, |object| {
            let report = PyReport { inner: report.clone() };
            Ok(object.call_method1("on_report", (now.as_nanos(), report))?.unbind())
        });
        self.note_internals(cx);
        decision
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        if !self.on_alarm {
            return cx.unchanged();
        }
        self.decide("on_alarm", cx, |object| Ok(object.call_method1("on_alarm", (now.as_nanos(),))?.unbind()))
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision {
        self.decide("on_limits", cx, |object| {
            let limits = PyLimits::from_core(limits);
            Ok(object.call_method1("on_limits", (now.as_nanos(), limits))?.unbind())
        })
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        self.decide("on_sent", cx, |object| {
            let args = (
                now.as_nanos(),
                packet.sequence,
                packet.size.as_bytes(),
                packet.in_flight.as_bytes(),
                packet.backlog.as_bytes(),
            );
            Ok(object.call_method1("on_sent", args)?.unbind())
        })
    }

    fn needs_sent(&self) -> bool {
        self.on_sent
    }

    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        if !self.stamp {
            return None;
        }
        Python::attach(|py| {
            let args = (now.as_nanos(), packet.sequence, packet.size.as_bytes());
            let answer = self.object.bind(py).call_method1("stamp", args);
            match answer.and_then(|answer| answer.extract::<Option<(u8, Vec<u8>)>>()) {
                Ok(extension) => extension.map(|(id, data)| Extension { id, data }),
                Err(error) => {
                    // a stamp cannot fail the run itself: the next call does, or else the run's end
                    self.broken.get_or_insert_with(|| told(py, "stamp", &error));
                    self.keep(error);
                    None
                }
            }
        })
    }
}

impl PyHalf {
    /// Records what a call put into the attribute `internals` of the object, a dict of names and numbers,
    /// and empties it, so that the next call is not taken to have said the same again.
    fn note_internals(&self, cx: &mut Context<'_>) {
        if !cx.wants_notes() {
            return;
        }
        Python::attach(|py| {
            let Ok(internals) = self.object.bind(py).getattr("internals") else { return };
            let Ok(internals) = internals.cast_into::<PyDict>() else { return };
            for (name, value) in &internals {
                if let (Ok(name), Ok(value)) = (name.extract::<String>(), value.extract::<f64>()) {
                    cx.note(name, value);
                }
            }
            internals.clear();
        });
    }

    fn ask(
        &self,
        method: &str,
        cx: &mut Context<'_>,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Ask {
        Python::attach(|py| {
            match call(self.object.bind(py)).and_then(|answer| ask_of(answer.bind(py), method)) {
                Ok(ask) => ask,
                Err(error) => {
                    self.failed(py, method, error, cx);
                    Ask::default()
                }
            }
        })
    }
}

/// What a Python receiver half may answer: None, an urgency, or (urgency, alarm in ns). An urgency is
/// "none", "regular", "now", or a number: early, and worthless after so many nanoseconds.
fn ask_of(answer: &Bound<'_, PyAny>, method: &str) -> PyResult<Ask> {
    let (urgency, alarm) = match answer.extract::<(Bound<'_, PyAny>, Option<i64>)>() {
        Ok((urgency, alarm)) => (urgency, alarm.map(Time::from_nanos)),
        Err(_) => (answer.clone(), None),
    };
    let wrong = || {
        bad(format!(
            "{method} returned {}; it must be None, \"none\", \"regular\", \"now\", a number of nanoseconds within \
             which it must be early, or a pair of that and an alarm in nanoseconds",
            describe(answer)
        ))
    };
    let urgency = if urgency.is_none() {
        Urgency::None
    } else if let Ok(within) = urgency.extract::<i64>() {
        Urgency::Early(Span::from_nanos(within))
    } else {
        match urgency.extract::<String>().map_err(|_| wrong())?.as_str() {
            "none" => Urgency::None,
            "regular" => Urgency::Regular,
            "now" => Urgency::Now,
            _ => return Err(wrong()),
        }
    };
    Ok(Ask { urgency, alarm })
}

impl ReceiverHalf for PyHalf {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, cx: &mut Context<'_>) -> Ask {
        self.ask("on_packet", cx, |object| {
            let packet = PyArrived {
                sequence: packet.sequence,
                size: packet.size.as_bytes(),
                abs_send_time: packet.abs_send_time,
                ssrc: packet.ssrc,
                rtp_sequence: packet.rtp_sequence,
                timestamp: packet.timestamp,
                marker: packet.marker,
                ecn: packet.ecn as u8,
                extension: packet.extension.map(|e| (e.id, e.data.clone())),
            };
            Ok(object.call_method1("on_packet", (now.as_nanos(), packet))?.unbind())
        })
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Ask {
        if !self.on_alarm {
            return Ask::default();
        }
        self.ask("on_alarm", cx, |object| Ok(object.call_method1("on_alarm", (now.as_nanos(),))?.unbind()))
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> Feedback {
        let said = Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("message", (now.as_nanos(),));
            match answer.and_then(|answer| crate::wire::packets_from_python(&answer)) {
                Ok(packets) => packets,
                Err(error) => {
                    self.failed(py, "message", error, cx);
                    Feedback::new()
                }
            }
        });
        self.note_internals(cx);
        said
    }
}

/// The values of the last call by name.
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

/// The seat behind a lock: Python may call from any thread.
fn held<T>(seat: &Mutex<T>) -> MutexGuard<'_, T> {
    seat.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of tidegate's controllers, to be driven by hand: in a loop of your own, in a test, on a socket.
///
/// Time is an integer of nanoseconds and may begin anywhere, but never goes back.
#[pyclass(module = "tidegate", name = "ControllerSeat")]
pub(crate) struct PySeat {
    seat: Mutex<Seat>,
}

#[pymethods]
impl PySeat {
    /// A feedback report.
    fn on_report(&self, now_ns: i64, report: &PyReport) -> PyResult<PyDecision> {
        unpack(held(&self.seat).report(Time::from_nanos(now_ns), &report.inner))
            .map(|d| PyDecision::from_core(&d))
    }
    /// The alarm of the last decision.
    fn on_alarm(&self, now_ns: i64) -> PyResult<PyDecision> {
        unpack(held(&self.seat).alarm(Time::from_nanos(now_ns))).map(|d| PyDecision::from_core(&d))
    }
    /// New bounds, a new wanted rate, or a new route.
    fn on_limits(&self, now_ns: i64, limits: &PyLimits) -> PyResult<PyDecision> {
        unpack(held(&self.seat).limits(Time::from_nanos(now_ns), &limits.to_core()))
            .map(|d| PyDecision::from_core(&d))
    }
    /// One packet has left.
    #[pyo3(signature = (now_ns, sequence, size, in_flight=0, backlog=0))]
    fn on_sent(
        &self,
        now_ns: i64,
        sequence: u64,
        size: u64,
        in_flight: u64,
        backlog: u64,
    ) -> PyResult<PyDecision> {
        let sent = Sent {
            sequence,
            size: Size::from_bytes(size),
            in_flight: Size::from_bytes(in_flight),
            backlog: Size::from_bytes(backlog),
        };
        unpack(held(&self.seat).sent(Time::from_nanos(now_ns), &sent)).map(|d| PyDecision::from_core(&d))
    }
    /// What rides on a packet that is about to leave: (id, bytes) or None.
    #[pyo3(signature = (now_ns, sequence, size, backlog=0))]
    fn stamp(&self, now_ns: i64, sequence: u64, size: u64, backlog: u64) -> Option<(u8, Vec<u8>)> {
        let outgoing =
            Outgoing { sequence, size: Size::from_bytes(size), backlog: Size::from_bytes(backlog) };
        held(&self.seat).stamp(Time::from_nanos(now_ns), &outgoing).map(|e| (e.id, e.data))
    }
    /// The last decision.
    #[getter]
    fn decision(&self) -> PyDecision {
        PyDecision::from_core(&held(&self.seat).decision())
    }
    /// Named values of the last call; of a name said several times, the last one.
    #[getter]
    fn internals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        internals(py, &held(&self.seat).notes)
    }
}

/// The receiving half of one of tidegate's controllers, to be driven by hand.
#[pyclass(module = "tidegate", name = "ReceiverSeat")]
pub(crate) struct PyReceiverSeat {
    seat: Mutex<ReceiverSeat>,
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
impl PyReceiverSeat {
    /// A data packet has arrived; answers how soon the half wants to speak: ("none" | "regular" |
    /// "early" | "now", for "early" the nanoseconds within which).
    fn on_packet(&self, now_ns: i64, packet: &PyArrived) -> PyResult<(&'static str, Option<i64>)> {
        let extension = packet.extension.as_ref().map(|(id, data)| Extension { id: *id, data: data.clone() });
        let arrived = Arrived {
            sequence: packet.sequence,
            size: Size::from_bytes(packet.size),
            abs_send_time: packet.abs_send_time,
            ssrc: packet.ssrc,
            rtp_sequence: packet.rtp_sequence,
            timestamp: packet.timestamp,
            marker: packet.marker,
            ecn: Ecn::from_bits(packet.ecn),
            extension: extension.as_ref(),
        };
        unpack(held(&self.seat).packet(Time::from_nanos(now_ns), &arrived)).map(urgency_name)
    }
    /// Its alarm is due.
    fn on_alarm(&self, now_ns: i64) -> PyResult<(&'static str, Option<i64>)> {
        unpack(held(&self.seat).alarm(Time::from_nanos(now_ns))).map(urgency_name)
    }
    /// What it has to say, as RTCP packets (see ``tidegate.wire``).
    fn message<'py>(&self, py: Python<'py>, now_ns: i64) -> PyResult<Bound<'py, PyList>> {
        let said = unpack(held(&self.seat).message(Time::from_nanos(now_ns)))?;
        crate::wire::packets_to_python(py, &said)
    }
    /// When it wants to be called, in nanoseconds.
    #[getter]
    fn alarm_ns(&self) -> Option<i64> {
        held(&self.seat).alarm_at.map(Time::as_nanos)
    }
    /// Named values of the last call.
    #[getter]
    fn internals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        internals(py, &held(&self.seat).notes)
    }
}

fn find(name: &str) -> PyResult<&'static tidegate_controllers::Entry> {
    tidegate_controllers::find(name).ok_or_else(|| {
        let names: Vec<&str> = tidegate_controllers::registry().iter().map(|entry| entry.name).collect();
        bad(format!("{name}: no such controller; there are {}", names.join(", ")))
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
) -> PyResult<PySeat> {
    let entry = find(name)?;
    let built = (entry.build)(preset_or_default(entry, preset), &overrides(settings_json)?).map_err(bad)?;
    let limits = limits.map_or_else(Limits::default, |limits| limits.to_core());
    let rng = Stream::new(seed, name, "controller");
    let mut seat = unpack(Seat::new(name, built, rng, Time::from_nanos(now_ns), &limits))?;
    seat.notes.wanted = true;
    Ok(PySeat { seat: Mutex::new(seat) })
}

/// Makes the receiving half of a controller to be driven by hand.
#[pyfunction]
#[pyo3(signature = (name, preset="", settings_json="{}", seed=0))]
pub(crate) fn receiver(name: &str, preset: &str, settings_json: &str, seed: u64) -> PyResult<PyReceiverSeat> {
    let entry = find(name)?;
    let Some(make) = entry.receiver else {
        let having: Vec<&str> = tidegate_controllers::registry()
            .iter()
            .filter(|entry| entry.receiver.is_some())
            .map(|entry| entry.name)
            .collect();
        let others =
            if having.is_empty() { "no controller has one yet".to_owned() } else { having.join(", ") };
        return Err(bad(format!("{name} has no receiving half ({others})")));
    };
    let half = make(preset_or_default(entry, preset), &overrides(settings_json)?).map_err(bad)?;
    let mut seat = ReceiverSeat::new(name, half, Stream::new(seed, name, "receiver"));
    seat.notes.wanted = true;
    Ok(PyReceiverSeat { seat: Mutex::new(seat) })
}

/// Every controller with its presets and settings, as JSON.
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
            let settings: Vec<serde_json::Value> = entry
                .settings
                .iter()
                .map(
                    |s| serde_json::json!({"name": s.name, "unit": s.unit, "doc": s.doc, "source": s.source}),
                )
                .collect();
            Ok(serde_json::json!({
                "name": entry.name,
                "summary": entry.summary,
                "presets": entry.presets,
                "settings": settings,
                "defaults": defaults,
                "needs": entry.needs.name(),
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

/// Raises ValueError if the settings would not make a controller.
#[pyfunction]
#[pyo3(signature = (name, preset="", settings_json="{}"))]
pub(crate) fn check_controller(name: &str, preset: &str, settings_json: &str) -> PyResult<()> {
    let entry = find(name)?;
    (entry.build)(preset_or_default(entry, preset), &overrides(settings_json)?).map(drop).map_err(bad)
}
