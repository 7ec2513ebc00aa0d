//! A generated link over satellites in low Earth orbit: every 15 s the dish is assigned another path through the sky.
//!
//! Round trips and losses are fitted to four hours of pings of a Starlink dish to the operator's point of presence, one
//! a second, as the dish recorded them (the FjordLink recordings of ds-kiel, CC-BY-4.0, 2024-12 to 2025-03). In these
//! * a round trip is some 19 ms plus a lognormal rest, and the correlation of two of them falls as that of independent
//!   draws for 15 s each, if the dish reports the mean of the last 15 s;
//! * half of all losses are in the two seconds around the end of an interval.
//!
//! Capacity is a model without a measurement behind it: a lognormal draw for each interval. The throughput that the
//! dish reports is the throughput in use, which was nearly nothing.
//!
//! Both directions of a cable change at the same time, and share round trips; their capacities are drawn separately.

use super::LinkSettings;
use super::capacity::{Server, Steps};
use super::loss::Loss;
use super::phases::Phases;
use crate::refusal::{Refusal, ensure, ensure_probability};
use serde::Deserialize;
use tidegate_core::{Rate, Span, Stream, Time, math};

/// The settings of a satellite link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leo {
    /// Name of the cable, the same for both of its directions.
    pub cable: String,
    /// Time for which a path through the sky is kept.
    pub interval: Span,
    /// Median of the capacities of intervals.
    pub median: Rate,
    /// Standard deviation of the natural logarithms of the capacities.
    pub sigma: f64,
    /// The smallest round trip; half of each round trip is the delay of each direction.
    pub round_trip: Span,
    /// Median of the rest, which comes on top of `round_trip` in an interval.
    pub rest: Span,
    /// Standard deviation of the natural logarithm of the rest.
    pub rest_sigma: f64,
    /// Correlation of the rests' logarithms in successive intervals.
    pub correlation: f64,
    /// Duration of the disturbance by a change of path.
    pub handover: Span,
    /// Loss probability during a disturbance, in each direction.
    pub handover_loss: f64,
    /// Loss probability at other times, in each direction.
    pub loss: f64,
}

/// Clamp of draws, in standard deviations.
const MAX_DEVIATIONS: f64 = 3.0;

/// Largest number of intervals; all are drawn before the run begins, and kept in memory.
const MAX_INTERVALS: i64 = 10_000_000;

impl Leo {
    fn check(&self) -> Result<(), Refusal> {
        let positive = "more than zero";
        ensure(self.median > Rate::ZERO, || Refusal::new("median", self.median, positive))?;
        ensure(self.interval > Span::ZERO, || Refusal::new("interval", self.interval, positive))?;
        for (key, span) in [("round_trip", self.round_trip), ("rest", self.rest)] {
            ensure(!span.is_negative(), || Refusal::new(key, span, "zero or more"))?;
        }
        ensure((Span::ZERO..self.interval).contains(&self.handover), || {
            Refusal::new("handover", self.handover, "zero or more, and less than the interval")
        })?;
        for (key, sigma) in [("sigma", self.sigma), ("rest_sigma", self.rest_sigma)] {
            // three deviations of 2 are a factor of 400
            ensure((0.0..=2.0).contains(&sigma), || Refusal::new(key, sigma, "0 to 2"))?;
        }
        ensure_probability("correlation", self.correlation)?;
        ensure_probability("handover_loss", self.handover_loss)?;
        ensure_probability("loss", self.loss)
    }

