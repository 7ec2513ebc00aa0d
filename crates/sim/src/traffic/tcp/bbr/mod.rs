//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, Linux's `net/ipv4/tcp_bbr.c`): paces at what was delivered
//! at most in the last rounds, and keeps about what the path holds under way, by the least round trip of ten seconds.
//!
//! Where the two differ it does as the draft: a round trip equal to the least one is one, too (Linux wants a smaller one).
//! From Linux are the policer, the allowance for acknowledgements that come in bunches, and the margin of 1 % by which it
//! paces below the bandwidth. Left out is what belongs to hosts that send several segments at once (quanta larger than a
//! segment, a window rounded to even numbers), and the test whether an acknowledgement was delayed.

mod aggregation;
mod filter;
mod policer;

use super::TcpSettings;
use super::delivery::Sample;
use super::sender::Phase;
use super::window::{CongestionControl, Window};
use aggregation::Aggregation;
use filter::MaxFilter;
use policer::{Policer, Progress, Verdict};
use tidegate_core::{Span, Stream, Time};

/// 2 / ln 2: the least gain that doubles what is delivered each round (BBRHighGain), and its inverse, which drains in one round
/// what that has queued (draft section 4.3.2.2).
const HIGH_GAIN: f64 = 2.0 / std::f64::consts::LN_2;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// Pacing gains of a cycle: look for more, give it back, cruise (draft section 4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// In these phases a cycle may begin: all but the one that drains (draft section 4.3.4.3; `bbr_cycle_rand`).
const CYCLE_STARTS: u64 = 7;
/// The window is so many times what the path holds, for acknowledgements that are delayed or come in bunches (draft
/// section 4.2.3.2).
const CWND_GAIN: f64 = 2.0;
/// The bandwidth is the largest of so many rounds (BtlBwFilterLen: a cycle and two).
const BANDWIDTH_ROUNDS: u64 = 10;
/// The least round trip is that of this long (RTpropFilterLen).
const RTT_WINDOW: Span = Span::from_secs(10);
/// For so long only [`MIN_SEGMENTS`] are under way when it is measured anew (ProbeRTTDuration).
const PROBE_RTT: Span = Span::from_millis(200);
/// Never fewer segments under way on purpose (BBRMinPipeCwnd).
const MIN_SEGMENTS: f64 = 4.0;
/// The pipe is full when the bandwidth has not grown by a quarter for three rounds (draft section 4.3.2.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Beside what the path holds, a segment each for the sending host, its network interface and the receiving host (draft
/// section 4.2.3.2: three quanta).
const QUANTA: f64 = 3.0;
/// The round trip before any was measured (`bbr_init_pacing_rate_from_rtt`).
const NOMINAL_RTT: Span = Span::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// What an acknowledgement told; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Time,
    /// Acknowledged or SACKed for the first time by it, and since the connection began.
    pub(super) acked: u64,
    pub(super) delivered: u64,
    /// Taken for lost since the connection began.
    pub(super) lost: u64,
    /// Under way before and after it.
    pub(super) prior_in_flight: u64,
    pub(super) in_flight: u64,
    pub(super) sample: Option<Sample>,
    pub(super) rtt: Option<Span>,
    pub(super) phase: Phase,
}

/// The model of the path and what is made of it.
#[derive(Debug)]
pub(super) struct Bbr {
    segment: f64,
    initial: f64,
    mode: Mode,
    bandwidth: MaxFilter,
    policer: Policer,
    aggregation: Aggregation,
    /// A round ends when what was sent after its beginning is acknowledged.
    round: u64,
    next_round: u64,
    round_start: bool,
    /// The largest bandwidth of the startup so far, for how many rounds it has not grown, and whether it is full.
    full: f64,
    full_rounds: u32,
    filled: bool,
    least: Option<Span>,
    least_at: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round: bool,
    phase_of_cycle: usize,
    cycle_at: Time,
    pacing_rate: f64,
    seen_rtt: bool,
    /// The window before it was cut for a repair or for [`Mode::ProbeRtt`].
    prior_cwnd: f64,
    /// In the first round of a repair as much is sent as arrives.
    conserving: bool,
    before: Phase,
    idle_restart: bool,
    lost: u64,
    margin: f64,
}

impl Bbr {
    pub(super) fn new(settings: &TcpSettings, now: Time) -> Self {
        let Window { segment, initial, .. } = Window::new(settings.segment, settings.initial_window);
        Self {
            margin: settings.pacing_margin,
            segment,
            initial,
            mode: Mode::Startup,
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            round: 0,
            next_round: 0,
            round_start: false,
            full: 0.0,
            full_rounds: 0,
            filled: false,
            least: None,
            least_at: now,
            probe_rtt_done: None,
            probe_rtt_round: false,
            phase_of_cycle: 0,
            cycle_at: now,
            pacing_rate: HIGH_GAIN * initial / NOMINAL_RTT.as_secs_f64(),
            seen_rtt: false,
            prior_cwnd: 0.0,
            conserving: false,
            before: Phase::Open,
            idle_restart: false,
            lost: 0,
        }
    }

