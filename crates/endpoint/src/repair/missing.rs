//! Missing packets of one stream at its receiver, and the times of requests for them.

use super::Nack;
use std::collections::VecDeque;
use tidegate_core::datagram::Parity;
use tidegate_core::{Span, Time};

/// Largest gap in packets that is repaired; a larger one is a jump of the sequence numbers (libwebrtc).
const MAX_NACK_PACKETS: usize = 1000;
/// Restored packets that are remembered, in case they arrive late.
const RESTORED_MAX: usize = 1000;
/// Assumed time from a request to the retransmission, before the first one (libwebrtc).
const DEFAULT_RTT: Span = Span::from_millis(100);
/// Minimum time between two requests of one packet (libwebrtc: the interval at which it checks for missing packets).
const PROCESS_INTERVAL: Span = Span::from_millis(20);
/// Time for which parity may repair a packet that is not requested.
const PARITY_EXPIRY: Span = Span::from_secs(1);

/// Frame of a packet, and whether the packet is the last one of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FramePosition {
    pub(crate) frame: u32,
    pub(crate) last: bool,
}

/// State of a packet when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivalKind {
    /// It is new, or was missing.
    New,
    /// It was given up before, or has never been missing: it is not needed.
    Unneeded,
    /// It has been restored already.
    Restored,
}

#[derive(Clone, Copy, Debug)]
struct MissingPacket {
    sequence: i64,
    since: Time,
    /// When it is requested next; [`Time::MAX`]: not any more.
    request_due: Time,
    /// Times of the first request, the last but one, and the last.
    first_requested: Time,
    requested_before: Time,
    requested: Time,
    requests: u32,
    /// The first and the last frame that it may belong to.
    first: u32,
    last: u32,
}

/// The missing packets of a stream.
#[derive(Debug)]
pub(crate) struct Missing {
    nack: Option<Nack>,
    /// Packets that a group of parity has at most, if there is parity, and the highest first number of parity that
    /// came.
    group: Option<i64>,
    parity: i64,
    /// The next sequence number, and the frame of the packet before it.
    next: Option<i64>,
    newest: FramePosition,
    /// Missing packets in the order of their numbers.
    entries: VecDeque<MissingPacket>,
    restored: VecDeque<i64>,
    /// Times from request to retransmission: mean and mean deviation, and the shortest.
    response_time: Option<(Span, Span)>,
    shortest: Span,
    /// When the first packet is to be requested, and when the first one is to be given up.
    request_due: Time,
    expiry: Time,
}

impl Missing {
    /// No packet is missing yet. `group`: packets of a group of parity, if there is parity.
    pub(crate) fn new(nack: Option<Nack>, group: Option<u8>) -> Self {
        Self {
            nack,
            group: group.map(i64::from),
            parity: i64::MIN,
            next: None,
            newest: FramePosition::default(),
            entries: VecDeque::new(),
            restored: VecDeque::new(),
            response_time: None,
            shortest: Span::ZERO,
            request_due: Time::MAX,
            expiry: Time::MAX,
        }
    }

    /// When a packet is to be requested; [`Time::MAX`]: never.
    pub(crate) fn request_due(&self) -> Time {
        self.request_due
    }

    /// When a packet is to be given up.
    pub(crate) fn expiry(&self) -> Time {
        self.expiry
    }

    /// The next sequence number, once there was one.
    pub(crate) fn next(&self) -> Option<i64> {
        self.next
    }

    /// The first frame that may yet be repaired.
    pub(crate) fn first_repairable(&self) -> Option<u32> {
        self.entries.front().map(|entry| entry.first)
    }

    /// The time from a request to the retransmission, after which the request is repeated.
    fn response_time(&self) -> Span {
        let (mean, deviation) = self.response_time.unwrap_or((DEFAULT_RTT, Span::ZERO));
        // as in RFC 6298 for TCP, but with no deviation at first: else the first losses would be requested again only
        // after three round trips
        (mean + deviation * 4).max(PROCESS_INTERVAL)
    }

