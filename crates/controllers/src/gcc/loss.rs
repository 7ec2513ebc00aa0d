//! The loss-based rate.
//!
//! Draft 6; libwebrtc `send_side_bandwidth_estimation.cc` as it was before the second loss-based
//! estimator ("v1"). Little loss lets the rate grow, moderate loss holds it, much loss lowers it in
//! proportion. The delay-based rate bounds it from above at every step, as in libwebrtc: without that
//! (`bounded`) it grows out of sight while the delay-based rate rules.

use super::fraction::{self, Fraction};
use std::collections::VecDeque;
use tidegate_core::units::{Span, Time};

/// Time stamps of the shipped history have whole milliseconds, so it lets a value go this much early.
const HISTORY_SLACK: f64 = 1.0;
/// The delay-based rate is followed upwards for so long while nothing is lost, ms (libwebrtc kStartPhase).
const START_PHASE: f64 = 2000.0;
/// Length of the window of the lowest target, or least time between two increases, ms (libwebrtc kBweIncreaseInterval; the
/// draft has none, its receiver-report interval is taken).
const INCREASE_INTERVAL: f64 = 1000.0;
/// Least time between two decreases, and a round trip on top, ms (libwebrtc kBweDecreaseInterval; the draft has none,
/// libwebrtc's is taken).
const DECREASE_INTERVAL: f64 = 300.0;
/// A decrease is to 1 less this times the fraction lost (draft 6; libwebrtc (512 - loss) / 512).
const DECREASE: f64 = 0.5;
/// A fraction lost is not acted upon when it is older than this, ms (libwebrtc 1.2 * kMaxRtcpFeedbackInterval; not in
/// the draft).
const STALE: f64 = 6000.0;

/// When the rate grows and falls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// libwebrtc's: from the lowest target of the last second (min_bitrate_history_); decreases 300 ms and a round trip
    /// apart; the delay-based rate is followed upwards in the start phase.
    FromLowest,
    /// The draft's: from the present target, once a second; decreases as libwebrtc's.
    EachSecond,
    /// The thesis's: from the present target, once with each fraction.
    EachFraction,
}

/// What a loss part goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How losses are counted.
    pub fraction: fraction::Rules,
    /// When the rate grows and falls.
    pub pace: Pace,
    /// It grows at a fraction lost up to this.
    pub low: f64,
    /// Whether it is held, not increased, at exactly that fraction.
    pub low_held: bool,
    /// It falls at a fraction lost above this.
    pub high: f64,
    /// Factor of an increase.
    pub increase: f64,
    /// ... and this much more, bit/s.
    pub offset: f64,
    /// Whether it never exceeds the delay-based rate.
    pub bounded: bool,
}

/// The loss part's state.
#[derive(Clone)]
pub struct Loss {
    rules: Rules,
    /// The loss-based rate As_hat, bit/s.
    pub target: f64,
    /// The last fraction lost.
    pub fraction: f64,
    counted: Fraction,
    measured: Option<Time>,
    first_report: Option<Time>,
    /// Whether the present fraction was acted upon.
    acted: bool,
    last_increase: Option<Time>,
    /// When the rate was last lowered, for loss or for silence.
    pub last_decrease: Option<Time>,
    /// Targets of the last interval, each lower than the ones after it.
    history: VecDeque<(Time, f64)>,
}

/// What is wrong with two thresholds of which the lower one is above the other: key, value, and what would be right.
#[must_use]
pub fn out_of_order(low: f64, high: f64) -> Option<(&'static str, f64, String)> {
    (low > high).then(|| ("loss_low", low, format!("at most `loss_high`, which is {high}")))
}

/// Whether `interval` ms have passed since `last`, or there was none.
fn due(last: Option<Time>, interval: f64, now: Time) -> bool {
    last.is_none_or(|last| now.saturating_since(last).as_millis_f64() >= interval)
}

