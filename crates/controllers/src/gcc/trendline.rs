//! The trendline filter: the least-squares slope of the smoothed accumulated delay over arrival time.
//!
//! libwebrtc `trendline_estimator.cc`; not in the draft. The slope is (send rate - capacity) / capacity
//! while a queue builds: 0 in equilibrium, positive while it grows.

use super::settings::Settings;

/// The filter's state.
#[derive(Clone)]
pub struct Trendline {
    /// The slope, ms of delay for each ms; zero until the window is full.
    pub trend: f64,
    accumulated: f64,
    smoothed: f64,
    first_arrival: Option<f64>,
    /// (arrival, smoothed delay) in ms, oldest overwritten first.
    window: Vec<(f64, f64)>,
    oldest: usize,
}

impl Trendline {
    /// A filter that has seen nothing.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            trend: 0.0,
            accumulated: 0.0,
            smoothed: 0.0,
            first_arrival: None,
            window: Vec::with_capacity(settings.trend_window as usize),
            oldest: 0,
        }
    }

    /// Takes a delay variation (ms) of a group that stands for the arrival time `arrival` (ms by any origin).
    pub fn update(&mut self, settings: &Settings, variation: f64, arrival: f64) {
        let first = *self.first_arrival.get_or_insert(arrival);
        self.accumulated += variation;
        let weight = settings.trend_smoothing;
        self.smoothed = weight * self.smoothed + (1.0 - weight) * self.accumulated;
        let point = (arrival - first, self.smoothed);
        let size = settings.trend_window as usize;
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
            *self = Self::new(settings);
        }
    }

    /// The slope of the regression line; none where all points have one abscissa.
    fn slope(&self) -> Option<f64> {
        // in order of age, so that the sums do not depend on where the ring begins
        let points = || self.window[self.oldest..].iter().chain(&self.window[..self.oldest]);
        let n = self.window.len() as f64;
        let (sum_x, sum_y) = points().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (mean_x, mean_y) = (sum_x / n, sum_y / n);
        let (over, under) = points().fold((0.0, 0.0), |(over, under), &(x, y)| {
            let dx = x - mean_x;
            (over + dx * (y - mean_y), under + dx * dx)
        });
        (under != 0.0).then(|| over / under)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings { trend_smoothing: 0.0, ..Settings::preset("libwebrtc-v1").expect("known") }
    }

    #[test]
    fn a_straight_line_is_its_own_fit_once_the_window_is_full() {
        let settings = settings();
        let mut filter = Trendline::new(&settings);
        for i in 0..100 {
            assert_eq!(filter.trend == 0.0, i < 20, "at {i}");
            filter.update(&settings, 0.3, 1e9 + f64::from(i) * 10.0);
        }
        assert!((filter.trend - 0.03).abs() < 1e-12, "{}", filter.trend);
    }

    #[test]
    fn the_fit_of_three_points_is_as_worked_by_hand() {
        let settings = Settings { trend_window: 3, ..settings() };
        let mut filter = Trendline::new(&settings);
        // points (0, 1) (1, 3) (3, 4): means 4/3, 8/3; sum xy 13/3, sum xx 14/3
        for (variation, arrival) in [(1.0, 0.0), (2.0, 1.0), (1.0, 3.0)] {
            filter.update(&settings, variation, arrival);
        }
        assert!((filter.trend - 13.0 / 14.0).abs() < 1e-12, "{}", filter.trend);
    }

    #[test]
    fn smoothing_weighs_the_old_value() {
        let settings = Settings { trend_smoothing: 0.9, ..settings() };
        let mut filter = Trendline::new(&settings);
        filter.update(&settings, 10.0, 0.0);
        filter.update(&settings, 10.0, 1.0);
        assert!((filter.smoothed - (0.9 * 1.0 + 0.1 * 20.0)).abs() < 1e-12);
    }

    #[test]
    fn one_arrival_time_for_all_keeps_the_old_trend_and_nothing_is_poisoned() {
        let settings = settings();
        let mut filter = Trendline::new(&settings);
        (0..30).for_each(|i| filter.update(&settings, 1.0, f64::from(i)));
        let before = filter.trend;
        (0..20).for_each(|_| filter.update(&settings, 1.0, 30.0));
        assert!(filter.trend.is_finite() && before > 0.9);
        filter.update(&settings, f64::MAX, 0.0);
        filter.update(&settings, f64::MAX, 0.0);
        filter.update(&settings, f64::MAX, 1e300);
        assert!(filter.trend.is_finite() && filter.smoothed.is_finite());
    }
}
