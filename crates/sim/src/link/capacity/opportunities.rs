//! Service at delivery opportunities: recorded and generated cellular links.
//!
//! The rules are mahimahi's (`link_queue.cc`, `rationalize`): at each opportunity a number of bytes can
//! leave. A packet may need several opportunities and leaves at the one that completes it. The remaining bytes
//! of an opportunity serve the packets that wait at that instant. An opportunity without a waiting packet is
//! lost, and a packet that comes at the very instant of an opportunity comes too late for it.

use super::Served;
use crate::refusal::{Refusal, ensure};
use std::sync::Arc;
use tidegate_core::{Rate, Size, Span, Time};

/// Bytes of one opportunity in mahimahi (`PACKET_SIZE` of `link_queue.hh`: a 1500-byte packet and the
/// four bytes that a TUN device puts before it).
pub const MAHIMAHI_BYTES: u32 = 1504;

const MILLI: i64 = 1_000_000;

/// Instants of service in time order, each returned once.
pub trait Instants {
    /// Returns the next instant, in nanoseconds; `i64::MAX` if there is none.
    fn next(&mut self) -> i64;
    /// Returns the first instant later than `now`, and skips those before it.
    fn next_after(&mut self, now: i64) -> i64;
}

/// A transmitter that serves up to `bytes` at each of its instants.
#[derive(Clone, Debug)]
pub struct Opportunities<I> {
    pub(crate) instants: I,
    bytes: u32,
    /// The opportunity in use, and its remaining bytes.
    instant: i64,
    remaining: u32,
}

impl<I: Instants> Opportunities<I> {
    /// A transmitter with `bytes` bytes at each opportunity; not zero.
    pub(crate) const fn new(instants: I, bytes: u32) -> Self {
        Self { instants, bytes, instant: i64::MIN, remaining: 0 }
    }

    /// The time at which the service of a packet would begin that has waited since `from`.
    pub(crate) fn begins(&mut self, from: Time) -> Time {
        if self.remaining == 0 || self.instant <= from.as_nanos() {
            self.instant = self.instants.next_after(from.as_nanos());
            self.remaining = self.bytes;
        }
        Time::from_nanos(self.instant)
    }

    /// Serves a packet of `size` bytes that came at `now`, after all earlier packets.
    pub(crate) fn serve(&mut self, now: Time, size: u32) -> Served {
        let start = self.begins(now);
        let mut need = size;
        while need > self.remaining && self.instant != i64::MAX {
            need -= self.remaining;
            self.instant = self.instants.next();
            self.remaining = self.bytes;
        }
        self.remaining = self.remaining.saturating_sub(need);
        Served { start, finish: Time::from_nanos(self.instant) }
    }
}

/// A recorded list of opportunities that repeats at its last timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpportunityTrace {
    /// Milliseconds since the beginning, in order.
    millis: Arc<[u32]>,
    bytes: u32,
}

impl OpportunityTrace {
    /// Opportunities of `bytes` bytes at `millis` milliseconds, repeated after the last one.
    ///
    /// # Errors
    /// Unless there is an opportunity, they are in order, and the last is later than zero.
    pub fn new(millis: impl Into<Arc<[u32]>>, bytes: u32) -> Result<Self, Refusal> {
        let millis = millis.into();
        ensure(bytes > 0, || Refusal::new("capacity.bytes", bytes, "at least 1"))?;
        ensure(
            millis.last().is_some_and(|&last| last > 0),
            || "a trace must have an opportunity later than 0 ms, because it repeats at its last timestamp",
        )?;
        match millis.windows(2).position(|pair| pair[1] < pair[0]) {
            Some(index) => Err(Refusal::from(format!(
                "opportunity {} at {} ms comes after one at {} ms; opportunities must be in order of time",
                index + 2,
                millis[index + 1],
                millis[index]
            ))),
            None => Ok(Self { millis, bytes }),
        }
    }

    /// The opportunities of one period, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// Bytes of one opportunity.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Time after which it repeats: its last timestamp.
    #[must_use]
    pub fn period(&self) -> Span {
        Span::from_millis(i64::from(self.millis[self.millis.len() - 1]))
    }

    /// Mean rate over a period.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        Size::from_bytes(self.millis.len() as u64 * u64::from(self.bytes)).per(self.period())
    }

    /// Number of opportunities before `now`.
    #[must_use]
    pub fn count_before(&self, now: Time) -> u64 {
        let last = now.as_nanos() - 1;
        if last < 0 {
            return 0;
        }
        let period = self.period().as_nanos();
        let within = last % period;
        let inside = self.millis.partition_point(|&millis| i64::from(millis) * MILLI <= within);
        (last / period) as u64 * self.millis.len() as u64 + inside as u64
    }
}

