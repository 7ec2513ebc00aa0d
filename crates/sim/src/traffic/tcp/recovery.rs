//! The sender's reaction to acknowledgements: round trips, duplicates, recovery of each variant, and the timeout.
//!
//! The sender is in two files: `sender.rs` decides which segments leave and when, this one handles acknowledgements.

use super::RttSampling;
use super::algorithm::Recovery;
use super::flight::Segment;
use super::model::{AckEvent, LossEvent};
use super::rack::Duplicate;
use super::sack::{DUP_THRESH, NextSeg, Scoreboard};
use super::sender::{Opening, Phase, TcpSender};
use super::stamps;
use tidegate_core::datagram::TcpBody;
use tidegate_core::{Datagram, Outbox, Span, Time};

impl TcpSender {
    /// Takes in the header of a packet from the receiver.
    pub(super) fn acknowledgement(
        &mut self,
        now: Time,
        body: TcpBody,
        datagram: &Datagram,
        out: &mut Outbox,
    ) {
        let Some(ack) = self.numbering.position(body.ack, self.flight.una()) else { return };
        // an acknowledgement of data that was never sent, or one that others overtook, is ignored (RFC 9293
        // section 3.10.7.4)
        if ack > self.flight.max() || ack < self.flight.una() {
            return;
        }
        let timestamps = datagram.timestamps();
        self.stamp = timestamps.map_or(self.stamp, |timestamps| timestamps.value);
        if let Some(opening) = self.opening {
            if body.flags & TcpBody::SYN != 0 {
                self.rcv_nxt = body.sequence.wrapping_add(1);
                if self.settings.options {
                    // both ends must send the option (RFC 7323 section 2.2), and our SYN had it; the window of a SYN
                    // is not shifted
                    self.scale = datagram.opening().scale.unwrap_or(0);
                    self.receive_window = u64::from(body.window);
                }
                self.marking.accept(body.flags);
                self.opened(now, opening, out);
            }
            return;
        }
        if body.flags & TcpBody::SYN != 0 {
            // the answer to a SYN that was sent twice: it has no new information, and its window is not shifted
            return;
        }
        let window = u64::from(body.window) << self.scale;
        let same_window = self.receive_window == window;
        self.receive_window = window;
        let prior_in_flight = self.board.as_ref().map_or(0, Scoreboard::pipe);
        let mut newly_sacked = false;
        let advances = ack > self.flight.una();
        let mut duplicate = if advances { Duplicate::None } else { Duplicate::Plain };
        if let (Some(board), Some(blocks)) = (&mut self.board, datagram.sack()) {
            let (numbering, una) = (self.numbering, self.flight.una());
            if let Some(rack) = &mut self.rack {
                duplicate =
                    rack.duplicate(ack, blocks, |number| numbering.position(number, una), self.flight.max());
            }
            let blocks = blocks.iter().filter(|(start, end)| start != end).filter_map(|&(start, end)| {
                Some((numbering.position(start, una)?, numbering.position(end, una)?))
            });
            newly_sacked = board.update(&mut self.flight, blocks, |segment| {
                if let Some(delivery) = &mut self.delivery {
                    delivery.arrived(now, segment);
                }
                if let Some(rack) = &mut self.rack {
                    rack.sacked(now, segment);
                }
            });
        }
        let echo = self.marking.is_on() && body.flags & TcpBody::ECE != 0;
        if ack > self.flight.una() {
            // RFC 8257 section 3.3: the estimate is updated first (steps 1 to 8), then the window falls by it
            self.control.echoed(now, ack - self.flight.una(), ack, self.flight.max(), echo);
        }
        if echo && self.phase == Phase::Open && self.marking.needs_response(ack) {
            self.marked(now);
        }
        let mut rtt = None;
        if advances {
            let stamped = timestamps.and_then(|timestamps| stamps::round_trip(now, timestamps.echo));
            rtt = self.advanced(now, ack, echo, stamped, out);
        } else if self.rack.is_some() {
            rtt = self.sampled(now, None);
        } else if self.board.is_some() {
            // RFC 6675 section 2: a duplicate is an acknowledgement that SACKs new data beyond the hole
            if newly_sacked {
                self.duplicate(now, out);
            }
        } else if same_window
            && !self.flight.is_empty()
            && body.length == 0
            && body.flags & !TcpBody::ECE == TcpBody::ACK
        {
            // RFC 5681 section 2
            self.duplicate(now, out);
        }
        self.repair(now, ack, advances, duplicate);
        self.model(now, prior_in_flight, rtt);
        let max = self.flight.max();
        self.fill(now, out);
        if advances && self.flight.max() == max {
            // with new data the probe's timer has begun anew
            self.schedule_probe(now);
        }
    }

