//! ProbeBW: cycles of DOWN, CRUISE, REFILL and UP (draft section 5.3.3).

use super::{AckPhase, Bbr3, State};
use tidegate_core::{Span, Stream};

/// The shortest wait for the next probe, and the length of the interval of which it is drawn (section 5.3.3.8).
const BW_PROBE_WAIT: Span = Span::from_secs(2);
const BW_PROBE_WAIT_RANDOM: Span = Span::from_secs(1);
/// The most rounds between probes, for Reno and CUBIC (T_reno_bound of section 5.3.3.8).
const RENO_ROUNDS: f64 = 63.0;
/// The largest number of doublings of the growth of `inflight_longterm` (section 5.3.3.9).
const BW_PROBE_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    pub(super) fn is_in_a_probe_bw_state(&self) -> bool {
        use State::{ProbeBwCruise, ProbeBwDown, ProbeBwRefill, ProbeBwUp};
        matches!(self.state, ProbeBwDown | ProbeBwCruise | ProbeBwRefill | ProbeBwUp)
    }

    // --- the beginnings of the states (section 5.3.3.9) ---

    pub(super) fn start_probe_bw_down(&mut self, luck: &mut Stream) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait(luck);
        self.cycle_stamp = self.c.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
    }

    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = State::ProbeBwCruise;
    }

    fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
    }

    fn start_probe_bw_up(&mut self) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = self.rs.delivery_rate;
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, luck: &mut Stream) {
        if !self.full_bw_reached || self.adapt_long_term_model() {
            return;
        }
        let waits = matches!(self.state, State::ProbeBwDown | State::ProbeBwCruise);
        if waits && self.is_time_to_probe_bw() {
            self.start_probe_bw_refill();
        } else if self.state == State::ProbeBwDown && self.is_time_to_cruise() {
            self.start_probe_bw_cruise();
        } else if self.state == State::ProbeBwRefill && self.round_start {
            self.is_bw_probe_sample = true;
            self.start_probe_bw_up();
        } else if self.state == State::ProbeBwUp && self.is_time_to_go_down() {
            self.prev_probe_too_high = false;
            self.start_probe_bw_down(luck);
        }
    }

    // --- the times of probes (section 5.3.3.8) ---

    pub(super) fn is_time_to_probe_bw(&self) -> bool {
        self.c.now > self.cycle_stamp + self.bw_probe_wait || self.is_reno_coexistence_probe_time()
    }

    pub(super) fn pick_probe_wait(&mut self, luck: &mut Stream) {
        self.rounds_since_probe_up = luck.below(2);
        self.bw_probe_wait = BW_PROBE_WAIT + BW_PROBE_WAIT_RANDOM.scaled(luck.uniform());
    }

    pub(super) fn is_reno_coexistence_probe_time(&self) -> bool {
        let rounds = (self.target_inflight() / self.segment).min(RENO_ROUNDS);
        self.rounds_since_probe_up as f64 >= rounds
    }

    /// TargetInflight: the estimated bandwidth-delay product, unless congestion cut the window.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0).min(self.c.cwnd)
    }

    // --- transitions and the long-term model (section 5.3.3.9) ---

    fn is_time_to_cruise(&self) -> bool {
        self.c.inflight <= self.inflight_with_headroom() && self.c.inflight <= self.inflight(self.max_bw, 1.0)
    }

    fn is_time_to_go_down(&mut self) -> bool {
        if self.prev_probe_too_high && self.c.inflight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.c.cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
            return false;
        }
        self.full_bw_now
    }

    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(BW_PROBE_UP_ROUNDS);
        self.probe_up_acked_per_inc = (self.c.cwnd / growth_this_round).max(self.segment);
    }

    fn probe_inflight_longterm_upward(&mut self) {
        if !self.is_cwnd_limited() || self.c.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += self.rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * self.segment;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// AdaptLongTermModel. Returns whether it decided a transition.
    fn adapt_long_term_model(&mut self) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            let is_in_probe_bw = self.is_in_a_probe_bw_state();
            if is_in_probe_bw && !self.rs.is_app_limited {
                // AdvanceMaxBwFilter (section 5.5.6)
                self.cycle_count += 1;
            }
            if is_in_probe_bw && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if self.is_inflight_too_high(&self.rs) || self.inflight_longterm.is_infinite() {
            return false;
        }
        self.inflight_longterm = self.inflight_longterm.max(self.rs.tx_in_flight);
        if self.state == State::ProbeBwUp {
            self.probe_inflight_longterm_upward();
        }
        false
    }
}
