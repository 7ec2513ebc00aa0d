//! The response to losses: the bounds of both models (draft section 5.5.10).

use super::super::sack::Loss;
use super::{Bbr3, Sample, State};
use tidegate_core::Stream;

/// BBR.LossThresh: the tolerated share of losses in a round of probing (section 2.8).
const LOSS_THRESH: f64 = 0.02;
/// BBR.Beta: the share that a round with losses leaves at least (section 2.8).
const BETA: f64 = 0.7;

impl Bbr3 {
    // --- while it probes (section 5.5.10.2) ---

    pub(super) fn is_inflight_too_high(&self, sample: &Sample) -> bool {
        sample.lost > sample.tx_in_flight * LOSS_THRESH
    }

    /// NoteLoss; the state for an undoing is not kept but for the window.
    pub(super) fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.c.delivered;
            self.save_cwnd();
        }
        self.is_loss_in_round = true;
    }

    pub(super) fn handle_lost_packet(&mut self, loss: &Loss, luck: &mut Stream) {
        self.note_loss();
        self.ranges_lost += u32::from(self.lost_end != Some(loss.start));
        self.lost_end = Some(loss.end);
        if !self.is_bw_probe_sample {
            return;
        }
        let mut sample = Sample {
            tx_in_flight: loss.snapshot.tx_in_flight as f64,
            lost: (loss.lost - loss.snapshot.lost) as f64,
            is_app_limited: loss.snapshot.app_limited,
            ..self.rs
        };
        if self.is_inflight_too_high(&sample) {
            sample.tx_in_flight = inflight_at_loss(&sample, (loss.end - loss.start) as f64);
            self.handle_inflight_too_high(&sample, luck);
        }
    }

    fn handle_inflight_too_high(&mut self, sample: &Sample, luck: &mut Stream) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !sample.is_app_limited {
            self.inflight_longterm = sample.tx_in_flight.max(self.target_inflight() * BETA);
        }
        if self.state == State::ProbeBwUp {
            self.start_probe_bw_down(luck);
        }
    }

    // --- while it does not (section 5.5.10.3) ---

    pub(super) fn update_latest_delivery_signals(&mut self) {
        self.bw_latest = self.bw_latest.max(self.rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(self.rs.delivered);
        self.loss_round_start =
            self.rs.prior_delivered.is_some_and(|prior| prior >= self.loss_round_delivered);
        if self.loss_round_start {
            self.loss_round_delivered = self.c.delivered;
        }
    }

    pub(super) fn advance_latest_delivery_signals(&mut self) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (self.rs.delivery_rate, self.rs.delivered);
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    pub(super) fn update_congestion_signals(&mut self) {
        self.update_max_bw();
        if self.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.is_loss_in_round = false;
        }
    }

    /// AdaptLowerBoundsFromCongestion, InitLowerBounds and LossLowerBounds.
    fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.is_probing_bw() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.c.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    pub(super) fn reset_short_term_model(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }
}

/// InflightAtLoss: the volume under way at which losses crossed LossThresh, within a segment of `size` bytes.
fn inflight_at_loss(sample: &Sample, size: f64) -> f64 {
    let inflight_prev = sample.tx_in_flight - size;
    let lost_prev = sample.lost - size;
    let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
    inflight_prev + lost_prefix
}
