//! A generated cellular link: the rate process that the Sprout paper assumes.
//!
//! Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay
//! over Cellular Networks", NSDI 2013, section 3.1: packets leave as a Poisson process whose rate does
//! Brownian motion, and which in an outage sticks at zero until an exponential time has passed.

use super::opportunities::Instants;
use crate::refusal::{Refusal, ensure};
use tidegate_core::{Rate, Span, Stream, math};

/// The settings of the process. Rates are in opportunities per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BrownianSettings {
    /// Standard deviation that the rate gains in one second (per square root of a second).
    pub sigma: f64,
    /// Largest rate, at which the rate is reflected.
    pub max: f64,
    /// Rate at which an outage ends, per second; 0: never.
    pub escape: f64,
    /// The rate at the beginning; `None`: drawn uniformly up to the maximum.
    pub initial: Option<f64>,
    /// Time between changes of the rate. It belongs to the model: an outage begins when a step ends
    /// at or below zero, and the frequency of that depends on the length of a step.
    pub step: Span,
    /// Bytes of one opportunity.
    pub bytes: u32,
}

impl Default for BrownianSettings {
    /// The constants of Sprout's own code (keithw/sprout): `BROWNIAN_MOTION_RATE` 200,
    /// `MAX_ARRIVAL_RATE` 1000, `OUTAGE_ESCAPE_RATE` 1, `TICK_LENGTH` 20 ms; packets of 1500 bytes.
    fn default() -> Self {
        Self {
            sigma: 200.0,
            max: 1000.0,
            escape: 1.0,
            initial: None,
            step: Span::from_millis(20),
            bytes: 1500,
        }
    }
}

impl BrownianSettings {
    /// Checks that each setting is in its range.
    ///
    /// # Errors
    /// With the setting and its range. The lower bounds keep the expected time to the next opportunity
    /// within hours, so that finding it takes bounded work; zero stands for a rate that does not change.
    pub fn check(&self) -> Result<(), Refusal> {
        let Self { sigma, max, escape, initial, step, bytes } = *self;
        ensure((1.0..=1e7).contains(&max), || {
            Refusal::new("capacity.max", format!("{max} opportunities/s"), "1 to 10 million opportunities/s")
        })?;
        ensure(sigma == 0.0 || (0.1..=1e7).contains(&sigma), || {
            Refusal::new("capacity.sigma", sigma, "0, or 0.1 to 10 million opportunities/s per root second")
        })?;
        ensure(escape == 0.0 || (1e-3..=1e6).contains(&escape), || {
            Refusal::new("capacity.outage_escape", escape, "0, or 0.001 to 1 million per second")
        })?;
        ensure(initial.is_none_or(|rate| (0.0..=max).contains(&rate)), || {
            Refusal::new("capacity.start", initial.unwrap_or_default(), format!("0 to {max} opportunities/s"))
        })?;
        ensure(sigma > 0.0 || initial.is_some_and(|rate| rate == 0.0 || rate >= 1e-3), || {
            Refusal::new(
                "capacity.start",
                "none",
                "0, or at least 0.001 opportunities/s, because sigma 0 makes the rate constant",
            )
        })?;
        ensure(step >= Span::from_micros(100) && step <= Span::from_secs(60), || {
            Refusal::new("capacity.step", step, "0.1 ms to 60 s")
        })?;
        ensure(bytes > 0, || Refusal::new("capacity.bytes", bytes, "at least 1"))
    }

    /// The mean capacity in the long run, in closed form and accurate within a few per cent.
    ///
    /// Away from zero reflected Brownian motion is uniform, with a density `c`. In each step outages
    /// gain the flow through zero, `c * s / sqrt(2 pi)` with `s = sigma * sqrt(step)`, and lose a share
    /// `1 - exp(-escape * step)`. The balance of both gives the probability of an outage, and `c` follows
    /// because all probabilities sum to one.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let packets = if self.sigma == 0.0 {
            self.initial.unwrap_or(self.max / 2.0)
        } else if self.escape == 0.0 {
            0.0
        } else {
            let step = self.step.as_secs_f64();
            // 1 / sqrt(2 pi)
            let flow = 0.398_942_280_401_432_7 * self.sigma * math::sqrt(step);
            let leave = 1.0 - math::exp(-self.escape * step);
            0.5 * self.max * self.max / (self.max + flow / leave)
        };
        Rate::from_bps_f64(packets * f64::from(self.bytes) * 8.0)
    }
}

