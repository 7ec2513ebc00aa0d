//! The delay-based part, wherever it is placed: groups, filter, detector, received rate, rate control.

use super::acked::Acked;
use super::detector::Detector;
use super::groups::{Delta, Groups};
use super::kalman::Kalman;
use super::rate::Aimd;
use super::settings::{AdaptClock, Filter, Settings};
use super::trendline::Trendline;
use tidegate_core::control::Context;
use tidegate_core::units::{RemoteTime, Size, Span, Time};

/// The filter in use.
#[derive(Clone)]
enum Trend {
    Kalman(Kalman),
    Line(Trendline),
}

impl Trend {
    fn new(settings: &Settings) -> Self {
        match settings.filter {
            Filter::Kalman => Self::Kalman(Kalman::new(settings)),
            Filter::Trendline => Self::Line(Trendline::new(settings)),
        }
    }
}

/// A packet that has arrived.
#[derive(Clone, Copy)]
pub struct Arrival {
    /// When, by the receiver's clock.
    pub arrived: RemoteTime,
    /// When it was sent, by the sender's clock: only differences count.
    pub sent: Time,
    /// Bytes as in [`tidegate_core::control::PacketResult::size`].
    pub size: Size,
}

/// The delay-based part.
#[derive(Clone)]
pub struct Delay {
    groups: Groups,
    trend: Trend,
    detector: Detector,
    acked: Acked,
    /// The rate control.
    pub rate: Aimd,
    /// When packets were last heard of, by our clock.
    last_heard: Option<Time>,
    /// The last difference between two groups.
    last_delta: Option<Delta>,
}

impl Delay {
    /// A delay-based part that begins with `start` bit/s.
    #[must_use]
    pub fn new(settings: &Settings, start: f64) -> Self {
        Self {
            groups: Groups::default(),
            trend: Trend::new(settings),
            detector: Detector::new(settings),
            acked: Acked::new(settings),
            rate: Aimd::new(settings, start),
            last_heard: None,
            last_delta: None,
        }
    }

    /// Packets are heard of `now`: starts anew after a long gap (libwebrtc kStreamTimeOut).
    pub fn hear(&mut self, settings: &Settings, now: Time) {
        let gap = self.last_heard.replace(now).map_or(Span::ZERO, |last| now.saturating_since(last));
        let timeout = settings.stream_timeout;
        if timeout > 0.0 && gap.as_millis_f64() > timeout {
            self.start_anew(settings);
        }
    }

    /// Forgets everything but the rates.
    pub fn start_anew(&mut self, settings: &Settings) {
        self.groups = Groups::default();
        self.trend = Trend::new(settings);
        self.detector = Detector::new(settings);
        self.last_delta = None;
    }

    /// Counts a packet in the received rate; in order of arrival.
    pub fn count(&mut self, settings: &Settings, packet: &Arrival) {
        self.acked.packet(settings, packet.sent, packet.arrived, packet.size);
    }

    /// Takes a packet, heard of `now` by our clock, for the filter and the detector.
    pub fn arrive(&mut self, settings: &Settings, now: Time, packet: &Arrival, cx: &mut Context<'_>) {
        let delta = self.groups.packet(settings, packet.sent, packet.arrived, packet.size, now);
        let Some(delta) = delta else { return };
        let clock = match settings.adapt_clock {
            AdaptClock::Packet => packet.arrived,
            AdaptClock::Group => delta.arrived,
        };
        self.last_delta = Some(delta);
        self.difference(settings, &delta, clock, cx);
    }

    /// A packet was lost: the last difference counts once more, at the time at which it counted before.
    pub fn lose(&mut self, settings: &Settings, cx: &mut Context<'_>) {
        if let Some(delta) = self.last_delta {
            self.difference(settings, &delta, delta.arrived, cx);
        }
    }

    fn difference(&mut self, settings: &Settings, delta: &Delta, clock: RemoteTime, cx: &mut Context<'_>) {
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
            self.note_group(delta, cx);
        }
    }

    /// Lets the rate follow the last verdict, within `bounds` (bit/s). Answers whether it was updated, and
    /// with the received rate (bit/s), if there is one.
    pub fn update(
        &mut self,
        settings: &Settings,
        rtt: Span,
        now: Time,
        bounds: (f64, f64),
    ) -> (bool, Option<f64>) {
        let received = self.acked.rate(settings);
        let updated = self.rate.update(settings, self.detector.usage, received, rtt, now);
        self.bound(bounds);
        (updated, received)
    }

    /// Keeps the rate within `bounds` (bit/s).
    pub fn bound(&mut self, (least, most): (f64, f64)) {
        self.rate.rate = self.rate.rate.min(most).max(least);
    }

    /// The application was limited until now.
    pub fn limit_ended(&mut self) {
        self.acked.limit_ended();
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
        cx.note("compared", self.detector.compared);
        cx.note("threshold", self.detector.threshold.value);
        cx.note("state", self.detector.usage.code());
        cx.note("group_delta_ms", delta.variation());
    }

    /// Notes the rates, with the received one (bit/s) where there is one.
    pub fn note_rates(&self, received: Option<f64>, cx: &mut Context<'_>) {
        cx.note("rate_state", self.rate.state.code());
        cx.note("delay_based", self.rate.rate);
        if let Some(received) = received {
            cx.note("received_rate", received);
        }
    }
}
