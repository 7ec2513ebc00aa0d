//! The recording of a run: three levels, one digest.
//!
//! At `summary` everything is streamed into counts, distributions and one number a second and flow;
//! `series` adds bins, decisions, internals, queues and frames; `packets` adds every packet. The digest
//! is the same at every level, because it hashes the facts as they are told.

pub mod digest;
pub mod emodel;
pub mod flow;
pub mod histogram;
pub mod jitter;
pub mod member;
pub mod pcapng;
pub mod quality;
pub mod summary;
pub mod table;
mod tables;

use digest::Digest;
use flow::{Bin, Bins, Count, FlowStats};
use member::{MemberInfo, MemberStats};
use std::collections::VecDeque;
use tidegate_core::control::Decision;
use tidegate_core::node::Backlog;
use tidegate_core::packet::Body;
use tidegate_core::record::{CellRecord, FrameRecord, FrameSent, LossRecord, RadioRecord, RtcpRecord};
use tidegate_core::{Cause, FlowId, Kind, Level, NodeId, Packet, Rate, Recorder, Size, Span, Time};

/// What the recording must know of a flow.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    /// Its name.
    pub name: String,
    /// `media`, `udp`, `tcp` or `external`.
    pub kind: &'static str,
    /// The controller and its preset, or the TCP algorithm, or the UDP pattern.
    pub controller: String,
    /// When it begins.
    pub start: Time,
    /// When it ends: its own stop, or the end of the run.
    pub stop: Time,
    /// Mean capacity, while the statistics run and the flow is active, of the tightest link on its way;
    /// `None`: no limit.
    pub tightest: Option<Rate>,
    /// The nodes of the links that its packets cross, in order.
    pub links: Vec<NodeId>,
}

/// What the recording must know of a node that is a link.
#[derive(Clone, Debug)]
pub struct LinkInfo {
    /// Its node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Its mean capacity while the statistics run; `None`: no limit.
    pub capacity: Option<Rate>,
}

/// What is kept of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkStats {
    /// Packets that died here after the warm-up, by [`Cause`].
    pub dropped: [Count; Cause::ALL.len()],
    /// Bytes that it carried after the warm-up.
    pub carried: u64,
}

/// A packet whose fate is known.
#[derive(Clone, Copy, Debug)]
struct PacketRow {
    flow: u32,
    kind: Kind,
    sequence: u32,
    size: u32,
    /// Number of its media frame, and its RTP sequence number.
    media: Option<(u32, u16)>,
    sent: Time,
    /// When it arrived or died.
    ended: Time,
    queued: Span,
    /// `None`: arrived.
    death: Option<(Cause, u32)>,
}

/// A frame on its way: what its sender told, until its receiver tells the rest.
#[derive(Clone, Copy, Debug)]
struct FrameOpen {
    captured: Time,
    sent: FrameSent,
    fate: Option<FrameRecord>,
}

#[derive(Clone, Copy, Debug)]
struct DecisionRow {
    at: Time,
    flow: u32,
    target: Rate,
    pacing: Rate,
    window: Option<Size>,
}

/// Bytes of one packet for a capture file.
#[derive(Clone, Debug)]
pub struct Captured {
    /// When it was sent.
    pub at: Time,
    /// Whose it is.
    pub flow: FlowId,
    /// Whether it is RTCP.
    pub rtcp: bool,
    /// Its route, which tells the direction.
    pub route: u32,
    /// The bytes above UDP.
    pub bytes: Vec<u8>,
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
    /// For each node the place among the links, if it is one.
    link_of: Vec<Option<u32>>,
    link_stats: Vec<LinkStats>,
    stats: Vec<FlowStats>,
    series: Vec<Bins<Bin>>,
    decisions: Vec<DecisionRow>,
    last_decision: Vec<Option<(Rate, Rate, Option<Size>)>>,
    internal_names: Vec<String>,
    internals: Vec<(Time, u32, u32, f64)>,
    /// For each flow and kind (audio, video) the frames whose fate is open, in order of number.
    open: Vec<[VecDeque<FrameOpen>; 2]>,
    frames: Vec<FrameOpen>,
    rtcp: Vec<(Time, RtcpRecord)>,
    /// The members of sessions: the last flows.
    members: Vec<MemberInfo>,
    member_stats: Vec<MemberStats>,
    losses: Vec<(Time, LossRecord)>,
    queues: Vec<(Time, u32, Backlog)>,
    truth: Vec<(Time, u32, Rate)>,
    radio: Vec<(Time, RadioRecord)>,
    radio_users: Vec<String>,
    cells: Vec<(Time, CellRecord)>,
    packets: Vec<PacketRow>,
    captured: Vec<Captured>,
}

