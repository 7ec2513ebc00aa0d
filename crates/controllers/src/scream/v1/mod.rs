//! SCReAM version 1 (RFC 8298): a window controlled by the queueing delay as in LEDBAT, and a target that follows the rate
//! through the window.

pub mod rate;
pub mod settings;
pub mod trend;
pub mod window;

use super::competing::{LossEvents, Target as QdelayTarget};
use super::coupled::window_factor;
use super::delay::{QueueDelay, SmoothedRtt};
use super::flight::Flight;
use super::loss::Losses;
use super::settings::Marks;
use rate::{Interval, Target};
use settings::Settings;
use tidegate_core::control::{Context, Controller, Decision, Limits, Needs, NewFrame, Report, Sent};
use tidegate_core::{Rate, Size, Span, Time};
use trend::Trend;
use window::{Acknowledged, MaxInFlight, Window};

/// Time between two samples of the delay (section 4.1.2).
const SAMPLE_INTERVAL: Span = Span::from_millis(50);

/// Sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    flight: Flight,
    max_in_flight: MaxInFlight,
    losses: Losses,
    rtt: SmoothedRtt,
    queue: QueueDelay,
    qdelay: f64,
    qdelay_target: QdelayTarget,
    events: LossEvents,
    round_start: Option<Time>,
    round_lost: bool,
    trend: Trend,
    window: Window,
    target: Target,
    last_event: Option<Time>,
    next_sample: Option<Time>,
    next_adjustment: Time,
    /// Bytes sent in this interval.
    sent: f64,
    /// Bytes acknowledged in this interval.
    acked: f64,
    /// Bytes encoded in this interval.
    encoded: f64,
    /// Bytes waiting in the pacer.
    backlog: f64,
}

impl Sender {
    /// Creates a controller, which begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            limits: Limits::default(),
            flight: Flight::new(Span::from_secs_f64(settings.restart)),
            max_in_flight: MaxInFlight::default(),
            losses: Losses::new(Span::from_millis_f64(settings.reordering)),
            rtt: SmoothedRtt::default(),
            queue: QueueDelay::default(),
            qdelay: 0.0,
            qdelay_target: QdelayTarget::new(settings.qdelay_target, settings.qdelay_target_max),
            events: LossEvents::default(),
            round_start: None,
            round_lost: false,
            trend: Trend::default(),
            window: Window::new(&settings),
            target: Target::new(0.0),
            last_event: None,
            next_sample: None,
            next_adjustment: Time::ZERO,
            sent: 0.0,
            acked: 0.0,
            encoded: 0.0,
            backlog: 0.0,
            settings,
        }
    }

    fn interval(&self) -> Span {
        Span::from_secs_f64(self.settings.adjust_interval)
    }

    /// Samples the delay and adjusts the target for each interval that has passed since the last call.
    fn process(&mut self, now: Time) {
        let Some(mut next_sample) = self.next_sample else { return };
        // no catching up after a driver has slept for minutes
        if now - next_sample > Span::from_secs(10) {
            (next_sample, self.next_adjustment) = (now, now);
        }
        while next_sample <= now {
            self.trend.take(self.qdelay / self.qdelay_target.get(), self.settings.qdelay_weight);
            next_sample += SAMPLE_INTERVAL;
        }
        self.next_sample = Some(next_sample);
        while self.next_adjustment <= now {
            let seconds = self.settings.adjust_interval;
            let rate = |bytes: f64| bytes * 8.0 / seconds;
            let interval = Interval {
                transmit: rate(self.sent),
                acked: rate(self.acked),
                media: rate(self.encoded),
                queue: self.backlog * 8.0,
                fast: self.window.fast,
                trend: self.trend.get(),
                trend_memory: self.trend.memory(),
                min: self.limits.min.as_bps_f64(),
                max: self.limits.target_max().as_bps_f64(),
            };
            self.target.adjust(&interval, &self.settings);
            (self.sent, self.acked, self.encoded) = (0.0, 0.0, 0.0);
            self.next_adjustment += self.interval();
        }
        self.flight.give_up(now);
    }

    fn decide(&self) -> Decision {
        let set = &self.settings;
        let Limits { min, max, start, .. } = self.limits;
        let target = Rate::from_bps_f64(self.target.rate).min(max).max(min);
        let pacing = self.rtt.get().map_or(start.as_bps_f64(), |rtt| self.window.bytes * 8.0 / rtt);
        let window = self.window.send(self.qdelay, self.qdelay_target.get(), set);
        let restart = self.flight.gives_up_at().unwrap_or(Time::MAX);
        Decision {
            pacing: Rate::from_bps_f64(pacing.max(set.pace_min)),
            pace_audio: true,
            burst: Some(Span::ZERO),
            window: self.rtt.get().map(|_| Size::from_bytes(window as u64)),
            alarm: Some(self.next_adjustment.min(restart)),
            ..Decision::rate(target)
        }
    }

    /// Reacts to losses and marks and returns whether they are a congestion event; for a round trip after one they are
    /// ignored.
    fn congestion(&mut self, now: Time, lost: bool, marked: bool, s_rtt: f64) -> bool {
        let is_recent = self.last_event.is_some_and(|last| (now - last).as_secs_f64() < s_rtt);
        if !(lost || marked) || is_recent {
            return false;
        }
        self.last_event = Some(now);
        let (factor, min) = (
            if lost { self.settings.beta_rate } else { self.settings.beta_ecn },
            self.limits.min.as_bps_f64(),
        );
        self.window.congestion(lost, &self.settings);
        self.target.reduce(factor, min);
        true
    }

    fn on_packets(&mut self, now: Time, report: &Report) {
        let acked = self.flight.acknowledge(now, report, self.settings.ecn != Marks::Off);
        self.acked += acked.bytes;
        if let Some((_, _, rtt)) = acked.newest {
            self.rtt.sample(rtt);
        }
        let counted = self.losses.take(now, report, self.rtt.get());
        if let Some(qdelay) = self.queue.update(now, report) {
            self.qdelay = qdelay.as_secs_f64().max(0.0);
        }
        let Some(s_rtt) = self.rtt.get() else { return };
        let (lost, marked) = (counted.lost > 0, acked.marked > 0);
        self.round_lost |= lost;
        let start = *self.round_start.get_or_insert(now);
        if (now - start).as_secs_f64() >= s_rtt {
            self.events.take(self.round_lost);
            (self.round_start, self.round_lost) = (Some(now), false);
        }
        let congested = self.congestion(now, lost, marked, s_rtt);
        if !congested && acked.packets > 0 {
            let step = Acknowledged {
                bytes: acked.bytes,
                in_flight: self.flight.bytes() as f64,
                max_in_flight: self.max_in_flight.get() as f64,
                qdelay: self.qdelay,
                qdelay_target: self.qdelay_target.get(),
                trend: self.trend.get(),
            };
            if self.window.acknowledged(&step, &self.settings) {
                self.target.congestion();
            }
            self.window.resume(now, self.trend.get(), &self.settings);
        }
        if self.settings.competing_flows && acked.packets > 0 {
            self.qdelay_target.take(now, self.qdelay, self.events);
        }
    }

    fn note(&self, cx: &mut Context<'_>) {
        if !cx.wants_notes() {
            return;
        }
        cx.note("cwnd_bytes", self.window.bytes);
        cx.note("bytes_in_flight", self.flight.bytes() as f64);
        cx.note("s_rtt_ms", self.rtt.get().unwrap_or_default() * 1e3);
        cx.note("qdelay_ms", self.qdelay * 1e3);
        cx.note("qdelay_target_ms", self.qdelay_target.get() * 1e3);
        cx.note("qdelay_trend", self.trend.get());
        cx.note("fast_increase", f64::from(u8::from(self.window.fast)));
    }
}

