//! Limits, needs and decisions of controllers in Python.

use super::pacing::DefaultPacing;
use super::{bytes_of, describe, maybe, or_none, rate_of, span_of};
use crate::errors::bad;
use pyo3::prelude::*;
use tidegate_core::control::{
    Counts, Decision, EcnUse, FeedbackKind, Limits, Needs, Probe, Probes, ReportRule,
};
use tidegate_core::{Rate, Size, Span, Time};

/// Limits and wishes of the session.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Limits")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyLimits {
    /// Never less than this, in bit/s.
    min_bps: u64,
    /// Never more than this, in bit/s.
    max_bps: u64,
    /// Begin with this, in bit/s.
    start_bps: u64,
    /// Rate that the sources would use if they could, in bit/s; None: as much as there is.
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
    pub(super) fn from_core(limits: &Limits) -> Self {
        Self {
            min_bps: limits.min.as_bps(),
            max_bps: limits.max.as_bps(),
            start_bps: limits.start.as_bps(),
            wanted_bps: limits.wanted.map(Rate::as_bps),
            app_limited: limits.app_limited,
            route_changed: limits.route_changed,
        }
    }

    pub(super) fn to_core(&self) -> Limits {
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

/// Needs of a controller: its kind of feedback, and how its packets are sent.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Needs")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyNeeds {
    /// One of "per-packet", "receiver-reports", "own" (messages of its receiver half) and "none".
    feedback: &'static str,
    /// The ECN codepoint of its packets: "off", "ect0" or "ect1".
    ecn: &'static str,
    /// Bytes that its rates and sizes count: "rtp" (RTP packets) or "ip" (with IP and UDP).
    counts: &'static str,
    /// Interval of reports: "usual" (libwebrtc's intervals) or "frame" (with frames, after 16 packets, 40 ms apart at
    /// most).
    interval: &'static str,
}

#[pymethods]
impl PyNeeds {
    #[new]
    #[pyo3(signature = (feedback: "_Feedback" = "per-packet", ecn: "_Ecn" = "off", counts: "_Counts" = "rtp", interval: "_Interval" = "usual"))]
    fn new(feedback: &str, ecn: &str, counts: &str, interval: &str) -> PyResult<Self> {
        let kinds = FeedbackKind::ALL.map(FeedbackKind::name);
        let uses = EcnUse::ALL.map(EcnUse::name);
        Ok(Self {
            feedback: one_of("feedback", feedback, &kinds)?,
            ecn: one_of("ecn", ecn, &uses)?,
            counts: one_of("counts", counts, &Counts::ALL.map(Counts::name))?,
            interval: one_of("interval", interval, &ReportRule::ALL.map(ReportRule::name))?,
        })
    }

    fn __repr__(&self) -> String {
        let Self { feedback, ecn, counts, interval } = self;
        format!("Needs(feedback={feedback:?}, ecn={ecn:?}, counts={counts:?}, interval={interval:?})")
    }
}

