//! Target of the encoder (RFC 8298 section 4.1.3).

use super::settings::Settings;
use std::collections::VecDeque;

/// Number of intervals of 0.2 s in the median of the encoder's rate ("computed over more than 10 s").
const MEDIAN_LENGTH: usize = 51;

/// Measurements of an interval; rates in bit/s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Sending rate (`rate_transmit`).
    pub transmit: f64,
    /// Rate of acknowledged bytes (`rate_ack`).
    pub acked: f64,
    /// Rate of the encoder (`rate_media`).
    pub media: f64,
    /// Media waiting in the pacer, bits (`rtp_queue_size`).
    pub queue: f64,
    /// Whether the window is in fast increase (`in_fast_increase`).
    pub fast: bool,
    /// Trend of the delay (`qdelay_trend`).
    pub trend: f64,
    /// Slowly decaying maximum of the trend (`qdelay_trend_mem`).
    pub trend_memory: f64,
    /// Lowest target (TARGET_BITRATE_MIN).
    pub min: f64,
    /// Highest target (TARGET_BITRATE_MAX).
    pub max: f64,
}

/// Target of the encoder.
#[derive(Clone, Debug)]
pub struct Target {
    /// Target, bit/s (`target_bitrate`).
    pub rate: f64,
    /// Target at the last congestion, bit/s (`target_bitrate_last_max`).
    pub last_max: f64,
    media: VecDeque<f64>,
}

impl Target {
    /// Creates a target of `start` bit/s.
    #[must_use]
    pub fn new(start: f64) -> Self {
        Self { rate: start, last_max: 1.0, media: VecDeque::with_capacity(MEDIAN_LENGTH) }
    }

    /// Records congestion at the present target.
    pub fn congestion(&mut self) {
        self.last_max = self.rate.max(1.0);
    }

    /// Reduces the target for lost (`factor` BETA_R) or marked (BETA_ECN) packets.
    pub fn reduce(&mut self, factor: f64, min: f64) {
        self.congestion();
        self.rate = (self.rate * factor).max(min);
    }

    /// Median of the encoder's rate, bit/s (`rate_media_median`).
    fn median(&self) -> f64 {
        let mut sorted: Vec<f64> = self.media.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }

    /// Factor of growth, lower near the target of the last congestion (`scale_t`).
    #[must_use]
    pub fn scale(&self) -> f64 {
        let distance = 4.0 * (self.rate - self.last_max) / self.last_max;
        (distance * distance).clamp(0.2, 1.0)
    }

    /// Adjusts the target at the end of an interval.
    pub fn adjust(&mut self, interval: &Interval, set: &Settings) {
        if self.media.len() == MEDIAN_LENGTH {
            self.media.pop_front();
        }
        self.media.push_back(interval.media);
        let ramp_up = set.ramp_up.min(self.rate / 2.0) * set.adjust_interval;
        let scale = self.scale();
        let current = interval.transmit.max(interval.acked);
        if interval.fast {
            self.rate += ramp_up * scale;
        } else {
            let mut delta =
                current * (1.0 - set.congestion_guard * interval.trend) - set.queue_factor * interval.queue;
            if delta > 0.0 {
                delta = (delta * scale).min(ramp_up);
            }
            self.rate += delta;
            if interval.queue > set.queue_delay * current {
                self.rate *= set.queue_scale;
            }
        }
        let limit = current.max(interval.media).max(self.median()) * (2.0 - interval.trend_memory);
        self.rate = self.rate.min(limit).max(interval.min).min(interval.max);
    }
}
