//! The encoder's target (RFC 8298 section 4.1.3).

use super::settings::Settings;
use std::collections::VecDeque;

/// So many intervals of 0.2 s the median of the encoder's rate is of ("computed over more than 10 s").
const MEDIAN: usize = 51;

/// What an interval had. Rates in bit/s, the queue in bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// `rate_transmit`.
    pub transmit: f64,
    /// `rate_ack`.
    pub acked: f64,
    /// `rate_media`.
    pub media: f64,
    /// `rtp_queue_size`, in bits.
    pub queue: f64,
    /// `in_fast_increase`.
    pub fast: bool,
    /// `qdelay_trend` and `qdelay_trend_mem`.
    pub trend: f64,
    /// `qdelay_trend_mem`.
    pub trend_memory: f64,
    /// TARGET_BITRATE_MIN and _MAX.
    pub min: f64,
    /// TARGET_BITRATE_MAX.
    pub max: f64,
}

/// `target_bitrate`.
#[derive(Clone, Debug)]
pub struct Target {
    /// In bit/s.
    pub rate: f64,
    /// `target_bitrate_last_max`: where congestion was last seen.
    pub last_max: f64,
    media: VecDeque<f64>,
}

impl Target {
    /// Begins at `start`.
    #[must_use]
    pub fn new(start: f64) -> Self {
        Self { rate: start, last_max: 1.0, media: VecDeque::with_capacity(MEDIAN) }
    }

    /// Congestion was seen at the present target.
    pub fn congestion(&mut self) {
        self.last_max = self.rate.max(1.0);
    }

    /// Packets were lost (`factor` BETA_R) or marked (BETA_ECN).
    pub fn reduce(&mut self, factor: f64, min: f64) {
        self.congestion();
        self.rate = (self.rate * factor).max(min);
    }

    /// `rate_media_median`.
    fn median(&self) -> f64 {
        let mut sorted: Vec<f64> = self.media.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }

    /// `scale_t`: slow near where congestion was last seen.
    #[must_use]
    pub fn scale(&self) -> f64 {
        let distance = 4.0 * (self.rate - self.last_max) / self.last_max;
        (distance * distance).clamp(0.2, 1.0)
    }

    /// An interval is over.
    pub fn adjust(&mut self, over: &Interval, set: &Settings) {
        if self.media.len() == MEDIAN {
            self.media.pop_front();
        }
        self.media.push_back(over.media);
        let ramp_up = set.ramp_up.min(self.rate / 2.0) * set.adjust_interval;
        let scale = self.scale();
        let current = over.transmit.max(over.acked);
        if over.fast {
            self.rate += ramp_up * scale;
        } else {
            let mut delta =
                current * (1.0 - set.congestion_guard * over.trend) - set.queue_factor * over.queue;
            if delta > 0.0 {
                delta = (delta * scale).min(ramp_up);
            }
            self.rate += delta;
            if over.queue > set.queue_delay * current {
                self.rate *= set.queue_scale;
            }
        }
        let limit = current.max(over.media).max(self.median()) * (2.0 - over.trend_memory);
        self.rate = self.rate.min(limit).max(over.min).min(over.max);
    }
}
