//! Fuzzes the tables of saved runs. The `parquet` crate panics on some damaged files, which the extension turns into an
//! error. So a panic passes here; memory, time and the tables are checked.
#![no_main]

#[path = "../../crates/python/src/parquet.rs"]
#[allow(dead_code)]
mod table;

use arrow_array::Array;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // replaces the hook that ends the process
    QUIET.call_once(|| set_hook(Box::new(|_| {})));
    let file = bytes::Bytes::copy_from_slice(input);
    let Ok(Ok(batch)) = catch_unwind(AssertUnwindSafe(|| table::read(file))) else { return };
    let complete =
        batch.columns().iter().all(|column| column.len() == batch.num_rows() && column.null_count() == 0);
    if !complete {
        std::process::abort();
    }
});
