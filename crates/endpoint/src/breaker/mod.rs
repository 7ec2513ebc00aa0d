//! RTP circuit breakers (RFC 8083): the conditions, known from RTCP alone, under which a sender would have to stop.
//!
//! Pure: time and reports come in, a verdict comes out. One breaker watches one sender in a session of two. It watches
//! its streams of media one by one; if one of them trips, that holds for the sender as a group (section 8). Streams of
//! repair and padding go with the media.

mod stream;

use tidegate_core::record::Breaker;
use tidegate_core::wire::rtcp::ReportBlock;
use tidegate_core::{Span, Time};

pub use stream::Traffic;
use stream::WatchedStream;

/// The RTCP timeout in deterministic intervals (section 4.1).
const TIMEOUT_INTERVALS: i64 = 3;
/// The weight of the newest round trip (section 3, Tr).
const NEWEST_WEIGHT: f64 = 0.2;
/// The round trip above which media is of no use in a conversation: ITU-T G.114 wants at most 400 ms one way. RFC 8083
/// section 4.4 leaves the bound to the application.
const UNUSABLE_ROUND_TRIP_S: f64 = 0.8;
/// The loss above which media without repair is of no use: there the E-model (ITU-T G.107, default values) rates G.711 with
/// concealment (Bpl = 25.1, G.113 appendix I) below 50, which G.109 does not recommend: 93.2 - 95 p / (p + 25.1) = 50
/// at p = 20.9 %.
const UNUSABLE_LOSS: f64 = 0.209;
/// Time for which media has to be of no use: section 4.4 says "seconds, or tens of seconds".
const UNUSABLE_FOR: Span = Span::from_secs(10);

/// The intervals of RTCP in a session of two, as its sender computes them (section 3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Intervals {
    /// Td with the fixed minimum of 5 s.
    pub timeout: Span,
    /// Td in use.
    pub local: Span,
    /// Tdr: Td of the receiver; under AVPF, T_rr_interval if that is larger (section 4.3).
    pub peer: Span,
}

impl Default for Intervals {
    /// The fixed minimum, 5 s (RFC 3550 section 6.2).
    fn default() -> Self {
        let td = Span::from_secs(5);
        Self { timeout: td, local: td, peer: td }
    }
}

impl Intervals {
    /// Tdr in seconds, at least a microsecond because it is a divisor.
    fn peer_s(&self) -> f64 {
        self.peer.as_secs_f64().max(1e-6)
    }
}

/// The circuit breakers of one sender.
#[derive(Debug)]
pub struct CircuitBreaker {
    streams: Vec<WatchedStream>,
    intervals: Intervals,
    /// Tr, smoothed, in seconds.
    round_trip: Option<f64>,
    /// The end of the RTCP timeout, and packets sent when it began.
    deadline: Time,
    sent_before: u32,
    /// Whether losses are not repaired: else the sender cannot tell how much is missing at the receiver.
    unrepaired: bool,
    /// The time from which on the media has been of no use.
    unusable: Option<Time>,
    tripped: bool,
}

impl CircuitBreaker {
    /// A breaker for this number of media streams. `unrepaired`: whether nothing is sent to repair their losses.
    #[must_use]
    pub fn new(streams: usize, unrepaired: bool) -> Self {
        Self {
            streams: (0..streams).map(|_| WatchedStream::default()).collect(),
            intervals: Intervals::default(),
            round_trip: None,
            deadline: Time::MAX,
            sent_before: 0,
            unrepaired,
            unusable: None,
            tripped: false,
        }
    }

    /// Begins with the start of sending.
    pub fn begin(&mut self, now: Time, intervals: Intervals) {
        self.intervals = intervals;
        self.heard(now);
    }

    /// Notes a frame of `packets` packets and `bytes` bytes, RTP headers included, of the encoder of `stream`.
    pub fn frame(&mut self, now: Time, stream: usize, packets: u32, bytes: u64) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.frame(now, packets, bytes);
        }
    }

    /// Notes that the source of `stream` is switched off or on: its media timeout is cancelled (section 4.2), and the
    /// gap does not count as a time between frames.
    pub fn switched(&mut self, stream: usize) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.switched();
        }
    }

    /// When to call [`CircuitBreaker::expire`].
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Called at the deadline; returns the RTCP timeout (section 4.1) if packets were sent since RTCP was heard last.
    /// `sent`: packets of media sent since the beginning.
    pub fn expire(&mut self, sent: u32) -> Option<Breaker> {
        let deadline = self.deadline;
        if std::mem::replace(&mut self.sent_before, sent) == sent {
            self.deadline = deadline + self.intervals.timeout * TIMEOUT_INTERVALS;
            return None;
        }
        self.trip(Breaker::RtcpTimeout)
    }

    /// Restarts the RTCP timeout: packets of feedback without a report count, too (section 5).
    fn heard(&mut self, now: Time) {
        self.deadline = now + self.intervals.timeout * TIMEOUT_INTERVALS;
    }

    /// Notes a report block on `stream`.
    pub fn block(&mut self, stream: usize, block: &ReportBlock) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.block(block);
        }
    }

    /// Notes that `packets` packets of `stream` were marked since the last report, by the same datagram as the report:
    /// they count as lost (section 5).
    pub fn marked(&mut self, stream: usize, packets: u32) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.marked += packets;
        }
    }

    /// Checks the breakers after RTCP has come in. `reports`: whether it had a sender or receiver report; its blocks
    /// have been noted before. `traffic`: packets and bytes that each stream has sent since the beginning.
    pub fn received(
        &mut self,
        now: Time,
        reports: bool,
        round_trip: Option<Span>,
        intervals: Intervals,
        traffic: impl Iterator<Item = Traffic>,
    ) -> Option<Breaker> {
        if self.tripped {
            return None;
        }
        self.intervals = intervals;
        self.heard(now);
        self.sent_before = 0;
        for (watched, traffic) in self.streams.iter_mut().zip(traffic) {
            watched.traffic = traffic;
            self.sent_before = self.sent_before.wrapping_add(traffic.packets);
        }
        if !reports {
            return None;
        }
        if let Some(newest) = round_trip.map(Span::as_secs_f64) {
            let smoothed = self
                .round_trip
                .map_or(newest, |before| (1.0 - NEWEST_WEIGHT) * before + NEWEST_WEIGHT * newest);
            self.round_trip = Some(smoothed);
        }
        let mut tripped = None;
        for watched in &mut self.streams {
            tripped = tripped.or(watched.report(now, &self.intervals, self.round_trip));
        }
        let tripped = tripped.or(self.is_unusable(now).then_some(Breaker::Usability));
        tripped.and_then(|breaker| self.trip(breaker))
    }

    /// Whether the media that arrives has been of no use for too long (section 4.4).
    fn is_unusable(&mut self, now: Time) -> bool {
        let late = self.round_trip.is_some_and(|rtt| rtt > UNUSABLE_ROUND_TRIP_S);
        let lossy = self.unrepaired && self.streams.iter().any(|watched| watched.loss() > UNUSABLE_LOSS);
        if !(late || lossy) {
            self.unusable = None;
            return false;
        }
        now - *self.unusable.get_or_insert(now) >= UNUSABLE_FOR
    }

    fn trip(&mut self, breaker: Breaker) -> Option<Breaker> {
        self.tripped = true;
        self.deadline = Time::MAX;
        Some(breaker)
    }
}

#[cfg(test)]
mod tests;
