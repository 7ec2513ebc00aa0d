//! Google congestion control at the sender, with per-packet feedback.
//!
//! draft-ietf-rmcat-gcc-02 section 3 (a), libwebrtc `goog_cc` without probing and application-limited
//! region, aiortc `rate.py`. One file a part:
//!
//! ```text
//! report -> seen -> groups -> kalman | trendline -> detector (threshold) -> rate (capacity) -> min -> target
//!             |                                                              ^                  ^
//!             +-> acked: received rate --------------------------------------+                  |
//!             +-> loss: fraction lost, loss-based rate -----------------------------------------+
//! ```
//!
//! What differs between the three is in [`settings`], and only there.

pub mod acked;
pub mod bayes;
pub mod capacity;
pub mod detector;
pub mod groups;
pub mod kalman;
pub mod loss;
pub mod rate;
pub mod seen;
pub mod settings;
pub mod silence;
pub mod threshold;
pub mod trendline;

use crate::{Entry, Needs};
use acked::Acked;
use detector::Detector;
use groups::{Delta, Groups};
use kalman::Kalman;
use loss::Loss;
use rate::Aimd;
use seen::{News, Seen};
use settings::{AdaptClock, Filter, LossFrom, NAME, PRESETS, Settings, TABLE};
use silence::Silence;
use tidegate_core::control::{Context, Controller, Decision, Limits, Report, Sent};
use tidegate_core::units::{Rate, RemoteTime, Size, Span, Time};
use trendline::Trendline;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "Google congestion control: delay gradient, received rate and loss, at the sender",
    presets: PRESETS,
    settings: TABLE,
    defaults: Settings::defaults,
    build: |preset, overrides| Ok(Box::new(Gcc::new(Settings::with(preset, overrides)?))),
    receiver: None,
    needs: Needs::PerPacket,
};

/// No rate goes below this, whatever the limits say, unless their maximum does
/// (libwebrtc kCongestionControllerMinBitrate).
const LEAST: Rate = Rate::from_kbps(5);

/// The filter in use.
#[derive(Clone)]
enum Trend {
    Kalman(Kalman),
    Line(Trendline),
}

/// A received packet, as the delay-based part sees it.
#[derive(Clone, Copy)]
struct Arrival {
    arrived: RemoteTime,
    sequence: u64,
    sent: Time,
    size: Size,
}

/// GCC at the sender.
pub struct Gcc {
    settings: Settings,
    limits: Limits,
    /// Whether the first limits have come.
    begun: bool,
    seen: Seen,
    groups: Groups,
    trend: Trend,
    detector: Detector,
    acked: Acked,
    rate: Aimd,
    loss: Loss,
    silence: Silence,
    rtt: Span,
    /// What a receiver allows by REMB.
    remb: Option<Rate>,
    last_feedback: Option<Time>,
    alarm: Option<Time>,
    /// Received packets of one report in order of arrival; kept for its room.
    arrivals: Vec<Arrival>,
}