    /// The settings of the link called `name` for a run of `duration`, from its `base` settings: delays are added to
    /// those of `base`, losses apply where `base` has none. `seeds` are those of the link and of the cable.
    pub(crate) fn link(
        &self,
        base: LinkSettings,
        name: &str,
        seeds: (u64, u64),
        duration: Span,
    ) -> Result<LinkSettings, Refusal> {
        self.check().map_err(|refusal| refusal.at("leo").at("capacity"))?;
        ensure(duration.as_nanos() / self.interval.as_nanos() <= MAX_INTERVALS, || {
            Refusal::new(
                "capacity.leo.interval",
                self.interval,
                "an interval of which at most 10 million fit into the run",
            )
        })?;
        let &[(_, base_delay)] = base.delay.phases() else {
            return Err("the delay changes over time; with the capacity leo it must be constant".into());
        };
        let mut capacities = Stream::new(seeds.0, name, "capacity");
        let mut paths = Stream::new(seeds.1, &self.cable, "ways");
        let deviation = |luck: &mut Stream| luck.normal().clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS);
        let (mut rates, mut delays, mut losses) = (Vec::new(), Vec::new(), Vec::new());
        // the first interval has begun before the run: a run does not begin with a change
        let mut start = Time::ZERO - self.interval.scaled(paths.uniform());
        let mut path_draw = deviation(&mut paths);
        let fresh = math::sqrt(1.0 - self.correlation * self.correlation);
        let loses = |p: f64| if p > 0.0 { Loss::Bernoulli(p) } else { Loss::None };
        while start < Time::ZERO + duration {
            let begin = start.max(Time::ZERO);
            rates.push((begin, self.median.scaled(math::exp(self.sigma * deviation(&mut capacities)))));
            let round_trip = self.round_trip + self.rest.scaled(math::exp(self.rest_sigma * path_draw));
            delays.push((begin, base_delay + round_trip.scaled(0.5)));
            let calm = start + self.handover;
            if calm > begin {
                losses.push((begin, loses(self.handover_loss)));
            }
            if calm >= begin {
                losses.push((calm, loses(self.loss)));
            } else if losses.is_empty() {
                losses.push((begin, loses(self.loss)));
            }
            start += self.interval;
            path_draw = self.correlation * path_draw + fresh * deviation(&mut paths);
        }
        let loss = if base.loss == Phases::default() { Phases::new(losses, None)? } else { base.loss };
        Ok(LinkSettings {
            server: Server::schedule(Steps::new(&rates, None)?),
            // the mean of a lognormal draw
            nominal: Some(self.median.scaled(math::exp(self.sigma * self.sigma / 2.0))),
            delay: Phases::new(delays, None)?,
            loss,
            ..base
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starlink() -> Leo {
        Leo {
            cable: "dish".into(),
            interval: Span::from_secs(15),
            median: Rate::from_mbps(10),
            sigma: 0.5,
            round_trip: Span::from_millis(19),
            rest: Span::from_millis(7),
            rest_sigma: 0.65,
            correlation: 0.2,
            handover: Span::from_millis(100),
            handover_loss: 0.055,
            loss: 0.0007,
        }
    }

    fn link(leo: &Leo, name: &str, seed: u64, hours: i64) -> LinkSettings {
        leo.link(LinkSettings::default(), name, (seed, seed), Span::from_secs(3600 * hours)).unwrap()
    }

    /// Round trips in ms, one for each interval.
    fn round_trips(link: &LinkSettings) -> Vec<f64> {
        link.delay.phases().iter().map(|(_, delay)| 2e3 * delay.as_secs_f64()).collect()
    }

    fn percentile(sorted: &[f64], percent: f64) -> f64 {
        sorted[((sorted.len() - 1) as f64 * percent / 100.0) as usize]
    }

    #[test]
    fn round_trips_are_those_of_the_recordings_as_a_dish_reports_them() {
        let raw = round_trips(&link(&starlink(), "dish", 1, 400));
        // once a second, the mean of the last 15 s
        let seconds: Vec<f64> = raw.iter().flat_map(|&round_trip| [round_trip; 15]).collect();
        let reported: Vec<f64> =
            seconds.windows(15).map(|window| window.iter().sum::<f64>() / 15.0).collect();
        let mut sorted = reported.clone();
        sorted.sort_by(f64::total_cmp);
        // of 4 x 3600 recorded seconds; the model's tails end at three deviations
        let recorded =
            [(1.0, 20.1), (5.0, 21.5), (25.0, 23.8), (50.0, 26.4), (75.0, 30.1), (95.0, 38.9), (99.5, 48.7)];
        for (percent, expected) in recorded {
            let actual = percentile(&sorted, percent);
            assert!((actual / expected - 1.0).abs() < 0.05, "{percent} %: {actual} instead of {expected} ms");
        }
        let mean = reported.iter().sum::<f64>() / reported.len() as f64;
        let variance = reported.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>()
            / reported.len() as f64;
        for (lag, expected) in [(5, 0.89), (10, 0.65), (15, 0.41), (20, 0.27)] {
            let products = reported
                .iter()
                .zip(&reported[lag..])
                .map(|(sample, lagged)| (sample - mean) * (lagged - mean));
            let actual = products.sum::<f64>() / (reported.len() - lag) as f64 / variance;
            assert!((actual - expected).abs() < 0.06, "{lag} s: {actual} instead of {expected}");
        }
    }

    #[test]
    fn losses_are_those_of_the_recordings_and_half_of_them_at_changes() {
        let link = link(&starlink(), "dish", 1, 10);
        let phases = link.loss.phases();
        let (mut total, mut at_changes) = (0.0, 0.0);
        for pair in phases.windows(2) {
            let seconds = (pair[1].0 - pair[0].0).as_secs_f64();
            let Loss::Bernoulli(p) = pair[0].1 else { panic!("{:?}", pair[0]) };
            total += p * seconds;
            at_changes += if p > 0.01 { p * seconds } else { 0.0 };
        }
        // 0.096, 0.086, 0.115 and 0.133 % in the four recordings, of which 0.56, 0.49 and 1.04 % s a change
        let share = total / 36_000.0;
        assert!((0.00086..0.00133).contains(&share), "{share}");
        assert!((0.3..0.6).contains(&(at_changes / total)), "{}", at_changes / total);
    }

    #[test]
    fn capacities_are_lognormal_and_those_of_the_two_ways_differ() {
        let (forward, backward) = (link(&starlink(), "dish", 1, 400), link(&starlink(), "dish.back", 1, 400));
        assert_eq!(forward.delay, backward.delay);
        let logarithms = |link: &LinkSettings| {
            let Server::Schedule(service) = &link.server else { panic!("steps") };
            let steps = service.steps();
            let logarithms: Vec<f64> =
                steps.rates().map(|(_, rate)| math::ln(rate.as_bps_f64() / 10e6)).collect();
            let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
            let variance =
                logarithms.iter().map(|logarithm| (logarithm - mean) * (logarithm - mean)).sum::<f64>()
                    / logarithms.len() as f64;
            (mean, math::sqrt(variance), logarithms)
        };
        let (mean, deviation, forward_logarithms) = logarithms(&forward);
        // 96000 draws: a deviation of the mean is 0.0016
        assert!(mean.abs() < 0.007 && (deviation - 0.5).abs() < 0.01, "{mean} {deviation}");
        let backward_logarithms = logarithms(&backward).2;
        let products = forward_logarithms.iter().zip(&backward_logarithms).map(|(a, b)| a * b);
        let covariance = products.sum::<f64>() / forward_logarithms.len() as f64;
        assert!((covariance / 0.25).abs() < 0.02, "{covariance}");
    }

    #[test]
    fn changes_are_an_interval_apart_and_begin_anywhere() {
        let mut firsts = Vec::new();
        for seed in 0..50 {
            let link = link(&starlink(), "dish", seed, 1);
            let times: Vec<Time> = link.delay.phases().iter().map(|(time, _)| *time).collect();
            assert_eq!(times[0], Time::ZERO);
            assert!(times[1] > times[0] && times[1] - times[0] <= Span::from_secs(15));
            assert!(times[1..].windows(2).all(|pair| pair[1] - pair[0] == Span::from_secs(15)));
            firsts.push((times[1] - times[0]).as_secs_f64());
        }
        let mean = firsts.iter().sum::<f64>() / 50.0;
        // 7.5 s, with a deviation of 15 / sqrt(12 * 50) = 0.6 s
        assert!((mean - 7.5).abs() < 2.4, "{mean}");
    }

    #[test]
    fn invalid_settings_are_refused() {
        let wrong = |change: fn(&mut Leo)| {
            let mut leo = starlink();
            change(&mut leo);
            let built = leo.link(LinkSettings::default(), "x", (1, 1), Span::from_secs(60));
            built.unwrap_err().key
        };
        assert_eq!(wrong(|leo| leo.median = Rate::ZERO), "capacity.leo.median");
        assert_eq!(wrong(|leo| leo.interval = Span::ZERO), "capacity.leo.interval");
        assert_eq!(wrong(|leo| leo.handover = leo.interval), "capacity.leo.handover");
        assert_eq!(wrong(|leo| leo.rest_sigma = 2.1), "capacity.leo.rest_sigma");
        assert_eq!(wrong(|leo| leo.correlation = -0.1), "capacity.leo.correlation");
        assert_eq!(wrong(|leo| leo.loss = 1.1), "capacity.leo.loss");
        let short = |leo: &mut Leo| (leo.interval, leo.handover) = (Span::from_nanos(1), Span::ZERO);
        assert_eq!(wrong(short), "capacity.leo.interval");
        // over the whole range of time
        let endless = Leo { interval: Span::from_nanos(i64::MAX / 2), rest: Span::MAX, ..starlink() };
        let link = endless.link(LinkSettings::default(), "x", (1, 1), Span::MAX).unwrap();
        assert!(link.delay.phases().len() <= 3);
    }
}
