//! The rate control of the delay-based part: additive or multiplicative increase, multiplicative decrease.
//!
//! `modules/remote_bitrate_estimator/aimd_rate_control.cc`, with `link_capacity_estimator.cc` beneath it.

use super::rounding::{between, bps, bytes_in, kbps, per, seconds};
use super::settings::Settings;
use crate::gcc::detector::Usage;
use crate::gcc::rate::State;
use tidegate_core::math;
use tidegate_core::units::{Rate, Size, Span, Time};

/// Growth in a second where the capacity is not known (`MultiplicativeRateIncrease`), and its least step.
const GROWTH: f64 = 1.08;
const LEAST_STEP: Rate = Rate::from_bps(1000);
/// An increase ends at this times the received rate, and this more (`increase_limit`).
const BOUND: (f64, Rate) = (1.5, Rate::from_kbps(10));
/// A decrease goes this much below the part of the received rate (`ChangeBitrate`).
const BELOW: Rate = Rate::from_kbps(5);
/// Near the capacity: frames of 1/30 s in packets of this size, half of one in a response time, which is the round
/// trip and this; and the least slope, bit/s in a second (`GetNearMaxIncreaseRateBpsPerSecond`).
const FRAME: Span = Span::from_micros(33_333);
const PACKET: f64 = 1200.0;
const RESPONSE: Span = Span::from_millis(100);
const LEAST_SLOPE: f64 = 4000.0;
/// A round trip between decreases is taken to be within these (`TimeToReduceFurther`).
const DECREASE_GAP: (Span, Span) = (Span::from_millis(10), Span::from_millis(200));
/// The round trip before there is one (`kDefaultRtt`).
pub const DEFAULT_RTT: Span = Span::from_millis(200);

/// What a network says of its own capacity, where it says anything (`NetworkStateEstimate`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkState {
    /// It has at least this.
    pub lower: Rate,
    /// It has at most this.
    pub upper: Rate,
}

/// What was received whenever the rate had to be decreased; in kbit/s as there, where its variance has that unit.
#[derive(Clone)]
struct LinkCapacity {
    mean: Option<f64>,
    variance: f64,
}

impl LinkCapacity {
    /// Weight of a new sample (`OnOveruseDetected`), and bounds of the variance over the mean (`Update`, in single
    /// precision).
    const WEIGHT: f64 = 0.05;
    const VARIANCE: (f32, f32) = (0.4, 2.5);

    fn estimate(&self) -> Option<Rate> {
        self.mean.map(|mean| bps(mean * 1000.0))
    }

    /// The rates three standard deviations below and above.
    fn bounds(&self) -> Option<(Rate, Rate)> {
        let mean = self.mean?;
        let far = 3.0 * math::sqrt(self.variance * mean);
        Some((bps((mean - far).max(0.0) * 1000.0), bps((mean + far) * 1000.0)))
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

/// The delay-based rate and what moves it.
#[derive(Clone)]
pub struct Aimd {
    /// The delay-based rate.
    pub rate: Rate,
    /// What it does; never Decrease, because a decrease goes over to Hold at once.
    pub state: State,
    least: Rate,
    /// The last received rate, for reports that give none.
    received: Rate,
    capacity: LinkCapacity,
    last_change: Option<Time>,
    rtt: Span,
    network: Option<NetworkState>,
}

impl Aimd {
    /// A rate control that begins with `start`, and never goes below `least`.
    #[must_use]
    pub fn new(start: Rate, least: Rate) -> Self {
        Self {
            rate: start.max(least),
            state: State::Hold,
            least,
            received: start,
            capacity: LinkCapacity { mean: None, variance: 0.4 },
            last_change: None,
            rtt: DEFAULT_RTT,
            network: None,
        }
    }

    /// Begins with another rate (`SetStartBitrate`).
    pub fn set_start(&mut self, start: Rate) {
        (self.rate, self.received) = (start, start);
    }

    /// Never goes below `least` from now on.
    pub fn set_least(&mut self, least: Rate) {
        self.least = least;
        self.rate = self.rate.max(least);
    }

    /// A new round trip.
    pub fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt;
    }

    /// What the network says of itself.
    pub fn set_network(&mut self, network: Option<NetworkState>) {
        self.network = network;
    }

    /// Sets the rate from outside: a probe's result, or half the rate.
    pub fn set(&mut self, settings: &Settings, rate: Rate, now: Time) {
        self.rate = self.bounded(settings, rate);
        self.last_change = Some(now);
    }

    /// Goes on from so many times its rate: no change of its own, so that what it is due to grow by since the last one
    /// stays.
    pub fn scale(&mut self, factor: f64) {
        self.rate = self.rate.scaled(factor).max(self.least);
    }

    /// Whether a decrease is due: a round trip since the last change, or less than half the rate received.
    #[must_use]
    pub fn may_decrease(&self, received: Rate, now: Time) -> bool {
        let gap = self.rtt.max(DECREASE_GAP.0).min(DECREASE_GAP.1);
        self.last_change.is_none_or(|last| between(last, now) >= gap) || received < self.rate.scaled(0.5)
    }

    /// Takes the detector's verdict and the received rate as they are `now`. Answers with the rate.
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
        let bound = received.scaled(BOUND.0) + BOUND.1;
        let passed = self.last_change.replace(now).map(|last| seconds(between(last, now)));
        if self.rate >= bound {
            return None;
        }
        let step = if self.capacity.mean.is_some() {
            bps(self.slope() * passed.unwrap_or(0.0))
        } else {
            let growth = passed.map_or(GROWTH, |passed| math::pow(GROWTH, passed.min(1.0)));
            self.rate.scaled(growth - 1.0).max(LEAST_STEP)
        };
        Some((self.rate + step).min(bound))
    }

