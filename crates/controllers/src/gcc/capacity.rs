//! Link capacity estimate: an average of the received rate at each decrease.
//!
//! Draft 5.5 ("close to convergence"); libwebrtc `link_capacity_estimator.cc`; aiortc
//! `avg_max_bitrate_kbps`. Far from it the rate grows by a factor, near it by packets.

use tidegate_core::math;

/// Bounds of the normalized variance, kbit/s (libwebrtc and aiortc): standard deviations of 14 and 35 kbit/s at
/// 500 kbit/s.
const VARIANCE: (f64, f64) = (0.4, 2.5);

/// Weight of the received rate at a decrease (libwebrtc, aiortc). Draft 5.5 has a smoothing factor of 0.95, taken as the
/// weight of the old value.
const WEIGHT: f64 = 0.05;

/// Estimate in kbit/s, as in the reference code, because the normalized variance has that unit.
#[derive(Clone)]
pub struct Capacity {
    mean: Option<f64>,
    variance: f64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { mean: None, variance: VARIANCE.0 }
    }
}

impl Capacity {
    /// Estimate, bit/s.
    #[must_use]
    pub fn estimate(&self) -> Option<f64> {
        self.mean.map(|mean| mean * 1000.0)
    }

    /// Rates three standard deviations below and above the estimate, kbit/s.
    fn bounds(&self) -> Option<(f64, f64)> {
        let mean = self.mean?;
        let three_sigma = 3.0 * math::sqrt(self.variance * mean);
        Some((mean - three_sigma, mean + three_sigma))
    }

    /// Forgets the estimate if `received` (bit/s) is above its bounds.
    pub fn rise(&mut self, received: f64) {
        if self.bounds().is_some_and(|(_, high)| received / 1000.0 > high) {
            self.mean = None;
        }
    }

    /// Takes the received rate (bit/s) at a decrease; starts anew if it is below the estimate's bounds.
    pub fn overuse(&mut self, received: f64) {
        let received = received / 1000.0;
        if self.bounds().is_some_and(|(low, _)| received < low) {
            self.mean = None;
        }
        let mean = self.mean.map_or(received, |mean| (1.0 - WEIGHT) * mean + WEIGHT * received);
        let error = mean - received;
        let variance = (1.0 - WEIGHT) * self.variance + WEIGHT * (error * error) / mean.max(1.0);
        self.variance = variance.max(VARIANCE.0).min(VARIANCE.1);
        self.mean = Some(mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_averages_and_forgets_what_is_three_sigma_away() {
        let mut capacity = Capacity::default();
        assert_eq!(capacity.estimate(), None);
        capacity.overuse(1e6);
        assert_eq!(capacity.estimate(), Some(1e6));
        // sigma = sqrt(0.4 * 1000) = 20 kbit/s, so 940 and 1060 kbit/s are the bounds
        capacity.overuse(940_001.0);
        let mean = 950.0 + 0.05 * 940.001;
        assert!((capacity.estimate().expect("some") / 1000.0 - mean).abs() < 1e-9);
        let variance = 0.95 * 0.4 + 0.05 * (mean - 940.001) * (mean - 940.001) / mean;
        assert!((capacity.variance - variance.max(0.4)).abs() < 1e-12);
        capacity.overuse(900_000.0);
        assert_eq!(capacity.estimate(), Some(900_000.0), "far below: started anew");
        let sigma = (capacity.variance * 900.0).sqrt();
        capacity.rise((900.0 + 2.99 * sigma) * 1000.0);
        assert!(capacity.estimate().is_some());
        capacity.rise((900.0 + 3.01 * sigma) * 1000.0);
        assert_eq!(capacity.estimate(), None);
    }
}
