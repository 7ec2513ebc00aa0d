//! The recording of a run: three levels, one digest.
//!
//! At `summary` all facts are streamed into counts, distributions and one number per second and flow;
//! `series` adds bins, decisions, internals, queues and frames; `packets` adds every packet. The digest
//! is the same at every level, because it hashes the facts as they come in.

pub mod bins;
pub mod capture;
pub mod columns;
pub mod count;
pub mod digest;
pub mod emodel;
pub mod flow;
pub mod histogram;
pub mod jitter;
pub mod least;
pub mod member;
pub mod metrics;
pub mod news;
pub mod path;
mod pcapng;
pub mod quality;
mod recorder;
pub mod repair;
pub mod speech;
pub mod summary;
mod tables;
pub mod target;
pub mod viewing;

use bins::Bins;
use capture::Captured;
use count::Count;
use digest::Digest;
use flow::{Bin, FlowStats};
use member::{MemberInfo, MemberStats};
use path::Path;
use std::collections::VecDeque;
use target::{Sharing, Targets};
use tidegate_core::datagram::Body;
use tidegate_core::record::Backlog;
use tidegate_core::record::{
    CellRecord, FrameRecord, FrameSent, LossRecord, RadioRecord, RepairRecord, RtcpRecord,
};
use tidegate_core::{Cause, Ecn, FlowId, Kind, Level, NodeId, Packet, Rate, Size, Span, Time};
use viewing::Stretch;

/// Description of a radio network for the recording.
#[derive(Clone, Debug)]
pub struct RadioInfo {
    /// Its node.
    pub node: NodeId,
    /// The names of its users, in the order of their numbers.
    pub users: Vec<String>,
}

/// Description of a flow for the recording.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    /// Its name.
    pub name: String,
    /// `media`, `udp`, `tcp` or `external`.
    pub kind: &'static str,
    /// The controller and its preset, or the TCP algorithm, or the UDP pattern.
    pub controller: String,
    /// Time of its beginning.
    pub start: Time,
    /// Time of its end: its own stop, or the end of the run.
    pub stop: Time,
    /// Mean capacity, while the statistics run and the flow is active, of the tightest link on its path;
    /// `None`: no limit.
    pub tightest: Option<Rate>,
    /// The links that its packets cross.
    pub path: Path,
    /// Bytes of IP and UDP headers that are counted in its packets.
    pub overhead: u32,
    /// Its part in the rate that others find available.
    pub sharing: Sharing,
    /// Times in which its sources are off, `[from, to)`, in order.
    pub pauses: Vec<(Time, Time)>,
}

/// Description of a node that is a link for the recording.
#[derive(Clone, Debug)]
pub struct LinkInfo {
    /// Its node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Its mean capacity while the statistics run; `None`: no limit.
    pub capacity: Option<Rate>,
}

/// Statistics of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkStats {
    /// Packets that died here after the warm-up, by [`Cause`].
    pub dropped: [Count; Cause::ALL.len()],
    /// Packets that it marked with congestion experienced after the warm-up.
    pub marked: u64,
    /// Packets whose ECN field it cleared after the warm-up.
    pub bleached: u64,
    /// Bytes that it carried after the warm-up.
    pub carried: u64,
}

/// The fate of a packet, and the number of its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Arrived,
    Died(Cause, u32),
    /// Still under way at the end of the run.
    UnderWay(u32),
}

/// A packet and its fate.
#[derive(Clone, Copy, Debug)]
struct PacketRow {
    flow: u32,
    kind: Kind,
    sequence: u32,
    size: u32,
    /// Number of its media frame.
    frame: Option<u32>,
    /// Its RTP sequence number.
    rtp_sequence: Option<u16>,
    sent: Time,
    /// Time at which it arrived or died.
    ended: Time,
    queued: Span,
    fate: Fate,
    /// The ECN field of its IP header at its end.
    ecn: Ecn,
}

/// A frame under way: the facts from its sender, completed later by those from its receiver.
#[derive(Clone, Copy, Debug)]
struct FrameOpen {
    captured: Time,
    sent: FrameSent,
    fate: Option<FrameRecord>,
}

impl FrameOpen {
    /// Whether it is audio that is heard as speech: a frame of comfort noise (DTX) is none, and refers to earlier ones.
    const fn is_speech(&self) -> bool {
        !self.sent.video && self.sent.key
    }
}

