//! RACK-TLP (RFC 8985): losses found by the times at which segments left, and a probe where acknowledgements stay away.
//!
//! Names of fields are those of the RFC. Where it leaves a choice it is Linux's (`net/ipv4/tcp_recovery.c`,
//! `tcp_schedule_loss_probe` and `tcp_process_tlp_ack`), as are the round trips that it samples
//! (`tcp_clean_rtx_queue`).

use super::algorithm::Recovery;
use super::flight::{Flight, Segment};
use super::prr::Prr;
use super::sack::{DUP_THRESH, NextSeg, Scoreboard};
use super::sender::{Phase, TcpSender};
use super::window::Window;
use std::collections::VecDeque;
use tidegate_core::datagram::SackBlocks;
use tidegate_core::{Outbox, Span, Time};

/// Recoveries without a needless copy after which the reordering window is the first one again (RFC 8985 section 6.2,
/// step 4).
const REO_WND_PERSIST: u32 = 16;
/// The largest multiple of a quarter of the round trip (Linux's `tcp_rack_update_reo_wnd`).
const MAX_REO_WND_MULT: u32 = 255;
/// Time after which the smallest round trip is measured anew (Linux's `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);
/// TLP.max_ack_delay: Linux's least timeout, `TCP_RTO_MIN`.
const MAX_ACK_DELAY: Span = Span::from_millis(200);
/// The addition to two round trips with several segments under way, Linux's `TCP_TIMEOUT_MIN`: two ticks of its clock.
const TIMEOUT_MIN: Span = Span::from_millis(2);
/// The probe's timeout before any round trip is known (RFC 8985 section 7.2).
const INITIAL_PTO: Span = Span::from_secs(1);

/// The round trips that an acknowledgement measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RttSample {
    /// Of the segment that left first, for the timeout: delayed acknowledgements are part of it.
    pub(super) oldest: Span,
    /// Of the segment that left last, for congestion control.
    pub(super) latest: Span,
}

/// The first and the last departure of some of the segments that an acknowledgement delivers.
#[derive(Clone, Copy, Debug, Default)]
struct Departures {
    first: Option<Time>,
    last: Option<Time>,
}

impl Departures {
    fn add(&mut self, sent: Time) {
        self.first.get_or_insert(sent);
        self.last = Some(sent);
    }
}

/// A segment that left.
#[derive(Clone, Copy, Debug)]
struct Departure {
    number: u64,
    sent: Time,
    /// The segment's first byte.
    start: u64,
}

/// A loss probe under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    /// TLP.end_seq: one past the highest byte sent with it.
    end: u64,
    /// TLP.is_retrans.
    is_retransmission: bool,
}

/// The state of RFC 8985 section 5.3 of one connection, updated with every acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Departures in order. Those of segments that have arrived, count as lost or were sent again are stale, and are
    /// removed when they come to the front.
    departures: VecDeque<Departure>,
    /// Number of departures so far, and of the last one whose segment has arrived. The RFC compares RACK.xmit_ts and, where
    /// clocks are too coarse, RACK.end_seq; the order itself is known here.
    count: u64,
    latest: u64,
    /// RACK.rtt.
    rtt: Span,
    /// RACK.min_RTT, and the time of its measurement.
    min_rtt: Option<(Span, Time)>,
    /// RACK.fack.
    fack: u64,
    reordering_seen: bool,
    /// RACK.dsack_round, RACK.reo_wnd_mult less one, and RACK.reo_wnd_persist.
    dsack_round: Option<u64>,
    reo_wnd_more: u32,
    reo_wnd_persist: u32,
    /// The end of the reordering timer.
    reorder_deadline: Option<Time>,
    /// The end of the timer of the next probe, the probe under way, and whether a round trip was measured since it.
    probe_deadline: Option<Time>,
    probe: Option<Probe>,
    awaits_sample: bool,
    /// Of this acknowledgement: bytes delivered, the departures of segments that it acknowledges, and whether one of them was
    /// sent again, and the departures of segments that it SACKs and that were sent once.
    delivered: u64,
    acked: Departures,
    sacked: Departures,
    repeated_acked: bool,
}

impl Rack {
    /// The state at the beginning of a connection with this recovery.
    pub(super) fn of(recovery: Recovery) -> Option<Self> {
        (recovery == Recovery::Rack).then(Self::default)
    }

