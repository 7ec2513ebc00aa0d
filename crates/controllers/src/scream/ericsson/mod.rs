//! Preset `ericsson-2026-07`: SCReAM version 2 as in EricssonResearch/scream of July 2026 (ScreamV2Tx.cpp,
//! ScreamV2TxStream.cpp), which is ahead of the draft and differs from it. One stream; the clock begins with the session.

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

/// First size of a segment, bytes. Later it is the largest packet of this second and the previous one (ScreamV2Tx.cpp, as
/// are the constants below).
const INIT_MSS: i64 = 100;
/// Time over which the largest packet is taken: 1 s.
const MSS_UPDATE_INTERVAL: Ticks = 65_536;
/// Time between two slow updates: 50 ms.
const SLOW_UPDATE_INTERVAL: Ticks = 3277;
/// Number of slow updates over which the largest bytes in flight are kept.
const MAX_BYTES_IN_FLIGHT_HIST_SIZE: usize = 20;
/// Longest time between two updates of `l4sAlpha`: 10 ms.
const ALPHA_INTERVAL: Ticks = 655;
/// First value of `l4sAlpha`.
const FIRST_ALPHA: f64 = 0.1;
/// Weight of a share of marked packets above the average.
const L4S_G_UP: f64 = 0.125;
/// Part by which the average falls at each update below it.
const L4S_G_DOWN: f64 = 0.0078125;
/// Highest target of the queueing delay, s.
const QUEUE_DELAY_TARGET_MAX: f64 = 0.3;
/// Time between two resets of the base delay: 60 s.
const BASE_DELAY_RESET_INTERVAL: Ticks = 3_932_160;
/// Round trips in which the target is halved before a reset.
const NUM_RATE_LIMIT_RTTS: Ticks = 5;
/// Shortest such time: 0.1 s.
const MIN_HALVED_TIME: Ticks = 6554;
/// Pacing rate before the first report, bit/s: kInitMss every 10 us (kMinPaceInterval), which is hardly pacing.
const UNPACED: f64 = 80e6;
/// Time without departures after which the packets in flight are given up (`isOkToTransmit`).
const RESTART: Span = Span::from_millis(500);

/// Sending half.
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
    /// Whether there was a congestion event in this round trip.
    had_event: bool,
    round_start: Ticks,
    new_frame: bool,
    encoder: Encoder,
    /// Target before the encoder's corrections, bit/s (`rateShare`).
    share: f64,
    /// Pacing rate as of the last update of the window, bit/s.
    pace: f64,
    halved_from: Ticks,
    can_reset: bool,
}

impl Sender {
    /// Creates a controller, which begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            limits: Limits::default(),
            origin: None,
            flight: Flight::new(RESTART),
            losses: Losses::new(settings.frame_stamps),
            mss: INIT_MSS,
            mss_prev: INIT_MSS,
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
            qdelay_target: Target::new(settings.qdelay_target, QUEUE_DELAY_TARGET_MAX),
            events: LossEvents::default(),
            had_event: false,
            round_start: 0,
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

    /// Updates that the program makes when it asks whether it may send (`isOkToTransmit`): rates every 100 ms, the size of a
    /// segment every second.
    fn update_periodic(&mut self, now: Ticks) {
        self.encoder.tick(now, &self.settings);
        if now - self.mss_updated > MSS_UPDATE_INTERVAL {
            (self.mss_prev, self.mss, self.mss_updated) = (self.mss, INIT_MSS, now);
            self.window.set_min_segments(3, self.mss(), &self.settings);
        }
    }

    /// Updates the size of a segment from a sent packet.
    fn update_mss(&mut self, size: i64) {
        self.mss = self.mss.max(size);
        self.window.set_min_segments(2, self.mss(), &self.settings);
    }

    /// Takes acknowledged packets and detects losses; returns whether losses reduce the window (`markAcked`, `detectLoss`).
    fn acknowledge(&mut self, now: Ticks, report: &Report, acked: &Acked) -> bool {
        let (newest, newest_sent) = match acked.newest {
            Some((sequence, sent, _)) => (sequence, since(sent, self.origin.unwrap_or(sent))),
            None => return false,
        };
        self.acked += acked.bytes as i64 - acked.marked_bytes as i64;
        let target = self.qdelay_target.get();
        self.delay.begin_report(target);
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
        if now - self.alpha_updated <= ALPHA_INTERVAL.min(self.rtt.slow) {
            return;
        }
        (self.alpha_updated, self.fraction) = (now, 0.0);
        if self.delivered > 0 {
            self.fraction = f64::from(self.marked) / f64::from(self.delivered);
            self.alpha = if self.fraction >= self.alpha {
                L4S_G_UP * self.fraction + (1.0 - L4S_G_UP) * self.alpha
            } else {
                self.alpha * (1.0 - L4S_G_DOWN)
            };
            (self.delivered, self.marked) = (0, 0);
        }
    }

