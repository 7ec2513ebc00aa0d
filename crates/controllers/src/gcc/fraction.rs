//! Fraction lost: the packets over which it is taken, and the times of new ones.

use crate::settings::words;
use std::collections::VecDeque;
use tidegate_core::math;
use tidegate_core::units::{Span, Time};

words! {
    /// Packets over which the fraction lost is taken.
    LossOver:
    /// Packets reported since the last fraction, over an interval and at least a minimum number.
    Interval = "interval",
    /// The last reported packets, a fixed number.
    Packets = "packets",
    /// Reported packets that were sent within an interval before the last of them.
    Time = "time",
}

/// Parameters of the fraction lost.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Packets over which it is taken.
    pub over: LossOver,
    /// Interval, ms.
    pub interval: f64,
    /// Number of packets: the minimum in an interval, or the length of the window.
    pub packets: u64,
    /// Whether the fraction is rounded down to 1/256, as in a receiver report (RFC 3550 6.4.1).
    pub in_256ths: bool,
}

/// Counts of packets and losses.
#[derive(Clone)]
pub struct Fraction {
    config: Config,
    next: Option<Time>,
    expected: i64,
    lost: i64,
    /// Cumulative number of packets lost in the last receiver report.
    cumulative: Option<i32>,
    window: Window,
}

/// Last reported packets.
#[derive(Clone, Default)]
struct Window {
    /// Sequence number, departure, and whether the packet was lost; in order of reporting.
    packets: VecDeque<(u64, Time, bool)>,
    lost: i64,
    /// Latest departure so far.
    newest: Time,
}

impl Window {
    fn push(&mut self, config: &Config, sequence: u64, sent: Time, lost: bool) {
        self.newest = self.newest.max(sent);
        self.packets.push_back((sequence, sent, lost));
        self.lost += i64::from(lost);
        let max_len = match config.over {
            LossOver::Packets => config.packets as usize,
            LossOver::Interval | LossOver::Time => usize::MAX,
        };
        let length = Span::from_millis_f64(config.interval);
        while let Some(&(_, sent, lost)) = self.packets.front() {
            let is_old = config.over == LossOver::Time && self.newest.saturating_since(sent) >= length;
            if self.packets.len() <= max_len && !(is_old && self.packets.len() > 1) {
                break;
            }
            self.packets.pop_front();
            self.lost -= i64::from(lost);
        }
        self.debug_check();
    }

    /// Asserts that the number of lost packets is within the number of packets.
    fn debug_check(&self) {
        let (lost, packets) = (self.lost, self.packets.len());
        debug_assert!((0..=packets as i64).contains(&lost), "{lost} lost of {packets} packets");
    }

    /// Counts a packet, reported as lost before, as received.
    fn recover(&mut self, sequence: u64) {
        if let Some(packet) = self.packets.iter_mut().rev().find(|packet| packet.0 == sequence) {
            self.lost -= i64::from(std::mem::take(&mut packet.2));
        }
        self.debug_check();
    }
}

impl Fraction {
    /// Creates a count without packets.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, next: None, expected: 0, lost: 0, cumulative: None, window: Window::default() }
    }

    /// Takes a new result of one packet.
    pub fn packet(&mut self, sequence: u64, sent: Time, lost: bool) {
        if self.config.over != LossOver::Interval {
            self.window.push(&self.config, sequence, sent, lost);
        }
    }

    /// Counts a packet, reported as lost before, as received.
    pub fn recovered(&mut self, sequence: u64) {
        self.window.recover(sequence);
    }

    /// Takes the numbers of packets that a report newly expects and counts as lost; a negative number of losses takes
    /// earlier ones back. Returns a new fraction, if there is one.
    pub fn report(&mut self, expected: i64, lost: i64, now: Time) -> Option<f64> {
        if self.config.over != LossOver::Interval {
            return Some(self.fraction(self.window.packets.len() as i64, self.window.lost));
        }
        self.expected = self.expected.saturating_add(expected);
        self.lost = self.lost.saturating_add(lost);
        if self.next.is_some_and(|next| now <= next) {
            return None;
        }
        self.next = Some(now + Span::from_millis_f64(self.config.interval));
        if self.expected < self.config.packets as i64 {
            return None;
        }
        let fraction = self.fraction(self.expected, self.lost);
        (self.expected, self.lost) = (0, 0);
        Some(fraction)
    }

    /// Packets lost since the previous receiver report, given the cumulative number of this one; none for the first report.
    pub fn lost_since_last(&mut self, cumulative: i32) -> Option<i64> {
        let before = self.cumulative.replace(cumulative)?;
        Some(i64::from(cumulative) - i64::from(before))
    }

    fn fraction(&self, expected: i64, lost: i64) -> f64 {
        let share = lost.max(0) as f64 / expected.max(1) as f64;
        if self.config.in_256ths { math::floor(share * 256.0).min(255.0) / 256.0 } else { share.min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::Placement;
    use crate::gcc::presets::hoang2017::Settings;

    fn fraction_over(loss_over: LossOver) -> Fraction {
        Fraction::new(Settings { loss_over, ..Settings::default() }.loss(Placement::Sender).fraction)
    }

    /// Reports a hundred packets, sent every 10 ms, with every `nth` sequence number lost; returns the fraction.
    fn hundred(fraction: &mut Fraction, first: u64, nth: u64) -> Option<f64> {
        for sequence in first..first + 100 {
            fraction.packet(sequence, Time::from_millis(10 * sequence as i64), sequence % nth == 0);
        }
        fraction.report(100, 0, Time::ZERO)
    }

    #[test]
    fn the_fraction_may_be_that_of_the_last_packets() {
        let mut fraction = fraction_over(LossOver::Packets);
        // fewer than a hundred packets so far: the fraction of these
        (0..10).for_each(|i| fraction.packet(i, Time::ZERO, i < 2));
        assert_eq!(fraction.report(10, 2, Time::ZERO), Some(0.2));
        assert_eq!(hundred(&mut fraction, 1000, 4), Some(0.25));
        // half of them are still in the window
        (0..50).for_each(|i| fraction.packet(1100 + i, Time::from_secs(11), false));
        assert_eq!(fraction.report(50, 0, Time::ZERO), Some(0.12));
        // two lost packets in the window and one outside it turn out received
        [1096, 1052, 1000, 1052].into_iter().for_each(|sequence| fraction.recovered(sequence));
        assert_eq!(fraction.report(1, -1, Time::ZERO), Some(0.1));
    }

    #[test]
    fn the_fraction_may_be_that_of_the_last_half_second() {
        let mut fraction = fraction_over(LossOver::Time);
        // the window has the packets sent after 490 ms: 50 to 99
        assert_eq!(hundred(&mut fraction, 0, 5), Some(0.2));
        assert_eq!(fraction.window.packets.len(), 50);
        fraction.packet(150, Time::from_millis(1500), true);
        assert_eq!(fraction.report(1, 1, Time::ZERO), Some(1.0));
    }
}
