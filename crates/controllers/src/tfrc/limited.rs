//! Whether the sender had less to send than it was allowed to (RFC 5348 section 4.3 step 4).
//!
//! Section 8.2.1 proposes to remember two instants. They are enough for one feedback a round trip, but
//! one that comes early for a loss event finds neither, and a busy sender is taken for a data-limited one
//! that has to give way twice. So all periods in which the sender was busy are kept until they have been
//! reported on.

use std::collections::VecDeque;
use tidegate_core::Time;

/// When the sender was busy, as far as no feedback has told of it.
#[derive(Clone, Debug, Default)]
pub struct DataLimited {
    /// First and last instant of stretches of packets after which the sender had sent all that it may.
    busy: VecDeque<(Time, Time)>,
    /// Whether the last packet was one of those.
    was_busy: bool,
    /// Sending time of the last packet that a feedback told of.
    covered: Option<Time>,
}

/// More stretches than this, of one round trip, are joined.
const STRETCHES: usize = 64;

impl DataLimited {
    /// A packet has left at `now`; `all` says that the sender has sent all that it may.
    pub fn sent(&mut self, now: Time, all: bool) {
        let joins = self.was_busy || self.busy.len() == STRETCHES;
        match self.busy.back_mut() {
            Some((_, last)) if all && joins => *last = now,
            _ if all => self.busy.push_back((now, now)),
            _ => {}
        }
        self.was_busy = all;
    }

    /// A feedback has come whose last packet was sent at `covers`: whether the sender was data-limited all
    /// the time between the last packet of the feedback before and that one.
    pub fn feedback(&mut self, covers: Time) -> bool {
        let before = self.covered.replace(covers);
        let news = |at: Time| before.is_none_or(|before| at > before);
        let limited = !self.busy.iter().any(|&(first, last)| first <= covers && news(last));
        while self.busy.front().is_some_and(|&(_, last)| last <= covers) {
            self.busy.pop_front();
        }
        if self.busy.is_empty() {
            self.was_busy = false;
        }
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn an_interval_with_one_busy_instant_is_not_limited() {
        let mut limited = DataLimited::default();
        limited.sent(at(0), true);
        assert!(!limited.feedback(at(0)));
        limited.sent(at(100), false);
        assert!(limited.feedback(at(100)));
        limited.sent(at(200), false);
        limited.sent(at(250), true);
        limited.sent(at(300), false);
        assert!(limited.feedback(at(200)), "that was later than what is reported");
        assert!(!limited.feedback(at(300)), "and counts here");
        assert!(limited.feedback(at(400)));
    }

    #[test]
    fn a_busy_sender_is_busy_in_each_of_many_short_intervals() {
        let mut limited = DataLimited::default();
        for now in 1..500 {
            limited.sent(at(10 * now), true);
            if now >= 11 {
                assert!(!limited.feedback(at(10 * now - 100)), "at {now}");
            }
            assert!(limited.busy.len() <= 1);
        }
    }

    #[test]
    fn it_does_not_grow_and_joins_only_what_was_busy() {
        let mut limited = DataLimited::default();
        (0..1000).for_each(|now| limited.sent(at(now), now % 2 == 0));
        assert_eq!(limited.busy.len(), STRETCHES);
        assert!(!limited.feedback(at(998)));
        limited.sent(at(2000), false);
        assert!(limited.feedback(at(2000)));
    }
}
