//! Fuzzes RTC event logs, of one end of a call and of both, and their import.
#![no_main]

#[path = "../src/recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    recordings::event_log(input);
});
