//! BBR version 3 (draft-ietf-ccwg-bbr of August 2026): paces at the largest delivery rate of the last two cycles of
//! probing, keeps about a bandwidth-delay product under way, and answers losses.
//!
//! A long-term model (`max_bw`, `inflight_longterm`) changes by what probes show, and a short-term one
//! (`bw_shortterm`, `inflight_shortterm`) falls with each round that has a loss, until the next probe. Names of
//! fields, constants and functions are those of the draft in the spelling of Rust; `c` and `rs` are its `C` and `RS`.
//! Volumes are in bytes, rates in bytes a second.
//!
//! Without the setting `offload` segments leave each on their own, so that `send_quantum` is a segment, and
//! `offload_budget`, three of them, is below MinPipeCwnd and has no effect (sections 5.5.8 and 5.6.3). As this TCP detects no spurious recovery, nothing
//! is undone (section 5.5.11). BBR.PacingMarginPercent is the setting `pacing_margin`. Random numbers are those of the
//! sender's stream "model".

mod control;
mod loss;
mod probe_bw;
mod probe_rtt;
#[cfg(test)]
mod tests;

use super::TcpSettings;
use super::max_filter::MaxFilter;
use super::model::{AckEvent, LossEvent, Model};
use super::sender::Phase;
use super::window::{CongestionControl, Window};
use tidegate_core::{Span, Stream, Time};

/// BBR.StartupPacingGain: the smallest gain that doubles the sending rate each round (section 2.5).
const STARTUP_PACING_GAIN: f64 = 4.0 * std::f64::consts::LN_2;
/// BBR.DrainPacingGain (section 2.5).
const DRAIN_PACING_GAIN: f64 = 0.5;
/// Pacing gains of ProbeBW_DOWN and ProbeBW_UP (sections 5.3.3.1 and 5.3.3.5).
const PROBE_DOWN_PACING_GAIN: f64 = 0.9;
const PROBE_UP_PACING_GAIN: f64 = 1.25;
/// BBR.DefaultCwndGain (section 2.6), and the one of ProbeBW_UP (section 5.3.3.5).
const DEFAULT_CWND_GAIN: f64 = 2.0;
const PROBE_UP_CWND_GAIN: f64 = 2.25;
/// BBR.MinPipeCwnd, in segments (section 2.8).
const MIN_PIPE_CWND: f64 = 4.0;
/// The pipe is full when the delivery rate has not grown by this factor for this number of rounds (section 5.3.1.2).
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_COUNT: u32 = 3;
/// BBRStartupFullLossCnt: the discontiguous ranges lost in a round by which Startup ends (section 5.3.1.3).
const STARTUP_FULL_LOSS_CNT: u32 = 6;
/// Rounds of Drain after which it ends in any case (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// BBR.MaxBwFilterLen, in cycles of ProbeBW: the current and the previous one (section 2.11).
const MAX_BW_FILTER_LEN: u64 = 2;
/// BBR.ExtraAckedFilterLen, in rounds (section 2.12), and the length in Startup (section 5.5.9).
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
const STARTUP_EXTRA_ACKED_FILTER_LEN: u64 = 1;
/// The assumed round trip before the first measurement (section 5.6.2).
const NOMINAL_RTT: Span = Span::from_millis(1);

/// BBR.state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// BBR.ack_phase: the meaning of acknowledgements for the probing of bandwidth (section 2.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state of the connection (`C`) at an event.
#[derive(Clone, Copy, Debug)]
struct Connection {
    now: Time,
    delivered: u64,
    inflight: f64,
    cwnd: f64,
    phase: Phase,
    /// Whether the window was fully used at any time in this round, and in the one before.
    cwnd_limited: [bool; 2],
}

/// The rate sample (`RS`) of an acknowledgement, or of a loss.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    newly_acked: f64,
    delivered: f64,
    /// Zero without a reliable rate.
    delivery_rate: f64,
    /// `None` where nothing was delivered.
    prior_delivered: Option<u64>,
    is_app_limited: bool,
    tx_in_flight: f64,
    lost: f64,
    rtt: Option<Span>,
}