#[derive(Clone, Copy, Debug)]
struct DecisionRow {
    time: Time,
    flow: u32,
    target: Rate,
    pacing: Rate,
    window: Option<Size>,
}

/// The recording of a run.
pub struct Recording {
    level: Level,
    capture: bool,
    bin: Span,
    /// The flows, by id.
    pub flows: Vec<FlowInfo>,
    /// The links.
    pub links: Vec<LinkInfo>,
    node_names: Vec<String>,
    /// For each node its index among the links, if it is one.
    link_of: Vec<Option<u32>>,
    link_stats: Vec<LinkStats>,
    stats: Vec<FlowStats>,
    targets: Targets,
    series: Vec<Bins<Bin>>,
    decisions: Vec<DecisionRow>,
    last_decision: Vec<Option<(Rate, Rate, Option<Size>)>>,
    internal_names: Vec<String>,
    internals: Vec<(Time, u32, u32, f64)>,
    /// For each flow and kind (audio, video) the frames whose fate is open, in order of number.
    open: Vec<[VecDeque<FrameOpen>; 2]>,
    frames: Vec<FrameOpen>,
    rtcp: Vec<(Time, RtcpRecord)>,
    /// The members of sessions; their flows are the last ones.
    members: Vec<MemberInfo>,
    member_stats: Vec<MemberStats>,
    losses: Vec<(Time, LossRecord)>,
    freezes: Vec<(Time, FlowId, Span)>,
    /// Stretches of time without a new picture, with the time of their end.
    stretches: Vec<(Time, FlowId, Stretch)>,
    queues: Vec<(Time, u32, Backlog)>,
    /// The queues of which queues consist.
    parts: Vec<(Time, u32, &'static str, Backlog)>,
    truth: Vec<(Time, u32, Rate)>,
    radio: Vec<(Time, RadioRecord)>,
    radios: Vec<RadioInfo>,
    cells: Vec<(Time, CellRecord)>,
    packets: Vec<PacketRow>,
    repairs: Vec<(Time, RepairRecord)>,
    captured: Vec<Captured>,
}

impl Recording {
    /// An empty recording of `flows` over `links` at `level`, with series in bins `bin` wide; packets
    /// sent before `warmup` do not enter the statistics.
    #[must_use]
    pub fn new(
        level: Level,
        bin: Span,
        warmup: Time,
        flows: Vec<FlowInfo>,
        links: Vec<LinkInfo>,
        node_names: Vec<String>,
    ) -> Self {
        let count = flows.len();
        let mut link_of = vec![None; node_names.len()];
        for (index, link) in links.iter().enumerate() {
            link_of[link.node.0 as usize] = Some(index as u32);
        }
        let series = if level >= Level::Series { vec![Bins::new(bin); count] } else { Vec::new() };
        Self {
            level,
            capture: false,
            bin,
            stats: vec![FlowStats::new(warmup); count],
            targets: Targets::new(warmup, count, node_names.len()),
            series,
            last_decision: vec![None; count],
            flows,
            link_stats: vec![LinkStats::default(); links.len()],
            links,
            node_names,
            link_of,
            decisions: Vec::new(),
            internal_names: Vec::new(),
            internals: Vec::new(),
            open: vec![Default::default(); count],
            frames: Vec::new(),
            rtcp: Vec::new(),
            members: Vec::new(),
            member_stats: Vec::new(),
            losses: Vec::new(),
            freezes: Vec::new(),
            stretches: Vec::new(),
            queues: Vec::new(),
            parts: Vec::new(),
            truth: Vec::new(),
            radio: Vec::new(),
            radios: Vec::new(),
            cells: Vec::new(),
            packets: Vec::new(),
            repairs: Vec::new(),
            captured: Vec::new(),
        }
    }

    /// A copy of the statistics from which the metrics are computed, without the tables.
    pub(crate) fn so_far(&self) -> Self {
        let (flows, links, names) = (self.flows.clone(), self.links.clone(), self.node_names.clone());
        Self {
            link_stats: self.link_stats.clone(),
            stats: self.stats.clone(),
            targets: self.targets.clone(),
            open: self.open.clone(),
            members: self.members.clone(),
            member_stats: self.member_stats.clone(),
            ..Self::new(Level::Summary, self.bin, Time::ZERO, flows, links, names)
        }
    }

    /// Enables the capture of each packet at its two ends.
    #[must_use]
    pub fn with_capture(mut self) -> Self {
        self.capture = true;
        self
    }

