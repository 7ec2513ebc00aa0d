//! Arrival-time filter: a Kalman filter over inter-group delay variation.
//!
//! Draft 5.3 (one state: the delay gradient m); libwebrtc `overuse_estimator.cc` and aiortc
//! `OveruseEstimator` (two states: m and the delay per byte of group size). One filter serves both: without
//! the second state the size row is zero, and the equations fall back to the draft's.

use super::detector::Usage;
use tidegate_core::math;

/// First error variance of the slope, (ms/byte)^2 (libwebrtc and aiortc E[0][0]).
const SLOPE_ERROR: f64 = 100.0;
/// First slope, ms/byte (libwebrtc and aiortc: 8/512 ms/byte, that is 512 kbit/s).
const SLOPE: f64 = 1.0 / 64.0;
/// State noise of the slope (libwebrtc and aiortc process_noise[0]).
const SLOPE_NOISE: f64 = 1e-13;
/// Number of groups after which a new sample in the measurement noise has another weight, and that weight (libwebrtc and
/// aiortc: alpha after 10 * 30; the draft has one chi).
const LATER_NOISE_WEIGHT: (u64, f64) = (300, 0.002);
/// Number of standard deviations beyond which a residual is an outlier (draft 5.3).
const OUTLIER: f64 = 3.0;

/// First measurement noise variance, ms^2 (libwebrtc and aiortc var_noise; the draft has none).
const FIRST_NOISE: f64 = 50.0;
/// K, the number of groups whose shortest send interval is 1/f_max (aiortc; the draft has no value).
const MIN_FRAME_PERIOD_HISTORY_LENGTH: usize = 60;
/// Multiple of q that is added while the estimate moves against the detector's verdict (libwebrtc and aiortc).
const BOOST: f64 = 10.0;

/// Equations, where the sources differ in more than numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Draft: one state; noise from all residuals about zero; high outliers are clamped (5.3, z > 3 sqrt(var_v)).
    Draft,
    /// libwebrtc and aiortc: the delay per byte is a second state; noise about a running mean, while the verdict is
    /// normal; outliers on both sides are clamped; q is boosted against the verdict.
    Shipped,
}

/// Parameters of a filter.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Equations.
    pub form: Form,
    /// State noise variance q, ms^2.
    pub process_noise: f64,
    /// First error variance e(0), ms^2.
    pub initial_error: f64,
    /// Weight chi of a new sample in the measurement noise at 30 groups per second.
    pub noise_weight: f64,
}

/// Kalman filter.
#[derive(Clone)]
pub struct Kalman {
    config: Config,
    /// Estimate of the delay gradient m(i), ms per group.
    pub offset: f64,
    /// Estimate of the delay per byte of group size, ms; zero in the draft's form.
    pub slope: f64,
    /// Measurement noise variance, ms^2.
    pub var_noise: f64,
    previous_offset: f64,
    avg_noise: f64,
    /// Error covariance, slope first.
    error: [[f64; 2]; 2],
    groups: u64,
    /// Ring of the last send deltas.
    deltas: Vec<f64>,
    oldest: usize,
}

