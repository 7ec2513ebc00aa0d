//! Incipient congestion: how much the queue's delay grows or falls (RFC 8298 section 4.1.2, `update_variables`).

use std::collections::VecDeque;

/// So many samples, one each 50 ms, are looked at (`qdelay_fraction_hist`).
const SAMPLES: usize = 20;
/// What `qdelay_trend_mem` keeps with each sample.
const MEMORY: f64 = 0.99;

/// Fractions of the delay's target.
#[derive(Clone, Debug)]
pub struct Trend {
    history: VecDeque<f64>,
    average: f64,
    trend: f64,
    memory: f64,
}

impl Default for Trend {
    /// No delay so far.
    fn default() -> Self {
        Self { history: std::iter::repeat_n(0.0, SAMPLES).collect(), average: 0.0, trend: 0.0, memory: 0.0 }
    }
}

impl Trend {
    /// `qdelay_trend`, from 0 to 1.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.trend
    }

    /// `qdelay_trend_mem`.
    #[must_use]
    pub fn memory(&self) -> f64 {
        self.memory
    }

    /// `qdelay_fraction_avg`.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Takes the delay over its target. `weight`: of the sample in the average.
    pub fn take(&mut self, fraction: f64, weight: f64) {
        self.average = (1.0 - weight) * self.average + weight * fraction;
        self.history.pop_front();
        self.history.push_back(fraction);
        let mean = self.history.iter().sum::<f64>() / SAMPLES as f64;
        let about = |lag: usize| -> f64 {
            let later = self.history.iter().skip(lag);
            self.history.iter().zip(later).map(|(a, b)| (a - mean) * (b - mean)).sum()
        };
        let power = about(0);
        // where nothing varies there is no trend
        let coefficient = if power > 0.0 { about(1) / power } else { 0.0 };
        self.trend = (coefficient * self.average).clamp(0.0, 1.0);
        self.memory = (MEMORY * self.memory).max(self.trend);
    }
}
