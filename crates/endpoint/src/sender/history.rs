//! The packets sent lately, and the join of feedback with them.

use crate::clock::Drift;
use tidegate_core::control::{PacketResult, Report};
use tidegate_core::{Ecn, RemoteTime, Size, Span, Time};

/// Time for which a packet is remembered (60 s in libwebrtc's `TransportFeedbackAdapter`; no report that late is of use
/// to any controller here, and the ring is that much smaller).
const SEND_TIME_HISTORY_WINDOW: Span = Span::from_secs(10);

/// Probe id of a packet that belongs to no probe.
const NO_PROBE: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It was not reported on.
    Open,
    /// It was reported as not received; it may yet be reported as received.
    Lost,
    /// It was reported as received: further reports on it are ignored.
    Received,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    sent: Time,
    /// Probe id, or [`NO_PROBE`].
    probe: u64,
    size: u32,
    fate: Fate,
    /// Whether it was sent with an ECN codepoint.
    ecn_capable: bool,
}

const EMPTY: SentPacket =
    SentPacket { sent: Time::ZERO, probe: NO_PROBE, size: 0, fate: Fate::Received, ecn_capable: false };

/// A ring of the packets sent, by transport-wide sequence number.
#[derive(Debug)]
pub(crate) struct History {
    ring: Vec<SentPacket>,
    /// Sequence number of the oldest packet remembered, and of the next one to be sent.
    oldest: u64,
    next: u64,
    /// Every packet before this one has landed or is given up.
    landed: u64,
    in_flight: Size,
    /// Drift of the sender's clock.
    drift: Drift,
}

impl History {
    pub(crate) fn new(drift: Drift) -> Self {
        Self { ring: Vec::new(), oldest: 0, next: 0, landed: 0, in_flight: Size::ZERO, drift }
    }

    /// The sequence number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that were sent after the newest reported packet, as libwebrtc's `InFlightBytesTracker` counts: a report on
    /// a packet takes all before it out of flight, too, so that a lost report does not keep a window shut.
    pub(crate) fn in_flight(&self) -> Size {
        self.in_flight
    }

    fn index(&self, sequence: u64) -> usize {
        // the length is a power of two, once there is a packet
        sequence as usize & self.ring.len().wrapping_sub(1)
    }

    /// Adds a packet that leaves at `now`; its sequence number is [`History::next`].
    pub(crate) fn sent(&mut self, now: Time, size: u32, probe: Option<u32>, ecn_capable: bool) {
        if self.next - self.oldest == self.ring.len() as u64 {
            self.forget(now);
        }
        if self.next - self.oldest == self.ring.len() as u64 {
            self.grow();
        }
        let index = self.index(self.next);
        self.ring[index] = SentPacket {
            sent: now,
            probe: probe.map_or(NO_PROBE, u64::from),
            size,
            fate: Fate::Open,
            ecn_capable,
        };
        self.next += 1;
        self.in_flight += Size::from_bytes(u64::from(size));
        self.check();
    }

    /// Asserts the order of the three sequence numbers, and room for the packets between them.
    fn check(&self) {
        debug_assert!(
            self.oldest <= self.landed && self.landed <= self.next,
            "numbers out of order: {self:?}"
        );
        debug_assert!(self.next - self.oldest <= self.ring.len() as u64, "the ring is too small: {self:?}");
        debug_assert!(
            self.landed < self.next || self.in_flight == Size::ZERO,
            "nothing is in flight: {self:?}"
        );
    }

    /// Forgets packets that are too old.
    pub(crate) fn forget(&mut self, now: Time) {
        while self.oldest < self.next {
            let entry = self.ring[self.index(self.oldest)];
            if now - entry.sent < SEND_TIME_HISTORY_WINDOW {
                break;
            }
            self.oldest += 1;
        }
        if self.landed < self.oldest {
            self.land(self.oldest);
        }
    }

