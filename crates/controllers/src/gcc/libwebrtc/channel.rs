//! How likely it is that a channel of this bandwidth and inherent loss lost what was observed.
//!
//! `loss_based_bwe_v2.cc`: observations, their likelihood, Newton's method for the inherent loss.

use super::rounding::part;
use super::settings::Settings;
use tidegate_core::math;
use tidegate_core::units::{Rate, Size};

/// How many observations count (`ObservationWindowSize`).
const WINDOW: usize = 15;
/// A probability is no closer to impossible, or to certain, than this (`GetLossProbability`).
const UNLIKELY: f64 = 1e-6;
/// A second derivative is no closer to zero (`GetDerivatives`).
const FLAT: f64 = -1e-6;

/// A channel that loses `inherent_loss` of everything and all beyond `bandwidth`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Channel {
    pub(super) inherent_loss: f64,
    pub(super) bandwidth: Rate,
}

impl Channel {
    /// Which part it loses of what is sent at `rate`.
    fn loss(&self, rate: Rate) -> f64 {
        let own = self.inherent_loss.clamp(0.0, 1.0);
        let beyond = rate.saturating_sub(self.bandwidth).as_bps_f64();
        let beyond = if beyond > 0.0 { (1.0 - own) * beyond / rate.as_bps_f64() } else { 0.0 };
        (own + beyond).clamp(UNLIKELY, 1.0 - UNLIKELY)
    }

    /// The inherent loss, within its bounds: the lower the bandwidth, the more may be inherent.
    fn feasible(&self, settings: &Settings) -> f64 {
        let most = if self.bandwidth == Rate::ZERO {
            1.0
        } else {
            (settings.loss_offset + settings.loss_balance / self.bandwidth.as_bps_f64()).min(1.0)
        };
        self.inherent_loss.max(settings.loss_inherent_least).min(most)
    }
}

/// What became of the packets of 250 ms and more.
#[derive(Clone, Copy, Default)]
pub(super) struct Observation {
    pub(super) size: Size,
    pub(super) lost: Size,
    /// At which rate they were sent.
    pub(super) rate: Rate,
}

impl Observation {
    /// Kilobytes lost and received.
    fn kilobytes(&self) -> (f64, f64) {
        let kilo = |size: Size| size.as_bytes() as f64 / 1000.0;
        (kilo(self.lost), kilo(self.size.saturating_sub(self.lost)))
    }

    fn loss(&self) -> f64 {
        if self.size == Size::ZERO { 0.0 } else { self.lost.as_bytes() as f64 / self.size.as_bytes() as f64 }
    }
}

/// The last observations.
#[derive(Clone, Default)]
pub(super) struct Observations {
    count: u64,
    /// A ring; where the next one goes is the count modulo its size.
    ring: [Observation; WINDOW],
    weights: [f64; WINDOW],
    loss: f64,
}

impl Observations {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The part of all bytes that was lost of late, without the worst observation and the best one.
    pub(super) fn loss(&self) -> f64 {
        self.loss
    }

    pub(super) fn push(&mut self, settings: &Settings, observation: Observation) {
        if self.count == 0 {
            for (age, weight) in self.weights.iter_mut().enumerate() {
                *weight = math::pow(settings.loss_weight, age as f64);
            }
        }
        self.ring[(self.count % WINDOW as u64) as usize] = observation;
        self.count += 1;
        self.loss = self.average(settings);
    }

    /// Those that there are, by their place in the ring, with the weight of their age.
    fn weighted(&self) -> impl Iterator<Item = (f64, &Observation)> {
        let newest = ((self.count + WINDOW as u64 - 1) % WINDOW as u64) as usize;
        let there = self.count.min(WINDOW as u64) as usize;
        self.ring[..there]
            .iter()
            .enumerate()
            .map(move |(place, observation)| (self.weights[(newest + WINDOW - place) % WINDOW], observation))
    }

