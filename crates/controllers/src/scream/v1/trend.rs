//! Trend of the queueing delay, which shows incipient congestion (RFC 8298 section 4.1.2, `update_variables`).

use std::collections::VecDeque;

/// Number of samples, one every 50 ms (`qdelay_fraction_hist`).
const SAMPLES: usize = 20;
/// Factor of `qdelay_trend_mem` at each sample.
const MEMORY_DECAY: f64 = 0.99;

/// Trend of the delay as a fraction of its target.
#[derive(Clone, Debug)]
pub struct Trend {
    history: VecDeque<f64>,
    average: f64,
    trend: f64,
    memory: f64,
}

impl Default for Trend {
    /// State of zero delay.
    fn default() -> Self {
        Self { history: std::iter::repeat_n(0.0, SAMPLES).collect(), average: 0.0, trend: 0.0, memory: 0.0 }
    }
}

impl Trend {
    /// Trend, from 0 to 1 (`qdelay_trend`).
    #[must_use]
    pub fn get(&self) -> f64 {
        self.trend
    }

    /// Slowly decaying maximum of the trend (`qdelay_trend_mem`).
    #[must_use]
    pub fn memory(&self) -> f64 {
        self.memory
    }

    /// Average fraction (`qdelay_fraction_avg`).
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Takes the delay as a fraction of its target, with the sample's weight in the average.
    pub fn take(&mut self, fraction: f64, weight: f64) {
        self.average = (1.0 - weight) * self.average + weight * fraction;
        self.history.pop_front();
        self.history.push_back(fraction);
        let mean = self.history.iter().sum::<f64>() / SAMPLES as f64;
        let autocovariance = |lag: usize| -> f64 {
            let later = self.history.iter().skip(lag);
            self.history.iter().zip(later).map(|(a, b)| (a - mean) * (b - mean)).sum()
        };
        let power = autocovariance(0);
        // constant delays have no trend
        let coefficient = if power > 0.0 { autocovariance(1) / power } else { 0.0 };
        self.trend = (coefficient * self.average).clamp(0.0, 1.0);
        self.memory = (MEMORY_DECAY * self.memory).max(self.trend);
    }
}
