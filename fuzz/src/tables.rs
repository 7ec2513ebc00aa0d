//! Checks of the tables of saved runs: an error, or columns of one length without gaps. The `parquet` crate panics on
//! some damaged files, which the extension turns into an error. So a panic passes here.

use crate::parquet::read;
use arrow_array::Array;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Checks one input; returns whether it is a table.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) -> bool {
    let file = bytes::Bytes::copy_from_slice(input);
    let Ok(Ok(batch)) = catch_unwind(AssertUnwindSafe(|| read(file))) else { return false };
    for column in batch.columns() {
        assert_eq!((column.len(), column.null_count()), (batch.num_rows(), 0));
    }
    true
}
