//! Reproducible mutations of given inputs, with which ordinary tests call the functions of the fuzz targets.

use std::path::Path;

/// Number of mutations in a test.
pub const COUNT: usize = 1000;
/// Largest size of an input in bytes.
const LENGTH_MAX: usize = 8192;

/// Calls `check` with each seed, and with [`COUNT`] mutations of them.
///
/// # Panics
/// When there are no seeds, or `check` panics.
pub fn each(seeds: &[Vec<u8>], mut check: impl FnMut(&[u8])) {
    assert!(!seeds.is_empty(), "there are seeds");
    seeds.iter().for_each(|seed| check(seed));
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    for number in 0..COUNT {
        let mut input = seeds[number % seeds.len()].clone();
        for _ in 0..=rng.below(4) {
            mutate(&mut input, seeds, &mut rng);
        }
        input.truncate(LENGTH_MAX);
        check(&input);
    }
}

/// The corpus of a fuzz target, in order of file names.
///
/// # Panics
/// When a file cannot be read.
#[allow(clippy::disallowed_methods, reason = "a test reads its inputs")]
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("can be listed").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("can be read")).collect()
}

/// Inputs of arbitrary bytes, for targets that take any.
pub fn arbitrary() -> Vec<Vec<u8>> {
    let mut rng = Rng(7);
    (0..=255u8)
        .map(|first| {
            let length = rng.below(200);
            std::iter::once(first).chain((0..length).map(|_| rng.byte())).collect()
        })
        .collect()
}

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut Rng) {
    let start = rng.below(input.len() + 1);
    let until = (start + 1 + rng.below(16)).min(input.len());
    match rng.below(7) {
        0 if start < input.len() => input[start] ^= 1 << rng.below(8),
        1 if start < input.len() => input[start] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'-'][rng.below(8)],
        // an integer of four bytes at its ends
        2 if start + 4 <= input.len() => {
            let value = [0, 1, u32::MAX, i32::MAX as u32, 1 << 31, u32::from(u16::MAX)][rng.below(6)];
            input[start..start + 4].copy_from_slice(&value.to_be_bytes());
        }
        3 => {
            let more: Vec<u8> = (0..rng.below(9)).map(|_| rng.byte()).collect();
            input.splice(start..start, more);
        }
        4 if start < until => drop(input.drain(start..until)),
        5 if start < until => {
            let again = input[start..until].to_vec();
            input.splice(start..start, again);
        }
        _ => {
            let donor = &seeds[rng.below(seeds.len())];
            let from = rng.below(donor.len() + 1);
            input.truncate(start);
            input.extend(&donor[from..]);
        }
    }
}

/// Pseudo-random numbers (xorshift64*): the same on every machine.
struct Rng(u64);

impl Rng {
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