    /// Takes note of a segment that leaves at `sent`; returns the number of the departure.
    #[inline]
    pub(super) fn sent(&mut self, sent: Time, start: u64) -> u64 {
        self.count += 1;
        self.departures.push_back(Departure { number: self.count, sent, start });
        self.count
    }

    /// Takes note of a segment that is SACKed for the first time.
    pub(super) fn sacked(&mut self, now: Time, segment: &Segment) {
        if !segment.repeated {
            self.sacked.add(segment.sent);
        }
        self.delivered(now, segment);
    }

    /// Takes note of a segment that is acknowledged.
    #[inline]
    pub(super) fn acknowledged(&mut self, now: Time, segment: &Segment) {
        self.repeated_acked |= segment.repeated;
        if segment.sacked {
            return;
        }
        self.acked.add(segment.sent);
        self.delivered(now, segment);
    }

    /// Takes note of a segment that has arrived (steps 2 and 3).
    #[inline]
    fn delivered(&mut self, now: Time, segment: &Segment) {
        self.delivered += u64::from(segment.length);
        self.reordering_seen |= !segment.repeated && segment.end() < self.fack;
        self.fack = self.fack.max(segment.end());
        let rtt = now - segment.sent;
        // such a copy was needless: what arrived is the one before it
        if segment.repeated && self.min_rtt.is_some_and(|(least, _)| rtt < least) {
            return;
        }
        self.rtt = rtt;
        self.latest = self.latest.max(segment.departure);
    }

    /// The round trips that this acknowledgement measures, of segments that were sent once (Karn; RFC 6298 section 3).
    pub(super) fn take_sample(&mut self, now: Time) -> Option<RttSample> {
        let (acked, sacked) = (std::mem::take(&mut self.acked), std::mem::take(&mut self.sacked));
        let is_repeated = std::mem::take(&mut self.repeated_acked);
        // what is acknowledged goes first for the timeout, and what is SACKed for congestion control, as in Linux
        let oldest = acked.first.filter(|_| !is_repeated).or(sacked.first)?;
        let latest = sacked.last.or(acked.last)?;
        let sample = RttSample { oldest: now - oldest, latest: now - latest };
        self.measured(now, sample.latest);
        Some(sample)
    }

    /// The bytes that this acknowledgement delivered.
    pub(super) fn take_delivered(&mut self) -> u64 {
        std::mem::take(&mut self.delivered)
    }

    /// Takes in a round trip (step 1).
    pub(super) fn measured(&mut self, now: Time, rtt: Span) {
        self.awaits_sample = false;
        if self.min_rtt.is_none_or(|(least, since)| rtt <= least || now > since + MIN_RTT_WINDOW) {
            self.min_rtt = Some((rtt, now));
        }
    }

