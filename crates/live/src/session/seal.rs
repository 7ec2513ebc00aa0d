//! Sealed datagrams: what is carried, a sequence number, a tag.

use super::keys::Key;
use super::{Ignored, OVERHEAD, TAG};

/// Seals what one side sends.
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

    /// Puts sequence number and tag behind what is in `datagram`; gives the number.
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

/// Opens what the other side has sealed, each datagram once.
#[derive(Debug)]
pub struct Opener {
    key: Key,
    most: usize,
    window: Window,
}

impl Opener {
    /// Takes datagrams of at most `most` bytes.
    #[must_use]
    pub const fn new(key: Key, most: usize) -> Self {
        Self { key, most, window: Window::new() }
    }

    /// What `datagram` carries, and its sequence number. `None`: it is ignored, and counted.
    pub fn open<'a>(&mut self, datagram: &'a [u8], ignored: &mut Ignored) -> Option<(u64, &'a [u8])> {
        if datagram.len() > self.most {
            ignored.oversized += 1;
            return None;
        }
        let carried = datagram.len().checked_sub(OVERHEAD).filter(|&carried| carried > 0);
        let parts = carried.and_then(|carried| {
            let (tagged, tag) = datagram.split_last_chunk::<TAG>()?;
            let number = tagged[carried..].first_chunk::<8>()?;
            Some((&datagram[..carried], u64::from_be_bytes(*number), tagged, tag))
        });
        let Some((carried, number, tagged, tag)) = parts else {
            ignored.malformed += 1;
            return None;
        };
        // before the tag, which costs more
        if !self.window.takes(number) {
            ignored.replayed += 1;
            return None;
        }
        if !self.key.verifies(tagged, tag) {
            ignored.forged += 1;
            return None;
        }
        self.window.took(number);
        Some((number, carried))
    }
}

/// Which of the last sequence numbers have come (RFC 6479 is about such windows).
#[derive(Debug)]
struct Window {
    /// One more than the highest number that has come.
    next: u64,
    /// A bit for each of the last numbers, at the number modulo the length.
    seen: [u64; Self::WORDS],
}

impl Window {
    const WORDS: usize = 16;
    /// How many numbers it reaches back: at 10 Mb/s nearly a second of disorder.
    const LEN: u64 = 64 * Self::WORDS as u64;

    const fn new() -> Self {
        Self { next: 0, seen: [0; Self::WORDS] }
    }

    const fn place(number: u64) -> (usize, u64) {
        let place = number % Self::LEN;
        ((place / 64) as usize, 1 << (place % 64))
    }

    /// Whether `number` is new.
    const fn takes(&self, number: u64) -> bool {
        if number >= self.next {
            return number < u64::MAX;
        }
        let (word, bit) = Self::place(number);
        self.next - number <= Self::LEN && self.seen[word] & bit == 0
    }

    /// Takes note of a number that is new.
    fn took(&mut self, number: u64) {
        if number >= self.next {
            if number - self.next >= Self::LEN {
                self.seen = [0; Self::WORDS];
            } else {
                for between in self.next..number {
                    let (word, bit) = Self::place(between);
                    self.seen[word] &= !bit;
                }
            }
            self.next = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
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

    fn sealed(sealer: &mut Sealer, carried: &[u8]) -> Vec<u8> {
        let mut datagram = carried.to_vec();
        sealer.seal(&mut datagram);
        datagram
    }

    #[test]
    fn what_is_sealed_is_opened_once() {
        let (mut sealer, mut opener) = pair();
        let mut ignored = Ignored::default();
        let datagrams: Vec<_> = (0..3_u8).map(|at| sealed(&mut sealer, &[at; 5])).collect();
        for at in [1, 0, 2] {
            assert_eq!(datagrams[at].len(), 5 + OVERHEAD);
            assert_eq!(
                opener.open(&datagrams[at], &mut ignored),
                Some((at as u64, [at as u8; 5].as_slice()))
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
        let datagram = sealed(&mut sealer, b"carried");
        let mut ignored = Ignored::default();
        for bit in 0..datagram.len() * 8 {
            let mut spoiled = datagram.clone();
            spoiled[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(&spoiled, &mut ignored), None, "bit {bit}");
        }
        assert_eq!(ignored.forged, datagram.len() as u64 * 8);
        for length in 0..datagram.len() {
            assert_eq!(opener.open(&datagram[..length], &mut ignored), None, "{length} bytes");
        }
        assert!(opener.open(&datagram, &mut ignored).is_some(), "none of them has moved the window");
    }

    #[test]
    fn the_window_is_a_set_of_the_last_1024_numbers() {
        let (mut window, mut seen, mut highest) = (Window::new(), BTreeSet::new(), None);
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
            let new = !old && !seen.contains(&number);
            assert_eq!(window.takes(number), new, "{number} after {highest:?}");
            if new {
                window.took(number);
                seen.insert(number);
                highest = highest.max(Some(number));
            }
        }
        assert!(!Window::new().takes(u64::MAX));
    }

    #[test]
    fn a_million_that_are_forged_replayed_or_oversized_change_nothing() {
        let (mut sealer, mut opener) = pair();
        let mut ignored = Ignored::default();
        let valid: Vec<_> = (0..500_u16).map(|at| sealed(&mut sealer, &at.to_be_bytes())).collect();
        valid.iter().for_each(|datagram| assert!(opener.open(datagram, &mut ignored).is_some()));
        let mut state = 1_u64;
        let long = vec![0x80; 1501];
        for round in 0..1_000_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let which = &valid[(state >> 33) as usize % valid.len()];
            let opened = match round % 4 {
                0 => opener.open(which, &mut ignored).is_some(),
                1 => opener.open(&long, &mut ignored).is_some(),
                2 => {
                    let mut forged = which.clone();
                    // a number that is still to come, with a tag that was for another one
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
        assert!(opener.open(&sealed(&mut sealer, b"next"), &mut ignored).is_some());
    }
}
