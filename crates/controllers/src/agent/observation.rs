//! Observations of an agent: the sender's events of one interval, in their units, and scaled for a policy.

use tidegate_core::RemoteTime;
use tidegate_core::control::{Report, Sent};
use tidegate_core::datagram::Ecn;
use tidegate_core::math;
use tidegate_core::units::{Rate, Size, Span, Time};

/// Description of one number of an observation.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Name.
    pub name: &'static str,
    /// Unit before scaling.
    pub unit: &'static str,
    /// Lowest scaled value.
    pub low: f32,
    /// Highest scaled value.
    pub high: f32,
    /// Meaning and scaling.
    pub doc: &'static str,
}

const fn feature(name: &'static str, unit: &'static str, low: f32, high: f32, doc: &'static str) -> Feature {
    Feature { name, unit, low, high, doc }
}

/// Numbers of an interval, in order. Rates are scaled by their logarithm, so that `min` is -1 and `max` is 1, and clamped to
/// -2 and 2; a time t becomes t / (t + c), which stays below 1.
pub const FEATURES: [Feature; COUNT] = [
    feature(
        "rate",
        "bit/s",
        -1.0,
        1.0,
        "decided rate; on a logarithmic scale, -1 at the minimum and 1 at the maximum",
    ),
    feature(
        "sent",
        "bit/s",
        -2.0,
        2.0,
        "rate of the RTP bytes sent in the interval; scaled like `rate` and clamped to [-2, 2]",
    ),
    feature(
        "acknowledged",
        "bit/s",
        -2.0,
        2.0,
        "rate of the RTP bytes reported as received, between the newest arrivals of two feedbacks; scaled as `sent`",
    ),
    feature("loss", "1", 0.0, 1.0, "share of lost packets among the reported packets"),
    feature(
        "marked",
        "1",
        0.0,
        1.0,
        "share of packets marked as Congestion Experienced among the received packets",
    ),
    feature(
        "delay",
        "ms",
        0.0,
        1.0,
        "mean one-way delay of the reported packets above the lowest so far; t / (t + 100 ms)",
    ),
    feature(
        "gradient",
        "1",
        -1.0,
        1.0,
        "growth g of the mean one-way delay from one feedback to the next, per time between arrivals; g / (|g| + 0.1)",
    ),
    feature("round_trip", "ms", 0.0, 1.0, "last round trip; t / (t + 200 ms)"),
    feature(
        "waiting",
        "ms",
        0.0,
        1.0,
        "sending time of the bytes waiting at the sender, at the decided rate; t / (t + 100 ms)",
    ),
    feature(
        "in_flight",
        "ms",
        0.0,
        1.0,
        "sending time of the bytes in flight, at the decided rate; t / (t + 200 ms)",
    ),
    feature("silence", "ms", 0.0, 1.0, "time since the last feedback; t / (t + 200 ms)"),
];

/// Number of numbers in an interval.
pub const COUNT: usize = 11;

/// Scale of delays in queues, ms.
const QUEUE_SCALE: f64 = 100.0;
/// Scale of round trips, ms.
const RTT_SCALE: f64 = 200.0;
/// Scale of the delay's gradient.
const GRADIENT_SCALE: f64 = 0.1;

/// Observation of one interval. Without new feedback, a value stays as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Decided rate, bit/s.
    pub rate: f64,
    /// Sent RTP bytes, as a rate in bit/s.
    pub sent: f64,
    /// RTP bytes reported as received, as a rate in bit/s.
    pub acknowledged: f64,
    /// Share of packets reported as lost.
    pub loss: f64,
    /// Share of received packets that were marked.
    pub marked: f64,
    /// Mean one-way delay above the lowest, ms.
    pub delay: f64,
    /// Growth of that delay per time.
    pub gradient: f64,
    /// Last round trip, ms.
    pub round_trip: f64,
    /// Bytes waiting at the sender, in ms at the decided rate.
    pub waiting: f64,
    /// Bytes in flight, in ms at the decided rate.
    pub in_flight: f64,
    /// Time since the last feedback, ms.
    pub silence: f64,
}

/// Position of a rate on a logarithmic scale with -1 at `low` and 1 at `high`.
pub(super) fn by_logarithm(rate: f64, (low, high): (f64, f64)) -> f64 {
    2.0 * math::ln(rate.max(1.0) / low) / math::ln(high / low) - 1.0
}

impl Observation {
    /// Numbers in their units, in the order of [`FEATURES`].
    #[must_use]
    pub fn values(&self) -> [f64; COUNT] {
        [
            self.rate,
            self.sent,
            self.acknowledged,
            self.loss,
            self.marked,
            self.delay,
            self.gradient,
            self.round_trip,
            self.waiting,
            self.in_flight,
            self.silence,
        ]
    }

    /// Numbers scaled for rates between `bounds`, bit/s; see [`FEATURES`].
    #[must_use]
    pub fn scaled(&self, bounds: (f64, f64)) -> [f32; COUNT] {
        let rate = |rate| by_logarithm(rate, bounds).clamp(-2.0, 2.0);
        let time = |time: f64, half| time.max(0.0) / (time.max(0.0) + half);
        [
            rate(self.rate).clamp(-1.0, 1.0),
            rate(self.sent),
            rate(self.acknowledged),
            self.loss,
            self.marked,
            time(self.delay, QUEUE_SCALE),
            self.gradient / (self.gradient.abs() + GRADIENT_SCALE),
            time(self.round_trip, RTT_SCALE),
            time(self.waiting, QUEUE_SCALE),
            time(self.in_flight, RTT_SCALE),
            time(self.silence, RTT_SCALE),
        ]
        .map(|value| value as f32)
    }
}