    /// How fast the rate grows near the capacity, bit/s in a second.
    #[must_use]
    pub fn slope(&self) -> f64 {
        let frame = bytes_in(self.rate, FRAME);
        let packets = math::ceil(frame.as_bytes() as f64 / PACKET).max(1.0);
        let response = (self.rtt.max(Span::ZERO) + RESPONSE) * 2;
        let packet = Size::from_bytes(math::round(frame.as_bytes() as f64 / packets) as u64);
        per(packet, response).as_bps_f64().max(LEAST_SLOPE)
    }

    fn decreased(&mut self, settings: &Settings, received: Rate, now: Time) -> Option<Rate> {
        let mut lower = received.scaled(settings.beta);
        if lower > BELOW {
            lower = lower.saturating_sub(BELOW);
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

    /// Within what the network says of itself, and no less than the least rate (`ClampBitrate`).
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
        bounded.max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Time = Time::from_secs(100);

    fn at(ms: i64) -> Time {
        THEN + Span::from_millis(ms)
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
        assert_eq!(near.slope(), LEAST_SLOPE);
    }

    #[test]
    fn the_capacity_is_an_average_of_whole_kbits_and_is_forgotten_three_sigma_away() {
        let mut capacity = LinkCapacity { mean: None, variance: 0.4 };
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
        rate.update(&settings, Usage::Over, Some(Rate::from_mbps(1)), at(0));
        rate.update(&settings, Usage::Over, Some(Rate::from_kbps(900)), at(1000));
        assert_eq!(rate.capacity.estimate(), Some(Rate::from_kbps(900)));
        rate.update(&settings, Usage::Normal, Some(Rate::from_kbps(957)), at(2000));
        assert_eq!(rate.capacity.estimate(), None, "957 is three times 18.97 and a little above");
    }

    #[test]
    fn what_the_network_says_of_itself_bounds_the_rate_but_a_rate_that_is_above_may_stay() {
        let settings = Settings::default();
        let mut bound = aimd(1_000_000);
        let (lower, upper) = (Rate::from_kbps(800), Rate::from_kbps(900));
        bound.set_network(Some(NetworkState { lower, upper }));
        bound.set(&settings, Rate::from_mbps(2), at(0));
        assert_eq!(bound.rate, Rate::from_mbps(1), "not above what it is, nor down");
        bound.set(&settings, Rate::from_kbps(100), at(0));
        assert_eq!(bound.rate, Rate::from_kbps(680), "0.85 of the lower bound");
        bound.set(&settings, Rate::from_mbps(2), at(0));
        assert_eq!(bound.rate, upper);
    }

    #[test]
    fn decreases_come_once_in_a_round_trip_or_when_far_below() {
        let settings = Settings::default();
        let mut rate = aimd(1_000_000);
        assert!(rate.may_decrease(Rate::from_mbps(1), at(0)));
        assert_eq!(
            rate.update(&settings, Usage::Over, Some(Rate::from_mbps(1)), at(0)),
            Rate::from_kbps(845),
            "0.85 of it less 5 kbit/s"
        );
        let third = Rate::from_kbps(900);
        assert!(!rate.may_decrease(third, at(199)) && rate.may_decrease(third, at(200)));
        rate.set_rtt(Span::from_millis(3));
        assert!(!rate.may_decrease(third, at(9)) && rate.may_decrease(third, at(10)));
        assert!(rate.may_decrease(Rate::from_kbps(422), at(1)), "less than half");
        assert!(!rate.may_decrease(Rate::from_kbps(423), at(1)));
    }
}
