//! Congestion window in whole bytes (ScreamV2Tx.cpp: `updateCwnd`, `setLossEvent`, `calculateLossRate`).

use super::delay::{Delay, MIN_CONGESTION_BACK_OFF_INTERVAL, RoundTrips, SRTT_VIRTUAL, Ticks, seconds};
use super::settings::Settings;

/// Loss rate above which a loss reduces the window (ScreamV2Tx.cpp, as are the constants below).
const LOSS_RATE_THRESHOLD: f64 = 0.01;
/// Loss rate above which a policer is assumed.
const POLICER_LOSS_RATE_THRESHOLD: f64 = 0.1;
/// Factor of a reduction while a policer is assumed.
const LOSS_BETA_SLOW: f64 = 0.95;
/// Part of the acknowledged rate below which a target counts as low.
const TOTAL_ACKED_BITRATE_FRACTION: f64 = 0.8;
/// Factor of a back-off with a low target.
const LOW_TARGET_SCALE: f64 = 0.25;
/// Value of `maxPolicedCwnd` without a policer, bytes.
const UNPOLICED: f64 = 1.0e8;
/// Round trips since the last congestion after which a mark first bounds the window by the bytes in flight.
const LONG_AGO_RTTS: f64 = 100.0;

/// Events that reduce the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    /// Loss (`lossEvent`).
    pub loss: bool,
    /// Mark (`ecnCeEvent`).
    pub marked: bool,
    /// Delay above half its target (`virtualCeEvent`).
    pub delayed: bool,
    /// Share of marks that the delay stands for (`virtualL4sAlpha`).
    pub delay_alpha: f64,
}

impl Events {
    /// Whether there is an event.
    #[must_use]
    pub fn any(&self) -> bool {
        self.loss || self.marked || self.delayed
    }
}

/// Input of an update.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Present time.
    pub now: Ticks,
    /// Newly acknowledged bytes without the marked ones (`bytesNewlyAcked`).
    pub acked: i64,
    /// Size of a segment, bytes (`getMss`).
    pub mss: i64,
    /// Average share of marked packets (`l4sAlpha`).
    pub l4s_alpha: f64,
    /// Target of the queueing delay, s.
    pub qdelay_target: f64,
    /// Largest number of bytes in flight in these 50 ms (`maxBytesInFlight`).
    pub max_in_flight: i64,
    /// Largest number in the previous 50 ms (`maxBytesInFlightPrev`).
    pub max_in_flight_prev: i64,
    /// Target, bit/s.
    pub target: f64,
    /// Highest target, bit/s (`getTotalMaxBitrate`).
    pub target_max: f64,
    /// Rate of acknowledged bytes, bit/s (`getTotalAckedBitrate`).
    pub acked_rate: f64,
}

/// Congestion window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Window, bytes (`cwnd`).
    pub bytes: i64,
    /// Smallest window, bytes (`cwndMin`).
    pub min: i64,
    /// Inflection point: the window before its last reduction, bytes (`cwndI`).
    pub inflection: i64,
    inflection_blocked: bool,
    policed: f64,
    policing: bool,
    last_congestion: Ticks,
    /// Average share of lost packets (`lossRate`).
    pub loss_rate: f64,
    /// Whether the bytes in flight are far below the window (`isApplicationLimited`).
    pub app_limited: bool,
    /// Part of the window that a segment makes (`cwndRatio`).
    pub ratio: f64,
}

