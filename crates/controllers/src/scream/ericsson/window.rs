//! The congestion window (ScreamV2Tx.cpp: `updateCwnd`, `setLossEvent`, `calculateLossRate`), in whole bytes as there.

use super::delay::{Delay, LEAST_BACK_OFF, RoundTrips, Ticks, VIRTUAL_RTT, seconds};
use super::settings::Settings;

/// kLossRateThreshold, kPolicerLossRateThreshold, kLossBetaSlow.
const LOSS_RATE: f64 = 0.01;
const POLICER_LOSS_RATE: f64 = 0.1;
const BETA_POLICED: f64 = 0.95;
/// kTotalAckedBitrateFraction, and what is left of a back-off below it.
const ACKED_PART: f64 = 0.8;
const LOW_TARGET: f64 = 0.25;
/// `maxPolicedCwnd` before anything was policed.
const UNPOLICED: f64 = 1.0e8;
/// After so many round trips a mark finds what was in flight.
const FORGOTTEN_RTTS: f64 = 100.0;

/// What calls for a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    /// `lossEvent`.
    pub loss: bool,
    /// `ecnCeEvent`.
    pub marked: bool,
    /// `virtualCeEvent`.
    pub delayed: bool,
    /// `virtualL4sAlpha`.
    pub delay_alpha: f64,
}

impl Events {
    /// Whether there is any.
    #[must_use]
    pub fn any(&self) -> bool {
        self.loss || self.marked || self.delayed
    }
}

/// What an update goes by.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The present.
    pub now: Ticks,
    /// `bytesNewlyAcked` less those that were marked.
    pub acked: i64,
    /// `getMss`.
    pub mss: i64,
    /// `l4sAlpha`.
    pub l4s_alpha: f64,
    /// Delay and its target, in seconds.
    pub qdelay_target: f64,
    /// `maxBytesInFlight` and `maxBytesInFlightPrev`.
    pub max_in_flight: i64,
    /// Of the 50 ms before.
    pub max_in_flight_prev: i64,
    /// Target, its maximum, and what was acknowledged, in bit/s.
    pub target: f64,
    /// `getTotalMaxBitrate`.
    pub target_max: f64,
    /// `getTotalAckedBitrate`.
    pub acked_rate: f64,
}

/// The window.
#[derive(Clone, Debug)]
pub struct Window {
    /// `cwnd`.
    pub bytes: i64,
    /// `cwndMin`.
    pub least: i64,
    /// `cwndI`.
    pub inflection: i64,
    inflection_blocked: bool,
    policed: f64,
    policing: bool,
    last_congestion: Ticks,
    /// `lossRate`.
    pub loss_rate: f64,
    /// `isApplicationLimited`.
    pub app_limited: bool,
    /// `cwndRatio`.
    pub ratio: f64,
}

impl Window {
    /// The first window.
    #[must_use]
    pub fn new(set: &Settings) -> Self {
        Self {
            bytes: set.initial_window as i64,
            least: 200,
            inflection: 1,
            inflection_blocked: false,
            policed: UNPOLICED,
            policing: false,
            last_congestion: 0,
            loss_rate: 0.0,
            app_limited: false,
            ratio: 0.001,
        }
    }

    /// A larger packet has come: two of them, or as the caller has it.
    pub fn segments(&mut self, count: i64, mss: i64, set: &Settings) {
        self.least = (set.min_window as i64).max(count * mss);
        self.bytes = self.bytes.max(self.least);
    }

    /// A packet was lost or acknowledged. `mss`: of the present second alone.
    pub fn count(&mut self, lost: bool, mss: i64) {
        let alpha = (LOSS_RATE / 4.0).min(mss as f64 / self.bytes as f64 / 2.0);
        self.loss_rate = (1.0 - alpha) * self.loss_rate + if lost { alpha } else { 0.0 };
    }

