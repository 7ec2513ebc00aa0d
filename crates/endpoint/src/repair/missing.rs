//! What a receiver misses of one stream, and when it asks for it.

use super::Nack;
use std::collections::VecDeque;
use tidegate_core::datagram::Parity;
use tidegate_core::{Span, Time};

/// More missing packets are a jump, and nothing that could be repaired (libwebrtc `kMaxNackPackets`).
const MISSING_MAX: usize = 1000;
/// Restored packets that are remembered, should they come after all.
const RESTORED_MAX: usize = 1000;
/// From a request to the retransmission, before there was one (libwebrtc `kDefaultRtt`).
const FIRST_ROUND: Span = Span::from_millis(100);
/// No two requests for one packet come closer (libwebrtc `kProcessInterval`, how often it looks: 20 ms).
const LEAST_ROUND: Span = Span::from_millis(20);
/// How long parity may repair what is not asked for.
const PARITY_KEEP: Span = Span::from_secs(1);

/// Where a packet belongs, as far as playout goes by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) frame: u32,
    pub(crate) last: bool,
}

/// How a packet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is the first.
    New,
    /// It was given up before, or has never been missing: nobody waits for it.
    Unasked,
    /// It has been restored already.
    Restored,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: i64,
    since: Time,
    /// When it is asked for next; [`Time::MAX`] for not any more.
    ask: Time,
    /// When it was asked for first, the last time but one, and last, and how often.
    first_asked: Time,
    asked_before: Time,
    asked: Time,
    requests: u32,
    /// The frames between which it was sent.
    first: u32,
    last: u32,
}

/// The missing packets of a stream.
#[derive(Debug)]
pub(crate) struct Missing {
    nack: Option<Nack>,
    /// Packets that a group of parity has at most, if there is any, and the highest first number of parity that came.
    group: Option<i64>,
    parity: i64,
    /// The next sequence number, and where the packet before it belongs.
    next: Option<i64>,
    newest: Place,
    /// In order of their numbers.
    entries: VecDeque<Entry>,
    restored: VecDeque<i64>,
    /// From request to retransmission: mean and mean deviation, and the least.
    round: Option<(Span, Span)>,
    least: Span,
    /// When the first is to be asked for, and when the first is to be given up.
    ask: Time,
    expiry: Time,
}

impl Missing {
    /// `group`: packets of a group of parity, if there is any.
    pub(crate) fn new(nack: Option<Nack>, group: Option<u8>) -> Self {
        Self {
            nack,
            group: group.map(i64::from),
            parity: i64::MIN,
            next: None,
            newest: Place::default(),
            entries: VecDeque::new(),
            restored: VecDeque::new(),
            round: None,
            least: Span::ZERO,
            ask: Time::MAX,
            expiry: Time::MAX,
        }
    }

    /// When something is to be asked for; [`Time::MAX`] for never.
    pub(crate) fn ask_due(&self) -> Time {
        self.ask
    }

    /// When something is to be given up.
    pub(crate) fn expiry(&self) -> Time {
        self.expiry
    }

    /// The next sequence number, once there was one.
    pub(crate) fn next(&self) -> Option<i64> {
        self.next
    }

    /// The first frame that may yet be repaired.
    pub(crate) fn hope(&self) -> Option<u32> {
        self.entries.front().map(|entry| entry.first)
    }

    /// The time from a request to the retransmission, after which the request is repeated.
    fn round(&self) -> Span {
        let (mean, deviation) = self.round.unwrap_or((FIRST_ROUND, Span::ZERO));
        // as RFC 6298 has it for TCP, but begun without deviation: else the first losses would be asked for
        // again only after three round trips
        (mean + deviation * 4).max(LEAST_ROUND)
    }