    /// Enables the comparison of targets with available rates, which needs [`tidegate_core::Recorder::capacities`].
    #[must_use]
    pub fn with_available_rates(mut self) -> Self {
        self.targets.compare();
        self
    }

    /// Sets the descriptions of the radio networks.
    #[must_use]
    pub fn with_radios(mut self, radios: Vec<RadioInfo>) -> Self {
        self.radios = radios;
        self
    }

    /// The statistics of each flow.
    #[must_use]
    pub fn stats(&self) -> &[FlowStats] {
        &self.stats
    }

    /// The statistics of each link.
    #[must_use]
    pub fn link_stats(&self) -> &[LinkStats] {
        &self.link_stats
    }

    /// Sets the bytes that each node carried while the statistics ran.
    pub fn set_carried(&mut self, bytes: impl Fn(NodeId) -> u64) {
        for (link, stats) in self.links.iter().zip(&mut self.link_stats) {
            stats.carried = bytes(link.node);
        }
    }

    /// The hash of the whole recording.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for stats in &self.stats {
            digest.add(stats.digest.value());
        }
        digest.value()
    }

    /// Counts a frame whose fate is known, or will never be known.
    fn close(&mut self, frame: FrameOpen) {
        let stats = &mut self.stats[frame.sent.flow.0 as usize];
        if frame.sent.video && stats.counts(frame.captured) {
            stats.frames_sent += 1;
            stats.key_frames += u64::from(frame.sent.key);
            if frame.fate.is_some_and(|fate| fate.rendered.is_some()) {
                stats.frames_rendered += 1;
            }
        } else if let (Some(fate), true) = (frame.fate, stats.counts(frame.captured) && frame.is_speech()) {
            stats.speech.frame(fate.rendered.map(|rendered| rendered - frame.captured));
        }
        if self.level >= Level::Series {
            self.frames.push(frame);
        }
    }

    /// Ends the recording at `end`, which may be earlier than planned.
    pub fn end(&mut self, end: Time) {
        for flow in &mut self.flows {
            flow.stop = flow.stop.min(end).max(flow.start);
        }
    }

    /// Ends the interval of available rates that is open at `end`; `capacity` is the mean capacity of a link since an
    /// instant, if it is known.
    pub(crate) fn end_interval(&mut self, end: Time, mut capacity: impl FnMut(NodeId, Time) -> Option<Rate>) {
        if let Some(from) = self.targets.open(end) {
            let links = self.links.iter().map(|link| link.node);
            let rates: Vec<_> = links.filter_map(|link| Some((link, capacity(link, from)?))).collect();
            self.targets.end_interval(&self.flows, (from, end), &rates);
        }
    }

    /// Counts the frames without a fate from their receiver, at the `end` of the run, and ends the views of videos.
    pub fn close_frames(&mut self, end: Time) {
        for flow in 0..self.open.len() {
            let stop = self.flows[flow].stop.min(end);
            let stretch = self.stats[flow].viewing.end(stop);
            self.stats[flow].whole.end(stop);
            self.add_stretch(stop, FlowId(flow as u32), stretch);
            for kind in 0..2 {
                for frame in std::mem::take(&mut self.open[flow][kind]) {
                    self.close(frame);
                    let stats = &mut self.stats[flow];
                    if frame.is_speech() && frame.fate.is_none() && stats.counts(frame.captured) {
                        stats.speech.unknown(frame.captured, end);
                    }
                }
            }
        }
    }

    fn add_stretch(&mut self, end: Time, flow: FlowId, stretch: Option<Stretch>) {
        if self.level >= Level::Series {
            self.stretches.extend(stretch.map(|stretch| (end, flow, stretch)));
        }
    }

    fn row(&mut self, now: Time, packet: &Packet, fate: Fate) {
        if self.level == Level::Packets {
            let rtp_sequence = match packet.body {
                Body::Rtp(body) => Some(body.sequence),
                _ => None,
            };
            // padding belongs to no frame
            let is_media = rtp_sequence.is_some() && packet.kind != Kind::Padding;
            self.packets.push(PacketRow {
                flow: packet.flow.0,
                kind: packet.kind,
                sequence: packet.sequence,
                size: packet.size,
                frame: is_media.then_some(packet.frame.number),
                rtp_sequence,
                sent: packet.sent,
                ended: now,
                queued: packet.queued,
                fate,
                ecn: packet.ecn,
            });
        }
    }
}
