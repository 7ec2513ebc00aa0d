//! The target: the least of what delay, losses and the receiver allow, less while no feedback comes.
//!
//! `send_side_bandwidth_estimation.cc`, which also keeps the loss-based part of before 2021 for as long as the second
//! one has seen too little, or is switched off.

use super::loss::{Loss, State};
use super::rounding::{between, bps};
use super::settings::Settings;
use super::stable::Stable;
use crate::gcc::silence::Silence;
use std::collections::VecDeque;
use tidegate_core::control::PacketResult;
use tidegate_core::units::{Rate, Span, Time};

/// No rate is below this (`kCongestionControllerMinBitrate`), nor above this where the session has no maximum
/// (`kDefaultMaxBitrate`).
pub const LEAST: Rate = Rate::from_kbps(5);
const MOST: Rate = Rate::from_mbps(1000);
/// So many packets make a fraction lost (`kLimitNumPackets`).
const PACKETS: i64 = 20;
/// How long the start lasts, in which the delay-based part is trusted (`kStartPhase`).
const START: Span = Span::from_secs(2);
/// The first loss-based part: increases by 8 % and 1 kbit/s over the least target of this time
/// (`kBweIncreaseInterval`), decreases once in this and a round trip (`kBweDecreaseInterval`), up to and from these
/// fractions lost (`kDefaultLowLossThreshold`, `kDefaultHighLossThreshold`), while a fraction is no older than this
/// (1.2 `kMaxRtcpFeedbackInterval`).
const INCREASE_WINDOW: Span = Span::from_secs(1);
const DECREASE_GAP: Span = Span::from_millis(300);
const LOW: f64 = 0.02;
const HIGH: f64 = 0.1;
const STALE: Span = Span::from_secs(6);

/// The target and all that bounds it.
pub struct Bandwidth {
    /// The second loss-based part.
    pub loss: Loss,
    /// Which part limits the target.
    pub state: State,
    /// The fraction lost of the last receiver reports, in 1/256.
    pub fraction_lost: u8,
    /// The last round trip; zero before the first.
    pub rtt: Span,
    silence: Silence,
    stable: Stable,
    target: Rate,
    acked: Option<Rate>,
    least: Rate,
    most: Rate,
    /// What delay and receiver allow; [`Rate::MAX`] for no bound.
    delay_based: Rate,
    receiver: Rate,
    /// Lost and expected packets that have not made a fraction yet.
    waiting: (i64, i64),
    first_report: Option<Time>,
    last_fraction: Option<Time>,
    last_decrease: Option<Time>,
    decreased: bool,
    /// The target in the last second: when, and how high, each lower than the one after it.
    lowest: VecDeque<(Time, Rate)>,
}

