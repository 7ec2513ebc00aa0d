//! Reference window of SCReAM version 2 (draft-ietf-ccwg-rfc8298bis-screamv2 section "Reference Window Update"), reduced
//! at most once per round trip, and increased with each report.

use super::settings::Settings;
use tidegate_core::Time;

/// Input of an update: events since the last one, and the present state. Times in s, sizes in bytes, rates in bit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// Present time.
    pub now: Time,
    /// Newly acknowledged bytes (`bytes_newly_acked`).
    pub acked: f64,
    /// Marked bytes among them (`bytes_newly_acked_ce`).
    pub marked_bytes: f64,
    /// Whether losses reduce the window.
    pub lost: bool,
    /// Whether a packet was marked.
    pub marked: bool,
    /// Queueing delay of the newest packet.
    pub qdelay: f64,
    /// Average queueing delay.
    pub qdelay_avg: f64,
    /// Target of the queueing delay.
    pub qdelay_target: f64,
    /// Smoothed round-trip time.
    pub s_rtt: f64,
    /// Average share of marked packets (`l4s_alpha`).
    pub l4s_alpha: f64,
    /// Factor by the delay's variation (`ref_wnd_delay_scale`); 1 while jitter is ignored.
    pub delay_scale: f64,
    /// Largest number of bytes in flight in this round trip.
    pub max_in_flight: f64,
    /// Largest number of bytes in flight in the previous round trip.
    pub max_in_flight_prev: f64,
    /// Target.
    pub target: f64,
    /// Highest target (TARGET_BITRATE_MAX).
    pub target_max: f64,
    /// Rate of acknowledged bytes.
    pub acked_rate: f64,
    /// Bound of the window by a policer (`max_policed_ref_wnd`).
    pub policed: f64,
}

/// Reference window and its last reduction.
#[derive(Clone, Debug)]
pub struct RefWindow {
    /// Window, bytes (`ref_wnd`).
    pub bytes: f64,
    /// Inflection point: the window before its last reduction, bytes (`ref_wnd_i`).
    pub inflection: f64,
    update_allowed: bool,
    /// Whether there is a loss to which the window has not reacted yet.
    lost: bool,
    /// Whether there is such a mark.
    marked: bool,
    last_detected: Option<Time>,
    last_reaction: Option<Time>,
}

/// Seconds since `last`; infinite without it.
fn since(now: Time, last: Option<Time>) -> f64 {
    last.map_or(f64::INFINITY, |last| (now - last).as_secs_f64())
}

impl RefWindow {
    /// Creates a window of MIN_REF_WND.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            bytes: settings.min_ref_wnd,
            inflection: 1.0,
            update_allowed: true,
            lost: false,
            marked: false,
            last_detected: None,
            last_reaction: None,
        }
    }

    /// Distance of the window from its inflection point (`scl_t`), from 0.1 to 1; with a factor of 8, 1 from an eighth on.
    #[must_use]
    pub fn scale(&self, factor: f64) -> f64 {
        let distance = factor * (self.bytes - self.inflection) / self.inflection;
        (distance * distance).clamp(0.1, 1.0)
    }

    /// Multiplies the window by `factor`, for coupling with other flows.
    pub fn multiply(&mut self, factor: f64, set: &Settings) {
        self.bytes = (self.bytes * factor).max(set.min_ref_wnd);
    }

    /// Part of the window that a segment makes (`ref_wnd_ratio`).
    #[must_use]
    pub fn ratio(&self, mss: f64) -> f64 {
        (mss / self.bytes).min(1.0)
    }

    /// Reduces and increases the window; returns whether it was reduced.
    pub fn update(&mut self, step: &Step, set: &Settings) -> bool {
        let scale = self.scale(set.inflection_factor);
        let reduced = self.reduce(step, set, scale);
        self.increase(step, set, scale);
        self.bytes = self.bytes.min(step.policed).max(set.min_ref_wnd);
        reduced
    }

    /// Factor of a reduction for ECN-CE under L4S.
    fn l4s_backoff(step: &Step, set: &Settings, scale: f64) -> f64 {
        let mut backoff = step.l4s_alpha / 2.0 / (step.s_rtt / set.virtual_rtt).max(1.0);
        if step.qdelay < step.qdelay_target * 0.25 {
            backoff *= scale.max(0.25) * step.delay_scale.max(0.25);
        }
        1.0 - backoff * Self::undershoot(step, set)
    }

    /// Factor of a back-off, below 1 if the target is below the rate of acknowledged bytes (section "Reference window
    /// undershoot at congestion").
    fn undershoot(step: &Step, set: &Settings) -> f64 {
        if step.target < step.acked_rate * set.acked_margin { set.low_target_scale } else { 1.0 }
    }

    fn reduce(&mut self, step: &Step, set: &Settings, scale: f64) -> bool {
        self.lost |= step.lost;
        self.marked |= step.marked;
        if self.lost || self.marked {
            self.last_detected = Some(step.now);
        }
        let waited = since(step.now, self.last_reaction);
        if waited < set.virtual_rtt.min(step.s_rtt) {
            return false;
        }
        let half = step.qdelay_target / 2.0;
        let virtual_alpha = ((step.qdelay_avg - half) / half).clamp(0.0, 1.0);
        let (lost, marked) = (self.lost, self.marked && !self.lost);
        let is_virtual = !lost && !marked && step.qdelay_avg > half;
        if !(lost || marked || is_virtual) {
            return false;
        }
        if self.update_allowed {
            self.inflection = self.bytes;
            self.update_allowed = false;
        }
        if lost {
            self.bytes *= set.beta_loss;
        } else if marked && !set.is_l4s() {
            self.bytes *= set.beta_ecn;
        } else if marked {
            if waited > 100.0 * set.virtual_rtt.max(step.s_rtt) {
                // the window may have grown far above what is in flight
                self.bytes = self.bytes.min(step.max_in_flight_prev);
            }
            self.bytes *= Self::l4s_backoff(step, set, scale);
        } else {
            let backoff = virtual_alpha / 2.0 / (step.s_rtt / set.virtual_rtt).max(1.0);
            self.bytes *= 1.0 - backoff * Self::undershoot(step, set);
        }
        self.bytes = self.bytes.max(set.min_ref_wnd);
        (self.lost, self.marked) = (false, false);
        self.last_reaction = Some(step.now);
        true
    }

    /// Recovery since the last congestion, from 0 to 1 (`post_congestion_scale_t`).
    fn recovered(&self, step: &Step, set: &Settings) -> f64 {
        let recovery_time = set.post_congestion_rtts * set.virtual_rtt.max(step.s_rtt);
        (since(step.now, self.last_detected) / recovery_time).clamp(0.0, 1.0)
    }

    fn increase(&mut self, step: &Step, set: &Settings, scale: f64) {
        let mut increment = (step.acked - step.marked_bytes).max(0.0) * self.ratio(set.mss);
        increment *= (step.s_rtt / set.virtual_rtt).min(1.0);
        increment *= scale.max(0.25) * step.delay_scale.max(0.1);
        increment *= 1.0 + set.mul_increase * self.bytes / set.mss * self.recovered(step, set) * scale;
        // whole bytes, as in the draft
        let grown = tidegate_core::math::floor(self.bytes + increment);
        let allowed = set.mss + step.max_in_flight.max(step.max_in_flight_prev) * set.head_room;
        if grown <= allowed && step.target < step.target_max && grown > self.bytes {
            self.bytes = grown;
            self.update_allowed = true;
        }
    }
}
