//! Fuzzes RFC 6679 feedback and extended reports.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = tidegate_fuzz::Target::EcnXr.check(input);
});
