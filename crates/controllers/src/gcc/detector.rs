//! Over-use detector: a verdict on each group.
//!
//! Draft 5.4; libwebrtc `TrendlineEstimator::Detect`; aiortc `OveruseDetector`.

use super::threshold::{self, Threshold};

/// Verdict of the detector on the path (libwebrtc `BandwidthUsage`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Usage {
    /// The queue neither grows nor drains.
    #[default]
    Normal,
    /// The queue grows.
    Over,
    /// The queue drains.
    Under,
}

impl Usage {
    /// Code in recorded tables: 0 normal, 1 over-use, 2 under-use.
    #[must_use]
    pub const fn code(self) -> f64 {
        match self {
            Self::Normal => 0.0,
            Self::Over => 1.0,
            Self::Under => 2.0,
        }
    }
}

/// Parameters in which the sources differ on over-use.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Factor of the estimate: estimate times gain times number of groups is compared with the threshold.
    pub gain: f64,
    /// Cap of that number of groups; 1: the estimate itself.
    pub num_deltas_cap: u64,
    /// Send time that over-use has to exceed before it is signalled, ms; 0: at once.
    pub time: f64,
    /// Number of groups in a row that it has to last, at least.
    pub groups: u64,
    /// Whether signalled over-use stays until the estimate is below the threshold, while its time is counted anew; else
    /// each group is judged by itself.
    pub latched: bool,
    /// Parameters of the threshold.
    pub threshold: threshold::Config,
}

impl Config {
    /// Parameters of libwebrtc with a trendline (kDefaultTrendlineThresholdGain, kMinNumDeltas, kOverUsingTimeThreshold,
    /// overuse_counter_ > 1, hypothesis_).
    pub const LIBWEBRTC: Self = Self {
        gain: 4.0,
        num_deltas_cap: 60,
        time: 10.0,
        groups: 2,
        latched: true,
        threshold: threshold::Config::SHIPPED,
    };
}

/// Over-use detector.
#[derive(Clone)]
pub struct Detector {
    config: Config,
    /// Last verdict.
    pub usage: Usage,
    /// Adaptive threshold.
    pub threshold: Threshold,
    /// Number of groups so far, at most 1000.
    pub num_deltas: u64,
    /// Send time spent above the threshold, ms.
    over_for: Option<f64>,
    over_count: u64,
    previous: f64,
    /// Value that was last compared with the threshold, ms.
    pub compared: f64,
}

/// Largest count of groups (libwebrtc kDeltaCounterMax, aiortc).
const DELTA_COUNTER_MAX: u64 = 1000;

