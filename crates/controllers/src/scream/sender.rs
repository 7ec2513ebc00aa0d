//! Sending half of SCReAM version 2 by its draft: takes feedback, decides window, pacing and target.

use super::alpha::{DelayAverage, L4sAlpha};
use super::competing::{LossEvents, Target};
use super::coupled::window_factor;
use super::delay::{QueueDelay, SmoothedRtt};
use super::flight::{Acked, Flight};
use super::loss::{Counted, LossRate, Losses};
use super::rate::{AckedRate, Frames, overhead, pacing, target};
use super::settings::{Marks, Settings};
use super::window::{RefWindow, Step};
use tidegate_core::control::{Context, Controller, Decision, Limits, Needs, NewFrame, Report, Sent};
use tidegate_core::{Rate, Size, Span, Time};

/// State of a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    start: Option<Time>,
    /// Largest number of bytes in flight in this round trip.
    max_in_flight: f64,
    /// Largest number of bytes in flight in the previous one.
    max_in_flight_prev: f64,
    lost: bool,
    qdelay_min: Option<f64>,
}

/// Sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    flight: Flight,
    losses: Losses,
    loss_rate: LossRate,
    rtt: SmoothedRtt,
    queue: QueueDelay,
    qdelay: f64,
    average: DelayAverage,
    alpha: L4sAlpha,
    qdelay_target: Target,
    events: LossEvents,
    window: RefWindow,
    policed: f64,
    acked_rate: AckedRate,
    frames: Frames,
    /// Whether the session has video; then audio frames do not count.
    video: bool,
    round: RoundTrip,
    /// Average of each round trip's lowest delay, s, which shows clock drift (`qdelay_min_avg`).
    drift: f64,
    /// End of the time in which the target is halved because of drift.
    halved_until: Option<Time>,
    /// Target, bit/s (`target_bitrate`).
    target: f64,
}

impl Sender {
    /// Creates a controller, which begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            limits: Limits::default(),
            flight: Flight::new(Span::from_secs_f64(settings.restart)),
            losses: Losses::new(Span::from_millis_f64(settings.reordering)),
            loss_rate: LossRate::default(),
            rtt: SmoothedRtt::default(),
            queue: QueueDelay::default(),
            qdelay: 0.0,
            average: DelayAverage::new(settings.qdelay_target),
            alpha: L4sAlpha::default(),
            qdelay_target: Target::new(settings.qdelay_target, settings.qdelay_target_max),
            events: LossEvents::default(),
            window: RefWindow::new(&settings),
            policed: f64::INFINITY,
            acked_rate: AckedRate::default(),
            frames: Frames::default(),
            video: false,
            round: RoundTrip::default(),
            drift: 0.0,
            halved_until: None,
            target: 0.0,
            settings,
        }
    }

    /// Updates the target; before the first round trip it is the session's start rate.
    fn set_target(&mut self, now: Time) {
        let set = &self.settings;
        let mut target = match self.rtt.get() {
            None => self.limits.start.as_bps_f64(),
            Some(rtt) => target(self.window.bytes, self.window.ratio(set.mss), rtt, &self.frames, set),
        };
        if self.halved_until.is_some_and(|until| now < until) {
            target /= 2.0;
        }
        self.target = target.min(self.limits.target_max().as_bps_f64()).max(self.limits.min.as_bps_f64());
    }

    fn decide(&self) -> Decision {
        let set = &self.settings;
        let Limits { min, max, .. } = self.limits;
        let target = Rate::from_bps_f64(self.target).min(max).max(min);
        let window = self.window.bytes * overhead(self.average.scale(), set);
        Decision {
            pacing: Rate::from_bps_f64(pacing(self.target, self.limits.target_max().as_bps_f64(), set)),
            pace_audio: true,
            // the draft spaces single packets
            burst: Some(Span::ZERO),
            // no window before the first round trip
            window: self.rtt.get().map(|_| Size::from_bytes(window as u64)),
            alarm: self.flight.gives_up_at(),
            ..Decision::rate(target)
        }
    }

    /// Takes counted losses and returns whether they reduce the window.
    fn on_losses(&mut self, counted: Counted) -> bool {
        let set = &self.settings;
        let alpha = (set.loss_threshold / 4.0).min(set.mss / self.window.bytes / 2.0);
        self.loss_rate.take(counted, alpha);
        if counted.lost == 0 || !set.conditional_loss {
            return counted.lost > 0;
        }
        let (rate, calm) = (self.loss_rate.get(), self.average.get() < self.qdelay_target.get() / 4.0);
        if set.policer && rate > set.policer_threshold && calm {
            self.policed = self.window.bytes * set.beta_policer;
        }
        rate > set.loss_threshold || self.average.get() > self.qdelay_target.get() / 4.0
    }

    /// Ends a round trip, if one has passed.
    fn end_round_trip(&mut self, now: Time, s_rtt: f64) {
        let start = *self.round.start.get_or_insert(now);
        if (now - start).as_secs_f64() < s_rtt {
            return;
        }
        self.events.take(self.round.lost);
        self.policed *= 1.001;
        if let Some(qdelay_min) = self.round.qdelay_min.filter(|_| self.settings.clock_drift) {
            self.drift += self.settings.drift_gain * (qdelay_min - self.drift);
            if self.drift > self.qdelay_target.get() / 4.0 {
                self.drift = 0.0;
                self.queue.reset();
                self.average = DelayAverage::new(self.settings.qdelay_target);
                self.qdelay = 0.0;
                self.halved_until = Some(now + Span::from_secs_f64((5.0 * s_rtt).max(0.2)));
            }
        }
        let max_in_flight = self.flight.bytes() as f64;
        let max_in_flight_prev = self.round.max_in_flight;
        self.round =
            RoundTrip { start: Some(now), max_in_flight, max_in_flight_prev, ..RoundTrip::default() };
    }

    fn on_acked(&mut self, now: Time, acked: &Acked, counted: Counted, qdelay: Option<Span>) {
        let Some(s_rtt) = self.rtt.get() else { return };
        if acked.packets == 0 && counted.lost == 0 {
            return;
        }
        let lost = self.on_losses(counted);
        self.round.lost |= counted.lost > 0;
        let set = &self.settings;
        self.alpha.take(now, acked, s_rtt, set);
        if let Some(qdelay) = qdelay {
            self.qdelay = qdelay.as_secs_f64().max(0.0);
            self.average.take(now, self.qdelay, self.qdelay_target.get(), s_rtt, set);
            let qdelay_min = self.round.qdelay_min.unwrap_or(f64::INFINITY).min(self.qdelay);
            self.round.qdelay_min = Some(qdelay_min);
            if set.competing_flows {
                self.qdelay_target.take(now, self.qdelay, self.events);
            }
        }
        let interval = s_rtt.max(2.0 * self.frames.period());
        self.acked_rate.take(now, acked.bytes, interval);
        let step = Step {
            now,
            acked: acked.bytes,
            marked_bytes: acked.marked_bytes,
            lost,
            marked: acked.marked > 0,
            qdelay: self.qdelay,
            qdelay_avg: self.average.get(),
            qdelay_target: self.qdelay_target.get(),
            s_rtt,
            l4s_alpha: self.alpha.get(),
            delay_scale: self.average.scale(),
            max_in_flight: self.round.max_in_flight,
            max_in_flight_prev: self.round.max_in_flight_prev,
            target: self.target,
            target_max: self.limits.target_max().as_bps_f64(),
            acked_rate: if set.undershoot { self.acked_rate.get() } else { 0.0 },
            policed: self.policed,
        };
        let _reduced = self.window.update(&step, set);
        self.end_round_trip(now, s_rtt);
    }

    fn note(&self, cx: &mut Context<'_>) {
        if !cx.wants_notes() {
            return;
        }
        cx.note("ref_wnd_bytes", self.window.bytes);
        cx.note("ref_wnd_i_bytes", self.window.inflection);
        cx.note("bytes_in_flight", self.flight.bytes() as f64);
        cx.note("s_rtt_ms", self.rtt.get().unwrap_or_default() * 1e3);
        cx.note("qdelay_ms", self.qdelay * 1e3);
        cx.note("qdelay_avg_ms", self.average.get() * 1e3);
        cx.note("qdelay_target_ms", self.qdelay_target.get() * 1e3);
        cx.note("l4s_alpha", self.alpha.get());
        cx.note("rate_adjust", self.frames.adjust());
        cx.note("frame_size_dev", self.frames.deviation());
    }
}

