//! Loss-based rate, first version.
//!
//! Draft 6; libwebrtc `send_side_bandwidth_estimation.cc` as it was before the second loss-based
//! estimator ("v1"). Little loss lets the rate grow, moderate loss holds it, much loss lowers it in
//! proportion. With `bounded`, the delay-based rate bounds it from above at every step, as in libwebrtc;
//! without, it grows without limit while the delay-based rate is the lower one.

use super::fraction::{self, Fraction};
use std::collections::VecDeque;
use tidegate_core::units::{Span, Time};

/// Time by which libwebrtc's history drops a value early, ms: its time stamps are whole milliseconds.
const HISTORY_SLACK: f64 = 1.0;
/// Time in which the target follows the delay-based rate upwards while no packet is lost, ms (libwebrtc kStartPhase).
const START_PHASE: f64 = 2000.0;
/// Window of the lowest target, or shortest time between two increases, ms (libwebrtc kBweIncreaseInterval; the draft has
/// none, so its receiver-report interval is taken).
const BWE_INCREASE_INTERVAL: f64 = 1000.0;
/// Shortest time between two decreases, to which a round trip is added, ms (libwebrtc kBweDecreaseInterval; the draft has
/// none, so libwebrtc's is taken).
const BWE_DECREASE_INTERVAL: f64 = 300.0;
/// Part of the fraction lost by which a decrease lowers the rate (draft 6; libwebrtc (512 - loss) / 512).
const DECREASE: f64 = 0.5;
/// Age from which a fraction lost is ignored, ms (libwebrtc 1.2 * kMaxRtcpFeedbackInterval; not in the draft).
const MAX_FRACTION_AGE: f64 = 6000.0;

/// Times at which the rate grows and falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// libwebrtc: growth from the lowest target of the last second (min_bitrate_history_); decreases 300 ms and a round
    /// trip apart; the target follows the delay-based rate upwards in the start phase.
    FromLowest,
    /// Draft: growth from the present target, once a second; decreases as in libwebrtc.
    EachSecond,
    /// Hoang's thesis: growth from the present target, once per fraction.
    EachFraction,
}

/// Parameters of a loss part.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Parameters of the fraction lost.
    pub fraction: fraction::Config,
    /// Times at which the rate grows and falls.
    pub pace: Pace,
    /// Fraction lost up to which the rate grows.
    pub low: f64,
    /// Whether the rate is held, not increased, at exactly that fraction.
    pub low_held: bool,
    /// Fraction lost above which the rate falls.
    pub high: f64,
    /// Factor of an increase.
    pub increase: f64,
    /// Constant that an increase adds, bit/s.
    pub offset: f64,
    /// Whether the delay-based rate bounds the loss-based one.
    pub bounded: bool,
}

/// Loss part.
#[derive(Clone)]
pub struct Loss {
    config: Config,
    /// Loss-based rate As_hat, bit/s.
    pub target: f64,
    /// Last fraction lost.
    pub fraction: f64,
    counted: Fraction,
    measured: Option<Time>,
    first_report: Option<Time>,
    /// Whether the rate has already reacted to the last fraction.
    acted: bool,
    last_increase: Option<Time>,
    /// Time of the last decrease, for loss or for silence.
    pub last_decrease: Option<Time>,
    /// Targets of the last interval, each lower than the next.
    history: VecDeque<(Time, f64)>,
}

/// Error for a lower threshold above the upper one: key, value, and the expected value.
#[must_use]
pub fn out_of_order(low: f64, high: f64) -> Option<(&'static str, f64, String)> {
    (low > high).then(|| ("loss_low", low, format!("at most `loss_high`, which is {high}")))
}

/// Whether `interval` ms have passed since `last`, or there is no `last`.
fn is_due(last: Option<Time>, interval: f64, now: Time) -> bool {
    last.is_none_or(|last| now.saturating_since(last).as_millis_f64() >= interval)
}

impl Loss {
    /// Creates a loss part that begins with `start` bit/s.
    #[must_use]
    pub fn new(config: Config, start: f64) -> Self {
        Self {
            config,
            target: start,
            fraction: 0.0,
            counted: Fraction::new(config.fraction),
            measured: None,
            first_report: None,
            acted: false,
            last_increase: None,
            last_decrease: None,
            history: VecDeque::new(),
        }
    }

    /// Forgets the path and begins with `start` bit/s.
    pub fn begin(&mut self, start: f64) {
        *self = Self::new(self.config, start);
    }

    /// Takes a new result of one packet.
    pub fn packet(&mut self, sequence: u64, sent: Time, lost: bool) {
        self.counted.packet(sequence, sent, lost);
    }

    /// Counts a packet, reported as lost before, as received.
    pub fn recovered(&mut self, sequence: u64) {
        self.counted.recovered(sequence);
    }

