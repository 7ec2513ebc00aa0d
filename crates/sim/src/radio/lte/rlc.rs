//! A bearer: the packets of one user in one direction, from the queue to in-order delivery.
//!
//! RLC in acknowledged mode (TS 36.322): packets are cut and joined to fill transport blocks, segments that HARQ could
//! not deliver are sent again after a status report, and the receiver delivers packets in order.
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

/// The limits of a bearer's queue, which counts packets of which no part has been sent yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueLimit {
    /// Largest number of packets.
    pub packets: Option<u32>,
    /// Largest number of bytes.
    pub bytes: Option<u64>,
    /// Wait after which a packet is dropped (PDCP's discard timer, TS 36.323 section 5.4).
    pub age: Option<Span>,
}

#[derive(Clone, Debug)]
struct Waiting {
    since: Time,
    packet: Box<Packet>,
}

#[derive(Clone, Debug)]
struct Flying {
    /// Offset of the end of its last byte.
    end: u64,
    packet: Box<Packet>,
}

/// The state of a segment.
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
    /// One past its last byte.
    pub end: u64,
}

impl Segment {
    /// Its length in bytes.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it has no bytes.
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
    /// Offsets: end of the last started packet, end of the bytes sent at least once, and end of the bytes that the
    /// receiver has completely.
    started: u64,
    sent: u64,
    delivered: u64,
    /// Segments from `delivered` on, each up to the start of the next one, up to `sent`.
    pieces: VecDeque<Piece>,
    lost: u32,
}

impl Bearer {
    /// An empty bearer.
    #[must_use]
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Enqueues a packet, or drops it.
    pub fn push(&mut self, now: Time, packet: Box<Packet>, out: &mut Outbox) {
        let size = u64::from(packet.size);
        let full = self.limit.packets.is_some_and(|limit| self.queue.len() >= limit as usize)
            || self.limit.bytes.is_some_and(|limit| self.queued + size > limit);
        if full {
            out.discard(now, &packet, Cause::Queue);
            out.recycle(packet);
            return;
        }
        self.queued += size;
        self.queue.push_back(Waiting { since: now, packet });
    }

    /// Drops packets that have waited too long.
    pub fn expire(&mut self, now: Time, out: &mut Outbox) {
        let Some(age) = self.limit.age else { return };
        while self.queue.front().is_some_and(|front| now - front.since > age) {
            let Some(Waiting { packet, .. }) = self.queue.pop_front() else { return };
            take_away(&mut self.queued, u64::from(packet.size), "bytes of a bearer's queue");
            out.discard(now, &packet, Cause::Queue);
            out.recycle(packet);
        }
    }

    /// Whether there is no packet inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// Bytes that wait for a transport block at `tti`, including those to be sent again.
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

    /// Takes the next segment, of at most `max_bytes`, and marks it as sent; empty if there is no data to send. Lost
    /// segments go first.
    pub fn take(&mut self, now: Time, tti: i64, max_bytes: u64) -> Segment {
        if max_bytes == 0 {
            return Segment::default();
        }
        if self.lost > 0
            && let Some(segment) = self.retransmit(tti, max_bytes)
        {
            return segment;
        }
        let goal = self.sent + max_bytes;
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
        debug_assert!(
            !self.queue.is_empty() || self.queued == 0,
            "{} bytes counted in an empty queue",
            self.queued
        );
        if self.sent > start {
            self.pieces.push_back(Piece { end: self.sent, state: State::Sent });
        }
        Segment { start, end: self.sent }
    }

