//! The rate control of the delay-based part: additive or multiplicative increase, multiplicative decrease.
//!
//! `modules/remote_bitrate_estimator/aimd_rate_control.cc`, with `link_capacity_estimator.cc` beneath it.

use super::rounding::{between, bps, bytes_in, kbps, per, seconds};
use super::settings::Settings;
use crate::gcc::detector::Usage;
use crate::gcc::rate::State;
use tidegate_core::math;
use tidegate_core::units::{Rate, Size, Span, Time};

/// Growth per second while the link capacity is unknown, and the smallest step (`MultiplicativeRateIncrease`).
const GROWTH: f64 = 1.08;
const MIN_MULTIPLICATIVE_STEP: Rate = Rate::from_bps(1000);
/// Limit of an increase: this factor times the received rate, plus this rate (`increase_limit`).
const INCREASE_LIMIT: (f64, Rate) = (1.5, Rate::from_kbps(10));
/// A decrease subtracts this from beta times the received rate (`ChangeBitrate`).
const DECREASE_OFFSET: Rate = Rate::from_kbps(5);
/// Additive increase near the capacity (`GetNearMaxIncreaseRateBpsPerSecond`): a frame lasts 1/30 s and is split into
/// packets of this size, bytes; the rate grows by half a packet per response time, which is the round trip plus
/// `RESPONSE_TIME_OFFSET`, and by no less than the minimum, bit/s per second (`kMinIncreaseRateBpsPerSecond`).
const FRAME_INTERVAL: Span = Span::from_micros(33_333);
const PACKET_SIZE: f64 = 1200.0;
const RESPONSE_TIME_OFFSET: Span = Span::from_millis(100);
const MIN_INCREASE_RATE_BPS_PER_SECOND: f64 = 4000.0;
/// Bounds of the time between two decreases, which is otherwise the round trip (`TimeToReduceFurther`).
const BITRATE_REDUCTION_INTERVAL: (Span, Span) = (Span::from_millis(10), Span::from_millis(200));
/// Round-trip time before one is measured (`aimd_rate_control.cc`).
pub const DEFAULT_RTT: Span = Span::from_millis(200);

/// Link capacity that the network reports of itself (`NetworkStateEstimate`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkStateEstimate {
    /// Lower bound of the capacity (`link_capacity_lower`).
    pub lower: Rate,
    /// Upper bound of the capacity (`link_capacity_upper`).
    pub upper: Rate,
}

/// Average of the received rate at each decrease (`LinkCapacityEstimator`). In kbit/s as in libwebrtc, because the unit
/// of the normalized variance follows from it.
#[derive(Clone)]
struct LinkCapacityEstimator {
    mean: Option<f64>,
    variance: f64,
}

impl LinkCapacityEstimator {
    /// Weight of a new sample (`OnOveruseDetected`).
    const WEIGHT: f64 = 0.05;
    /// Bounds of the variance divided by the mean, kbit/s (`Update`, single precision in libwebrtc).
    const VARIANCE: (f32, f32) = (0.4, 2.5);

    fn estimate(&self) -> Option<Rate> {
        self.mean.map(|mean| bps(mean * 1000.0))
    }

    /// Rates three standard deviations below and above the mean.
    fn bounds(&self) -> Option<(Rate, Rate)> {
        let mean = self.mean?;
        let three_sigma = 3.0 * math::sqrt(self.variance * mean);
        Some((bps((mean - three_sigma).max(0.0) * 1000.0), bps((mean + three_sigma) * 1000.0)))
    }

    fn overuse(&mut self, received: Rate) {
        let (sample, weight) = (kbps(received), Self::WEIGHT);
        let mean = self.mean.map_or(sample, |mean| (1.0 - weight) * mean + weight * sample);
        let error = mean - sample;
        let variance = (1.0 - weight) * self.variance + weight * error * error / mean.max(1.0);
        self.variance = variance.max(f64::from(Self::VARIANCE.0)).min(f64::from(Self::VARIANCE.1));
        self.mean = Some(mean);
    }
}

/// Rate control of the delay-based part (`AimdRateControl`).
#[derive(Clone)]
pub struct Aimd {
    /// The delay-based rate.
    pub rate: Rate,
    /// State of the rate control; never Decrease between two calls, because a decrease turns into Hold at once.
    pub state: State,
    min_rate: Rate,
    /// Last received rate, used when a report brings none.
    received: Rate,
    capacity: LinkCapacityEstimator,
    last_change: Option<Time>,
    rtt: Span,
    network: Option<NetworkStateEstimate>,
}

impl Aimd {
    /// Creates a rate control that begins with `start` and never goes below `min_rate`.
    #[must_use]
    pub fn new(start: Rate, min_rate: Rate) -> Self {
        Self {
            rate: start.max(min_rate),
            state: State::Hold,
            min_rate,
            received: start,
            capacity: LinkCapacityEstimator { mean: None, variance: 0.4 },
            last_change: None,
            rtt: DEFAULT_RTT,
            network: None,
        }
    }