    /// Takes the numbers of packets that a report newly expects and counts as lost; a negative number of losses takes
    /// earlier ones back.
    pub fn packets(&mut self, expected: i64, lost: i64, now: Time) {
        self.first_report.get_or_insert(now);
        if let Some(fraction) = self.counted.report(expected, lost, now) {
            self.fraction = fraction;
            self.acted = false;
            self.measured = Some(now);
        }
    }

    /// Takes a receiver report: packets expected since the last one, and lost since the beginning.
    pub fn receiver_report(&mut self, expected: u32, cumulative: i32, now: Time) {
        if let Some(lost) = self.counted.lost_since_last(cumulative) {
            self.packets(i64::from(expected), lost, now);
        }
    }

    /// Updates the rate from the last fraction lost; `delay_based` (bit/s) bounds it.
    pub fn update(&mut self, delay_based: f64, rtt: Span, now: Time) {
        let Config { pace, low, low_held, high, bounded, .. } = self.config;
        let starting = self.fraction == 0.0 && !is_due(self.first_report, START_PHASE, now);
        if pace == Pace::FromLowest
            && (starting || self.first_report.is_none())
            && delay_based > self.target
            && delay_based.is_finite()
        {
            // libwebrtc keeps the old target here, and falls back to 1.08 times it in the next call. Its first
            // versions kept the new one, which lets the start phase work
            self.history.clear();
            self.history.push_back((now, delay_based));
            self.target = delay_based;
            return;
        }
        let lowest = self.update_lowest(now);
        if self.measured.is_some() && !is_due(self.measured, MAX_FRACTION_AGE, now) {
            let at_held_edge = self.fraction == low && low_held;
            if self.fraction <= low && !at_held_edge {
                self.increase(lowest, now);
            } else if self.fraction > high {
                self.decrease(rtt, now);
            }
        }
        if bounded {
            self.target = self.target.min(delay_based);
        }
    }

    /// Adds the target to the history and returns the lowest of the last interval.
    fn update_lowest(&mut self, now: Time) -> f64 {
        if self.config.pace != Pace::FromLowest {
            return self.target;
        }
        let age = |time: Time| now.saturating_since(time).as_millis_f64() + HISTORY_SLACK;
        while self.history.front().is_some_and(|&(time, _)| age(time) > BWE_INCREASE_INTERVAL) {
            self.history.pop_front();
        }
        while self.history.back().is_some_and(|&(_, rate)| self.target <= rate) {
            self.history.pop_back();
        }
        self.history.push_back((now, self.target));
        self.history[0].1
    }

    fn increase(&mut self, lowest: f64, now: Time) {
        let must_wait = match self.config.pace {
            Pace::FromLowest => false,
            Pace::EachSecond => !is_due(self.last_increase, BWE_INCREASE_INTERVAL, now),
            Pace::EachFraction => self.acted,
        };
        if must_wait {
            return;
        }
        if self.config.pace != Pace::FromLowest {
            self.acted = true;
            self.last_increase = Some(now);
        }
        self.target = lowest * self.config.increase + self.config.offset;
    }