    /// Takes the acknowledged packets of a report, in the program's order.
    fn on_acked(&mut self, now: Ticks, report: &Report, acked: &Acked) {
        let in_flight = self.flight.bytes() as i64 + acked.bytes as i64;
        self.max_in_flight = self.max_in_flight.max(in_flight);
        if let Some((_, _, rtt)) = acked.newest {
            self.rtt.sample(now, ticks(rtt.as_nanos()), self.window.app_limited);
        }
        let mut events = Events { loss: self.acknowledge(now, report, acked), ..Events::default() };
        self.delivered += acked.packets;
        self.marked += acked.marked;
        let step = self.rtt.reaction_interval();
        if now - self.last_event > step && acked.marked > 0 {
            (events.marked, self.last_event) = (true, now);
        }
        self.average_marks(now);
        if self.delay.update(now, &self.rtt) {
            self.window.raise_policer_bound();
        }
        let target = self.qdelay_target.get();
        if self.delay.average > target / 2.0 && now - self.last_event > step {
            events.delayed = true;
            let alpha = ((self.delay.average - target / 2.0) / (target / 2.0)).clamp(0.0, 1.0);
            events.delay_alpha =
                alpha / (self.rtt.slow as f64 / delay::MIN_CONGESTION_BACK_OFF_INTERVAL as f64).max(1.0);
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
        self.delay.update_lowest();
        let max_target = self.limits.target_max().as_bps_f64();
        self.pace = self.encoder.pacing(max_target, &self.settings);
        if now - self.slow_updated > SLOW_UPDATE_INTERVAL {
            self.slow_update(now, max_target);
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
            target_max: max_target,
            acked_rate: self.encoder.acked_rate(),
        };
        self.window.update(&step, events, &self.delay, &self.rtt, &self.settings);
        self.had_event |= events.any();
        if now - self.round_start > self.rtt.slow {
            self.events.take(self.had_event);
            (self.had_event, self.round_start) = (false, now);
        }
        self.share = encoder::share(&self.window, step.mss, self.rtt.s_rtt);
        self.encoder.set_target(self.share, &self.limits);
    }

    /// Updates delay target and window bound, every 50 ms.
    fn slow_update(&mut self, now: Ticks, max_target: f64) {
        if self.settings.competing_flows {
            let time = self.origin.unwrap_or(Time::ZERO) + Span::from_secs_f64(delay::seconds(now));
            self.qdelay_target.take(time, self.delay.now, self.events);
        }
        if self.in_flight_history.len() == MAX_BYTES_IN_FLIGHT_HIST_SIZE {
            self.in_flight_history.pop_front();
        }
        self.in_flight_history.push_back(self.max_in_flight);
        if self.encoder.target() > max_target * 0.95 {
            let in_flight = self.in_flight_history.iter().copied().max().unwrap_or(0);
            let carried = self.settings.pacing_headroom * max_target / 8.0 * (self.rtt.s_rtt + 0.001);
            self.window.bound(in_flight.max(carried as i64));
        }
        if now > 2 * 65_536 {
            (self.max_in_flight_prev, self.max_in_flight) = (self.max_in_flight, 0);
        }
        self.slow_updated = now;
    }

    /// Whether the target is halved so that the base delay can be measured anew (`getTargetBitrate`).
    fn is_halved(&mut self, now: Ticks) -> bool {
        if self.delay.standing <= self.qdelay_target.get() / 8.0 {
            return false;
        }
        if now - self.halved_from > BASE_DELAY_RESET_INTERVAL {
            self.halved_from = now;
        }
        if now - self.halved_from < MIN_HALVED_TIME.max(NUM_RATE_LIMIT_RTTS * self.rtt.slow) {
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
        let scale = if self.is_halved(clock) { 0.5 } else { 1.0 };
        let Limits { min, max, .. } = self.limits;
        let target =
            Rate::from_bps_f64(self.encoder.encoder_target(&self.settings) * scale).min(max).max(min);
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
        // also if only lost packets are open, because no report would close them
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
            self.on_acked(clock, report, &acked);
            self.update_periodic(clock);
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
            // the program has no routes: the measurements of the path are dropped, the window stays; what is under way on
            // the other route is not reported any more
            (self.rtt, self.delay) = (RoundTrips::default(), Delay::default());
            self.flight.clear();
            self.losses.clear();
        }
        self.restart(now);
        if first {
            let _origin = self.clock(now);
            self.share = limits.min.as_bps_f64();
            self.encoder.begin(limits.start.clamp(limits.min, limits.target_max()).as_bps_f64());
        } else {
            self.encoder.set_target(self.share, limits);
        }
        self.decide(now)
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let clock = self.clock(now);
        let was_empty = self.flight.waits_since().is_none();
        self.flight.sent(now, packet);
        self.losses.sent(clock, packet);
        let mss_before = self.mss();
        self.update_periodic(clock);
        self.update_mss(packet.size.as_bytes().min(65_535) as i64);
        if was_empty || mss_before != self.mss() {
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
        self.update_periodic(clock);
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

    /// Target, which follows from the window. This is ours, since RFC 8699 has no scheme for controllers with a window.
    fn coupled_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.encoder.target()))
    }

    /// Sets the window from which this rate would have followed.
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
