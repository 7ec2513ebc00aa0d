//! Delay-based part in either placement: groups, filter, detector, received rate, rate control.

use super::detector::Detector;
use super::groups::{Delta, Groups};
use super::kalman::Kalman;
use super::rate::Aimd;
use super::received::Received;
use super::singles::Singles;
use super::trendline::Trendline;
use tidegate_core::control::Context;
use tidegate_core::units::{RemoteTime, Size, Span, Time};

/// Packets that form a group for the filter.
#[derive(Clone)]
pub enum Grouping {
    /// Packets that were sent or delivered in one burst, in order of arrival.
    Bursts(Groups),
    /// Single packets; those of a report in order of sequence numbers.
    Packets(Singles),
}

/// Filter that turns delay variation into a trend.
#[derive(Clone)]
pub enum Filter {
    /// Kalman filter of the draft, aiortc and older libwebrtc.
    Kalman(Kalman),
    /// Trendline of libwebrtc since 2017.
    Trendline(Trendline),
}

/// Components of a delay-based part.
#[derive(Clone)]
pub struct Parts {
    /// Forms groups of packets.
    pub grouping: Grouping,
    /// Turns differences between groups into a trend.
    pub filter: Filter,
    /// Turns the trend into a verdict.
    pub detector: Detector,
    /// Measures the received rate.
    pub received: Received,
    /// Turns verdict and received rate into the delay-based rate.
    pub rate: Aimd,
}

/// Received packet.
#[derive(Clone, Copy)]
pub struct Arrival {
    /// Arrival, by the receiver's clock.
    pub arrived: RemoteTime,
    /// Departure, by the sender's clock; only differences count.
    pub sent: Time,
    /// Size, as in [`tidegate_core::control::PacketResult::size`].
    pub size: Size,
}

/// Delay-based part.
#[derive(Clone)]
pub struct Delay {
    parts: Parts,
    /// Copies of the parts in their first state.
    initial: Parts,
    /// Time without packets after which grouping, filter and detector start anew.
    timeout: Option<Span>,
    /// Time of the last report with received packets, by our clock.
    last_arrival_report: Option<Time>,
    /// Last difference between two groups.
    last_delta: Option<Delta>,
}

impl Delay {
    /// Creates a delay-based part from parts in their first state.
    #[must_use]
    pub fn new(parts: Parts, timeout: Option<Span>) -> Self {
        Self { initial: parts.clone(), parts, timeout, last_arrival_report: None, last_delta: None }
    }

    /// Forgets the path and begins with `start` bit/s.
    pub fn begin(&mut self, start: f64) {
        *self = Self::new(self.initial.clone(), self.timeout);
        self.parts.rate.begin(start);
    }

    /// Delay-based rate, bit/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.parts.rate.rate
    }

    /// Sets the rate from outside, bit/s.
    pub fn set_rate(&mut self, rate: f64, now: Time) {
        self.parts.rate.set(rate, now);
    }

    /// Multiplies the rate by `factor`.
    pub fn scale(&mut self, factor: f64) {
        self.parts.rate.scale(factor);
    }

    /// Whether the packets of a report have to come in order of sequence numbers instead of arrival.
    #[must_use]
    pub fn by_number(&self) -> bool {
        matches!(self.parts.grouping, Grouping::Packets(_))
    }

    /// Counts a report with received packets; starts anew after a long gap.
    pub fn on_arrivals(&mut self, now: Time) {
        let gap = self.last_arrival_report.replace(now).map_or(Span::ZERO, |last| now.saturating_since(last));
        if self.timeout.is_some_and(|timeout| gap > timeout) {
            self.start_anew();
        }
    }

    /// Puts grouping, filter and detector into their first state; the rates stay.
    pub fn start_anew(&mut self) {
        self.parts.grouping = self.initial.grouping.clone();
        self.parts.filter = self.initial.filter.clone();
        self.parts.detector = self.initial.detector.clone();
        self.last_delta = None;
    }

    /// Counts a packet in the received rate; packets come in order of arrival.
    pub fn count(&mut self, packet: &Arrival) {
        self.parts.received.packet(packet.sent, packet.arrived, packet.size);
    }

    /// Passes a packet, reported `now` by our clock, to the filter and the detector.
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

    /// Counts a lost packet: the last difference counts once more, at the same time as before.
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

    /// Updates the rate from the last verdict, within `bounds` (bit/s). Returns whether it was updated, and the received
    /// rate (bit/s), if there is one.
    pub fn update(&mut self, rtt: Span, now: Time, bounds: (f64, f64)) -> (bool, Option<f64>) {
        let received = self.parts.received.rate();
        let updated = self.parts.rate.update(self.parts.detector.usage, received, rtt, now);
        self.bound(bounds);
        (updated, received)
    }

    /// Keeps the rate within `bounds` (bit/s).
    pub fn bound(&mut self, (min_rate, max_rate): (f64, f64)) {
        self.parts.rate.rate = self.rate().min(max_rate).max(min_rate);
    }

    /// Tells the received rate that an application-limited time has ended.
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

    /// Notes the rates, including the received one (bit/s) if it is given.
    pub fn note_rates(&self, received: Option<f64>, cx: &mut Context<'_>) {
        cx.note("rate_state", self.parts.rate.state.code());
        cx.note("delay_based", self.rate());
        if let Some(received) = received {
            cx.note("received_rate", received);
        }
    }
}