impl Bandwidth {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            loss: Loss::new(),
            state: State::DelayBased,
            fraction_lost: 0,
            rtt: Span::ZERO,
            silence: Silence::default(),
            stable: Stable::default(),
            target: Rate::ZERO,
            acked: None,
            least: LEAST,
            most: MOST,
            delay_based: Rate::MAX,
            receiver: Rate::MAX,
            waiting: (0, 0),
            first_report: None,
            last_fraction: None,
            last_decrease: None,
            decreased: false,
            lowest: VecDeque::new(),
        }
    }

    /// A new route: only the stable target and the received rate stay, and when feedback came.
    pub fn reset(&mut self) {
        let (silence, stable) = (self.silence, std::mem::take(&mut self.stable));
        let (acked, lowest) = (self.acked, std::mem::take(&mut self.lowest));
        *self = Self { silence, stable, acked, lowest, state: self.state, ..Self::new() };
    }

    /// What may be sent.
    #[must_use]
    pub fn target(&self) -> Rate {
        self.target.min(self.receiver).max(self.least)
    }

    /// What may be sent for a while.
    #[must_use]
    pub fn stable(&self) -> Rate {
        self.stable.rate()
    }

    /// The least rate.
    #[must_use]
    pub fn least(&self) -> Rate {
        self.least
    }

    /// Whether a round trip, or waiting for one, takes too long.
    #[must_use]
    pub fn rtt_is_too_long(&self, settings: &Settings) -> bool {
        settings.rtt_limit > 0.0 && self.silence.too_long(settings.rtt_limit)
    }

    /// New bounds, and a new start rate if there is one.
    pub fn set_limits(&mut self, start: Option<Rate>, least: Rate, most: Rate, now: Time) {
        self.least = least.max(LEAST);
        self.most = if most == Rate::MAX || most == Rate::ZERO { MOST } else { most.max(self.least) };
        self.loss.set_bounds(self.least, self.most);
        if let Some(start) = start {
            self.stable.start(start);
            self.set_target(start, now);
        }
    }

    /// Begins with this target: a start rate, or a probe's result.
    pub fn set_target(&mut self, target: Rate, now: Time) {
        // what was known before does not hold it down
        self.delay_based = Rate::MAX;
        self.limited(target, now);
        self.lowest.clear();
    }

    /// Goes on from so many times its target, and each part from so many times its rate.
    pub fn scale(&mut self, factor: f64, now: Time) {
        let target = self.target().scaled(factor);
        let delay_based = self.delay_based;
        self.set_target(target, now);
        self.loss.scale(factor);
        if delay_based != Rate::MAX {
            self.set_delay_based(delay_based.scaled(factor), now);
        }
    }

    /// What a receiver allows; zero lifts the limit.
    pub fn set_receiver(&mut self, rate: Rate, now: Time) {
        self.receiver = if rate == Rate::ZERO { Rate::MAX } else { rate };
        self.limited(self.target, now);
    }

    /// What the delay-based part allows.
    pub fn set_delay_based(&mut self, rate: Rate, now: Time) {
        self.stable.delay_based(rate, now);
        self.delay_based = if rate == Rate::ZERO { Rate::MAX } else { rate };
        self.limited(self.target, now);
    }

    /// What arrives; none while too little has arrived to say.
    pub fn set_acked(&mut self, acked: Option<Rate>) {
        self.acked = acked;
        if let Some(acked) = acked {
            self.loss.set_acked(acked);
        }
    }

    /// A packet has left.
    pub fn sent(&mut self, now: Time) {
        self.silence.packet(now);
    }

    /// Feedback has come, with a packet's round trip in it less what it waited.
    pub fn heard(&mut self, rtt: Span, now: Time) {
        self.silence.feedback(rtt, now);
    }

    /// What a report says of its packets.
    pub fn packets(
        &mut self,
        settings: &Settings,
        packets: impl Iterator<Item = PacketResult>,
        in_alr: bool,
        now: Time,
    ) {
        self.loss.update(settings, packets, self.delay_based, in_alr);
        self.update(settings, now);
    }

    /// Receiver reports have come: packets lost since the last ones, of so many.
    pub fn report(&mut self, settings: &Settings, lost: i64, expected: i64, now: Time) {
        self.first_report.get_or_insert(now);
        if expected <= 0 {
            return;
        }
        let (lost, expected) = (self.waiting.0.saturating_add(lost), self.waiting.1.saturating_add(expected));
        if expected < PACKETS {
            self.waiting = (lost, expected);
            return;
        }
        self.waiting = (0, 0);
        self.decreased = false;
        self.fraction_lost = (lost.max(0).saturating_mul(256) / expected).min(255) as u8;
        self.last_fraction = Some(now);
        self.update(settings, now);
    }

    /// Follows what has changed (`UpdateEstimate`): with each feedback, receiver report, and every 25 ms.
    pub fn update(&mut self, settings: &Settings, now: Time) {
        if self.rtt_is_too_long(settings) {
            return self.back_off(settings, now);
        }
        let starts = self.first_report.is_none_or(|first| between(first, now) < START);
        if self.fraction_lost == 0 && starts && !self.loss.is_ready(settings) {
            let finite = |rate: Rate| if rate == Rate::MAX { Rate::ZERO } else { rate };
            let trusted = self.target.max(finite(self.receiver)).max(finite(self.delay_based));
            if trusted != self.target {
                self.lowest.clear();
                self.lowest.push_back((now, self.target));
                return self.limited(trusted, now);
            }
        }
        self.note_lowest(now);
        let Some(last_fraction) = self.last_fraction else { return self.limited(self.target, now) };
        if self.loss.is_ready(settings) {
            self.state = self.loss.state;
            return self.limited(self.loss.rate, now);
        }
        let target = self.by_fraction(last_fraction, now);
        self.limited(target, now);
    }

    /// What the first loss-based part makes of the fraction lost.
    fn by_fraction(&mut self, last_fraction: Time, now: Time) -> Rate {
        let loss = f64::from(self.fraction_lost) / 256.0;
        if between(last_fraction, now) >= STALE {
            return self.target;
        }
        if loss <= LOW {
            let lowest = self.lowest.front().map_or(self.target, |&(_, rate)| rate);
            return bps(lowest.as_bps_f64() * 1.08 + 0.5) + Rate::from_kbps(1);
        }
        let gap = DECREASE_GAP + self.rtt;
        if loss > HIGH && !self.decreased && self.last_decrease.is_none_or(|last| between(last, now) >= gap) {
            self.last_decrease = Some(now);
            self.decreased = true;
            return bps(self.target.as_bps_f64() * f64::from(512 - i32::from(self.fraction_lost)) / 512.0);
        }
        self.target
    }

    fn back_off(&mut self, settings: &Settings, now: Time) {
        let interval = Span::from_millis_f64(settings.rtt_interval);
        let floor = Rate::from_bps_f64(settings.rtt_floor);
        if self.target > floor && self.last_decrease.is_none_or(|last| between(last, now) >= interval) {
            self.last_decrease = Some(now);
            let rate = self.target.scaled(settings.rtt_factor).max(floor);
            self.stable.lower(rate, now);
            return self.limited(rate, now);
        }
        self.limited(self.target, now);
    }

    fn note_lowest(&mut self, now: Time) {
        // a millisecond more, as there: a target may rise that is as old as a second but for rounding
        let old = |&(at, _): &(Time, Rate)| between(at, now) + Span::from_millis(1) > INCREASE_WINDOW;
        while self.lowest.front().is_some_and(old) {
            self.lowest.pop_front();
        }
        while self.lowest.back().is_some_and(|&(_, rate)| self.target <= rate) {
            self.lowest.pop_back();
        }
        self.lowest.push_back((now, self.target));
        debug_assert!(self.lowest.iter().is_sorted_by(|a, b| a.1 < b.1), "each lower than the one after it");
    }

    /// Takes a target, within its bounds (`UpdateTargetBitrate`).
    fn limited(&mut self, target: Rate, now: Time) {
        self.target = target.min(self.delay_based).min(self.most).max(self.least);
        debug_assert!(
            self.least <= self.target && self.target <= self.most,
            "{} is out of bounds",
            self.target
        );
        self.stable.target(self.acked, self.target, now);
    }
}