    /// `CalculateAverageReportedByteLossRatio`.
    fn average(&self, settings: &Settings) -> f64 {
        #[derive(Clone, Copy, Default)]
        struct Bytes {
            lost: f64,
            all: f64,
        }
        let (mut sum, mut best, mut worst) = (Bytes::default(), Bytes::default(), Bytes::default());
        let (mut least, mut most, mut rate_of_worst) = (1.0, 0.0, Rate::ZERO);
        for (weight, observation) in self.weighted() {
            let bytes = |size| part(size, weight).as_bytes() as f64;
            let here = Bytes { lost: bytes(observation.lost), all: bytes(observation.size) };
            (sum.lost, sum.all) = (sum.lost + here.lost, sum.all + here.all);
            if self.count > 3 {
                let loss = observation.loss();
                if loss > most {
                    (most, worst, rate_of_worst) = (loss, here, observation.rate);
                }
                if loss < least {
                    (least, best) = (loss, here);
                }
            }
        }
        let over = |lost: f64, all: f64| if all > 0.0 { lost / all } else { 0.0 };
        // where much was sent all of a sudden, the worst one is no mischance
        let sudden = self.median_rate().scaled(settings.loss_median_factor) <= rate_of_worst;
        if sudden || sum.all == best.all + worst.all {
            return over(sum.lost, sum.all);
        }
        over(sum.lost - best.lost - worst.lost, sum.all - best.all - worst.all)
    }

    fn median_rate(&self) -> Rate {
        let mut rates = [Rate::ZERO; WINDOW];
        let mut there = 0;
        for (_, observation) in self.weighted().filter(|(_, observation)| observation.rate != Rate::ZERO) {
            rates[there] = observation.rate;
            there += 1;
        }
        let rates = &mut rates[..there];
        rates.sort_unstable();
        match there {
            0 => Rate::ZERO,
            n if n % 2 == 1 => rates[n / 2],
            n => Rate::from_bps((rates[n / 2 - 1] + rates[n / 2]).as_bps() / 2),
        }
    }

    /// Moves a channel's inherent loss towards where it is likeliest, by a step of Newton's method.
    pub(super) fn fit(&self, settings: &Settings, channel: &mut Channel) {
        channel.inherent_loss = channel.feasible(settings);
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, observation) in self.weighted() {
            let loss = channel.loss(observation.rate);
            let (lost, received) = observation.kilobytes();
            first += weight * (lost / loss - received / (1.0 - loss));
            second -= weight * (lost / (loss * loss) + received / ((1.0 - loss) * (1.0 - loss)));
        }
        let second = if second >= 0.0 { FLAT } else { second };
        channel.inherent_loss -= settings.loss_newton * first / second;
        channel.inherent_loss = channel.feasible(settings);
    }

    /// How likely a channel is, and how much its bandwidth is worth (`GetObjective`).
    pub(super) fn objective(&self, settings: &Settings, channel: &Channel) -> f64 {
        let kbps = super::rounding::kbps(channel.bandwidth);
        let worth = self.bias(settings, settings.loss_bias) * kbps
            + self.bias(settings, settings.loss_log_bias) * math::ln(1.0 + kbps);
        let mut objective = 0.0;
        // what was sent below the bandwidth has one loss: the logarithms of the last one are kept
        let mut logarithms = (f64::NAN, 0.0, 0.0);
        for (weight, observation) in self.weighted() {
            let loss = channel.loss(observation.rate);
            if loss != logarithms.0 {
                logarithms = (loss, math::ln(loss), math::ln(1.0 - loss));
            }
            let (lost, received) = observation.kilobytes();
            objective += weight * (lost * logarithms.1 + received * logarithms.2);
            objective += weight * worth * (observation.size.as_bytes() as f64 / 1000.0);
        }
        objective
    }

    /// A preference for bandwidth that turns into its opposite where much is lost (`AdjustBiasFactor`).
    fn bias(&self, settings: &Settings, factor: f64) -> f64 {
        let below = settings.loss_preference - self.loss;
        factor * below / (SMOOTHING + below.abs())
    }
}

/// How soon a preference turns (`BandwidthPreferenceSmoothingFactor`).
const SMOOTHING: f64 = 0.002;

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
        assert_eq!(Channel { inherent_loss: 0.5, ..channel }.feasible(&settings()), 0.05 + 0.1);
        assert_eq!(Channel { inherent_loss: 0.0, ..channel }.feasible(&settings()), 1e-3);
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
        let other = Channel { inherent_loss: 0.02, ..channel };
        assert!(observations.objective(&settings(), &other) < likely);
    }
}
