//! The sender's scoreboard: what the receiver has beyond the hole, what is lost, what is in the pipe (RFC 6675).

use super::flight::Flight;

/// So many duplicates, or SACKed runs above a byte, mean that it is lost (RFC 6675 section 2).
pub(super) const DUP_THRESH: u32 = 3;

/// What may be sent next (NextSeg of RFC 6675 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Rule 1: the segment at this index is lost.
    Lost(usize),
    /// Rule 2: data that was not sent before.
    New,
    /// Rule 3: the segment at this index may be lost.
    MayBeLost(usize),
    /// Rule 4: the highest outstanding segment, to get an acknowledgement out of the receiver.
    Rescue(usize),
}

/// The state of RFC 6675, kept up to date with every acknowledgement instead of computed from all octets.
#[derive(Debug)]
pub(super) struct Scoreboard {
    /// SACKed runs above the cumulative acknowledgement: disjoint, not touching, in order.
    runs: Vec<(u64, u64)>,
    /// Bytes that are believed to be in the network.
    pipe: u64,
    /// Whatever is not SACKed below this is lost. It only moves up.
    lost_below: u64,
    /// One past the highest byte sent again by rules 1 and 3 in this recovery (HighRxt).
    high_rxt: u64,
    /// No rescue before everything up to here is acknowledged (RescueRxt).
    rescued: u64,
    segment: u64,
}

impl Scoreboard {
    pub(super) fn new(segment: u16) -> Self {
        Self {
            runs: Vec::new(),
            pipe: 0,
            lost_below: 0,
            high_rxt: 0,
            rescued: 0,
            segment: u64::from(segment),
        }
    }

    #[inline]
    pub(super) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// New data has left.
    #[inline]
    pub(super) fn sent(&mut self, length: u32) {
        self.pipe += u64::from(length);
    }

    /// The cumulative acknowledgement moves up to `ack`: takes the segments off the flight.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        flight: &mut Flight,
        ack: u64,
        mut each: impl FnMut(&super::flight::Segment),
    ) {
        flight.acknowledge(ack, |segment| {
            self.pipe -= segment.in_pipe();
            each(segment);
        });
        if !self.runs.is_empty() {
            self.runs.retain(|&(_, end)| end > ack);
        }
        self.lost_below = self.lost_below.max(ack);
        self.high_rxt = self.high_rxt.max(ack);
    }

    /// Takes in the blocks of an acknowledgement, and says whether they told anything new.
    pub(super) fn update(&mut self, flight: &mut Flight, blocks: impl Iterator<Item = (u64, u64)>) -> bool {
        let mut news = false;
        for (start, end) in blocks {
            // what lies outside of what was sent is stale or wrong
            let (start, end) = (start.max(flight.una()), end.min(flight.max()));
            if start < end {
                news |= self.cover(flight, start, end);
            }
        }
        if news {
            self.find_lost(flight);
        }
        news
    }

    /// Adds one block to the runs; true if a byte of it was not yet covered.
    fn cover(&mut self, flight: &mut Flight, start: u64, end: u64) -> bool {
        let first = self.runs.partition_point(|&(_, run_end)| run_end < start);
        let mut last = first;
        let (mut from, mut union) = (start, (start, end));
        let mut news = false;
        while let Some(&(run_start, run_end)) = self.runs.get(last).filter(|run| run.0 <= end) {
            if from < run_start {
                self.mark_sacked(flight, from, run_start);
                news = true;
            }
            from = from.max(run_end);
            union = (union.0.min(run_start), union.1.max(run_end));
            last += 1;
        }
        if from < end {
            self.mark_sacked(flight, from, end);
            news = true;
        }
        if news {
            self.runs.splice(first..last, [union]);
        }
        news
    }

    fn mark_sacked(&mut self, flight: &mut Flight, from: u64, to: u64) {
        let mut index = flight.index_from(from);
        while let Some(segment) = flight.get_mut(index).filter(|segment| segment.end() <= to) {
            self.pipe -= segment.in_pipe();
            segment.sacked = true;
            index += 1;
        }
    }

    /// IsLost of RFC 6675 section 4 for all segments at once: three runs above, or more than two
    /// segments' worth of SACKed bytes, and whatever lies below is lost.
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
                self.pipe -= before - segment.in_pipe();
            }
            index += 1;
        }
        self.lost_below = below;
    }

    /// Whether the first unacknowledged segment is lost.
    pub(super) fn first_is_lost(&self, flight: &Flight) -> bool {
        flight.una() < self.lost_below
    }

    /// Recovery begins: rules 1 and 3 start from the first hole.
    pub(super) fn begin_recovery(&mut self, flight: &mut Flight) {
        // three duplicates say so even where the SACKed bytes do not yet (RFC 6675 section 5 step 4)
        if let Some(end) = flight.get(0).map(super::flight::Segment::end) {
            self.mark_lost(flight, end);
        }
        self.high_rxt = flight.una();
        self.rescued = 0;
    }

    /// The timer went off: what is not SACKed is lost and nothing is in the pipe (RFC 6675 section 5.1;
    /// the SACK information is kept, as the simulated receiver never takes any back).
    pub(super) fn timeout(&mut self, flight: &mut Flight) {
        for index in 0..flight.len() {
            if let Some(segment) = flight.get_mut(index) {
                segment.lost = true;
                segment.again = false;
            }
        }
        self.pipe = 0;
        self.lost_below = flight.max();
        self.high_rxt = flight.una();
    }

    /// What to send next. `recovery` allows rules 3 and 4, `new_data` says whether rule 2 has any data.
    pub(super) fn next(&self, flight: &Flight, recovery: bool, new_data: bool) -> Option<Next> {
        let mut index = flight.index_from(self.high_rxt);
        while let Some(segment) = flight.get(index).filter(|segment| segment.start < self.lost_below) {
            if segment.lost && !segment.sacked && !segment.again {
                return Some(Next::Lost(index));
            }
            index += 1;
        }
        if new_data {
            return Some(Next::New);
        }
        if !recovery {
            return None;
        }
        let highest = self.runs.last().map_or(0, |&(_, end)| end);
        while let Some(segment) = flight.get(index).filter(|segment| segment.start < highest) {
            if !segment.sacked && !segment.again {
                return Some(Next::MayBeLost(index));
            }
            index += 1;
        }
        if flight.una() >= self.rescued {
            let last = (0..flight.len()).rev().find(|&i| flight.get(i).is_some_and(|s| !s.sacked));
            return last.map(Next::Rescue);
        }
        None
    }

    /// What [`Scoreboard::next`] proposed has been sent again.
    pub(super) fn repeated(&mut self, flight: &mut Flight, next: Next, recovery_point: u64) {
        let (Next::Lost(index) | Next::MayBeLost(index) | Next::Rescue(index)) = next else { return };
        let Some(segment) = flight.get_mut(index) else { return };
        let before = segment.in_pipe();
        segment.again = true;
        self.pipe += segment.in_pipe() - before;
        match next {
            Next::Rescue(_) => self.rescued = recovery_point,
            _ => self.high_rxt = self.high_rxt.max(segment.end()),
        }
    }

    /// The pipe counted from the segments, for tests of the running count.
    #[cfg(test)]
    pub(super) fn recount(flight: &Flight) -> u64 {
        (0..flight.len()).filter_map(|index| flight.get(index)).map(super::flight::Segment::in_pipe).sum()
    }
}