    /// Tells the model of the path, if there is one, of segments that were counted as lost.
    pub(super) fn note_losses(&mut self, now: Time) {
        let (Some(delivery), Some(board)) = (&self.delivery, &mut self.board) else { return };
        let Some(model) = self.control.model() else { return };
        let in_flight = board.pipe();
        for loss in board.drain_losses() {
            let loss_event = LossEvent {
                now,
                loss,
                delivered: delivery.delivered(),
                in_flight,
                cwnd: self.window.cwnd,
                phase: self.phase,
            };
            model.lost(&loss_event, &mut self.luck);
        }
    }

    /// Updates the model of the path, if there is one, with this acknowledgement.
    fn model(&mut self, now: Time, prior_in_flight: u64, rtt: Option<Span>) {
        self.note_losses(now);
        let (Some(delivery), Some(board)) = (&mut self.delivery, &self.board) else { return };
        let Some(model) = self.control.model() else { return };
        let latest = delivery.latest();
        let (acked, sample) = delivery.take_rate_sample(model.shortest_interval());
        let ack_event = AckEvent {
            now,
            acked,
            delivered: delivery.delivered(),
            lost: board.lost(),
            prior_in_flight,
            in_flight: board.pipe(),
            latest,
            sample,
            rtt,
            phase: self.phase,
        };
        model.acked(&ack_event, &mut self.window.cwnd, &mut self.luck);
        if model.is_probing_rtt() {
            delivery.limited(board.pipe());
        }
    }

    fn opened(&mut self, now: Time, opening: Opening, out: &mut Outbox) {
        self.opening = None;
        self.disarm();
        if opening.repeated {
            self.rtt.lost_syn();
            // start with one segment (RFC 5681 section 3.1)
            self.window.cwnd = self.window.segment;
        } else {
            self.rtt.sample(now - opening.sent);
            if let Some(rack) = &mut self.rack {
                rack.measured(now, now - opening.sent);
            }
            if let Some(model) = self.control.model() {
                model.opened(now, now - opening.sent, self.window.cwnd);
            }
        }
        self.fill(now, out);
    }

    /// Responds to a mark as to a loss, except that no segment has to be sent again (RFC 3168 section 6.1.2).
    fn marked(&mut self, now: Time) {
        let flight = self.flight_size();
        if self.control.marked(&mut self.window, now, flight) {
            self.marking.reduced(self.flight.max());
        }
    }

    /// Handles an acknowledgement of new data up to `ack`; with a mark (`echo`) the window does not grow by it. Its
    /// timestamp measures the round trip `stamped`.
    /// Returns the round trip that it measured.
    fn advanced(
        &mut self,
        now: Time,
        ack: u64,
        echo: bool,
        stamped: Option<Span>,
        out: &mut Outbox,
    ) -> Option<Span> {
        let before = self.flight.una();
        let flight = self.flight_size();
        // no room for another segment, or not for a burst: the window limited the sender
        let in_use = flight as f64 + f64::from(self.settings.segment) > self.window.cwnd || self.defers;
        let rtt = self.measure(now, ack, stamped);
        let acked = self.flight.una() - before;
        let (cwnd, segment) = (self.window.cwnd, f64::from(self.settings.segment));
        assert!(
            cwnd.is_finite() && cwnd >= segment,
            "a window of {cwnd} bytes, less than a segment of {segment}"
        );
        self.duplicates = 0;
        if self.flight.is_empty() {
            self.disarm();
        }
        let covered = self.recover.is_none_or(|recover| self.flight.una() >= recover);
        match self.phase {
            Phase::Recovery if self.recovery == Recovery::NewReno && !covered => {
                self.partial(now, acked, out);
                return rtt;
            }
            Phase::Recovery if self.recovery == Recovery::Reno || covered => self.recovered(),
            Phase::Recovery => {}
            Phase::Open | Phase::Timeout => {
                if in_use && echo {
                    // RFC 3168 section 6.1.2
                } else if in_use {
                    self.control.grow(&mut self.window, now, acked, self.rtt.srtt());
                } else {
                    self.control.not_in_use();
                }
                if covered && self.phase == Phase::Timeout {
                    self.phase = Phase::Open;
                    if let Some(rack) = &mut self.rack {
                        rack.recovered();
                    }
                }
            }
        }
        if self.flight.is_empty() {
            self.check_completed(now, out);
        } else {
            // RFC 6298 section 5.3
            self.arm(now);
        }
        rtt
    }