    /// Forgets all packets: feedback on those of another route is ignored, and none of them is in flight, as in
    /// libwebrtc's `TransportFeedbackAdapter` (`SetNetworkRoute`).
    pub(crate) fn route_changed(&mut self) {
        self.land(self.next);
        self.oldest = self.next;
    }

    /// When the oldest packet in flight is forgotten, unless it is reported on before.
    pub(crate) fn expiry(&self) -> Time {
        if self.landed == self.next {
            Time::MAX
        } else {
            self.ring[self.index(self.landed)].sent + SEND_TIME_HISTORY_WINDOW
        }
    }

    /// Takes all packets before `sequence` out of flight.
    fn land(&mut self, sequence: u64) {
        while self.landed < sequence {
            let index = self.index(self.landed);
            self.in_flight -= Size::from_bytes(u64::from(self.ring[index].size));
            self.landed += 1;
        }
        self.check();
    }

    fn grow(&mut self) {
        let mut ring = vec![EMPTY; (self.ring.len() * 2).max(16)];
        let mask = ring.len() - 1;
        for sequence in self.oldest..self.next {
            ring[sequence as usize & mask] = self.ring[self.index(sequence)];
        }
        self.ring = ring;
    }

    /// Joins feedback on the packet `sequence` with its sending, and appends the result to `report`. Packets that were
    /// never sent, are forgotten, or have been reported as received give no result. A lost packet gives one result, and
    /// another one if it turns out to have been received.
    ///
    /// Returns when the packet was sent, if it is newly received.
    pub(crate) fn join(
        &mut self,
        sequence: i64,
        arrival: Option<RemoteTime>,
        ecn: Ecn,
        report: &mut Report,
    ) -> Option<Time> {
        let sequence = u64::try_from(sequence).ok().filter(|s| (self.oldest..self.next).contains(s))?;
        self.land(sequence + 1);
        let index = self.index(sequence);
        let entry = &mut self.ring[index];
        let fate = if arrival.is_some() { Fate::Received } else { Fate::Lost };
        if entry.fate == Fate::Received || entry.fate == fate {
            return None;
        }
        entry.fate = fate;
        report.packets.push(PacketResult {
            sequence,
            size: Size::from_bytes(u64::from(entry.size)),
            sent: entry.sent,
            // its delay as the sender sees it, whose clock has gained since
            arrival: arrival.map(|arrival| arrival + -self.drift.of(entry.sent - Time::ZERO)),
            ecn,
            probe: u32::try_from(entry.probe).ok(),
        });
        arrival.map(|_| entry.sent)
    }

    /// Whether the packet `sequence` was surely sent without an ECN codepoint, so that no queue can have marked it.
    pub(crate) fn is_incapable(&self, sequence: i64) -> bool {
        let remembered = u64::try_from(sequence).ok().filter(|s| (self.oldest..self.next).contains(s));
        remembered.is_some_and(|sequence| !self.ring[self.index(sequence)].ecn_capable)
    }

