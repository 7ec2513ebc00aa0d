//! The controller contract in Python: its values here, Python classes in the engine's seat in
//! [`half`], the engine's controllers in a Python loop in [`seat`].

pub(crate) mod half;
pub(crate) mod seat;

use crate::errors::bad;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tidegate_core::control::{Decision, Limits, LossReport, PacketResult, Probe, Probes, Report};
use tidegate_core::datagram::Ecn;
use tidegate_core::wire::rtcp;
use tidegate_core::{Rate, RemoteTime, Size, Span, Time};

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
    #[pyo3(signature = (packets=Vec::new(), *, in_flight=0, backlog=0, pacer_delay_ns=0, report_rtt_ns=None, packet_rtt_ns=None, loss=None, remb_bps=None, messages=Vec::new(), reporter=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        packets: Vec<PyRef<'_, PyPacketResult>>,
        in_flight: u64,
        backlog: u64,
        pacer_delay_ns: i64,
        report_rtt_ns: Option<i64>,
        packet_rtt_ns: Option<i64>,
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
                backlog: Size::from_bytes(backlog),
                pacer_delay: Span::from_nanos(pacer_delay_ns),
                report_rtt: report_rtt_ns.map(Span::from_nanos),
                packet_rtt: packet_rtt_ns.map(Span::from_nanos),
                ecn: None,
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
    /// Bytes that wait in the pacer, as rates count them.
    #[getter]
    fn backlog(&self) -> u64 {
        self.inner.backlog.as_bytes()
    }
    /// How long the packet of media that has waited longest in the pacer has waited, in nanoseconds.
    #[getter]
    fn pacer_delay_ns(&self) -> i64 {
        self.inner.pacer_delay.as_nanos()
    }
    /// The round trip by a receiver report's LSR and DLSR, in nanoseconds.
    #[getter]
    fn report_rtt_ns(&self) -> Option<i64> {
        self.inner.report_rtt.map(Span::as_nanos)
    }
    /// The round trip of the newest packet reported as received, in nanoseconds.
    #[getter]
    fn packet_rtt_ns(&self) -> Option<i64> {
        self.inner.packet_rtt.map(Span::as_nanos)
    }
    /// A fresh round-trip sample in nanoseconds: that of a receiver report, or else that of the newest packet.
    #[getter]
    fn rtt_ns(&self) -> Option<i64> {
        self.inner.rtt().map(Span::as_nanos)
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
    /// When to be called next, in nanoseconds; not in the past, and once at each instant the present one.
    alarm_ns: Option<i64>,
    /// A burst of probe packets: (id, rate in bit/s, length in ns, least packets).
    probe: Option<(u32, u64, i64, u32)>,
    /// Whether audio, too, waits for the pacing rate; otherwise it goes at once.
    pace_audio: bool,
    /// The longest silence, in nanoseconds: then a small packet of padding goes, window or not.
    heartbeat_ns: Option<i64>,
}

#[pymethods]
impl PyDecision {
    #[new]
    #[pyo3(signature = (target_bps, pacing_bps=None, padding_bps=None, min_gap_ns=None, window=None, alarm_ns=None, probe=None, pace_audio=false, heartbeat_ns=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        target_bps: &Bound<'_, PyAny>,
        pacing_bps: Option<&Bound<'_, PyAny>>,
        padding_bps: Option<&Bound<'_, PyAny>>,
        min_gap_ns: Option<i64>,
        window: Option<u64>,
        alarm_ns: Option<i64>,
        probe: Option<(u32, u64, i64, u32)>,
        pace_audio: bool,
        heartbeat_ns: Option<i64>,
    ) -> PyResult<Self> {
        let target_bps = rate_of(target_bps, "target_bps")?;
        let pacing_bps = pacing_bps.map_or(Ok(target_bps), |rate| rate_of(rate, "pacing_bps"))?;
        let padding_bps = padding_bps.map_or(Ok(0), |rate| rate_of(rate, "padding_bps"))?;
        Ok(Self {
            target_bps,
            pacing_bps,
            padding_bps,
            min_gap_ns,
            window,
            alarm_ns,
            probe,
            pace_audio,
            heartbeat_ns,
        })
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
            probe: decision
                .probes
                .first()
                .map(|p| (p.id, p.rate.as_bps(), p.length.as_nanos(), p.min_packets)),
            pace_audio: decision.pace_audio,
            heartbeat_ns: decision.heartbeat.map(Span::as_nanos),
        }
    }

    fn to_core(&self) -> Decision {
        Decision {
            target: Rate::from_bps(self.target_bps),
            pacing: Rate::from_bps(self.pacing_bps),
            padding: Rate::from_bps(self.padding_bps),
            pace_audio: self.pace_audio,
            min_gap: self.min_gap_ns.map(Span::from_nanos),
            window: self.window.map(Size::from_bytes),
            heartbeat: self.heartbeat_ns.map(Span::from_nanos),
            alarm: self.alarm_ns.map(Time::from_nanos),
            probes: self.probe.map_or(Probes::NONE, |(id, rate, length, min_packets)| {
                Probes::from(Probe {
                    id,
                    rate: Rate::from_bps(rate),
                    length: Span::from_nanos(length),
                    min_packets,
                    spacing: Span::ZERO,
                })
            }),
        }
    }
}

/// A data packet that has arrived at the receiver.
#[pyclass(frozen, get_all, module = "tidegate", name = "Arrived")]
pub(crate) struct PyArrived {
    /// Transport-wide sequence number, unwrapped; None where no header extension carries it.
    sequence: Option<u64>,
    /// Bytes: payload and RTP header with extensions, without IP and UDP.
    size: u64,
    /// Abs-send-time in 2^-18 s, 24 bits (wraps every 64 s); None where no header extension carries it.
    abs_send_time: Option<u32>,
    /// SSRC of its stream.
    ssrc: u32,
    /// RTP sequence number, unwrapped.
    rtp_sequence: u64,
    /// RTP timestamp.
    timestamp: u32,
    /// The marker bit: of video, the last packet of its frame.
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
        sequence: Option<u64>,
        size: u64,
        abs_send_time: Option<u32>,
        ssrc: u32,
        rtp_sequence: Option<u64>,
        timestamp: u32,
        marker: bool,
        ecn: u8,
        extension: Option<(u8, Vec<u8>)>,
    ) -> PyResult<Self> {
        if let Some(abs_send_time) = abs_send_time.filter(|time| *time >= 1 << 24) {
            return Err(bad(format!("an abs_send_time of {abs_send_time}; it has 24 bits")));
        }
        let rtp_sequence = rtp_sequence
            .or(sequence)
            .ok_or_else(|| bad("no sequence and no rtp_sequence; a packet has at least one"))?;
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
