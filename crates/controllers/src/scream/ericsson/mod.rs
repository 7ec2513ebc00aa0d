//! The preset `ericsson-2026-07`: SCReAM version 2 as EricssonResearch/scream has it in July 2026 (ScreamV2Tx.cpp, ScreamV2TxStream.cpp), which
//! is ahead of the draft and differs from it. One stream; its clock begins with the session.

pub mod delay;
pub mod encoder;
pub mod loss;
pub mod settings;
pub mod window;

pub use super::settings::Marks;

use super::competing::{LossEvents, Target};
use super::coupled::window_factor;
use super::flight::{Acked, Flight};
use delay::{Delay, RoundTrips, Ticks, since, ticks};
use encoder::Encoder;
use loss::Losses;
use settings::Settings;
use std::collections::VecDeque;
use tidegate_core::control::{Context, Controller, Decision, Limits, Needs, NewFrame, Report, Sent};
use tidegate_core::{Rate, Size, Span, Time};
use window::{Events, Step, Window};

/// kInitMss, and kMssUpdateInterval_ntp: the size of a segment is the largest packet of this second and the one before.
const FIRST_MSS: i64 = 100;
const MSS_STEP: Ticks = 65_536;
/// kSlowUpdateInterval_ntp: 50 ms; kMaxBytesInFlightHistSize of them.
const SLOW_STEP: Ticks = 3277;
const IN_FLIGHT_HISTORY: usize = 20;
/// `l4sAlpha` is updated every 10 ms at least.
const ALPHA_STEP: Ticks = 655;
/// `l4sAlpha` begins here; kL4sGUp, kL4sGDown.
const FIRST_ALPHA: f64 = 0.1;
const ALPHA_UP: f64 = 0.125;
const ALPHA_DOWN: f64 = 0.0078125;
/// kQueueDelayTargetMax.
const QDELAY_TARGET_MOST: f64 = 0.3;
/// kBaseDelayResetInterval_ntp: 60 s; for how long the target is then halved: kNumRateLimitRtts round trips and 0.1 s at least.
const RESET_STEP: Ticks = 3_932_160;
const HALVED_RTTS: Ticks = 5;
const HALVED_LEAST: Ticks = 6554;
/// Before the first report packets are hardly paced: kInitMss each 10 us (kMinPaceInterval).
const UNPACED: f64 = 80e6;
/// What is in flight is given up when nothing has left for half a second (`isOkToTransmit`).
const RESTART: Span = Span::from_millis(500);

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    origin: Option<Time>,
    flight: Flight,
    losses: Losses,
    mss: i64,
    mss_prev: i64,
    mss_updated: Ticks,
    rtt: RoundTrips,
    delay: Delay,
    alpha: f64,
    fraction: f64,
    alpha_updated: Ticks,
    delivered: u32,
    marked: u32,
    acked: i64,
    window: Window,
    window_updated: Option<Ticks>,
    last_event: Ticks,
    max_in_flight: i64,
    max_in_flight_prev: i64,
    in_flight_history: VecDeque<i64>,
    slow_updated: Ticks,
    qdelay_target: Target,
    events: LossEvents,
    was_loss: bool,
    round_began: Ticks,
    new_frame: bool,
    encoder: Encoder,
    /// `rateShare`: before the encoder's own corrections.
    share: f64,
    /// The pacing rate, as of the last update of the window.
    pace: f64,
    halved_from: Ticks,
    can_reset: bool,
}

