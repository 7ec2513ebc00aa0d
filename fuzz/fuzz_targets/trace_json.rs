//! Fuzzes recorded networks in JSON.
#![no_main]

#[path = "../src/traces.rs"]
mod traces;

use tidegate_sim::link::trace::Format;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let formats = [
        Format::OpenNetLab,
        Format::PantheonPath,
        Format::PionPhases,
        Format::Sabre,
        Format::Iperf3,
        Format::DevTools,
    ];
    traces::check(&formats, input);
});