impl Default for Bandwidth {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn kbps(kbps: u64) -> Rate {
        Rate::from_kbps(kbps)
    }

    fn begun(start: Rate) -> Bandwidth {
        let mut bandwidth = Bandwidth::new();
        bandwidth.set_limits(Some(start), kbps(30), Rate::from_mbps(10), at(0));
        bandwidth
    }

    /// The first loss-based part alone.
    fn first() -> Settings {
        Settings { loss_part: false, ..Settings::default() }
    }

    #[test]
    fn the_delay_based_part_is_trusted_at_the_start_and_bounds_the_target_later() {
        let settings = Settings::default();
        let mut bandwidth = begun(kbps(300));
        bandwidth.set_delay_based(kbps(800), at(100));
        assert_eq!(bandwidth.target(), kbps(300), "it allows, but does not raise");
        bandwidth.update(&settings, at(100));
        assert_eq!(bandwidth.target(), kbps(800));
        bandwidth.set_delay_based(kbps(500), at(200));
        assert_eq!(bandwidth.target(), kbps(500));
        // two seconds after the first report the start is over
        bandwidth.report(&settings, 0, 10, at(1000));
        bandwidth.set_delay_based(kbps(900), at(3000));
        bandwidth.update(&settings, at(3000));
        assert_eq!(bandwidth.target(), kbps(500), "and nothing was said of losses yet");
        // a probe's result holds whatever was known before
        bandwidth.set_target(kbps(700), at(3100));
        assert_eq!(bandwidth.target(), kbps(700));
    }

    #[test]
    fn what_was_low_before_a_probe_holds_no_increase_back() {
        let mut bandwidth = begun(kbps(1000));
        bandwidth.report(&first(), 26, 256, at(0));
        bandwidth.set_target(kbps(2000), at(100));
        bandwidth.report(&first(), 0, 256, at(200));
        assert_eq!(bandwidth.target(), kbps(2161));
    }