impl Recording {
    /// An empty recording of `flows` over `links` at `level`, with series in bins `bin` wide; what is
    /// sent before `warmup` does not enter the statistics.
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
        for (place, link) in links.iter().enumerate() {
            link_of[link.node.0 as usize] = Some(place as u32);
        }
        let series = if level >= Level::Series { vec![Bins::new(bin); count] } else { Vec::new() };
        Self {
            level,
            capture: false,
            bin,
            stats: vec![FlowStats::new(warmup); count],
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
            queues: Vec::new(),
            truth: Vec::new(),
            radio: Vec::new(),
            radio_users: Vec::new(),
            cells: Vec::new(),
            packets: Vec::new(),
            captured: Vec::new(),
        }
    }

    /// Keeps the bytes of every RTP and RTCP packet from now on.
    #[must_use]
    pub fn with_capture(mut self) -> Self {
        self.capture = true;
        self
    }

    /// Knows the users of a radio network by name from now on.
    #[must_use]
    pub fn with_radio_users(mut self, names: Vec<String>) -> Self {
        self.radio_users = names;
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

    /// Books how many bytes each node carried while the statistics ran.
    pub fn set_carried(&mut self, bytes: impl Fn(NodeId) -> u64) {
        for (link, stats) in self.links.iter().zip(&mut self.link_stats) {
            stats.carried = bytes(link.node);
        }
    }

    /// Books the true capacity of a link from `at` on.
    pub fn set_capacity(&mut self, at: Time, node: NodeId, rate: Rate) {
        self.truth.push((at, node.0, rate));
    }

    /// The packets kept for a capture file, in order of sending.
    #[must_use]
    pub fn captured(&self) -> &[Captured] {
        &self.captured
    }

    /// The hash of the whole recording.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut all = Digest::default();
        for stats in &self.stats {
            all.add(stats.digest.value());
        }
        all.value()
    }

    /// Books a frame whose story is complete, or will never be.
    fn close(&mut self, frame: FrameOpen) {
        let stats = &mut self.stats[frame.sent.flow.0 as usize];
        if frame.sent.video && stats.counts(frame.captured) {
            stats.frames_sent += 1;
            if let Some(rendered) = frame.fate.and_then(|fate| fate.rendered) {
                stats.frames_rendered += 1;
                stats.frame_delay.add(rendered - frame.captured);
            }
        } else if let (Some(fate), true) = (frame.fate, stats.counts(frame.captured)) {
            stats.speech.frame(fate.rendered.map(|rendered| rendered - frame.captured));
        }
        if self.level >= Level::Series {
            self.frames.push(frame);
        }
    }

    /// Ends the recording at `end`, which may be earlier than was planned.
    pub fn end(&mut self, end: Time) {
        for flow in &mut self.flows {
            flow.stop = flow.stop.min(end).max(flow.start);
        }
        self.truth.retain(|&(at, ..)| at < end);
    }

    /// Books the frames whose receiver never heard of them, when the run is over at `end`.
    pub fn close_frames(&mut self, end: Time) {
        for flow in 0..self.open.len() {
            for kind in 0..2 {
                for frame in std::mem::take(&mut self.open[flow][kind]) {
                    self.close(frame);
                    let stats = &mut self.stats[flow];
                    if !frame.sent.video && frame.fate.is_none() && stats.counts(frame.captured) {
                        stats.speech.unknown(frame.captured, end);
                    }
                }
            }
        }
    }

    fn row(&mut self, now: Time, packet: &Packet, death: Option<(Cause, u32)>) {
        if self.level == Level::Packets {
            let media = match packet.body {
                Body::Rtp(body) if packet.kind != Kind::Padding => Some((body.frame, body.sequence)),
                _ => None,
            };
            self.packets.push(PacketRow {
                flow: packet.flow.0,
                kind: packet.kind,
                sequence: packet.sequence,
                size: packet.size,
                media,
                sent: packet.sent,
                ended: now,
                queued: packet.queued,
                death,
            });
        }
    }
}

