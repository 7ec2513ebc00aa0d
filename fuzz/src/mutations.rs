//! Reproducible mutations of given inputs, with which ordinary tests call the functions of the fuzz targets.
//!
//! `FUZZ_MUTATIONS=1000000` makes so many in place of a thousand, and says of them how many there were, how many were
//! accepted, and how long the slowest one took; `FUZZ_SEED=2` makes others.
#![allow(clippy::disallowed_types, reason = "a long run says what was slow")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Number of mutations in a test.
pub const COUNT: usize = 1000;
/// Largest size of an input in bytes.
const LENGTH_MAX: usize = 8192;

/// Time after which an input hangs, as for libFuzzer (`./run`).
const HANG: Duration = Duration::from_secs(20);

/// Changes an input in the shape of its format.
pub type Shape = fn(&mut Vec<u8>, &mut Rng);

/// What became of all mutations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Number of mutations.
    pub count: usize,
    /// Number of those that were accepted.
    pub accepted: usize,
    slowest: Duration,
}

/// Calls `check` with each seed, and with [`COUNT`] mutations of them: half by their bytes and half by `shape`, or all
/// by their bytes without one. `check` says whether the input was accepted.
///
/// # Panics
/// When there are no seeds, or `check` panics; the input is then in `found/` and a number says which one it was.
pub fn each(
    target: &str,
    seeds: &[Vec<u8>],
    shape: Option<Shape>,
    mut check: impl FnMut(&[u8]) -> bool,
) -> Tally {
    assert!(!seeds.is_empty(), "there are seeds");
    for seed in seeds {
        check(seed);
    }
    let (wanted, seed) = (setting("FUZZ_MUTATIONS"), setting("FUZZ_SEED").unwrap_or(1));
    let mut rng = Rng::new(seed as u64);
    let current = Arc::new(Mutex::new(None));
    if wanted.is_some() {
        let (target, current) = (target.to_owned(), Arc::clone(&current));
        std::thread::spawn(move || watch(&target, &current));
    }
    let mut tally = Tally { count: wanted.unwrap_or(COUNT), ..Tally::default() };
    for number in 0..tally.count {
        let mut input = seeds[number % seeds.len()].clone();
        let shape = shape.filter(|_| (number / seeds.len()).is_multiple_of(2));
        for _ in 0..=rng.below(4) {
            match shape {
                Some(shape) if rng.below(8) > 0 => shape(&mut input, &mut rng),
                _ => mutate(&mut input, seeds, &mut rng),
            }
        }
        input.truncate(LENGTH_MAX);
        let begun = now();
        if wanted.is_some() {
            *current.lock().expect("not poisoned") =
                Some((begun, format!("hangs-seed{seed}-{number}"), input.clone()));
        }
        match catch_unwind(AssertUnwindSafe(|| check(&input))) {
            Ok(accepted) => tally.accepted += usize::from(accepted),
            Err(panic) => {
                let file = keep(target, &format!("seed{seed}-{number}"), &input);
                eprintln!("{target}: mutation {number} of seed {seed}, kept in {}", file.display());
                resume_unwind(panic);
            }
        }
        let took = now() - begun;
        if wanted.is_some() && took > tally.slowest {
            tally.slowest = took;
            if took > Duration::from_millis(200) {
                keep(target, &format!("slow-seed{seed}-{number}"), &input);
            }
        }
        if wanted.is_some() && ((number + 1) * 20 % tally.count < 20 || number + 1 == tally.count) {
            let Tally { accepted, slowest, .. } = tally;
            let done = number + 1;
            eprintln!(
                "{target}: {done} mutations of seed {seed}, {accepted} accepted, the slowest {slowest:.1?}"
            );
        }
    }
    // the last one has ended: another test of this process may go on for longer
    *current.lock().expect("not poisoned") = None;
    tally
}

#[allow(clippy::disallowed_methods, reason = "a long run says what was slow")]
fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "a person chooses how many")]
fn setting(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: found {text}; expected a whole number")))
}

/// An input that is being checked: when that began, and its name.
type Current = Option<(Instant, String, Vec<u8>)>;

/// Ends the process when a check takes longer than [`HANG`].
#[allow(clippy::disallowed_methods, reason = "a long run ends where it hangs")]
fn watch(target: &str, current: &Mutex<Current>) {
    loop {
        std::thread::sleep(HANG / 4);
        if let Some((begun, name, input)) = &*current.lock().expect("not poisoned")
            && begun.elapsed() > HANG
        {
            eprintln!(
                "{target}: {name} takes over {HANG:?}, kept in {}",
                keep(target, name, input).display()
            );
            std::process::exit(1);
        }
    }
}

/// Writes an input beside what libFuzzer keeps.
fn keep(target: &str, name: &str, input: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found").join(target);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join(name);
    std::fs::write(&file, input).expect("a file can be written");
    file
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
    let mut rng = Rng::new(7);
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
pub struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        let mut rng = Self(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        rng.next();
        rng
    }

    /// 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to below `end`, and 0 for none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).expect("31 bits") % end.max(1)
    }

    /// Eight bits.
    pub fn byte(&mut self) -> u8 {
        (self.next() >> 56) as u8
    }

    /// A number that differs from `value`: one beside it, the ends of a width, or any.
    pub fn number(&mut self, value: u64) -> u64 {
        match self.below(12) {
            0 => value.wrapping_add(1),
            1 => value.wrapping_sub(1),
            2 => value.wrapping_mul(2),
            3 => value.wrapping_neg(),
            4 => value ^ 1 << self.below(64),
            5 | 6 => [0, 1, 2, 0x7f, 0x80, 0xff][self.below(6)],
            7 | 8 => {
                let bits = [7, 8, 15, 16, 31, 32, 47, 48, 62, 63, 64][self.below(11)];
                u64::MAX >> (64 - bits)
            }
            9 => 1 << self.below(64),
            10 => self.below(1000) as u64,
            _ => self.next(),
        }
    }
}