fn one_of(argument: &str, value: &str, choices: &[&'static str]) -> PyResult<&'static str> {
    let choice = choices.iter().find(|choice| **choice == value).copied();
    choice.ok_or_else(|| bad(format!("{argument}: found {value:?}; expected one of {}", choices.join(", "))))
}

impl PyNeeds {
    pub(super) fn from_core(needs: Needs) -> Self {
        Self {
            feedback: needs.feedback.name(),
            ecn: needs.ecn.name(),
            counts: needs.counts.name(),
            interval: needs.interval.name(),
        }
    }

    pub(super) fn to_core(&self) -> Needs {
        let feedback = FeedbackKind::ALL.into_iter().find(|kind| kind.name() == self.feedback);
        let ecn = EcnUse::ALL.into_iter().find(|ecn| ecn.name() == self.ecn);
        let counts = Counts::ALL.into_iter().find(|counts| counts.name() == self.counts);
        let interval = ReportRule::ALL.into_iter().find(|rule| rule.name() == self.interval);
        Needs {
            feedback: feedback.unwrap_or_default(),
            ecn: ecn.unwrap_or_default(),
            counts: counts.unwrap_or_default(),
            interval: interval.unwrap_or_default(),
        }
    }
}

/// A burst of packets sent faster than the media, to learn the capacity.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Probe")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyProbe {
    /// Comes back in the results of its packets.
    id: u32,
    /// At which rate, in bit/s; more than zero.
    rate_bps: u64,
    /// At least as many bytes as the rate carries in this time, in nanoseconds.
    length_ns: i64,
    /// At least this many packets.
    min_packets: u32,
    /// At least this much time between one departure and the next, in nanoseconds: what the rate carries in it leaves
    /// at once.
    spacing_ns: i64,
}

#[pymethods]
impl PyProbe {
    #[new]
    #[pyo3(signature = (id, rate_bps: "float", length_ns: "int", min_packets=1, spacing_ns: "int | None" = None))]
    fn new(
        id: u32,
        rate_bps: &Bound<'_, PyAny>,
        length_ns: &Bound<'_, PyAny>,
        min_packets: u32,
        spacing_ns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rate_bps = rate_of(rate_bps, "rate_bps")?;
        if rate_bps == 0 {
            return Err(bad("rate_bps: found 0; the rate of a probe must be more than 0"));
        }
        Ok(Self {
            id,
            rate_bps,
            length_ns: span_of(length_ns, "length_ns")?,
            min_packets,
            spacing_ns: maybe(spacing_ns, |span| span_of(span, "spacing_ns"))?.unwrap_or(0),
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "Probe(id={}, rate_bps={}, length_ns={}, min_packets={}, spacing_ns={})",
            self.id, self.rate_bps, self.length_ns, self.min_packets, self.spacing_ns
        )
    }
}

impl PyProbe {
    fn from_core(probe: &Probe) -> Self {
        Self {
            id: probe.id,
            rate_bps: probe.rate.as_bps(),
            length_ns: probe.length.as_nanos(),
            min_packets: probe.min_packets,
            spacing_ns: probe.spacing.as_nanos(),
        }
    }

    fn to_core(&self) -> Probe {
        Probe {
            id: self.id,
            rate: Rate::from_bps(self.rate_bps),
            length: Span::from_nanos(self.length_ns),
            min_packets: self.min_packets,
            spacing: Span::from_nanos(self.spacing_ns),
        }
    }
}

fn probes_of(list: &Bound<'_, PyAny>) -> PyResult<Vec<PyProbe>> {
    let wrong = |value: &Bound<'_, PyAny>, rule| bad(format!("probes: found {}; {rule}", describe(value)));
    let mut probes = Vec::new();
    for probe in list.try_iter().map_err(|_| wrong(list, "it must be a list of Probe"))? {
        let probe = probe?;
        probes.push(
            probe.cast::<PyProbe>().map_err(|_| wrong(&probe, "each item must be a Probe"))?.get().clone(),
        );
        if probes.len() > Probes::MAX {
            let max = Probes::MAX;
            return Err(bad(format!("probes: found more than {max}; a decision has at most {max}")));
        }
    }
    Ok(probes)
}

/// The complete present policy of a controller.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Decision")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyDecision {
    /// Rate that the encoder may use, in bit/s.
    target_bps: u64,
    /// Rate that the pacer may send, in bit/s. If it is left out, the target where the decision has a window, a gap or a
    /// burst; else None: the call paces as that of gcc, with bursts of 40 ms at 1.1 times the target (a screen: 1.0;
    /// before the first feedback on packets: 2.5), and faster where what waits would not leave within the queue limit.
    pacing_bps: Option<u64>,
    /// Keep at least this much on the wire, in bit/s.
    padding_bps: u64,
    /// At least this much time between two packets, in nanoseconds.
    min_gap_ns: Option<i64>,
    /// Largest number of bytes in flight.
    window: Option<u64>,
    /// When to be called next, in nanoseconds; not in the past, and once at each instant the present one.
    alarm_ns: Option<i64>,
    /// Bursts to be sent after those requested before.
    probes: Vec<PyProbe>,
    /// Whether audio, too, waits for the pacing rate; otherwise it goes at once.
    pace_audio: bool,
    /// The longest silence, in nanoseconds: then a small packet of padding goes, window or not.
    heartbeat_ns: Option<i64>,
    /// Whether the pacer sends faster than `pacing_bps` to have what waits out within the session's queue limit;
    /// otherwise frames are left out while more waits.
    drain_queue: bool,
    /// The target after congestion-window pushback, in bit/s: video comes down to it by leaving frames out.
    pushback_bps: Option<u64>,
    /// Burst that the pacer may send at once whenever media comes to an empty queue, in nanoseconds; None: groups of 5
    /// ms.
    burst_ns: Option<i64>,
}

#[pymethods]
impl PyDecision {
    #[new]
    #[pyo3(signature = (target_bps: "float", pacing_bps: "float | None" = None, padding_bps: "float | None" = None, min_gap_ns: "int | None" = None, window: "int | None" = None, alarm_ns: "int | None" = None, probes: "Sequence[Probe] | None" = None, pace_audio=false, heartbeat_ns: "int | None" = None, drain_queue=false, pushback_bps: "float | None" = None, burst_ns: "int | None" = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        target_bps: &Bound<'_, PyAny>,
        pacing_bps: Option<&Bound<'_, PyAny>>,
        padding_bps: Option<&Bound<'_, PyAny>>,
        min_gap_ns: Option<&Bound<'_, PyAny>>,
        window: Option<&Bound<'_, PyAny>>,
        alarm_ns: Option<&Bound<'_, PyAny>>,
        probes: Option<&Bound<'_, PyAny>>,
        pace_audio: bool,
        heartbeat_ns: Option<&Bound<'_, PyAny>>,
        drain_queue: bool,
        pushback_bps: Option<&Bound<'_, PyAny>>,
        burst_ns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let target_bps = rate_of(target_bps, "target_bps")?;
        let time = |value: &Bound<'_, PyAny>| {
            let wrong = |_| {
                bad(format!("alarm_ns: found {}; it must be a whole number of nanoseconds", describe(value)))
            };
            value.extract::<i64>().map_err(wrong)
        };
        let pacing_bps = maybe(pacing_bps, |rate| rate_of(rate, "pacing_bps"))?;
        let min_gap_ns = maybe(min_gap_ns, |span| span_of(span, "min_gap_ns"))?;
        let window = maybe(window, |bytes| bytes_of(bytes, "window"))?;
        let burst_ns = maybe(burst_ns, |span| span_of(span, "burst_ns"))?;
        let paces_itself = min_gap_ns.is_some() || window.is_some() || burst_ns.is_some();
        Ok(Self {
            target_bps,
            pacing_bps: pacing_bps.or(paces_itself.then_some(target_bps)),
            padding_bps: maybe(padding_bps, |rate| rate_of(rate, "padding_bps"))?.unwrap_or(0),
            min_gap_ns,
            window,
            alarm_ns: maybe(alarm_ns, time)?,
            probes: maybe(probes, probes_of)?.unwrap_or_default(),
            pace_audio,
            heartbeat_ns: maybe(heartbeat_ns, |span| span_of(span, "heartbeat_ns"))?,
            drain_queue,
            pushback_bps: maybe(pushback_bps, |rate| rate_of(rate, "pushback_bps"))?,
            burst_ns,
        })
    }

    fn __repr__(&self) -> String {
        let flag = |value| if value { "True" } else { "False" };
        let probes: Vec<String> = self.probes.iter().map(PyProbe::__repr__).collect();
        format!(
            "Decision(target_bps={}, pacing_bps={}, padding_bps={}, min_gap_ns={}, window={}, alarm_ns={}, probes=[{}], \
             pace_audio={}, heartbeat_ns={}, drain_queue={}, pushback_bps={}, burst_ns={})",
            self.target_bps,
            or_none(self.pacing_bps),
            self.padding_bps,
            or_none(self.min_gap_ns),
            or_none(self.window),
            or_none(self.alarm_ns),
            probes.join(", "),
            flag(self.pace_audio),
            or_none(self.heartbeat_ns),
            flag(self.drain_queue),
            or_none(self.pushback_bps),
            or_none(self.burst_ns),
        )
    }
}

