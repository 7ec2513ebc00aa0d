//! Likelihood of the observed losses for a channel with a given bandwidth and inherent loss.
//!
//! `loss_based_bwe_v2.cc`: observations, their likelihood, Newton's method for the inherent loss.

use super::rounding::part;
use super::settings::Settings;
use tidegate_core::math;
use tidegate_core::units::{Rate, Size};

/// Number of observations kept (`ObservationWindowSize`).
const OBSERVATION_WINDOW_SIZE: usize = 15;
/// Smallest distance of a loss probability from 0 and from 1 (`GetLossProbability`).
const MIN_PROBABILITY: f64 = 1e-6;
/// Second derivative that stands for one that is not negative (`GetDerivatives`).
const MAX_SECOND_DERIVATIVE: f64 = -1e-6;

/// Channel that loses the part `inherent_loss` of all packets, and all bytes beyond `bandwidth` (`ChannelParameters`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Channel {
    pub(super) inherent_loss: f64,
    pub(super) bandwidth: Rate,
}

impl Channel {
    /// Loss probability at a sending rate (`GetLossProbability`).
    fn loss(&self, rate: Rate) -> f64 {
        let inherent = self.inherent_loss.clamp(0.0, 1.0);
        let beyond = rate.saturating_sub(self.bandwidth).as_bps_f64();
        let beyond = if beyond > 0.0 { (1.0 - inherent) * beyond / rate.as_bps_f64() } else { 0.0 };
        (inherent + beyond).clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    }

    /// Inherent loss within its bounds (`GetFeasibleInherentLoss`): the upper bound falls with the bandwidth.
    fn feasible_inherent_loss(&self, settings: &Settings) -> f64 {
        let upper_bound = if self.bandwidth == Rate::ZERO {
            1.0
        } else {
            (settings.loss_offset + settings.loss_balance / self.bandwidth.as_bps_f64()).min(1.0)
        };
        self.inherent_loss.max(settings.loss_inherent_least).min(upper_bound)
    }
}

/// Bytes sent and lost in 250 ms or more (`Observation`).
#[derive(Clone, Copy, Default)]
pub(super) struct Observation {
    pub(super) size: Size,
    pub(super) lost: Size,
    /// Sending rate.
    pub(super) rate: Rate,
}

impl Observation {
    /// Kilobytes lost, and kilobytes received.
    fn kilobytes(&self) -> (f64, f64) {
        let kilo = |size: Size| size.as_bytes() as f64 / 1000.0;
        (kilo(self.lost), kilo(self.size.saturating_sub(self.lost)))
    }

    fn loss(&self) -> f64 {
        if self.size == Size::ZERO { 0.0 } else { self.lost.as_bytes() as f64 / self.size.as_bytes() as f64 }
    }
}

/// Last observations with the weights of their ages.
#[derive(Clone, Default)]
pub(super) struct Observations {
    count: u64,
    /// Ring; the next observation goes to the index `count` modulo its size.
    ring: [Observation; OBSERVATION_WINDOW_SIZE],
    weights: [f64; OBSERVATION_WINDOW_SIZE],
    loss: f64,
}

impl Observations {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Weighted fraction of bytes lost, without the worst and the best observation.
    pub(super) fn loss(&self) -> f64 {
        self.loss
    }

    pub(super) fn push(&mut self, settings: &Settings, observation: Observation) {
        if self.count == 0 {
            for (age, weight) in self.weights.iter_mut().enumerate() {
                *weight = math::pow(settings.loss_weight, age as f64);
            }
        }
        self.ring[(self.count % OBSERVATION_WINDOW_SIZE as u64) as usize] = observation;
        self.count += 1;
        self.loss = self.average(settings);
    }