impl Controller for Sender {
    fn needs(&self) -> Needs {
        self.settings.ecn.needs()
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        // with the delay before this report
        self.process(now);
        self.backlog = report.backlog.as_bytes() as f64;
        self.on_packets(now, report);
        self.note(cx);
        self.decide()
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> Decision {
        self.process(now);
        self.decide()
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        if self.next_sample.is_none() {
            self.target = Target::new(limits.start.as_bps_f64());
            (self.next_sample, self.next_adjustment) = (Some(now + SAMPLE_INTERVAL), now + self.interval());
        }
        if limits.route_changed {
            (self.rtt, self.queue, self.qdelay) = (SmoothedRtt::default(), QueueDelay::default(), 0.0);
            (self.trend, self.last_event) = (Trend::default(), None);
            // what is under way on the other route is not reported any more
            self.flight.clear();
        }
        self.process(now);
        self.decide()
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let was_empty = self.flight.waits_since().is_none();
        self.flight.sent(now, packet);
        self.max_in_flight.take(now, self.flight.bytes());
        self.sent += packet.size.as_bytes().min(65_535) as f64;
        self.backlog = packet.backlog.as_bytes() as f64;
        if was_empty {
            self.process(now);
            return self.decide();
        }
        cx.unchanged()
    }

    fn needs_sent(&self) -> bool {
        true
    }

    fn on_frame(&mut self, _now: Time, frame: &NewFrame, cx: &mut Context<'_>) -> Decision {
        self.encoded += frame.size.as_bytes() as f64;
        self.backlog = frame.backlog.as_bytes() as f64;
        cx.unchanged()
    }

    fn needs_frames(&self) -> bool {
        true
    }

    fn in_flight(&self) -> Option<Size> {
        Some(self.flight.size())
    }

    /// Present target. This is ours, since RFC 8699 has no scheme for controllers with a window.
    fn coupled_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.target.rate))
    }

    /// Changes target and window by the same factor.
    fn on_coupled(&mut self, now: Time, rate: Rate, _cx: &mut Context<'_>) -> Decision {
        self.process(now);
        let rate = rate.min(self.limits.target_max()).max(self.limits.min).as_bps_f64();
        if let Some(s_rtt) = self.rtt.get() {
            let factor = rate / self.target.rate.max(1.0);
            let factor = window_factor(self.window.bytes, factor, rate, s_rtt);
            self.window.bytes = (self.window.bytes * factor).max(self.settings.min_cwnd);
        }
        self.target.rate = rate;
        self.decide()
    }
}
