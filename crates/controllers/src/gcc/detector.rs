//! The over-use detector: a verdict on each group.
//!
//! Draft 5.4; libwebrtc `TrendlineEstimator::Detect`; aiortc `OveruseDetector`.

use super::threshold::{self, Threshold};

/// What the detector says of the path.
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
    /// The code in recorded tables: 0 normal, 1 over-use, 2 under-use.
    #[must_use]
    pub const fn code(self) -> f64 {
        match self {
            Self::Normal => 0.0,
            Self::Over => 1.0,
            Self::Under => 2.0,
        }
    }
}

/// Where the sources differ on over-use.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The estimate times this, and times the number of groups so far, is compared with the threshold.
    pub gain: f64,
    /// That number counts up to this; 1: the estimate itself.
    pub num_deltas_cap: u64,
    /// Over-use is signalled when it lasted longer than this in send time, ms; 0: at once.
    pub time: f64,
    /// ... and for at least so many groups in a row.
    pub groups: u64,
    /// Whether over-use, once signalled, stands until the estimate is back below the threshold, while its clock starts
    /// anew; else each group speaks for itself.
    pub latched: bool,
    /// What the estimate is compared with.
    pub threshold: threshold::Rules,
}

impl Rules {
    /// libwebrtc's for a trendline (kDefaultTrendlineThresholdGain, kMinNumDeltas, kOverUsingTimeThreshold,
    /// overuse_counter_ > 1, hypothesis_).
    pub const LIBWEBRTC: Self = Self {
        gain: 4.0,
        num_deltas_cap: 60,
        time: 10.0,
        groups: 2,
        latched: true,
        threshold: threshold::Rules::SHIPPED,
    };
}

/// The detector's state.
#[derive(Clone)]
pub struct Detector {
    rules: Rules,
    /// The last verdict.
    pub usage: Usage,
    /// The threshold.
    pub threshold: Threshold,
    /// How many groups it has seen, at most 1000.
    pub num_deltas: u64,
    /// Send time spent above the threshold, ms.
    over_for: Option<f64>,
    over_count: u64,
    previous: f64,
    /// What it has compared with the threshold last.
    pub compared: f64,
}

/// The count of groups stops here (libwebrtc kDeltaCounterMax, aiortc DELTA_COUNTER_MAX).
const MOST_DELTAS: u64 = 1000;

