//! Fuzzes recorded networks: columns of numbers.
#![no_main]

#[path = "../src/traces.rs"]
mod traces;

use tidegate_sim::link::trace::Format;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let formats = [
        Format::Mahimahi,
        Format::SecondsMbps,
        Format::DataRatePattern,
        Format::MillisecondsKbps,
        Format::MmLinkLog,
        Format::ConnectivityIni,
    ];
    traces::check(&formats, input);
});
