//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, Linux's `net/ipv4/tcp_bbr.c`): paces at the largest
//! delivery rate of the last rounds, and keeps about a bandwidth-delay product under way, by the smallest round trip
//! of ten seconds.
//!
//! Where the two differ it follows the draft: a round trip equal to the minimum refreshes it, too (in Linux only a
//! smaller one). From Linux are the policer, the allowance for bunched acknowledgements, and the margin of 1 % by
//! which it paces below the bandwidth. Quanta larger than a segment, and a window rounded to even numbers, come with
//! the setting `offload`. It lacks the test whether an acknowledgement was delayed.
//!
//! Names of constants, fields and functions are those of `net/ipv4/tcp_bbr.c`, without their prefix `bbr_`.

mod aggregation;
mod policer;

use super::TcpSettings;
use super::max_filter::MaxFilter;
use super::model::{AckEvent, Model};
use super::offload::{MIN_TSO_SEGS, segments};
use super::sender::Phase;
use super::window::{CongestionControl, Window};
use aggregation::Aggregation;
use policer::{Policer, Progress, Verdict};
use tidegate_core::{Span, Stream, Time};

/// 2 / ln 2: the smallest gain that doubles the delivered data each round (BBRHighGain), and its inverse, which drains
/// the resulting queue in one round (draft section 4.3.2.2).
const HIGH_GAIN: f64 = 2.0 / std::f64::consts::LN_2;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// Pacing gains of a cycle: probe for more bandwidth, drain, cruise (draft section 4.3.4.2).
const PACING_GAIN: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Number of phases in which a cycle may begin: all except the one that drains (draft section 4.3.4.3).
const CYCLE_RAND: u64 = 7;
/// Window as a multiple of the bandwidth-delay product, which allows for delayed and bunched acknowledgements (draft
/// section 4.2.3.2).
const CWND_GAIN: f64 = 2.0;
/// Rounds over which the largest bandwidth counts (BtlBwFilterLen: a cycle and two).
const BW_RTTS: u64 = 10;
/// Time over which the smallest round trip counts (RTpropFilterLen; `bbr_min_rtt_win_sec`).
const MIN_RTT_WIN: Span = Span::from_secs(10);
/// Time with only [`CWND_MIN_TARGET`] under way, to measure the round trip anew (ProbeRTTDuration;
/// `bbr_probe_rtt_mode_ms`).
const PROBE_RTT_MODE: Span = Span::from_millis(200);
/// Smallest window that is set on purpose, in segments (BBRMinPipeCwnd).
const CWND_MIN_TARGET: f64 = 4.0;
/// The pipe is full when the bandwidth has not grown by this factor for this number of rounds (draft section 4.3.2.2).
const FULL_BW_THRESH: f64 = 1.25;
const FULL_BW_CNT: u32 = 3;
/// Segments in addition to the bandwidth-delay product: one each for the sending host, its network interface and the
/// receiving host (draft section 4.2.3.2: three quanta).
const QUANTA: f64 = 3.0;
/// The rate below which a burst has a segment at least, and not two (`bbr_min_tso_rate`: 1.2 Mbit/s), bytes a second.
const MIN_TSO_RATE: f64 = 150_000.0;
/// The assumed round trip before the first measurement (`bbr_init_pacing_rate_from_rtt`).
const NOMINAL_RTT: Span = Span::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The model of the path, with the pacing rate and window derived from it.
#[derive(Debug)]
pub(super) struct Bbr {
    segment: f64,
    initial: f64,
    mode: Mode,
    bandwidth: MaxFilter,
    policer: Policer,
    aggregation: Aggregation,
    /// Number of rounds, and delivered bytes at which the next one begins: a round ends when data sent after its
    /// beginning is acknowledged.
    rtt_cnt: u64,
    next_rtt_delivered: u64,
    round_start: bool,
    /// The largest bandwidth of the startup so far, the number of rounds without growth, and whether the pipe is full.
    full_bw: f64,
    full_bw_cnt: u32,
    full_bw_reached: bool,
    min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    cycle_idx: usize,
    cycle_stamp: Time,
    pacing_rate: f64,
    has_seen_rtt: bool,
    /// The window before it was cut for a repair or for [`Mode::ProbeRtt`].
    prior_cwnd: f64,
    /// Whether only as much is sent as arrives, as in the first round of a recovery.
    packet_conservation: bool,
    prev_phase: Phase,
    idle_restart: bool,
    lost: u64,
    margin: f64,
    offload: bool,
}

