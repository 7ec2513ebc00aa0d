//! Base delay: the lowest one-way delay of the last minutes.

use std::collections::VecDeque;
use tidegate_core::Time;

const MINUTE: i64 = 60_000_000_000;

/// Lowest delay of each of the last minutes, as in LEDBAT (RFC 6817 section 4.2, BASE_HISTORY), to which RFC 8698 section
/// 5.1.1 refers. Older minutes are dropped, because the route or the clocks may have changed.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Number of minutes kept; zero: all of them.
    history: u64,
    /// Minutes with their lowest delays, ns; the newest last.
    minutes: VecDeque<(i64, i64)>,
}

impl Baseline {
    /// Creates a baseline without delays.
    #[must_use]
    pub fn new(history: u64) -> Self {
        Self { history, minutes: VecDeque::new() }
    }

    /// Takes a delay (ns) that was measured `now`.
    pub fn add(&mut self, now: Time, delay: i64) {
        let minute = if self.history == 0 { 0 } else { now.as_nanos() / MINUTE };
        match self.minutes.back_mut() {
            Some((last, lowest)) if *last == minute => *lowest = delay.min(*lowest),
            _ => self.minutes.push_back((minute, delay)),
        }
        let length = i64::try_from(self.history).unwrap_or(i64::MAX);
        while self.minutes.front().is_some_and(|&(first, _)| minute - first >= length && first != minute) {
            self.minutes.pop_front();
        }
    }

    /// Base delay (d_base), ns.
    #[must_use]
    pub fn lowest(&self) -> Option<i64> {
        self.minutes.iter().map(|&(_, lowest)| lowest).min()
    }

    /// Drops all delays.
    pub fn clear(&mut self) {
        self.minutes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_history_is_forgotten() {
        let mut base = Baseline::new(10);
        assert_eq!(base.lowest(), None);
        for (minute, delay, lowest) in [(0, 50, 50), (0, 40, 40), (5, 60, 40), (9, 70, 40), (10, 70, 60)] {
            base.add(Time::from_secs(60 * minute), delay);
            assert_eq!(base.lowest(), Some(lowest), "minute {minute}");
        }
        // the sixth minute's delay is in force to the end of the fourteenth
        base.add(Time::from_secs(60 * 14 + 59), 80);
        assert_eq!(base.lowest(), Some(60));
        base.add(Time::from_secs(60 * 15), 80);
        assert_eq!(base.lowest(), Some(70));
        // after a silence nothing is left but what is new
        base.add(Time::from_secs(6000), 90);
        assert_eq!(base.lowest(), Some(90));
    }

    #[test]
    fn without_a_history_nothing_is_forgotten() {
        let mut base = Baseline::new(0);
        base.add(Time::ZERO, 50);
        base.add(Time::from_secs(100_000), 60);
        assert_eq!(base.lowest(), Some(50));
        base.clear();
        assert_eq!(base.lowest(), None);
    }
}
