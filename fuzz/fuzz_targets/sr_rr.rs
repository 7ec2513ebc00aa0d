//! Fuzzes sender and receiver reports.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = tidegate_fuzz::Target::SrRr.check(input);
});
