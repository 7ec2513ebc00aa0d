//! The least one-way delay of the last minutes.

use std::collections::VecDeque;
use tidegate_core::Time;

const MINUTE: i64 = 60_000_000_000;

/// The least delay of each of the last minutes, as LEDBAT keeps it (RFC 6817 section 4.2, BASE_HISTORY), to which RFC 8698
/// section 5.1.1 refers. What is older is forgotten, because the route or the clocks may have changed.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// How many minutes are kept; zero: all of them.
    history: u64,
    /// Each minute and its least delay in ns, the newest last.
    minutes: VecDeque<(i64, i64)>,
}

impl Baseline {
    /// Without a delay so far.
    #[must_use]
    pub fn new(history: u64) -> Self {
        Self { history, minutes: VecDeque::new() }
    }

    /// Takes in a delay that was measured `now`.
    pub fn add(&mut self, now: Time, delay: i64) {
        let minute = if self.history == 0 { 0 } else { now.as_nanos() / MINUTE };
        match self.minutes.back_mut() {
            Some((last, least)) if *last == minute => *least = delay.min(*least),
            _ => self.minutes.push_back((minute, delay)),
        }
        let kept = i64::try_from(self.history).unwrap_or(i64::MAX);
        while self.minutes.front().is_some_and(|&(first, _)| minute - first >= kept && first != minute) {
            self.minutes.pop_front();
        }
    }

    /// The least delay (d_base), in ns.
    #[must_use]
    pub fn least(&self) -> Option<i64> {
        self.minutes.iter().map(|&(_, least)| least).min()
    }

    /// Begins anew.
    pub fn forget(&mut self) {
        self.minutes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_history_is_forgotten() {
        let mut base = Baseline::new(10);
        assert_eq!(base.least(), None);
        for (minute, delay, least) in [(0, 50, 50), (0, 40, 40), (5, 60, 40), (9, 70, 40), (10, 70, 60)] {
            base.add(Time::from_secs(60 * minute), delay);
            assert_eq!(base.least(), Some(least), "minute {minute}");
        }
        // the sixth minute's delay is in force to the end of the fourteenth
        base.add(Time::from_secs(60 * 14 + 59), 80);
        assert_eq!(base.least(), Some(60));
        base.add(Time::from_secs(60 * 15), 80);
        assert_eq!(base.least(), Some(70));
        // after a silence nothing is left but what is new
        base.add(Time::from_secs(6000), 90);
        assert_eq!(base.least(), Some(90));
    }

    #[test]
    fn without_a_history_nothing_is_forgotten() {
        let mut base = Baseline::new(0);
        base.add(Time::ZERO, 50);
        base.add(Time::from_secs(100_000), 60);
        assert_eq!(base.least(), Some(50));
        base.forget();
        assert_eq!(base.least(), None);
    }
}
