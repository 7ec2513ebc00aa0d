//! A call as a run: told to the recording that runs of the engine are told to, so that each number is what it is there.
//! What the call does not tell of is taken out again, for nobody knew it, and it is not zero.

use crate::frames;
use crate::point::{MILLI, Nanos};
use crate::problem::Problem;
use crate::session::{Fate, Known, Packet, Session, Way};
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
use tidegate_sim::record::{FlowInfo, Recording};

/// What a recording says beside its packets, of the way that it is about.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Beside {
    /// The sender's target: when, and bit/s.
    pub targets: Vec<(Nanos, Rate)>,
    /// Named values, as controllers note them.
    pub internals: Vec<(Nanos, Cow<'static, str>, f64)>,
    /// Who decided, for tables.
    pub controller: String,
}

/// A call as a run.
pub struct Recorded {
    recording: Recording,
    known: Vec<Known>,
    frames: Vec<(u32, frames::Frame)>,
    /// When the run begins and ends, by the near clock.
    span: (Nanos, Nanos),
    flows: Vec<String>,
    summary: Value,
}

/// Width of the bins of series; longer for calls of more than five hours.
const BIN: Span = Span::from_millis(200);
/// Bins of a flow at most.
const MOST_BINS: i64 = 90_000;
/// A recording is at most so long: seven days.
const LONGEST: Nanos = 7 * 86_400_000 * MILLI;
/// The one node of the world: what lay between the ends.
const NETWORK: NodeId = NodeId(0);

/// What is told to the recorder, in the order of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    Sent,
    Arrived,
    Lost,
    Unknown,
    Rtcp,
    Report,
}

impl Recorded {
    /// Tells a call to a recording. `beside` has an entry for each way.
    ///
    /// # Errors
    /// When there is nothing in it, or it is too long.
    pub fn of(session: &Session, beside: &[Beside]) -> Result<Self, Problem> {
        let (begin, end) = session.span;
        if session.ways.iter().all(|way| way.packets.is_empty()) {
            return Err(Problem::new(0, "found no RTP; expected a recording of a call"));
        }
        let length = end.saturating_sub(begin);
        if length > LONGEST {
            let days = length / (86_400_000 * MILLI);
            return Err(Problem::new(0, format!("its stamps lie {days} days apart; expected at most 7")));
        }
        let clock = |at: Nanos| Time::from_nanos(at.clamp(begin, end) - begin);
        let nothing = Beside::default();
        let beside = |way: usize| beside.get(way).unwrap_or(&nothing);
        let flows = session.ways.iter().enumerate().map(|(at, way)| FlowInfo {
            name: way.name.clone(),
            kind: "media",
            controller: beside(at).controller.clone(),
            start: clock(way.packets.first().map_or(begin, |first| first.sent)),
            stop: clock(end),
            tightest: None,
            links: Vec::new(),
            overhead: UDP_HEADERS,
        });
        let bin = BIN.max(Span::from_nanos(length / MOST_BINS));
        let names = vec!["network".to_owned()];
        let mut recording =
            Recording::new(Level::Packets, bin, Time::ZERO, flows.collect(), Vec::new(), names);
        for (at, way) in session.ways.iter().enumerate() {
            let flow = FlowId(at as u32);
            tell(&mut recording, flow, way, &clock);
            for &(when, target) in &beside(at).targets {
                recording.decision(clock(when), flow, &Decision::rate(target));
            }
            for (when, name, value) in &beside(at).internals {
                recording.internal(clock(*when), flow, name, *value);
            }
        }
        let over = clock(end);
        recording.end(over);
        let known: Vec<Known> = session.ways.iter().map(Way::known).collect();
        let summary = recording.summary(over - Time::ZERO, Span::ZERO);
        let summary = serde_json::to_value(&summary).map_err(|why| Problem::new(0, why.to_string()))?;
        let mut summary = only_known(summary, &known);
        let mut all = Vec::new();
        for (at, way) in session.ways.iter().enumerate() {
            // of what nobody saw leave the first packets may be missing
            if !(known[at].sent && known[at].arrived) {
                continue;
            }
            let found = frames::frames(way);
            if let Some(flow) = summary["flows"][at].as_object_mut() {
                flow.append(&mut frames::metrics(&found));
            }
            all.extend(found.into_iter().map(|frame| (at as u32, frame)));
        }
        let flows = session.ways.iter().map(|way| way.name.clone()).collect();
        Ok(Self { recording, known, frames: all, span: session.span, flows, summary })
    }

