//! The sender's scoreboard: SACKed data, lost data, and the pipe (RFC 6675).
//!
//! With RACK (`rack.rs`) it counts in the same way, and which segments are lost is told by their times.

use super::algorithm::Recovery;
use super::delivery::Snapshot;
use super::flight::{Flight, Segment};
use crate::counts::take_away;

/// DupThresh: number of duplicates, or of SACKed runs above a byte, by which it counts as lost (RFC 6675 section 2).
pub(super) const DUP_THRESH: u32 = 3;

/// The segment that may be sent next (RFC 6675 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextSeg {
    /// Rule 1: the segment at this index is lost.
    Lost(usize),
    /// Rule 2: data that was not sent before.
    New,
    /// Rule 3: the segment at this index may be lost.
    MayBeLost(usize),
    /// Rule 4: the highest outstanding segment, to get an acknowledgement out of the receiver.
    Rescue(usize),
}

/// A segment that was counted as lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// Positions of its first byte and of the byte after its last one.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The delivery state when the lost copy left.
    pub(super) snapshot: Snapshot,
    /// Bytes counted as lost since the connection began, this segment included.
    pub(super) lost: u64,
}

/// The state of RFC 6675, updated with every acknowledgement instead of computed from all octets.
#[derive(Debug)]
pub(super) struct Scoreboard {
    /// SACKed runs above the cumulative acknowledgement: disjoint, not touching, in order.
    runs: Vec<(u64, u64)>,
    /// Estimated bytes in the network.
    pipe: u64,
    /// Position below which all data that is not SACKed counts as lost. It only moves up.
    lost_below: u64,
    /// One past the highest byte sent again by rules 1 and 3 in this recovery (HighRxt).
    high_rxt: u64,
    /// RescueRxt: no rescue retransmission before all data below this is acknowledged.
    rescue_rxt: u64,
    /// Bytes counted as lost since the connection began, whether SACKed later or not.
    lost: u64,
    /// Bytes under way that count as lost, sent again or not, and the number of segments that are SACKed.
    lost_out: u64,
    segments_sacked: u64,
    /// Whether the definitions of RFC 6675 tell what is lost; otherwise it is told by [`Scoreboard::lose`].
    by_count: bool,
    segment: u64,
    /// The segments that were counted as lost since they were taken last, if they are listed.
    losses: Option<Vec<Loss>>,
}

impl Scoreboard {
    /// The scoreboard at the beginning of a connection with this recovery.
    /// With `listed` it lists lost segments for [`Scoreboard::drain_losses`].
    pub(super) fn of(recovery: Recovery, segment: u16, listed: bool) -> Option<Self> {
        recovery.uses_sack().then(|| Self {
            losses: listed.then(Vec::new),
            ..Self::new(segment, recovery == Recovery::Rfc6675)
        })
    }

    /// An empty scoreboard of segments of this size; `by_count` if what is lost shows by the SACKed data above it.
    fn new(segment: u16, by_count: bool) -> Self {
        Self {
            runs: Vec::new(),
            pipe: 0,
            lost_below: 0,
            high_rxt: 0,
            rescue_rxt: 0,
            lost: 0,
            lost_out: 0,
            segments_sacked: 0,
            by_count,
            segment: u64::from(segment),
            losses: None,
        }
    }

