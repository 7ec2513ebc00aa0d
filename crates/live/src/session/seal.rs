//! Sealed datagrams: payload, sequence number, tag.

use super::keys::Key;
use super::{Ignored, OVERHEAD, TAG};

/// Seals the datagrams that one side sends.
#[derive(Debug)]
pub struct Sealer {
    key: Key,
    next: u64,
}

impl Sealer {
    /// Begins with sequence number 0.
    #[must_use]
    pub const fn new(key: Key) -> Self {
        Self { key, next: 0 }
    }

    /// Appends sequence number and tag to the payload in `datagram`; returns the number.
    pub fn seal(&mut self, datagram: &mut Vec<u8>) -> u64 {
        let number = self.next;
        // 2^64 datagrams at 10^7 a second take 58000 years
        self.next += 1;
        datagram.extend(number.to_be_bytes());
        let tag = self.key.tag(&[datagram]);
        datagram.extend(tag);
        number
    }
}

/// Opens the datagrams that the other side has sealed, each at most once.
#[derive(Debug)]
pub struct Opener {
    key: Key,
    max_length: usize,
    window: Window,
}

impl Opener {
    /// Accepts datagrams of at most `max_length` bytes.
    #[must_use]
    pub const fn new(key: Key, max_length: usize) -> Self {
        Self { key, max_length, window: Window::new() }
    }

    /// Authenticates `datagram`: its sequence number and payload, or `None` for one that is rejected and counted in
    /// `ignored`.
    pub fn open<'a>(&mut self, datagram: &'a [u8], ignored: &mut Ignored) -> Option<(u64, &'a [u8])> {
        if datagram.len() > self.max_length {
            ignored.oversized += 1;
            return None;
        }
        let length = datagram.len().checked_sub(OVERHEAD).filter(|&length| length > 0);
        let parts = length.and_then(|length| {
            let (tagged, tag) = datagram.split_last_chunk::<TAG>()?;
            let number = tagged[length..].first_chunk::<8>()?;
            Some((&datagram[..length], u64::from_be_bytes(*number), tagged, tag))
        });
        let Some((payload, number, tagged, tag)) = parts else {
            ignored.malformed += 1;
            return None;
        };
        // checked before the tag, which costs more
        if !self.window.is_new(number) {
            ignored.replayed += 1;
            return None;
        }
        if !self.key.verifies(tagged, tag) {
            ignored.forged += 1;
            return None;
        }
        self.window.insert(number);
        Some((number, payload))
    }
}

/// Set of the last sequence numbers received (RFC 6479 describes such replay windows).
#[derive(Debug)]
struct Window {
    /// The highest number received plus one.
    next: u64,
    /// A bit for each of the last numbers, at the number modulo the length.
    bits: [u64; Self::WORDS],
}

impl Window {
    const WORDS: usize = 16;
    /// Length of the window in numbers: at 10 Mb/s nearly a second of reordering.
    const LEN: u64 = 64 * Self::WORDS as u64;

    const fn new() -> Self {
        Self { next: 0, bits: [0; Self::WORDS] }
    }

    /// Index of the word of a number, and its bit in the word.
    const fn position(number: u64) -> (usize, u64) {
        let index = number % Self::LEN;
        ((index / 64) as usize, 1 << (index % 64))
    }

