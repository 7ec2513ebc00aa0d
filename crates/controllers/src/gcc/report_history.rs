//! History of reported packets, since feedback overlaps, repeats, and corrects itself.
//!
//! RFC 8888 reports cover packets again and again; transport-wide feedback may be duplicated by the
//! network. Each packet counts once as expected, and once as lost or received.

/// Length of the history, packets; a power of two. At 10 Mbit/s this is more than two seconds.
const REACH: u64 = 4096;
const WORDS: usize = (REACH / 64) as usize;

/// New information in a packet's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Reported for the first time, as received.
    Received,
    /// Reported for the first time, as lost.
    Lost,
    /// Reported as lost before, and received after all.
    Recovered,
    /// No new information, or a packet beyond the history.
    Stale,
}

/// Sliding history of reported sequence numbers.
#[derive(Clone)]
pub struct ReportHistory {
    reported: [u64; WORDS],
    received: [u64; WORDS],
    /// Highest sequence number so far plus one.
    end: u64,
}

impl Default for ReportHistory {
    fn default() -> Self {
        Self { reported: [0; WORDS], received: [0; WORDS], end: 0 }
    }
}

impl ReportHistory {
    /// Takes a packet's result and returns what is new in it.
    pub fn note(&mut self, sequence: u64, received: bool) -> News {
        if sequence >= self.end {
            self.advance(sequence);
        } else if self.end - sequence > REACH {
            return News::Stale;
        }
        let (word, bit) = bit_position(sequence);
        let was_reported = self.reported[word] & bit != 0;
        let was_received = self.received[word] & bit != 0;
        self.reported[word] |= bit;
        if received {
            self.received[word] |= bit;
        }
        match (was_reported, was_received, received) {
            (false, _, true) => News::Received,
            (false, _, false) => News::Lost,
            (true, false, true) => News::Recovered,
            (true, _, _) => News::Stale,
        }
    }

    /// Extends the history to `sequence` and clears the bits of the numbers that it replaces.
    fn advance(&mut self, sequence: u64) {
        let end = sequence.saturating_add(1);
        if end - self.end >= REACH {
            *self = Self::default();
        } else {
            for forgotten in self.end..end {
                let (word, bit) = bit_position(forgotten);
                self.reported[word] &= !bit;
                self.received[word] &= !bit;
            }
        }
        self.end = end;
    }
}

fn bit_position(sequence: u64) -> (usize, u64) {
    let index = sequence % REACH;
    ((index / 64) as usize, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_news_once_and_once_more_if_it_was_not_lost_after_all() {
        let mut history = ReportHistory::default();
        assert_eq!(history.note(5, true), News::Received);
        assert_eq!(history.note(5, true), News::Stale);
        assert_eq!(history.note(5, false), News::Stale, "a received packet stays received");
        assert_eq!(history.note(3, false), News::Lost);
        assert_eq!(history.note(3, false), News::Stale);
        assert_eq!(history.note(3, true), News::Recovered);
        assert_eq!(history.note(3, true), News::Stale);
    }

    #[test]
    fn it_agrees_with_a_set_that_forgets_nothing_within_its_reach() {
        let mut history = ReportHistory::default();
        let mut reported = std::collections::BTreeSet::new();
        let mut random = tidegate_core::Stream::new(1, "seen", "test");
        let mut highest = 0;
        for _ in 0..100_000 {
            let sequence = highest + random.below(40);
            let sequence = sequence.saturating_sub(random.below(REACH - 40));
            let fresh = reported.insert(sequence);
            highest = highest.max(sequence);
            assert_eq!(history.note(sequence, true) == News::Received, fresh, "{sequence}");
        }
    }

    #[test]
    fn far_jumps_and_the_last_number_are_taken() {
        let mut history = ReportHistory::default();
        assert_eq!(history.note(0, true), News::Received);
        assert_eq!(history.note(1 << 40, true), News::Received);
        assert_eq!(history.note(0, true), News::Stale, "beyond the history");
        assert_eq!(history.note((1 << 40) - REACH + 1, false), News::Lost);
        assert_eq!(history.note(u64::MAX - 1, true), News::Received);
        assert_eq!(history.note(u64::MAX - 1, true), News::Stale);
        let _ = history.note(u64::MAX, true);
    }
}