impl Bbr {
    pub(super) fn new(settings: &TcpSettings, now: Time) -> Self {
        let Window { segment, initial, .. } = Window::new(settings.segment, settings.initial_window);
        Self {
            margin: settings.pacing_margin,
            offload: settings.offload,
            segment,
            initial,
            mode: Mode::Startup,
            bandwidth: MaxFilter::new(BW_RTTS),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            round_start: false,
            full_bw: 0.0,
            full_bw_cnt: 0,
            full_bw_reached: false,
            min_rtt: None,
            min_rtt_stamp: now,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            cycle_idx: 0,
            cycle_stamp: now,
            pacing_rate: HIGH_GAIN * initial / NOMINAL_RTT.as_secs_f64(),
            has_seen_rtt: false,
            prior_cwnd: 0.0,
            packet_conservation: false,
            prev_phase: Phase::Open,
            idle_restart: false,
            lost: 0,
        }
    }

    fn init_pacing_rate_from_rtt(&mut self, rtt: Span, cwnd: f64) {
        self.has_seen_rtt = true;
        self.pacing_rate = HIGH_GAIN * cwnd / rtt.max(Span::from_micros(1)).as_secs_f64();
    }

    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bandwidth.get())
    }

    fn update_bw(&mut self, ack: &AckEvent, losses: bool, luck: &mut Stream) {
        self.round_start = false;
        let Some(sample) = ack.sample else { return };
        if sample.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = ack.delivered;
            self.rtt_cnt += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        let progress = Progress {
            now: ack.now,
            delivered: ack.delivered,
            lost: ack.lost,
            losses,
            round_start: self.round_start,
            app_limited: sample.app_limited,
        };
        if self.policer.acked(&progress, self.mode == Mode::ProbeBw) == Verdict::Over {
            self.reset_probe_bw_mode(ack.now, luck);
        }
        // a sample limited by the application counts only if it exceeds the estimate
        if !sample.app_limited || sample.rate() >= self.bandwidth.get() {
            self.bandwidth.update(self.rtt_cnt, sample.rate());
        }
    }

    /// Bytes to have under way for a path of `bandwidth` bytes a second, times `gain` (BBRInflight).
    fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        let Some(min_rtt) = self.min_rtt else { return self.initial };
        // on a path with a small product the cycle could not probe for more
        let probes = self.mode == Mode::ProbeBw && self.cycle_idx == 0;
        let extra = if probes { 2.0 } else { 0.0 };
        let product = gain * bandwidth * min_rtt.as_secs_f64();
        if !self.offload {
            return product + (QUANTA + extra) * self.segment;
        }
        // `bbr_bdp` rounds up to segments, and `bbr_quantization_budget` to pairs
        let quanta = QUANTA * f64::from(segments(self.pacing_rate, 0.0, self.segment, self.min_tso_segs()));
        let pairs = (((product / self.segment).ceil() + quanta) / 2.0).ceil();
        (2.0 * pairs + extra) * self.segment
    }

    fn is_next_cycle_phase(&self, ack: &AckEvent, losses: bool) -> bool {
        let is_full_length = ack.now - self.cycle_stamp > self.min_rtt.unwrap_or_default();
        let gain = self.pacing_gain();
        let (in_flight, bandwidth) = (ack.prior_in_flight as f64, self.bandwidth.get());
        if gain > 1.0 {
            is_full_length && (losses || in_flight >= self.inflight(bandwidth, gain))
        } else if gain < 1.0 {
            is_full_length || in_flight <= self.inflight(bandwidth, 1.0)
        } else {
            is_full_length
        }
    }

    fn advance_cycle_phase(&mut self, now: Time) {
        self.cycle_idx = (self.cycle_idx + 1) % PACING_GAIN.len();
        self.cycle_stamp = now;
    }

    fn reset_probe_bw_mode(&mut self, now: Time, luck: &mut Stream) {
        self.mode = Mode::ProbeBw;
        self.cycle_idx = PACING_GAIN.len() - 1 - luck.below(CYCLE_RAND) as usize;
        self.advance_cycle_phase(now);
    }

    fn check_full_bw_reached(&mut self, ack: &AckEvent) {
        if self.full_bw_reached || !self.round_start || ack.sample.is_some_and(|sample| sample.app_limited) {
            return;
        }
        if self.bandwidth.get() >= FULL_BW_THRESH * self.full_bw {
            (self.full_bw, self.full_bw_cnt) = (self.bandwidth.get(), 0);
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= FULL_BW_CNT;
    }

    fn update_min_rtt(&mut self, ack: &AckEvent, cwnd: &mut f64, luck: &mut Stream) {
        let expired = ack.now > self.min_rtt_stamp + MIN_RTT_WIN;
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt))
        {
            (self.min_rtt, self.min_rtt_stamp) = (Some(rtt), ack.now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(*cwnd);
            self.probe_rtt_done_stamp = None;
        }
        if self.mode == Mode::ProbeRtt {
            let is_at_min = ack.in_flight as f64 <= CWND_MIN_TARGET * self.segment;
            if self.probe_rtt_done_stamp.is_none() && is_at_min {
                self.probe_rtt_done_stamp = Some(ack.now + PROBE_RTT_MODE);
                self.probe_rtt_round_done = false;
                self.next_rtt_delivered = ack.delivered;
            } else if self.probe_rtt_done_stamp.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(ack.now, cwnd, luck);
                }
            }
        }
        if ack.sample.is_some_and(|sample| sample.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time, cwnd: &mut f64, luck: &mut Stream) {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt_stamp = now;
        *cwnd = cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.reset_probe_bw_mode(now, luck);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw if self.policer.rate().is_none() => PACING_GAIN[self.cycle_idx],
            Mode::ProbeBw | Mode::ProbeRtt => 1.0,
        }
    }

    fn set_pacing_rate(&mut self, rtt: Option<Span>, cwnd: f64) {
        if let (false, Some(rtt)) = (self.has_seen_rtt, rtt) {
            self.init_pacing_rate_from_rtt(rtt, cwnd);
        }
        let rate = self.pacing_gain() * self.bandwidth() * (1.0 - self.margin);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_cwnd(&mut self, ack: &AckEvent, losses: f64, cwnd: &mut f64) {
        let acked = ack.acked as f64;
        let min_cwnd = CWND_MIN_TARGET * self.segment;
        if acked > 0.0 && !self.recover_or_restore_cwnd(ack, losses, acked, cwnd) {
            let gain = match self.mode {
                Mode::Startup | Mode::Drain => HIGH_GAIN,
                Mode::ProbeBw => CWND_GAIN,
                Mode::ProbeRtt => 1.0,
            };
            let bandwidth = self.bandwidth();
            let target = self.inflight(bandwidth, gain);
            if self.full_bw_reached {
                *cwnd = (*cwnd + acked).min(target + self.aggregation.extra(bandwidth));
            } else if *cwnd < target || (ack.delivered as f64) < self.initial {
                *cwnd += acked;
            }
            *cwnd = cwnd.max(min_cwnd);
        }
        if self.mode == Mode::ProbeRtt {
            *cwnd = cwnd.min(min_cwnd);
        }
        // even a path without bandwidth takes a segment
        *cwnd = cwnd.max(self.segment);
    }

    /// Modulates the window in recovery (BBRModulateCwndForRecovery): lost bytes leave it, in the first round of a
    /// recovery only as much is sent as arrives, and after it the window is restored. Returns whether the window is
    /// final.
    fn recover_or_restore_cwnd(&mut self, ack: &AckEvent, losses: f64, acked: f64, cwnd: &mut f64) -> bool {
        *cwnd = (*cwnd - losses).max(self.segment);
        let in_flight = ack.in_flight as f64;
        if ack.phase == Phase::Recovery && self.prev_phase != Phase::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = ack.delivered;
            *cwnd = in_flight + acked;
        } else if self.prev_phase != Phase::Open && ack.phase == Phase::Open {
            *cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_phase = ack.phase;
        if self.packet_conservation {
            *cwnd = cwnd.max(in_flight + acked);
        }
        self.packet_conservation
    }

    /// Stores the window at the beginning of a recovery.
    fn save_cwnd(&mut self, cwnd: f64) {
        let is_undisturbed = self.prev_phase == Phase::Open && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_undisturbed { cwnd } else { self.prior_cwnd.max(cwnd) };
    }
}

