//! Turns a call into a run. The call's events go to the same recorder as those of the engine's runs, so that tables and
//! metrics are computed in the same way. Values that the recording does not determine are then removed: they are
//! unknown, and not zero.

use crate::point::{MILLI, Nanos};
use crate::problem::Problem;
use crate::session::{Coverage, Direction, Fate, Packet, Session};
use crate::{frames, jitter};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tidegate_core::control::Decision;
use tidegate_core::datagram::RtpBody;
use tidegate_core::record::RtcpRecord;
use tidegate_core::wire::ip::UDP_HEADERS;
use tidegate_core::wire::rtcp;
use tidegate_core::{
    Body, Cause, Datagram, Ecn, FlowId, Frame, Kind, Level, NodeId, Rate, Recorder, RouteId, Size, Span, Time,
};
use tidegate_sim::record::columns::{Column, Table};
use tidegate_sim::record::path::Path;
use tidegate_sim::record::target::Sharing;
use tidegate_sim::record::{FlowInfo, Recording};

/// Targets and internals of the controller of one direction, as the recording has them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ControllerTrace {
    /// Times and values of the sender's target.
    pub targets: Vec<(Nanos, Rate)>,
    /// Times, names and values of the controller's internal state.
    pub internals: Vec<(Nanos, Cow<'static, str>, f64)>,
    /// Name of the controller for tables.
    pub controller: String,
}

/// A call as a run.
pub struct Recorded {
    recording: Recording,
    coverages: Vec<Coverage>,
    frames: Vec<(u32, frames::Frame)>,
    /// Beginning and end of the run on the near clock.
    span: (Nanos, Nanos),
    flows: Vec<String>,
    summary: Value,
}

/// Width of the bins of series; longer for calls of more than five hours.
const BIN: Span = Span::from_millis(200);
/// Largest number of bins of a flow.
const MAX_BINS: i64 = 90_000;
/// Longest recording that is accepted: seven days.
const MAX_LENGTH: Nanos = 7 * 86_400_000 * MILLI;
/// The only node of the world: the network between the ends.
const NETWORK: NodeId = NodeId(0);

/// Kind of an event for the recorder; the order applies to events at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum EventKind {
    Sent,
    Arrived,
    Lost,
    Unknown,
    Rtcp,
    Report,
}

impl Recorded {
    /// Records a call. `traces` has an entry for each direction.
    ///
    /// # Errors
    /// If the call has no packets or is too long.
    pub fn of(session: &Session, traces: &[ControllerTrace]) -> Result<Self, Problem> {
        let (begin, end) = session.span;
        if session.directions.iter().all(|way| way.packets.is_empty()) {
            return Err(Problem::new(0, "found no RTP; expected a recording of a call"));
        }
        let length = end.saturating_sub(begin);
        if length > MAX_LENGTH {
            let days = length / (86_400_000 * MILLI);
            return Err(Problem::new(0, format!("the timestamps span {days} days; expected at most 7")));
        }
        let clock = |time: Nanos| Time::from_nanos(time.clamp(begin, end) - begin);
        let no_trace = ControllerTrace::default();
        let trace = |index: usize| traces.get(index).unwrap_or(&no_trace);
        let flows = session.directions.iter().enumerate().map(|(index, direction)| FlowInfo {
            name: direction.name.clone(),
            kind: "media",
            controller: trace(index).controller.clone(),
            start: clock(direction.packets.first().map_or(begin, |first| first.sent)),
            stop: clock(end),
            tightest: None,
            path: Path::default(),
            overhead: UDP_HEADERS,
            sharing: Sharing::Unknown,
            pauses: Vec::new(),
        });
        let bin = BIN.max(Span::from_nanos(length / MAX_BINS));
        let names = vec!["network".to_owned()];
        let mut recording =
            Recording::new(Level::Packets, bin, Time::ZERO, flows.collect(), Vec::new(), names);
        for (index, direction) in session.directions.iter().enumerate() {
            let flow = FlowId(index as u32);
            record_direction(&mut recording, flow, direction, &clock);
            for &(time, target) in &trace(index).targets {
                recording.decision(clock(time), flow, &Decision::rate(target));
            }
            for (time, name, value) in &trace(index).internals {
                recording.internal(clock(*time), flow, name, *value);
            }
        }
        let stop = clock(end);
        recording.end(stop);
        let coverages: Vec<Coverage> = session.directions.iter().map(Direction::coverage).collect();
        let summary = recording.summary(stop - Time::ZERO, Span::ZERO);
        let summary = serde_json::to_value(&summary).map_err(|why| Problem::new(0, why.to_string()))?;
        let mut summary = remove_unknown(summary, &coverages);
        for (index, direction) in session.directions.iter().enumerate() {
            // the recorder takes audio for Opus, and all audio for one stream
            if let Some(flow) = summary["flows"][index].as_object_mut() {
                let (mean, largest) = jitter::media_jitter(direction);
                for (name, value) in [("media_jitter_ms_mean", mean), ("media_jitter_ms_max", largest)] {
                    match (flow.contains_key(name), value) {
                        (true, Some(value)) => flow.insert(name.to_owned(), value.into()),
                        _ => flow.remove(name),
                    };
                }
            }
        }
        let mut all_frames = Vec::new();
        for (index, direction) in session.directions.iter().enumerate() {
            // without a recording at the sender, first packets of a frame may be missing
            if !(coverages[index].sent && coverages[index].arrived && coverages[index].steady) {
                continue;
            }
            let frames = frames::frames(direction);
            if let Some(flow) = summary["flows"][index].as_object_mut() {
                flow.append(&mut frames::metrics(&frames));
            }
            all_frames.extend(frames.into_iter().map(|frame| (index as u32, frame)));
        }
        let flows = session.directions.iter().map(|direction| direction.name.clone()).collect();
        Ok(Self { recording, coverages, frames: all_frames, span: session.span, flows, summary })
    }

