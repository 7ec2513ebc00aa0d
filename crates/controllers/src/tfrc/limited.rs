//! Data-limited intervals, in which the sender had less to send than it was allowed to (RFC 5348 section 4.3 step 4).
//!
//! Section 8.2.1 proposes to store two times. They are enough for one feedback per round trip. But an early feedback for a
//! loss event matches neither, so that a busy sender would count as data-limited and reduce its rate twice. So all periods
//! in which the sender was busy are stored until feedback has covered them.

use std::collections::VecDeque;
use tidegate_core::Time;

/// Busy periods of the sender that no feedback has covered yet.
#[derive(Clone, Debug, Default)]
pub struct DataLimited {
    /// First and last time of each period in which the sender used its full rate.
    busy: VecDeque<(Time, Time)>,
    /// Whether the last packet was in a busy period.
    was_busy: bool,
    /// Departure of the last packet that a feedback has covered.
    covered: Option<Time>,
}

/// Largest number of periods in a round trip; more are joined.
const MAX_PERIODS: usize = 64;

impl DataLimited {
    /// Takes a packet that leaves `now`; `is_busy` if the sender uses its full rate.
    pub fn sent(&mut self, now: Time, is_busy: bool) {
        let joins = self.was_busy || self.busy.len() == MAX_PERIODS;
        match self.busy.back_mut() {
            Some((_, last)) if is_busy && joins => *last = now,
            _ if is_busy => self.busy.push_back((now, now)),
            _ => {}
        }
        self.was_busy = is_busy;
    }

    /// Takes a feedback whose last packet was sent at `covers`. Returns whether the sender was data-limited throughout since
    /// the last packet of the previous feedback.
    pub fn feedback(&mut self, covers: Time) -> bool {
        let before = self.covered.replace(covers);
        let is_new = |time: Time| before.is_none_or(|before| time > before);
        let limited = !self.busy.iter().any(|&(first, last)| first <= covers && is_new(last));
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

    fn millis(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn an_interval_with_one_busy_instant_is_not_limited() {
        let mut limited = DataLimited::default();
        limited.sent(millis(0), true);
        assert!(!limited.feedback(millis(0)));
        limited.sent(millis(100), false);
        assert!(limited.feedback(millis(100)));
        limited.sent(millis(200), false);
        limited.sent(millis(250), true);
        limited.sent(millis(300), false);
        assert!(limited.feedback(millis(200)), "the busy period is later than the feedback covers");
        assert!(!limited.feedback(millis(300)), "and counts here");
        assert!(limited.feedback(millis(400)));
    }

    #[test]
    fn a_busy_sender_is_busy_in_each_of_many_short_intervals() {
        let mut limited = DataLimited::default();
        for now in 1..500 {
            limited.sent(millis(10 * now), true);
            if now >= 11 {
                assert!(!limited.feedback(millis(10 * now - 100)), "at {now}");
            }
            assert!(limited.busy.len() <= 1);
        }
    }

    #[test]
    fn it_does_not_grow_and_joins_only_what_was_busy() {
        let mut limited = DataLimited::default();
        (0..1000).for_each(|now| limited.sent(millis(now), now % 2 == 0));
        assert_eq!(limited.busy.len(), MAX_PERIODS);
        assert!(!limited.feedback(millis(998)));
        limited.sent(millis(2000), false);
        assert!(limited.feedback(millis(2000)));
    }
}