/// Tags that keep facts of different kinds apart in the digest.
mod tag {
    pub(super) const SENT: u64 = 1 << 56;
    pub(super) const ARRIVED: u64 = 2 << 56;
    pub(super) const DROPPED: u64 = 3 << 56;
    pub(super) const GOODPUT: u64 = 4 << 56;
    pub(super) const LATE: u64 = 5 << 56;
    pub(super) const DECISION: u64 = 6 << 56;
    pub(super) const FRAME: u64 = 7 << 56;
    pub(super) const FREEZE: u64 = 8 << 56;
    pub(super) const RTCP: u64 = 9 << 56;
    pub(super) const COPIED: u64 = 10 << 56;
    pub(super) const LOSS: u64 = 11 << 56;
    pub(super) const LOSS_REPORTED: u64 = 12 << 56;
    pub(super) const RECOVERED: u64 = 13 << 56;
}

fn identity(packet: &Packet) -> u64 {
    u64::from(packet.sequence) << 24 ^ u64::from(packet.size) << 4 ^ packet.kind as u64
}

impl Recorder for Recording {
    fn level(&self) -> Level {
        self.level
    }

    #[inline]
    fn sent(&mut self, now: Time, packet: &Packet) {
        let flow = packet.flow.0 as usize;
        let stats = &mut self.stats[flow];
        stats.digest.add_all([tag::SENT ^ identity(packet), now.as_nanos() as u64]);
        if packet.kind.is_feedback() {
            if stats.counts(now) {
                stats.feedback.add(packet);
            }
            return;
        }
        if stats.counts(now) {
            stats.sent.add(packet);
        }
        if let Some(bins) = self.series.get_mut(flow) {
            let bin = bins.at(now);
            bin.sent += u64::from(packet.size);
            bin.packets_sent += 1;
        }
    }

    fn copied(&mut self, now: Time, packet: &Packet) {
        let stats = &mut self.stats[packet.flow.0 as usize];
        stats.digest.add_all([tag::COPIED ^ identity(packet), now.as_nanos() as u64]);
    }

    #[inline]
    fn arrived(&mut self, now: Time, packet: &Packet) {
        let flow = packet.flow.0 as usize;
        let stats = &mut self.stats[flow];
        stats.digest.add_all([tag::ARRIVED ^ identity(packet), now.as_nanos() as u64]);
        if !packet.kind.is_feedback() {
            let delay = now - packet.sent;
            *stats.seconds.at(now) += u64::from(packet.size);
            if stats.counts(now) {
                stats.received.add(packet);
            }
            if stats.counts(packet.sent) {
                stats.arrived.add(packet);
                stats.delay.add(delay);
                stats.interarrival(now, delay, packet);
                stats.queued.add(packet.queued);
            }
            if let Some(bins) = self.series.get_mut(flow) {
                let bin = bins.at(now);
                bin.arrived += u64::from(packet.size);
                bin.packets_arrived += 1;
                bin.delay_sum += delay;
                bin.delay_max = bin.delay_max.max(delay);
                bin.queued_sum += packet.queued;
            }
        }
        self.row(now, packet, None);
    }