    /// The needless copy that the `blocks` of an acknowledgement up to `ack` tell of: the first of them is below `ack`, or
    /// inside the second (RFC 2883 section 4). The reordering window then grows, once a round trip (step 4); bytes up to
    /// `max` are sent.
    pub(super) fn duplicate(
        &mut self,
        ack: u64,
        blocks: &SackBlocks,
        position: impl Fn(u32) -> Option<u64>,
        max: u64,
    ) -> Duplicate {
        let at = |(start, end): (u32, u32)| Some((position(start)?, position(end)?));
        let (Some((start, end)), second) = (at(blocks[0]), at(blocks[1])) else { return Duplicate::None };
        let is_inside =
            blocks[1] != (0, 0) && second.is_some_and(|second| second.0 <= start && end <= second.1);
        if end > ack && !is_inside {
            return Duplicate::None;
        }
        if self.dsack_round.is_none_or(|round| ack >= round) {
            self.dsack_round = Some(max);
            self.reo_wnd_more = (self.reo_wnd_more + 1).min(MAX_REO_WND_MULT - 1);
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
        Duplicate::Copy(end)
    }

    /// Takes note of the end of a recovery (step 4).
    pub(super) fn recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_more = 0;
        }
    }

    /// RACK.reo_wnd (step 4).
    fn reordering_window(&self, in_recovery: bool, segments_sacked: u64, srtt: Option<Span>) -> Span {
        if !self.reordering_seen && (in_recovery || segments_sacked >= u64::from(DUP_THRESH)) {
            return Span::ZERO;
        }
        let least = self.min_rtt.map_or(Span::ZERO, |(least, _)| least);
        (least * i64::from(self.reo_wnd_more + 1) / 4).min(srtt.unwrap_or(least))
    }

    /// Marks segments as lost before which another one left that has arrived, and sets the timer for those that may
    /// still come (step 5). Returns whether a segment was marked that had been sent again.
    #[inline]
    pub(super) fn detect_losses(
        &mut self,
        now: Time,
        flight: &mut Flight,
        board: &mut Scoreboard,
        in_recovery: bool,
        srtt: Option<Span>,
    ) -> bool {
        self.reorder_deadline = None;
        let window = self.reordering_window(in_recovery, board.segments_sacked(), srtt);
        let mut lost_again = false;
        let mut waiting = Vec::new();
        while let Some(&departure) = self.departures.front().filter(|first| first.number <= self.latest) {
            self.departures.pop_front();
            if departure.start < flight.una() {
                continue;
            }
            let index = flight.index_from(departure.start);
            let is_last =
                |segment: &&Segment| segment.departure == departure.number && segment.is_under_way();
            let Some(segment) = flight.get(index).filter(is_last) else { continue };
            let due = departure.sent + self.rtt + window;
            if due <= now {
                lost_again |= segment.resent;
                board.lose(flight, index);
            } else {
                self.reorder_deadline = self.reorder_deadline.max(Some(due));
                waiting.push(departure);
            }
        }
        if self.reorder_deadline.is_some() {
            // one timer at a time (section 8)
            self.probe_deadline = None;
        }
        for departure in waiting.into_iter().rev() {
            self.departures.push_front(departure);
        }
        lost_again
    }

    /// Marks segments as lost when the retransmission timer goes off (section 6.3).
    pub(super) fn timeout(
        &mut self,
        now: Time,
        flight: &mut Flight,
        board: &mut Scoreboard,
        srtt: Option<Span>,
    ) {
        self.stop_probing();
        self.reorder_deadline = None;
        let wait = self.rtt + self.reordering_window(true, board.segments_sacked(), srtt);
        board.timeout_by_time(flight, |segment| segment.sent + wait <= now);
    }

    /// Forgets the probes when a recovery begins (section 7.1).
    pub(super) fn stop_probing(&mut self) {
        (self.probe, self.probe_deadline) = (None, None);
    }

    /// Starts the timer of the next probe (section 7.2), with `segments` under way; at `timeout` the retransmission
    /// timer would go off.
    #[inline]
    pub(super) fn schedule_probe(
        &mut self,
        now: Time,
        segments: usize,
        srtt: Option<Span>,
        timeout: Option<Time>,
    ) {
        self.probe_deadline = None;
        if segments == 0 || self.probe.is_some() || self.awaits_sample || self.reorder_deadline.is_some() {
            return;
        }
        let wait = srtt
            .map_or(INITIAL_PTO, |srtt| srtt * 2 + if segments == 1 { MAX_ACK_DELAY } else { TIMEOUT_MIN });
        let due = now + wait;
        self.probe_deadline = Some(timeout.map_or(due, |timeout| due.min(timeout)));
    }

    /// Takes note of a probe that was sent, after which bytes up to `end` are sent (section 7.3).
    pub(super) fn probed(&mut self, end: u64, is_retransmission: bool) {
        self.probe = Some(Probe { end, is_retransmission });
        self.awaits_sample = true;
        self.probe_deadline = None;
    }

    /// Handles an acknowledgement of the bytes up to `ack` while a probe is under way (section 7.4). Returns whether the
    /// probe repaired a loss, to which congestion control has to respond.
    #[inline]
    pub(super) fn probe_acknowledged(&mut self, ack: u64, duplicate: Duplicate) -> bool {
        let Some(probe) = self.probe.filter(|probe| ack >= probe.end) else { return false };
        let repaired = probe.is_retransmission && duplicate != Duplicate::Copy(probe.end) && ack > probe.end;
        let arrived_twice = duplicate == Duplicate::Copy(probe.end) || duplicate == Duplicate::Plain;
        if !probe.is_retransmission || repaired || arrived_twice {
            self.probe = None;
        }
        repaired
    }

    /// The end of the reordering timer, or of the timer of the next probe.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.reorder_deadline.or(self.probe_deadline)
    }

    /// The timer that has gone off, which is then stopped.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Timer> {
        if self.reorder_deadline.take_if(|due| *due <= now).is_some() {
            return Some(Timer::Reordering);
        }
        self.probe_deadline.take_if(|due| *due <= now).map(|_| Timer::Probe)
    }
}

