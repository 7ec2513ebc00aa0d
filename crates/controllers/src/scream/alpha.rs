//! What is averaged on the way to the reference window: the share of marked packets and the queue's delay
//! (draft-ietf-ccwg-rfc8298bis-screamv2 sections "Receiving ECN-CE for L4S" and "Detecting Increased Queue Delay").

use super::flight::Acked;
use super::settings::Settings;
use tidegate_core::Time;

/// `l4s_alpha` is updated no more often than this, in seconds (or than every round trip, if that is less).
const ALPHA_STEP: f64 = 0.01;

/// `l4s_alpha`: quick to rise, slow to fall.
#[derive(Clone, Copy, Debug, Default)]
pub struct L4sAlpha {
    alpha: f64,
    delivered: u32,
    marked: u32,
    updated: Option<Time>,
}

impl L4sAlpha {
    /// From 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        self.alpha
    }

    /// Takes what a report acknowledges.
    pub fn take(&mut self, now: Time, acked: &Acked, s_rtt: f64, set: &Settings) {
        self.delivered += acked.packets;
        self.marked += acked.marked;
        let due = self.updated.is_none_or(|then| (now - then).as_secs_f64() >= s_rtt.min(ALPHA_STEP));
        if !due || self.delivered == 0 {
            return;
        }
        let fraction = f64::from(self.marked) / f64::from(self.delivered);
        self.alpha = if fraction >= self.alpha {
            set.l4s_gain_up * fraction + (1.0 - set.l4s_gain_up) * self.alpha
        } else {
            (1.0 - set.l4s_gain_down) * self.alpha
        };
        (self.updated, self.delivered, self.marked) = (Some(now), 0, 0);
    }
}

/// The average of the queue's delay, slow to rise and quick to fall, and how much the delay varies.
#[derive(Clone, Copy, Debug)]
pub struct DelayAverage {
    average: f64,
    max: f64,
    min: f64,
    deviation: f64,
    scale: f64,
    updated: Option<Time>,
}

impl DelayAverage {
    /// An average of no delay.
    #[must_use]
    pub fn new(qdelay_target: f64) -> Self {
        Self { average: 0.0, max: qdelay_target, min: 0.0, deviation: 0.0, scale: 1.0, updated: None }
    }

    /// `qdelay_avg`, in seconds.
    #[must_use]
    pub fn get(self) -> f64 {
        self.average
    }

    /// `ref_wnd_delay_scale`: 1 where nothing varies, or jitter is not looked at; 0 at the threshold.
    #[must_use]
    pub fn scale(self) -> f64 {
        self.scale
    }

    /// Takes a delay, in seconds.
    pub fn take(&mut self, now: Time, qdelay: f64, qdelay_target: f64, s_rtt: f64, set: &Settings) {
        if set.reduce_jitter {
            self.max = qdelay.max(self.max).min(qdelay_target);
            self.min = qdelay.min(self.min);
        }
        let step = set.virtual_rtt.min(s_rtt);
        if self.updated.is_some_and(|then| (now - then).as_secs_f64() < step) {
            return;
        }
        self.updated = Some(now);
        self.average = if qdelay < self.average {
            qdelay
        } else {
            set.qdelay_gain * qdelay + (1.0 - set.qdelay_gain) * self.average
        };
        if set.reduce_jitter {
            self.max *= 1.0 - set.jitter_min_max_gain;
            self.min += set.jitter_min_max_gain * (self.max - self.min);
            self.deviation += set.jitter_gain * (self.max - self.min - self.deviation);
            self.scale = (1.0 - self.deviation / set.jitter_threshold).clamp(0.0, 1.0);
        }
    }
}