impl Model for Bbr {
    fn shortest_interval(&self) -> Option<Span> {
        self.min_rtt
    }

    fn is_probing_rtt(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    fn opened(&mut self, now: Time, rtt: Span, cwnd: f64) {
        (self.min_rtt, self.min_rtt_stamp) = (Some(rtt), now);
        self.init_pacing_rate_from_rtt(rtt, cwnd);
    }

    fn acked(&mut self, ack: &AckEvent, cwnd: &mut f64, luck: &mut Stream) {
        let losses = (ack.lost - self.lost) as f64;
        self.lost = ack.lost;
        self.update_bw(ack, losses > 0.0, luck);
        if ack.sample.is_some() && ack.acked > 0 {
            let bandwidth = self.bandwidth();
            self.aggregation.acked(ack.now, ack.acked as f64, bandwidth, *cwnd, self.round_start);
        }
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(ack, losses > 0.0) {
            self.advance_cycle_phase(ack.now);
        }
        self.check_full_bw_reached(ack);
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight as f64 <= self.inflight(self.bandwidth.get(), 1.0) {
            self.reset_probe_bw_mode(ack.now, luck);
        }
        self.update_min_rtt(ack, cwnd, luck);
        self.set_pacing_rate(ack.rtt, *cwnd);
        self.set_cwnd(ack, losses, cwnd);
    }

    // it ends a round (`bbr_set_state`)
    fn timeout(&mut self, now: Time, delivered: u64, lost: u64, luck: &mut Stream) {
        self.prev_phase = Phase::Timeout;
        (self.full_bw, self.round_start) = (0.0, true);
        let progress = Progress { now, delivered, lost, losses: true, round_start: true, app_limited: false };
        if self.policer.acked(&progress, self.mode == Mode::ProbeBw) == Verdict::Over {
            self.reset_probe_bw_mode(now, luck);
        }
    }

    // BBRHandleRestartFromIdle
    fn restart(&mut self, now: Time, cwnd: &mut f64, luck: &mut Stream) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw => self.pacing_rate = self.bandwidth() * (1.0 - self.margin),
            Mode::ProbeRtt => self.check_probe_rtt_done(now, cwnd, luck),
            Mode::Startup | Mode::Drain => {}
        }
    }
}