    /// Iterates over the observations in the order of the ring, each with the weight of its age.
    fn weighted(&self) -> impl Iterator<Item = (f64, &Observation)> {
        let newest =
            ((self.count + OBSERVATION_WINDOW_SIZE as u64 - 1) % OBSERVATION_WINDOW_SIZE as u64) as usize;
        let len = self.count.min(OBSERVATION_WINDOW_SIZE as u64) as usize;
        self.ring[..len].iter().enumerate().map(move |(index, observation)| {
            let age = (newest + OBSERVATION_WINDOW_SIZE - index) % OBSERVATION_WINDOW_SIZE;
            (self.weights[age], observation)
        })
    }

    /// Weighted loss ratio (`CalculateAverageReportedByteLossRatio`).
    fn average(&self, settings: &Settings) -> f64 {
        #[derive(Clone, Copy, Default)]
        struct Bytes {
            lost: f64,
            total: f64,
        }
        let (mut sum, mut best, mut worst) = (Bytes::default(), Bytes::default(), Bytes::default());
        let (mut min_loss, mut max_loss, mut rate_of_worst) = (1.0, 0.0, Rate::ZERO);
        for (weight, observation) in self.weighted() {
            let bytes = |size| part(size, weight).as_bytes() as f64;
            let weighted = Bytes { lost: bytes(observation.lost), total: bytes(observation.size) };
            (sum.lost, sum.total) = (sum.lost + weighted.lost, sum.total + weighted.total);
            if self.count > 3 {
                let loss = observation.loss();
                if loss > max_loss {
                    (max_loss, worst, rate_of_worst) = (loss, weighted, observation.rate);
                }
                if loss < min_loss {
                    (min_loss, best) = (loss, weighted);
                }
            }
        }
        let ratio = |lost: f64, total: f64| if total > 0.0 { lost / total } else { 0.0 };
        // losses after a sudden rise of the sending rate are no accident, and count
        let sudden_rise = self.median_rate().scaled(settings.loss_median_factor) <= rate_of_worst;
        if sudden_rise || sum.total == best.total + worst.total {
            return ratio(sum.lost, sum.total);
        }
        ratio(sum.lost - best.lost - worst.lost, sum.total - best.total - worst.total)
    }

    fn median_rate(&self) -> Rate {
        let mut rates = [Rate::ZERO; OBSERVATION_WINDOW_SIZE];
        let mut len = 0;
        for (_, observation) in self.weighted().filter(|(_, observation)| observation.rate != Rate::ZERO) {
            rates[len] = observation.rate;
            len += 1;
        }
        let rates = &mut rates[..len];
        rates.sort_unstable();
        match len {
            0 => Rate::ZERO,
            n if n % 2 == 1 => rates[n / 2],
            n => Rate::from_bps((rates[n / 2 - 1] + rates[n / 2]).as_bps() / 2),
        }
    }

    /// Moves a channel's inherent loss towards the likeliest one by a step of Newton's method (`NewtonsMethodUpdate`).
    pub(super) fn fit(&self, settings: &Settings, channel: &mut Channel) {
        channel.inherent_loss = channel.feasible_inherent_loss(settings);
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, observation) in self.weighted() {
            let loss = channel.loss(observation.rate);
            let (lost, received) = observation.kilobytes();
            first += weight * (lost / loss - received / (1.0 - loss));
            second -= weight * (lost / (loss * loss) + received / ((1.0 - loss) * (1.0 - loss)));
        }
        let second = if second >= 0.0 { MAX_SECOND_DERIVATIVE } else { second };
        channel.inherent_loss -= settings.loss_newton * first / second;
        channel.inherent_loss = channel.feasible_inherent_loss(settings);
    }

    /// Log-likelihood of a channel plus the bias for higher bandwidth (`GetObjective`).
    pub(super) fn objective(&self, settings: &Settings, channel: &Channel) -> f64 {
        let kbps = super::rounding::kbps(channel.bandwidth);
        let bandwidth_bias = self.bias(settings, settings.loss_bias) * kbps
            + self.bias(settings, settings.loss_log_bias) * math::ln(1.0 + kbps);
        let mut objective = 0.0;
        // all observations below the bandwidth have one loss probability: its logarithms are calculated once
        let mut logarithms = (f64::NAN, 0.0, 0.0);
        for (weight, observation) in self.weighted() {
            let loss = channel.loss(observation.rate);
            if loss != logarithms.0 {
                logarithms = (loss, math::ln(loss), math::ln(1.0 - loss));
            }
            let (lost, received) = observation.kilobytes();
            objective += weight * (lost * logarithms.1 + received * logarithms.2);
            objective += weight * bandwidth_bias * (observation.size.as_bytes() as f64 / 1000.0);
        }
        objective
    }

    /// Bias factor, positive below the loss threshold and negative above it (`AdjustBiasFactor`).
    fn bias(&self, settings: &Settings, factor: f64) -> f64 {
        let below = settings.loss_preference - self.loss;
        factor * below / (BANDWIDTH_PREFERENCE_SMOOTHING_FACTOR + below.abs())
    }
}