impl Sample {
    fn of(ack: &AckEvent) -> Self {
        let since = ack.latest.unwrap_or_default();
        Self {
            newly_acked: ack.acked as f64,
            delivered: ack.latest.map_or(0.0, |latest| (ack.delivered - latest.delivered) as f64),
            delivery_rate: ack.sample.map_or(0.0, |sample| sample.rate()),
            prior_delivered: ack.latest.map(|latest| latest.delivered),
            is_app_limited: since.app_limited,
            tx_in_flight: since.tx_in_flight as f64,
            lost: ack.latest.map_or(0.0, |latest| (ack.lost - latest.lost) as f64),
            rtt: ack.rtt,
        }
    }
}

/// The model of the path, with the pacing rate and window derived from it.
#[derive(Clone, Debug)]
pub(super) struct Bbr3 {
    segment: f64,
    initial_cwnd: f64,
    margin: f64,
    offload: bool,
    c: Connection,
    rs: Sample,
    state: State,
    pacing_rate: f64,
    has_seen_rtt: bool,
    /// Rounds: one ends when data sent after its beginning is delivered (section 5.5.1).
    round_count: u64,
    round_start: bool,
    next_round_delivered: u64,
    idle_restart: bool,
    drain_start_round: u64,
    max_bw: f64,
    max_bw_filter: MaxFilter,
    cycle_count: u64,
    /// The short-term model, and the bound of the long-term one; infinite without a bound.
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    bw: f64,
    extra_acked: f64,
    extra_acked_filter: MaxFilter,
    extra_acked_interval_start: Time,
    extra_acked_delivered: f64,
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    /// The delivery of the last round (section 5.5.10.3).
    bw_latest: f64,
    inflight_latest: f64,
    is_loss_in_round: bool,
    loss_round_delivered: u64,
    loss_round_start: bool,
    /// Discontiguous ranges lost in this round of losses, the end of the last of them, and whether a loss was
    /// answered that no segment was counted for, as a probe repaired it.
    ranges_lost: u32,
    lost_end: Option<u64>,
    has_repaired: bool,
    /// Bytes delivered when this recovery began.
    recovery_delivered: u64,
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    bw_probe_up_rounds: u32,
    rounds_since_probe_up: u64,
    bw_probe_wait: Span,
    cycle_stamp: Time,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    /// The smallest round trip of the connection, of the last ten seconds and of the last five.
    connection_min_rtt: Option<Span>,
    min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    probe_rtt_min_delay: Option<Span>,
    probe_rtt_min_stamp: Time,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    /// The window before it was cut for a repair or for [`State::ProbeRtt`].
    prior_cwnd: f64,
}

impl Bbr3 {
    /// OnInit (section 5.2.1).
    pub(super) fn new(settings: &TcpSettings, now: Time) -> Self {
        let Window { segment, initial, .. } = Window::new(settings.segment, settings.initial_window);
        Self {
            segment,
            initial_cwnd: initial,
            margin: settings.pacing_margin,
            offload: settings.offload,
            c: Connection {
                now,
                delivered: 0,
                inflight: 0.0,
                cwnd: initial,
                phase: Phase::Open,
                cwnd_limited: [false; 2],
            },
            rs: Sample::default(),
            state: State::Startup,
            pacing_rate: STARTUP_PACING_GAIN * initial / NOMINAL_RTT.as_secs_f64(),
            has_seen_rtt: false,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            idle_restart: false,
            drain_start_round: 0,
            max_bw: 0.0,
            max_bw_filter: MaxFilter::new(MAX_BW_FILTER_LEN - 1),
            cycle_count: 0,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            bw: 0.0,
            extra_acked: 0.0,
            extra_acked_filter: MaxFilter::new(STARTUP_EXTRA_ACKED_FILTER_LEN),
            extra_acked_interval_start: now,
            extra_acked_delivered: 0.0,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            is_loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            ranges_lost: 0,
            lost_end: None,
            has_repaired: false,
            recovery_delivered: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: Span::ZERO,
            cycle_stamp: now,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            connection_min_rtt: None,
            min_rtt: None,
            min_rtt_stamp: now,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0.0,
        }
    }