impl Loss {
    /// A loss part that begins with `start` bit/s.
    #[must_use]
    pub fn new(rules: Rules, start: f64) -> Self {
        Self {
            rules,
            target: start,
            fraction: 0.0,
            counted: Fraction::new(rules.fraction),
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
        *self = Self::new(self.rules, start);
    }

    /// Takes what a report newly says of one packet.
    pub fn packet(&mut self, sequence: u64, sent: Time, lost: bool) {
        self.counted.packet(sequence, sent, lost);
    }

    /// A packet that was reported as lost has come after all.
    pub fn recovered(&mut self, sequence: u64) {
        self.counted.recovered(sequence);
    }

    /// Takes what one report newly says: packets expected and lost. A negative number of lost ones takes
    /// back earlier losses.
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
        if let Some(lost) = self.counted.since(cumulative) {
            self.packets(i64::from(expected), lost, now);
        }
    }

    /// Lets the rate follow the losses; `delay_based` (bit/s) bounds it.
    pub fn update(&mut self, delay_based: f64, rtt: Span, now: Time) {
        let Rules { pace, low, low_held, high, bounded, .. } = self.rules;
        let starting = self.fraction == 0.0 && !due(self.first_report, START_PHASE, now);
        if pace == Pace::FromLowest
            && (starting || self.first_report.is_none())
            && delay_based > self.target
            && delay_based.is_finite()
        {
            // libwebrtc keeps the old target here, and one call later falls back to 1.08 times it; the
            // new one is what its first versions kept, and what lets the start phase do its work
            self.history.clear();
            self.history.push_back((now, delay_based));
            self.target = delay_based;
            return;
        }
        let lowest = self.remember(now);
        if self.measured.is_some() && !due(self.measured, STALE, now) {
            let edge = self.fraction == low && low_held;
            if self.fraction <= low && !edge {
                self.increase(lowest, now);
            } else if self.fraction > high {
                self.decrease(rtt, now);
            }
        }
        if bounded {
            self.target = self.target.min(delay_based);
        }
    }

    /// Puts the target into the history; answers with the lowest of the last interval.
    fn remember(&mut self, now: Time) -> f64 {
        if self.rules.pace != Pace::FromLowest {
            return self.target;
        }
        let age = |at: Time| now.saturating_since(at).as_millis_f64() + HISTORY_SLACK;
        while self.history.front().is_some_and(|&(at, _)| age(at) > INCREASE_INTERVAL) {
            self.history.pop_front();
        }
        while self.history.back().is_some_and(|&(_, rate)| self.target <= rate) {
            self.history.pop_back();
        }
        self.history.push_back((now, self.target));
        self.history[0].1
    }

    fn increase(&mut self, lowest: f64, now: Time) {
        let waits = match self.rules.pace {
            Pace::FromLowest => false,
            Pace::EachSecond => !due(self.last_increase, INCREASE_INTERVAL, now),
            Pace::EachFraction => self.acted,
        };
        if waits {
            return;
        }
        if self.rules.pace != Pace::FromLowest {
            self.acted = true;
            self.last_increase = Some(now);
        }
        self.target = lowest * self.rules.increase + self.rules.offset;
    }

