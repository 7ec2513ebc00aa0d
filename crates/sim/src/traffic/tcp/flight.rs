//! The segments that were sent and are not yet acknowledged: a ring in order of sequence.

use super::delivery::Snapshot;
use std::collections::VecDeque;
use tidegate_core::Time;

/// One segment on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Position of its first byte.
    pub(super) start: u64,
    /// When it left last.
    pub(super) sent: Time,
    /// Bytes of data.
    pub(super) length: u32,
    /// The receiver said that it has it.
    pub(super) sacked: bool,
    /// Taken for lost.
    pub(super) lost: bool,
    /// Sent again since it was taken for lost (or to be on the safe side), and that copy is under way.
    pub(super) again: bool,
    /// Sent more than once: no round trip can be measured with it (Karn).
    pub(super) repeated: bool,
    /// What was delivered when it left last, where delivery rates are measured.
    pub(super) snapshot: Snapshot,
}

impl Segment {
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// What it adds to the pipe of RFC 6675 section 4: one copy unless it is lost, one if it was sent again.
    #[inline]
    pub(super) fn in_pipe(&self) -> u64 {
        if self.sacked {
            return 0;
        }
        u64::from(self.length) * (u64::from(!self.lost) + u64::from(self.again))
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
    /// How many of the segments went out since the last go-back; the others are to be sent again.
    /// Equal to their number unless a variant without SACK went back.
    gone: usize,
}

impl Flight {
    pub(super) fn new() -> Self {
        Self { segments: VecDeque::with_capacity(64), una: 0, max: 0, gone: 0 }
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

    /// Bytes sent and not acknowledged, the part that a go-back took back included.
    #[inline]
    pub(super) fn unacknowledged(&self) -> u64 {
        self.max - self.una
    }

    /// Bytes sent since the last go-back and not acknowledged (FlightSize of RFC 5681).
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.segments.get(self.gone).map_or(self.max, |segment| segment.start) - self.una
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

    /// The segment that is to be sent again next after a go-back.
    #[inline]
    pub(super) fn to_repeat(&self) -> Option<usize> {
        (self.gone < self.segments.len()).then_some(self.gone)
    }

    /// That one has been sent.
    pub(super) fn repeated(&mut self) {
        self.gone += 1;
        assert!(self.gone <= self.segments.len(), "more sent again than was under way");
    }

    /// Everything unacknowledged is to be sent again, in order.
    pub(super) fn go_back(&mut self) {
        self.gone = 0;
    }

    /// New data leaves at `sent`.
    #[inline]
    pub(super) fn push(&mut self, sent: Time, length: u32, snapshot: Snapshot) {
        let fresh = Segment {
            start: self.max,
            sent,
            length,
            sacked: false,
            lost: false,
            again: false,
            repeated: false,
            snapshot,
        };
        self.gone += usize::from(self.gone == self.segments.len());
        self.segments.push_back(fresh);
        self.max += u64::from(length);
    }

    /// A SYN takes one number of the sequence space and carries nothing.
    pub(super) fn skip_one(&mut self) {
        debug_assert!(self.is_empty(), "a SYN while data are under way");
        self.max += 1;
        self.una = self.max;
    }

    /// Forgets the segments that end at `ack` or before, showing each to `each`.
    #[inline]
    pub(super) fn acknowledge(&mut self, ack: u64, mut each: impl FnMut(&Segment)) {
        assert!(self.una <= ack && ack <= self.max, "{ack} acknowledged of {} to {}", self.una, self.max);
        while let Some(first) = self.segments.front().filter(|first| first.end() <= ack) {
            each(first);
            self.segments.pop_front();
            self.gone = self.gone.saturating_sub(1);
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
        (0..5).for_each(|n| flight.push(Time::from_millis(n), 100, Snapshot::default()));
        assert_eq!((flight.outstanding(), flight.to_repeat()), (500, None));
        flight.go_back();
        assert_eq!((flight.outstanding(), flight.unacknowledged(), flight.to_repeat()), (0, 500, Some(0)));
        flight.repeated();
        assert_eq!((flight.outstanding(), flight.to_repeat()), (100, Some(1)));
        // the receiver had two more than it could say
        let mut seen = Vec::new();
        flight.acknowledge(300, |segment| seen.push(segment.start));
        assert_eq!(seen, [0, 100, 200]);
        assert_eq!((flight.una(), flight.outstanding(), flight.to_repeat()), (300, 0, Some(0)));
        // half a segment is none
        flight.acknowledge(350, |_| panic!("no segment ends there"));
        assert_eq!(flight.una(), 300);
        flight.acknowledge(500, |_| {});
        assert_eq!((flight.una(), flight.outstanding(), flight.to_repeat()), (500, 0, None));
        flight.push(Time::ZERO, 100, Snapshot::default());
        assert_eq!((flight.outstanding(), flight.to_repeat()), (100, None));
    }
}
