//! Target of the encoder and pacing rate (ScreamV2TxStream.cpp, and the pacing rate of ScreamV2Tx.cpp's `updateCwnd`).

use super::delay::{Ticks, seconds};
use super::settings::Settings;
use super::window::Window;
use tidegate_core::control::{Limits, NewFrame};

/// Time over which the encoder's rate is measured: 100 ms (ScreamV2TxStream.cpp, as are the constants below).
const RATE_UPDATE_INTERVAL: Ticks = 6553;
/// Number of rates in the mean (`kRateUpDateSize`).
const RATE_UPDATE_SIZE: usize = 4;
/// Gain of the error of a frame's delay.
const RATE_ADJUST_GAIN_1: f64 = 0.2;
/// Gain of the correction by that error.
const RATE_ADJUST_GAIN_2: f64 = 0.125;
/// Weight of the last interval in the frame period.
const PERIOD_GAIN: f64 = 0.9;
/// Part of the highest target from which pacing is relaxed (ScreamV2Tx.cpp).
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;
/// Lowest pacing rate, bit/s.
const MIN_PACING: f64 = 50e3;
/// Headers for which the target leaves room, bytes.
const PACKET_OVERHEAD: f64 = 20.0;

/// Window over round trip with margins, bit/s (`rateShare`).
#[must_use]
pub fn share(window: &Window, mss: i64, s_rtt: f64) -> f64 {
    let rate = 8.0 * window.bytes as f64 / (s_rtt + 0.001).clamp(0.001, 0.2);
    let mss = mss as f64;
    rate * (1.0 - (window.ratio - 0.1).clamp(0.0, 0.2)) / 1.1 * (mss / (mss + PACKET_OVERHEAD))
}

/// Stream of the encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    target: f64,
    /// Last target with the scale applied, bit/s.
    scaled_target: f64,
    /// Correction of the target by the encoder's rate (`targetRateScale`).
    scale: f64,
    adjust: f64,
    period: f64,
    last_frame: Option<Ticks>,
    /// Factor of the pacing rate for large frames (`adaptivePacingRateScale`).
    pace_scale: f64,
    /// Whether the session has video; then audio frames do not count.
    video: bool,
    rates: [f64; RATE_UPDATE_SIZE],
    updates: usize,
    encoded: f64,
    acked: f64,
    acked_rate: f64,
    updated: Ticks,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            target: 0.0,
            scaled_target: 0.0,
            scale: 1.0,
            adjust: 0.0,
            period: 0.02,
            last_frame: None,
            pace_scale: 1.0,
            video: false,
            rates: [0.0; RATE_UPDATE_SIZE],
            updates: 0,
            encoded: 0.0,
            acked: 0.0,
            acked_rate: 0.0,
            updated: 0,
        }
    }
}

impl Encoder {
    /// Sets the first target.
    pub fn begin(&mut self, start: f64) {
        (self.target, self.scaled_target) = (start, start);
    }

    /// Target, bit/s (`targetBitrate`).
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Rate of acknowledged bytes, bit/s (`rateAcked`).
    #[must_use]
    pub fn acked_rate(&self) -> f64 {
        self.acked_rate
    }

    /// Correction by the delay in the pacer (`rateAdjustFactor`).
    #[must_use]
    pub fn adjust(&self) -> f64 {
        self.adjust
    }

    /// Target for the encoder, bit/s (`getTargetBitrate`).
    #[must_use]
    pub fn encoder_target(&self, set: &Settings) -> f64 {
        if set.rate_scale { self.scale * self.scaled_target } else { self.scaled_target }
    }

    /// Updates the target within its limits (`updateTargetBitrate`).
    pub fn set_target(&mut self, share: f64, limits: &Limits) {
        let (min, max) = (limits.min.as_bps_f64(), limits.target_max().as_bps_f64());
        self.target = (share.min(max) / (1.0 + self.adjust)).max(min).min(max);
        self.scaled_target = self.target * self.scale;
    }

    /// Counts acknowledged bytes.
    pub fn acked(&mut self, bytes: f64) {
        self.acked += bytes;
    }

    /// Measures the rates every 100 ms (`updateRate`).
    pub fn tick(&mut self, now: Ticks, set: &Settings) {
        if now - self.updated <= RATE_UPDATE_INTERVAL {
            return;
        }
        // the program's first update has no interval before it
        if self.updated > 0 {
            let passed = seconds(now - self.updated);
            self.rates[self.updates % RATE_UPDATE_SIZE] = self.encoded * 8.0 / passed;
            self.acked_rate = self.acked * 8.0 / passed;
            self.updates += 1;
            let mean = self.mean_rate();
            if mean > 0.0 && set.rate_scale && self.updates > RATE_UPDATE_SIZE {
                let ratio = self.target * self.scale / mean;
                self.scale = (0.98 * self.scale + 0.02 * ratio).clamp(0.8, 1.1);
            }
        }
        (self.encoded, self.acked, self.updated) = (0.0, 0.0, now);
    }

    /// Mean of the encoder's last rates, bit/s (`rateRtpAvg`).
    fn mean_rate(&self) -> f64 {
        self.rates.iter().sum::<f64>() / RATE_UPDATE_SIZE as f64
    }

    /// Takes a frame that enters the pacer (`newMediaFrame`). Returns whether it counts.
    pub fn frame(&mut self, now: Ticks, frame: &NewFrame) -> bool {
        self.encoded += frame.size.as_bytes() as f64;
        self.video |= frame.video;
        if frame.video != self.video {
            return false;
        }
        if let Some(last) = self.last_frame.filter(|&last| last < now) {
            self.period = seconds(now - last) * PERIOD_GAIN + self.period * (1.0 - PERIOD_GAIN);
        }
        self.last_frame = Some(now);
        let error = RATE_ADJUST_GAIN_1 * (frame.pacer_delay.as_secs_f64() - self.period / 2.0) / self.period;
        self.adjust = (self.adjust + error * RATE_ADJUST_GAIN_2).clamp(0.0, 0.5);
        let nominal = self.target * self.period / 8.0;
        let waiting = frame.backlog.max(frame.size).as_bytes() as f64;
        self.pace_scale = if nominal > 500.0 { (waiting / nominal).max(1.0) } else { 1.0 };
        true
    }

    /// Pacing rate, bit/s; `max_target` is the highest target.
    #[must_use]
    pub fn pacing(&self, max_target: f64, set: &Settings) -> f64 {
        let rate = self.target.max(self.mean_rate());
        let pace = (set.pacing_headroom * self.pace_scale.min(set.frame_pacing) * rate).max(MIN_PACING);
        if self.target <= RELAXED_PACING_LIMIT_LOW * max_target {
            return pace;
        }
        let relaxed = ((self.target / max_target - RELAXED_PACING_LIMIT_LOW)
            / (1.0 - RELAXED_PACING_LIMIT_LOW))
            .min(1.0);
        pace / (1.0 - relaxed).clamp(1.0 / set.relaxed_pacing, 1.0)
    }
}