    /// UpdateModelAndState (section 5.2.3).
    fn update_model_and_state(&mut self, luck: &mut Stream) {
        self.update_latest_delivery_signals();
        self.update_congestion_signals();
        self.update_ack_aggregation();
        self.check_full_bw_reached();
        self.check_startup_done();
        self.check_drain_done(luck);
        self.update_probe_bw_cycle_phase(luck);
        self.update_min_rtt();
        self.check_probe_rtt(luck);
        self.advance_latest_delivery_signals();
        self.bw = self.max_bw.min(self.bw_shortterm);
    }

    fn min_pipe_cwnd(&self) -> f64 {
        MIN_PIPE_CWND * self.segment
    }

    // --- rounds and the bandwidth (sections 5.5.1 and 5.5.5) ---

    fn start_round(&mut self) {
        self.next_round_delivered = self.c.delivered;
    }

    fn update_round(&mut self) {
        self.round_start = self.rs.prior_delivered.is_some_and(|prior| prior >= self.next_round_delivered);
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.c.cwnd_limited = [false, self.c.cwnd_limited[0]];
        }
    }

    fn update_max_bw(&mut self) {
        self.update_round();
        let rate = self.rs.delivery_rate;
        if rate > 0.0 && (rate >= self.max_bw || !self.rs.is_app_limited) {
            self.max_bw_filter.update(self.cycle_count, rate);
            self.max_bw = self.max_bw_filter.get();
        }
    }

    /// C.is_cwnd_limited (section 2.2).
    fn is_cwnd_limited(&self) -> bool {
        self.c.cwnd_limited.contains(&true)
    }

    /// UpdateACKAggregation (section 5.5.9).
    fn update_ack_aggregation(&mut self) {
        let interval = self.c.now.saturating_since(self.extra_acked_interval_start);
        let mut expected_delivered = self.bw * interval.as_secs_f64();
        if self.extra_acked_delivered <= expected_delivered {
            (self.extra_acked_delivered, self.extra_acked_interval_start) = (0.0, self.c.now);
            expected_delivered = 0.0;
        }
        self.extra_acked_delivered += self.rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected_delivered).min(self.c.cwnd);
        if self.full_bw_reached {
            self.extra_acked_filter.set_window(EXTRA_ACKED_FILTER_LEN);
        }
        self.extra_acked_filter.update(self.round_count, extra);
        self.extra_acked = self.extra_acked_filter.get();
    }

    // --- Startup and Drain (sections 5.3.1 and 5.3.2) ---

    fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    /// CheckFullBWReached; an acknowledgement without a reliable rate does not count.
    fn check_full_bw_reached(&mut self) {
        let rate = self.rs.delivery_rate;
        if self.full_bw_now || !self.round_start || self.rs.is_app_limited || rate == 0.0 {
            return;
        }
        if rate >= FULL_BW_GROWTH * self.full_bw {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_COUNT;
        self.full_bw_reached |= self.full_bw_now;
    }

    fn check_startup_done(&mut self) {
        self.check_startup_high_loss();
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    /// CheckStartupHighLoss, at the end of a round of losses (section 5.3.1.3).
    fn check_startup_high_loss(&mut self) {
        if !self.loss_round_start {
            return;
        }
        let ranges_lost = std::mem::take(&mut self.ranges_lost);
        let has_recovered_for_a_round = self.c.phase == Phase::Recovery
            && self.rs.prior_delivered.is_some_and(|prior| prior >= self.recovery_delivered);
        if self.state == State::Startup
            && !self.full_bw_reached
            && has_recovered_for_a_round
            && ranges_lost >= STARTUP_FULL_LOSS_CNT
            && self.is_inflight_too_high(&self.rs)
        {
            (self.full_bw_now, self.full_bw_reached) = (true, true);
            self.inflight_longterm = self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest);
        }
    }

    fn check_drain_done(&mut self, luck: &mut Stream) {
        if self.state == State::Drain
            && (self.c.inflight <= self.inflight(self.bw, 1.0)
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down(luck);
        }
    }

    /// Takes over the phase of loss recovery: when it ends the window is restored (section 5.6.4.4).
    fn follow_phase(&mut self, phase: Phase) {
        let before = std::mem::replace(&mut self.c.phase, phase);
        if phase == Phase::Recovery && before != Phase::Recovery {
            self.recovery_delivered = self.c.delivered;
        }
        if phase == Phase::Open && before != Phase::Open {
            self.restore_cwnd();
        }
    }
}