    /// Whether `number` is new and not older than the window.
    const fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return number < u64::MAX;
        }
        let (word, bit) = Self::position(number);
        self.next - number <= Self::LEN && self.bits[word] & bit == 0
    }

    /// Inserts a number that is new.
    fn insert(&mut self, number: u64) {
        if number >= self.next {
            if number - self.next >= Self::LEN {
                self.bits = [0; Self::WORDS];
            } else {
                for between in self.next..number {
                    let (word, bit) = Self::position(between);
                    self.bits[word] &= !bit;
                }
            }
            self.next = number + 1;
        }
        let (word, bit) = Self::position(number);
        self.bits[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pair() -> (Sealer, Opener) {
        let key = Key::new(&[3; 32]);
        (Sealer::new(key.clone()), Opener::new(key, 1500))
    }

    fn seal(sealer: &mut Sealer, payload: &[u8]) -> Vec<u8> {
        let mut datagram = payload.to_vec();
        sealer.seal(&mut datagram);
        datagram
    }

    #[test]
    fn a_sealed_datagram_is_opened_once() {
        let (mut sealer, mut opener) = pair();
        let mut ignored = Ignored::default();
        let datagrams: Vec<_> = (0..3_u8).map(|number| seal(&mut sealer, &[number; 5])).collect();
        for number in [1, 0, 2] {
            assert_eq!(datagrams[number].len(), 5 + OVERHEAD);
            assert_eq!(
                opener.open(&datagrams[number], &mut ignored),
                Some((number as u64, [number as u8; 5].as_slice()))
            );
        }
        assert_eq!(ignored, Ignored::default());
        for datagram in &datagrams {
            assert_eq!(opener.open(datagram, &mut ignored), None);
        }
        assert_eq!(ignored, Ignored { replayed: 3, ..Ignored::default() });
    }

    #[test]
    fn every_bit_counts() {
        let (mut sealer, mut opener) = pair();
        let datagram = seal(&mut sealer, b"carried");
        let mut ignored = Ignored::default();
        for bit in 0..datagram.len() * 8 {
            let mut damaged = datagram.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(&damaged, &mut ignored), None, "bit {bit}");
        }
        assert_eq!(ignored.forged, datagram.len() as u64 * 8);
        for length in 0..datagram.len() {
            assert_eq!(opener.open(&datagram[..length], &mut ignored), None, "{length} bytes");
        }
        assert!(opener.open(&datagram, &mut ignored).is_some(), "none of them has moved the window");
    }

    #[test]
    fn the_window_is_a_set_of_the_last_1024_numbers() {
        let (mut window, mut received, mut highest) = (Window::new(), BTreeSet::new(), None);
        let mut state = 7_u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let base = highest.unwrap_or(0_u64);
            let number = match state >> 60 {
                0 => base + (state >> 20) % 3000,
                1..4 => base.saturating_sub((state >> 20) % 2000),
                _ => base + 1,
            };
            let old = highest.is_some_and(|highest| number + 1024 <= highest);
            let new = !old && !received.contains(&number);
            assert_eq!(window.is_new(number), new, "{number} after {highest:?}");
            if new {
                window.insert(number);
                received.insert(number);
                highest = highest.max(Some(number));
            }
        }
        assert!(!Window::new().is_new(u64::MAX));
    }

    #[test]
    fn a_million_forged_replayed_or_oversized_datagrams_change_nothing() {
        let (mut sealer, mut opener) = pair();
        let mut ignored = Ignored::default();
        let valid: Vec<_> = (0..500_u16).map(|number| seal(&mut sealer, &number.to_be_bytes())).collect();
        valid.iter().for_each(|datagram| assert!(opener.open(datagram, &mut ignored).is_some()));
        let mut state = 1_u64;
        let long = vec![0x80; 1501];
        for round in 0..1_000_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let datagram = &valid[(state >> 33) as usize % valid.len()];
            let opened = match round % 4 {
                0 => opener.open(datagram, &mut ignored).is_some(),
                1 => opener.open(&long, &mut ignored).is_some(),
                2 => {
                    let mut forged = datagram.clone();
                    // a future number with the tag of another one
                    forged[2..10].copy_from_slice(&(500 + (state >> 40)).to_be_bytes());
                    opener.open(&forged, &mut ignored).is_some()
                }
                _ => opener.open(&state.to_be_bytes(), &mut ignored).is_some(),
            };
            assert!(!opened, "round {round}");
        }
        let quarter = 250_000;
        let expected = Ignored {
            forged: quarter,
            replayed: quarter,
            oversized: quarter,
            malformed: quarter,
            ..Ignored::default()
        };
        assert_eq!(ignored, expected);
        assert!(opener.open(&seal(&mut sealer, b"next"), &mut ignored).is_some());
    }
}
