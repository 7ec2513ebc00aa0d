//! A bearer: the packets of one user in one direction, from the queue to in-order delivery.
//!
//! RLC in acknowledged mode (TS 36.322): packets are cut and joined into whatever a transport block holds, what
//! HARQ could not bring over is sent again after a status report, and the receiver hands packets over in order.
//! Offsets count the bytes of started packets with their PDCP header; a segment is a stretch of them.

use crate::counts::take_away;
use serde::Deserialize;
use std::collections::VecDeque;
use tidegate_core::record::Backlog;
use tidegate_core::{Cause, Outbox, Packet, Port, Size, Span, Time};

/// Bytes of RLC and MAC headers in a transport block (TS 36.322 section 6.2.1.4: 2; TS 36.321 section 6.1.2: 3).
pub const BLOCK_HEADER: u64 = 5;
/// Bytes of the PDCP header of a packet (TS 36.323 section 6.2.4, 12-bit sequence numbers).
const PACKET_HEADER: u64 = 2;

/// The limits of a bearer's queue, which counts packets of which nothing has been sent yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueLimit {
    /// At most so many packets.
    pub packets: Option<u32>,
    /// At most so many bytes.
    pub bytes: Option<u64>,
    /// A packet that has waited longer is dropped (PDCP's discard timer, TS 36.323 section 5.4).
    pub age: Option<Span>,
}

#[derive(Clone, Debug)]
struct Waiting {
    since: Time,
    packet: Box<Packet>,
}

#[derive(Clone, Debug)]
struct Flying {
    /// Where its last byte ends.
    end: u64,
    packet: Box<Packet>,
}

/// What became of a segment so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In a transport block.
    Sent,
    /// Missing; may be sent again from this TTI on.
    Lost(i64),
    /// At the receiver.
    Received,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    state: State,
}

/// A stretch of a bearer's bytes in a transport block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Its first byte.
    pub start: u64,
    /// The byte behind its last.
    pub end: u64,
}

impl Segment {
    /// Its length in bytes.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it holds nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }
}

/// One user's packets in one direction.
#[derive(Clone, Debug, Default)]
pub struct Bearer {
    limit: QueueLimit,
    queue: VecDeque<Waiting>,
    queued: u64,
    flight: VecDeque<Flying>,
    /// Where the last started packet ends, how far has been sent once, how far the receiver has everything.
    started: u64,
    sent: u64,
    delivered: u64,
    /// Segments from `delivered` on, each up to the start of the next one, up to `sent`.
    pieces: VecDeque<Piece>,
    lost: u32,
}

impl Bearer {
    /// An empty one.
    #[must_use]
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Takes a packet in, or drops it.
    pub fn push(&mut self, now: Time, packet: Box<Packet>, out: &mut Outbox) {
        let size = u64::from(packet.size);
        let full = self.limit.packets.is_some_and(|most| self.queue.len() >= most as usize)
            || self.limit.bytes.is_some_and(|most| self.queued + size > most);
        if full {
            out.discard(now, &packet, Cause::Queue);
            out.recycle(packet);
            return;
        }
        self.queued += size;
        self.queue.push_back(Waiting { since: now, packet });
    }

    /// Drops what has waited too long.
    pub fn expire(&mut self, now: Time, out: &mut Outbox) {
        let Some(age) = self.limit.age else { return };
        while self.queue.front().is_some_and(|front| now - front.since > age) {
            let Some(Waiting { packet, .. }) = self.queue.pop_front() else { return };
            take_away(&mut self.queued, u64::from(packet.size), "bytes of a bearer's queue");
            out.discard(now, &packet, Cause::Queue);
            out.recycle(packet);
        }
    }

    /// Whether nothing at all is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// Bytes that wait for a transport block at `tti`, those to be sent again included.
    #[must_use]
    pub fn need(&self, tti: i64) -> u64 {
        let headers = self.queue.len() as u64 * PACKET_HEADER;
        let mut need = self.queued + headers + (self.started - self.sent);
        if self.lost > 0 {
            let mut start = self.delivered;
            for piece in &self.pieces {
                if matches!(piece.state, State::Lost(from) if from <= tti) {
                    need += piece.end - start;
                }
                start = piece.end;
            }
        }
        need
    }

    /// The next segment, of at most `most` bytes, marked as sent; empty if there is nothing to send. What is lost
    /// goes first.
    pub fn take(&mut self, now: Time, tti: i64, most: u64) -> Segment {
        if most == 0 {
            return Segment::default();
        }
        if self.lost > 0
            && let Some(segment) = self.again(tti, most)
        {
            return segment;
        }
        let goal = self.sent + most;
        while self.started < goal {
            let Some(Waiting { since, mut packet }) = self.queue.pop_front() else { break };
            let size = u64::from(packet.size);
            take_away(&mut self.queued, size, "bytes of a bearer's queue");
            packet.queued += now - since;
            self.started += size + PACKET_HEADER;
            self.flight.push_back(Flying { end: self.started, packet });
        }
        let start = self.sent;
        self.sent = goal.min(self.started);
        assert!(
            self.delivered <= start && self.sent <= self.started,
            "{start} to {} of {}",
            self.sent,
            self.started
        );
        debug_assert!(!self.queue.is_empty() || self.queued == 0, "{} bytes of nothing", self.queued);
        if self.sent > start {
            self.pieces.push_back(Piece { end: self.sent, state: State::Sent });
        }
        Segment { start, end: self.sent }
    }

