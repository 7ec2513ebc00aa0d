//! Fuzzes NACK, PLI, SLI and FIR.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = tidegate_fuzz::Target::NackPliFir.check(input);
});
