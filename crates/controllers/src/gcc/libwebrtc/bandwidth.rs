//! Target rate: the minimum of the delay-based, the loss-based and the receiver's rate, lowered while no feedback comes.
//!
//! `send_side_bandwidth_estimation.cc`. It still contains the first loss-based part (before 2021), which is used while
//! the second one has too few observations or is switched off.

use super::loss::{Loss, State};
use super::rounding::{between, bps};
use super::settings::Settings;
use super::stable::LinkCapacityTracker;
use crate::gcc::silence::Silence;
use std::collections::VecDeque;
use tidegate_core::control::PacketResult;
use tidegate_core::units::{Rate, Span, Time};

/// Lowest target (`bitrate_settings.h`).
pub const CONGESTION_CONTROLLER_MIN_BITRATE: Rate = Rate::from_kbps(5);
/// Highest target where the session sets no maximum.
const DEFAULT_MAX_BITRATE: Rate = Rate::from_mbps(1000);
/// Number of packets over which a fraction lost is calculated, at least.
const LIMIT_NUM_PACKETS: i64 = 20;
/// Time after the first report in which the target follows the delay-based part upwards.
const START_PHASE: Span = Span::from_secs(2);
/// First loss-based part: an increase is to 8 % and 1 kbit/s more than the lowest target in this time.
const BWE_INCREASE_INTERVAL: Span = Span::from_secs(1);
/// First loss-based part: time between two decreases, plus a round trip.
const BWE_DECREASE_INTERVAL: Span = Span::from_millis(300);
/// First loss-based part: fraction lost up to which the target grows.
const DEFAULT_LOW_LOSS_THRESHOLD: f64 = 0.02;
/// First loss-based part: fraction lost above which the target falls.
const DEFAULT_HIGH_LOSS_THRESHOLD: f64 = 0.1;
/// First loss-based part: age from which a fraction lost is ignored (1.2 times `kMaxRtcpFeedbackInterval`).
const MAX_FRACTION_AGE: Span = Span::from_secs(6);

/// Target rate with its bounds (`SendSideBandwidthEstimation`).
pub struct Bandwidth {
    /// The second loss-based part.
    pub loss: Loss,
    /// State of the loss-based part, or delay-based where that part does not limit the target.
    pub state: State,
    /// Fraction lost of the last receiver reports, in 1/256.
    pub fraction_lost: u8,
    /// Last round-trip time; zero before the first.
    pub rtt: Span,
    silence: Silence,
    stable: LinkCapacityTracker,
    target: Rate,
    acked: Option<Rate>,
    min_rate: Rate,
    max_rate: Rate,
    /// Limits by the delay-based part and by the receiver; [`Rate::MAX`] for none.
    delay_based: Rate,
    receiver: Rate,
    /// Lost and expected packets since the last fraction.
    since_fraction: (i64, i64),
    first_report: Option<Time>,
    last_fraction: Option<Time>,
    last_decrease: Option<Time>,
    decreased: bool,
    /// Lowest targets of the last second with their times, each lower than the next (`min_bitrate_history_`).
    lowest: VecDeque<(Time, Rate)>,
}

