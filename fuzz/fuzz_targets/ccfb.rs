//! Fuzzes RFC 8888 feedback.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = tidegate_fuzz::Target::Ccfb.check(input);
});
