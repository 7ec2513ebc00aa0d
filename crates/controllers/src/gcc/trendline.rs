//! Trendline filter: the least-squares slope of the smoothed accumulated delay over arrival time.
//!
//! libwebrtc `trendline_estimator.cc`; not in the draft. The slope is (send rate - capacity) / capacity
//! while a queue builds: 0 in equilibrium, positive while it grows.

/// Weight of the old value in the smoothed delay (libwebrtc `trendline_estimator.cc`).
const DEFAULT_TRENDLINE_SMOOTHING_COEFF: f64 = 0.9;

/// Number of groups to which the line is fitted (libwebrtc `TrendlineEstimatorSettings`).
pub const DEFAULT_TRENDLINE_WINDOW_SIZE: u64 = 20;

/// Trendline filter (libwebrtc `TrendlineEstimator`).
#[derive(Clone)]
pub struct Trendline {
    /// Number of groups to which the line is fitted.
    length: usize,
    smoothing: f64,
    /// Slope, ms of delay per ms; zero until the window is full.
    pub trend: f64,
    accumulated: f64,
    smoothed: f64,
    first_arrival: Option<f64>,
    /// Ring of points (arrival, smoothed delay), ms.
    window: Vec<(f64, f64)>,
    oldest: usize,
}

impl Trendline {
    /// Creates a filter that fits its line to `groups` groups.
    #[must_use]
    pub fn new(groups: u64) -> Self {
        let length = groups as usize;
        Self {
            length,
            smoothing: DEFAULT_TRENDLINE_SMOOTHING_COEFF,
            trend: 0.0,
            accumulated: 0.0,
            smoothed: 0.0,
            first_arrival: None,
            window: Vec::with_capacity(length),
            oldest: 0,
        }
    }

    /// Takes a group's delay variation (ms) and arrival time (ms since any origin).
    pub fn update(&mut self, variation: f64, arrival: f64) {
        let first = *self.first_arrival.get_or_insert(arrival);
        self.accumulated += variation;
        let weight = self.smoothing;
        self.smoothed = weight * self.smoothed + (1.0 - weight) * self.accumulated;
        let point = (arrival - first, self.smoothed);
        let size = self.length;
        if self.window.len() < size {
            self.window.push(point);
        } else {
            self.window[self.oldest] = point;
            self.oldest = (self.oldest + 1) % size;
        }
        debug_assert!(self.window.len() <= size, "{} points in a window of {size}", self.window.len());
        if self.window.len() == size {
            self.trend = self.slope().unwrap_or(self.trend);
        }
        if !self.smoothed.is_finite() || !self.trend.is_finite() {
            *self = Self { smoothing: self.smoothing, ..Self::new(size as u64) };
        }
    }

    /// Slope of the regression line; none if all points have the same abscissa.
    fn slope(&self) -> Option<f64> {
        // in order of age, so that the sums do not depend on where the ring begins
        let points = || self.window[self.oldest..].iter().chain(&self.window[..self.oldest]);
        let n = self.window.len() as f64;
        let (sum_x, sum_y) = points().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (mean_x, mean_y) = (sum_x / n, sum_y / n);
        let (numerator, denominator) = points().fold((0.0, 0.0), |(numerator, denominator), &(x, y)| {
            let dx = x - mean_x;
            (numerator + dx * (y - mean_y), denominator + dx * dx)
        });
        (denominator != 0.0).then(|| numerator / denominator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filter that does not smooth.
    fn unsmoothed(groups: u64) -> Trendline {
        Trendline { smoothing: 0.0, ..Trendline::new(groups) }
    }

    #[test]
    fn a_straight_line_is_its_own_fit_once_the_window_is_full() {
        let mut filter = unsmoothed(DEFAULT_TRENDLINE_WINDOW_SIZE);
        for i in 0..100 {
            assert_eq!(filter.trend == 0.0, i < 20, "at {i}");
            filter.update(0.3, 1e9 + f64::from(i) * 10.0);
        }
        assert!((filter.trend - 0.03).abs() < 1e-12, "{}", filter.trend);
    }

    #[test]
    fn the_fit_of_three_points_is_as_worked_by_hand() {
        let mut filter = unsmoothed(3);
        // points (0, 1) (1, 3) (3, 4): means 4/3, 8/3; sum xy 13/3, sum xx 14/3
        for (variation, arrival) in [(1.0, 0.0), (2.0, 1.0), (1.0, 3.0)] {
            filter.update(variation, arrival);
        }
        assert!((filter.trend - 13.0 / 14.0).abs() < 1e-12, "{}", filter.trend);
    }

    #[test]
    fn smoothing_weighs_the_old_value() {
        let mut filter = Trendline::new(DEFAULT_TRENDLINE_WINDOW_SIZE);
        filter.update(10.0, 0.0);
        filter.update(10.0, 1.0);
        assert!((filter.smoothed - (0.9 * 1.0 + 0.1 * 20.0)).abs() < 1e-12);
    }

    #[test]
    fn one_arrival_time_for_all_keeps_the_old_trend_and_nothing_is_poisoned() {
        let mut filter = unsmoothed(DEFAULT_TRENDLINE_WINDOW_SIZE);
        (0..30).for_each(|i| filter.update(1.0, f64::from(i)));
        let before = filter.trend;
        (0..20).for_each(|_| filter.update(1.0, 30.0));
        assert!(filter.trend.is_finite() && before > 0.9);
        filter.update(f64::MAX, 0.0);
        filter.update(f64::MAX, 0.0);
        filter.update(f64::MAX, 1e300);
        assert!(filter.trend.is_finite() && filter.smoothed.is_finite());
    }
}