    /// Takes note of a packet that has arrived from the network.
    pub(crate) fn arrived(&mut self, now: Time, sequence: i64, place: Place) -> Standing {
        let Some(next) = self.next else {
            (self.next, self.newest) = (Some(sequence + 1), place);
            return Standing::New;
        };
        if sequence < next {
            if let Some(at) = self.restored.iter().position(|&restored| restored == sequence) {
                self.restored.remove(at);
                return Standing::Restored;
            }
            return if self.remove(sequence).is_some() { Standing::New } else { Standing::Unasked };
        }
        if sequence > next {
            self.open(now, next, sequence, place.frame);
            self.update_times();
        }
        (self.next, self.newest) = (Some(sequence + 1), place);
        Standing::New
    }

    /// Enters the packets from `next` up to but not including `sequence`, which is of frame `frame`.
    fn open(&mut self, now: Time, next: i64, sequence: i64, frame: u32) {
        if sequence - next > MISSING_MAX as i64 {
            self.entries.clear();
            return;
        }
        let first = self.newest.frame.wrapping_add(u32::from(self.newest.last));
        let ask = self.nack.map_or(Time::MAX, |nack| now + nack.wait);
        for sequence in next..sequence {
            if self.entries.len() == MISSING_MAX {
                self.entries.pop_front();
            }
            let entry = Entry {
                sequence,
                since: now,
                ask,
                first_asked: now,
                asked_before: now,
                asked: now,
                requests: 0,
                first,
                last: frame,
            };
            self.entries.push_back(entry);
        }
    }

    fn remove(&mut self, sequence: i64) -> Option<Entry> {
        let at = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence).ok()?;
        let entry = self.entries.remove(at);
        self.update_times();
        entry
    }

    /// Takes note that a packet, of the frame `frame`, has been restored, by retransmission or by parity; says
    /// whether anybody waited for it.
    pub(crate) fn restored(&mut self, now: Time, sequence: i64, resent: bool, place: Place) -> bool {
        let Some(next) = self.next else { return false };
        if sequence >= next {
            // parity told of it before any later packet did
            if sequence - next > MISSING_MAX as i64 {
                return false;
            }
            self.open(now, next, sequence, place.frame);
            (self.next, self.newest) = (Some(sequence + 1), place);
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

    /// Parity over the packets from `base` on has come, and has restored what it can: without requests, nothing will
    /// restore the others that it protects.
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

    /// Measures the time from request to retransmission. With several requests nobody knows which one was answered
    /// (Karn's rule); but what comes sooner after the last than any answer has is the answer to the one before, and
    /// as long as there was no answer at all it is the answer to the first: the sender keeps its round trip, too.
    fn sample(&mut self, now: Time, entry: &Entry) {
        let asked = match (entry.requests, self.round) {
            (0, _) => return,
            (1, _) => entry.asked,
            (_, None) => entry.first_asked,
            _ if now - entry.asked < self.least => entry.asked_before,
            _ => return,
        };
        let round = now - asked;
        (self.round, self.least) = match self.round {
            None => (Some((round, Span::ZERO)), round),
            Some((mean, deviation)) => {
                let mean_now = mean + (round - mean) / 8;
                let deviation = deviation + ((round - mean).abs() - deviation) / 4;
                (Some((mean_now, deviation)), self.least.min(round))
            }
        };
    }

    /// Gives up what cannot be repaired any more; of frames before `shown` nothing is of use. Says whether
    /// anything was given up.
    pub(crate) fn give_up(&mut self, now: Time, shown: u32) -> bool {
        let before = self.entries.len();
        let late = |entry: &Entry| (entry.last.wrapping_sub(shown) as i32) < 0;
        let (nack, group, round, parity) = (self.nack, self.group, self.round(), self.parity);
        self.entries.retain(|entry| {
            !late(entry) && expiry(entry, nack, round) > now && waits(entry, group, nack, parity)
        });
        // round trips may have become longer since the expiry was worked out
        if self.entries.len() != before || self.expiry <= now {
            self.update_times();
        }
        self.entries.len() != before
    }

    /// The numbers to ask for now, in order, at most so many.
    pub(crate) fn take(&mut self, now: Time, most: usize) -> Vec<u16> {
        let Some(nack) = self.nack else { return Vec::new() };
        if self.ask > now {
            return Vec::new();
        }
        let round = self.round();
        let mut numbers = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.ask <= now) {
            if numbers.len() == most {
                // the next packet asks for it
                entry.ask = now + LEAST_ROUND;
                continue;
            }
            entry.requests += 1;
            if entry.requests == 1 {
                entry.first_asked = now;
            }
            (entry.asked_before, entry.asked) = (entry.asked, now);
            entry.ask = if entry.requests < nack.requests { now + round } else { Time::MAX };
            numbers.push(entry.sequence as u16);
        }
        self.update_times();
        numbers
    }

    fn update_times(&mut self) {
        debug_assert!(self.entries.len() <= MISSING_MAX, "{} packets are missing", self.entries.len());
        debug_assert!(
            self.entries.iter().is_sorted_by(|a, b| a.sequence < b.sequence),
            "{} packets, not in the order of their numbers",
            self.entries.len()
        );
        let round = self.round();
        self.ask = self.entries.iter().map(|entry| entry.ask).min().unwrap_or(Time::MAX);
        let expiries = self.entries.iter().map(|entry| expiry(entry, self.nack, round));
        self.expiry = expiries.min().unwrap_or(Time::MAX);
    }
}