/// Mean delay and arrival of the packets in an interval's feedback.
#[derive(Clone, Copy, Debug)]
struct MeanArrival {
    /// Mean one-way delay relative to that of the first packet, ns.
    delay: f64,
    /// Mean arrival since the first one by the far clock, ns.
    arrival: f64,
}

/// Collector of a sender's events until the end of an interval.
#[derive(Debug, Default)]
pub(super) struct Collector {
    sent: Size,
    acknowledged: Size,
    /// Time between the newest arrivals of the feedbacks, by the far clock.
    arriving: Span,
    packets: u32,
    lost: u32,
    marked: u32,
    /// Sum of one-way delays relative to that of the first packet, ns.
    delays: i64,
    /// Sum of arrivals since the first one, ns.
    arrivals: i64,
    /// Departure and arrival of the first received packet, to which delays and arrivals are relative.
    origin: Option<(Time, RemoteTime)>,
    min_delay: Option<Span>,
    newest: Option<RemoteTime>,
    before: Option<MeanArrival>,
    last_feedback: Option<Time>,
    waiting: Size,
    in_flight: Size,
    last: Observation,
}

impl Collector {
    /// Starts the collection.
    pub(super) fn begin(&mut self, now: Time) {
        self.last_feedback = Some(now);
    }

    /// Observation of the last interval.
    pub(super) fn last(&self) -> Observation {
        self.last
    }

    /// Takes a packet that leaves.
    #[inline]
    pub(super) fn sent(&mut self, packet: &Sent) {
        self.sent += packet.size;
        (self.waiting, self.in_flight) = (packet.backlog, packet.in_flight);
    }

    /// Takes feedback.
    pub(super) fn report(&mut self, now: Time, report: &Report) {
        if let Some(round_trip) = report.rtt() {
            self.last.round_trip = round_trip.as_millis_f64();
        }
        (self.waiting, self.in_flight) = (report.backlog, report.in_flight);
        if report.packets.is_empty() {
            return;
        }
        self.last_feedback = Some(now);
        for result in &report.packets {
            let Some(arrival) = result.arrival else {
                self.lost += 1;
                continue;
            };
            let (sent, origin) = *self.origin.get_or_insert((result.sent, arrival));
            let (since, newest) = (arrival - origin, *self.newest.get_or_insert(arrival));
            let delay = since - (result.sent - sent);
            self.min_delay = Some(self.min_delay.map_or(delay, |min_delay| min_delay.min(delay)));
            self.acknowledged += result.size;
            self.packets += 1;
            self.marked += u32::from(result.ecn == Ecn::Ce);
            self.delays += delay.as_nanos();
            self.arrivals += since.as_nanos();
            if arrival > newest {
                self.arriving += arrival - newest;
                self.newest = Some(arrival);
            }
        }
    }

    /// Ends an interval of the length `interval`, which ends `now`, and returns its observation.
    pub(super) fn close(&mut self, now: Time, interval: Span, rate: Rate) -> Observation {
        let mut observation = Observation { gradient: 0.0, loss: 0.0, marked: 0.0, ..self.last };
        observation.rate = rate.as_bps_f64();
        observation.sent = per(self.sent, interval);
        let reported = self.packets + self.lost;
        if reported > 0 {
            observation.loss = f64::from(self.lost) / f64::from(reported);
        }
        if let (1.., Some(min_delay)) = (self.packets, self.min_delay) {
            // packets of a single burst say nothing of a rate
            observation.acknowledged = per(self.acknowledged, self.arriving.max(BURST_DELTA_THRESHOLD));
            observation.marked = f64::from(self.marked) / f64::from(self.packets);
            let mean = |sum: i64| sum as f64 / f64::from(self.packets);
            let present = MeanArrival { delay: mean(self.delays), arrival: mean(self.arrivals) };
            observation.delay = (present.delay - min_delay.as_nanos() as f64) / 1e6;
            if let Some(before) = self.before.filter(|before| present.arrival > before.arrival) {
                observation.gradient = (present.delay - before.delay) / (present.arrival - before.arrival);
            }
            self.before = Some(present);
        } else if reported > 0 {
            observation.acknowledged = 0.0;
        }
        let millis = |size: Size| size.as_bits() as f64 * 1e3 / observation.rate.max(1.0);
        (observation.waiting, observation.in_flight) = (millis(self.waiting), millis(self.in_flight));
        observation.silence = self.last_feedback.map_or(0.0, |last| (now - last).as_millis_f64());
        *self = Self {
            sent: Size::ZERO,
            acknowledged: Size::ZERO,
            arriving: Span::ZERO,
            packets: 0,
            lost: 0,
            marked: 0,
            delays: 0,
            arrivals: 0,
            last: observation,
            ..std::mem::take(self)
        };
        observation
    }
}

/// Longest arrival gap within a burst, as in libwebrtc's `InterArrival`.
const BURST_DELTA_THRESHOLD: Span = Span::from_millis(5);

fn per(size: Size, span: Span) -> f64 {
    size.as_bits() as f64 / span.as_secs_f64()
}
