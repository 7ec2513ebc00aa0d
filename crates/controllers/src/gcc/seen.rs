//! Which packets have been reported on: feedback overlaps, repeats, and takes back what it said.
//!
//! RFC 8888 reports cover packets again and again; transport-wide feedback may be duplicated by the
//! network. Each packet counts once as expected, and once as lost or received.

/// How far back the memory reaches, packets; a power of two. At 10 Mbit/s this is two seconds and more.
const REACH: u64 = 4096;
const WORDS: usize = (REACH / 64) as usize;

/// What a report says of a packet that was not known before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Reported for the first time, as received.
    Received,
    /// Reported for the first time, as lost.
    Lost,
    /// Reported as lost before, and received after all.
    Recovered,
    /// Nothing new, or too long ago to tell.
    Nothing,
}

/// A sliding memory of sequence numbers.
#[derive(Clone)]
pub struct Seen {
    reported: [u64; WORDS],
    received: [u64; WORDS],
    /// One past the highest sequence number so far.
    end: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { reported: [0; WORDS], received: [0; WORDS], end: 0 }
    }
}

impl Seen {
    /// Takes one result and says what is new in it.
    pub fn note(&mut self, sequence: u64, received: bool) -> News {
        if sequence >= self.end {
            self.advance(sequence);
        } else if self.end - sequence > REACH {
            return News::Nothing;
        }
        let (word, bit) = place(sequence);
        let known = self.reported[word] & bit != 0;
        let had = self.received[word] & bit != 0;
        self.reported[word] |= bit;
        if received {
            self.received[word] |= bit;
        }
        match (known, had, received) {
            (false, _, true) => News::Received,
            (false, _, false) => News::Lost,
            (true, false, true) => News::Recovered,
            (true, _, _) => News::Nothing,
        }
    }

    /// Makes room up to `sequence` by forgetting what lies a whole reach before.
    fn advance(&mut self, sequence: u64) {
        let end = sequence.saturating_add(1);
        if end - self.end >= REACH {
            *self = Self::default();
        } else {
            for forgotten in self.end..end {
                let (word, bit) = place(forgotten);
                self.reported[word] &= !bit;
                self.received[word] &= !bit;
            }
        }
        self.end = end;
    }
}

fn place(sequence: u64) -> (usize, u64) {
    let at = sequence % REACH;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_news_once_and_once_more_if_it_was_not_lost_after_all() {
        let mut seen = Seen::default();
        assert_eq!(seen.note(5, true), News::Received);
        assert_eq!(seen.note(5, true), News::Nothing);
        assert_eq!(seen.note(5, false), News::Nothing, "once received, received");
        assert_eq!(seen.note(3, false), News::Lost);
        assert_eq!(seen.note(3, false), News::Nothing);
        assert_eq!(seen.note(3, true), News::Recovered);
        assert_eq!(seen.note(3, true), News::Nothing);
    }

    #[test]
    fn it_agrees_with_a_set_that_forgets_nothing_within_its_reach() {
        let mut seen = Seen::default();
        let mut all = std::collections::BTreeSet::new();
        let mut random = tidegate_core::Stream::new(1, "seen", "test");
        let mut highest = 0;
        for _ in 0..100_000 {
            let sequence = highest + random.below(40);
            let sequence = sequence.saturating_sub(random.below(REACH - 40));
            let fresh = all.insert(sequence);
            highest = highest.max(sequence);
            assert_eq!(seen.note(sequence, true) == News::Received, fresh, "{sequence}");
        }
    }

    #[test]
    fn far_jumps_and_the_last_number_are_taken() {
        let mut seen = Seen::default();
        assert_eq!(seen.note(0, true), News::Received);
        assert_eq!(seen.note(1 << 40, true), News::Received);
        assert_eq!(seen.note(0, true), News::Nothing, "beyond its reach");
        assert_eq!(seen.note((1 << 40) - REACH + 1, false), News::Lost);
        assert_eq!(seen.note(u64::MAX - 1, true), News::Received);
        assert_eq!(seen.note(u64::MAX - 1, true), News::Nothing);
        let _ = seen.note(u64::MAX, true);
    }
}