    fn again(&mut self, tti: i64, most: u64) -> Option<Segment> {
        let mut start = self.delivered;
        for at in 0..self.pieces.len() {
            let piece = self.pieces[at];
            if matches!(piece.state, State::Lost(from) if from <= tti) {
                let end = piece.end.min(start + most);
                self.pieces[at] = Piece { end, state: State::Sent };
                if end < piece.end {
                    // the block is smaller than the lost one was: the rest stays lost
                    self.pieces.insert(at + 1, piece);
                } else {
                    self.lost -= 1;
                }
                return Some(Segment { start, end });
            }
            start = piece.end;
        }
        None
    }

    fn find(&self, segment: Segment) -> Option<usize> {
        let at = self.pieces.partition_point(|piece| piece.end < segment.end);
        self.pieces.get(at).filter(|piece| piece.end == segment.end).map(|_| at)
    }

    /// A segment is at the receiver: whatever is complete and in order leaves through `port`. Returns how many
    /// bytes of packets left.
    pub fn receive(&mut self, segment: Segment, port: Port, out: &mut Outbox) -> u64 {
        let Some(at) = self.find(segment) else { return 0 };
        self.pieces[at].state = State::Received;
        while self.pieces.front().is_some_and(|front| front.state == State::Received) {
            let Some(front) = self.pieces.pop_front() else { break };
            assert!(self.delivered < front.end && front.end <= self.sent, "received what was not sent");
            self.delivered = front.end;
        }
        let mut bytes = 0;
        while self.flight.front().is_some_and(|front| front.end <= self.delivered) {
            let Some(Flying { packet, .. }) = self.flight.pop_front() else { break };
            bytes += u64::from(packet.size);
            out.forward(port, packet);
        }
        bytes
    }

    /// HARQ has given up a segment; it may be sent again from TTI `again` on.
    pub fn lose(&mut self, segment: Segment, again: i64) {
        if let Some(at) = self.find(segment)
            && self.pieces[at].state == State::Sent
        {
            self.pieces[at].state = State::Lost(again);
            self.lost += 1;
        }
    }

    /// All that is in transport blocks is lost with them (a handover); it may be sent again from TTI `again` on.
    pub fn lose_all(&mut self, again: i64) {
        for piece in &mut self.pieces {
            if piece.state == State::Sent {
                piece.state = State::Lost(again);
                self.lost += 1;
            }
        }
    }

    /// Drops everything: the user has left.
    pub fn clear(&mut self, now: Time, out: &mut Outbox) {
        let flying = self.flight.drain(..).map(|flying| flying.packet);
        for packet in flying.chain(self.queue.drain(..).map(|waiting| waiting.packet)) {
            out.discard(now, &packet, Cause::Outage);
            out.recycle(packet);
        }
        self.pieces.clear();
        self.queued = 0;
        self.lost = 0;
        self.sent = self.started;
        self.delivered = self.started;
    }