impl Gcc {
    /// A controller with these settings; it begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let limits = Limits::default();
        let start = limits.start.as_bps_f64();
        Self {
            limits,
            begun: false,
            seen: Seen::default(),
            groups: Groups::default(),
            trend: Trend::new(&settings),
            detector: Detector::new(&settings),
            acked: Acked::new(&settings),
            rate: Aimd::new(&settings, start),
            loss: Loss::new(start),
            silence: Silence::default(),
            rtt: Span::from_millis_f64(settings.default_rtt),
            remb: None,
            last_feedback: None,
            alarm: None,
            arrivals: Vec::with_capacity(64),
            settings,
        }
    }

    /// Forgets the path and begins with the start rate of the limits.
    fn begin(&mut self) {
        let limits = self.limits;
        let arrivals = std::mem::take(&mut self.arrivals);
        // the same packets may still be reported on: what was heard of them stays known
        let seen = self.seen.clone();
        *self = Self { limits, begun: true, seen, arrivals, ..Self::new(self.settings.clone()) };
        let start = limits.start.clamp(self.least(), limits.max).as_bps_f64();
        self.rate = Aimd::new(&self.settings, start);
        self.loss = Loss::new(start);
    }

    fn least(&self) -> Rate {
        self.limits.min.max(LEAST.min(self.limits.max))
    }

    fn within_limits(&self, rate: f64) -> f64 {
        rate.min(self.limits.max.as_bps_f64()).max(self.least().as_bps_f64())
    }

    fn decision(&self, now: Time) -> Decision {
        let mut target = self.rate.rate;
        if self.settings.loss_part {
            target = target.min(self.loss.target);
        }
        if let Some(remb) = self.remb {
            target = target.min(remb.as_bps_f64());
        }
        let target = Rate::from_bps_f64(self.within_limits(target)).clamp(self.limits.min, self.limits.max);
        Decision {
            pacing: target.scaled(self.settings.pacing_factor),
            alarm: self.alarm.filter(|&at| at > now),
            ..Decision::rate(target)
        }
    }

    /// Sorts a report into arrivals and losses. Answers with the shortest round trip in it: that of
    /// the packet that waited least at the receiver.
    fn sort(&mut self, now: Time, report: &Report) -> Option<Span> {
        self.arrivals.clear();
        let (mut expected, mut lost) = (0, 0);
        for packet in &report.packets {
            let news = self.seen.note(packet.sequence, packet.arrival.is_some());
            match news {
                News::Received => expected += 1,
                News::Lost => (expected, lost) = (expected + 1, lost + 1),
                News::Recovered => lost -= 1,
                News::Nothing => continue,
            }
            if let Some(arrived) = packet.arrival {
                let (sequence, sent, size) = (packet.sequence, packet.sent, packet.size);
                self.arrivals.push(Arrival { arrived, sequence, sent, size });
            }
        }
        let order = |a: &Arrival| (a.arrived, a.sequence);
        if !self.arrivals.is_sorted_by_key(order) {
            self.arrivals.sort_unstable_by_key(order);
        }
        if self.settings.loss_from == LossFrom::Packets && expected > 0 {
            self.loss.packets(&self.settings, expected, lost, now);
        }
        let newest = self.arrivals.last()?.arrived.as_nanos();
        let round_trip = |a: &Arrival| {
            let waited = newest.saturating_sub(a.arrived.as_nanos());
            now.as_nanos().saturating_sub(a.sent.as_nanos()).saturating_sub(waited)
        };
        self.arrivals.iter().map(round_trip).min().map(|nanos| Span::from_nanos(nanos.max(0)))
    }

    /// The delay-based part of one packet.
    fn packet(&mut self, now: Time, packet: Arrival, cx: &mut Context<'_>) {
        let settings = &self.settings;
        self.acked.packet(settings, packet.sent, packet.arrived, packet.size);
        let delta = self.groups.packet(settings, packet.sent, packet.arrived, packet.size, now);
        let Some(delta) = delta else { return };
        let clock = match settings.adapt_clock {
            AdaptClock::Packet => packet.arrived,
            AdaptClock::Group => delta.arrived,
        };
        let clock = clock.as_nanos() as f64 / 1e6;
        let estimate = match &mut self.trend {
            Trend::Kalman(filter) => {
                filter.update(settings, delta.arrival, delta.send, delta.size, self.detector.usage);
                filter.offset
            }
            Trend::Line(filter) => {
                filter.update(settings, delta.variation(), clock);
                filter.trend
            }
        };
        self.detector.detect(settings, estimate, delta.send, clock);
        if cx.wants_notes() {
            self.note_group(&delta, cx);
        }
    }

    fn note_group(&self, delta: &Delta, cx: &mut Context<'_>) {
        match &self.trend {
            Trend::Kalman(filter) => {
                cx.note("offset", filter.offset);
                cx.note("slope", filter.slope);
                cx.note("var_noise", filter.var_noise);
            }
            Trend::Line(filter) => cx.note("trend", filter.trend),
        }
        cx.note("num_deltas", self.detector.num_deltas as f64);
        cx.note("threshold", self.detector.threshold.value);
        cx.note("state", self.detector.usage.code());
        cx.note("group_delta_ms", delta.variation());
    }

    fn note_rates(&self, received: Option<f64>, cx: &mut Context<'_>) {
        cx.note("rate_state", self.rate.state.code());
        cx.note("delay_based", self.rate.rate);
        if self.settings.loss_part {
            cx.note("loss_based", self.loss.target);
            cx.note("loss_fraction", self.loss.fraction);
        }
        if let Some(received) = received {
            cx.note("received_rate", received);
        }
        cx.note("rtt_ms", self.rtt.as_millis_f64());
    }

    /// Starts the delay-based part anew after a long gap in the feedback (libwebrtc kStreamTimeOut).
    fn check_gap(&mut self, now: Time) {
        let gap = self.last_feedback.replace(now).map_or(Span::ZERO, |last| now.saturating_since(last));
        let timeout = self.settings.stream_timeout;
        if timeout > 0.0 && gap.as_millis_f64() > timeout {
            self.groups = Groups::default();
            self.trend = Trend::new(&self.settings);
            self.detector = Detector::new(&self.settings);
        }
    }

    /// Lowers the rate for want of feedback, at most once in an interval, and sets the next alarm.
    fn back_off(&mut self, now: Time) {
        let settings = &self.settings;
        let interval = Span::from_millis_f64(settings.silence_interval);
        let due = self.loss.last_decrease.map_or(now, |last| last + interval);
        let rate = if settings.loss_part { self.loss.target } else { self.rate.rate };
        let floor = settings.silence_floor.max(self.least().as_bps_f64());
        if rate <= floor {
            self.alarm = None;
        } else if due > now {
            self.alarm = Some(due);
        } else {
            let rate = (rate * settings.silence_factor).max(floor);
            if settings.loss_part {
                self.loss.target = rate;
            } else {
                self.rate.set(rate, now);
            }
            self.loss.last_decrease = Some(now);
            self.alarm = Some(now + interval);
        }
    }
}