    fn decrease(&mut self, rtt: Span, now: Time) {
        let interval = match self.rules.pace {
            Pace::EachFraction => 0.0,
            Pace::FromLowest | Pace::EachSecond => DECREASE_INTERVAL + rtt.as_millis_f64().max(0.0),
        };
        if self.acted || !due(self.last_decrease, interval, now) {
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

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn draft() -> Rules {
        draft_02::Settings::default().loss()
    }

    fn libwebrtc() -> Rules {
        libwebrtc_v1::Settings::default().loss()
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    /// 100 packets of which `lost` are lost, just before each whole second after the start phase.
    fn after_a_loss(rules: Rules, lost: i64) -> (Loss, f64) {
        let mut loss = Loss::new(rules, 1e6);
        loss.packets(100, 0, at(0));
        loss.update(1e6, RTT, at(0));
        loss.packets(100, lost, at(3000));
        loss.update(FREE, RTT, at(3000));
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
            loss.update(FREE, RTT, at(ms));
            targets.push(loss.target);
        }
        near(first, 1.081e6);
        // the million stays in the history for a second, however often one asks
        assert!(targets[..19].iter().all(|&target| target == first), "{targets:?}");
        near(targets[19], first * 1.08 + 1000.0);
        near(targets[39], targets[19] * 1.08 + 1000.0);
        assert_eq!(targets[20], targets[38]);
    }

    #[test]
    fn the_draft_grows_once_in_an_interval_and_both_decrease_once_for_a_report() {
        let (mut loss, first) = after_a_loss(draft(), 0);
        loss.update(FREE, RTT, at(3999));
        near(loss.target, first);
        loss.update(FREE, RTT, at(4000));
        near(loss.target, first * 1.05);
        for rules in [draft(), libwebrtc()] {
            let (mut loss, first) = after_a_loss(rules, 50);
            near(first, 0.75e6);
            loss.update(FREE, RTT, at(3500));
            near(loss.target, first);
            // new news, but sooner than 300 ms and a round trip after: wait
            let slow = Span::from_millis(800);
            loss.packets(100, 50, at(4001));
            loss.update(FREE, slow, at(4001));
            near(loss.target, first);
            loss.update(FREE, slow, at(4100));
            near(loss.target, first * 0.75);
        }
    }

    #[test]
    fn few_packets_late_arrivals_and_stale_news_are_no_ground_to_act() {
        let mut loss = Loss::new(libwebrtc(), 1e6);
        loss.packets(19, 19, at(0));
        assert_eq!(loss.measured, None);
        loss.packets(1, 0, at(1001));
        near(loss.fraction, 243.0 / 256.0);
        // packets thought lost came after all
        loss.packets(20, -19, at(2002));
        assert_eq!(loss.fraction, 0.0);
        let (mut loss, first) = after_a_loss(libwebrtc(), 0);
        loss.update(FREE, RTT, at(3000 + 6000));
        near(loss.target, first);
    }

    #[test]
    fn delay_rules_from_above_and_leads_in_the_start_phase() {
        let mut loss = Loss::new(libwebrtc(), 300_000.0);
        loss.packets(100, 0, at(0));
        loss.update(2e6, RTT, at(1999));
        near(loss.target, 2e6);
        loss.update(1e6, RTT, at(2500));
        near(loss.target, 1e6);
        // one loss ends it
        let mut loss = Loss::new(libwebrtc(), 300_000.0);
        loss.packets(100, 5, at(0));
        loss.update(2e6, RTT, at(10));
        near(loss.target, 300_000.0);
    }

    #[test]
    fn receiver_reports_count_by_difference() {
        let mut loss = Loss::new(draft(), 1e6);
        loss.receiver_report(0, 7, at(0));
        assert_eq!(loss.measured, None);
        loss.receiver_report(50, 17, at(1000));
        near(loss.fraction, 0.2);
        // within the interval they are summed up
        loss.receiver_report(50, 18, at(2000));
        near(loss.fraction, 0.2);
        loss.receiver_report(50, 22, at(2001));
        near(loss.fraction, 0.05);
        loss.receiver_report(50, i32::MIN, at(4000));
        assert_eq!(loss.fraction, 0.0);
        loss.receiver_report(u32::MAX, i32::MAX, at(6000));
        assert!((0.0..=1.0).contains(&loss.fraction));
    }

    #[test]
    fn the_thesis_acts_once_with_each_feedback_and_by_itself() {
        let thesis = || Loss::new(hoang2017::Settings::default().loss(Placement::Sender), 4e6);
        let after = |lost: u64| {
            let mut loss = thesis();
            (0..100).for_each(|i| loss.packet(i, at(0), i < lost));
            loss.packets(100, lost as i64, at(3000));
            // a delay-based rate below is no bound, and a report without packets no feedback
            loss.update(1e6, RTT, at(3000));
            loss.update(1e6, RTT, at(3500));
            loss.target
        };
        let grown = 1.05 * 4e6 + 1000.0;
        for (lost, expected) in [(0, grown), (1, grown), (2, 4e6), (10, 4e6), (11, 4e6 * 0.945), (100, 2e6)] {
            near(after(lost), expected);
        }
        // every 3 s, however long the round trip
        let mut loss = thesis();
        for (i, expected) in [2e6, 1e6, 5e5].into_iter().enumerate() {
            let now = at(3000 * (i as i64 + 1));
            (0..100).for_each(|sequence| loss.packet(sequence, now, true));
            loss.packets(100, 100, now);
            loss.update(1e7, Span::from_secs(5), now);
            near(loss.target, expected);
        }
    }
}
