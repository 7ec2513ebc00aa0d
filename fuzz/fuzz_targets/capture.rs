//! Fuzzes captures of calls, and what becomes of them: of one place and of two.
#![no_main]

#[path = "../src/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|input: &[u8]| recordings::capture(input));