/// When a packet is given up at the latest: when the sender has forgotten it, or the last request has had its time.
fn expiry(entry: &Entry, nack: Option<Nack>, round: Span) -> Time {
    let Some(nack) = nack else { return entry.since + PARITY_KEEP };
    let forgotten = entry.since + nack.keep;
    if entry.requests == nack.requests { forgotten.min(entry.asked + round * 2) } else { forgotten }
}

/// Whether anything may yet repair it: without requests only parity does, which comes in the order of its groups.
fn waits(entry: &Entry, group: Option<i64>, nack: Option<Nack>, parity: i64) -> bool {
    nack.is_some() || group.is_some_and(|packets| parity < entry.sequence + packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn frame(frame: u32) -> Place {
        Place { frame, last: true }
    }

    fn missing(requests: u32) -> Missing {
        Missing::new(Some(Nack { requests, ..Nack::default() }), None)
    }

    #[test]
    fn what_does_not_fit_into_one_request_is_asked_for_by_the_next() {
        let mut missing = missing(3);
        missing.arrived(at(0), 0, frame(0));
        missing.arrived(at(10), 301, frame(4));
        assert_eq!(missing.ask_due(), at(15));
        let first = missing.take(at(40), 256);
        assert_eq!((first.len(), first[0], first[255]), (256, 1, 256));
        assert_eq!(missing.ask_due(), at(60), "never in the past");
        let rest = missing.take(at(60), 256);
        assert_eq!((rest.len(), rest[0], rest[43]), (44, 257, 300));
        assert_eq!(missing.ask_due(), at(140), "the first ones again, after a round trip");
    }

    #[test]
    fn a_gap_is_asked_for_once_a_round_trip_and_no_more_than_allowed() {
        let mut missing = missing(3);
        missing.arrived(at(0), 65_534, frame(0));
        missing.arrived(at(10), 65_538, frame(4));
        assert_eq!((missing.ask_due(), missing.hope()), (at(15), Some(1)));
        assert!(missing.take(at(14), 100).is_empty(), "it may have been overtaken");
        // one comes by itself
        assert_eq!(missing.arrived(at(14), 65_536, frame(2)), Standing::New);
        assert_eq!(missing.take(at(15), 100), [65_535, 1]);
        // its retransmission tells how long that takes, from then on
        assert!(missing.restored(at(45), 65_535, true, frame(1)));
        assert_eq!(missing.arrived(at(46), 65_535, frame(1)), Standing::Restored);
        assert_eq!(missing.ask_due(), at(115), "asked for before that was known");
        assert_eq!(missing.take(at(115), 100), [1]);
        assert_eq!(missing.take(at(145), 100), [1]);
        assert_eq!((missing.ask_due(), missing.expiry()), (Time::MAX, at(205)));
        assert!(!missing.give_up(at(204), 0) && missing.give_up(at(205), 0));
        assert_eq!(missing.hope(), None);
        assert!(!missing.restored(at(206), 65_537, true, frame(3)), "nobody waits for it");
        assert_eq!(missing.arrived(at(207), 65_537, frame(3)), Standing::Unasked);
    }

    #[test]
    fn a_long_way_is_learnt_from_the_first_answer() {
        let mut missing = missing(10);
        missing.arrived(at(0), 0, frame(0));
        for (k, answer) in [(1, 305), (2, 1302)] {
            let lost = 1000 * (k - 1);
            missing.arrived(at(lost), 2 * k, frame(2 * k as u32));
            let mut asked = Vec::new();
            for millis in lost..answer {
                asked.extend(missing.take(at(millis), 9).iter().map(|_| millis - lost));
            }
            assert!(missing.restored(at(answer), 2 * k - 1, true, frame(0)));
            // 300 ms from the first request; then 297 ms, before which there is no second one
            assert_eq!(asked, if k == 1 { vec![5, 105, 205] } else { vec![5] });
        }
        // 299.625 ms in the mean, with a deviation of 0.75 ms; an answer soon after the second request is to the first
        missing.arrived(at(2000), 6, frame(6));
        assert_eq!(missing.take(at(2005), 9), [5]);
        assert_eq!((missing.ask_due() - at(2005)).as_nanos(), 302_625_000);
        assert_eq!(missing.take(missing.ask_due(), 9), [5]);
        assert!(missing.restored(at(2325), 5, true, frame(5)));
        assert_eq!(
            missing.round().as_nanos(),
            299_625_000 + 20_375_000 / 8 + 4 * (750_000 + (20_375_000 - 750_000) / 4)
        );
    }

    #[test]
    fn what_was_shown_or_is_forgotten_is_not_asked_for() {
        let mut missing = missing(10);
        missing.arrived(at(0), 0, frame(0));
        missing.arrived(at(0), 2, frame(2));
        missing.arrived(at(0), 4, frame(4));
        assert!(missing.give_up(at(1), 3), "frame 1 or 2 has been shown");
        assert_eq!(missing.take(at(5), 100), [3]);
        assert!(missing.give_up(at(1000), 3), "the sender has forgotten it");
        // a jump is no loss
        missing.arrived(at(1000), 5000, frame(5));
        assert_eq!(missing.hope(), None);
    }

    #[test]
    fn without_requests_what_is_missing_waits_for_its_parity() {
        let mut missing = Missing::new(None, Some(4));
        missing.arrived(at(0), 0, frame(0));
        missing.arrived(at(0), 2, frame(2));
        assert_eq!((missing.ask_due(), missing.hope()), (Time::MAX, Some(1)));
        missing.arrived(at(1), 3, frame(3));
        // groups may be shorter, and then this is not yet parity of a later one
        let over = |offset, count| Parity { offset, count, ..Parity::default() };
        missing.parity(4, &over(1, 4));
        assert!(!missing.give_up(at(1), 0));
        // nor does this protect packet 1
        missing.parity(0, &over(2, 2));
        assert_eq!(missing.hope(), Some(1));
        missing.parity(5, &over(1, 4));
        assert!(missing.give_up(at(1), 0), "its parity has come or is lost");
        missing.arrived(at(1), 5, frame(5));
        missing.parity(4, &over(1, 4));
        assert_eq!(missing.hope(), None, "its parity has come and could not restore it");
        // parity may tell of a packet before any later one
        assert!(missing.restored(at(2), 7, false, frame(7)));
        assert_eq!((missing.next(), missing.hope()), (Some(8), Some(6)));
        assert!(!missing.give_up(at(1001), 0) && missing.give_up(at(1002), 0));
    }
}
