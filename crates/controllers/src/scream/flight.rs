//! Packets in flight, with the rule that a received packet takes all packets before it out of flight
//! (draft-ietf-ccwg-rfc8298bis-screamv2 section "Status Update When Sending Data"; RFC 8298 section 4.1.2).

use std::collections::VecDeque;
use tidegate_core::control::{Report, Sent};
use tidegate_core::{Ecn, Size, Span, Time};

/// Time after which an unreported packet leaves the list, as in the endpoint.
const MAX_AGE: Span = Span::from_secs(10);

/// Largest possible packet, bytes; larger sizes are mistakes.
const MAX_PACKET_SIZE: u64 = 65_535;

#[derive(Clone, Copy, Debug)]
struct Packet {
    sequence: u64,
    bytes: u64,
    sent: Time,
}

/// Packets that a report acknowledges.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Acked {
    /// Bytes up to the highest received sequence number, including lost packets (`bytes_newly_acked`).
    pub bytes: f64,
    /// Bytes of packets received with a mark (`bytes_newly_acked_ce`).
    pub marked_bytes: f64,
    /// Number of received packets.
    pub packets: u32,
    /// Number of packets received with a mark.
    pub marked: u32,
    /// Highest received sequence number of this report, with that packet's departure and round trip.
    pub newest: Option<(u64, Time, Span)>,
}

/// Packets in flight.
#[derive(Clone, Debug)]
pub struct Flight {
    packets: VecDeque<Packet>,
    bytes: u64,
    last_sent: Option<Time>,
    restart: Span,
}

impl Flight {
    /// Creates an empty list. After `restart` without departures, the packets in flight are given up.
    #[must_use]
    pub fn new(restart: Span) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, last_sent: None, restart }
    }

    /// Bytes in flight.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes in flight, for the endpoint's window.
    #[must_use]
    pub fn size(&self) -> Size {
        Size::from_bytes(self.bytes)
    }

    /// Departure of the last packet, while packets are in flight.
    #[must_use]
    pub fn waits_since(&self) -> Option<Time> {
        self.last_sent.filter(|_| !self.packets.is_empty())
    }

    /// Departure of the last packet.
    #[must_use]
    pub fn last_sent(&self) -> Option<Time> {
        self.last_sent
    }

    /// Adds a packet that leaves `now`.
    pub fn sent(&mut self, now: Time, packet: &Sent) {
        let bytes = packet.size.as_bytes().min(MAX_PACKET_SIZE);
        self.packets.push_back(Packet { sequence: packet.sequence, bytes, sent: now });
        self.bytes = self.bytes.saturating_add(bytes);
        self.last_sent = Some(now);
        while self.packets.front().is_some_and(|oldest| now - oldest.sent > MAX_AGE) {
            let _bytes = self.pop();
        }
    }

    fn pop(&mut self) -> u64 {
        let bytes = self.packets.pop_front().map_or(0, |packet| packet.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        bytes
    }

    /// Time at which the packets in flight are given up, if no packet leaves before.
    #[must_use]
    pub fn gives_up_at(&self) -> Option<Time> {
        self.waits_since().map(|last| last + self.restart)
    }

    /// Gives up the packets in flight if that is due, so that lost feedback does not keep a window closed. Called at each
    /// event, since any event may come before the requested alarm.
    pub fn give_up(&mut self, now: Time) {
        if self.gives_up_at().is_some_and(|due| now >= due) {
            self.clear();
        }
    }

    /// Gives up the packets in flight.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.bytes = 0;
    }

    /// Takes a report. Without `ect`, packets are sent Not-ECT, and marks do not count.
    pub fn acknowledge(&mut self, now: Time, report: &Report, ect: bool) -> Acked {
        let mut acked = Acked::default();
        for packet in report.packets.iter().filter(|packet| packet.arrival.is_some()) {
            acked.packets += 1;
            if ect && packet.ecn == Ecn::Ce {
                acked.marked += 1;
                acked.marked_bytes += packet.size.as_bytes().min(MAX_PACKET_SIZE) as f64;
            }
            if acked.newest.is_none_or(|(sequence, ..)| packet.sequence > sequence) && packet.sent <= now {
                acked.newest = Some((packet.sequence, packet.sent, now.saturating_since(packet.sent)));
            }
        }
        let Some((newest, ..)) = acked.newest else { return acked };
        while self.packets.front().is_some_and(|oldest| oldest.sequence <= newest) {
            acked.bytes += self.pop() as f64;
        }
        acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::RemoteTime;
    use tidegate_core::control::PacketResult;

    fn sent(flight: &mut Flight, sequence: u64, millis: i64) {
        let size = Size::from_bytes(1000 + sequence);
        let packet = Sent { sequence, size, in_flight: size, backlog: Size::ZERO };
        flight.sent(Time::from_millis(millis), &packet);
    }

    fn report(sequences: &[(u64, bool, Ecn)]) -> Report {
        let packets = sequences.iter().map(|&(sequence, arrived, ecn)| PacketResult {
            sequence,
            size: Size::from_bytes(1000 + sequence),
            sent: Time::from_millis(sequence as i64),
            arrival: arrived.then(|| RemoteTime::from_nanos(1)),
            ecn,
            probe: None,
        });
        Report { packets: packets.collect(), ..Report::default() }
    }

    #[test]
    fn the_highest_that_arrived_takes_all_before_it_out_of_flight() {
        let mut flight = Flight::new(Span::from_millis(500));
        (0..6).for_each(|k| sent(&mut flight, k, k as i64));
        assert_eq!(flight.bytes(), 6015);
        // 2 is lost and counts; 4 did not arrive and is not the highest
        let report = self::report(&[
            (0, true, Ecn::Ect1),
            (1, true, Ecn::Ce),
            (2, false, Ecn::NotEct),
            (3, true, Ecn::Ce),
        ]);
        let now = Time::from_millis(50);
        let acked = flight.acknowledge(now, &report, true);
        assert_eq!((acked.bytes, acked.marked_bytes), (4006.0, 1001.0 + 1003.0));
        assert_eq!((acked.packets, acked.marked), (3, 2));
        assert_eq!(acked.newest, Some((3, Time::from_millis(3), Span::from_millis(47))));
        assert_eq!(flight.bytes(), 2009);
        // a late packet acknowledges nothing new, and neither does a loss
        let acked =
            flight.acknowledge(now, &self::report(&[(2, true, Ecn::Ce), (5, false, Ecn::NotEct)]), false);
        assert_eq!((acked.bytes, acked.packets, acked.marked), (0.0, 1, 0), "sent Not-ECT: no mark");
        assert_eq!(flight.bytes(), 2009);
        sent(&mut flight, 6, 10_500);
        assert_eq!(flight.bytes(), 1006, "packets older than 10 s are dropped");
    }

    #[test]
    fn what_is_in_flight_is_given_up_when_nothing_has_left_for_long() {
        let mut flight = Flight::new(Span::from_millis(500));
        assert_eq!(flight.gives_up_at(), None, "nothing is in flight");
        (0..2).for_each(|k| sent(&mut flight, k, 20 * k as i64));
        let due = Time::from_millis(20 + 500);
        assert_eq!(flight.gives_up_at(), Some(due), "after the last one");
        flight.give_up(due - Span::from_nanos(1));
        assert_eq!(flight.bytes(), 2001);
        flight.give_up(due);
        assert_eq!((flight.bytes(), flight.gives_up_at()), (0, None));
    }
}