    /// Whether a loss is to be answered (`setLossEvent`).
    pub fn loss(&mut self, delay: &Delay, qdelay_target: f64, set: &Settings) -> bool {
        let stands = delay.average > qdelay_target / 4.0;
        if self.loss_rate <= LOSS_RATE && !stands {
            return false;
        }
        if set.policer && self.loss_rate > POLICER_LOSS_RATE && delay.average < qdelay_target / 4.0 {
            if !self.policing {
                self.policed = (self.bytes + self.inflection) as f64 * set.beta_policer / 2.0;
                self.policing = true;
            }
        } else {
            self.policing = false;
        }
        true
    }

    /// The bound of a policer rises slowly.
    pub fn release(&mut self) {
        self.policed *= 1.001;
    }

    /// Bounds the window where the target is at its maximum.
    pub fn bound(&mut self, most: i64) {
        self.bytes = self.bytes.min(most);
    }

    fn scaled(&self, factor: f64) -> i64 {
        self.least.max((factor * self.bytes as f64) as i64)
    }

    fn post_congestion(&self, now: Ticks, rtt: &RoundTrips, set: &Settings) -> f64 {
        ((now - self.last_congestion) as f64 / (set.post_congestion_rtts * rtt.slow as f64)).clamp(0.0, 1.0)
    }

    /// Makes the window so many times as large: for coupling with other flows.
    pub fn multiply(&mut self, factor: f64) {
        self.bytes = self.scaled(factor);
    }

    /// Reduces the window for `events`, and lets it grow.
    pub fn update(&mut self, step: &Step, events: &Events, delay: &Delay, rtt: &RoundTrips, set: &Settings) {
        self.ratio = step.mss as f64 / self.bytes as f64;
        let distance = 8.0 * (self.bytes - self.inflection) as f64 / self.inflection as f64;
        let scale = (distance * distance).clamp(0.1, 1.0);
        if events.any() && !self.inflection_blocked {
            (self.inflection, self.inflection_blocked) = (self.bytes, true);
        }
        let low = step.target < step.acked_rate * ACKED_PART;
        let often = (rtt.slow as f64 / LEAST_BACK_OFF as f64).max(1.0);
        if events.loss {
            self.bytes = self.scaled(if self.policing { BETA_POLICED } else { set.beta_loss });
        } else if events.marked && set.ecn == super::Marks::L4s {
            let mut back_off = step.l4s_alpha / 2.0 * if low { LOW_TARGET } else { 1.0 } / often;
            if delay.now < step.qdelay_target * 0.25 {
                back_off *= scale.max(0.25) * delay.scale.max(0.25);
            }
            let long = FORGOTTEN_RTTS * rtt.s_rtt.max(VIRTUAL_RTT);
            if seconds(step.now - self.last_congestion) > long {
                self.bytes = self.bytes.min(step.max_in_flight_prev);
            }
            self.bytes = self.scaled(1.0 - back_off);
        } else if events.marked {
            self.bytes = self.scaled(set.beta_ecn);
        } else if events.delayed {
            let back_off = events.delay_alpha / 2.0 * if low { LOW_TARGET } else { 1.0 } / often;
            self.bytes = self.scaled(1.0 - back_off);
        }
        let recovered = if events.any() {
            self.last_congestion = step.now;
            0.0
        } else {
            self.post_congestion(step.now, rtt, set)
        };
        self.grow(step, (scale, recovered), delay, rtt, set);
    }

    fn grow(&mut self, step: &Step, scales: (f64, f64), delay: &Delay, rtt: &RoundTrips, set: &Settings) {
        let (scale, recovered) = scales;
        let mut increment = step.acked as f64 * self.ratio;
        increment *= scale.max(0.25) * (rtt.s_rtt / VIRTUAL_RTT).min(1.0) * delay.scale.max(0.1);
        increment *= 1.0 + set.mul_increase * self.bytes as f64 / step.mss as f64 * recovered * scale;
        let in_flight = step.max_in_flight.max(step.max_in_flight_prev) as f64;
        let allowed = step.mss as f64 + in_flight * set.head_room;
        self.app_limited = allowed < self.bytes as f64;
        let grown = self.bytes + (increment + 0.5) as i64;
        if grown as f64 <= allowed && step.target < step.target_max {
            self.inflection_blocked &= grown <= self.bytes;
            self.bytes = grown;
        }
        self.bytes = self.bytes.min(self.policed as i64).max(self.least);
    }
}
