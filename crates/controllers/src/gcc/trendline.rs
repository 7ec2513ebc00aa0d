//! The trendline filter: the least-squares slope of the smoothed accumulated delay over arrival time.
//!
//! libwebrtc `trendline_estimator.cc`; not in the draft. The slope is (send rate - capacity) / capacity
//! while a queue builds: 0 in equilibrium, positive while it grows.

/// Weight of the old value in the smoothed delay (libwebrtc kDefaultTrendlineSmoothingCoeff).
const SMOOTHING: f64 = 0.9;

/// Groups to which the line is fitted (libwebrtc kDefaultTrendlineWindowSize).
pub const WINDOW: u64 = 20;

/// The filter's state.
#[derive(Clone)]
pub struct Trendline {
    /// Groups to which the line is fitted.
    length: usize,
    smoothing: f64,
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
    /// A filter that has seen nothing, and fits its line to so many groups.
    #[must_use]
    pub fn new(groups: u64) -> Self {
        let length = groups as usize;
        Self {
            length,
            smoothing: SMOOTHING,
            trend: 0.0,
            accumulated: 0.0,
            smoothed: 0.0,
            first_arrival: None,
            window: Vec::with_capacity(length),
            oldest: 0,
        }
    }

    /// Takes a delay variation (ms) of a group that stands for the arrival time `arrival` (ms by any origin).
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

    /// A filter that does not smooth.
    fn plain(groups: u64) -> Trendline {
        Trendline { smoothing: 0.0, ..Trendline::new(groups) }
    }

    #[test]
    fn a_straight_line_is_its_own_fit_once_the_window_is_full() {
        let mut filter = plain(WINDOW);
        for i in 0..100 {
            assert_eq!(filter.trend == 0.0, i < 20, "at {i}");
            filter.update(0.3, 1e9 + f64::from(i) * 10.0);
        }
        assert!((filter.trend - 0.03).abs() < 1e-12, "{}", filter.trend);
    }

    #[test]
    fn the_fit_of_three_points_is_as_worked_by_hand() {
        let mut filter = plain(3);
        // points (0, 1) (1, 3) (3, 4): means 4/3, 8/3; sum xy 13/3, sum xx 14/3
        for (variation, arrival) in [(1.0, 0.0), (2.0, 1.0), (1.0, 3.0)] {
            filter.update(variation, arrival);
        }
        assert!((filter.trend - 13.0 / 14.0).abs() < 1e-12, "{}", filter.trend);
    }

    #[test]
    fn smoothing_weighs_the_old_value() {
        let mut filter = Trendline::new(WINDOW);
        filter.update(10.0, 0.0);
        filter.update(10.0, 1.0);
        assert!((filter.smoothed - (0.9 * 1.0 + 0.1 * 20.0)).abs() < 1e-12);
    }

    #[test]
    fn one_arrival_time_for_all_keeps_the_old_trend_and_nothing_is_poisoned() {
        let mut filter = plain(WINDOW);
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