    /// The least round trip of the last ten seconds.
    pub(super) fn least(&self) -> Option<Span> {
        self.least
    }

    /// Whether it sends less than it might, so that what is delivered says nothing of the path.
    pub(super) fn is_probing_rtt(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// The handshake took `rtt`.
    pub(super) fn opened(&mut self, now: Time, rtt: Span, cwnd: f64) {
        (self.least, self.least_at) = (Some(rtt), now);
        self.pace_by_round_trip(rtt, cwnd);
    }

    fn pace_by_round_trip(&mut self, rtt: Span, cwnd: f64) {
        self.seen_rtt = true;
        self.pacing_rate = HIGH_GAIN * cwnd / rtt.max(Span::from_micros(1)).as_secs_f64();
    }

    /// Takes in an acknowledgement, and sets the window.
    pub(super) fn acked(&mut self, told: &Acked, cwnd: &mut f64, luck: &mut Stream) {
        let losses = (told.lost - self.lost) as f64;
        self.lost = told.lost;
        self.update_bandwidth(told, losses > 0.0, luck);
        if told.sample.is_some() && told.acked > 0 {
            let bandwidth = self.bandwidth();
            self.aggregation.acked(told.now, told.acked as f64, bandwidth, *cwnd, self.round_start);
        }
        if self.mode == Mode::ProbeBandwidth && self.is_next_phase(told, losses > 0.0) {
            self.advance_cycle(told.now);
        }
        self.check_full(told);
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && told.in_flight as f64 <= self.holds(self.bandwidth.get(), 1.0) {
            self.probe_bandwidth(told.now, luck);
        }
        self.update_least(told, cwnd, luck);
        self.pace(told.rtt, *cwnd);
        self.set_cwnd(told, losses, cwnd);
    }

    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bandwidth.get())
    }

    fn update_bandwidth(&mut self, told: &Acked, losses: bool, luck: &mut Stream) {
        self.round_start = false;
        let Some(sample) = told.sample else { return };
        if sample.before >= self.next_round {
            self.next_round = told.delivered;
            self.round += 1;
            self.round_start = true;
            self.conserving = false;
        }
        let progress = Progress {
            now: told.now,
            delivered: told.delivered,
            lost: told.lost,
            losses,
            round_start: self.round_start,
            app_limited: sample.app_limited,
        };
        if self.policer.acked(&progress, self.mode == Mode::ProbeBandwidth) == Verdict::Over {
            self.probe_bandwidth(told.now, luck);
        }
        // what the application limited tells something only where it is more than was known
        if !sample.app_limited || sample.rate() >= self.bandwidth.get() {
            self.bandwidth.update(self.round, sample.rate());
        }
    }

    /// What is to be under way for a path of so many bytes a second, times `gain` (BBRInflight).
    fn holds(&self, bandwidth: f64, gain: f64) -> f64 {
        let Some(least) = self.least else { return self.initial };
        // a small path could not hold more while the cycle looks for more
        let looking = self.mode == Mode::ProbeBandwidth && self.phase_of_cycle == 0;
        let more = QUANTA + if looking { 2.0 } else { 0.0 };
        gain * bandwidth * least.as_secs_f64() + more * self.segment
    }

    fn is_next_phase(&self, told: &Acked, losses: bool) -> bool {
        let lasted = told.now - self.cycle_at > self.least.unwrap_or_default();
        let gain = self.pacing_gain();
        let (in_flight, bandwidth) = (told.prior_in_flight as f64, self.bandwidth.get());
        if gain > 1.0 {
            lasted && (losses || in_flight >= self.holds(bandwidth, gain))
        } else if gain < 1.0 {
            lasted || in_flight <= self.holds(bandwidth, 1.0)
        } else {
            lasted
        }
    }

    fn advance_cycle(&mut self, now: Time) {
        self.phase_of_cycle = (self.phase_of_cycle + 1) % CYCLE.len();
        self.cycle_at = now;
    }

    fn probe_bandwidth(&mut self, now: Time, luck: &mut Stream) {
        self.mode = Mode::ProbeBandwidth;
        self.phase_of_cycle = CYCLE.len() - 1 - luck.below(CYCLE_STARTS) as usize;
        self.advance_cycle(now);
    }

    fn check_full(&mut self, told: &Acked) {
        if self.filled || !self.round_start || told.sample.is_some_and(|sample| sample.app_limited) {
            return;
        }
        if self.bandwidth.get() >= FULL_GROWTH * self.full {
            (self.full, self.full_rounds) = (self.bandwidth.get(), 0);
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= FULL_ROUNDS;
    }

    fn update_least(&mut self, told: &Acked, cwnd: &mut f64, luck: &mut Stream) {
        let expired = told.now > self.least_at + RTT_WINDOW;
        if let Some(rtt) = told.rtt
            && (expired || self.least.is_none_or(|least| rtt <= least))
        {
            (self.least, self.least_at) = (Some(rtt), told.now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(*cwnd);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            let few = told.in_flight as f64 <= MIN_SEGMENTS * self.segment;
            if self.probe_rtt_done.is_none() && few {
                self.probe_rtt_done = Some(told.now + PROBE_RTT);
                self.probe_rtt_round = false;
                self.next_round = told.delivered;
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.check_probe_rtt_done(told.now, cwnd, luck);
                }
            }
        }
        if told.sample.is_some_and(|sample| sample.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time, cwnd: &mut f64, luck: &mut Stream) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.least_at = now;
        *cwnd = cwnd.max(self.prior_cwnd);
        if self.filled {
            self.probe_bandwidth(now, luck);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBandwidth if self.policer.rate().is_none() => CYCLE[self.phase_of_cycle],
            Mode::ProbeBandwidth | Mode::ProbeRtt => 1.0,
        }
    }

    fn pace(&mut self, rtt: Option<Span>, cwnd: f64) {
        if let (false, Some(rtt)) = (self.seen_rtt, rtt) {
            self.pace_by_round_trip(rtt, cwnd);
        }
        let rate = self.pacing_gain() * self.bandwidth() * (1.0 - self.margin);
        if self.filled || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_cwnd(&mut self, told: &Acked, losses: f64, cwnd: &mut f64) {
        let acked = told.acked as f64;
        let least = MIN_SEGMENTS * self.segment;
        if acked > 0.0 && !self.repairs(told, losses, acked, cwnd) {
            let gain = match self.mode {
                Mode::Startup | Mode::Drain => HIGH_GAIN,
                Mode::ProbeBandwidth => CWND_GAIN,
                Mode::ProbeRtt => 1.0,
            };
            let bandwidth = self.bandwidth();
            let target = self.holds(bandwidth, gain);
            if self.filled {
                *cwnd = (*cwnd + acked).min(target + self.aggregation.extra(bandwidth));
            } else if *cwnd < target || (told.delivered as f64) < self.initial {
                *cwnd += acked;
            }
            *cwnd = cwnd.max(least);
        }
        if self.mode == Mode::ProbeRtt {
            *cwnd = cwnd.min(least);
        }
        // a path of no bandwidth at all still takes a segment
        *cwnd = cwnd.max(self.segment);
    }

    /// What is lost leaves the window; in the first round of a repair as much is sent as arrives, and after it the window is
    /// what it was. Says whether that is all (BBRModulateCwndForRecovery).
    fn repairs(&mut self, told: &Acked, losses: f64, acked: f64, cwnd: &mut f64) -> bool {
        *cwnd = (*cwnd - losses).max(self.segment);
        let in_flight = told.in_flight as f64;
        if told.phase == Phase::Recovery && self.before != Phase::Recovery {
            self.conserving = true;
            self.next_round = told.delivered;
            *cwnd = in_flight + acked;
        } else if self.before != Phase::Open && told.phase == Phase::Open {
            *cwnd = cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        self.before = told.phase;
        if self.conserving {
            *cwnd = cwnd.max(in_flight + acked);
        }
        self.conserving
    }

    /// A repair begins: remembers the window (`bbr_save_cwnd`).
    fn save_cwnd(&mut self, cwnd: f64) {
        let good = self.before == Phase::Open && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// The timer went off, which ends a round (`bbr_set_state`).
    pub(super) fn timeout(&mut self, now: Time, delivered: u64, lost: u64, luck: &mut Stream) {
        self.before = Phase::Timeout;
        (self.full, self.round_start) = (0.0, true);
        let progress = Progress { now, delivered, lost, losses: true, round_start: true, app_limited: false };
        if self.policer.acked(&progress, self.mode == Mode::ProbeBandwidth) == Verdict::Over {
            self.probe_bandwidth(now, luck);
        }
    }

    /// There is something to send again after the application had nothing (BBRHandleRestartFromIdle).
    pub(super) fn restart(&mut self, now: Time, cwnd: &mut f64, luck: &mut Stream) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth => self.pacing_rate = self.bandwidth() * (1.0 - self.margin),
            Mode::ProbeRtt => self.check_probe_rtt_done(now, cwnd, luck),
            Mode::Startup | Mode::Drain => {}
        }
    }
}

/// The model sets the window, so that it neither grows nor falls by what others go by.
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

    fn model(&mut self) -> Option<&mut Bbr> {
        Some(self)
    }
}
