//! Fuzzes recorded networks: tables with a header line.
#![no_main]

#[path = "../src/traces.rs"]
mod traces;

use tidegate_sim::link::trace::Format;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    traces::check(&[Format::Raca, Format::Lumos, Format::Csv], input);
});
