//! What an agent sees: what its sender did and heard in one interval, in units, and scaled for a policy.

use tidegate_core::RemoteTime;
use tidegate_core::control::{Report, Sent};
use tidegate_core::datagram::Ecn;
use tidegate_core::math;
use tidegate_core::units::{Rate, Size, Span, Time};

/// One number of an observation.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// Unit of what is scaled.
    pub unit: &'static str,
    /// The least that its scaled value can be.
    pub low: f32,
    /// The most.
    pub high: f32,
    /// What it is, and how it is scaled.
    pub doc: &'static str,
}

const fn feature(name: &'static str, unit: &'static str, low: f32, high: f32, doc: &'static str) -> Feature {
    Feature { name, unit, low, high, doc }
}

/// The numbers of one interval, in order. Rates are scaled by their logarithm, so that `min` is -1 and `max` 1, and cut at -2 and 2;
/// a time t is t / (t + c), which no time leaves.
pub const FEATURES: [Feature; COUNT] = [
    feature("rate", "bit/s", -1.0, 1.0, "the rate that was decided; logarithm, -1 at min and 1 at max"),
    feature("sent", "bit/s", -2.0, 2.0, "RTP bytes that left, over the interval; as rate, cut at -2 and 2"),
    feature(
        "acknowledged",
        "bit/s",
        -2.0,
        2.0,
        "RTP bytes reported as received, over the time between the newest arrivals of two feedbacks; as sent",
    ),
    feature("loss", "1", 0.0, 1.0, "packets reported as lost, of those that were reported on"),
    feature("marked", "1", 0.0, 1.0, "packets reported with congestion experienced, of those received"),
    feature(
        "delay",
        "ms",
        0.0,
        1.0,
        "mean one-way delay of what was reported, above the least so far; t / (t + 100 ms)",
    ),
    feature(
        "gradient",
        "1",
        -1.0,
        1.0,
        "growth of that delay between feedbacks over the time between arrivals; g / (|g| + 0.1)",
    ),
    feature("round_trip", "ms", 0.0, 1.0, "the last round trip; t / (t + 200 ms)"),
    feature("waiting", "ms", 0.0, 1.0, "what waits at the sender, at the decided rate; t / (t + 100 ms)"),
    feature("in_flight", "ms", 0.0, 1.0, "what is in flight, at the decided rate; t / (t + 200 ms)"),
    feature("silence", "ms", 0.0, 1.0, "time since the last feedback; t / (t + 200 ms)"),
];

/// How many numbers an interval has.
pub const COUNT: usize = 11;

const FAST: f64 = 100.0;
const SLOW: f64 = 200.0;
const STEEP: f64 = 0.1;

/// What a sender did and heard in one interval. What nothing was heard of is as it was before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// The rate that was decided, in bit/s.
    pub rate: f64,
    /// What left, in bit/s of RTP.
    pub sent: f64,
    /// What was reported as received, in bit/s of RTP.
    pub acknowledged: f64,
    /// The share of packets reported as lost.
    pub loss: f64,
    /// The share of received packets that were marked.
    pub marked: f64,
    /// Mean one-way delay above the least, in ms.
    pub delay: f64,
    /// Its growth per time.
    pub gradient: f64,
    /// The last round trip, in ms.
    pub round_trip: f64,
    /// What waits at the sender, in ms of the rate.
    pub waiting: f64,
    /// What is in flight, in ms of the rate.
    pub in_flight: f64,
    /// Time since the last feedback, in ms.
    pub silence: f64,
}

/// Between `low` and `high`, by its logarithm: -1 and 1.
pub(super) fn by_logarithm(rate: f64, (low, high): (f64, f64)) -> f64 {
    2.0 * math::ln(rate.max(1.0) / low) / math::ln(high / low) - 1.0
}

impl Observation {
    /// Its numbers as they are, in the order of [`FEATURES`].
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

    /// Its numbers, scaled for rates between `bounds` in bit/s; see [`FEATURES`].
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
            time(self.delay, FAST),
            self.gradient / (self.gradient.abs() + STEEP),
            time(self.round_trip, SLOW),
            time(self.waiting, FAST),
            time(self.in_flight, SLOW),
            time(self.silence, SLOW),
        ]
        .map(|value| value as f32)
    }
}