    fn dropped(&mut self, now: Time, packet: &Packet, node: NodeId, cause: Cause) {
        let flow = packet.flow.0 as usize;
        let stats = &mut self.stats[flow];
        stats.digest.add_all([
            tag::DROPPED ^ identity(packet),
            now.as_nanos() as u64,
            u64::from(node.0) << 8 | cause as u64,
        ]);
        if !packet.kind.is_feedback() {
            if stats.counts(packet.sent) {
                stats.dropped[cause as usize].add(packet);
                if let Some(link) = self.link_of[node.0 as usize] {
                    self.link_stats[link as usize].dropped[cause as usize].add(packet);
                }
            }
            if let Some(bins) = self.series.get_mut(flow) {
                bins.at(now).packets_lost += 1;
            }
        }
        self.row(now, packet, Some((cause, node.0)));
    }

    fn bytes(&mut self, now: Time, packet: &Packet, bytes: &[u8]) {
        self.captured.push(Captured {
            at: now,
            flow: packet.flow,
            rtcp: packet.kind == Kind::Rtcp,
            route: packet.route.0,
            bytes: bytes.to_vec(),
        });
    }

    fn wants_bytes(&self) -> bool {
        self.capture
    }

    fn goodput(&mut self, now: Time, flow: FlowId, bytes: Size) {
        let stats = &mut self.stats[flow.0 as usize];
        stats.digest.add_all([tag::GOODPUT ^ bytes.as_bytes(), now.as_nanos() as u64]);
        stats.goodput(now, bytes);
        if let Some(bins) = self.series.get_mut(flow.0 as usize) {
            bins.at(now).good += bytes.as_bytes();
        }
    }

    fn ended(&mut self, now: Time, flow: FlowId) {
        let info = &mut self.flows[flow.0 as usize];
        info.stop = info.stop.min(now);
    }

    fn late(&mut self, now: Time, flow: FlowId, packet: &Packet) {
        let stats = &mut self.stats[flow.0 as usize];
        stats.digest.add_all([tag::LATE ^ identity(packet), now.as_nanos() as u64]);
        if stats.counts(packet.sent) {
            stats.late += 1;
        }
    }

    // not in the digest: both follow from when frames came and packets left, which is
    #[inline]
    fn paced(&mut self, now: Time, flow: FlowId, waited: Span) {
        let stats = &mut self.stats[flow.0 as usize];
        if stats.counts(now) {
            stats.paced.add(waited);
        }
    }

    fn skipped(&mut self, now: Time, flow: FlowId, packets: u32, bytes: Size) {
        let stats = &mut self.stats[flow.0 as usize];
        if stats.counts(now) {
            stats.skipped_frames += 1;
            stats.skipped_packets += u64::from(packets);
            stats.skipped_bytes += bytes.as_bytes();
        }
    }

    fn decision(&mut self, now: Time, flow: FlowId, decision: &Decision) {
        let index = flow.0 as usize;
        let policy = (decision.target, decision.pacing, decision.window);
        if self.last_decision[index] == Some(policy) {
            return;
        }
        self.last_decision[index] = Some(policy);
        self.stats[index].digest.add_all([
            tag::DECISION ^ decision.target.as_bps(),
            decision.pacing.as_bps(),
            decision.window.map_or(u64::MAX, Size::as_bytes),
            now.as_nanos() as u64,
        ]);
        if self.level >= Level::Series {
            let (target, pacing, window) = policy;
            self.decisions.push(DecisionRow { at: now, flow: flow.0, target, pacing, window });
        }
    }

    fn internal(&mut self, now: Time, flow: FlowId, name: &str, value: f64) {
        if self.level < Level::Series {
            return;
        }
        let code = match self.internal_names.iter().position(|known| known == name) {
            Some(code) => code,
            None => {
                self.internal_names.push(name.to_owned());
                self.internal_names.len() - 1
            }
        };
        self.internals.push((now, flow.0, code as u32, value));
    }

