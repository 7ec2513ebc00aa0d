//! Fuzzes whole RTCP datagrams.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = tidegate_fuzz::Target::Rtcp.check(input);
});
