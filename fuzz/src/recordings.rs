//! Checks the import of recordings for any bytes: the result is an error within the file, or a run with all its tables.
#![allow(dead_code)]

use tidegate_recordings::import::{self, FileProblem, Imported};
use tidegate_recordings::session::Clocks;

/// Imports the input as an event log of one end, and also as two logs, whose share of the input the first byte gives.
pub fn event_log(input: &[u8]) {
    check(import::event_logs(&[input], Clocks::Separate, None), input.len());
    let Some((&share, rest)) = input.split_first() else { return };
    let (near, far) = rest.split_at(rest.len() * usize::from(share) / 256);
    let clocks = if share % 2 == 0 { Clocks::Separate } else { Clocks::Same };
    check(import::event_logs(&[near, far], clocks, None), input.len());
}

/// Imports the input as a capture of one point, and also as two captures, whose share of the input the first byte
/// gives.
pub fn capture(input: &[u8]) {
    check(import::captures(&[input], &[], Clocks::Separate, None), input.len());
    let Some((&share, rest)) = input.split_first() else { return };
    let (near, far) = rest.split_at(rest.len() * usize::from(share) / 256);
    let clocks = if share % 2 == 0 { Clocks::Separate } else { Clocks::Same };
    check(import::captures(&[near], &[far], clocks, None), input.len());
}

fn check(result: Result<Imported, FileProblem>, length: usize) {
    match result {
        Err(FileProblem { problem, .. }) => {
            assert!(problem.offset <= length, "{problem:?} in {length} bytes");
            assert!(!problem.message.is_empty());
        }
        Ok(imported) => {
            assert!(imported.recorded.summary()["flows"].as_array().is_some_and(|flows| !flows.is_empty()));
            for name in imported.recorded.table_names() {
                assert!(imported.recorded.table(name).is_some(), "{name}");
            }
        }
    }
}