impl Window {
    /// Creates the first window.
    #[must_use]
    pub fn new(set: &Settings) -> Self {
        Self {
            bytes: set.initial_window as i64,
            min: 200,
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

    /// Sets the smallest window to `count` segments, or to the caller's minimum if that is larger.
    pub fn set_min_segments(&mut self, count: i64, mss: i64, set: &Settings) {
        self.min = (set.min_window as i64).max(count * mss);
        self.bytes = self.bytes.max(self.min);
    }

    /// Counts a lost or acknowledged packet; `mss` is that of the present second alone.
    pub fn count(&mut self, lost: bool, mss: i64) {
        let alpha = (LOSS_RATE_THRESHOLD / 4.0).min(mss as f64 / self.bytes as f64 / 2.0);
        self.loss_rate = (1.0 - alpha) * self.loss_rate + if lost { alpha } else { 0.0 };
    }

    /// Takes a loss and returns whether it reduces the window (`setLossEvent`).
    pub fn loss(&mut self, delay: &Delay, qdelay_target: f64, set: &Settings) -> bool {
        let has_queue = delay.average > qdelay_target / 4.0;
        if self.loss_rate <= LOSS_RATE_THRESHOLD && !has_queue {
            return false;
        }
        if set.policer && self.loss_rate > POLICER_LOSS_RATE_THRESHOLD && delay.average < qdelay_target / 4.0
        {
            if !self.policing {
                self.policed = (self.bytes + self.inflection) as f64 * set.beta_policer / 2.0;
                self.policing = true;
            }
        } else {
            self.policing = false;
        }
        true
    }

    /// Raises the policer's bound a little.
    pub fn raise_policer_bound(&mut self) {
        self.policed *= 1.001;
    }

    /// Bounds the window while the target is at its maximum.
    pub fn bound(&mut self, max: i64) {
        self.bytes = self.bytes.min(max);
    }

    fn scaled(&self, factor: f64) -> i64 {
        self.min.max((factor * self.bytes as f64) as i64)
    }

    fn post_congestion(&self, now: Ticks, rtt: &RoundTrips, set: &Settings) -> f64 {
        ((now - self.last_congestion) as f64 / (set.post_congestion_rtts * rtt.slow as f64)).clamp(0.0, 1.0)
    }

    /// Multiplies the window by `factor`, for coupling with other flows.
    pub fn multiply(&mut self, factor: f64) {
        self.bytes = self.scaled(factor);
    }

    /// Reduces the window for `events` and increases it.
    pub fn update(&mut self, step: &Step, events: &Events, delay: &Delay, rtt: &RoundTrips, set: &Settings) {
        self.ratio = step.mss as f64 / self.bytes as f64;
        let distance = 8.0 * (self.bytes - self.inflection) as f64 / self.inflection as f64;
        let scale = (distance * distance).clamp(0.1, 1.0);
        if events.any() && !self.inflection_blocked {
            (self.inflection, self.inflection_blocked) = (self.bytes, true);
        }
        let has_low_target = step.target < step.acked_rate * TOTAL_ACKED_BITRATE_FRACTION;
        let reactions_per_rtt = (rtt.slow as f64 / MIN_CONGESTION_BACK_OFF_INTERVAL as f64).max(1.0);
        if events.loss {
            self.bytes = self.scaled(if self.policing { LOSS_BETA_SLOW } else { set.beta_loss });
        } else if events.marked && set.ecn == super::Marks::L4s {
            let mut back_off = step.l4s_alpha / 2.0 * if has_low_target { LOW_TARGET_SCALE } else { 1.0 }
                / reactions_per_rtt;
            if delay.now < step.qdelay_target * 0.25 {
                back_off *= scale.max(0.25) * delay.scale.max(0.25);
            }
            let long_ago = LONG_AGO_RTTS * rtt.s_rtt.max(SRTT_VIRTUAL);
            if seconds(step.now - self.last_congestion) > long_ago {
                self.bytes = self.bytes.min(step.max_in_flight_prev);
            }
            self.bytes = self.scaled(1.0 - back_off);
        } else if events.marked {
            self.bytes = self.scaled(set.beta_ecn);
        } else if events.delayed {
            let back_off = events.delay_alpha / 2.0 * if has_low_target { LOW_TARGET_SCALE } else { 1.0 }
                / reactions_per_rtt;
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
        increment *= scale.max(0.25) * (rtt.s_rtt / SRTT_VIRTUAL).min(1.0) * delay.scale.max(0.1);
        increment *= 1.0 + set.mul_increase * self.bytes as f64 / step.mss as f64 * recovered * scale;
        let in_flight = step.max_in_flight.max(step.max_in_flight_prev) as f64;
        let allowed = step.mss as f64 + in_flight * set.head_room;
        self.app_limited = allowed < self.bytes as f64;
        let grown = self.bytes + (increment + 0.5) as i64;
        if grown as f64 <= allowed && step.target < step.target_max {
            self.inflection_blocked &= grown <= self.bytes;
            self.bytes = grown;
        }
        self.bytes = self.bytes.min(self.policed as i64).max(self.min);
    }
}