impl Sender {
    /// A controller that begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            limits: Limits::default(),
            origin: None,
            flight: Flight::new(RESTART),
            losses: Losses::new(settings.frame_stamps),
            mss: FIRST_MSS,
            mss_prev: FIRST_MSS,
            mss_updated: 0,
            rtt: RoundTrips::default(),
            delay: Delay::default(),
            alpha: FIRST_ALPHA,
            fraction: 0.0,
            alpha_updated: 0,
            delivered: 0,
            marked: 0,
            acked: 0,
            window: Window::new(&settings),
            window_updated: None,
            last_event: 0,
            max_in_flight: 0,
            max_in_flight_prev: 0,
            in_flight_history: VecDeque::new(),
            slow_updated: 0,
            qdelay_target: Target::new(settings.qdelay_target, QDELAY_TARGET_MOST),
            events: LossEvents::default(),
            was_loss: false,
            round_began: 0,
            new_frame: false,
            encoder: Encoder::default(),
            share: 0.0,
            pace: UNPACED,
            halved_from: 0,
            can_reset: false,
            settings,
        }
    }

    fn clock(&mut self, now: Time) -> Ticks {
        since(now, *self.origin.get_or_insert(now))
    }

    fn mss(&self) -> i64 {
        self.mss.max(self.mss_prev)
    }

    /// What the program does each time that it asks whether it may send (`isOkToTransmit`): rates every 100 ms, the size of a segment every second.
    fn ask(&mut self, now: Ticks) {
        self.encoder.tick(now, &self.settings);
        if now - self.mss_updated > MSS_STEP {
            (self.mss_prev, self.mss, self.mss_updated) = (self.mss, FIRST_MSS, now);
            self.window.segments(3, self.mss(), &self.settings);
        }
    }

    /// A packet of this size was sent.
    fn note_size(&mut self, size: i64) {
        self.mss = self.mss.max(size);
        self.window.segments(2, self.mss(), &self.settings);
    }

    /// Finds losses and takes what is acknowledged into account (`markAcked`, `detectLoss`).
    fn acknowledge(&mut self, now: Ticks, report: &Report, acked: &Acked) -> bool {
        let (newest, newest_sent) = match acked.newest {
            Some((sequence, sent, _)) => (sequence, since(sent, self.origin.unwrap_or(sent))),
            None => return false,
        };
        self.acked += acked.bytes as i64 - acked.marked_bytes as i64;
        let target = self.qdelay_target.get();
        self.delay.again(target);
        for packet in &report.packets {
            let Some(arrival) = packet.arrival else { continue };
            let sent = since(packet.sent, self.origin.unwrap_or(packet.sent));
            self.delay.packet(now, sent, arrival, target);
        }
        let may_reduce = now - self.last_event > self.rtt.slow && self.settings.beta_loss < 1.0;
        let mut lost = false;
        self.losses.take(report, (newest, newest_sent), |is_lost| {
            if is_lost && may_reduce {
                lost |= self.window.loss(&self.delay, target, &self.settings);
            }
            self.window.count(is_lost, self.mss);
        });
        lost
    }

    fn average_marks(&mut self, now: Ticks) {
        if self.settings.ecn != Marks::L4s {
            self.alpha = 0.0;
            return;
        }
        if now - self.alpha_updated <= ALPHA_STEP.min(self.rtt.slow) {
            return;
        }
        (self.alpha_updated, self.fraction) = (now, 0.0);
        if self.delivered > 0 {
            self.fraction = f64::from(self.marked) / f64::from(self.delivered);
            self.alpha = if self.fraction >= self.alpha {
                ALPHA_UP * self.fraction + (1.0 - ALPHA_UP) * self.alpha
            } else {
                self.alpha * (1.0 - ALPHA_DOWN)
            };
            (self.delivered, self.marked) = (0, 0);
        }
    }

    /// The rest of a report, in the program's order.
    fn hear(&mut self, now: Ticks, report: &Report, acked: &Acked) {
        let in_flight = self.flight.bytes() as i64 + acked.bytes as i64;
        self.max_in_flight = self.max_in_flight.max(in_flight);
        if let Some((_, _, rtt)) = acked.newest {
            self.rtt.sample(now, ticks(rtt.as_nanos()), self.window.app_limited);
        }
        let mut events = Events { loss: self.acknowledge(now, report, acked), ..Events::default() };
        self.delivered += acked.packets;
        self.marked += acked.marked;
        let step = self.rtt.step();
        if now - self.last_event > step && acked.marked > 0 {
            (events.marked, self.last_event) = (true, now);
        }
        self.average_marks(now);
        if self.delay.update(now, &self.rtt) {
            self.window.release();
        }
        let target = self.qdelay_target.get();
        if self.delay.average > target / 2.0 && now - self.last_event > step {
            events.delayed = true;
            let alpha = ((self.delay.average - target / 2.0) / (target / 2.0)).clamp(0.0, 1.0);
            events.delay_alpha = alpha / (self.rtt.slow as f64 / delay::LEAST_BACK_OFF as f64).max(1.0);
        }
        if self.rtt.falls() && self.fraction == 1.0 {
            events.marked = false;
        }
        if events.any() {
            self.last_event = now;
        }
        let since_update = now - *self.window_updated.get_or_insert(now);
        if since_update > step || events.any() || self.new_frame {
            self.update_window(now, &events);
            (self.window_updated, self.new_frame) = (Some(now), false);
        }
    }

    fn update_window(&mut self, now: Ticks, events: &Events) {
        self.delay.note_least();
        let most = self.limits.target_max().as_bps_f64();
        self.pace = self.encoder.pacing(most, &self.settings);
        if now - self.slow_updated > SLOW_STEP {
            self.slow_update(now, most);
        }
        let step = Step {
            now,
            acked: std::mem::take(&mut self.acked),
            mss: self.mss(),
            l4s_alpha: self.alpha,
            qdelay_target: self.qdelay_target.get(),
            max_in_flight: self.max_in_flight,
            max_in_flight_prev: self.max_in_flight_prev,
            target: self.encoder.target(),
            target_max: most,
            acked_rate: self.encoder.acked_rate(),
        };
        self.window.update(&step, events, &self.delay, &self.rtt, &self.settings);
        self.was_loss |= events.any();
        if now - self.round_began > self.rtt.slow {
            self.events.take(self.was_loss);
            (self.was_loss, self.round_began) = (false, now);
        }
        self.share = encoder::share(&self.window, step.mss, self.rtt.s_rtt);
        self.encoder.set_target(self.share, &self.limits);
    }

    /// Every 50 ms.
    fn slow_update(&mut self, now: Ticks, most: f64) {
        if self.settings.competing_flows {
            let at = self.origin.unwrap_or(Time::ZERO) + Span::from_secs_f64(delay::seconds(now));
            self.qdelay_target.take(at, self.delay.now, self.events);
        }
        if self.in_flight_history.len() == IN_FLIGHT_HISTORY {
            self.in_flight_history.pop_front();
        }
        self.in_flight_history.push_back(self.max_in_flight);
        if self.encoder.target() > most * 0.95 {
            let flew = self.in_flight_history.iter().copied().max().unwrap_or(0);
            let carries = self.settings.pacing_headroom * most / 8.0 * (self.rtt.s_rtt + 0.001);
            self.window.bound(flew.max(carries as i64));
        }
        if now > 2 * 65_536 {
            (self.max_in_flight_prev, self.max_in_flight) = (self.max_in_flight, 0);
        }
        self.slow_updated = now;
    }

    /// Halves the target while the base delay is to be measured anew (`getTargetBitrate`).
    fn halved(&mut self, now: Ticks) -> bool {
        if self.delay.standing <= self.qdelay_target.get() / 8.0 {
            return false;
        }
        if now - self.halved_from > RESET_STEP {
            self.halved_from = now;
        }
        if now - self.halved_from < HALVED_LEAST.max(HALVED_RTTS * self.rtt.slow) {
            self.can_reset = true;
            return true;
        }
        if std::mem::take(&mut self.can_reset) {
            self.delay.reset_base();
        }
        false
    }

    fn decide(&mut self, now: Time) -> Decision {
        let clock = self.clock(now);
        let scale = if self.halved(clock) { 0.5 } else { 1.0 };
        let Limits { min, max, .. } = self.limits;
        let target = Rate::from_bps_f64(self.encoder.told(&self.settings) * scale).min(max).max(min);
        let headroom = 1.5 + (self.settings.window_headroom - 1.5) * self.delay.scale;
        let window = (self.window.bytes as f64 * headroom) as u64 + self.mss() as u64;
        Decision {
            pacing: Rate::from_bps_f64(self.pace),
            pace_audio: true,
            burst: Some(Span::ZERO),
            window: Some(Size::from_bytes(window)),
            alarm: self.flight.gives_up_at(),
            ..Decision::rate(target)
        }
    }

    fn restart(&mut self, now: Time) {
        // also where all is acknowledged but for what was lost, which nobody will then find
        if self.flight.last_sent().is_some_and(|last| now >= last + RESTART) {
            self.flight.clear();
            self.losses.clear();
        }
    }

    fn note(&self, cx: &mut Context<'_>) {
        if !cx.wants_notes() {
            return;
        }
        cx.note("ref_wnd_bytes", self.window.bytes as f64);
        cx.note("ref_wnd_i_bytes", self.window.inflection as f64);
        cx.note("bytes_in_flight", self.flight.bytes() as f64);
        cx.note("s_rtt_ms", self.rtt.s_rtt * 1e3);
        cx.note("qdelay_ms", self.delay.now * 1e3);
        cx.note("qdelay_avg_ms", self.delay.average * 1e3);
        cx.note("qdelay_target_ms", self.qdelay_target.get() * 1e3);
        cx.note("l4s_alpha", self.alpha);
        cx.note("rate_adjust", self.encoder.adjust());
        cx.note("jitter_scale", self.delay.scale);
        cx.note("loss_rate", self.window.loss_rate);
    }
}