    /// Shows every packet inside.
    pub fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.queue.iter().for_each(|waiting| visit(&waiting.packet));
        self.flight.iter().for_each(|flying| visit(&flying.packet));
    }

    /// What waits, all of it or in part.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let begun = u32::from(self.started > self.sent);
        Backlog {
            packets: self.queue.len() as u32 + begun,
            bytes: Size::from_bytes(self.queued + (self.started - self.sent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::node::Inside;
    use tidegate_core::record::Nothing;
    use tidegate_core::rng::Stream;
    use tidegate_core::{Datagram, FlowId, Kind, RouteId};

    fn packet(sequence: u32, size: u32) -> Box<Packet> {
        Box::new(Packet::new(
            Time::ZERO,
            FlowId(0),
            RouteId(0),
            sequence,
            Kind::Datagram,
            Datagram { size, ..Datagram::default() },
        ))
    }

    fn inside(bearer: &Bearer) -> Inside {
        let mut inside = Inside::default();
        bearer.contents(&mut |packet| inside.add(packet));
        inside
    }

    #[test]
    fn packets_are_cut_joined_and_handed_over_in_order() {
        let mut out = Outbox::new(1, Box::new(Nothing));
        let mut bearer = Bearer::new(QueueLimit::default());
        let at = Time::from_millis;
        bearer.push(at(0), packet(0, 998), &mut out);
        bearer.push(at(0), packet(1, 498), &mut out);
        assert_eq!(bearer.need(0), 1500);
        let first = bearer.take(at(3), 3, 600);
        let second = bearer.take(at(4), 4, 600);
        let third = bearer.take(at(5), 5, 600);
        assert_eq!([first.len(), second.len(), third.len()], [600, 600, 300]);
        assert!(bearer.take(at(6), 6, 600).is_empty());
        // the second block brings the end of the first packet, but its beginning is missing
        assert_eq!(bearer.receive(second, Port(7), &mut out), 0);
        bearer.lose(first, 50);
        assert_eq!((bearer.need(49), bearer.need(50)), (0, 600));
        assert!(bearer.take(at(49), 49, 600).is_empty());
        // a smaller block takes a part
        let part = bearer.take(at(50), 50, 250);
        let rest = bearer.take(at(51), 51, 5000);
        assert_eq!((part, rest), (Segment { start: 0, end: 250 }, Segment { start: 250, end: 600 }));
        assert_eq!(bearer.receive(rest, Port(7), &mut out), 0);
        assert_eq!(bearer.receive(third, Port(7), &mut out), 0);
        assert_eq!(bearer.receive(part, Port(7), &mut out), 998 + 498);
        let left: Vec<_> = out.packets.iter().map(|(port, packet)| (*port, packet.sequence)).collect();
        assert_eq!(left, [(Port(7), 0), (Port(7), 1)]);
        assert_eq!(out.packets[0].1.queued, Span::from_millis(3));
        assert_eq!(out.packets[1].1.queued, Span::from_millis(4));
        assert!(bearer.is_empty());
        assert_eq!(inside(&bearer), Inside::default());
    }

    #[test]
    fn limits_hold_and_old_packets_go() {
        let mut out = Outbox::new(1, Box::new(Nothing));
        let limit = QueueLimit { packets: Some(3), bytes: Some(2500), age: Some(Span::from_millis(100)) };
        let mut bearer = Bearer::new(limit);
        let at = Time::from_millis;
        for number in 0..3 {
            bearer.push(at(10 * number), packet(number as u32, 1000), &mut out);
        }
        assert_eq!((bearer.backlog().packets, out.accounts[0].dropped), (2, 1), "2500 bytes");
        (0..3).for_each(|number| bearer.push(at(30), packet(number, 100), &mut out));
        assert_eq!((bearer.backlog().packets, out.accounts[0].dropped), (3, 3), "3 packets");
        // one that is under way stays, however old; the next one is too old at 110.1 ms
        bearer.take(at(100), 100, 10);
        bearer.expire(Time::from_micros(110_000), &mut out);
        assert_eq!(bearer.backlog().packets, 3);
        bearer.expire(Time::from_micros(110_001), &mut out);
        assert_eq!((bearer.backlog().packets, out.accounts[0].dropped), (2, 4));
        bearer.clear(at(120), &mut out);
        assert_eq!((inside(&bearer), out.accounts[0].dropped), (Inside::default(), 6));
    }

    /// Whatever happens to blocks, no byte is lost or doubled, and the order stays.
    #[test]
    fn every_byte_is_conserved_under_random_operations() {
        let mut luck = Stream::new(5, "rlc", "test");
        for limited in [false, true] {
            let mut out = Outbox::new(1, Box::new(Nothing));
            let limit = QueueLimit {
                packets: limited.then_some(20),
                bytes: None,
                age: limited.then_some(Span::from_millis(60)),
            };
            let mut bearer = Bearer::new(limit);
            let mut open: Vec<Segment> = Vec::new();
            let (mut pushed, mut bytes, mut next) = (0_u32, 0_u64, 0);
            for tti in 0..60_000_i64 {
                let now = Time::from_millis(tti);
                if luck.chance(0.4) {
                    let size = 40 + luck.below(1460) as u32;
                    bearer.push(now, packet(pushed, size), &mut out);
                    pushed += 1;
                }
                bearer.expire(now, &mut out);
                let need = bearer.need(tti);
                let segment = bearer.take(now, tti, 1 + luck.below(900));
                assert_eq!(segment.is_empty(), need == 0);
                if !segment.is_empty() {
                    open.push(segment);
                }
                while open.len() > 8 || (!open.is_empty() && luck.chance(0.3)) {
                    let segment = open.swap_remove(luck.below(open.len() as u64) as usize);
                    if luck.chance(0.2) {
                        bearer.lose(segment, tti + luck.below(40) as i64);
                    } else {
                        bytes += bearer.receive(segment, Port(0), &mut out);
                    }
                }
                if luck.chance(0.001) {
                    bearer.lose_all(tti + 30);
                    // what the old cell still has comes too late or not at all
                    open.clear();
                }
                for (_, packet) in out.packets.drain(..) {
                    assert!(packet.sequence >= next, "in order");
                    next = packet.sequence + 1;
                }
                let account = out.accounts[0];
                assert_eq!(u64::from(pushed), account.left + account.dropped + inside(&bearer).packets);
                assert_eq!(account.left_bytes, bytes);
                let pieces = bearer.pieces.back().map_or(bearer.delivered, |last| last.end);
                assert_eq!(pieces, bearer.sent);
                let lost = bearer.pieces.iter().filter(|piece| matches!(piece.state, State::Lost(_)));
                assert_eq!(lost.count(), bearer.lost as usize);
            }
            assert!(bytes > 1_000_000);
        }
    }
}