impl Trend {
    fn new(settings: &Settings) -> Self {
        match settings.filter {
            Filter::Kalman => Self::Kalman(Kalman::new(settings)),
            Filter::Trendline => Self::Line(Trendline::new(settings)),
        }
    }
}

impl Controller for Gcc {
    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        if let Some(remb) = report.remb {
            // a REMB of zero lifts the limit (libwebrtc UpdateReceiverEstimate)
            self.remb = Some(remb).filter(|&remb| remb > Rate::ZERO);
        }
        let shortest = self.sort(now, report);
        if let Some(rtt) = report.rtt.or(shortest).filter(|&rtt| rtt > Span::ZERO)
            && self.settings.measure_rtt
        {
            self.rtt = rtt;
        }
        if let (Some(loss), LossFrom::ReceiverReports) = (&report.loss, self.settings.loss_from) {
            self.loss.receiver_report(&self.settings, loss.expected, loss.cumulative_lost, now);
        }
        let mut received = None;
        if let Some(shortest) = shortest {
            self.silence.feedback(shortest, now);
            self.check_gap(now);
            for at in 0..self.arrivals.len() {
                self.packet(now, self.arrivals[at], cx);
            }
            received = self.acked.rate(&self.settings);
            self.rate.update(&self.settings, self.detector.usage, received, self.rtt, now);
            self.rate.rate = self.within_limits(self.rate.rate);
        }
        if self.silence.too_long(&self.settings) {
            self.back_off(now);
        } else {
            self.alarm = None;
            self.loss.update(&self.settings, self.rate.rate, self.rtt, now);
        }
        self.loss.target = self.within_limits(self.loss.target);
        if cx.wants_notes() && shortest.is_some() {
            self.note_rates(received, cx);
        }
        self.decision(now)
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.alarm = None;
        if self.silence.too_long(&self.settings) {
            self.back_off(now);
            self.note_rates(None, cx);
        }
        self.decision(now)
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        let limit_ended = self.limits.app_limited && !limits.app_limited;
        self.limits = *limits;
        if limit_ended {
            self.acked.limit_ended();
        }
        if limits.route_changed || !self.begun {
            self.begin();
        }
        self.rate.rate = self.within_limits(self.rate.rate);
        self.loss.target = self.within_limits(self.loss.target);
        self.decision(now)
    }

    fn on_sent(&mut self, now: Time, _packet: &Sent, cx: &mut Context<'_>) -> Decision {
        self.silence.packet(now);
        if self.alarm.is_some() || !self.silence.too_long(&self.settings) {
            return cx.unchanged();
        }
        self.back_off(now);
        self.decision(now)
    }

    fn needs_sent(&self) -> bool {
        self.settings.silence_limit > 0.0
    }
}