    /// The metrics that are known, as JSON.
    #[must_use]
    pub fn summary(&self) -> &Value {
        &self.summary
    }

    /// Names of the tables that have anything in them.
    #[must_use]
    pub fn table_names(&self) -> Vec<&'static str> {
        let mut names = self.recording.table_names();
        names.retain(|name| *name == "flows" || self.table(name).is_some_and(|table| table.rows() > 0));
        names
    }

    /// One table by name; what is not known in it is not a number.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        if name == "frames" {
            let (begin, end) = self.span;
            let clock = |at: Nanos| Time::from_nanos(at.clamp(begin, end) - begin);
            return Some(frames::table(&self.frames, self.flows.clone(), clock));
        }
        let mut table = self.recording.table(name)?;
        let flows: Vec<u32> = match table.columns.iter().find(|(name, _)| *name == "flow") {
            Some((_, Column::Words { codes, .. })) => codes.clone(),
            _ => Vec::new(),
        };
        let unknown = |column: &str, known: &Known| match (name, column) {
            ("series", "goodput_bps" | "queueing_delay_ms_mean") => true,
            ("series", "sending_rate_bps") => !known.sent,
            ("series", "one_way_delay_ms_mean" | "one_way_delay_ms_max") => !known.delay,
            ("series", "receive_rate_bps") => !known.arrived,
            ("decisions", "pacing_bps") | ("packets", "queueing_delay_ms") => true,
            ("rtcp", "waited_ms") => true,
            ("packets", "sent_s") => !known.sent && !known.delay,
            ("quantiles", "one_way_delay_ms") => !known.delay,
            _ => false,
        };
        for (column, values) in &mut table.columns {
            match values {
                Column::F64(values) => {
                    for (value, &flow) in values.iter_mut().zip(&flows) {
                        if self.known.get(flow as usize).is_some_and(|known| unknown(column, known)) {
                            *value = f64::NAN;
                        }
                    }
                }
                // what took a packet is not known, so that no word for it may name a cause
                Column::Words { words, .. } if (name, *column) == ("packets", "fate") => {
                    for (word, said) in
                        words.iter_mut().zip(["arrived", "lost", "lost", "lost", "lost", "unknown"])
                    {
                        said.clone_into(word);
                    }
                }
                _ => (),
            }
        }
        Some(table)
    }
}