/// The needless copy that an acknowledgement tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicate {
    /// None: it says something new.
    None,
    /// A D-SACK of a segment with this end (RFC 2883).
    Copy(u64),
    /// An acknowledgement without anything new, and without blocks.
    Plain,
}

/// A timer of RFC 8985.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The RACK reordering timer.
    Reordering,
    /// The timer of the next probe (PTO).
    Probe,
}

impl TcpSender {
    /// Takes in the round trips that an acknowledgement measures; returns that of congestion control. Its timestamp
    /// measures the round trip `stamped`, which counts if there is no other.
    pub(super) fn sampled(&mut self, now: Time, stamped: Option<Span>) -> Option<Span> {
        let rack = self.rack.as_mut()?;
        let Some(sample) = rack.take_sample(now) else {
            let rtt = stamped?;
            rack.measured(now, rtt);
            self.rtt.sample(rtt);
            self.control.measured(&mut self.window, now, rtt, self.flight.una(), self.flight.max());
            return Some(rtt);
        };
        self.rtt.sample(sample.oldest);
        // an acknowledgement that advances restarts the timer anyway; after data that left later than the first segment it
        // would go on for ever (Linux's `tcp_clean_rtx_queue`)
        if self.flight.get(0).is_some_and(|first| now - first.sent < sample.oldest) {
            self.arm(now);
        }
        self.control.measured(&mut self.window, now, sample.latest, self.flight.una(), self.flight.max());
        Some(sample.latest)
    }

    /// Handles what an acknowledgement up to `ack` tells of losses, with RACK; `advances` if it acknowledges new data.
    pub(super) fn repair(&mut self, now: Time, ack: u64, advances: bool, duplicate: Duplicate) {
        let Some(rack) = &mut self.rack else { return };
        let delivered = rack.take_delivered();
        if rack.probe_acknowledged(ack, duplicate) && self.phase == Phase::Open {
            self.reduce();
            self.control.fall(&mut self.window);
        }
        let more_lost = self.detect_losses(now);
        self.limit(delivered, advances && !more_lost);
    }

    /// Marks what is lost by now, and begins to repair it. Returns whether anything was marked.
    fn detect_losses(&mut self, now: Time) -> bool {
        let (Some(rack), Some(board)) = (&mut self.rack, &mut self.board) else { return false };
        let before = board.lost();
        let in_recovery = self.phase != Phase::Open;
        let lost_again = rack.detect_losses(now, &mut self.flight, board, in_recovery, self.rtt.srtt());
        let begins = match self.phase {
            Phase::Open => board.lost_out() > 0,
            // what was sent again after a timeout is lost, too
            Phase::Timeout => lost_again,
            Phase::Recovery => false,
        };
        let marked = board.lost() > before;
        if let Some(deadline) = rack.deadline() {
            self.check_by(deadline);
        }
        if begins {
            let flight = (self.flight_size() as f64).min(self.window.cwnd);
            self.reduce();
            self.recover = Some(self.flight.max());
            self.phase = Phase::Recovery;
            // a model of the path sets its window itself
            self.prr = self.control.model().is_none().then(|| Prr::new(flight));
            if let Some(rack) = &mut self.rack {
                rack.stop_probing();
            }
        }
        marked
    }

    /// Sets the window in a recovery, after an acknowledgement that `delivered` so many bytes.
    fn limit(&mut self, delivered: u64, is_safe: bool) {
        if let (Some(prr), Some(board), true) = (&mut self.prr, &self.board, delivered > 0) {
            let Window { ssthresh, segment, .. } = self.window;
            let window = prr.window(ssthresh, board.pipe(), delivered, is_safe, segment);
            self.window.cwnd = window.max(segment);
        }
    }

    /// Handles the reordering timer: what it waited for is lost.
    pub(super) fn reordering_timeout(&mut self, now: Time, out: &mut Outbox) {
        let before = self.phase;
        self.detect_losses(now);
        self.note_losses(now);
        if self.phase != before {
            // as an acknowledgement of one segment (Linux's `tcp_rack_reo_timeout`)
            self.limit(u64::from(self.settings.segment), false);
        }
        self.fill(now, out);
    }