impl Bandwidth {
    /// Creates an estimator without target, feedback or limits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            loss: Loss::new(),
            state: State::DelayBased,
            fraction_lost: 0,
            rtt: Span::ZERO,
            silence: Silence::default(),
            stable: LinkCapacityTracker::default(),
            target: Rate::ZERO,
            acked: None,
            min_rate: CONGESTION_CONTROLLER_MIN_BITRATE,
            max_rate: DEFAULT_MAX_BITRATE,
            delay_based: Rate::MAX,
            receiver: Rate::MAX,
            since_fraction: (0, 0),
            first_report: None,
            last_fraction: None,
            last_decrease: None,
            decreased: false,
            lowest: VecDeque::new(),
        }
    }

    /// Starts anew on another route (`OnRouteChange`). The stable target, the received rate and the time of the last
    /// feedback stay.
    pub fn reset(&mut self) {
        let (silence, stable) = (self.silence, std::mem::take(&mut self.stable));
        let (acked, lowest) = (self.acked, std::mem::take(&mut self.lowest));
        *self = Self { silence, stable, acked, lowest, state: self.state, ..Self::new() };
    }

    /// Target rate (`target_rate`).
    #[must_use]
    pub fn target(&self) -> Rate {
        self.target.min(self.receiver).max(self.min_rate)
    }

    /// Stable target, which the path has carried for some time (`GetEstimatedLinkCapacity`).
    #[must_use]
    pub fn stable(&self) -> Rate {
        self.stable.rate()
    }

    /// Lowest target.
    #[must_use]
    pub fn min_rate(&self) -> Rate {
        self.min_rate
    }

    /// Whether the round-trip time, or the wait for feedback, is above its limit (`IsRttAboveLimit`).
    #[must_use]
    pub fn is_rtt_above_limit(&self, settings: &Settings) -> bool {
        settings.rtt_limit > 0.0 && self.silence.too_long(settings.rtt_limit)
    }

    /// Sets the session's bounds and, if given, its start rate (`SetBitrates`).
    pub fn set_limits(&mut self, start: Option<Rate>, min_rate: Rate, max_rate: Rate, now: Time) {
        self.min_rate = min_rate.max(CONGESTION_CONTROLLER_MIN_BITRATE);
        self.max_rate = if max_rate == Rate::MAX || max_rate == Rate::ZERO {
            DEFAULT_MAX_BITRATE
        } else {
            max_rate.max(self.min_rate)
        };
        self.loss.set_bounds(self.min_rate, self.max_rate);
        if let Some(start) = start {
            self.stable.start(start);
            self.set_target(start, now);
        }
    }

    /// Sets the target to a start rate or a probe's result (`SetSendBitrate`).
    pub fn set_target(&mut self, target: Rate, now: Time) {
        // earlier limits must not hold the new target down
        self.delay_based = Rate::MAX;
        self.apply_target(target, now);
        self.lowest.clear();
    }

    /// Multiplies the target and the rate of each part by `factor`.
    pub fn scale(&mut self, factor: f64, now: Time) {
        let target = self.target().scaled(factor);
        let delay_based = self.delay_based;
        self.set_target(target, now);
        self.loss.scale(factor);
        if delay_based != Rate::MAX {
            self.set_delay_based(delay_based.scaled(factor), now);
        }
    }

    /// Sets the receiver's limit; zero lifts it (`UpdateReceiverEstimate`).
    pub fn set_receiver(&mut self, rate: Rate, now: Time) {
        self.receiver = if rate == Rate::ZERO { Rate::MAX } else { rate };
        self.apply_target(self.target, now);
    }

    /// Sets the delay-based limit; zero lifts it (`UpdateDelayBasedEstimate`).
    pub fn set_delay_based(&mut self, rate: Rate, now: Time) {
        self.stable.delay_based(rate, now);
        self.delay_based = if rate == Rate::ZERO { Rate::MAX } else { rate };
        self.apply_target(self.target, now);
    }

    /// Sets the received rate; none while too few packets have arrived (`SetAcknowledgedRate`).
    pub fn set_acked(&mut self, acked: Option<Rate>) {
        self.acked = acked;
        if let Some(acked) = acked {
            self.loss.set_acked(acked);
        }
    }

    /// Counts a packet that leaves `now`.
    pub fn sent(&mut self, now: Time) {
        self.silence.packet(now);
    }

    /// Counts feedback that arrives `now`; `rtt` is a packet's round trip without its wait at the receiver.
    pub fn on_feedback(&mut self, rtt: Span, now: Time) {
        self.silence.feedback(rtt, now);
    }

    /// Passes the packets of a report to the second loss-based part and updates the target.
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

    /// Takes the packets lost and expected since the last receiver reports (`UpdatePacketsLost`).
    pub fn report(&mut self, settings: &Settings, lost: i64, expected: i64, now: Time) {
        self.first_report.get_or_insert(now);
        if expected <= 0 {
            return;
        }
        let (lost, expected) =
            (self.since_fraction.0.saturating_add(lost), self.since_fraction.1.saturating_add(expected));
        if expected < LIMIT_NUM_PACKETS {
            self.since_fraction = (lost, expected);
            return;
        }
        self.since_fraction = (0, 0);
        self.decreased = false;
        self.fraction_lost = (lost.max(0).saturating_mul(256) / expected).min(255) as u8;
        self.last_fraction = Some(now);
        self.update(settings, now);
    }

    /// Updates the target (`UpdateEstimate`): with each feedback and receiver report, and every 25 ms.
    pub fn update(&mut self, settings: &Settings, now: Time) {
        if self.is_rtt_above_limit(settings) {
            return self.back_off(settings, now);
        }
        let in_start_phase = self.first_report.is_none_or(|first| between(first, now) < START_PHASE);
        if self.fraction_lost == 0 && in_start_phase && !self.loss.is_ready(settings) {
            let finite = |rate: Rate| if rate == Rate::MAX { Rate::ZERO } else { rate };
            let trusted = self.target.max(finite(self.receiver)).max(finite(self.delay_based));
            if trusted != self.target {
                self.lowest.clear();
                self.lowest.push_back((now, self.target));
                return self.apply_target(trusted, now);
            }
        }
        self.update_lowest(now);
        let Some(last_fraction) = self.last_fraction else { return self.apply_target(self.target, now) };
        if self.loss.is_ready(settings) {
            self.state = self.loss.state;
            return self.apply_target(self.loss.rate, now);
        }
        let target = self.first_loss_based(last_fraction, now);
        self.apply_target(target, now);
    }

    /// Target of the first loss-based part after the last fraction lost.
    fn first_loss_based(&mut self, last_fraction: Time, now: Time) -> Rate {
        let loss = f64::from(self.fraction_lost) / 256.0;
        if between(last_fraction, now) >= MAX_FRACTION_AGE {
            return self.target;
        }
        if loss <= DEFAULT_LOW_LOSS_THRESHOLD {
            let lowest = self.lowest.front().map_or(self.target, |&(_, rate)| rate);
            return bps(lowest.as_bps_f64() * 1.08 + 0.5) + Rate::from_kbps(1);
        }
        let interval = BWE_DECREASE_INTERVAL + self.rtt;
        if loss > DEFAULT_HIGH_LOSS_THRESHOLD
            && !self.decreased
            && self.last_decrease.is_none_or(|last| between(last, now) >= interval)
        {
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
            return self.apply_target(rate, now);
        }
        self.apply_target(self.target, now);
    }

    fn update_lowest(&mut self, now: Time) {
        // a millisecond more, as in libwebrtc: a target that is a second old but for rounding is dropped, too
        let is_old =
            |&(time, _): &(Time, Rate)| between(time, now) + Span::from_millis(1) > BWE_INCREASE_INTERVAL;
        while self.lowest.front().is_some_and(is_old) {
            self.lowest.pop_front();
        }
        while self.lowest.back().is_some_and(|&(_, rate)| self.target <= rate) {
            self.lowest.pop_back();
        }
        self.lowest.push_back((now, self.target));
        debug_assert!(self.lowest.iter().is_sorted_by(|a, b| a.1 < b.1), "each lower than the next");
    }

    /// Sets the target within all bounds (`UpdateTargetBitrate`).
    fn apply_target(&mut self, target: Rate, now: Time) {
        self.target = target.min(self.delay_based).min(self.max_rate).max(self.min_rate);
        debug_assert!(
            self.min_rate <= self.target && self.target <= self.max_rate,
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

    fn millis(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn kbps(kbps: u64) -> Rate {
        Rate::from_kbps(kbps)
    }

    fn started(start: Rate) -> Bandwidth {
        let mut bandwidth = Bandwidth::new();
        bandwidth.set_limits(Some(start), kbps(30), Rate::from_mbps(10), millis(0));
        bandwidth
    }

    /// Settings with the second loss-based part switched off.
    fn first_part_only() -> Settings {
        Settings { loss_part: false, ..Settings::default() }
    }

    #[test]
    fn the_delay_based_part_is_trusted_at_the_start_and_bounds_the_target_later() {
        let settings = Settings::default();
        let mut bandwidth = started(kbps(300));
        bandwidth.set_delay_based(kbps(800), millis(100));
        assert_eq!(bandwidth.target(), kbps(300), "it allows, but does not raise");
        bandwidth.update(&settings, millis(100));
        assert_eq!(bandwidth.target(), kbps(800));
        bandwidth.set_delay_based(kbps(500), millis(200));
        assert_eq!(bandwidth.target(), kbps(500));
        // two seconds after the first report the start is over
        bandwidth.report(&settings, 0, 10, millis(1000));
        bandwidth.set_delay_based(kbps(900), millis(3000));
        bandwidth.update(&settings, millis(3000));
        assert_eq!(bandwidth.target(), kbps(500), "and no fraction lost has come yet");
        // a probe's result overrides earlier limits
        bandwidth.set_target(kbps(700), millis(3100));
        assert_eq!(bandwidth.target(), kbps(700));
    }

    #[test]
    fn what_was_low_before_a_probe_holds_no_increase_back() {
        let mut bandwidth = started(kbps(1000));
        bandwidth.report(&first_part_only(), 26, 256, millis(0));
        bandwidth.set_target(kbps(2000), millis(100));
        bandwidth.report(&first_part_only(), 0, 256, millis(200));
        assert_eq!(bandwidth.target(), kbps(2161));
    }

    #[test]
    fn a_receiver_bounds_the_target_and_zero_lifts_the_bound() {
        let mut bandwidth = started(kbps(300));
        bandwidth.set_receiver(kbps(200), millis(0));
        assert_eq!(bandwidth.target(), kbps(200));
        bandwidth.set_receiver(Rate::ZERO, millis(0));
        assert_eq!(bandwidth.target(), kbps(300));
        bandwidth.set_receiver(kbps(1), millis(0));
        assert_eq!(bandwidth.target(), kbps(30), "not below the lowest rate");
    }

    #[test]
    fn a_fraction_lost_is_of_twenty_packets_and_more() {
        let mut bandwidth = started(kbps(300));
        bandwidth.report(&first_part_only(), 3, 19, millis(0));
        assert_eq!(bandwidth.fraction_lost, 0);
        bandwidth.report(&first_part_only(), 2, 1, millis(0));
        assert_eq!(bandwidth.fraction_lost, 64, "5 of 20");
        bandwidth.report(&first_part_only(), -5, 20, millis(0));
        assert_eq!(bandwidth.fraction_lost, 0, "duplicates are no gain");
        bandwidth.report(&first_part_only(), 40, 20, millis(0));
        assert_eq!(bandwidth.fraction_lost, 255);
    }

    #[test]
    fn the_first_loss_based_part_grows_by_a_twelfth_holds_and_falls_by_half_of_what_is_lost() {
        let settings = first_part_only();
        let mut bandwidth = started(kbps(1000));
        // 5/256 are below 2 %: 8 % and 1 kbit/s above the least target of the last second
        bandwidth.report(&settings, 5, 256, millis(0));
        assert_eq!(bandwidth.target(), kbps(1081));
        bandwidth.update(&settings, millis(500));
        assert_eq!(bandwidth.target(), kbps(1081));
        bandwidth.update(&settings, millis(1000));
        assert_eq!(bandwidth.target(), Rate::from_bps(1_168_480));
        let before = bandwidth.target();
        bandwidth.report(&settings, 25, 256, millis(1100));
        assert_eq!(bandwidth.target(), before, "below 10 %: nothing");
        // 26/256: down by half of it, once for each fraction, and once in 300 ms and a round trip
        bandwidth.rtt = Span::from_millis(100);
        bandwidth.report(&settings, 26, 256, millis(1200));
        let lower = Rate::from_bps((before.as_bps_f64() * 486.0 / 512.0) as u64);
        assert_eq!(bandwidth.target(), lower);
        bandwidth.update(&settings, millis(5000));
        assert_eq!(bandwidth.target(), lower, "it was acted upon");
        bandwidth.report(&settings, 26, 256, millis(5100));
        let after = bandwidth.target();
        assert!(after < lower);
        bandwidth.report(&settings, 26, 256, millis(5499));
        assert_eq!(bandwidth.target(), after, "too soon");
        bandwidth.report(&settings, 26, 256, millis(5500));
        assert!(bandwidth.target() < after);
        // a fraction of six seconds ago does not count
        bandwidth.report(&settings, 0, 256, millis(6000));
        bandwidth.update(&settings, millis(7000));
        let grown = bandwidth.target();
        bandwidth.update(&settings, millis(12_000));
        assert_eq!(bandwidth.target(), grown);
    }

    #[test]
    fn silence_takes_a_fifth_each_second_down_to_its_floor() {
        let settings = Settings { rtt_floor: 100_000.0, ..Settings::default() };
        let mut bandwidth = started(kbps(1000));
        bandwidth.on_feedback(Span::from_millis(100), millis(0));
        bandwidth.sent(millis(2900));
        bandwidth.update(&settings, millis(2900));
        assert_eq!(bandwidth.target(), kbps(1000));
        bandwidth.sent(millis(2901));
        for (ms, expected) in [(2901, 800), (3900, 800), (3901, 640), (4901, 512)] {
            bandwidth.update(&settings, millis(ms));
            assert_eq!(bandwidth.target(), kbps(expected), "at {ms} ms");
        }
        assert_eq!(bandwidth.stable(), kbps(512));
        (5..30).for_each(|s| bandwidth.update(&settings, millis(s * 1000 + 901)));
        assert_eq!(bandwidth.target(), kbps(100));
        assert!(!bandwidth.is_rtt_above_limit(&Settings { rtt_limit: 0.0, ..settings }));
    }
}
