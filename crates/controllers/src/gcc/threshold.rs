//! The adaptive threshold that the trend is compared with.
//!
//! Draft 5.4; libwebrtc and aiortc `UpdateThreshold`. A fixed threshold either lets a short queue's
//! small swings pass unseen or is starved by a concurrent loss-based flow that fills the queue, so it
//! follows the trend, slowly in one direction and fast in the other.

use super::settings::Settings;

/// The threshold's state.
#[derive(Clone, Copy)]
pub struct Threshold {
    /// Its value, ms.
    pub value: f64,
    last: Option<f64>,
}

impl Threshold {
    /// A threshold at its start.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { value: settings.threshold_start, last: None }
    }

    /// Adapts to the (scaled) trend in ms at a time in ms by any origin.
    pub fn adapt(&mut self, settings: &Settings, trend: f64, now: f64) {
        let elapsed = now - self.last.unwrap_or(now);
        self.last = Some(now);
        let magnitude = trend.abs();
        // a spike, as of a sudden drop of capacity, is not to be learned
        if magnitude > self.value + settings.threshold_skip {
            return;
        }
        let gain = if magnitude < self.value { settings.k_down } else { settings.k_up };
        // reordered groups let time run backwards, and the shipped code with it; it is bounded on that side too
        let step = elapsed.min(settings.threshold_step).max(-settings.threshold_step);
        self.value += gain * (magnitude - self.value) * step;
        self.value = self.value.max(settings.threshold_min).min(settings.threshold_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_by_gain_distance_and_time() {
        let settings = Settings::preset("draft-02").expect("known");
        let mut threshold = Threshold::new(&settings);
        threshold.adapt(&settings, 20.0, 1000.0);
        assert_eq!(threshold.value, 12.5, "the first sample has no duration");
        threshold.adapt(&settings, 20.0, 1010.0);
        assert!((threshold.value - (12.5 + 0.01 * 7.5 * 10.0)).abs() < 1e-12);
        let before = threshold.value;
        threshold.adapt(&settings, -1.0, 1060.0);
        assert!((threshold.value - (before + 0.00018 * (1.0 - before) * 50.0)).abs() < 1e-12);
    }

    #[test]
    fn the_thesis_has_neither_clamp_nor_skip_nor_cap() {
        let settings = Settings::preset("hoang2017").expect("known");
        let mut threshold = Threshold::new(&settings);
        threshold.adapt(&settings, 500.0, 0.0);
        threshold.adapt(&settings, 500.0, 30.0);
        assert!((threshold.value - (12.5 + 0.01 * 487.5 * 30.0)).abs() < 1e-9, "{}", threshold.value);
        // 3 s at once, downwards
        let before = threshold.value;
        threshold.adapt(&settings, 0.0, 3030.0);
        assert!((threshold.value - before * (1.0 - 0.00018 * 3000.0)).abs() < 1e-9);
        for i in 0..30 {
            threshold.adapt(&settings, 0.0, 3030.0 + 3000.0 * f64::from(i));
        }
        assert_eq!(threshold.value, 0.01, "only its sign is kept");
    }

    #[test]
    fn it_skips_spikes_counts_at_most_100_ms_and_stays_in_its_bounds() {
        let settings = Settings::preset("libwebrtc-v1").expect("known");
        let mut threshold = Threshold::new(&settings);
        threshold.adapt(&settings, 0.0, 0.0);
        threshold.adapt(&settings, 27.6, 50.0);
        assert_eq!(threshold.value, 12.5, "15 ms above is a spike");
        threshold.adapt(&settings, 27.4, 1_000_000.0);
        assert!((threshold.value - (12.5 + 0.0087 * 14.9 * 100.0)).abs() < 1e-9);
        for i in 0..100 {
            threshold.adapt(&settings, 0.0, 2e6 + f64::from(i) * 100.0);
        }
        assert_eq!(threshold.value, 6.0);
        for i in 0..10_000 {
            threshold.adapt(&settings, threshold.value + 14.0, 3e6 + f64::from(i) * 100.0);
        }
        assert_eq!(threshold.value, 600.0);
    }
}