    fn decrease(&mut self, rtt: Span, now: Time) {
        let interval = match self.config.pace {
            Pace::EachFraction => 0.0,
            Pace::FromLowest | Pace::EachSecond => BWE_DECREASE_INTERVAL + rtt.as_millis_f64().max(0.0),
        };
        if self.acted || !is_due(self.last_decrease, interval, now) {
            return;
        }
        self.acted = true;
        self.last_decrease = Some(now);
        self.target *= 1.0 - DECREASE * self.fraction;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::{Placement, draft_02, hoang2017, libwebrtc_v1};

    const RTT: Span = Span::from_millis(100);
    const FREE: f64 = 1e9;

    fn millis(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn draft() -> Config {
        draft_02::Settings::default().loss()
    }

    fn libwebrtc() -> Config {
        libwebrtc_v1::Settings::default().loss()
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    /// Loss part after 100 packets without loss, and 100 with `lost` lost ones three seconds later; and its target.
    fn after_a_loss(config: Config, lost: i64) -> (Loss, f64) {
        let mut loss = Loss::new(config, 1e6);
        loss.packets(100, 0, millis(0));
        loss.update(1e6, RTT, millis(0));
        loss.packets(100, lost, millis(3000));
        loss.update(FREE, RTT, millis(3000));
        let target = loss.target;
        (loss, target)
    }

    #[test]
    fn each_band_of_loss_does_as_it_is_told() {
        for (lost, expected) in [(0, 1.05e6), (2, 1.05e6), (3, 1e6), (10, 1e6), (11, 0.945e6), (100, 0.5e6)] {
            near(after_a_loss(draft(), lost).1, expected);
        }
        // in 256ths, rounded down: 2 % is 5/256, 3 % is 7/256, 10 % is 25/256, 11 % is 28/256
        for (lost, expected) in [(0, 1.081e6), (2, 1.081e6), (3, 1e6), (10, 1e6), (11, 1e6 * 484.0 / 512.0)] {
            near(after_a_loss(libwebrtc(), lost).1, expected);
        }
    }

    #[test]
    fn the_shipped_part_grows_from_the_lowest_target_of_a_second() {
        let (mut loss, first) = after_a_loss(libwebrtc(), 0);
        let mut targets = vec![];
        for ms in (3050..6000).step_by(50) {
            loss.update(FREE, RTT, millis(ms));
            targets.push(loss.target);
        }
        near(first, 1.081e6);
        // the million stays in the history for a second, however many updates there are
        assert!(targets[..19].iter().all(|&target| target == first), "{targets:?}");
        near(targets[19], first * 1.08 + 1000.0);
        near(targets[39], targets[19] * 1.08 + 1000.0);
        assert_eq!(targets[20], targets[38]);
    }

    #[test]
    fn the_draft_grows_once_in_an_interval_and_both_decrease_once_for_a_report() {
        let (mut loss, first) = after_a_loss(draft(), 0);
        loss.update(FREE, RTT, millis(3999));
        near(loss.target, first);
        loss.update(FREE, RTT, millis(4000));
        near(loss.target, first * 1.05);
        for config in [draft(), libwebrtc()] {
            let (mut loss, first) = after_a_loss(config, 50);
            near(first, 0.75e6);
            loss.update(FREE, RTT, millis(3500));
            near(loss.target, first);
            // a new fraction sooner than 300 ms and a round trip after the decrease has to wait
            let slow = Span::from_millis(800);
            loss.packets(100, 50, millis(4001));
            loss.update(FREE, slow, millis(4001));
            near(loss.target, first);
            loss.update(FREE, slow, millis(4100));
            near(loss.target, first * 0.75);
        }
    }

    #[test]
    fn few_packets_late_arrivals_and_stale_news_are_no_ground_to_act() {
        let mut loss = Loss::new(libwebrtc(), 1e6);
        loss.packets(19, 19, millis(0));
        assert_eq!(loss.measured, None);
        loss.packets(1, 0, millis(1001));
        near(loss.fraction, 243.0 / 256.0);
        // packets reported as lost arrive late
        loss.packets(20, -19, millis(2002));
        assert_eq!(loss.fraction, 0.0);
        let (mut loss, first) = after_a_loss(libwebrtc(), 0);
        loss.update(FREE, RTT, millis(3000 + 6000));
        near(loss.target, first);
    }

    #[test]
    fn delay_rules_from_above_and_leads_in_the_start_phase() {
        let mut loss = Loss::new(libwebrtc(), 300_000.0);
        loss.packets(100, 0, millis(0));
        loss.update(2e6, RTT, millis(1999));
        near(loss.target, 2e6);
        loss.update(1e6, RTT, millis(2500));
        near(loss.target, 1e6);
        // one loss ends it
        let mut loss = Loss::new(libwebrtc(), 300_000.0);
        loss.packets(100, 5, millis(0));
        loss.update(2e6, RTT, millis(10));
        near(loss.target, 300_000.0);
    }

    #[test]
    fn receiver_reports_count_by_difference() {
        let mut loss = Loss::new(draft(), 1e6);
        loss.receiver_report(0, 7, millis(0));
        assert_eq!(loss.measured, None);
        loss.receiver_report(50, 17, millis(1000));
        near(loss.fraction, 0.2);
        // within the interval the losses add up
        loss.receiver_report(50, 18, millis(2000));
        near(loss.fraction, 0.2);
        loss.receiver_report(50, 22, millis(2001));
        near(loss.fraction, 0.05);
        loss.receiver_report(50, i32::MIN, millis(4000));
        assert_eq!(loss.fraction, 0.0);
        loss.receiver_report(u32::MAX, i32::MAX, millis(6000));
        assert!((0.0..=1.0).contains(&loss.fraction));
    }

    #[test]
    fn the_thesis_acts_once_with_each_feedback_and_by_itself() {
        let thesis = || Loss::new(hoang2017::Settings::default().loss(Placement::Sender), 4e6);
        let after = |lost: u64| {
            let mut loss = thesis();
            (0..100).for_each(|i| loss.packet(i, millis(0), i < lost));
            loss.packets(100, lost as i64, millis(3000));
            // a lower delay-based rate does not bound, and an update without a new fraction changes nothing
            loss.update(1e6, RTT, millis(3000));
            loss.update(1e6, RTT, millis(3500));
            loss.target
        };
        let grown = 1.05 * 4e6 + 1000.0;
        for (lost, expected) in [(0, grown), (1, grown), (2, 4e6), (10, 4e6), (11, 4e6 * 0.945), (100, 2e6)] {
            near(after(lost), expected);
        }
        // every 3 s, however long the round trip
        let mut loss = thesis();
        for (i, expected) in [2e6, 1e6, 5e5].into_iter().enumerate() {
            let now = millis(3000 * (i as i64 + 1));
            (0..100).for_each(|sequence| loss.packet(sequence, now, true));
            loss.packets(100, 100, now);
            loss.update(1e7, Span::from_secs(5), now);
            near(loss.target, expected);
        }
    }
}
