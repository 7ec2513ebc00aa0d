//! Fuzzes the engine's form of runs: any JSON is refused, or makes a world in which time passes.
#![no_main]

#[path = "../src/scenario.rs"]
mod scenario;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    scenario::check(input);
});