    /// Bytes sent and not yet acknowledged; without SACK only those sent since the last go-back.
    pub(super) fn flight_size(&self) -> u64 {
        match self.board {
            Some(_) => self.flight.unacknowledged(),
            None => self.flight.outstanding(),
        }
    }

    /// Takes the acknowledged segments off the flight, and measures a round trip from the last of them unless one
    /// was sent twice (Karn) or waited behind a hole; then the timestamp's counts (RFC 7323 section 4, and as in Linux only
    /// then).
    fn measure(&mut self, now: Time, ack: u64, stamped: Option<Span>) -> Option<Span> {
        let mut last = None;
        let mut unambiguous = true;
        let visit = |segment: &Segment| {
            unambiguous &= !segment.repeated && !segment.sacked;
            if let Some(rack) = &mut self.rack {
                rack.acknowledged(now, segment);
            }
            if let (Some(delivery), false) = (&mut self.delivery, segment.sacked) {
                delivery.arrived(now, segment);
            }
            last = Some(segment.sent);
        };
        match &mut self.board {
            Some(board) => board.acknowledge(&mut self.flight, ack, visit),
            None => self.flight.acknowledge(ack, visit),
        }
        if self.rack.is_some() {
            return self.sampled(now, stamped);
        }
        let sent = match self.settings.rtt_sampling {
            RttSampling::PerAck => last.filter(|_| unambiguous),
            RttSampling::OneAtATime => self.timed.take_if(|(end, _)| *end <= ack).map(|(_, sent)| sent),
        };
        let rtt = sent.map(|sent| now - sent).or(stamped);
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
            self.control.measured(&mut self.window, now, rtt, self.flight.una(), self.flight.max());
        }
        rtt
    }

    /// Handles NewReno's partial acknowledgement: repairs the next hole (RFC 6582 section 3.2 step 3).
    fn partial(&mut self, now: Time, acked: u64, out: &mut Outbox) {
        let segment = u64::from(self.settings.segment);
        self.repeat(now, 0, out);
        // deflate by the bytes that left the network, except for the segment that was just sent
        let deflation = if acked >= segment { acked - segment } else { acked };
        self.window.cwnd = (self.window.cwnd - deflation as f64).max(segment as f64);
        // the impatient variant: only the first partial acknowledgement restarts the timer (section 4)
        if !std::mem::replace(&mut self.partial_seen, true) {
            self.arm(now);
        }
    }

    /// Ends recovery: all data under way at its beginning has arrived.
    fn recovered(&mut self) {
        self.phase = Phase::Open;
        self.control.fall(&mut self.window);
        self.prr = None;
        if let Some(rack) = &mut self.rack {
            rack.recovered();
        }
        if self.recovery == Recovery::NewReno {
            // RFC 6582 section 3.2 step 3 option 1, which sends no burst
            let segment = f64::from(self.settings.segment);
            let flight = (self.flight.outstanding() as f64).max(segment) + segment;
            self.window.cwnd = self.window.cwnd.min(flight);
        }
    }

    fn duplicate(&mut self, now: Time, out: &mut Outbox) {
        self.duplicates += 1;
        let segment = f64::from(self.settings.segment);
        if self.phase == Phase::Recovery {
            // each duplicate is a segment that has left the network (RFC 5681 section 3.2 step 4)
            if self.board.is_none() {
                self.window.cwnd += segment;
            }
            return;
        }
        let una = self.flight.una();
        let lost = match &self.board {
            Some(board) => {
                let may_enter = self.recover.is_none_or(|recover| una >= recover);
                may_enter && (self.duplicates >= DUP_THRESH || board.first_is_lost(&self.flight))
            }
            // RFC 6582 section 3.2 step 2: the acknowledgement must cover more than `recover`; otherwise the
            // duplicates may come from segments that were sent again needlessly
            None => self.duplicates == DUP_THRESH && self.recover.is_none_or(|recover| una > recover),
        };
        if lost {
            self.fast_retransmit(now, out);
        }
    }

    /// Responds to a loss; marks and losses of one window are one congestion event (RFC 3168 section 6.1.2).
    pub(super) fn reduce(&mut self) {
        if !self.marking.has_responded(self.flight.una()) {
            let flight = self.flight_size();
            self.control.loss(&mut self.window, flight);
            self.marking.reduced(self.flight.max());
        }
    }

    fn fast_retransmit(&mut self, now: Time, out: &mut Outbox) {
        let segment = f64::from(self.settings.segment);
        self.reduce();
        self.recover = Some(self.flight.max());
        self.partial_seen = false;
        // a full timeout for the segments sent now (RFC 6675 section 6 allows it; ns-2 does it)
        self.arm(now);
        if self.recovery == Recovery::Tahoe {
            self.window.cwnd = segment;
            self.flight.go_back();
            return;
        }
        self.phase = Phase::Recovery;
        match &mut self.board {
            Some(board) => {
                self.control.fall(&mut self.window);
                board.begin_recovery(&mut self.flight);
                board.repeated(&mut self.flight, NextSeg::Lost(0), 0);
            }
            // the three duplicates are three segments that have left the network
            None => self.window.cwnd = self.window.ssthresh + f64::from(DUP_THRESH) * segment,
        }
        self.repeat(now, 0, out);
    }

    /// Handles the retransmission timer (RFC 6298 section 5.4 to 5.6, RFC 5681 section 3.1).
    pub(super) fn timeout(&mut self, now: Time, out: &mut Outbox) {
        self.disarm();
        self.rtt.back_off();
        if let Some(opening) = &mut self.opening {
            opening.repeated = true;
            self.syn(now, out);
            return;
        }
        let una = self.flight.una();
        let repeated = self.timed_out_at.replace(una) == Some(una);
        // in recovery most of the unacknowledged data has left the network, as the duplicates indicate: the
        // inflated window does not measure the rest, but ssthresh does
        if self.phase == Phase::Recovery {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
        let flight = self.flight_size();
        self.control.timeout(&mut self.window, now, (!repeated).then_some(flight), self.flight.max());
        self.marking.reduced(self.flight.max());
        self.recover = Some(self.flight.max());
        self.duplicates = 0;
        self.timed = None;
        match &mut self.board {
            Some(board) => {
                self.phase = Phase::Timeout;
                match &mut self.rack {
                    Some(rack) => {
                        self.prr = None;
                        rack.timeout(now, &mut self.flight, board, self.rtt.srtt());
                        // one segment more than what may still arrive (Linux's `tcp_enter_loss`)
                        self.window.cwnd += board.pipe() as f64;
                    }
                    None => board.timeout(&mut self.flight),
                }
                if let (Some(model), Some(delivery)) = (self.control.model(), &self.delivery) {
                    model.timeout(now, delivery.delivered(), board.lost(), &mut self.luck);
                }
                self.note_losses(now);
            }
            None => {
                self.phase = Phase::Open;
                self.flight.go_back();
            }
        }
        self.fill(now, out);
        if self.deadline.is_none() && !self.flight.is_empty() {
            // the pacer holds the segment back, and by then a model may have closed the window (RFC 6298 section 5.6)
            self.arm(now);
        }
    }
}
