//! Records the facts of a run as they come in.

use super::capture::Captured;
use super::{DecisionRow, Fate, FrameOpen, Recording};
use tidegate_core::control::Decision;

use tidegate_core::record::{
    Backlog, Breaker, CellRecord, EcnCheck, FrameRecord, FrameSent, LeastRate, LossRecord, Passing,
    RadioRecord, RepairRecord, RtcpRecord, VideoStep,
};
use tidegate_core::{Cause, FlowId, Level, NodeId, Packet, Rate, Recorder, Size, Span, Time};

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
    pub(super) const REPAIRED: u64 = 14 << 56;
    pub(super) const MARKED: u64 = 15 << 56;
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
            stats.repair.sent(packet);
        }
        self.targets.sent(now, flow, self.flows[flow].sharing, packet.size);
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
        if packet.duplicate {
            return;
        }
        if !packet.kind.is_feedback() {
            let delay = now - packet.sent;
            *stats.seconds.at(now) += u64::from(packet.size);
            if stats.counts(now) {
                stats.received.add(packet);
            }
            if stats.counts(packet.sent) {
                stats.arrived.add(packet);
                stats.repair.arrived(packet);
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
        self.row(now, packet, Fate::Arrived);
    }

    fn dropped(&mut self, now: Time, packet: &Packet, node: NodeId, cause: Cause) {
        let flow = packet.flow.0 as usize;
        let stats = &mut self.stats[flow];
        stats.digest.add_all([
            tag::DROPPED ^ identity(packet),
            now.as_nanos() as u64,
            u64::from(node.0) << 8 | cause as u64,
        ]);
        // a link counts every packet that died on it; a flow counts its own packets and not the feedback about them
        if stats.counts(packet.sent)
            && let Some(link) = self.link_of[node.0 as usize]
        {
            self.link_stats[link as usize].dropped[cause as usize].add(packet);
        }
        if packet.duplicate {
            return;
        }
        if !packet.kind.is_feedback() {
            if stats.counts(packet.sent) {
                stats.dropped[cause as usize].add(packet);
                stats.repair.lost(packet);
            }
            if let Some(bins) = self.series.get_mut(flow) {
                bins.at(now).packets_lost += 1;
            }
        }
        self.row(now, packet, Fate::Died(cause, node.0));
    }

    // not in the digest: it follows from the packets that were sent, and that arrived or died
    fn under_way(&mut self, packet: &Packet, node: NodeId) {
        self.row(Time::MAX, packet, Fate::UnderWay(node.0));
    }

    fn marked(&mut self, now: Time, packet: &Packet, node: NodeId) {
        let stats = &mut self.stats[packet.flow.0 as usize];
        stats.digest.add_all([tag::MARKED ^ identity(packet), now.as_nanos() as u64, u64::from(node.0)]);
        if stats.counts(packet.sent) {
            if let Some(link) = self.link_of[node.0 as usize] {
                self.link_stats[link as usize].marked += 1;
            }
            if !packet.kind.is_feedback() {
                stats.marked += 1;
            }
        }
        if let Some(bins) = self.series.get_mut(packet.flow.0 as usize).filter(|_| !packet.kind.is_feedback())
        {
            bins.at(now).packets_marked += 1;
        }
    }

    // not in the digest, which has the sending and arrival of packets
    fn captured(&mut self, now: Time, packet: &Packet, node: NodeId, passing: Passing) {
        let (flow, kind, datagram) = (packet.flow, packet.kind, packet.datagram.clone());
        self.captured.push(Captured { time: now, node, passing, flow, kind, datagram });
    }

    fn captures(&self) -> bool {
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
            stats.repair.late(packet);
        }
    }

    fn repaired(&mut self, now: Time, repair: &RepairRecord) {
        let stats = &mut self.stats[repair.flow.0 as usize];
        stats.digest.add_all([
            tag::REPAIRED
                ^ u64::from(repair.frame) << 24
                ^ u64::from(repair.sequence) << 8
                ^ u64::from(repair.in_time) << 4
                ^ repair.by as u64,
            now.as_nanos() as u64,
        ]);
        stats.repair.repaired(repair);
        if self.level == Level::Packets {
            self.repairs.push((now, *repair));
        }
    }

    // not in the digest: it follows from the link's settings, and the digest has its consequences
    fn bleached(&mut self, _now: Time, packet: &Packet, node: NodeId) {
        let stats = &self.stats[packet.flow.0 as usize];
        if let Some(link) = self.link_of[node.0 as usize].filter(|_| stats.counts(packet.sent)) {
            self.link_stats[link as usize].bleached += 1;
        }
    }

    // not in the digest: these follow from the times at which frames came and packets left, which it has
    #[inline]
    fn paced(&mut self, now: Time, flow: FlowId, waited: Span) {
        let stats = &mut self.stats[flow.0 as usize];
        if stats.counts(now) {
            stats.paced.add(waited);
            stats.below_least.waited(now, waited);
        }
    }

    fn skipped(&mut self, now: Time, flow: FlowId, packets: u32, bytes: Size) {
        let stats = &mut self.stats[flow.0 as usize];
        if stats.counts(now) {
            stats.skipped_frames += 1;
            stats.skipped_packets += u64::from(packets);
            stats.skipped_bytes += bytes.as_bytes();
            stats.below_least.skipped();
        }
    }

    // not in the digest: it follows from the decisions, which it has
    fn below_least(&mut self, now: Time, flow: FlowId, least: Option<LeastRate>) {
        self.stats[flow.0 as usize].set_below_least(now, least);
    }

    fn left_out(&mut self, now: Time, flow: FlowId) {
        let stats = &mut self.stats[flow.0 as usize];
        stats.captured(now, None);
        if stats.counts(now) {
            stats.left_out_frames += 1;
        }
    }

    // not in the digest: it follows from the settings
    fn video_switched(&mut self, now: Time, flow: FlowId, interval: Option<Span>) {
        self.stats[flow.0 as usize].video_switched(now, interval);
    }

    // not in the digest: it follows from the targets, and the digest has the frames that follow
    fn video_step(&mut self, now: Time, flow: FlowId, step: &VideoStep) {
        self.stats[flow.0 as usize].video_step(now, step);
    }

    // not in the digest, which has the packets that follow
    fn ecn_checked(&mut self, _now: Time, flow: FlowId, check: EcnCheck) {
        self.stats[flow.0 as usize].ecn_check = Some(check);
    }

    fn refused(&mut self, now: Time, flow: FlowId, count: u32) {
        let stats = &mut self.stats[flow.0 as usize];
        if stats.counts(now) {
            stats.refused += u64::from(count);
        }
    }

    // not in the digest: it follows from the reports, and watching changes nothing
    fn tripped(&mut self, now: Time, flow: FlowId, breaker: Breaker, stops: bool) {
        self.stats[flow.0 as usize].tripped.get_or_insert((now, breaker, stops));
    }

    fn decision(&mut self, now: Time, flow: FlowId, decision: &Decision) {
        let index = flow.0 as usize;
        let policy = (decision.target, decision.pacing, decision.window);
        if self.last_decision[index] == Some(policy) {
            return;
        }
        self.last_decision[index] = Some(policy);
        self.targets.decided(now, index, &self.flows[index], decision.target);
        self.stats[index].digest.add_all([
            tag::DECISION ^ decision.target.as_bps(),
            decision.pacing.as_bps(),
            decision.window.map_or(u64::MAX, Size::as_bytes),
            now.as_nanos() as u64,
        ]);
        if self.level >= Level::Series {
            let (target, pacing, window) = policy;
            self.decisions.push(DecisionRow { time: now, flow: flow.0, target, pacing, window });
        }
    }

    fn internal(&mut self, now: Time, flow: FlowId, name: &str, value: f64) {
        if self.level < Level::Series {
            return;
        }
        let code = match self.internal_names.iter().position(|internal| internal == name) {
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
        if frame.video {
            self.stats[frame.flow.0 as usize].captured(now, Some(frame.frame));
        }
    }

    fn frame(&mut self, now: Time, frame: &FrameRecord) {
        let flow = frame.flow.0 as usize;
        self.stats[flow].digest.add_all([
            tag::FRAME ^ u64::from(frame.frame) << 1 ^ u64::from(frame.video),
            frame.complete.map_or(u64::MAX, |time| time.as_nanos() as u64),
            frame.rendered.map_or(u64::MAX, |time| time.as_nanos() as u64),
            now.as_nanos() as u64,
        ]);
        let open = &mut self.open[flow][usize::from(frame.video)];
        let first = open.front().map_or(0, |front| front.sent.frame);
        let index = frame.frame.wrapping_sub(first) as usize;
        let Some(entry) = open.get_mut(index).filter(|entry| entry.sent.frame == frame.frame) else { return };
        entry.fate = Some(*frame);
        if let Some(due) = frame.due.filter(|_| frame.video) {
            self.stats[flow].whole.shown(due, frame.frame);
        }
        if frame.video && frame.rendered.is_some() {
            let stretch = self.stats[flow].viewing.shown(now, frame.frame);
            self.add_stretch(now, frame.flow, stretch);
        }
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
        if self.level >= Level::Series {
            self.freezes.push((now, flow, length));
        }
    }

    fn rtcp(&mut self, now: Time, rtcp: &RtcpRecord) {
        let stats = &mut self.stats[rtcp.flow.0 as usize];
        stats.digest.add_all([
            tag::RTCP ^ u64::from(rtcp.contents.bits()) << 32 ^ rtcp.size.as_bytes(),
            now.as_nanos() as u64,
        ]);
        if stats.counts(now) {
            stats.repair.rtcp(rtcp);
        }
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

    // not in the digest: both follow from the times at which packets left the radio network, which it has
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

    fn capacity(&mut self, from: Time, node: NodeId, rate: Rate) {
        if self.level >= Level::Series {
            self.truth.push((from, node.0, rate));
        }
    }

    fn capacities(&mut self, from: Time, to: Time, rates: &[(NodeId, Rate)]) {
        self.targets.end_interval(&self.flows, (from, to), rates);
    }

    fn backlog(&mut self, now: Time, node: NodeId, backlog: Backlog) {
        if self.level >= Level::Series {
            self.queues.push((now, node.0, backlog));
        }
    }

    fn queue_part(&mut self, now: Time, node: NodeId, part: &'static str, backlog: Backlog) {
        if self.level >= Level::Series {
            self.parts.push((now, node.0, part, backlog));
        }
    }
}