    /// Notes that the packet `sequence` was received at an unknown time: it is no longer in flight, and gives no
    /// result. Returns whether that is news.
    pub(crate) fn received(&mut self, sequence: i64) -> bool {
        let remembered = u64::try_from(sequence).ok().filter(|s| (self.oldest..self.next).contains(s));
        let Some(sequence) = remembered else { return false };
        self.land(sequence + 1);
        let index = self.index(sequence);
        std::mem::replace(&mut self.ring[index].fate, Fate::Received) != Fate::Received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(millis: i64) -> Option<RemoteTime> {
        Some(RemoteTime::from_nanos(millis * 1_000_000))
    }

    #[test]
    fn results_are_joined_and_flight_is_counted() {
        let mut history = History::new(Drift::default());
        for k in 0..5 {
            history.sent(Time::from_millis(k), 100, (k == 2).then_some(9), true);
        }
        assert_eq!(history.in_flight(), Size::from_bytes(500));
        let mut report = Report::default();
        assert_eq!(history.join(0, arrival(50), Ecn::Ce, &mut report), Some(Time::ZERO));
        assert_eq!(history.join(1, None, Ecn::NotEct, &mut report), None);
        assert_eq!(history.join(1, None, Ecn::NotEct, &mut report), None, "a loss is reported once");
        assert_eq!(history.join(2, arrival(52), Ecn::NotEct, &mut report), Some(Time::from_millis(2)));
        assert_eq!(history.in_flight(), Size::from_bytes(200));
        // reordered, not lost
        assert_eq!(history.join(1, arrival(55), Ecn::NotEct, &mut report), Some(Time::from_millis(1)));
        assert_eq!(history.join(1, arrival(56), Ecn::NotEct, &mut report), None, "a second time");
        assert_eq!(history.join(5, arrival(56), Ecn::NotEct, &mut report), None, "never sent");
        assert_eq!(history.join(-1, arrival(56), Ecn::NotEct, &mut report), None);
        assert_eq!(history.in_flight(), Size::from_bytes(200));
        let results: Vec<(u64, bool, Option<u32>)> =
            report.packets.iter().map(|p| (p.sequence, p.arrival.is_some(), p.probe)).collect();
        assert_eq!(results, [(0, true, None), (1, false, None), (2, true, Some(9)), (1, true, None)]);
        assert_eq!(report.packets[0].ecn, Ecn::Ce);
    }

    #[test]
    fn a_packet_without_a_time_is_news_once() {
        let mut history = History::new(Drift::default());
        (0..3).for_each(|k| history.sent(Time::from_millis(k), 100, None, true));
        let mut report = Report::default();
        assert!(history.received(1), "reported for the first time");
        assert!(!history.received(1), "reported again");
        assert_eq!(history.join(1, arrival(50), Ecn::Ce, &mut report), None, "and its time comes too late");
        assert_eq!(history.join(2, None, Ecn::NotEct, &mut report), None);
        assert!(history.received(2), "lost, and then not");
        assert_eq!(history.join(0, arrival(50), Ecn::Ce, &mut report), Some(Time::ZERO));
        assert!(!history.received(0));
        assert!(!history.received(3) && !history.received(-1), "never sent");
    }

    #[test]
    fn packets_of_another_route_are_neither_in_flight_nor_reported() {
        let mut history = History::new(Drift::default());
        (0..20).for_each(|k| history.sent(Time::from_millis(k), 100, None, true));
        history.route_changed();
        assert_eq!((history.in_flight(), history.expiry()), (Size::ZERO, Time::MAX));
        (20..25).for_each(|k| history.sent(Time::from_millis(k), 100, None, true));
        let mut report = Report::default();
        assert_eq!(history.join(19, arrival(50), Ecn::NotEct, &mut report), None);
        assert!(!history.received(18));
        assert_eq!(history.in_flight(), Size::from_bytes(500));
        assert_eq!(history.join(20, arrival(51), Ecn::NotEct, &mut report), Some(Time::from_millis(20)));
        assert_eq!((report.packets.len(), history.in_flight()), (1, Size::from_bytes(400)));
    }

    #[test]
    fn old_packets_are_forgotten_and_the_ring_grows_only_as_needed() {
        let mut history = History::new(Drift::default());
        // 100 packets a second for 100 s: at most 1000 are younger than 10 s
        for k in 0..10_000 {
            history.sent(Time::from_millis(10 * k), 100, None, true);
        }
        assert_eq!(history.ring.len(), 1024);
        history.forget(Time::from_millis(10 * 9_999));
        assert_eq!(history.in_flight(), Size::from_bytes(100 * 1000));
        let mut report = Report::default();
        assert_eq!(history.join(8_999, arrival(1), Ecn::NotEct, &mut report), None);
        assert_eq!(history.join(9_000, arrival(1), Ecn::NotEct, &mut report), Some(Time::from_secs(90)));
        assert_eq!(history.in_flight(), Size::from_bytes(100 * 999));
    }
}