    #[test]
    fn a_receiver_bounds_the_target_and_zero_lifts_the_bound() {
        let mut bandwidth = begun(kbps(300));
        bandwidth.set_receiver(kbps(200), at(0));
        assert_eq!(bandwidth.target(), kbps(200));
        bandwidth.set_receiver(Rate::ZERO, at(0));
        assert_eq!(bandwidth.target(), kbps(300));
        bandwidth.set_receiver(kbps(1), at(0));
        assert_eq!(bandwidth.target(), kbps(30), "not below the least rate");
    }

    #[test]
    fn a_fraction_lost_is_of_twenty_packets_and_more() {
        let mut bandwidth = begun(kbps(300));
        bandwidth.report(&first(), 3, 19, at(0));
        assert_eq!(bandwidth.fraction_lost, 0);
        bandwidth.report(&first(), 2, 1, at(0));
        assert_eq!(bandwidth.fraction_lost, 64, "5 of 20");
        bandwidth.report(&first(), -5, 20, at(0));
        assert_eq!(bandwidth.fraction_lost, 0, "duplicates are no gain");
        bandwidth.report(&first(), 40, 20, at(0));
        assert_eq!(bandwidth.fraction_lost, 255);
    }

    #[test]
    fn the_first_loss_based_part_grows_by_a_twelfth_holds_and_falls_by_half_of_what_is_lost() {
        let settings = first();
        let mut bandwidth = begun(kbps(1000));
        // 5/256 are below 2 %: 8 % and 1 kbit/s above the least target of the last second
        bandwidth.report(&settings, 5, 256, at(0));
        assert_eq!(bandwidth.target(), kbps(1081));
        bandwidth.update(&settings, at(500));
        assert_eq!(bandwidth.target(), kbps(1081));
        bandwidth.update(&settings, at(1000));
        assert_eq!(bandwidth.target(), Rate::from_bps(1_168_480));
        let before = bandwidth.target();
        bandwidth.report(&settings, 25, 256, at(1100));
        assert_eq!(bandwidth.target(), before, "below 10 %: nothing");
        // 26/256: down by half of it, once for each fraction, and once in 300 ms and a round trip
        bandwidth.rtt = Span::from_millis(100);
        bandwidth.report(&settings, 26, 256, at(1200));
        let lower = Rate::from_bps((before.as_bps_f64() * 486.0 / 512.0) as u64);
        assert_eq!(bandwidth.target(), lower);
        bandwidth.update(&settings, at(5000));
        assert_eq!(bandwidth.target(), lower, "it was acted upon");
        bandwidth.report(&settings, 26, 256, at(5100));
        let after = bandwidth.target();
        assert!(after < lower);
        bandwidth.report(&settings, 26, 256, at(5499));
        assert_eq!(bandwidth.target(), after, "too soon");
        bandwidth.report(&settings, 26, 256, at(5500));
        assert!(bandwidth.target() < after);
        // what was said six seconds ago does not count
        bandwidth.report(&settings, 0, 256, at(6000));
        bandwidth.update(&settings, at(7000));
        let grown = bandwidth.target();
        bandwidth.update(&settings, at(12_000));
        assert_eq!(bandwidth.target(), grown);
    }

    #[test]
    fn silence_takes_a_fifth_each_second_down_to_its_floor() {
        let settings = Settings { rtt_floor: 100_000.0, ..Settings::default() };
        let mut bandwidth = begun(kbps(1000));
        bandwidth.heard(Span::from_millis(100), at(0));
        bandwidth.sent(at(2900));
        bandwidth.update(&settings, at(2900));
        assert_eq!(bandwidth.target(), kbps(1000));
        bandwidth.sent(at(2901));
        for (ms, expected) in [(2901, 800), (3900, 800), (3901, 640), (4901, 512)] {
            bandwidth.update(&settings, at(ms));
            assert_eq!(bandwidth.target(), kbps(expected), "at {ms} ms");
        }
        assert_eq!(bandwidth.stable(), kbps(512));
        (5..30).for_each(|s| bandwidth.update(&settings, at(s * 1000 + 901)));
        assert_eq!(bandwidth.target(), kbps(100));
        assert!(!bandwidth.rtt_is_too_long(&Settings { rtt_limit: 0.0, ..settings }));
    }
}
