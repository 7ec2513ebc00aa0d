//! The delay-based part, wherever it is placed: groups, filter, detector, received rate, rate control.

use super::detector::Detector;
use super::groups::{Delta, Groups};
use super::kalman::Kalman;
use super::rate::Aimd;
use super::received::Received;
use super::singles::Singles;
use super::trendline::Trendline;
use tidegate_core::control::Context;
use tidegate_core::units::{RemoteTime, Size, Span, Time};

/// What the filter takes for a group.
#[derive(Clone)]
pub enum Grouping {
    /// What was sent, or delivered, in one burst; in order of arrival.
    Bursts(Groups),
    /// Each packet by itself; those of a report in order of their numbers.
    Packets(Singles),
}

/// What turns delay variation into a trend.
#[derive(Clone)]
pub enum Filter {
    /// The draft's, aiortc's and older libwebrtc's.
    Kalman(Kalman),
    /// libwebrtc's since 2017.
    Trendline(Trendline),
}

/// What a delay-based part is put together from.
#[derive(Clone)]
pub struct Parts {
    /// Packets into groups.
    pub grouping: Grouping,
    /// Differences between groups into a trend.
    pub filter: Filter,
    /// The trend into a verdict.
    pub detector: Detector,
    /// How fast what was sent arrives.
    pub received: Received,
    /// Verdict and received rate into a rate.
    pub rate: Aimd,
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
    parts: Parts,
    /// The parts as they were made.
    fresh: Parts,
    /// Grouping, filter and detector begin anew after so long without packets.
    timeout: Option<Span>,
    /// When packets were last heard of, by our clock.
    last_heard: Option<Time>,
    /// The last difference between two groups.
    last_delta: Option<Delta>,
}

impl Delay {
    /// A delay-based part of these parts, none of which has seen anything.
    #[must_use]
    pub fn new(parts: Parts, timeout: Option<Span>) -> Self {
        Self { fresh: parts.clone(), parts, timeout, last_heard: None, last_delta: None }
    }

    /// Forgets the path and begins with `start` bit/s.
    pub fn begin(&mut self, start: f64) {
        *self = Self::new(self.fresh.clone(), self.timeout);
        self.parts.rate.begin(start);
    }

    /// The delay-based rate, bit/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.parts.rate.rate
    }

    /// Sets the rate from outside, bit/s.
    pub fn set_rate(&mut self, rate: f64, now: Time) {
        self.parts.rate.set(rate, now);
    }

    /// Goes on from so many times its rate.
    pub fn scale(&mut self, factor: f64) {
        self.parts.rate.scale(factor);
    }

    /// Whether the packets of a report are wanted in order of their numbers, not of arrival.
    #[must_use]
    pub fn by_number(&self) -> bool {
        matches!(self.parts.grouping, Grouping::Packets(_))
    }

    /// Packets are heard of `now`: starts anew after a long gap.
    pub fn hear(&mut self, now: Time) {
        let gap = self.last_heard.replace(now).map_or(Span::ZERO, |last| now.saturating_since(last));
        if self.timeout.is_some_and(|timeout| gap > timeout) {
            self.start_anew();
        }
    }

    /// Forgets everything but the rates.
    pub fn start_anew(&mut self) {
        self.parts.grouping = self.fresh.grouping.clone();
        self.parts.filter = self.fresh.filter.clone();
        self.parts.detector = self.fresh.detector.clone();
        self.last_delta = None;
    }

    /// Counts a packet in the received rate; in order of arrival.
    pub fn count(&mut self, packet: &Arrival) {
        self.parts.received.packet(packet.sent, packet.arrived, packet.size);
    }

    /// Takes a packet, heard of `now` by our clock, for the filter and the detector.
    pub fn arrive(&mut self, now: Time, packet: &Arrival, cx: &mut Context<'_>) {
        let &Arrival { arrived, sent, size } = packet;
        let delta = match &mut self.parts.grouping {
            Grouping::Bursts(groups) => groups.packet(sent, arrived, size, now),
            Grouping::Packets(singles) => singles.packet(sent, arrived, size),
        };
        let Some(delta) = delta else { return };
        self.last_delta = Some(delta);
        self.difference(&delta, cx);
    }

    /// A packet was lost: the last difference counts once more, at the time at which it counted before.
    pub fn lose(&mut self, cx: &mut Context<'_>) {
        if let Some(delta) = self.last_delta {
            self.difference(&delta, cx);
        }
    }

    fn difference(&mut self, delta: &Delta, cx: &mut Context<'_>) {
        let clock = delta.arrived.as_nanos() as f64 / 1e6;
        let detector = &mut self.parts.detector;
        let estimate = match &mut self.parts.filter {
            Filter::Kalman(filter) => {
                filter.update(delta.arrival, delta.send, delta.size, detector.usage);
                filter.offset
            }
            Filter::Trendline(filter) => {
                filter.update(delta.variation(), clock);
                filter.trend
            }
        };
        detector.detect(estimate, delta.send, clock);
        if cx.wants_notes() {
            self.note_group(delta, cx);
        }
    }

    /// Lets the rate follow the last verdict, within `bounds` (bit/s). Answers whether it was updated, and
    /// with the received rate (bit/s), if there is one.
    pub fn update(&mut self, rtt: Span, now: Time, bounds: (f64, f64)) -> (bool, Option<f64>) {
        let received = self.parts.received.rate();
        let updated = self.parts.rate.update(self.parts.detector.usage, received, rtt, now);
        self.bound(bounds);
        (updated, received)
    }

    /// Keeps the rate within `bounds` (bit/s).
    pub fn bound(&mut self, (least, most): (f64, f64)) {
        self.parts.rate.rate = self.rate().min(most).max(least);
    }

    /// The application was limited until now.
    pub fn limit_ended(&mut self) {
        self.parts.received.limit_ended();
    }

    fn note_group(&self, delta: &Delta, cx: &mut Context<'_>) {
        let detector = &self.parts.detector;
        match &self.parts.filter {
            Filter::Kalman(filter) => {
                cx.note("offset", filter.offset);
                cx.note("slope", filter.slope);
                cx.note("var_noise", filter.var_noise);
            }
            Filter::Trendline(filter) => cx.note("trend", filter.trend),
        }
        cx.note("num_deltas", detector.num_deltas as f64);
        cx.note("compared", detector.compared);
        cx.note("threshold", detector.threshold.value);
        cx.note("state", detector.usage.code());
        cx.note("group_delta_ms", delta.variation());
    }

    /// Notes the rates, with the received one (bit/s) where there is one.
    pub fn note_rates(&self, received: Option<f64>, cx: &mut Context<'_>) {
        cx.note("rate_state", self.parts.rate.state.code());
        cx.note("delay_based", self.rate());
        if let Some(received) = received {
            cx.note("received_rate", received);
        }
    }
}