    /// Notes a packet that has arrived from the network.
    pub(crate) fn arrived(&mut self, now: Time, sequence: i64, position: FramePosition) -> ArrivalKind {
        let Some(next) = self.next else {
            (self.next, self.newest) = (Some(sequence + 1), position);
            return ArrivalKind::New;
        };
        if sequence < next {
            if let Some(index) = self.restored.iter().position(|&restored| restored == sequence) {
                self.restored.remove(index);
                return ArrivalKind::Restored;
            }
            return if self.remove(sequence).is_some() { ArrivalKind::New } else { ArrivalKind::Unneeded };
        }
        if sequence > next {
            self.enter_gap(now, next, sequence, position.frame);
            self.update_times();
        }
        (self.next, self.newest) = (Some(sequence + 1), position);
        ArrivalKind::New
    }

    /// Enters the packets from `next` up to but not including `sequence`, which belongs to `frame`, as missing.
    fn enter_gap(&mut self, now: Time, next: i64, sequence: i64, frame: u32) {
        if sequence - next > MAX_NACK_PACKETS as i64 {
            self.entries.clear();
            return;
        }
        let first = self.newest.frame.wrapping_add(u32::from(self.newest.last));
        let request_due = self.nack.map_or(Time::MAX, |nack| now + nack.wait);
        for sequence in next..sequence {
            if self.entries.len() == MAX_NACK_PACKETS {
                self.entries.pop_front();
            }
            let entry = MissingPacket {
                sequence,
                since: now,
                request_due,
                first_requested: now,
                requested_before: now,
                requested: now,
                requests: 0,
                first,
                last: frame,
            };
            self.entries.push_back(entry);
        }
    }

    fn remove(&mut self, sequence: i64) -> Option<MissingPacket> {
        let index = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence).ok()?;
        let entry = self.entries.remove(index);
        self.update_times();
        entry
    }

    /// Notes that a packet has been restored, by retransmission (`resent`) or by parity; returns whether it was needed.
    pub(crate) fn restored(
        &mut self,
        now: Time,
        sequence: i64,
        resent: bool,
        position: FramePosition,
    ) -> bool {
        let Some(next) = self.next else { return false };
        if sequence >= next {
            // parity has restored it before any later packet arrived
            if sequence - next > MAX_NACK_PACKETS as i64 {
                return false;
            }
            self.enter_gap(now, next, sequence, position.frame);
            (self.next, self.newest) = (Some(sequence + 1), position);
            self.update_times();
        } else {
            let Some(entry) = self.remove(sequence) else { return false };
            if resent {
                self.sample(now, &entry);
            }
        }
        if self.restored.len() == RESTORED_MAX {
            self.restored.pop_front();
        }
        self.restored.push_back(sequence);
        true
    }

    /// Notes that parity over the packets from `base` on has come and has restored the packets that it can: without
    /// requests, the others that it protects stay lost.
    pub(crate) fn parity(&mut self, base: i64, parity: &Parity) {
        self.parity = self.parity.max(base);
        if self.nack.is_none() {
            let (offset, length) =
                (i64::from(parity.offset), i64::from(parity.offset) * i64::from(parity.count));
            let protects =
                |sequence: i64| (base..base + length).contains(&sequence) && (sequence - base) % offset == 0;
            self.entries.retain(|entry| !protects(entry.sequence));
            self.update_times();
        }
    }

    /// Measures the time from request to retransmission. After several requests, the answered one is unknown (Karn's
    /// rule), with two exceptions. A response that comes sooner after the last request than any before is the response
    /// to the request before that. The very first response is to the first request, because the sender waits for a
    /// round trip, too.
    fn sample(&mut self, now: Time, entry: &MissingPacket) {
        let request_time = match (entry.requests, self.response_time) {
            (0, _) => return,
            (1, _) => entry.requested,
            (_, None) => entry.first_requested,
            _ if now - entry.requested < self.shortest => entry.requested_before,
            _ => return,
        };
        let response_time = now - request_time;
        (self.response_time, self.shortest) = match self.response_time {
            None => (Some((response_time, Span::ZERO)), response_time),
            Some((mean, deviation)) => {
                let mean_now = mean + (response_time - mean) / 8;
                let deviation = deviation + ((response_time - mean).abs() - deviation) / 4;
                (Some((mean_now, deviation)), self.shortest.min(response_time))
            }
        };
    }

    /// Gives up packets that cannot be repaired any more, and those of frames before `base`; returns whether there were
    /// any.
    pub(crate) fn give_up(&mut self, now: Time, base: u32) -> bool {
        let before = self.entries.len();
        let late = |entry: &MissingPacket| (entry.last.wrapping_sub(base) as i32) < 0;
        let (nack, group, response_time, parity) = (self.nack, self.group, self.response_time(), self.parity);
        self.entries.retain(|entry| {
            !late(entry)
                && expiry(entry, nack, response_time) > now
                && may_be_repaired(entry, group, nack, parity)
        });
        // response times may have become longer since the expiry was computed
        if self.entries.len() != before || self.expiry <= now {
            self.update_times();
        }
        self.entries.len() != before
    }

    /// Takes the sequence numbers to request now, in order, at most `limit`.
    pub(crate) fn take(&mut self, now: Time, limit: usize) -> Vec<u16> {
        let Some(nack) = self.nack else { return Vec::new() };
        if self.request_due > now {
            return Vec::new();
        }
        let response_time = self.response_time();
        let mut numbers = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.request_due <= now) {
            if numbers.len() == limit {
                // the next request asks for it
                entry.request_due = now + PROCESS_INTERVAL;
                continue;
            }
            entry.requests += 1;
            if entry.requests == 1 {
                entry.first_requested = now;
            }
            (entry.requested_before, entry.requested) = (entry.requested, now);
            entry.request_due = if entry.requests < nack.requests { now + response_time } else { Time::MAX };
            numbers.push(entry.sequence as u16);
        }
        self.update_times();
        numbers
    }

    fn update_times(&mut self) {
        debug_assert!(self.entries.len() <= MAX_NACK_PACKETS, "{} packets are missing", self.entries.len());
        debug_assert!(
            self.entries.iter().is_sorted_by(|a, b| a.sequence < b.sequence),
            "{} packets, not in the order of their numbers",
            self.entries.len()
        );
        let response_time = self.response_time();
        self.request_due = self.entries.iter().map(|entry| entry.request_due).min().unwrap_or(Time::MAX);
        let expiries = self.entries.iter().map(|entry| expiry(entry, self.nack, response_time));
        self.expiry = expiries.min().unwrap_or(Time::MAX);
    }
}

