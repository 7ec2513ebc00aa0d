//! Fuzzes RTC event logs, and what becomes of them: a call with one end and with both.
#![no_main]

#[path = "../src/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|input: &[u8]| recordings::event_log(input));
