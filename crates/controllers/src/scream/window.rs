//! The reference window of SCReAM version 2 (draft-ietf-ccwg-rfc8298bis-screamv2 section "Reference Window Update"): reduced at most once
//! a round trip, and increased with each report.

use super::settings::Settings;
use tidegate_core::Time;

/// What has happened since the last update, and what the update goes by. Times in seconds, sizes in bytes, rates in bit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// The present.
    pub now: Time,
    /// `bytes_newly_acked`, and those of them that were marked.
    pub acked: f64,
    /// `bytes_newly_acked_ce`.
    pub marked_bytes: f64,
    /// Whether a packet was found lost, so that the window is to be reduced for it.
    pub lost: bool,
    /// Whether a packet was marked.
    pub marked: bool,
    /// Queueing delay of the newest packet.
    pub qdelay: f64,
    /// Its average.
    pub qdelay_avg: f64,
    /// What it is to stay below.
    pub qdelay_target: f64,
    /// Smoothed round-trip time.
    pub s_rtt: f64,
    /// `l4s_alpha`.
    pub l4s_alpha: f64,
    /// `ref_wnd_delay_scale`: 1 while jitter is not looked at.
    pub delay_scale: f64,
    /// Most bytes in flight in this round trip, and in the one before.
    pub max_in_flight: f64,
    /// Most bytes in flight in the round trip before.
    pub max_in_flight_prev: f64,
    /// The target, and the most that it may be.
    pub target: f64,
    /// TARGET_BITRATE_MAX.
    pub target_max: f64,
    /// What was acknowledged lately, as a rate.
    pub acked_rate: f64,
    /// `max_policed_ref_wnd`.
    pub policed: f64,
}

/// The reference window and where it last had to be reduced.
#[derive(Clone, Debug)]
pub struct RefWindow {
    /// `ref_wnd`.
    pub bytes: f64,
    /// `ref_wnd_i`, the inflection point.
    pub inflection: f64,
    update_allowed: bool,
    /// A loss or a mark that was not answered yet.
    lost: bool,
    marked: bool,
    last_detected: Option<Time>,
    last_reaction: Option<Time>,
}

/// Seconds since then; for ever where there was none.
fn since(now: Time, then: Option<Time>) -> f64 {
    then.map_or(f64::INFINITY, |then| (now - then).as_secs_f64())
}

impl RefWindow {
    /// A window of MIN_REF_WND.
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

    /// `scl_t`: how far the window is from where it last had to be reduced; 1 where it is an eighth or more away (for a factor of 8).
    #[must_use]
    pub fn scale(&self, factor: f64) -> f64 {
        let distance = factor * (self.bytes - self.inflection) / self.inflection;
        (distance * distance).clamp(0.1, 1.0)
    }

    /// So many times as much: what coupling with other flows makes of it.
    pub fn multiply(&mut self, factor: f64, set: &Settings) {
        self.bytes = (self.bytes * factor).max(set.min_ref_wnd);
    }

    /// `ref_wnd_ratio`.
    #[must_use]
    pub fn ratio(&self, mss: f64) -> f64 {
        (mss / self.bytes).min(1.0)
    }

    /// Reduces and increases the window; says whether it was reduced.
    pub fn update(&mut self, step: &Step, set: &Settings) -> bool {
        let scale = self.scale(set.inflection_factor);
        let reduced = self.reduce(step, set, scale);
        self.increase(step, set, scale);
        self.bytes = self.bytes.min(step.policed).max(set.min_ref_wnd);
        reduced
    }

    /// What the window is multiplied by for ECN-CE under L4S.
    fn l4s_backoff(step: &Step, set: &Settings, scale: f64) -> f64 {
        let mut backoff = step.l4s_alpha / 2.0 / (step.s_rtt / set.virtual_rtt).max(1.0);
        if step.qdelay < step.qdelay_target * 0.25 {
            backoff *= scale.max(0.25) * step.delay_scale.max(0.25);
        }
        1.0 - backoff * Self::undershoot(step, set)
    }

    /// Less back-off where the target is below what was acknowledged already (section "Reference window undershoot at congestion").
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

    /// `post_congestion_scale_t`.
    fn recovered(&self, step: &Step, set: &Settings) -> f64 {
        let whole = set.post_congestion_rtts * set.virtual_rtt.max(step.s_rtt);
        (since(step.now, self.last_detected) / whole).clamp(0.0, 1.0)
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
