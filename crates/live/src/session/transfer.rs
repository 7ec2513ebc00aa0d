//! The exchange of records at the end of a session. Each side requests the other's record in pieces, and requests lost
//! pieces again. The number of pieces in a request follows a window with additive increase and multiplicative decrease,
//! as in TCP (RFC 5681), because the measured path may be slow.

use super::control::{Control, PIECE};
use tidegate_core::{Span, Time};

/// Bytes of the longest record that is accepted: hours of a call, compressed.
pub const MAX_RECORD: usize = 1 << 26;

/// Largest number of pieces in reply to one request.
const MAX_PIECES: u32 = 64;

/// Time after which a requested piece counts as lost: a second, as TCP's initial retransmission timeout (RFC 6298).
const TIMEOUT: Span = Span::from_secs(1);

/// Serves this side's record.
#[derive(Debug)]
pub struct OfferedRecord {
    record: Vec<u8>,
}

impl OfferedRecord {
    /// Serves `record`.
    ///
    /// # Errors
    /// With the number of bytes, if there are more than [`MAX_RECORD`].
    pub fn new(record: Vec<u8>) -> Result<Self, usize> {
        if record.len() > MAX_RECORD { Err(record.len()) } else { Ok(Self { record }) }
    }

    /// The requested pieces as messages; none beyond the end of the record.
    pub fn pieces(&self, from: u32, count: u32) -> impl Iterator<Item = Vec<u8>> {
        let pieces = (self.record.len().div_ceil(PIECE)).max(1) as u32;
        let end = from.saturating_add(count.min(MAX_PIECES)).min(pieces);
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
    /// The record's bytes; `None` before the first piece, which has its length.
    record: Option<Vec<u8>>,
    /// Whether each piece has arrived.
    have: Vec<bool>,
    /// The first piece that is missing.
    next: usize,
    window: u32,
    /// The last request: first number and count.
    requested: (u32, u32),
    /// Pieces of the last request that have arrived.
    arrived: u32,
    due: Time,
    /// Time of the last new piece.
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
            requested: (0, 0),
            arrived: 0,
            due: now,
            last: now,
        }
    }

    /// Time of the next request if nothing is received before; never if the record is complete.
    #[must_use]
    pub fn due(&self) -> Time {
        if self.is_complete() { Time::MAX } else { self.due }
    }

    /// Time of the last new piece.
    #[must_use]
    pub const fn last(&self) -> Time {
        self.last
    }

    /// Whether all pieces have arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.record.is_some() && self.next == self.have.len()
    }

    /// Share of the pieces before the first missing one, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.have.is_empty() { 0.0 } else { self.next as f64 / self.have.len() as f64 }
    }

    /// The record, if it is complete.
    #[must_use]
    pub fn into_record(self) -> Option<Vec<u8>> {
        if self.is_complete() { self.record } else { None }
    }

    /// The request that is due at `now`, if any.
    pub fn advance(&mut self, now: Time) -> Option<Vec<u8>> {
        if now < self.due() {
            return None;
        }
        // not all requested pieces have arrived: request fewer
        if self.requested.1 > 0 && self.arrived < self.requested.1 {
            self.window = (self.window / 2).max(1);
        }
        let from = self.next as u32;
        let remaining = if self.have.is_empty() { 1 } else { (self.have.len() - self.next) as u32 };
        let count = self.window.min(remaining);
        (self.requested, self.arrived, self.due) = ((from, count), 0, now + TIMEOUT);
        Some(Control::Ask { from, count }.encode())
    }

    /// Adds a piece; false if it does not fit the record.
    pub fn piece(&mut self, now: Time, number: u32, total: u32, bytes: &[u8]) -> bool {
        let length = total as usize;
        if length > MAX_RECORD {
            return false;
        }
        let record = self.record.get_or_insert_with(|| vec![0; length]);
        if self.have.is_empty() {
            self.have = vec![false; length.div_ceil(PIECE).max(1)];
        }
        let index = number as usize;
        let start = index.saturating_mul(PIECE);
        let end = start.saturating_add(PIECE).min(length);
        if record.len() != length || index >= self.have.len() || bytes.len() != end - start {
            return false;
        }
        let (from, count) = self.requested;
        if !self.have[index] {
            record[start..end].copy_from_slice(bytes);
            self.have[index] = true;
            self.last = now;
            self.arrived += u32::from((from..from.saturating_add(count)).contains(&number));
        } else if (from..from.saturating_add(count)).contains(&number) {
            self.arrived = (self.arrived + 1).min(count);
        }
        while self.have.get(self.next) == Some(&true) {
            self.next += 1;
        }
        if self.arrived >= count {
            // all requested pieces have arrived: request more, at once
            self.window = (self.window + 2).min(MAX_PIECES);
            self.due = now;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fetches `record` over a path that loses a message if `loses` is true; returns it and the number of requests.
    fn fetch_record(record: &[u8], mut loses: impl FnMut() -> bool) -> (Vec<u8>, u32) {
        let offered = OfferedRecord::new(record.to_vec()).expect("short");
        let (mut now, mut fetch, mut requests) = (Time::ZERO, Fetch::new(Time::ZERO), 0);
        while !fetch.is_complete() {
            now = now.max(fetch.due());
            let Some(ask) = fetch.advance(now) else { panic!("due at {now}") };
            requests += 1;
            assert!(requests < 100_000);
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
        (fetch.into_record().expect("complete"), requests)
    }

    #[test]
    fn a_record_arrives_complete_even_if_much_is_lost() {
        let mut state = 3_u64;
        let mut luck = move |of: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11);
            (state >> 33).is_multiple_of(of)
        };
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 300_007] {
            let record: Vec<u8> = (0..length).map(|index| (index * 7 % 251) as u8).collect();
            let (fetched, requests) = fetch_record(&record, || false);
            assert!(fetched == record && requests <= 17, "{length} bytes in {requests}");
            assert!(fetch_record(&record, || luck(3)).0 == record, "{length} bytes");
        }
    }

    #[test]
    fn pieces_that_do_not_fit_are_refused() {
        let mut fetch = Fetch::new(Time::ZERO);
        let now = Time::ZERO;
        assert!(!fetch.piece(now, 0, MAX_RECORD as u32 + 1, &[0; PIECE]), "too long");
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
    fn a_request_gets_a_limited_number_of_pieces() {
        let offered = OfferedRecord::new(vec![1; 1_000_000]).expect("short");
        assert_eq!(offered.pieces(0, u32::MAX).count(), 64);
        assert_eq!(offered.pieces(u32::MAX, u32::MAX).count(), 0);
        assert_eq!(offered.pieces(909, 5).count(), 1);
    }
}