    /// The metrics that are known, as JSON.
    #[must_use]
    pub fn summary(&self) -> &Value {
        &self.summary
    }

    /// Names of the tables that have rows, and "flows".
    #[must_use]
    pub fn table_names(&self) -> Vec<&'static str> {
        let mut names = self.recording.table_names();
        names.retain(|name| *name == "flows" || self.table(name).is_some_and(|table| table.rows() > 0));
        names
    }

    /// One table by name; values that are not known are NaN.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        if name == "frames" {
            let (begin, end) = self.span;
            let clock = |time: Nanos| Time::from_nanos(time.clamp(begin, end) - begin);
            return Some(frames::table(&self.frames, self.flows.clone(), clock));
        }
        let mut table = self.recording.table(name)?;
        let flows: Vec<u32> = match table.columns.iter().find(|(name, _)| *name == "flow") {
            Some((_, Column::Words { codes, .. })) => codes.clone(),
            _ => Vec::new(),
        };
        let unknown = |column: &str, coverage: &Coverage| match (name, column) {
            ("series", "goodput_bps" | "queueing_delay_ms_mean") => true,
            ("series", "sending_rate_bps") => !coverage.sent,
            ("series", "one_way_delay_ms_mean" | "one_way_delay_ms_max") => !coverage.delay,
            ("series", "receive_rate_bps") => !coverage.arrived,
            ("decisions", "pacing_bps") | ("packets", "queueing_delay_ms") => true,
            ("rtcp", "waited_ms") => true,
            ("packets", "sent_s") => !coverage.sent && !coverage.delay,
            // a clock was set between sending and arrival
            ("packets", "arrived_s") => !coverage.steady,
            ("quantiles", "one_way_delay_ms") => !coverage.delay,
            _ => false,
        };
        for (column, values) in &mut table.columns {
            match values {
                Column::F64(values) => {
                    for (value, &flow) in values.iter_mut().zip(&flows) {
                        let coverage = self.coverages.get(flow as usize);
                        if coverage.is_some_and(|coverage| unknown(column, coverage)) {
                            *value = f64::NAN;
                        }
                    }
                }
                // the cause of a loss is not known, so that the words of all causes become "lost"
                Column::Words { words, .. } if (name, *column) == ("packets", "fate") => {
                    let last = words.len() - 1;
                    for (place, word) in words.iter_mut().enumerate() {
                        let fate = match place {
                            0 => "arrived",
                            _ if place == last => "unknown",
                            _ => "lost",
                        };
                        fate.clone_into(word);
                    }
                }
                _ => (),
            }
        }
        Some(table)
    }
}