    #[inline]
    pub(super) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Bytes counted as lost since the connection began.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Empties the list of lost segments, and returns them.
    pub(super) fn drain_losses(&mut self) -> impl Iterator<Item = Loss> + '_ {
        self.losses.iter_mut().flat_map(|losses| losses.drain(..))
    }

    /// Bytes under way that count as lost, sent again or not.
    pub(super) fn lost_out(&self) -> u64 {
        self.lost_out
    }

    /// Number of segments beyond the first hole that have arrived.
    #[inline]
    pub(super) fn segments_sacked(&self) -> u64 {
        self.segments_sacked
    }

    /// Adds new data that has left.
    #[inline]
    pub(super) fn sent(&mut self, length: u32) {
        self.pipe += u64::from(length);
    }

    /// Moves the cumulative acknowledgement up to `ack`: takes the segments off the flight.
    #[inline]
    pub(super) fn acknowledge(&mut self, flight: &mut Flight, ack: u64, mut visit: impl FnMut(&Segment)) {
        flight.acknowledge(ack, |segment| {
            take_away(&mut self.pipe, segment.in_pipe(), "bytes of the pipe");
            if segment.sacked {
                take_away(&mut self.segments_sacked, 1, "SACKed segments");
            } else if segment.lost {
                take_away(&mut self.lost_out, u64::from(segment.length), "lost bytes");
            }
            visit(segment);
        });
        if !self.runs.is_empty() {
            self.runs.retain(|&(_, end)| end > ack);
        }
        assert!(
            !flight.is_empty() || self.pipe == 0,
            "{} bytes in the pipe, and no segment under way",
            self.pipe
        );
        self.lost_below = self.lost_below.max(ack);
        self.high_rxt = self.high_rxt.max(ack);
    }

    /// Takes in the blocks of an acknowledgement, calls `visit` for each segment that they SACK for the first time, and
    /// returns whether they SACK new data.
    pub(super) fn update(
        &mut self,
        flight: &mut Flight,
        blocks: impl Iterator<Item = (u64, u64)>,
        mut visit: impl FnMut(&Segment),
    ) -> bool {
        let mut is_new = false;
        for (start, end) in blocks {
            // positions outside of the flight are stale or wrong
            let (start, end) = (start.max(flight.una()), end.min(flight.max()));
            if start < end {
                is_new |= self.cover(flight, start, end, &mut visit);
            }
        }
        if is_new {
            if self.by_count {
                self.find_lost(flight);
            }
            debug_assert_eq!(self.pipe, Self::recount(flight), "the pipe agrees with the segments");
        }
        is_new
    }

    /// Adds one block to the runs; true if a byte of it was not yet covered.
    fn cover(&mut self, flight: &mut Flight, start: u64, end: u64, visit: &mut impl FnMut(&Segment)) -> bool {
        let first = self.runs.partition_point(|&(_, run_end)| run_end < start);
        let mut last = first;
        let (mut from, mut union) = (start, (start, end));
        let mut is_new = false;
        while let Some(&(run_start, run_end)) = self.runs.get(last).filter(|run| run.0 <= end) {
            if from < run_start {
                self.mark_sacked(flight, from, run_start, visit);
                is_new = true;
            }
            from = from.max(run_end);
            union = (union.0.min(run_start), union.1.max(run_end));
            last += 1;
        }
        if from < end {
            self.mark_sacked(flight, from, end, visit);
            is_new = true;
        }
        if is_new {
            self.runs.splice(first..last, [union]);
            debug_assert!(self.runs.windows(2).all(|two| two[0].1 < two[1].0), "runs touch: {:?}", self.runs);
        }
        is_new
    }

    fn mark_sacked(&mut self, flight: &mut Flight, from: u64, to: u64, visit: &mut impl FnMut(&Segment)) {
        let mut index = flight.index_from(from);
        while let Some(segment) = flight.get_mut(index).filter(|segment| segment.end() <= to) {
            take_away(&mut self.pipe, segment.in_pipe(), "bytes of the pipe");
            if !segment.sacked {
                self.segments_sacked += 1;
                if segment.lost {
                    take_away(&mut self.lost_out, u64::from(segment.length), "lost bytes");
                }
            }
            segment.sacked = true;
            visit(segment);
            index += 1;
        }
    }

    /// Applies IsLost of RFC 6675 section 4 to all segments at once: data below three runs, or below more than
    /// two segments' worth of SACKed bytes, is lost.
    fn find_lost(&mut self, flight: &mut Flight) {
        let (mut runs, mut bytes) = (0, 0);
        for &(start, end) in self.runs.iter().rev() {
            runs += 1;
            bytes += end - start;
            if runs >= DUP_THRESH || bytes > u64::from(DUP_THRESH - 1) * self.segment {
                self.mark_lost(flight, start);
                return;
            }
        }
    }

    fn mark_lost(&mut self, flight: &mut Flight, below: u64) {
        if below <= self.lost_below {
            return;
        }
        let mut index = flight.index_from(self.lost_below);
        while let Some(segment) = flight.get_mut(index).filter(|segment| segment.start < below) {
            if !segment.lost {
                let before = segment.in_pipe();
                segment.lost = true;
                if !segment.sacked {
                    self.lost_out += u64::from(segment.length);
                    self.count_lost(segment);
                }
                take_away(&mut self.pipe, before - segment.in_pipe(), "bytes of the pipe");
            }
            index += 1;
        }
        self.lost_below = below;
    }

    /// Adds a segment to what was lost since the connection began, and to the list.
    fn count_lost(&mut self, segment: &Segment) {
        self.lost += u64::from(segment.length);
        if let Some(losses) = &mut self.losses {
            let &Segment { start, snapshot, .. } = segment;
            losses.push(Loss { start, end: segment.end(), snapshot, lost: self.lost });
        }
    }

    /// Counts the last copy of the segment at `index` as lost, so that it is sent again.
    pub(super) fn lose(&mut self, flight: &mut Flight, index: usize) {
        let Some(segment) = flight.get_mut(index) else { return };
        let before = segment.in_pipe();
        let length = u64::from(segment.length);
        if !segment.lost {
            self.lost_out += length;
        }
        (segment.lost, segment.resent) = (true, false);
        self.count_lost(segment);
        take_away(&mut self.pipe, before, "bytes of the pipe");
        self.high_rxt = self.high_rxt.min(segment.start);
        self.lost_below = self.lost_below.max(segment.end());
    }

    /// Whether the first unacknowledged segment is lost.
    pub(super) fn first_is_lost(&self, flight: &Flight) -> bool {
        flight.una() < self.lost_below
    }

    /// Begins recovery: rules 1 and 3 start from the first hole.
    pub(super) fn begin_recovery(&mut self, flight: &mut Flight) {
        // by three duplicates it is lost even if the SACKed bytes do not show it yet (RFC 6675 section 5 step 4)
        if let Some(end) = flight.get(0).map(Segment::end) {
            self.mark_lost(flight, end);
        }
        self.high_rxt = flight.una();
        self.rescue_rxt = 0;
    }

    /// Handles a timeout: all data that is not SACKed is lost, and the pipe is empty (RFC 6675 section 5.1;
    /// the SACK information is kept, because the simulated receiver never discards SACKed data).
    pub(super) fn timeout(&mut self, flight: &mut Flight) {
        for index in 0..flight.len() {
            if let Some(segment) = flight.get_mut(index) {
                if !segment.lost && !segment.sacked {
                    self.lost_out += u64::from(segment.length);
                    self.count_lost(segment);
                }
                segment.lost = true;
                segment.resent = false;
            }
        }
        self.pipe = 0;
        self.lost_below = flight.max();
        self.high_rxt = flight.una();
    }

    /// Handles a timeout with RACK: the first segment is lost, and those whose last copy `is_overdue` (RFC 8985 section
    /// 6.3).
    pub(super) fn timeout_by_time(&mut self, flight: &mut Flight, is_overdue: impl Fn(&Segment) -> bool) {
        for index in 0..flight.len() {
            let is_lost = |segment: &&Segment| segment.is_under_way() && (index == 0 || is_overdue(segment));
            if flight.get(index).filter(is_lost).is_some() {
                self.lose(flight, index);
            }
        }
    }

    /// The segment to send next. `recovery` allows rules 3 and 4; `new_data` tells whether rule 2 has any data.
    pub(super) fn next_seg(&self, flight: &Flight, recovery: bool, new_data: bool) -> Option<NextSeg> {
        let mut index = flight.index_from(self.high_rxt);
        while let Some(segment) = flight.get(index).filter(|segment| segment.start < self.lost_below) {
            if segment.lost && !segment.sacked && !segment.resent {
                return Some(NextSeg::Lost(index));
            }
            index += 1;
        }
        if new_data {
            return Some(NextSeg::New);
        }
        if !recovery {
            return None;
        }
        let highest = self.runs.last().map_or(0, |&(_, end)| end);
        while let Some(segment) = flight.get(index).filter(|segment| segment.start < highest) {
            if !segment.sacked && !segment.resent {
                return Some(NextSeg::MayBeLost(index));
            }
            index += 1;
        }
        if flight.una() >= self.rescue_rxt {
            return flight.highest_missing().map(NextSeg::Rescue);
        }
        None
    }

    /// Updates the state after sending the segment that [`Scoreboard::next_seg`] proposed.
    pub(super) fn repeated(&mut self, flight: &mut Flight, next: NextSeg, recovery_point: u64) {
        let (NextSeg::Lost(index) | NextSeg::MayBeLost(index) | NextSeg::Rescue(index)) = next else {
            return;
        };
        let Some(segment) = flight.get_mut(index) else { return };
        let before = segment.in_pipe();
        segment.resent = true;
        self.pipe += segment.in_pipe() - before;
        match next {
            NextSeg::Rescue(_) => self.rescue_rxt = recovery_point,
            _ => self.high_rxt = self.high_rxt.max(segment.end()),
        }
    }

    /// The pipe counted from the segments, to check the running count.
    pub(super) fn recount(flight: &Flight) -> u64 {
        (0..flight.len()).filter_map(|index| flight.get(index)).map(Segment::in_pipe).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery::Snapshot;
    use super::*;
    use tidegate_core::{Stream, Time};

    const SIZE: u64 = 100;

    fn under_way(segments: u64) -> (Flight, Scoreboard) {
        let (mut flight, mut board) = (Flight::new(), Scoreboard::new(SIZE as u16, true));
        for _ in 0..segments {
            flight.push(Time::ZERO, 0, SIZE as u32, Snapshot::default());
            board.sent(SIZE as u32);
        }
        (flight, board)
    }

    /// Reports segments `from` to `to` as SACKed.
    fn report(flight: &mut Flight, board: &mut Scoreboard, from: u64, to: u64) -> bool {
        board.update(flight, [(from * SIZE, to * SIZE)].into_iter(), |_| {})
    }

    fn lost(flight: &Flight) -> Vec<usize> {
        let is_lost = |index: &usize| flight.get(*index).is_some_and(|s| s.lost && !s.sacked);
        (0..flight.len()).filter(is_lost).collect()
    }

    /// RFC 6675 section 4, IsLost: three runs above, or more than two segments' worth of bytes.
    #[test]
    fn three_runs_or_three_segments_above_mean_lost() {
        let (mut flight, mut board) = under_way(10);
        assert!(report(&mut flight, &mut board, 1, 2));
        assert!(report(&mut flight, &mut board, 3, 4));
        assert!(lost(&flight).is_empty());
        assert!(report(&mut flight, &mut board, 5, 6));
        assert_eq!(lost(&flight), [0], "three runs");
        assert!(board.first_is_lost(&flight));
        let (mut flight, mut board) = under_way(10);
        report(&mut flight, &mut board, 4, 6);
        assert!(lost(&flight).is_empty(), "two segments are not more than two");
        report(&mut flight, &mut board, 6, 7);
        assert_eq!(lost(&flight), [0, 1, 2, 3]);
        assert_eq!(board.pipe(), 3 * SIZE, "7, 8 and 9");
    }

    #[test]
    fn blocks_join_and_say_something_new_only_once() {
        let (mut flight, mut board) = under_way(20);
        assert!(report(&mut flight, &mut board, 2, 4));
        assert!(!report(&mut flight, &mut board, 2, 4));
        assert!(!report(&mut flight, &mut board, 3, 4));
        assert!(report(&mut flight, &mut board, 8, 10));
        assert!(report(&mut flight, &mut board, 4, 8));
        assert_eq!(board.runs, [(200, 1000)]);
        assert!(report(&mut flight, &mut board, 12, 13));
        assert!(report(&mut flight, &mut board, 1, 15), "over all of them");
        assert_eq!(board.runs, [(100, 1500)]);
        assert!(!report(&mut flight, &mut board, 30, 40), "beyond what was sent");
        assert!(!board.update(&mut flight, [(500, 300)].into_iter(), |_| {}), "backwards");
        board.acknowledge(&mut flight, 1500, |_| {});
        assert_eq!((board.runs.len(), board.pipe()), (0, 500));
    }

    /// A copy that may be needless counts beside the original (RFC 6675 section 4, SetPipe).
    #[test]
    fn the_pipe_counts_copies() {
        let (mut flight, mut board) = under_way(6);
        report(&mut flight, &mut board, 1, 4);
        assert_eq!(board.pipe(), 200);
        board.begin_recovery(&mut flight);
        assert_eq!(board.next_seg(&flight, true, true), Some(NextSeg::Lost(0)));
        board.repeated(&mut flight, NextSeg::Lost(0), 600);
        assert_eq!(board.pipe(), 300);
        assert_eq!(board.next_seg(&flight, true, true), Some(NextSeg::New));
        // no new data, and no hole below the highest block: the last segment, once
        assert_eq!(board.next_seg(&flight, true, false), Some(NextSeg::Rescue(5)));
        board.repeated(&mut flight, NextSeg::Rescue(5), 600);
        assert_eq!(board.pipe(), 400, "4, 5 twice, and 0");
        assert_eq!(board.next_seg(&flight, true, false), None);
        board.timeout(&mut flight);
        assert_eq!((board.pipe(), lost(&flight)), (0, vec![0, 4, 5]));
        assert_eq!(board.next_seg(&flight, false, true), Some(NextSeg::Lost(0)));
    }

    /// Compares the running counts and marks with the definitions of RFC 6675, computed anew octet by octet.
    #[test]
    fn the_running_state_is_that_of_the_definitions() {
        for seed in 0..300 {
            let mut luck = Stream::new(seed, "test", "scoreboard");
            let (mut flight, mut board) = under_way(5);
            let mut sacked: Vec<bool> = vec![false; 5];
            let mut timed_out_below = 0;
            for _ in 0..200 {
                let una = flight.una() / SIZE;
                let max = flight.max() / SIZE;
                match luck.below(10) {
                    0..=3 => {
                        flight.push(Time::ZERO, 0, SIZE as u32, Snapshot::default());
                        board.sent(SIZE as u32);
                        sacked.push(false);
                    }
                    4..=6 if max > una + 1 => {
                        let from = una + 1 + luck.below(max - una - 1);
                        let to = from + 1 + luck.below((max - from).min(4));
                        report(&mut flight, &mut board, from, to);
                        sacked[from as usize..to.min(max) as usize].fill(true);
                    }
                    7 => {
                        let mut ack = una + luck.below(max - una + 1);
                        while sacked.get(ack as usize) == Some(&true) {
                            ack += 1;
                        }
                        board.acknowledge(&mut flight, ack * SIZE, |_| {});
                    }
                    8 => {
                        if let Some(segment) = board.next_seg(&flight, true, false) {
                            board.repeated(&mut flight, segment, max * SIZE);
                        }
                    }
                    _ if luck.chance(0.1) => {
                        board.timeout(&mut flight);
                        timed_out_below = max;
                    }
                    _ => {}
                }
                assert_eq!(board.pipe(), Scoreboard::recount(&flight));
                let una = (flight.una() / SIZE) as usize;
                for (index, position) in (una..sacked.len()).enumerate() {
                    let above = &sacked[position + 1..];
                    let runs = (0..above.len()).filter(|&i| above[i] && (i == 0 || !above[i - 1])).count();
                    let bytes = above.iter().filter(|&&is_sacked| is_sacked).count();
                    let is_lost = (position as u64) < timed_out_below || runs >= 3 || bytes > 2;
                    let segment = flight.get(index).unwrap();
                    assert_eq!(segment.sacked, sacked[position], "seed {seed}");
                    assert_eq!(segment.lost && !segment.sacked, is_lost && !segment.sacked, "seed {seed}");
                }
            }
        }
    }
}
