//! The adaptive threshold that the trend is compared with.
//!
//! Draft 5.4; libwebrtc and aiortc `UpdateThreshold`. A fixed threshold either lets a short queue's
//! small swings pass unseen or is starved by a concurrent loss-based flow that fills the queue, so it
//! follows the trend, slowly in one direction and fast in the other.

/// What keeps a threshold, as it adapts, away from where it would do no good.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Its least value, ms.
    pub least: f64,
    /// Its greatest, ms.
    pub most: f64,
    /// It is left alone when the trend is this far above it, ms.
    pub skip: f64,
    /// At most this much time counts between two groups, ms.
    pub step: f64,
}

impl Bounds {
    /// Draft 5.4; libwebrtc SafeClamp, kMaxAdaptOffsetMs, kMaxTimeDeltaMs; aiortc. The draft has no greatest step, and
    /// diverges for gaps over 1/K_u without it.
    pub const USUAL: Self = Self { least: 6.0, most: 600.0, skip: 15.0, step: 100.0 };
}

/// What a threshold goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Its first value, ms.
    pub start: f64,
    /// Speed towards a trend above it, 1/ms.
    pub k_up: f64,
    /// Speed towards a trend below it, 1/ms.
    pub k_down: f64,
    /// What bounds it.
    pub bounds: Bounds,
}

impl Rules {
    /// libwebrtc's and aiortc's (libwebrtc threshold_, k_up_, k_down_; aiortc the same).
    pub const SHIPPED: Self = Self { start: 12.5, k_up: 0.0087, k_down: 0.039, bounds: Bounds::USUAL };
}

/// The threshold's state.
#[derive(Clone, Copy)]
pub struct Threshold {
    rules: Rules,
    /// Its value, ms.
    pub value: f64,
    last: Option<f64>,
}

impl Threshold {
    /// A threshold at its start.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, value: rules.start, last: None }
    }

    /// Adapts to the (scaled) trend in ms at a time in ms by any origin.
    pub fn adapt(&mut self, trend: f64, now: f64) {
        let Rules { k_up, k_down, bounds, .. } = self.rules;
        let elapsed = now - self.last.unwrap_or(now);
        self.last = Some(now);
        let magnitude = trend.abs();
        // a spike, as of a sudden drop of capacity, is not to be learned
        if magnitude > self.value + bounds.skip {
            return;
        }
        let gain = if magnitude < self.value { k_down } else { k_up };
        // reordered groups let time run backwards, and the shipped code with it; it is bounded on that side too
        let step = elapsed.min(bounds.step).max(-bounds.step);
        self.value += gain * (magnitude - self.value) * step;
        self.value = self.value.max(bounds.least).min(bounds.most);
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
        let mut threshold = Threshold::new(Rules::SHIPPED);
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