impl Detector {
    /// A detector that has seen nothing.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            usage: Usage::Normal,
            threshold: Threshold::new(rules.threshold),
            num_deltas: 0,
            over_for: None,
            over_count: 0,
            previous: 0.0,
            compared: 0.0,
        }
    }

    /// Takes the filter's estimate (ms a group, or ms per ms of a trendline), the send delta of the
    /// group (ms) and the time it stands for (ms by any origin).
    pub fn detect(&mut self, estimate: f64, send_delta: f64, now: f64) -> Usage {
        self.num_deltas = (self.num_deltas + 1).min(MOST_DELTAS);
        if self.num_deltas < 2 {
            return self.usage;
        }
        let rules = self.rules;
        let scale = self.num_deltas.min(rules.num_deltas_cap) as f64 * rules.gain;
        let trend = scale * estimate;
        self.compared = trend;
        if trend > self.threshold.value {
            // the first sample may have crossed the threshold anywhere within its interval: half counts
            let over_for = self.over_for.map_or(send_delta / 2.0, |so_far| so_far + send_delta);
            self.over_for = Some(over_for);
            self.over_count += 1;
            let long = rules.time == 0.0 || over_for > rules.time;
            let often = self.over_count >= rules.groups;
            let over = long && often && estimate >= self.previous;
            if over {
                self.usage = Usage::Over;
            }
            match (rules.latched, over) {
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

    /// A detector that compares estimates themselves with a threshold held at 12.5 ms.
    fn plain() -> Rules {
        let threshold = threshold::Rules { k_up: 0.0, k_down: 0.0, ..threshold::Rules::SHIPPED };
        Rules { gain: 1.0, num_deltas_cap: 1, latched: false, threshold, ..Rules::LIBWEBRTC }
    }

    fn verdicts(rules: Rules, samples: &[(f64, f64)]) -> Vec<Usage> {
        let mut detector = Detector::new(rules);
        detector.detect(0.0, 5.0, 0.0);
        let step =
            |(i, &(estimate, delta)): (usize, &(f64, f64))| detector.detect(estimate, delta, 5.0 * i as f64);
        samples.iter().enumerate().map(step).collect()
    }

    #[test]
    fn over_use_needs_more_than_ten_milliseconds_two_samples_and_no_decrease() {
        use Usage::{Normal, Over, Under};
        let rules = plain();
        // 5/2 + 5 = 7.5 ms is too short, 12.5 ms is enough
        assert_eq!(verdicts(rules, &[(13.0, 5.0), (13.0, 5.0), (13.0, 5.0)]), [Normal, Normal, Over]);
        // one sample is not enough, however long
        assert_eq!(verdicts(rules, &[(13.0, 500.0), (13.0, 1.0)]), [Normal, Over]);
        // a falling estimate is not over-use, an equal one is
        let falling = [(15.0, 20.0), (14.0, 20.0), (13.0, 20.0), (13.0, 20.0)];
        assert_eq!(verdicts(rules, &falling), [Normal, Normal, Normal, Over]);
        // under-use needs neither
        assert_eq!(verdicts(rules, &[(-12.6, 1.0), (-12.5, 1.0)]), [Under, Normal]);
        // a sample below the threshold restarts the clock
        let broken = [(13.0, 8.0), (12.0, 8.0), (13.0, 8.0), (13.0, 5.0), (13.0, 5.0)];
        assert_eq!(verdicts(rules, &broken), [Normal, Normal, Normal, Normal, Over]);
    }

    #[test]
    fn over_use_stands_where_it_is_latched_and_else_ends_with_a_falling_estimate() {
        use Usage::{Normal, Over};
        let samples = [(13.0, 8.0), (13.0, 8.0), (15.0, 1.0), (14.0, 8.0), (14.0, 1.0), (12.0, 8.0)];
        let latched = Rules { latched: true, ..plain() };
        assert_eq!(verdicts(latched, &samples), [Normal, Over, Over, Over, Over, Normal]);
        assert_eq!(verdicts(plain(), &samples), [Normal, Over, Over, Normal, Over, Normal]);
    }

    #[test]
    fn over_use_is_signalled_at_once_where_neither_time_nor_number_is_asked_for() {
        use Usage::{Normal, Over, Under};
        let rules = Rules { time: 0.0, groups: 1, ..plain() };
        // even between two packets that were sent at one instant; m(i) < m(i-1) still excuses
        let samples = [(13.0, 0.0), (13.0, 0.0), (12.9, 0.0), (12.5, 0.0), (-12.5, 0.0), (-12.6, 0.0)];
        assert_eq!(verdicts(rules, &samples), [Over, Over, Normal, Normal, Normal, Under]);
        let three = Rules { groups: 3, ..rules };
        assert_eq!(verdicts(three, &[(13.0, 0.0); 4]), [Normal, Normal, Over, Over]);
    }

    #[test]
    fn the_estimate_is_scaled_by_count_and_gain() {
        let rules = Rules { num_deltas_cap: 60, gain: 4.0, ..plain() };
        let mut detector = Detector::new(rules);
        // 12.5 / 4 / 0.1 = 31.25 groups until the scaled estimate passes the threshold
        let first_over = (1..100).find(|_| detector.detect(0.1, 100.0, 0.0) == Usage::Over);
        assert_eq!(first_over, Some(33), "above at 32, and twice");
        let mut below = Detector::new(rules);
        // never: 60 * 4 * 0.052 = 12.48
        assert_eq!((0..5000).find(|_| below.detect(0.052, 100.0, 0.0) == Usage::Over), None);
        assert_eq!(below.num_deltas, 1000);
    }
}
