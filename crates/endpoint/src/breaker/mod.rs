//! RTP circuit breakers (RFC 8083): when a sender would have to stop, by what RTCP alone tells it.
//!
//! Pure: time and reports come in, a verdict comes out. One breaker watches one sender in a session of two; its streams of
//! media are watched one by one, and what trips one of them holds for the sender as a group (section 8). Streams of repair
//! and padding go with the media.

mod stream;

use tidegate_core::record::Breaker;
use tidegate_core::wire::rtcp::ReportBlock;
use tidegate_core::{Span, Time};

pub use stream::Traffic;
use stream::Watched;

/// The RTCP timeout in deterministic intervals (section 4.1).
const TIMEOUT_INTERVALS: i64 = 3;
/// The weight of the newest round trip (section 3, Tr).
const NEWEST: f64 = 0.2;
/// The round trip above which media is of no use in a conversation: one way, ITU-T G.114 wants at most 400 ms. RFC 8083 section
/// 4.4 names no bound: it leaves that to the application.
const UNUSABLE_ROUND_TRIP_S: f64 = 0.8;
/// The loss above which media without repair is of no use: there the E-model (ITU-T G.107, default values) rates G.711 with
/// concealment (Bpl = 25.1, G.113 appendix I) below 50, which G.109 does not recommend: 93.2 - 95 p / (p + 25.1) = 50
/// at p = 20.9 %.
const UNUSABLE_LOSS: f64 = 0.209;
/// How long that has to last: section 4.4 says "seconds, or tens of seconds".
const UNUSABLE_FOR: Span = Span::from_secs(10);

/// The intervals of RTCP in a session of two, as its sender reckons them (section 3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Intervals {
    /// Td with the fixed minimum of 5 s.
    pub timeout: Span,
    /// Td as it is in use.
    pub own: Span,
    /// Tdr: that of the receiver; under AVPF, T_rr_interval if that is larger (section 4.3).
    pub peer: Span,
}

impl Default for Intervals {
    /// The fixed minimum, 5 s (RFC 3550 section 6.2).
    fn default() -> Self {
        let td = Span::from_secs(5);
        Self { timeout: td, own: td, peer: td }
    }
}

impl Intervals {
    /// Tdr in seconds, at least a microsecond: it divides.
    fn peer_s(&self) -> f64 {
        self.peer.as_secs_f64().max(1e-6)
    }
}

/// The circuit breakers of one sender.
#[derive(Debug)]
pub struct CircuitBreaker {
    streams: Vec<Watched>,
    intervals: Intervals,
    /// Tr, smoothed, in seconds.
    round_trip: Option<f64>,
    /// The end of the RTCP timeout, and packets sent when it began.
    deadline: Time,
    sent_before: u32,
    /// Whether what is lost stays lost: else the sender cannot tell how much is missing at the receiver.
    unrepaired: bool,
    /// Since when the media has been of no use.
    unusable: Option<Time>,
    tripped: bool,
}

impl CircuitBreaker {
    /// Watches so many streams of media. `unrepaired`: whether nothing is sent to repair their losses.
    #[must_use]
    pub fn new(streams: usize, unrepaired: bool) -> Self {
        Self {
            streams: (0..streams).map(|_| Watched::default()).collect(),
            intervals: Intervals::default(),
            round_trip: None,
            deadline: Time::MAX,
            sent_before: 0,
            unrepaired,
            unusable: None,
            tripped: false,
        }
    }

    /// Sending begins.
    pub fn begin(&mut self, now: Time, intervals: Intervals) {
        self.intervals = intervals;
        self.heard(now);
    }

    /// A frame of `packets` packets and `bytes` bytes, RTP headers included, leaves the encoder of `stream`.
    pub fn frame(&mut self, now: Time, stream: usize, packets: u32, bytes: u32) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.frame(now, packets, bytes);
        }
    }

    /// The source of `stream` is switched off or on: its media timeout is cancelled (section 4.2), and the gap says nothing of
    /// the time between frames.
    pub fn switched(&mut self, stream: usize) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.switched();
        }
    }

    /// When to ask for the RTCP timeout.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// The deadline has come, and so many packets of media have been sent since the beginning: the RTCP timeout (section 4.1) if
    /// there were any since RTCP was heard last.
    pub fn expire(&mut self, sent: u32) -> Option<Breaker> {
        let at = self.deadline;
        if std::mem::replace(&mut self.sent_before, sent) == sent {
            self.deadline = at + self.intervals.timeout * TIMEOUT_INTERVALS;
            return None;
        }
        self.trip(Breaker::RtcpTimeout)
    }

    /// RTCP was heard: also packets of feedback without a report count (section 5).
    fn heard(&mut self, now: Time) {
        self.deadline = now + self.intervals.timeout * TIMEOUT_INTERVALS;
    }

    /// A block of a report that has come in is on `stream`.
    pub fn block(&mut self, stream: usize, block: &ReportBlock) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.block(block);
        }
    }

    /// The datagram with the report that is being read says that so many packets of `stream` were marked since the last such report:
    /// they count as lost (section 5).
    pub fn marked(&mut self, stream: usize, packets: u32) {
        if let Some(watched) = self.streams.get_mut(stream) {
            watched.marked += packets;
        }
    }

    /// RTCP has come in. `reports`: whether there was a sender or receiver report in it; then all its blocks were told before.
    /// `traffic`: what each stream has sent since the beginning.
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
            let smoothed = self.round_trip.map_or(newest, |before| (1.0 - NEWEST) * before + NEWEST * newest);
            self.round_trip = Some(smoothed);
        }
        let mut found = None;
        for watched in &mut self.streams {
            found = found.or(watched.report(now, &self.intervals, self.round_trip));
        }
        let found = found.or(self.is_unusable(now).then_some(Breaker::Usability));
        found.and_then(|breaker| self.trip(breaker))
    }

    /// Section 4.4: whether what arrives has been of no use for too long.
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