impl Model for Bbr3 {
    /// C.min_rtt, of the whole connection (section 4.1.2.1.1).
    fn shortest_interval(&self) -> Option<Span> {
        self.connection_min_rtt
    }

    fn is_probing_rtt(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn opened(&mut self, now: Time, rtt: Span, cwnd: f64) {
        (self.connection_min_rtt, self.min_rtt, self.probe_rtt_min_delay) = (Some(rtt), Some(rtt), Some(rtt));
        (self.min_rtt_stamp, self.probe_rtt_min_stamp, self.c.cwnd) = (now, now, cwnd);
        self.init_pacing_rate(rtt);
    }

    /// UpdateOnACK (section 5.2.3).
    fn acked(&mut self, ack: &AckEvent, cwnd: &mut f64, luck: &mut Stream) {
        (self.c.now, self.c.delivered, self.c.cwnd) = (ack.now, ack.delivered, *cwnd);
        self.c.inflight = ack.in_flight as f64;
        self.c.cwnd_limited[0] |= ack.prior_in_flight as f64 + self.segment > *cwnd;
        self.rs = Sample::of(ack);
        self.follow_phase(ack.phase);
        if std::mem::take(&mut self.has_repaired) {
            self.note_loss();
        }
        self.update_model_and_state(luck);
        self.set_pacing_rate();
        self.set_cwnd();
        *cwnd = self.c.cwnd;
    }

    /// HandleLostPacket (section 5.5.10.2).
    fn lost(&mut self, event: &LossEvent, luck: &mut Stream) {
        (self.c.now, self.c.delivered, self.c.cwnd) = (event.now, event.delivered, event.cwnd);
        self.c.inflight = event.in_flight as f64;
        self.follow_phase(event.phase);
        self.handle_lost_packet(&event.loss, luck);
    }

    /// OnEnterRTO (section 5.6.4.4); the window is cut by [`CongestionControl::timeout`].
    fn timeout(&mut self, _now: Time, _delivered: u64, _lost: u64, _luck: &mut Stream) {
        self.c.phase = Phase::Timeout;
    }

    /// HandleRestartFromIdle (section 5.4.1).
    fn restart(&mut self, now: Time, cwnd: &mut f64, luck: &mut Stream) {
        (self.c.now, self.c.cwnd, self.c.inflight) = (now, *cwnd, 0.0);
        self.idle_restart = true;
        self.extra_acked_interval_start = now;
        if self.is_in_a_probe_bw_state() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(luck);
        }
        *cwnd = self.c.cwnd;
    }
}

/// The model sets the window, so the methods of other algorithms do not change it.
impl CongestionControl for Bbr3 {
    fn avoid(&mut self, _window: &mut Window, _now: Time, _acked: f64, _srtt: Option<Span>) {}

    fn grow(&mut self, _window: &mut Window, _now: Time, _acked: u64, _srtt: Option<Span>) {}

    /// OnEnterFastRecovery (section 5.6.4.4), also for a loss that a probe repaired (section 5.5.10.3).
    fn loss(&mut self, window: &mut Window, _flight: u64) {
        self.c.cwnd = window.cwnd;
        self.save_cwnd();
        self.has_repaired = true;
    }

    fn fall(&self, _window: &mut Window) {}

    fn timeout(&mut self, window: &mut Window, _now: Time, _flight: Option<u64>, _max: u64) {
        self.c.cwnd = window.cwnd;
        self.save_cwnd();
        window.cwnd = window.segment;
    }

    fn restart(&mut self, _window: &mut Window) {}

    fn pacing_rate(&self, _window: &Window, _srtt: Option<Span>) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn model(&mut self) -> Option<&mut dyn Model> {
        Some(self)
    }
}
