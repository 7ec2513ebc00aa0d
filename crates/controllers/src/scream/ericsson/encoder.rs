//! What the encoder is told and how fast packets leave (ScreamV2TxStream.cpp, and the pacing rate of ScreamV2Tx.cpp's `updateCwnd`).

use super::delay::{Ticks, seconds};
use super::settings::Settings;
use super::window::Window;
use tidegate_core::control::{Limits, NewFrame};

/// kRateUpdateInterval_ntp: 100 ms; kRateUpDateSize of them.
const RATE_STEP: Ticks = 6553;
const RATES: usize = 4;
/// kRateAdjustGain1 and kRateAdjustGain2.
const ADJUST_ERROR: f64 = 0.2;
const ADJUST_GAIN: f64 = 0.125;
/// The weight of the last interval in the frame period.
const PERIOD_GAIN: f64 = 0.9;
/// kRelaxedPacingLimitLow.
const RELAXED_FROM: f64 = 0.8;
/// No pacing rate is below.
const PACE_LEAST: f64 = 50e3;
/// kPacketOverhead.
const OVERHEAD: f64 = 20.0;

/// `rateShare`: window over round trip, less what is kept back.
#[must_use]
pub fn share(window: &Window, mss: i64, s_rtt: f64) -> f64 {
    let rate = 8.0 * window.bytes as f64 / (s_rtt + 0.001).clamp(0.001, 0.2);
    let mss = mss as f64;
    rate * (1.0 - (window.ratio - 0.1).clamp(0.0, 0.2)) / 1.1 * (mss / (mss + OVERHEAD))
}

/// The stream of the encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    target: f64,
    told: f64,
    /// `targetRateScale`.
    scale: f64,
    adjust: f64,
    period: f64,
    last_frame: Option<Ticks>,
    /// `adaptivePacingRateScale`.
    pace_scale: f64,
    /// Whether there is video: frames of audio say nothing then.
    video: bool,
    rates: [f64; RATES],
    updates: usize,
    made: f64,
    acked: f64,
    acked_rate: f64,
    updated: Ticks,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            target: 0.0,
            told: 0.0,
            scale: 1.0,
            adjust: 0.0,
            period: 0.02,
            last_frame: None,
            pace_scale: 1.0,
            video: false,
            rates: [0.0; RATES],
            updates: 0,
            made: 0.0,
            acked: 0.0,
            acked_rate: 0.0,
            updated: 0,
        }
    }
}

impl Encoder {
    /// The first target.
    pub fn begin(&mut self, start: f64) {
        (self.target, self.told) = (start, start);
    }

    /// `targetBitrate`.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// `rateAcked`.
    #[must_use]
    pub fn acked_rate(&self) -> f64 {
        self.acked_rate
    }

    /// `rateAdjustFactor`.
    #[must_use]
    pub fn adjust(&self) -> f64 {
        self.adjust
    }

    /// What the encoder is told (`getTargetBitrate`).
    #[must_use]
    pub fn told(&self, set: &Settings) -> f64 {
        if set.rate_scale { self.scale * self.told } else { self.told }
    }

    /// `updateTargetBitrate`.
    pub fn set_target(&mut self, share: f64, limits: &Limits) {
        let (min, max) = (limits.min.as_bps_f64(), limits.target_max().as_bps_f64());
        self.target = (share.min(max) / (1.0 + self.adjust)).max(min).min(max);
        self.told = self.target * self.scale;
    }

    /// Bytes were acknowledged.
    pub fn acked(&mut self, bytes: f64) {
        self.acked += bytes;
    }

    /// `updateRate`, if it is time for that.
    pub fn tick(&mut self, now: Ticks, set: &Settings) {
        if now - self.updated <= RATE_STEP {
            return;
        }
        // the first one of the program has nothing before it to count from
        if self.updated > 0 {
            let passed = seconds(now - self.updated);
            self.rates[self.updates % RATES] = self.made * 8.0 / passed;
            self.acked_rate = self.acked * 8.0 / passed;
            self.updates += 1;
            let mean = self.mean_rate();
            if mean > 0.0 && set.rate_scale && self.updates > RATES {
                let wanted = self.target * self.scale / mean;
                self.scale = (0.98 * self.scale + 0.02 * wanted).clamp(0.8, 1.1);
            }
        }
        (self.made, self.acked, self.updated) = (0.0, 0.0, now);
    }

    /// `rateRtpAvg`.
    fn mean_rate(&self) -> f64 {
        self.rates.iter().sum::<f64>() / RATES as f64
    }

    /// A frame has come into the pacer (`newMediaFrame`). Says whether it is one that counts.
    pub fn frame(&mut self, now: Ticks, frame: &NewFrame) -> bool {
        self.made += frame.size.as_bytes() as f64;
        self.video |= frame.video;
        if frame.video != self.video {
            return false;
        }
        if let Some(last) = self.last_frame.filter(|&last| last < now) {
            self.period = seconds(now - last) * PERIOD_GAIN + self.period * (1.0 - PERIOD_GAIN);
        }
        self.last_frame = Some(now);
        let error = ADJUST_ERROR * (frame.pacer_delay.as_secs_f64() - self.period / 2.0) / self.period;
        self.adjust = (self.adjust + error * ADJUST_GAIN).clamp(0.0, 0.5);
        let usual = self.target * self.period / 8.0;
        let waits = frame.backlog.max(frame.size).as_bytes() as f64;
        self.pace_scale = if usual > 500.0 { (waits / usual).max(1.0) } else { 1.0 };
        true
    }

    /// The pacing rate, in bit/s.
    #[must_use]
    pub fn pacing(&self, most: f64, set: &Settings) -> f64 {
        let rate = self.target.max(self.mean_rate());
        let pace = (set.pacing_headroom * self.pace_scale.min(set.frame_pacing) * rate).max(PACE_LEAST);
        if self.target <= RELAXED_FROM * most {
            return pace;
        }
        let relaxed = ((self.target / most - RELAXED_FROM) / (1.0 - RELAXED_FROM)).min(1.0);
        pace / (1.0 - relaxed).clamp(1.0 / set.relaxed_pacing, 1.0)
    }
}