impl Controller for Sender {
    fn needs(&self) -> Needs {
        self.settings.ecn.needs()
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let acked = self.flight.acknowledge(now, report, self.settings.ecn != Marks::Off);
        if let Some((_, _, rtt)) = acked.newest {
            self.rtt.sample(rtt);
        }
        let counted = self.losses.take(now, report, self.rtt.get());
        let qdelay = self.queue.update(now, report);
        self.on_acked(now, &acked, counted, qdelay);
        self.flight.give_up(now);
        self.set_target(now);
        self.note(cx);
        self.decide()
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> Decision {
        self.flight.give_up(now);
        self.decide()
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        if limits.route_changed {
            // what is under way on the other route is not reported any more
            let Self { frames, video, window, .. } =
                std::mem::replace(self, Self::new(self.settings.clone()));
            (self.limits, self.frames, self.video) = (*limits, frames, video);
            self.window.bytes = window.bytes;
        }
        self.flight.give_up(now);
        self.set_target(now);
        self.decide()
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let was_empty = self.flight.waits_since().is_none();
        self.flight.sent(now, packet);
        self.round.max_in_flight = self.round.max_in_flight.max(self.flight.bytes() as f64);
        if was_empty {
            return self.decide();
        }
        cx.unchanged()
    }

    fn needs_sent(&self) -> bool {
        true
    }

    fn on_frame(&mut self, now: Time, frame: &NewFrame, cx: &mut Context<'_>) -> Decision {
        self.video |= frame.video;
        if frame.video == self.video {
            self.frames.take(now, frame, self.target, &self.settings);
        }
        cx.unchanged()
    }

    fn needs_frames(&self) -> bool {
        true
    }

    fn in_flight(&self) -> Option<Size> {
        Some(self.flight.size())
    }

    /// Target, which follows from the window. This is ours, since RFC 8699 has no scheme for controllers with a window.
    fn coupled_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.target))
    }

    /// Sets the window from which this rate would have followed.
    fn on_coupled(&mut self, now: Time, rate: Rate, _cx: &mut Context<'_>) -> Decision {
        self.flight.give_up(now);
        if let Some(s_rtt) = self.rtt.get() {
            let rate = rate.as_bps_f64();
            let factor = window_factor(self.window.bytes, rate / self.target.max(1.0), rate, s_rtt);
            self.window.multiply(factor, &self.settings);
            self.set_target(now);
        }
        self.decide()
    }
}