/// When a packet is given up at the latest: when the sender has dropped it, or the last request has had its time.
fn expiry(entry: &MissingPacket, nack: Option<Nack>, response_time: Span) -> Time {
    let Some(nack) = nack else { return entry.since + PARITY_EXPIRY };
    let forgotten = entry.since + nack.keep;
    if entry.requests == nack.requests {
        forgotten.min(entry.requested + response_time * 2)
    } else {
        forgotten
    }
}

/// Whether a packet may still be repaired: without requests only parity does, which comes in the order of its groups.
fn may_be_repaired(entry: &MissingPacket, group: Option<i64>, nack: Option<Nack>, parity: i64) -> bool {
    nack.is_some() || group.is_some_and(|packets| parity < entry.sequence + packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn frame(frame: u32) -> FramePosition {
        FramePosition { frame, last: true }
    }

    fn missing(requests: u32) -> Missing {
        Missing::new(Some(Nack { requests, ..Nack::default() }), None)
    }

    #[test]
    fn packets_that_do_not_fit_into_a_request_are_in_the_next_one() {
        let mut missing = missing(3);
        missing.arrived(ms(0), 0, frame(0));
        missing.arrived(ms(10), 301, frame(4));
        assert_eq!(missing.request_due(), ms(15));
        let first = missing.take(ms(40), 256);
        assert_eq!((first.len(), first[0], first[255]), (256, 1, 256));
        assert_eq!(missing.request_due(), ms(60), "never in the past");
        let rest = missing.take(ms(60), 256);
        assert_eq!((rest.len(), rest[0], rest[43]), (44, 257, 300));
        assert_eq!(missing.request_due(), ms(140), "the first ones again, after a round trip");
    }

    #[test]
    fn a_gap_is_requested_once_a_round_trip_and_no_more_than_allowed() {
        let mut missing = missing(3);
        missing.arrived(ms(0), 65_534, frame(0));
        missing.arrived(ms(10), 65_538, frame(4));
        assert_eq!((missing.request_due(), missing.first_repairable()), (ms(15), Some(1)));
        assert!(missing.take(ms(14), 100).is_empty(), "it may have been overtaken");
        // a late packet arrives without a request
        assert_eq!(missing.arrived(ms(14), 65_536, frame(2)), ArrivalKind::New);
        assert_eq!(missing.take(ms(15), 100), [65_535, 1]);
        // its retransmission gives the first response time
        assert!(missing.restored(ms(45), 65_535, true, frame(1)));
        assert_eq!(missing.arrived(ms(46), 65_535, frame(1)), ArrivalKind::Restored);
        assert_eq!(missing.request_due(), ms(115), "requested before that was known");
        assert_eq!(missing.take(ms(115), 100), [1]);
        assert_eq!(missing.take(ms(145), 100), [1]);
        assert_eq!((missing.request_due(), missing.expiry()), (Time::MAX, ms(205)));
        assert!(!missing.give_up(ms(204), 0) && missing.give_up(ms(205), 0));
        assert_eq!(missing.first_repairable(), None);
        assert!(!missing.restored(ms(206), 65_537, true, frame(3)), "it is not needed");
        assert_eq!(missing.arrived(ms(207), 65_537, frame(3)), ArrivalKind::Unneeded);
    }

    #[test]
    fn a_long_round_trip_is_learnt_from_the_first_response() {
        let mut missing = missing(10);
        missing.arrived(ms(0), 0, frame(0));
        for (k, response) in [(1, 305), (2, 1302)] {
            let lost = 1000 * (k - 1);
            missing.arrived(ms(lost), 2 * k, frame(2 * k as u32));
            let mut request_times = Vec::new();
            for millis in lost..response {
                request_times.extend(missing.take(ms(millis), 9).iter().map(|_| millis - lost));
            }
            assert!(missing.restored(ms(response), 2 * k - 1, true, frame(0)));
            // 300 ms from the first request; then 297 ms, before which there is no second one
            assert_eq!(request_times, if k == 1 { vec![5, 105, 205] } else { vec![5] });
        }
        // 299.625 ms in the mean, with a deviation of 0.75 ms; a response soon after the second request is to the first
        missing.arrived(ms(2000), 6, frame(6));
        assert_eq!(missing.take(ms(2005), 9), [5]);
        assert_eq!((missing.request_due() - ms(2005)).as_nanos(), 302_625_000);
        assert_eq!(missing.take(missing.request_due(), 9), [5]);
        assert!(missing.restored(ms(2325), 5, true, frame(5)));
        assert_eq!(
            missing.response_time().as_nanos(),
            299_625_000 + 20_375_000 / 8 + 4 * (750_000 + (20_375_000 - 750_000) / 4)
        );
    }

    #[test]
    fn packets_of_shown_frames_and_dropped_packets_are_not_requested() {
        let mut missing = missing(10);
        missing.arrived(ms(0), 0, frame(0));
        missing.arrived(ms(0), 2, frame(2));
        missing.arrived(ms(0), 4, frame(4));
        assert!(missing.give_up(ms(1), 3), "frame 1 or 2 has been shown");
        assert_eq!(missing.take(ms(5), 100), [3]);
        assert!(missing.give_up(ms(1000), 3), "the sender has dropped it");
        // a jump is no loss
        missing.arrived(ms(1000), 5000, frame(5));
        assert_eq!(missing.first_repairable(), None);
    }

    #[test]
    fn without_requests_missing_packets_wait_for_their_parity() {
        let mut missing = Missing::new(None, Some(4));
        missing.arrived(ms(0), 0, frame(0));
        missing.arrived(ms(0), 2, frame(2));
        assert_eq!((missing.request_due(), missing.first_repairable()), (Time::MAX, Some(1)));
        missing.arrived(ms(1), 3, frame(3));
        // groups may be shorter, and then this is not yet parity of a later one
        let over = |offset, count| Parity { offset, count, ..Parity::default() };
        missing.parity(4, &over(1, 4));
        assert!(!missing.give_up(ms(1), 0));
        // nor does this protect packet 1
        missing.parity(0, &over(2, 2));
        assert_eq!(missing.first_repairable(), Some(1));
        missing.parity(5, &over(1, 4));
        assert!(missing.give_up(ms(1), 0), "its parity has come or is lost");
        missing.arrived(ms(1), 5, frame(5));
        missing.parity(4, &over(1, 4));
        assert_eq!(missing.first_repairable(), None, "its parity has come and could not restore it");
        // parity may restore a packet before any later one arrives
        assert!(missing.restored(ms(2), 7, false, frame(7)));
        assert_eq!((missing.next(), missing.first_repairable()), (Some(8), Some(6)));
        assert!(!missing.give_up(ms(1001), 0) && missing.give_up(ms(1002), 0));
    }
}
