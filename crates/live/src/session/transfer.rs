//! The exchange of records at the end of a session: each side asks for the other's, piece by piece, and asks again for
//! what was lost. How much it asks for at once follows what comes back (additive increase, multiplicative decrease, as
//! TCP's window; RFC 5681), because the path is the one that has just been measured, and may be slow.

use super::control::{Control, PIECE};
use tidegate_core::{Span, Time};

/// Bytes of the longest record that is taken: hours of a call, compressed.
pub const LONGEST: usize = 1 << 26;

/// Nobody is given more pieces at once.
const MOST_AT_ONCE: u32 = 64;

/// What was asked for and does not come within this time is lost: a second, as TCP's first retransmission (RFC 6298).
const LOST: Span = Span::from_secs(1);

/// Hands out one's own record.
#[derive(Debug)]
pub struct Offered {
    record: Vec<u8>,
}

impl Offered {
    /// Hands out `record`.
    ///
    /// # Errors
    /// With the number of bytes, if they are more than [`LONGEST`].
    pub fn new(record: Vec<u8>) -> Result<Self, usize> {
        if record.len() > LONGEST { Err(record.len()) } else { Ok(Self { record }) }
    }

    /// The pieces that were asked for, as messages; none where there are none.
    pub fn pieces(&self, from: u32, count: u32) -> impl Iterator<Item = Vec<u8>> {
        let pieces = (self.record.len().div_ceil(PIECE)).max(1) as u32;
        let end = from.saturating_add(count.min(MOST_AT_ONCE)).min(pieces);
        (from..end).map(|number| {
            let start = number as usize * PIECE;
            let bytes = &self.record[start..(start + PIECE).min(self.record.len())];
            Control::Piece { number, total: self.record.len() as u32, bytes }.encode()
        })
    }
}

/// Fetches the other side's record.
#[derive(Debug)]
pub struct Fetch {
    /// Known from the first piece on.
    record: Option<Vec<u8>>,
    have: Vec<bool>,
    /// The first piece that is missing.
    next: usize,
    window: u32,
    /// What was asked for last, and how many of these have come.
    asked: (u32, u32),
    came: u32,
    due: Time,
    last: Time,
}