/// The process itself, in time order, independent of the traffic.
#[derive(Clone, Debug)]
pub struct Brownian {
    settings: BrownianSettings,
    luck: Stream,
    /// The present rate in opportunities per second; zero in an outage.
    rate: f64,
    /// Beginning of the present step, and the nanoseconds of it that have passed.
    begin: i64,
    passed: f64,
    /// Deviation of one step, and the probability that an outage outlasts it.
    deviation: f64,
    stay: f64,
    /// Whether there will be no more opportunities.
    ended: bool,
}

impl Brownian {
    /// The process with checked `settings`, drawing from `luck`.
    pub(crate) fn new(settings: BrownianSettings, mut luck: Stream) -> Self {
        let step = settings.step.as_secs_f64();
        let drawn = luck.uniform() * settings.max;
        Self {
            settings,
            luck,
            rate: settings.initial.unwrap_or(drawn),
            begin: 0,
            passed: 0.0,
            deviation: settings.sigma * math::sqrt(step),
            stay: math::exp(-settings.escape * step),
            ended: false,
        }
    }

    pub(crate) const fn luck(&self) -> &Stream {
        &self.luck
    }

    pub(crate) const fn settings(&self) -> &BrownianSettings {
        &self.settings
    }

    /// Begins the next step; false if there will be no more opportunities.
    fn enter_next_step(&mut self) -> bool {
        let settings = &self.settings;
        if self.rate > 0.0 {
            let moved = self.rate + self.deviation * self.luck.normal();
            self.rate = if moved <= 0.0 { 0.0 } else { reflected(moved, settings.max) };
        } else if settings.escape == 0.0 || settings.sigma == 0.0 {
            return false;
        } else if !self.luck.chance(self.stay) {
            self.rate = reflected((self.deviation * self.luck.normal()).abs(), settings.max);
        }
        self.begin = self.begin.saturating_add(settings.step.as_nanos());
        self.passed = 0.0;
        self.begin != i64::MAX
    }
}

/// Mirrors `rate` at `max`; a step that is wider than the range ends at zero, the other wall.
fn reflected(rate: f64, max: f64) -> f64 {
    if rate > max { (2.0 * max - rate).max(0.0) } else { rate }
}

impl Instants for Brownian {
    fn next(&mut self) -> i64 {
        if self.ended {
            return i64::MAX;
        }
        let length = self.settings.step.as_nanos() as f64;
        // a unit exponential is used up at the present rate: exact for a rate that is constant in each step
        let mut budget = self.luck.exponential(1.0);
        loop {
            let available = self.rate * (length - self.passed) * 1e-9;
            if self.rate > 0.0 && budget <= available {
                self.passed = (self.passed + budget / self.rate * 1e9).min(length);
                return self.begin.saturating_add(math::ceil(self.passed) as i64);
            }
            budget -= available;
            if !self.enter_next_step() {
                self.ended = true;
                return i64::MAX;
            }
        }
    }