/// Loss difference over which the bias changes its sign (`BandwidthPreferenceSmoothingFactor`).
const BANDWIDTH_PREFERENCE_SMOOTHING_FACTOR: f64 = 0.002;

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::default()
    }

    #[test]
    fn a_channel_loses_its_own_part_and_what_is_beyond_its_bandwidth() {
        let channel = Channel { inherent_loss: 0.1, bandwidth: Rate::from_mbps(1) };
        assert_eq!(channel.loss(Rate::from_kbps(500)), 0.1);
        assert!((channel.loss(Rate::from_mbps(2)) - (0.1 + 0.9 * 0.5)).abs() < 1e-15);
        assert_eq!(Channel { inherent_loss: 0.0, ..channel }.loss(Rate::ZERO), 1e-6);
        assert_eq!(Channel { inherent_loss: 2.0, ..channel }.loss(Rate::ZERO), 1.0 - 1e-6);
        // 5 % and 100 kbit/s of 1 Mbit/s
        assert_eq!(Channel { inherent_loss: 0.5, ..channel }.feasible_inherent_loss(&settings()), 0.05 + 0.1);
        assert_eq!(Channel { inherent_loss: 0.0, ..channel }.feasible_inherent_loss(&settings()), 1e-3);
    }

    #[test]
    fn the_average_leaves_out_the_worst_and_the_best() {
        let mut observations = Observations::default();
        let settings = Settings { loss_weight: 1.0, ..settings() };
        for lost in [0, 100, 100, 900, 100] {
            let observation = Observation {
                size: Size::from_bytes(1000),
                lost: Size::from_bytes(lost),
                rate: Rate::from_mbps(1),
            };
            observations.push(&settings, observation);
        }
        assert_eq!(observations.loss(), 0.1);
        // ... but not where it was sent at twice the median rate
        let sudden = Observation {
            size: Size::from_bytes(1000),
            lost: Size::from_bytes(950),
            rate: Rate::from_mbps(2),
        };
        observations.push(&settings, sudden);
        assert_eq!(observations.loss(), 2150.0 / 6000.0);
    }

    #[test]
    fn newtons_method_finds_the_inherent_loss_of_a_channel_that_is_not_full() {
        let mut observations = Observations::default();
        for _ in 0..20 {
            let (size, lost) = (Size::from_bytes(100_000), Size::from_bytes(4000));
            observations.push(&settings(), Observation { size, lost, rate: Rate::from_kbps(500) });
        }
        let mut channel = Channel { inherent_loss: 0.01, bandwidth: Rate::from_mbps(1) };
        for _ in 0..30 {
            observations.fit(&settings(), &mut channel);
        }
        assert!((channel.inherent_loss - 0.04).abs() < 1e-9, "{channel:?}");
        let likely = observations.objective(&settings(), &channel);
        let less_likely = Channel { inherent_loss: 0.02, ..channel };
        assert!(observations.objective(&settings(), &less_likely) < likely);
    }
}