    fn retransmit(&mut self, tti: i64, max_bytes: u64) -> Option<Segment> {
        let mut start = self.delivered;
        for index in 0..self.pieces.len() {
            let piece = self.pieces[index];
            if matches!(piece.state, State::Lost(from) if from <= tti) {
                let end = piece.end.min(start + max_bytes);
                self.pieces[index] = Piece { end, state: State::Sent };
                if end < piece.end {
                    // the block is smaller than the lost one: the rest stays lost
                    self.pieces.insert(index + 1, piece);
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
        let index = self.pieces.partition_point(|piece| piece.end < segment.end);
        self.pieces.get(index).filter(|piece| piece.end == segment.end).map(|_| index)
    }

    /// Marks a segment as received: packets that are complete and in order leave through `port`. Returns the bytes of
    /// these packets.
    pub fn receive(&mut self, segment: Segment, port: Port, out: &mut Outbox) -> u64 {
        let Some(index) = self.find(segment) else { return 0 };
        self.pieces[index].state = State::Received;
        while self.pieces.front().is_some_and(|front| front.state == State::Received) {
            let Some(front) = self.pieces.pop_front() else { break };
            assert!(
                self.delivered < front.end && front.end <= self.sent,
                "received bytes that were not sent"
            );
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

    /// Marks a segment as given up by HARQ; it may be sent again from TTI `from_tti` on.
    pub fn lose(&mut self, segment: Segment, from_tti: i64) {
        if let Some(index) = self.find(segment)
            && self.pieces[index].state == State::Sent
        {
            self.pieces[index].state = State::Lost(from_tti);
            self.lost += 1;
        }
    }

    /// Marks all segments in transport blocks as lost (a handover); they may be sent again from TTI `from_tti` on.
    pub fn lose_all(&mut self, from_tti: i64) {
        for piece in &mut self.pieces {
            if piece.state == State::Sent {
                piece.state = State::Lost(from_tti);
                self.lost += 1;
            }
        }
    }

    /// Drops all packets, because the user has left.
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

    /// Visits every packet inside.
    pub fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.queue.iter().for_each(|waiting| visit(&waiting.packet));
        self.flight.iter().for_each(|flying| visit(&flying.packet));
    }

    /// Packets that wait completely or in part, and their waiting bytes.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let partly_sent = u32::from(self.started > self.sent);
        Backlog {
            packets: self.queue.len() as u32 + partly_sent,
            bytes: Size::from_bytes(self.queued + (self.started - self.sent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::node::Inside;
    use tidegate_core::record::NullRecorder;
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
        let mut out = Outbox::new(1, Box::new(NullRecorder));
        let mut bearer = Bearer::new(QueueLimit::default());
        let millis = Time::from_millis;
        bearer.push(millis(0), packet(0, 998), &mut out);
        bearer.push(millis(0), packet(1, 498), &mut out);
        assert_eq!(bearer.need(0), 1500);
        let first = bearer.take(millis(3), 3, 600);
        let second = bearer.take(millis(4), 4, 600);
        let third = bearer.take(millis(5), 5, 600);
        assert_eq!([first.len(), second.len(), third.len()], [600, 600, 300]);
        assert!(bearer.take(millis(6), 6, 600).is_empty());
        // the second block brings the end of the first packet, but its beginning is missing
        assert_eq!(bearer.receive(second, Port(7), &mut out), 0);
        bearer.lose(first, 50);
        assert_eq!((bearer.need(49), bearer.need(50)), (0, 600));
        assert!(bearer.take(millis(49), 49, 600).is_empty());
        // a smaller block takes a part
        let part = bearer.take(millis(50), 50, 250);
        let rest = bearer.take(millis(51), 51, 5000);
        assert_eq!((part, rest), (Segment { start: 0, end: 250 }, Segment { start: 250, end: 600 }));
        assert_eq!(bearer.receive(rest, Port(7), &mut out), 0);
        assert_eq!(bearer.receive(third, Port(7), &mut out), 0);
        assert_eq!(bearer.receive(part, Port(7), &mut out), 998 + 498);
        let delivered: Vec<_> = out.packets.iter().map(|(port, packet)| (*port, packet.sequence)).collect();
        assert_eq!(delivered, [(Port(7), 0), (Port(7), 1)]);
        assert_eq!(out.packets[0].1.queued, Span::from_millis(3));
        assert_eq!(out.packets[1].1.queued, Span::from_millis(4));
        assert!(bearer.is_empty());
        assert_eq!(inside(&bearer), Inside::default());
    }

    #[test]
    fn limits_hold_and_old_packets_go() {
        let mut out = Outbox::new(1, Box::new(NullRecorder));
        let limit = QueueLimit { packets: Some(3), bytes: Some(2500), age: Some(Span::from_millis(100)) };
        let mut bearer = Bearer::new(limit);
        let millis = Time::from_millis;
        for number in 0..3 {
            bearer.push(millis(10 * number), packet(number as u32, 1000), &mut out);
        }
        assert_eq!((bearer.backlog().packets, out.accounts[0].dropped), (2, 1), "2500 bytes");
        (0..3).for_each(|number| bearer.push(millis(30), packet(number, 100), &mut out));
        assert_eq!((bearer.backlog().packets, out.accounts[0].dropped), (3, 3), "3 packets");
        // a packet that is under way stays at any age; the next one is too old at 110.1 ms
        bearer.take(millis(100), 100, 10);
        bearer.expire(Time::from_micros(110_000), &mut out);
        assert_eq!(bearer.backlog().packets, 3);
        bearer.expire(Time::from_micros(110_001), &mut out);
        assert_eq!((bearer.backlog().packets, out.accounts[0].dropped), (2, 4));
        bearer.clear(millis(120), &mut out);
        assert_eq!((inside(&bearer), out.accounts[0].dropped), (Inside::default(), 6));
    }

    /// With any fate of blocks no byte is lost or doubled, and the order is kept.
    #[test]
    fn every_byte_is_conserved_under_random_operations() {
        let mut luck = Stream::new(5, "rlc", "test");
        for limited in [false, true] {
            let mut out = Outbox::new(1, Box::new(NullRecorder));
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
                    // blocks of the old cell come too late or not at all
                    open.clear();
                }
                for (_, packet) in out.packets.drain(..) {
                    assert!(packet.sequence >= next, "in order");
                    next = packet.sequence + 1;
                }
                let account = out.accounts[0];
                assert_eq!(u64::from(pushed), account.departed + account.dropped + inside(&bearer).packets);
                assert_eq!(account.departed_bytes, bytes);
                let pieces = bearer.pieces.back().map_or(bearer.delivered, |last| last.end);
                assert_eq!(pieces, bearer.sent);
                let lost = bearer.pieces.iter().filter(|piece| matches!(piece.state, State::Lost(_)));
                assert_eq!(lost.count(), bearer.lost as usize);
            }
            assert!(bytes > 1_000_000);
        }
    }
}