impl PyDecision {
    pub(super) fn from_core(decision: &Decision) -> Self {
        Self {
            target_bps: decision.target.as_bps(),
            pacing_bps: Some(decision.pacing.as_bps()),
            padding_bps: decision.padding.as_bps(),
            min_gap_ns: decision.min_gap.map(Span::as_nanos),
            window: decision.window.map(Size::as_bytes),
            alarm_ns: decision.alarm.map(Time::as_nanos),
            probes: decision.probes.iter().map(PyProbe::from_core).collect(),
            pace_audio: decision.pace_audio,
            heartbeat_ns: decision.heartbeat.map(Span::as_nanos),
            drain_queue: decision.drain_queue,
            pushback_bps: decision.pushback.map(Rate::as_bps),
            burst_ns: decision.burst.map(Span::as_nanos),
        }
    }

    /// The decision, whose pacing is its own or that of the call.
    pub(super) fn to_core(&self, pacing: &DefaultPacing) -> Decision {
        let probes: Vec<Probe> = self.probes.iter().map(PyProbe::to_core).collect();
        let decision = Decision {
            target: Rate::from_bps(self.target_bps),
            pushback: self.pushback_bps.map(Rate::from_bps),
            pacing: Rate::from_bps(self.pacing_bps.unwrap_or(self.target_bps)),
            padding: Rate::from_bps(self.padding_bps),
            pace_audio: self.pace_audio,
            drain_queue: self.drain_queue,
            burst: self.burst_ns.map(Span::from_nanos),
            min_gap: self.min_gap_ns.map(Span::from_nanos),
            window: self.window.map(Size::from_bytes),
            heartbeat: self.heartbeat_ns.map(Span::from_nanos),
            alarm: self.alarm_ns.map(Time::from_nanos),
            // the list was checked when it was made
            probes: Probes::try_from(&probes[..]).unwrap_or_default(),
        };
        if self.pacing_bps.is_some() { pacing.own(decision) } else { pacing.paced(decision) }
    }
}