/// Feedback of which the mean delay is known.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// Mean one-way delay, from where delays are counted.
    delay: f64,
    /// Mean arrival, in nanoseconds of the far clock since the first one.
    arrival: f64,
}

/// Collects what a sender does and hears, until an interval is over.
#[derive(Debug, Default)]
pub(super) struct Collector {
    sent: Size,
    acknowledged: Size,
    /// The far clock's time that they took to arrive.
    arriving: Span,
    packets: u32,
    lost: u32,
    marked: u32,
    /// Sum of one-way delays, from where they are counted, and of arrivals.
    delays: i64,
    arrivals: i64,
    /// The first packet that arrived: what delays and the far clock are counted from.
    origin: Option<(Time, RemoteTime)>,
    least: Option<Span>,
    newest: Option<RemoteTime>,
    before: Option<Told>,
    heard: Option<Time>,
    waiting: Size,
    in_flight: Size,
    last: Observation,
}

impl Collector {
    /// It begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.heard = Some(now);
    }

    /// The last interval's.
    pub(super) fn last(&self) -> Observation {
        self.last
    }

    /// A packet has left.
    #[inline]
    pub(super) fn sent(&mut self, packet: &Sent) {
        self.sent += packet.size;
        (self.waiting, self.in_flight) = (packet.backlog, packet.in_flight);
    }

    /// Feedback has come.
    pub(super) fn report(&mut self, now: Time, report: &Report) {
        if let Some(round_trip) = report.rtt() {
            self.last.round_trip = round_trip.as_millis_f64();
        }
        (self.waiting, self.in_flight) = (report.backlog, report.in_flight);
        if report.packets.is_empty() {
            return;
        }
        self.heard = Some(now);
        for result in &report.packets {
            let Some(arrival) = result.arrival else {
                self.lost += 1;
                continue;
            };
            let (sent, origin) = *self.origin.get_or_insert((result.sent, arrival));
            let (since, newest) = (arrival - origin, *self.newest.get_or_insert(arrival));
            let delay = since - (result.sent - sent);
            self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
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

    /// What was collected in an interval of this length, which ends now; the next one begins.
    pub(super) fn close(&mut self, now: Time, interval: Span, rate: Rate) -> Observation {
        let mut told = Observation { gradient: 0.0, loss: 0.0, marked: 0.0, ..self.last };
        told.rate = rate.as_bps_f64();
        told.sent = per(self.sent, interval);
        let reported = self.packets + self.lost;
        if reported > 0 {
            told.loss = f64::from(self.lost) / f64::from(reported);
        }
        if let (1.., Some(least)) = (self.packets, self.least) {
            // packets of one burst say nothing of a rate
            told.acknowledged = per(self.acknowledged, self.arriving.max(MOST_OFTEN));
            told.marked = f64::from(self.marked) / f64::from(self.packets);
            let mean = |sum: i64| sum as f64 / f64::from(self.packets);
            let here = Told { delay: mean(self.delays), arrival: mean(self.arrivals) };
            told.delay = (here.delay - least.as_nanos() as f64) / 1e6;
            if let Some(before) = self.before.filter(|before| here.arrival > before.arrival) {
                told.gradient = (here.delay - before.delay) / (here.arrival - before.arrival);
            }
            self.before = Some(here);
        } else if reported > 0 {
            told.acknowledged = 0.0;
        }
        let lasts = |size: Size| size.as_bits() as f64 * 1e3 / told.rate.max(1.0);
        (told.waiting, told.in_flight) = (lasts(self.waiting), lasts(self.in_flight));
        told.silence = self.heard.map_or(0.0, |heard| (now - heard).as_millis_f64());
        *self = Self {
            sent: Size::ZERO,
            acknowledged: Size::ZERO,
            arriving: Span::ZERO,
            packets: 0,
            lost: 0,
            marked: 0,
            delays: 0,
            arrivals: 0,
            last: told,
            ..std::mem::take(self)
        };
        told
    }
}

/// Arrivals closer together than this are one burst: what libwebrtc's `InterArrival` groups (`kBurstDeltaThreshold`).
const MOST_OFTEN: Span = Span::from_millis(5);

fn per(size: Size, span: Span) -> f64 {
    size.as_bits() as f64 / span.as_secs_f64()
}
