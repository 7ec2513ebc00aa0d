//! The flight: segments that were sent and are not yet acknowledged, in order of sequence.

use super::delivery::Snapshot;
use std::collections::VecDeque;
use tidegate_core::Time;

/// A segment under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Position of its first byte.
    pub(super) start: u64,
    /// Last time at which it left.
    pub(super) sent: Time,
    /// Number of that departure among those of the connection, for RACK; otherwise zero.
    pub(super) departure: u64,
    /// Bytes of data.
    pub(super) length: u32,
    /// Whether the receiver has SACKed it.
    pub(super) sacked: bool,
    /// Whether it counts as lost.
    pub(super) lost: bool,
    /// Whether it was sent again since it counts as lost (or as a precaution), and that copy is under way.
    pub(super) resent: bool,
    /// Whether it was sent more than once: no round trip can be measured with it (Karn).
    pub(super) repeated: bool,
    /// The delivery state when it left last, where delivery rates are measured.
    pub(super) snapshot: Snapshot,
}

impl Segment {
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Whether its last copy may still arrive.
    #[inline]
    pub(super) fn is_under_way(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }

    /// Bytes that it adds to the pipe of RFC 6675 section 4: one copy unless it is lost, and one if it was sent again.
    #[inline]
    pub(super) fn in_pipe(&self) -> u64 {
        if self.sacked {
            return 0;
        }
        u64::from(self.length) * (u64::from(!self.lost) + u64::from(self.resent))
    }
}

/// All segments from the first unacknowledged byte to the last one sent.
#[derive(Debug)]
pub(super) struct Flight {
    segments: VecDeque<Segment>,
    /// The first unacknowledged byte (SND.UNA).
    una: u64,
    /// One past the highest byte ever sent.
    max: u64,
    /// Number of segments sent since the last go-back; the others are to be sent again.
    /// Equal to the number of segments unless a variant without SACK went back.
    sent_count: usize,
}

impl Flight {
    pub(super) fn new() -> Self {
        Self { segments: VecDeque::with_capacity(64), una: 0, max: 0, sent_count: 0 }
    }

    #[inline]
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes sent and not acknowledged, including those that are to be sent again after a go-back.
    #[inline]
    pub(super) fn unacknowledged(&self) -> u64 {
        self.max - self.una
    }

    /// Bytes sent since the last go-back and not acknowledged (FlightSize of RFC 5681).
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.segments.get(self.sent_count).map_or(self.max, |segment| segment.start) - self.una
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Segment> {
        self.segments.get(index)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Segment> {
        self.segments.get_mut(index)
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Index of the first segment that begins at `position` or later.
    pub(super) fn index_from(&self, position: u64) -> usize {
        self.segments.partition_point(|segment| segment.start < position)
    }

    /// Index of the highest segment that is not SACKed.
    pub(super) fn highest_missing(&self) -> Option<usize> {
        self.segments.iter().rposition(|segment| !segment.sacked)
    }

    /// The segment that is to be sent again next after a go-back.
    #[inline]
    pub(super) fn to_repeat(&self) -> Option<usize> {
        (self.sent_count < self.segments.len()).then_some(self.sent_count)
    }

    /// Takes note that the segment of [`Flight::to_repeat`] has been sent.
    pub(super) fn repeated(&mut self) {
        self.sent_count += 1;
        assert!(self.sent_count <= self.segments.len(), "more sent again than was under way");
    }

    /// Begins to send all unacknowledged data again, in order.
    pub(super) fn go_back(&mut self) {
        self.sent_count = 0;
    }

    /// Adds new data that leaves at `sent`, as the given `departure`.
    #[inline]
    pub(super) fn push(&mut self, sent: Time, departure: u64, length: u32, snapshot: Snapshot) {
        let segment = Segment {
            start: self.max,
            sent,
            departure,
            length,
            sacked: false,
            lost: false,
            resent: false,
            repeated: false,
            snapshot,
        };
        self.sent_count += usize::from(self.sent_count == self.segments.len());
        self.segments.push_back(segment);
        self.max += u64::from(length);
    }

    /// Skips one sequence number for a SYN, which carries no data.
    pub(super) fn skip_one(&mut self) {
        debug_assert!(self.is_empty(), "a SYN while data are under way");
        self.max += 1;
        self.una = self.max;
    }

    /// Removes the segments that end at `ack` or before, and calls `visit` for each of them.
    #[inline]
    pub(super) fn acknowledge(&mut self, ack: u64, mut visit: impl FnMut(&Segment)) {
        assert!(self.una <= ack && ack <= self.max, "{ack} acknowledged of {} to {}", self.una, self.max);
        while let Some(first) = self.segments.front().filter(|first| first.end() <= ack) {
            visit(first);
            self.segments.pop_front();
            self.sent_count = self.sent_count.saturating_sub(1);
        }
        self.una = self.segments.front().map_or(self.max, |first| first.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_go_back_is_undone_by_acknowledgements() {
        let mut flight = Flight::new();
        (0..5).for_each(|n| flight.push(Time::from_millis(n), 0, 100, Snapshot::default()));
        assert_eq!((flight.outstanding(), flight.to_repeat()), (500, None));
        flight.go_back();
        assert_eq!((flight.outstanding(), flight.unacknowledged(), flight.to_repeat()), (0, 500, Some(0)));
        flight.repeated();
        assert_eq!((flight.outstanding(), flight.to_repeat()), (100, Some(1)));
        // the receiver had two more segments, beyond the hole
        let mut starts = Vec::new();
        flight.acknowledge(300, |segment| starts.push(segment.start));
        assert_eq!(starts, [0, 100, 200]);
        assert_eq!((flight.una(), flight.outstanding(), flight.to_repeat()), (300, 0, Some(0)));
        // half a segment does not count
        flight.acknowledge(350, |_| panic!("no segment ends there"));
        assert_eq!(flight.una(), 300);
        flight.acknowledge(500, |_| {});
        assert_eq!((flight.una(), flight.outstanding(), flight.to_repeat()), (500, 0, None));
        flight.push(Time::ZERO, 0, 100, Snapshot::default());
        assert_eq!((flight.outstanding(), flight.to_repeat()), (100, None));
    }
}