/// Records the packets of a direction, and the RTCP about it.
fn record_direction(
    recording: &mut Recording,
    flow: FlowId,
    direction: &Direction,
    clock: &dyn Fn(Nanos) -> Time,
) {
    let mut events: Vec<(Time, EventKind, usize)> = Vec::with_capacity(2 * direction.packets.len());
    let mut frames: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut frame_numbers = Vec::with_capacity(direction.packets.len());
    for (index, packet) in direction.packets.iter().enumerate() {
        let sent = clock(packet.sent);
        events.push((sent, EventKind::Sent, index));
        events.push(match packet.fate {
            Fate::Arrived(arrived) => (clock(arrived).max(sent), EventKind::Arrived, index),
            Fate::Lost => (sent, EventKind::Lost, index),
            Fate::Unknown => (sent, EventKind::Unknown, index),
        });
        let (frame, _) = frames
            .entry(packet.rtp.ssrc)
            .and_modify(|(frame, timestamp)| {
                let ahead = packet.rtp.timestamp.wrapping_sub(*timestamp);
                if ahead != 0 && ahead < 1 << 31 {
                    (*frame, *timestamp) = (*frame + 1, packet.rtp.timestamp);
                }
            })
            .or_insert((0, packet.rtp.timestamp));
        frame_numbers.push(*frame);
    }
    let feedback = direction.feedback.iter().enumerate();
    events.extend(feedback.map(|(index, (time, _))| (clock(*time), EventKind::Rtcp, index)));
    let reports = direction.reports.iter().enumerate();
    events.extend(reports.map(|(index, (time, _))| (clock(*time), EventKind::Report, index)));
    events.sort();
    for (now, kind, index) in events {
        if matches!(kind, EventKind::Rtcp | EventKind::Report) {
            let from_receiver = kind == EventKind::Rtcp;
            let (_, datagram) =
                if from_receiver { &direction.feedback[index] } else { &direction.reports[index] };
            let contents = rtcp::decode(&datagram.bytes).map(|packets| rtcp::Contents::of(&packets));
            let size = Size::from_bytes(u64::from(datagram.size));
            let contents = contents.unwrap_or_default();
            recording.rtcp(now, &RtcpRecord { flow, from_receiver, size, contents, waited: Span::ZERO });
            if from_receiver {
                recording.sent(now, &envelope(now, flow, index, Kind::Rtcp, datagram.size, Body::Rtcp));
            }
            continue;
        }
        let packet = &direction.packets[index];
        let packet = rtp(packet, clock(packet.sent), flow, index, frame_numbers[index]);
        match kind {
            EventKind::Sent => recording.sent(now, &packet),
            EventKind::Arrived => recording.arrived(now, &packet),
            EventKind::Lost => recording.dropped(now, &packet, NETWORK, Cause::Loss),
            _ => recording.under_way(&packet, NETWORK),
        }
    }
}

fn envelope(
    sent: Time,
    flow: FlowId,
    index: usize,
    kind: Kind,
    size: u32,
    body: Body,
) -> tidegate_core::Packet {
    let datagram = Datagram { size, body, ..Datagram::default() };
    tidegate_core::Packet::new(sent, flow, RouteId(0), index as u32, kind, datagram)
}

fn rtp(packet: &Packet, sent: Time, flow: FlowId, index: usize, frame: u32) -> tidegate_core::Packet {
    let body = RtpBody {
        timestamp: packet.rtp.timestamp,
        ssrc: packet.rtp.ssrc,
        sequence: packet.rtp.sequence,
        payload_type: packet.rtp.payload_type,
        marker: packet.rtp.marker,
        ..RtpBody::default()
    };
    let mut recorded = envelope(sent, flow, index, packet.kind, packet.rtp.size, Body::Rtp(body));
    recorded.frame = Frame { number: frame, flags: 0 };
    recorded.ecn = if packet.ecn == Ecn::NotEct { recorded.ecn } else { packet.ecn };
    recorded
}

/// Removes the metrics that the recording does not determine.
fn remove_unknown(summary: Value, coverages: &[Coverage]) -> Value {
    let Value::Object(mut summary) = summary else { return summary };
    if let Some(Value::Array(flows)) = summary.get_mut("flows") {
        for (flow, coverage) in flows.iter_mut().zip(coverages) {
            if let Value::Object(metrics) = flow {
                metrics.retain(|name, value| !value.is_null() && is_determined(name, coverage));
            }
        }
    }
    let comparable = coverages.iter().all(|coverage| coverage.arrived);
    if !comparable {
        summary.insert("fairness".to_owned(), Value::Object(Map::new()));
    }
    Value::Object(summary)
}

/// Whether the recording determines a metric of a flow. All other metrics need facts that only the ends or the link
/// have.
fn is_determined(metric: &str, coverage: &Coverage) -> bool {
    match metric {
        "flow" | "kind" | "controller" | "start_s" | "stop_s" | "packets_sent" | "target_rate_bps" => true,
        "sending_rate_bps" | "bytes_sent" | "retransmissions" | "repair_overhead" => coverage.sent,
        "receive_rate_bps" | "packets_received" | "bytes_received" | "loss_fraction"
        | "convergence_time_s" | "oscillation_hz" => coverage.arrived,
        "media_jitter_ms_mean" | "media_jitter_ms_max" => coverage.steady && coverage.arrived,
        "jitter_ms_mean" | "jitter_ms_max" => {
            coverage.steady && coverage.arrived && (coverage.sent || coverage.delay)
        }
        "quality_network" => coverage.delay,
        "feedback_rate_bps" => coverage.rtcp,
        "feedback_overhead" => coverage.rtcp && coverage.arrived,
        "nacks" | "plis" => coverage.feedback,
        _ => metric.starts_with("one_way_delay_ms") && coverage.delay,
    }
}