impl Detector {
    /// Creates a detector without samples.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            usage: Usage::Normal,
            threshold: Threshold::new(config.threshold),
            num_deltas: 0,
            over_for: None,
            over_count: 0,
            previous: 0.0,
            compared: 0.0,
        }
    }

    /// Takes the filter's estimate (ms per group, or ms per ms from a trendline), the group's send delta (ms), and its time
    /// (ms since any origin).
    pub fn detect(&mut self, estimate: f64, send_delta: f64, now: f64) -> Usage {
        self.num_deltas = (self.num_deltas + 1).min(DELTA_COUNTER_MAX);
        if self.num_deltas < 2 {
            return self.usage;
        }
        let config = self.config;
        let scale = self.num_deltas.min(config.num_deltas_cap) as f64 * config.gain;
        let trend = scale * estimate;
        self.compared = trend;
        if trend > self.threshold.value {
            // the first sample may have crossed the threshold anywhere within its interval: half counts
            let over_for = self.over_for.map_or(send_delta / 2.0, |so_far| so_far + send_delta);
            self.over_for = Some(over_for);
            self.over_count += 1;
            let long_enough = config.time == 0.0 || over_for > config.time;
            let often_enough = self.over_count >= config.groups;
            let over = long_enough && often_enough && estimate >= self.previous;
            if over {
                self.usage = Usage::Over;
            }
            match (config.latched, over) {
                (true, true) => (self.over_for, self.over_count) = (Some(0.0), 0),
                (false, false) => self.usage = Usage::Normal,
                _ => {}
            }
        } else {
            self.over_for = None;
            self.over_count = 0;
            self.usage = if trend < -self.threshold.value { Usage::Under } else { Usage::Normal };
        }
        self.previous = estimate;
        self.threshold.adapt(trend, now);
        self.usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters that compare the estimates themselves with a constant threshold of 12.5 ms.
    fn unscaled() -> Config {
        let threshold = threshold::Config { k_up: 0.0, k_down: 0.0, ..threshold::Config::SHIPPED };
        Config { gain: 1.0, num_deltas_cap: 1, latched: false, threshold, ..Config::LIBWEBRTC }
    }

    fn verdicts(config: Config, samples: &[(f64, f64)]) -> Vec<Usage> {
        let mut detector = Detector::new(config);
        detector.detect(0.0, 5.0, 0.0);
        let step =
            |(i, &(estimate, delta)): (usize, &(f64, f64))| detector.detect(estimate, delta, 5.0 * i as f64);
        samples.iter().enumerate().map(step).collect()
    }

    #[test]
    fn over_use_needs_more_than_ten_milliseconds_two_samples_and_no_decrease() {
        use Usage::{Normal, Over, Under};
        let config = unscaled();
        // 5/2 + 5 = 7.5 ms is too short, 12.5 ms is enough
        assert_eq!(verdicts(config, &[(13.0, 5.0), (13.0, 5.0), (13.0, 5.0)]), [Normal, Normal, Over]);
        // one sample is not enough, however long
        assert_eq!(verdicts(config, &[(13.0, 500.0), (13.0, 1.0)]), [Normal, Over]);
        // a falling estimate is not over-use, an equal one is
        let falling = [(15.0, 20.0), (14.0, 20.0), (13.0, 20.0), (13.0, 20.0)];
        assert_eq!(verdicts(config, &falling), [Normal, Normal, Normal, Over]);
        // under-use needs neither
        assert_eq!(verdicts(config, &[(-12.6, 1.0), (-12.5, 1.0)]), [Under, Normal]);
        // a sample below the threshold restarts the clock
        let broken = [(13.0, 8.0), (12.0, 8.0), (13.0, 8.0), (13.0, 5.0), (13.0, 5.0)];
        assert_eq!(verdicts(config, &broken), [Normal, Normal, Normal, Normal, Over]);
    }

    #[test]
    fn over_use_stands_where_it_is_latched_and_else_ends_with_a_falling_estimate() {
        use Usage::{Normal, Over};
        let samples = [(13.0, 8.0), (13.0, 8.0), (15.0, 1.0), (14.0, 8.0), (14.0, 1.0), (12.0, 8.0)];
        let latched = Config { latched: true, ..unscaled() };
        assert_eq!(verdicts(latched, &samples), [Normal, Over, Over, Over, Over, Normal]);
        assert_eq!(verdicts(unscaled(), &samples), [Normal, Over, Over, Normal, Over, Normal]);
    }

    #[test]
    fn over_use_is_signalled_at_once_where_neither_time_nor_number_is_asked_for() {
        use Usage::{Normal, Over, Under};
        let config = Config { time: 0.0, groups: 1, ..unscaled() };
        // even between two packets that were sent at one instant; m(i) < m(i-1) still excuses
        let samples = [(13.0, 0.0), (13.0, 0.0), (12.9, 0.0), (12.5, 0.0), (-12.5, 0.0), (-12.6, 0.0)];
        assert_eq!(verdicts(config, &samples), [Over, Over, Normal, Normal, Normal, Under]);
        let three = Config { groups: 3, ..config };
        assert_eq!(verdicts(three, &[(13.0, 0.0); 4]), [Normal, Normal, Over, Over]);
    }

    #[test]
    fn the_estimate_is_scaled_by_count_and_gain() {
        let config = Config { num_deltas_cap: 60, gain: 4.0, ..unscaled() };
        let mut detector = Detector::new(config);
        // 12.5 / 4 / 0.1 = 31.25 groups until the scaled estimate passes the threshold
        let first_over = (1..100).find(|_| detector.detect(0.1, 100.0, 0.0) == Usage::Over);
        assert_eq!(first_over, Some(33), "above at 32, and twice");
        let mut below = Detector::new(config);
        // never: 60 * 4 * 0.052 = 12.48
        assert_eq!((0..5000).find(|_| below.detect(0.052, 100.0, 0.0) == Usage::Over), None);
        assert_eq!(below.num_deltas, 1000);
    }
}