impl Fetch {
    /// Begins at `now`.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self {
            record: None,
            have: Vec::new(),
            next: 0,
            window: 4,
            asked: (0, 0),
            came: 0,
            due: now,
            last: now,
        }
    }

    /// When it asks next, if nothing is received before; never if it has all.
    #[must_use]
    pub fn due(&self) -> Time {
        if self.is_complete() { Time::MAX } else { self.due }
    }

    /// Since when nothing new has come.
    #[must_use]
    pub const fn last(&self) -> Time {
        self.last
    }

    /// Whether it has all.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.record.is_some() && self.next == self.have.len()
    }

    /// What it has got, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.have.is_empty() { 0.0 } else { self.next as f64 / self.have.len() as f64 }
    }

    /// The record, if it has all of it.
    #[must_use]
    pub fn into_record(self) -> Option<Vec<u8>> {
        if self.is_complete() { self.record } else { None }
    }

    /// What it asks for at `now`, if that is due.
    pub fn advance(&mut self, now: Time) -> Option<Vec<u8>> {
        if now < self.due() {
            return None;
        }
        // not all that was asked for has come: less at once
        if self.asked.1 > 0 && self.came < self.asked.1 {
            self.window = (self.window / 2).max(1);
        }
        let from = self.next as u32;
        let left = if self.have.is_empty() { 1 } else { (self.have.len() - self.next) as u32 };
        let count = self.window.min(left);
        (self.asked, self.came, self.due) = ((from, count), 0, now + LOST);
        Some(Control::Ask { from, count }.encode())
    }

    /// Takes a piece in; false if it is none of the record that it fetches.
    pub fn piece(&mut self, now: Time, number: u32, total: u32, bytes: &[u8]) -> bool {
        let length = total as usize;
        if length > LONGEST {
            return false;
        }
        let record = self.record.get_or_insert_with(|| vec![0; length]);
        if self.have.is_empty() {
            self.have = vec![false; length.div_ceil(PIECE).max(1)];
        }
        let place = number as usize;
        let start = place.saturating_mul(PIECE);
        let end = start.saturating_add(PIECE).min(length);
        if record.len() != length || place >= self.have.len() || bytes.len() != end - start {
            return false;
        }
        let (from, count) = self.asked;
        if !self.have[place] {
            record[start..end].copy_from_slice(bytes);
            self.have[place] = true;
            self.last = now;
            self.came += u32::from((from..from.saturating_add(count)).contains(&number));
        } else if (from..from.saturating_add(count)).contains(&number) {
            self.came = (self.came + 1).min(count);
        }
        while self.have.get(self.next) == Some(&true) {
            self.next += 1;
        }
        if self.came >= count {
            // all that was asked for has come: more at once, and now
            self.window = (self.window + 2).min(MOST_AT_ONCE);
            self.due = now;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fetches `record` over a path that loses what `loses` says; gives how many times it was asked for.
    fn fetched(record: &[u8], mut loses: impl FnMut() -> bool) -> (Vec<u8>, u32) {
        let offered = Offered::new(record.to_vec()).expect("short");
        let (mut now, mut fetch, mut asks) = (Time::ZERO, Fetch::new(Time::ZERO), 0);
        while !fetch.is_complete() {
            now = now.max(fetch.due());
            let Some(ask) = fetch.advance(now) else { panic!("due at {now}") };
            asks += 1;
            assert!(asks < 100_000);
            let Some(Control::Ask { from, count }) = Control::decode(&ask) else { panic!("{ask:?}") };
            if loses() {
                continue;
            }
            for piece in offered.pieces(from, count) {
                now += Span::from_millis(1);
                let Some(Control::Piece { number, total, bytes }) = Control::decode(&piece) else {
                    panic!("a piece")
                };
                if !loses() {
                    assert!(fetch.piece(now, number, total, bytes));
                }
            }
        }
        assert_eq!(fetch.due(), Time::MAX);
        (fetch.into_record().expect("complete"), asks)
    }

    #[test]
    fn a_record_comes_whole_also_where_much_is_lost() {
        let mut state = 3_u64;
        let mut luck = move |of: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11);
            (state >> 33).is_multiple_of(of)
        };
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 300_007] {
            let record: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            let (found, asks) = fetched(&record, || false);
            assert!(found == record && asks <= 17, "{length} bytes in {asks}");
            assert!(fetched(&record, || luck(3)).0 == record, "{length} bytes");
        }
    }

    #[test]
    fn pieces_that_do_not_fit_are_refused() {
        let mut fetch = Fetch::new(Time::ZERO);
        let now = Time::ZERO;
        assert!(!fetch.piece(now, 0, LONGEST as u32 + 1, &[0; PIECE]), "too long");
        assert!(fetch.piece(now, 0, 2000, &[1; PIECE]));
        assert!(!fetch.piece(now, 1, 2000, &[1; 899]), "a short piece");
        assert!(!fetch.piece(now, 1, 2001, &[1; 901]), "of another record");
        assert!(!fetch.piece(now, 2, 2000, &[]), "behind the end");
        assert!(!fetch.piece(now, u32::MAX, 2000, &[1; 900]));
        assert!(!fetch.is_complete());
        assert!(fetch.piece(now, 1, 2000, &[1; 900]));
        assert!(fetch.is_complete());
    }

    #[test]
    fn nobody_is_given_more_than_a_few_at_once() {
        let offered = Offered::new(vec![1; 1_000_000]).expect("short");
        assert_eq!(offered.pieces(0, u32::MAX).count(), 64);
        assert_eq!(offered.pieces(u32::MAX, u32::MAX).count(), 0);
        assert_eq!(offered.pieces(909, 5).count(), 1);
    }
}