    fn next_after(&mut self, now: i64) -> i64 {
        loop {
            let time = self.next();
            if time > now {
                return time;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(settings: BrownianSettings) -> Brownian {
        settings.check().unwrap();
        Brownian::new(settings, Stream::new(1, "cell", "service"))
    }

    /// The stationary probability of an outage and the mean rate, from the transition matrix on a fine grid.
    fn stationary(settings: &BrownianSettings) -> (f64, f64) {
        const CELLS: usize = 500;
        let width = settings.max / CELLS as f64;
        let deviation = settings.sigma * math::sqrt(settings.step.as_secs_f64());
        let below = |x: f64| 0.5 * (1.0 + math::erf(x / deviation / math::sqrt(2.0)));
        let reach = (6.0 * deviation / width) as usize + 1;
        let leave = 1.0 - math::exp(-settings.escape * settings.step.as_secs_f64());
        let kernel: Vec<f64> = (0..=reach)
            .map(|cells| below((cells as f64 + 0.5) * width) - below((cells as f64 - 0.5) * width))
            .collect();
        let mut outage = 0.3;
        let mut density = vec![0.7 / CELLS as f64; CELLS];
        for _ in 0..20_000 {
            let mut next = vec![0.0; CELLS];
            let mut stuck = outage * (1.0 - leave);
            for (cell, &mass) in density.iter().enumerate() {
                for shift in -(reach as isize)..=reach as isize {
                    let moved = mass * kernel[shift.unsigned_abs()];
                    let to = cell as isize + shift;
                    if to < 0 {
                        stuck += moved;
                    } else {
                        let to = to as usize;
                        next[if to >= CELLS { 2 * CELLS - 1 - to } else { to }] += moved;
                    }
                }
            }
            for (cell, entry) in next.iter_mut().enumerate().take(reach) {
                let (lower, upper) = (cell as f64 * width, (cell + 1) as f64 * width);
                *entry += outage * leave * 2.0 * (below(upper) - below(lower));
            }
            let total: f64 = stuck + next.iter().sum::<f64>();
            outage = stuck / total;
            next.iter_mut().for_each(|mass| *mass /= total);
            density = next;
        }
        let mean = density.iter().enumerate().map(|(cell, mass)| (cell as f64 + 0.5) * width * mass).sum();
        (outage, mean)
    }

    #[test]
    fn mean_rate_and_outages_are_stationary() {
        let settings = BrownianSettings::default();
        let (outage, mean) = stationary(&settings);
        let closed = settings.mean_rate().as_bps_f64() / 12_000.0;
        assert!((closed / mean - 1.0).abs() < 0.05, "closed form {closed}, grid {mean}");

        // the rate wanders slowly (it needs about max^2 / sigma^2 = 25 s to cross its range)
        let steps = 20_000_000_u64;
        let mut process = process(settings);
        let (mut dead, mut outages, mut sum) = (0_u64, 0_u64, 0.0);
        for _ in 0..steps {
            let before = process.rate;
            assert!(process.enter_next_step());
            sum += process.rate;
            dead += u64::from(process.rate == 0.0);
            outages += u64::from(before > 0.0 && process.rate == 0.0);
        }
        let simulated = (dead as f64 / steps as f64, sum / steps as f64);
        assert!((simulated.0 / outage - 1.0).abs() < 0.03, "outage {} against {outage}", simulated.0);
        assert!((simulated.1 / mean - 1.0).abs() < 0.03, "mean {} against {mean}", simulated.1);
        // geometric in steps: 0.02 / (1 - exp(-0.02)) = 1.01003 s
        let length = dead as f64 / outages as f64 * 0.02;
        assert!((length / 1.010_033 - 1.0).abs() < 0.01, "an outage lasts {length} s");
    }

    #[test]
    fn a_constant_rate_is_a_poisson_process() {
        let settings = BrownianSettings { sigma: 0.0, initial: Some(400.0), ..BrownianSettings::default() };
        let mut process = process(settings);
        let n = 200_000;
        let mut last = 0;
        let gaps: Vec<f64> = (0..n)
            .map(|_| {
                let time = process.next();
                let gap = (time - last) as f64 * 1e-9;
                last = time;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / f64::from(n);
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / f64::from(n);
        assert!((mean * 400.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance * 160_000.0 - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn an_outage_without_end_ends_the_process() {
        let settings = BrownianSettings { escape: 0.0, ..BrownianSettings::default() };
        let mut process = process(settings);
        let mut count = 0;
        while process.next() != i64::MAX {
            count += 1;
        }
        assert!(count > 0 && process.next_after(5) == i64::MAX);
        assert_eq!(settings.mean_rate(), Rate::ZERO);
        let dead = BrownianSettings { sigma: 0.0, initial: Some(0.0), ..BrownianSettings::default() };
        assert_eq!(Brownian::new(dead, Stream::new(1, "a", "b")).next(), i64::MAX);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let good = BrownianSettings::default();
        for bad in [
            BrownianSettings { sigma: f64::NAN, ..good },
            BrownianSettings { sigma: 1e-9, ..good },
            BrownianSettings { max: 0.0, ..good },
            BrownianSettings { max: f64::INFINITY, ..good },
            BrownianSettings { escape: -1.0, ..good },
            BrownianSettings { initial: Some(1001.0), ..good },
            BrownianSettings { step: Span::ZERO, ..good },
            BrownianSettings { bytes: 0, ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
