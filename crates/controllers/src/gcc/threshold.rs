//! Adaptive threshold with which the trend is compared.
//!
//! Draft 5.4; libwebrtc and aiortc `UpdateThreshold`. With a fixed threshold the flow either misses the small swings of a
//! short queue or is starved by a concurrent loss-based flow that fills the queue. So the threshold follows the trend,
//! slowly in one direction and fast in the other.

/// Bounds of a threshold and of its steps.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Lowest threshold, ms.
    pub min: f64,
    /// Highest threshold, ms.
    pub max: f64,
    /// Distance of a trend above the threshold from which it is a spike and ignored, ms.
    pub skip: f64,
    /// Longest time that counts between two groups, ms.
    pub step: f64,
}

impl Bounds {
    /// Draft 5.4; libwebrtc SafeClamp, kMaxAdaptOffsetMs, kMaxTimeDeltaMs; aiortc. The draft has no longest step, without
    /// which the threshold diverges for gaps over 1/K_u.
    pub const USUAL: Self = Self { min: 6.0, max: 600.0, skip: 15.0, step: 100.0 };
}

/// Parameters of a threshold.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// First value, ms.
    pub start: f64,
    /// Speed towards a trend above it, 1/ms.
    pub k_up: f64,
    /// Speed towards a trend below it, 1/ms.
    pub k_down: f64,
    /// Bounds.
    pub bounds: Bounds,
}

impl Config {
    /// Parameters of libwebrtc (threshold_, k_up_, k_down_) and aiortc.
    pub const SHIPPED: Self = Self { start: 12.5, k_up: 0.0087, k_down: 0.039, bounds: Bounds::USUAL };
}

/// Adaptive threshold.
#[derive(Clone, Copy)]
pub struct Threshold {
    config: Config,
    /// Present value, ms.
    pub value: f64,
    last: Option<f64>,
}

impl Threshold {
    /// Creates a threshold with its first value.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, value: config.start, last: None }
    }

    /// Adapts to the scaled trend (ms) at a time in ms since any origin.
    pub fn adapt(&mut self, trend: f64, now: f64) {
        let Config { k_up, k_down, bounds, .. } = self.config;
        let elapsed = now - self.last.unwrap_or(now);
        self.last = Some(now);
        let magnitude = trend.abs();
        // the threshold must not follow a spike, as from a sudden drop of capacity
        if magnitude > self.value + bounds.skip {
            return;
        }
        let gain = if magnitude < self.value { k_down } else { k_up };
        // with reordered groups time runs backwards, as in the shipped code; the step is bounded on that side, too
        let step = elapsed.min(bounds.step).max(-bounds.step);
        self.value += gain * (magnitude - self.value) * step;
        self.value = self.value.max(bounds.min).min(bounds.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::{draft_02, hoang2017};

    #[test]
    fn it_moves_by_gain_distance_and_time() {
        let mut threshold = Threshold::new(draft_02::Settings::default().detector().threshold);
        threshold.adapt(20.0, 1000.0);
        assert_eq!(threshold.value, 12.5, "the first sample has no duration");
        threshold.adapt(20.0, 1010.0);
        assert!((threshold.value - (12.5 + 0.01 * 7.5 * 10.0)).abs() < 1e-12);
        let before = threshold.value;
        threshold.adapt(-1.0, 1060.0);
        assert!((threshold.value - (before + 0.00018 * (1.0 - before) * 50.0)).abs() < 1e-12);
    }

    #[test]
    fn the_thesis_has_neither_clamp_nor_skip_nor_cap() {
        let mut threshold = Threshold::new(hoang2017::Settings::default().detector().threshold);
        threshold.adapt(500.0, 0.0);
        threshold.adapt(500.0, 30.0);
        assert!((threshold.value - (12.5 + 0.01 * 487.5 * 30.0)).abs() < 1e-9, "{}", threshold.value);
        // 3 s at once, downwards
        let before = threshold.value;
        threshold.adapt(0.0, 3030.0);
        assert!((threshold.value - before * (1.0 - 0.00018 * 3000.0)).abs() < 1e-9);
        for i in 0..30 {
            threshold.adapt(0.0, 3030.0 + 3000.0 * f64::from(i));
        }
        assert_eq!(threshold.value, 0.01, "only its sign is kept");
    }

    #[test]
    fn it_skips_spikes_counts_at_most_100_ms_and_stays_in_its_bounds() {
        let mut threshold = Threshold::new(Config::SHIPPED);
        threshold.adapt(0.0, 0.0);
        threshold.adapt(27.6, 50.0);
        assert_eq!(threshold.value, 12.5, "15 ms above is a spike");
        threshold.adapt(27.4, 1_000_000.0);
        assert!((threshold.value - (12.5 + 0.0087 * 14.9 * 100.0)).abs() < 1e-9);
        for i in 0..100 {
            threshold.adapt(0.0, 2e6 + f64::from(i) * 100.0);
        }
        assert_eq!(threshold.value, 6.0);
        for i in 0..10_000 {
            threshold.adapt(threshold.value + 14.0, 3e6 + f64::from(i) * 100.0);
        }
        assert_eq!(threshold.value, 600.0);
    }
}
