//! Fuzzes recorded networks: tables with a header line.
#![no_main]

#[path = "../src/traces.rs"]
mod traces;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    traces::check(&traces::TABLES, input);
});
