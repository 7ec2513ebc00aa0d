//! Fuzzes SDES, BYE and APP.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = tidegate_fuzz::Target::SdesByeApp.check(input);
});