impl Kalman {
    /// Creates a filter without samples.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (slope, slope_error) = match config.form {
            Form::Draft => (0.0, 0.0),
            Form::Shipped => (SLOPE, SLOPE_ERROR),
        };
        Self {
            config,
            offset: 0.0,
            slope,
            var_noise: FIRST_NOISE,
            previous_offset: 0.0,
            avg_noise: 0.0,
            error: [[slope_error, 0.0], [0.0, config.initial_error]],
            groups: 0,
            deltas: Vec::with_capacity(MIN_FRAME_PERIOD_HISTORY_LENGTH),
            oldest: 0,
        }
    }

    /// Takes the difference between two groups: arrival and send in ms, size in bytes. `usage` is the detector's verdict on
    /// the previous sample.
    pub fn update(&mut self, arrival: f64, send: f64, size: f64, usage: Usage) {
        let Config { form, process_noise, .. } = self.config;
        let shipped = form == Form::Shipped;
        self.groups += 1;
        let shortest = self.shortest_delta(send);

        self.error[1][1] += process_noise;
        if shipped {
            self.error[0][0] += SLOPE_NOISE;
        }
        // the estimate moves against the verdict: trust the next samples more
        let against = match usage {
            Usage::Over => self.offset < self.previous_offset,
            Usage::Under => self.offset > self.previous_offset,
            Usage::Normal => false,
        };
        if shipped && against {
            self.error[1][1] += BOOST * process_noise;
        }

        let size = if shipped { size } else { 0.0 };
        let [[e00, e01], [e10, e11]] = self.error;
        let eh = [e00 * size + e01, e10 * size + e11];
        let residual = (arrival - send) - self.slope * size - self.offset;
        if usage == Usage::Normal || !shipped {
            self.update_noise(residual, shortest);
        }

        let denominator = self.var_noise + size * eh[0] + eh[1];
        let gain = [eh[0] / denominator, eh[1] / denominator];
        let keep = [[1.0 - gain[0] * size, -gain[0]], [-gain[1] * size, 1.0 - gain[1]]];
        self.error = [
            [e00 * keep[0][0] + e10 * keep[0][1], e01 * keep[0][0] + e11 * keep[0][1]],
            [e00 * keep[1][0] + e10 * keep[1][1], e01 * keep[1][0] + e11 * keep[1][1]],
        ];
        self.previous_offset = self.offset;
        self.slope += gain[0] * residual;
        self.offset += gain[1] * residual;
        if !self.is_sound() {
            *self = Self::new(self.config);
        }
    }

    /// Shortest of the last K send deltas, including `send`: 1/f_max, ms.
    fn shortest_delta(&mut self, send: f64) -> f64 {
        if self.deltas.len() < MIN_FRAME_PERIOD_HISTORY_LENGTH {
            self.deltas.push(send);
        } else {
            self.deltas[self.oldest] = send;
            self.oldest = (self.oldest + 1) % self.deltas.len();
        }
        self.deltas.iter().fold(send, |shortest, &delta| if delta < shortest { delta } else { shortest })
    }

    fn update_noise(&mut self, residual: f64, shortest: f64) {
        let Config { form, noise_weight, .. } = self.config;
        let upper = OUTLIER * math::sqrt(self.var_noise);
        let lower = match form {
            Form::Draft => f64::NEG_INFINITY,
            Form::Shipped => -upper,
        };
        let residual = residual.min(upper).max(lower);
        let chi = if form == Form::Shipped && self.groups > LATER_NOISE_WEIGHT.0 {
            LATER_NOISE_WEIGHT.1
        } else {
            noise_weight
        };
        // draft 5.3 alpha, with f_max taken in 1/ms: the exponent is 1 at 30 groups per second
        let keep = math::pow(1.0 - chi, shortest * 30.0 / 1000.0);
        if form == Form::Shipped {
            self.avg_noise = keep * self.avg_noise + (1.0 - keep) * residual;
        }
        let deviation = self.avg_noise - residual;
        self.var_noise = (keep * self.var_noise + (1.0 - keep) * (deviation * deviation)).max(1.0);
    }

    /// Whether the state is finite and the covariance positive semi-definite, rounding aside.
    fn is_sound(&self) -> bool {
        let [[e00, e01], [e10, e11]] = self.error;
        let finite = [self.offset, self.slope, self.var_noise, self.avg_noise, e00, e01, e10, e11];
        finite.iter().all(|x| x.is_finite()) && e00 >= 0.0 && e11 >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::{aiortc, draft_02};

    fn draft() -> Kalman {
        Kalman::new(draft_02::Settings::default().kalman())
    }

    fn shipped() -> Kalman {
        Kalman::new(aiortc::KALMAN)
    }

    #[test]
    fn the_draft_filter_takes_its_first_step_by_the_formulas() {
        let mut filter = draft();
        // d = 10 ms at 1/f_max = 1000/30 ms, so that alpha = 1 - chi exactly
        filter.update(1000.0 / 30.0 + 10.0, 1000.0 / 30.0, 5000.0, Usage::Normal);
        let var = 0.99 * 50.0 + 0.01 * 100.0; // alpha var_v + (1 - alpha) z^2
        let k = (0.1 + 0.001) / (var + 0.1 + 0.001);
        assert!((filter.var_noise - var).abs() < 1e-12, "{}", filter.var_noise);
        assert!((filter.offset - 10.0 * k).abs() < 1e-12);
        assert!((filter.error[1][1] - (1.0 - k) * 0.101).abs() < 1e-12);
        assert_eq!((filter.slope, filter.error[0][0]), (0.0, 0.0));
    }

    #[test]
    fn outliers_are_clamped_on_the_sides_that_are_asked_for() {
        let noise_after = |mut filter: Kalman, d: f64| {
            filter.update(1000.0 / 30.0 + d, 1000.0 / 30.0, 0.0, Usage::Normal);
            filter.var_noise
        };
        let max_square = 9.0 * 50.0;
        assert!((noise_after(draft(), 1000.0) - (0.99 * 50.0 + 0.01 * max_square)).abs() < 1e-9);
        assert!((noise_after(draft(), -1000.0) - (0.99 * 50.0 + 0.01 * 1e6)).abs() < 1e-6);
        // about a mean that has moved by a hundredth of the residual
        let clamped = 0.99 * 50.0 + 0.01 * max_square * 0.99 * 0.99;
        assert!((noise_after(shipped(), 1000.0) - clamped).abs() < 1e-9);
        assert!((noise_after(shipped(), -1000.0) - clamped).abs() < 1e-9);
    }

    #[test]
    fn a_constant_gradient_is_found_and_noise_stays_at_its_floor() {
        for mut filter in [draft(), shipped()] {
            let form = filter.config.form;
            for _ in 0..20_000 {
                filter.update(34.0, 33.0, 0.0, Usage::Normal);
            }
            assert!((filter.offset - 1.0).abs() < 1e-3, "{form:?}: {}", filter.offset);
            assert_eq!(filter.var_noise, 1.0, "{form:?}");
        }
    }

    #[test]
    fn delay_per_byte_is_told_from_a_gradient() {
        let mut filter = shipped();
        // groups of 1000 and 2000 bytes in turn over 1 Mbit/s: 8 us a byte, no queue
        for i in 0..3000 {
            let size = if i % 2 == 0 { 1000.0 } else { -1000.0 };
            filter.update(33.0 + size * 0.008, 33.0, size, Usage::Normal);
        }
        assert!((filter.slope - 0.008).abs() < 1e-4, "{}", filter.slope);
        assert!(filter.offset.abs() < 1e-2, "{}", filter.offset);
    }

    #[test]
    fn no_input_makes_the_state_unsound() {
        let mut filter = shipped();
        let extremes =
            [(9e12, -9e12, 2e19), (f64::MAX, -f64::MAX, 1e300), (0.0, 1e300, 0.0), (-9e12, 0.0, -2e19)];
        for (arrival, send, size) in extremes.into_iter().cycle().take(1000) {
            filter.update(arrival, send, size, Usage::Normal);
            assert!(filter.is_sound());
        }
    }
}