/// Tells all that happened to the packets of a way.
fn tell(recording: &mut Recording, flow: FlowId, way: &Way, clock: &dyn Fn(Nanos) -> Time) {
    let mut events: Vec<(Time, What, usize)> = Vec::with_capacity(2 * way.packets.len());
    let mut frames: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(way.packets.len());
    for (at, packet) in way.packets.iter().enumerate() {
        let sent = clock(packet.sent);
        events.push((sent, What::Sent, at));
        events.push(match packet.fate {
            Fate::Arrived(arrived) => (clock(arrived).max(sent), What::Arrived, at),
            Fate::Lost => (sent, What::Lost, at),
            Fate::Unknown => (sent, What::Unknown, at),
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
        numbers.push(*frame);
    }
    events.extend(way.feedback.iter().enumerate().map(|(at, (when, _))| (clock(*when), What::Rtcp, at)));
    events.extend(way.reports.iter().enumerate().map(|(at, (when, _))| (clock(*when), What::Report, at)));
    events.sort();
    for (now, what, at) in events {
        if matches!(what, What::Rtcp | What::Report) {
            let from_receiver = what == What::Rtcp;
            let (_, datagram) = if from_receiver { &way.feedback[at] } else { &way.reports[at] };
            let contents = rtcp::decode(&datagram.bytes).map(|packets| rtcp::Contents::of(&packets));
            let size = Size::from_bytes(u64::from(datagram.size));
            let contents = contents.unwrap_or_default();
            recording.rtcp(now, &RtcpRecord { flow, from_receiver, size, contents, waited: Span::ZERO });
            if from_receiver {
                recording.sent(now, &envelope(now, flow, at, Kind::Rtcp, datagram.size, Body::Rtcp));
            }
            continue;
        }
        let one = &way.packets[at];
        let packet = rtp(one, clock(one.sent), flow, at, numbers[at]);
        match what {
            What::Sent => recording.sent(now, &packet),
            What::Arrived => recording.arrived(now, &packet),
            What::Lost => recording.dropped(now, &packet, NETWORK, Cause::Loss),
            _ => recording.under_way(&packet, NETWORK),
        }
    }
}

fn envelope(sent: Time, flow: FlowId, at: usize, kind: Kind, size: u32, body: Body) -> tidegate_core::Packet {
    let datagram = Datagram { size, body, ..Datagram::default() };
    tidegate_core::Packet::new(sent, flow, RouteId(0), at as u32, kind, datagram)
}

fn rtp(packet: &Packet, sent: Time, flow: FlowId, at: usize, frame: u32) -> tidegate_core::Packet {
    let body = RtpBody {
        timestamp: packet.rtp.timestamp,
        ssrc: packet.rtp.ssrc,
        sequence: packet.rtp.sequence,
        payload_type: packet.rtp.payload_type,
        marker: packet.rtp.marker,
        ..RtpBody::default()
    };
    let mut made = envelope(sent, flow, at, packet.kind, packet.rtp.size, Body::Rtp(body));
    made.frame = Frame { number: frame, flags: 0 };
    made.ecn = if packet.ecn == Ecn::NotEct { made.ecn } else { packet.ecn };
    made
}

/// A summary without the metrics that nobody could know.
fn only_known(summary: Value, known: &[Known]) -> Value {
    let Value::Object(mut summary) = summary else { return summary };
    if let Some(Value::Array(flows)) = summary.get_mut("flows") {
        for (flow, known) in flows.iter_mut().zip(known) {
            if let Value::Object(metrics) = flow {
                metrics.retain(|name, value| !value.is_null() && is_known(name, known));
            }
        }
    }
    let shared = known.iter().all(|known| known.arrived);
    if !shared {
        summary.insert("fairness".to_owned(), Value::Object(Map::new()));
    }
    Value::Object(summary)
}

/// Whether a metric of a flow follows from what is known. All others need what only the ends, or the link, could tell.
fn is_known(metric: &str, known: &Known) -> bool {
    match metric {
        "flow" | "kind" | "controller" | "start_s" | "stop_s" | "packets_sent" => true,
        "sending_rate_bps" | "bytes_sent" | "retransmissions" | "repair_overhead" => known.sent,
        "receive_rate_bps"
        | "packets_received"
        | "bytes_received"
        | "loss_fraction"
        | "convergence_time_s"
        | "oscillation_hz"
        | "media_jitter_ms_mean"
        | "media_jitter_ms_max" => known.arrived,
        "jitter_ms_mean" | "jitter_ms_max" => known.arrived && (known.sent || known.delay),
        "quality_network" => known.delay,
        "feedback_rate_bps" => known.rtcp,
        "feedback_overhead" => known.rtcp && known.arrived,
        "nacks" | "plis" => known.feedback,
        _ => metric.starts_with("one_way_delay_ms") && known.delay,
    }
}