    fn frame_sent(&mut self, now: Time, frame: &FrameSent) {
        let open = &mut self.open[frame.flow.0 as usize][usize::from(frame.video)];
        open.push_back(FrameOpen { captured: now, sent: *frame, fate: None });
    }

    fn frame(&mut self, now: Time, frame: &FrameRecord) {
        let flow = frame.flow.0 as usize;
        self.stats[flow].digest.add_all([
            tag::FRAME ^ u64::from(frame.frame) << 1 ^ u64::from(frame.video),
            frame.complete.map_or(u64::MAX, |at| at.as_nanos() as u64),
            frame.rendered.map_or(u64::MAX, |at| at.as_nanos() as u64),
            now.as_nanos() as u64,
        ]);
        let open = &mut self.open[flow][usize::from(frame.video)];
        let first = open.front().map_or(0, |front| front.sent.frame);
        let place = frame.frame.wrapping_sub(first) as usize;
        let Some(entry) = open.get_mut(place).filter(|entry| entry.sent.frame == frame.frame) else { return };
        entry.fate = Some(*frame);
        while let Some(done) =
            self.open[flow][usize::from(frame.video)].front().copied().filter(|f| f.fate.is_some())
        {
            self.open[flow][usize::from(frame.video)].pop_front();
            self.close(done);
        }
    }

    fn freeze(&mut self, now: Time, flow: FlowId, length: Span) {
        let stats = &mut self.stats[flow.0 as usize];
        stats.digest.add_all([tag::FREEZE ^ length.as_nanos() as u64, now.as_nanos() as u64]);
        if stats.counts(now) {
            stats.freezes += 1;
            stats.freeze_time += length;
        }
    }

    fn rtcp(&mut self, now: Time, rtcp: &RtcpRecord) {
        let stats = &mut self.stats[rtcp.flow.0 as usize];
        stats.digest.add_all([
            tag::RTCP ^ u64::from(rtcp.contents) << 32 ^ rtcp.size.as_bytes(),
            now.as_nanos() as u64,
        ]);
        if self.level >= Level::Series {
            self.rtcp.push((now, *rtcp));
        }
    }

    fn loss(&mut self, now: Time, loss: &LossRecord) {
        self.stats[loss.flow.0 as usize].digest.add_all([
            tag::LOSS
                ^ u64::from(loss.source.0) << 24
                ^ u64::from(loss.sequence) << 4
                ^ loss.reporting as u64,
            loss.detected.as_nanos() as u64,
            now.as_nanos() as u64,
        ]);
        self.add_loss(now, loss);
        if self.level >= Level::Series {
            self.losses.push((now, *loss));
        }
    }

    fn loss_reported(&mut self, now: Time, source: FlowId, delay: Span) {
        let stats = &mut self.stats[source.0 as usize];
        stats.digest.add_all([tag::LOSS_REPORTED ^ delay.as_nanos() as u64, now.as_nanos() as u64]);
        self.add_loss_reported(now, source, delay);
    }

    fn recovered(&mut self, now: Time, flow: FlowId, delay: Span) {
        let stats = &mut self.stats[flow.0 as usize];
        stats.digest.add_all([tag::RECOVERED ^ delay.as_nanos() as u64, now.as_nanos() as u64]);
        self.add_recovery(now, flow, delay);
    }

    // not in the digest: both follow from which packets left the radio network when, which is
    fn radio(&mut self, now: Time, radio: &RadioRecord) {
        if self.level >= Level::Series {
            self.radio.push((now, *radio));
        }
    }

    fn cell(&mut self, now: Time, cell: &CellRecord) {
        if self.level >= Level::Series {
            self.cells.push((now, *cell));
        }
    }

    fn backlog(&mut self, now: Time, node: NodeId, backlog: Backlog) {
        if self.level >= Level::Series {
            self.queues.push((now, node.0, backlog));
        }
    }
}
