//! Fuzzes the tables of saved runs.
#![no_main]

#[path = "../../crates/python/src/parquet.rs"]
#[allow(dead_code)]
mod parquet;
#[path = "../src/tables.rs"]
mod tables;

use std::panic::{catch_unwind, set_hook};
use std::sync::Once;

static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // replaces the hook that ends the process, because a panic of the `parquet` crate passes
    QUIET.call_once(|| set_hook(Box::new(|_| {})));
    if catch_unwind(|| tables::check(input)).is_err() {
        std::process::abort();
    }
});