/// A recorded list and the position of its playback.
#[derive(Clone, Debug)]
pub struct Playback {
    pub(crate) list: OpportunityTrace,
    period: i64,
    origin: i64,
    index: usize,
}

impl Playback {
    pub(crate) fn new(list: OpportunityTrace) -> Self {
        let period = list.period().as_nanos();
        Self { list, period, origin: 0, index: 0 }
    }

    fn time(&self, index: usize) -> i64 {
        self.origin.saturating_add(i64::from(self.list.millis[index]) * MILLI)
    }
}

impl Instants for Playback {
    fn next(&mut self) -> i64 {
        if self.index == self.list.millis.len() {
            self.origin = self.origin.saturating_add(self.period);
            self.index = 0;
        }
        self.index += 1;
        self.time(self.index - 1)
    }

    fn next_after(&mut self, now: i64) -> i64 {
        // on a link that is nearly always busy this takes only a few steps
        for _ in 0..8 {
            let time = self.next();
            if time > now {
                return time;
            }
        }
        if now - self.origin >= self.period {
            self.origin += (now - self.origin) / self.period * self.period;
            self.index = 0;
        }
        let rest = &self.list.millis[self.index..];
        self.index += rest.partition_point(|&millis| i64::from(millis) * MILLI <= now - self.origin);
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn link(millis: &[u32]) -> Opportunities<Playback> {
        Opportunities::new(Playback::new(OpportunityTrace::new(millis, 1504).unwrap()), 1504)
    }

    fn served(start: i64, finish: i64) -> Served {
        Served { start: at(start), finish: at(finish) }
    }

    #[test]
    fn a_packet_spans_opportunities_and_the_remaining_bytes_serve_the_next() {
        let mut link = link(&[2, 5, 9, 20]);
        // 2000 B: 1504 at 2 ms, 496 at 5 ms; 1008 B are left at 5 ms
        assert_eq!(link.serve(at(0), 2000), served(2, 5));
        assert_eq!(link.serve(at(1), 1000), served(5, 5));
        // 8 B are left at 5 ms
        assert_eq!(link.serve(at(4), 1500), served(5, 9));
        // 1504 - 1492 = 12 B are left at 9 ms, but this one was not there at 9 ms
        assert_eq!(link.serve(at(9), 12), served(20, 20));
    }

    #[test]
    fn idle_opportunities_are_lost_and_the_instant_itself_is_too_late() {
        let mut link = link(&[1, 2, 3, 3, 4, 10]);
        assert_eq!(link.serve(at(3), 1504), served(4, 4));
        assert_eq!(link.serve(at(3), 1), served(10, 10));
    }

    #[test]
    fn it_wraps_at_the_last_timestamp() {
        let mut link = link(&[0, 4, 10]);
        let finishes: Vec<_> =
            (0..7).map(|_| link.serve(Time::from_nanos(-1), 1504).finish.as_nanos() / MILLI).collect();
        assert_eq!(finishes, [0, 4, 10, 10, 14, 20, 20]);
        // after a long sleep: in period 1000 at 1000 * 10 + 4
        assert_eq!(link.serve(at(10_001), 10), served(10_004, 10_004));
        assert_eq!(link.serve(at(10_004), 10), served(10_010, 10_010));
        assert_eq!(link.serve(at(10_010), 10), served(10_014, 10_014));
    }

    #[test]
    fn several_in_one_millisecond() {
        let mut link = link(&[5, 5, 5]);
        assert_eq!(link.serve(at(0), 1504), served(5, 5));
        assert_eq!(link.serve(at(0), 3008), served(5, 5));
        assert_eq!(link.serve(at(0), 1), served(10, 10));
    }

    #[test]
    fn counting() {
        let list = OpportunityTrace::new([0, 4, 4, 10], 1500).unwrap();
        let counts = [0, 1, 4, 5, 10, 11, 14, 15].map(|now| list.count_before(at(now)));
        assert_eq!(counts, [0, 1, 1, 3, 3, 5, 5, 7]);
        assert_eq!(list.mean_rate(), Rate::from_bps(4 * 1500 * 8 * 100));
    }

    #[test]
    fn unusable_lists_are_refused() {
        assert!(OpportunityTrace::new([], 1504).is_err());
        assert!(OpportunityTrace::new([0, 0], 1504).is_err());
        assert!(OpportunityTrace::new([3, 2], 1504).unwrap_err().value.contains("opportunity 2 at 2 ms"));
        assert!(OpportunityTrace::new([3], 0).is_err());
    }
}
