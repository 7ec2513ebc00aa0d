//! Averages that enter the reference window: the share of marked packets and the queueing delay
//! (draft-ietf-ccwg-rfc8298bis-screamv2 sections "Receiving ECN-CE for L4S" and "Detecting Increased Queue Delay").

use super::flight::Acked;
use super::settings::Settings;
use tidegate_core::Time;

/// Shortest time between two updates of `l4s_alpha`, s; a shorter round trip takes its place.
const ALPHA_INTERVAL: f64 = 0.01;

/// Average share of marked packets, `l4s_alpha`, which rises fast and falls slowly.
#[derive(Clone, Copy, Debug, Default)]
pub struct L4sAlpha {
    alpha: f64,
    delivered: u32,
    marked: u32,
    updated: Option<Time>,
}

impl L4sAlpha {
    /// Present average, from 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        self.alpha
    }

    /// Takes the packets that a report acknowledges.
    pub fn take(&mut self, now: Time, acked: &Acked, s_rtt: f64, set: &Settings) {
        self.delivered += acked.packets;
        self.marked += acked.marked;
        let is_due = self.updated.is_none_or(|last| (now - last).as_secs_f64() >= s_rtt.min(ALPHA_INTERVAL));
        if !is_due || self.delivered == 0 {
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

/// Average of the queueing delay, which rises slowly and falls fast, with the variation of the delay.
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
    /// Creates an average of zero delay.
    #[must_use]
    pub fn new(qdelay_target: f64) -> Self {
        Self { average: 0.0, max: qdelay_target, min: 0.0, deviation: 0.0, scale: 1.0, updated: None }
    }

    /// Average queueing delay, s (`qdelay_avg`).
    #[must_use]
    pub fn get(self) -> f64 {
        self.average
    }

    /// Factor by the delay's variation (`ref_wnd_delay_scale`): 1 for a constant delay or if jitter is ignored; 0 at the
    /// threshold.
    #[must_use]
    pub fn scale(self) -> f64 {
        self.scale
    }

    /// Takes a delay, s.
    pub fn take(&mut self, now: Time, qdelay: f64, qdelay_target: f64, s_rtt: f64, set: &Settings) {
        if set.reduce_jitter {
            self.max = qdelay.max(self.max).min(qdelay_target);
            self.min = qdelay.min(self.min);
        }
        let step = set.virtual_rtt.min(s_rtt);
        if self.updated.is_some_and(|last| (now - last).as_secs_f64() < step) {
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
