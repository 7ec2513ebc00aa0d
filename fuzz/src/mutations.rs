//! Mutations of known inputs, the same ones each time: how ordinary tests call the functions that fuzz targets call.

use std::path::Path;

/// How many mutations a test tries.
pub const COUNT: usize = 1000;
/// The most bytes that an input grows to.
const LONGEST: usize = 8192;

/// Calls `check` with every seed, and with [`COUNT`] mutations of them.
///
/// # Panics
/// When there are no seeds, or `check` does.
pub fn each(seeds: &[Vec<u8>], mut check: impl FnMut(&[u8])) {
    assert!(!seeds.is_empty(), "there are seeds");
    seeds.iter().for_each(|seed| check(seed));
    let mut luck = Luck(0x9e37_79b9_7f4a_7c15);
    for number in 0..COUNT {
        let mut input = seeds[number % seeds.len()].clone();
        for _ in 0..=luck.below(4) {
            mutate(&mut input, seeds, &mut luck);
        }
        input.truncate(LONGEST);
        check(&input);
    }
}

/// The inputs that are kept for a fuzz target, in order of their names.
///
/// # Panics
/// When they cannot be read.
#[allow(clippy::disallowed_methods, reason = "a test reads its inputs")]
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("can be listed").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("can be read")).collect()
}

/// A few inputs of arbitrary bytes, for targets that take any.
pub fn arbitrary() -> Vec<Vec<u8>> {
    let mut luck = Luck(7);
    (0..=255u8)
        .map(|first| {
            let length = luck.below(200);
            std::iter::once(first).chain((0..length).map(|_| luck.byte())).collect()
        })
        .collect()
}

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], luck: &mut Luck) {
    let at = luck.below(input.len() + 1);
    let until = (at + 1 + luck.below(16)).min(input.len());
    match luck.below(7) {
        0 if at < input.len() => input[at] ^= 1 << luck.below(8),
        1 if at < input.len() => input[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'-'][luck.below(8)],
        // an integer of four bytes at its ends
        2 if at + 4 <= input.len() => {
            let value = [0, 1, u32::MAX, i32::MAX as u32, 1 << 31, u32::from(u16::MAX)][luck.below(6)];
            input[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        3 => {
            let more: Vec<u8> = (0..luck.below(9)).map(|_| luck.byte()).collect();
            input.splice(at..at, more);
        }
        4 if at < until => drop(input.drain(at..until)),
        5 if at < until => {
            let again = input[at..until].to_vec();
            input.splice(at..at, again);
        }
        _ => {
            let other = &seeds[luck.below(seeds.len())];
            let from = luck.below(other.len() + 1);
            input.truncate(at);
            input.extend(&other[from..]);
        }
    }
}

/// Pseudo-random numbers (xorshift64*): the same on every machine.
struct Luck(u64);

impl Luck {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).expect("31 bits") % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 56) as u8
    }
}
