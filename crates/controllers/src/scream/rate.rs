//! Rates of encoder and pacer from the reference window
//! (draft-ietf-ccwg-rfc8298bis-screamv2 sections "Media Rate Control", "Send Window Calculation" and "Packet Pacing").

use super::settings::Settings;
use tidegate_core::control::NewFrame;
use tidegate_core::{Span, Time};

/// Weight of the last interval in the estimated frame period (ScreamV2TxStream.cpp, `newMediaFrame`; the draft leaves it
/// open).
const PERIOD_GAIN: f64 = 0.9;

/// Longest frame period, s; longer intervals are pauses.
const MAX_PERIOD: f64 = 1.0;

/// Corrections of the target by the encoder's frames.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    adjust: f64,
    deviation: f64,
    period: f64,
    last: Option<Time>,
}

impl Default for Frames {
    /// State before the first frame, with a frame period of 20 ms (`frame_period` (0.02)).
    fn default() -> Self {
        Self { adjust: 0.0, deviation: 0.0, period: 0.02, last: None }
    }
}

impl Frames {
    /// Estimated frame period, s.
    #[must_use]
    pub fn period(&self) -> f64 {
        self.period
    }

    /// Correction by the delay in the pacer (`rate_adjust_factor`).
    #[must_use]
    pub fn adjust(&self) -> f64 {
        self.adjust
    }

    /// Correction by oversized frames (`frame_size_dev`).
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Takes a frame that enters the pacer; `target` is the encoder's rate, bit/s.
    pub fn take(&mut self, now: Time, frame: &NewFrame, target: f64, set: &Settings) {
        if let Some(last) = self.last.filter(|&last| last < now) {
            let interval = (now - last).as_secs_f64().min(MAX_PERIOD);
            self.period = PERIOD_GAIN * interval + (1.0 - PERIOD_GAIN) * self.period;
        }
        self.last = Some(now);
        let error = (frame.pacer_delay.as_secs_f64() - self.period / 4.0) / self.period;
        self.adjust = (self.adjust + error * set.rate_adjust_gain).clamp(0.0, 0.5);
        let nominal = target * self.period / 8.0;
        if nominal > 0.0 {
            let excess = ((frame.size.as_bytes() as f64 - nominal) / nominal).max(0.0);
            let gain = set.frame_size_gain;
            self.deviation = ((1.0 - gain) * self.deviation + gain * excess).min(0.2);
        }
    }
}

/// Target before its limits, bit/s (`target_bitrate`); `ratio` is MSS over the window, at most 1.
#[must_use]
pub fn target(window: f64, ratio: f64, s_rtt: f64, frames: &Frames, set: &Settings) -> f64 {
    let mut scale = 1.0 - (ratio - 0.1).clamp(0.0, 0.2);
    scale *= set.mss / (set.mss + set.packet_overhead);
    scale /= set.rate_margin + frames.adjust + frames.deviation;
    scale * 8.0 * window / s_rtt
}

/// Pacing rate, bit/s (`pace_bitrate`): above the target, and more so near the target's maximum.
#[must_use]
pub fn pacing(target: f64, max_target: f64, set: &Settings) -> f64 {
    let pace = target.max(set.pace_min) * set.pacing_headroom;
    let relaxed = ((target / max_target - set.relaxed_from) / (1.0 - set.relaxed_from)).min(1.0);
    pace / (1.0 - relaxed).clamp(1.0 / set.relaxed_pacing, 1.0)
}

/// Send window as a multiple of the reference window (`ref_wnd_overhead`).
#[must_use]
pub fn overhead(delay_scale: f64, set: &Settings) -> f64 {
    set.overhead_min + (set.overhead_max - set.overhead_min) * delay_scale
}

/// Rate of acknowledged bytes, over at least a round trip and two frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckedRate {
    since: Option<Time>,
    bytes: f64,
    rate: f64,
}

impl AckedRate {
    /// Present rate, bit/s.
    #[must_use]
    pub fn get(self) -> f64 {
        self.rate
    }

    /// Takes acknowledged bytes; `interval` is the averaging time, s.
    pub fn take(&mut self, now: Time, bytes: f64, interval: f64) {
        let since = *self.since.get_or_insert(now);
        self.bytes += bytes;
        let passed = (now - since).max(Span::ZERO).as_secs_f64();
        if passed >= interval && passed > 0.0 {
            (self.rate, self.bytes, self.since) = (self.bytes * 8.0 / passed, 0.0, Some(now));
        }
    }
}