    /// Sets the start rate (`SetStartBitrate`).
    pub fn set_start(&mut self, start: Rate) {
        (self.rate, self.received) = (start, start);
    }

    /// Sets the lowest rate (`SetMinBitrate`) and raises the present one to it.
    pub fn set_min_rate(&mut self, min_rate: Rate) {
        self.min_rate = min_rate;
        self.rate = self.rate.max(min_rate);
    }

    /// Sets the round-trip time.
    pub fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt;
    }

    /// Sets the capacity that the network reports of itself, if it reports one.
    pub fn set_network(&mut self, network: Option<NetworkStateEstimate>) {
        self.network = network;
    }

    /// Sets the rate from outside: a probe's result, or half the rate (`SetEstimate`).
    pub fn set(&mut self, settings: &Settings, rate: Rate, now: Time) {
        self.rate = self.bounded(settings, rate);
        self.last_change = Some(now);
    }

    /// Multiplies the rate by `factor`. This does not count as a change: growth due since the last change stays due.
    pub fn scale(&mut self, factor: f64) {
        self.rate = self.rate.scaled(factor).max(self.min_rate);
    }

    /// Whether a decrease is due: a round trip has passed since the last change, or less than half the rate arrives.
    #[must_use]
    pub fn may_decrease(&self, received: Rate, now: Time) -> bool {
        let gap = self.rtt.max(BITRATE_REDUCTION_INTERVAL.0).min(BITRATE_REDUCTION_INTERVAL.1);
        self.last_change.is_none_or(|last| between(last, now) >= gap) || received < self.rate.scaled(0.5)
    }

    /// Updates the rate from the detector's verdict and the received rate, and returns it.
    pub fn update(&mut self, settings: &Settings, usage: Usage, received: Option<Rate>, now: Time) -> Rate {
        let received = received.unwrap_or(self.received);
        self.received = received;
        match (usage, self.state) {
            (Usage::Over, _) => self.state = State::Decrease,
            (Usage::Under, _) => self.state = State::Hold,
            (Usage::Normal, State::Hold) => {
                self.last_change = Some(now);
                self.state = State::Increase;
            }
            (Usage::Normal, _) => {}
        }
        let rate = match self.state {
            State::Hold => None,
            State::Increase => self.increased(received, now),
            State::Decrease => self.decreased(settings, received, now),
        };
        self.rate = self.bounded(settings, rate.unwrap_or(self.rate));
        self.rate
    }

    fn increased(&mut self, received: Rate, now: Time) -> Option<Rate> {
        if self.capacity.bounds().is_some_and(|(_, high)| received > high) {
            self.capacity.mean = None;
        }
        let limit = received.scaled(INCREASE_LIMIT.0) + INCREASE_LIMIT.1;
        let passed = self.last_change.replace(now).map(|last| seconds(between(last, now)));
        if self.rate >= limit {
            return None;
        }
        let step = if self.capacity.mean.is_some() {
            bps(self.slope() * passed.unwrap_or(0.0))
        } else {
            let growth = passed.map_or(GROWTH, |passed| math::pow(GROWTH, passed.min(1.0)));
            self.rate.scaled(growth - 1.0).max(MIN_MULTIPLICATIVE_STEP)
        };
        Some((self.rate + step).min(limit))
    }

    /// Growth near the capacity, bit/s per second (`GetNearMaxIncreaseRateBpsPerSecond`).
    #[must_use]
    pub fn slope(&self) -> f64 {
        let frame = bytes_in(self.rate, FRAME_INTERVAL);
        let packets = math::ceil(frame.as_bytes() as f64 / PACKET_SIZE).max(1.0);
        let response = (self.rtt.max(Span::ZERO) + RESPONSE_TIME_OFFSET) * 2;
        let packet = Size::from_bytes(math::round(frame.as_bytes() as f64 / packets) as u64);
        per(packet, response).as_bps_f64().max(MIN_INCREASE_RATE_BPS_PER_SECOND)
    }

    fn decreased(&mut self, settings: &Settings, received: Rate, now: Time) -> Option<Rate> {
        let mut lower = received.scaled(settings.beta);
        if lower > DECREASE_OFFSET {
            lower = lower.saturating_sub(DECREASE_OFFSET);
        }
        if lower > self.rate
            && let Some(capacity) = self.capacity.estimate()
        {
            lower = capacity.scaled(settings.beta);
        }
        if self.capacity.bounds().is_some_and(|(low, _)| received < low) {
            self.capacity.mean = None;
        }
        self.capacity.overuse(received);
        self.state = State::Hold;
        self.last_change = Some(now);
        // over-use never raises the rate
        (lower < self.rate).then_some(lower)
    }

    /// Clamps a rate to the capacity that the network reports, and to the lowest rate (`ClampBitrate`).
    fn bounded(&self, settings: &Settings, rate: Rate) -> Rate {
        let mut bounded = rate;
        if let Some(network) = self.network {
            if network.upper != Rate::MAX {
                bounded = bounded.min(network.upper.max(self.rate));
            }
            if bounded < self.rate && network.lower != Rate::MAX {
                bounded = self.rate.min(bounded.max(network.lower.scaled(settings.beta)));
            }
        }
        bounded.max(self.min_rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: Time = Time::from_secs(100);

    fn after_ms(ms: i64) -> Time {
        ORIGIN + Span::from_millis(ms)
    }

    fn aimd(start: u64) -> Aimd {
        Aimd::new(Rate::from_bps(start), Rate::from_kbps(5))
    }

    #[test]
    fn a_frame_of_just_over_a_packet_is_one_packet_after_rounding() {
        // 288 060 bit/s: 9602 bit in a frame, which are 1200 bytes; half a packet in 300 ms
        let mut near = aimd(288_060);
        assert_eq!(near.slope(), 16_000.0);
        // the next bit/s that rounds to 1201 bytes makes two packets of 601 bytes (600.5 upwards)
        near.set_start(Rate::from_bps(288_130));
        assert_eq!(near.slope(), f64::from(601_u32 * 8000 / 600));
        near.set_start(Rate::from_kbps(30));
        assert_eq!(near.slope(), MIN_INCREASE_RATE_BPS_PER_SECOND);
    }

    #[test]
    fn the_capacity_is_an_average_of_whole_kbits_and_is_forgotten_three_sigma_away() {
        let mut capacity = LinkCapacityEstimator { mean: None, variance: 0.4 };
        capacity.overuse(Rate::from_bps(999_500));
        assert_eq!(capacity.estimate(), Some(Rate::from_mbps(1)));
        // sigma is 20 kbit/s; its last bit is beyond, and rates are cut
        assert_eq!(capacity.bounds(), Some((Rate::from_bps(939_999), Rate::from_kbps(1060))));
        capacity.overuse(Rate::from_kbps(941));
        let mean: f64 = 950.0 + 0.05 * 941.0;
        assert_eq!(capacity.estimate(), Some(bps(mean * 1000.0)));
        let variance = 0.95 * 0.4 + 0.05 * (mean - 941.0) * (mean - 941.0) / mean;
        // 0.4 is one of single precision there
        assert!((capacity.variance - variance).abs() < 1e-8, "{}", capacity.variance);
        // far below the bounds it begins anew with the next over-use, far above with an increase
        let settings = Settings::default();
        let mut rate = aimd(1_000_000);
        rate.update(&settings, Usage::Over, Some(Rate::from_mbps(1)), after_ms(0));
        rate.update(&settings, Usage::Over, Some(Rate::from_kbps(900)), after_ms(1000));
        assert_eq!(rate.capacity.estimate(), Some(Rate::from_kbps(900)));
        rate.update(&settings, Usage::Normal, Some(Rate::from_kbps(957)), after_ms(2000));
        assert_eq!(rate.capacity.estimate(), None, "957 is three times 18.97 and a little above");
    }

    #[test]
    fn what_the_network_says_of_itself_bounds_the_rate_but_a_rate_that_is_above_may_stay() {
        let settings = Settings::default();
        let mut limit = aimd(1_000_000);
        let (lower, upper) = (Rate::from_kbps(800), Rate::from_kbps(900));
        limit.set_network(Some(NetworkStateEstimate { lower, upper }));
        limit.set(&settings, Rate::from_mbps(2), after_ms(0));
        assert_eq!(limit.rate, Rate::from_mbps(1), "not above what it is, nor down");
        limit.set(&settings, Rate::from_kbps(100), after_ms(0));
        assert_eq!(limit.rate, Rate::from_kbps(680), "0.85 of the lower bound");
        limit.set(&settings, Rate::from_mbps(2), after_ms(0));
        assert_eq!(limit.rate, upper);
    }

    #[test]
    fn decreases_come_once_in_a_round_trip_or_when_far_below() {
        let settings = Settings::default();
        let mut rate = aimd(1_000_000);
        assert!(rate.may_decrease(Rate::from_mbps(1), after_ms(0)));
        assert_eq!(
            rate.update(&settings, Usage::Over, Some(Rate::from_mbps(1)), after_ms(0)),
            Rate::from_kbps(845),
            "0.85 of it less 5 kbit/s"
        );
        let third = Rate::from_kbps(900);
        assert!(!rate.may_decrease(third, after_ms(199)) && rate.may_decrease(third, after_ms(200)));
        rate.set_rtt(Span::from_millis(3));
        assert!(!rate.may_decrease(third, after_ms(9)) && rate.may_decrease(third, after_ms(10)));
        assert!(rate.may_decrease(Rate::from_kbps(422), after_ms(1)), "less than half");
        assert!(!rate.may_decrease(Rate::from_kbps(423), after_ms(1)));
    }
}
