//! The fraction lost: over which packets, and when there is a new one.

use crate::settings::words;
use std::collections::VecDeque;
use tidegate_core::math;
use tidegate_core::units::{Span, Time};

words! {
    /// Over which packets the fraction lost is taken.
    LossOver:
    /// Those reported since the last fraction, for an interval and at least so many.
    Interval = "interval",
    /// The last so many that were reported on.
    Packets = "packets",
    /// Those reported on that were sent in the interval up to the last one of them.
    Time = "time",
}

/// How losses are counted.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Over which packets.
    pub over: LossOver,
    /// The interval, ms.
    pub interval: f64,
    /// So many.
    pub packets: u64,
    /// Whether the fraction is rounded down to 1/256, as in a receiver report (RFC 3550 6.4.1).
    pub in_256ths: bool,
}

/// What was counted so far.
#[derive(Clone)]
pub struct Fraction {
    rules: Rules,
    next: Option<Time>,
    expected: i64,
    lost: i64,
    /// As of the last receiver report.
    cumulative: Option<i32>,
    window: Window,
}

/// The last packets that were reported on, as they were.
#[derive(Clone, Default)]
struct Window {
    /// Sequence number, when it was sent, whether it was lost; in order of reporting.
    packets: VecDeque<(u64, Time, bool)>,
    lost: i64,
    /// The latest send time so far.
    newest: Time,
}

impl Window {
    fn push(&mut self, rules: &Rules, sequence: u64, sent: Time, lost: bool) {
        self.newest = self.newest.max(sent);
        self.packets.push_back((sequence, sent, lost));
        self.lost += i64::from(lost);
        let most = match rules.over {
            LossOver::Packets => rules.packets as usize,
            LossOver::Interval | LossOver::Time => usize::MAX,
        };
        let length = Span::from_millis_f64(rules.interval);
        while let Some(&(_, sent, lost)) = self.packets.front() {
            let old = rules.over == LossOver::Time && self.newest.saturating_since(sent) >= length;
            if self.packets.len() <= most && !(old && self.packets.len() > 1) {
                break;
            }
            self.packets.pop_front();
            self.lost -= i64::from(lost);
        }
        self.check();
    }

    /// Holds that no more are counted as lost than there are.
    fn check(&self) {
        let (lost, packets) = (self.lost, self.packets.len());
        debug_assert!((0..=packets as i64).contains(&lost), "{lost} lost of {packets} packets");
    }

    /// A packet reported as lost has come after all.
    fn recover(&mut self, sequence: u64) {
        if let Some(packet) = self.packets.iter_mut().rev().find(|packet| packet.0 == sequence) {
            self.lost -= i64::from(std::mem::take(&mut packet.2));
        }
        self.check();
    }
}

impl Fraction {
    /// Nothing is counted yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, next: None, expected: 0, lost: 0, cumulative: None, window: Window::default() }
    }

    /// Takes what a report newly says of one packet.
    pub fn packet(&mut self, sequence: u64, sent: Time, lost: bool) {
        if self.rules.over != LossOver::Interval {
            self.window.push(&self.rules, sequence, sent, lost);
        }
    }

    /// A packet that was reported as lost has come after all.
    pub fn recovered(&mut self, sequence: u64) {
        self.window.recover(sequence);
    }

    /// Takes what one report newly says: packets expected and lost. A negative number of lost ones takes
    /// back earlier losses. Answers with a new fraction, if there is one.
    pub fn report(&mut self, expected: i64, lost: i64, now: Time) -> Option<f64> {
        if self.rules.over != LossOver::Interval {
            return Some(self.of(self.window.packets.len() as i64, self.window.lost));
        }
        self.expected = self.expected.saturating_add(expected);
        self.lost = self.lost.saturating_add(lost);
        if self.next.is_some_and(|next| now <= next) {
            return None;
        }
        self.next = Some(now + Span::from_millis_f64(self.rules.interval));
        if self.expected < self.rules.packets as i64 {
            return None;
        }
        let fraction = self.of(self.expected, self.lost);
        (self.expected, self.lost) = (0, 0);
        Some(fraction)
    }

    /// How many were lost since the receiver report before, which says `cumulative`; none of the first one, which has
    /// nothing to be compared with.
    pub fn since(&mut self, cumulative: i32) -> Option<i64> {
        let before = self.cumulative.replace(cumulative)?;
        Some(i64::from(cumulative) - i64::from(before))
    }

    fn of(&self, expected: i64, lost: i64) -> f64 {
        let share = lost.max(0) as f64 / expected.max(1) as f64;
        if self.rules.in_256ths { math::floor(share * 256.0).min(255.0) / 256.0 } else { share.min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::Placement;
    use crate::gcc::presets::hoang2017::Settings;

    fn over(loss_over: LossOver) -> Fraction {
        Fraction::new(Settings { loss_over, ..Settings::default() }.loss(Placement::Sender).fraction)
    }

    /// Packets sent every 10 ms from `first` on, a report for each hundred, of which every `nth` is lost.
    fn hundred(fraction: &mut Fraction, first: u64, nth: u64) -> Option<f64> {
        for sequence in first..first + 100 {
            fraction.packet(sequence, Time::from_millis(10 * sequence as i64), sequence % nth == 0);
        }
        fraction.report(100, 0, Time::ZERO)
    }

    #[test]
    fn the_fraction_may_be_that_of_the_last_packets() {
        let mut fraction = over(LossOver::Packets);
        // fewer than a hundred: of those there are
        (0..10).for_each(|i| fraction.packet(i, Time::ZERO, i < 2));
        assert_eq!(fraction.report(10, 2, Time::ZERO), Some(0.2));
        assert_eq!(hundred(&mut fraction, 1000, 4), Some(0.25));
        // half of them are still in the window
        (0..50).for_each(|i| fraction.packet(1100 + i, Time::from_secs(11), false));
        assert_eq!(fraction.report(50, 0, Time::ZERO), Some(0.12));
        // two of those that are in it, and one that is not, came after all
        [1096, 1052, 1000, 1052].into_iter().for_each(|sequence| fraction.recovered(sequence));
        assert_eq!(fraction.report(1, -1, Time::ZERO), Some(0.1));
    }

    #[test]
    fn the_fraction_may_be_that_of_the_last_half_second() {
        let mut fraction = over(LossOver::Time);
        // those sent after 490 ms: 50 to 99
        assert_eq!(hundred(&mut fraction, 0, 5), Some(0.2));
        assert_eq!(fraction.window.packets.len(), 50);
        fraction.packet(150, Time::from_millis(1500), true);
        assert_eq!(fraction.report(1, 1, Time::ZERO), Some(1.0));
    }
}
