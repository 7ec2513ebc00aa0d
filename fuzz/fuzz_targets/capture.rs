//! Fuzzes captures of calls, of one place and of two, and their import.
#![no_main]

#[path = "../src/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    recordings::capture(input);
});
