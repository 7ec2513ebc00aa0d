//! The control parameters: pacing rate and congestion window (draft section 5.6).

use super::probe_rtt::PROBE_RTT_CWND_GAIN;
use super::{
    Bbr3, DEFAULT_CWND_GAIN, DRAIN_PACING_GAIN, PROBE_DOWN_PACING_GAIN, PROBE_UP_CWND_GAIN,
    PROBE_UP_PACING_GAIN, STARTUP_PACING_GAIN, State,
};
use crate::traffic::tcp::offload::{MIN_TSO_SEGS, segments};
use crate::traffic::tcp::sender::Phase;
use tidegate_core::Span;

/// BBR.Headroom: the share of `inflight_longterm` left to others (section 2.8).
const HEADROOM: f64 = 0.15;
/// Segments that ProbeBW_UP may have under way in addition (section 5.6.4.2).
const PROBE_UP_BUDGET: f64 = 2.0;

impl Bbr3 {
    // --- gains (section 5.6.1) ---

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => DRAIN_PACING_GAIN,
            State::ProbeBwDown => PROBE_DOWN_PACING_GAIN,
            State::ProbeBwUp => PROBE_UP_PACING_GAIN,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => PROBE_UP_CWND_GAIN,
            State::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }

    // --- the pacing rate (section 5.6.2) ---

    pub(super) fn init_pacing_rate(&mut self, rtt: Span) {
        self.has_seen_rtt = true;
        let nominal_bandwidth = self.initial_cwnd / rtt.max(Span::from_micros(1)).as_secs_f64();
        self.pacing_rate = STARTUP_PACING_GAIN * nominal_bandwidth;
    }

    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * (1.0 - self.margin);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    pub(super) fn set_pacing_rate(&mut self) {
        if let (false, Some(rtt)) = (self.has_seen_rtt, self.rs.rtt) {
            self.init_pacing_rate(rtt);
        }
        self.set_pacing_rate_with_gain(self.pacing_gain());
    }

    // --- volumes (sections 5.6.4.2 and 5.3.3.9) ---

    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        self.min_rtt.map_or(self.initial_cwnd, |min_rtt| gain * bw * min_rtt.as_secs_f64())
    }

    fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let extra = if self.state == State::ProbeBwUp { PROBE_UP_BUDGET } else { 0.0 };
        inflight_cap.max(self.offload_budget()).max(self.min_pipe_cwnd()) + extra * self.segment
    }

    /// Three bursts: what the sending host, its network interface and the receiving host hold (section 5.5.8).
    fn offload_budget(&self) -> f64 {
        if !self.offload {
            return 0.0;
        }
        3.0 * f64::from(segments(self.pacing_rate, 0.0, self.segment, MIN_TSO_SEGS)) * self.segment
    }

    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = self.segment.max(HEADROOM * self.inflight_longterm);
        (self.inflight_longterm - headroom).max(self.min_pipe_cwnd())
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN).max(self.min_pipe_cwnd())
    }

    // --- the window (sections 5.6.4.4 to 5.6.4.7) ---

    pub(super) fn save_cwnd(&mut self) {
        let is_undisturbed = self.c.phase == Phase::Open && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_undisturbed { self.c.cwnd } else { self.prior_cwnd.max(self.c.cwnd) };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.c.cwnd = self.c.cwnd.max(self.prior_cwnd);
    }

    pub(super) fn set_cwnd(&mut self) {
        let cap = self.bdp_multiple(self.bw, self.cwnd_gain()) + self.extra_acked;
        let max_inflight = self.quantization_budget(cap);
        let (acked, cwnd) = (self.rs.newly_acked, self.c.cwnd);
        if self.full_bw_reached {
            self.c.cwnd = (cwnd + acked).min(max_inflight);
        } else if cwnd < max_inflight || (self.c.delivered as f64) < self.initial_cwnd {
            self.c.cwnd += acked;
        }
        self.c.cwnd = self.c.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.c.cwnd = self.c.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        self.c.cwnd = self.c.cwnd.min(cap.min(self.inflight_shortterm).max(self.min_pipe_cwnd()));
    }
}