impl Controller for Sender {
    fn needs(&self) -> Needs {
        self.settings.ecn.needs()
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let clock = self.clock(now);
        self.restart(now);
        let acked = self.flight.acknowledge(now, report, self.settings.ecn != Marks::Off);
        if acked.packets > 0 {
            self.encoder.acked(acked.bytes);
            self.hear(clock, report, &acked);
            self.ask(clock);
        }
        self.note(cx);
        self.decide(now)
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> Decision {
        self.restart(now);
        self.decide(now)
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        let first = self.origin.is_none();
        self.limits = *limits;
        if limits.route_changed {
            // the program knows of no routes: what was learned of the path is forgotten, the window stays
            (self.rtt, self.delay) = (RoundTrips::default(), Delay::default());
        }
        self.restart(now);
        if first {
            let _began = self.clock(now);
            self.share = limits.min.as_bps_f64();
            self.encoder.begin(limits.start.clamp(limits.min, limits.target_max()).as_bps_f64());
        } else {
            self.encoder.set_target(self.share, limits);
        }
        self.decide(now)
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let clock = self.clock(now);
        let began = self.flight.waits_since().is_none();
        self.flight.sent(now, packet);
        self.losses.sent(clock, packet);
        let before = self.mss();
        self.ask(clock);
        self.note_size(packet.size.as_bytes().min(65_535) as i64);
        if began || before != self.mss() {
            return self.decide(now);
        }
        cx.unchanged()
    }

    fn needs_sent(&self) -> bool {
        true
    }

    fn on_frame(&mut self, now: Time, frame: &NewFrame, cx: &mut Context<'_>) -> Decision {
        self.restart(now);
        let clock = self.clock(now);
        self.losses.frame(clock, frame.size.as_bytes());
        let counts = self.encoder.frame(clock, frame);
        self.ask(clock);
        if !counts {
            return cx.unchanged();
        }
        self.new_frame = true;
        self.encoder.set_target(self.share, &self.limits);
        self.decide(now)
    }

    fn needs_frames(&self) -> bool {
        true
    }

    fn in_flight(&self) -> Option<Size> {
        Some(self.flight.size())
    }

    /// The rate that its window makes. RFC 8699 knows no scheme with a window: this is ours.
    fn coupled_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.encoder.target()))
    }

    /// The window becomes what would have made this rate.
    fn on_coupled(&mut self, now: Time, rate: Rate, _cx: &mut Context<'_>) -> Decision {
        self.restart(now);
        let factor = rate.as_bps_f64() / self.encoder.target().max(1.0);
        let bytes = self.window.bytes as f64;
        self.window.multiply(window_factor(bytes, factor, rate.as_bps_f64(), self.rtt.s_rtt));
        self.share *= factor;
        self.encoder.set_target(self.share, &self.limits);
        self.decide(now)
    }
}