/// The model sets the window, so the methods of other algorithms do not change it.
impl CongestionControl for Bbr {
    fn avoid(&mut self, _window: &mut Window, _now: Time, _acked: f64, _srtt: Option<Span>) {}

    fn grow(&mut self, _window: &mut Window, _now: Time, _acked: u64, _srtt: Option<Span>) {}

    fn loss(&mut self, window: &mut Window, _flight: u64) {
        self.save_cwnd(window.cwnd);
    }

    fn fall(&self, _window: &mut Window) {}

    fn timeout(&mut self, window: &mut Window, _now: Time, flight: Option<u64>, _max: u64) {
        if flight.is_some() {
            self.save_cwnd(window.cwnd);
        }
        window.cwnd = window.segment;
    }

    fn restart(&mut self, _window: &mut Window) {}

    fn pacing_rate(&self, _window: &Window, _srtt: Option<Span>) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn min_tso_segs(&self) -> u32 {
        if self.pacing_rate < MIN_TSO_RATE { 1 } else { MIN_TSO_SEGS }
    }

    fn model(&mut self) -> Option<&mut dyn Model> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Mbit/s and 1 ms: 12.5 segments of 1000 bytes. With bursts it is 13 and three bursts of 12, in pairs.
    #[test]
    fn the_window_has_room_for_three_bursts() {
        for (offload, segments) in [(false, 12.5 + 3.0), (true, 50.0)] {
            let settings = TcpSettings { segment: 1000, offload, ..TcpSettings::default() };
            let mut model = Bbr::new(&settings, Time::ZERO);
            (model.min_rtt, model.pacing_rate) = (Some(Span::from_millis(1)), 12.5e6);
            assert_eq!(model.inflight(12.5e6, 1.0), segments * 1000.0);
            model.mode = Mode::ProbeBw;
            assert_eq!(model.inflight(12.5e6, 1.0), (segments + 2.0) * 1000.0, "while it probes");
        }
    }
}