    /// Starts the timer of the next probe, unless a repair is under way (RFC 8985 section 7.2).
    pub(super) fn schedule_probe(&mut self, now: Time) {
        let (Some(rack), Some(board)) = (&mut self.rack, &self.board) else { return };
        if self.phase != Phase::Open || board.segments_sacked() > 0 {
            return;
        }
        rack.schedule_probe(now, self.flight.len(), self.rtt.srtt(), self.deadline);
        if let Some(deadline) = rack.deadline() {
            self.check_by(deadline);
        }
    }

    /// Sends a probe: new data if there are any, otherwise the last segment again (RFC 8985 section 7.3).
    pub(super) fn send_probe(&mut self, now: Time, out: &mut Outbox) {
        let length = self.new_segment();
        if let Some(length) = length {
            self.send_new(now, length, out);
        } else if let (Some(last), Some(board)) = (self.flight.highest_missing(), &mut self.board) {
            board.repeated(&mut self.flight, NextSeg::Rescue(last), 0);
            self.repeat(now, last, out);
        } else {
            return;
        }
        if let Some(rack) = &mut self.rack {
            rack.probed(self.flight.max(), length.is_none());
        }
        self.arm(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery::Snapshot;
    use super::*;

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    /// Section 6.3: the first segment is lost, and the others if they left a round trip ago.
    #[test]
    fn a_timeout_means_what_left_a_round_trip_ago() {
        let (mut rack, mut flight) = (Rack::default(), Flight::new());
        let mut board = Scoreboard::of(Recovery::Rack, 100, false).unwrap();
        for sent in [0, 0, 290, 190, 0] {
            let departure = rack.sent(ms(sent), flight.max());
            flight.push(ms(sent), departure, 100, Snapshot::default());
            board.sent(100);
        }
        board.update(&mut flight, [(400, 500)].into_iter(), |segment| rack.sacked(ms(100), segment));
        rack.timeout(ms(300), &mut flight, &mut board, Some(Span::from_millis(100)));
        let lost: Vec<_> = (0..5).map(|index| flight.get(index).unwrap().lost).collect();
        assert_eq!(lost, [true, true, false, true, false]);
        assert_eq!((board.pipe(), board.lost_out(), board.segments_sacked()), (100, 300, 1));
        // the first is lost again although it was not sent again; it counts once
        rack.timeout(ms(320), &mut flight, &mut board, Some(Span::from_millis(100)));
        assert_eq!((board.pipe(), board.lost_out(), board.lost()), (100, 300, 300));
    }

    /// Step 4 of section 6.2: the window is the first one again after 16 recoveries without a D-SACK.
    #[test]
    fn the_window_shrinks_after_sixteen_recoveries() {
        let mut rack = Rack::default();
        rack.measured(ms(0), Span::from_millis(100));
        let window = |rack: &Rack| rack.reordering_window(false, 0, Some(Span::from_millis(200)));
        let position = |number: u32| Some(u64::from(number));
        assert_eq!(rack.duplicate(100, &[(0, 100), (0, 0), (0, 0)], position, 200), Duplicate::Copy(100));
        for _ in 0..16 {
            assert_eq!(window(&rack), Span::from_millis(50));
            rack.recovered();
        }
        assert_eq!(window(&rack), Span::from_millis(25));
    }

    /// RFC 2883 section 4: a copy is below the acknowledgement, or inside the second block.
    #[test]
    fn copies_are_told_from_new_data() {
        let tells =
            |ack, blocks| Rack::default().duplicate(ack, blocks, |number| Some(u64::from(number)), 900);
        assert_eq!(tells(100, &[(200, 300), (0, 0), (0, 0)]), Duplicate::None);
        assert_eq!(tells(100, &[(200, 300), (400, 500), (0, 0)]), Duplicate::None);
        assert_eq!(tells(100, &[(200, 300), (200, 400), (0, 0)]), Duplicate::Copy(300));
        assert_eq!(tells(300, &[(200, 300), (400, 500), (0, 0)]), Duplicate::Copy(300));
        assert_eq!(tells(250, &[(200, 300), (0, 0), (0, 0)]), Duplicate::None);
    }
}
