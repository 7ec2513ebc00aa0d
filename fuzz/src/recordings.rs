//! Checks the import of recordings for any bytes: the result is an error within the file, or a run with all its tables.
#![allow(dead_code)]

use tidegate_recordings::import::{self, FileProblem, Hints, Imported};
use tidegate_recordings::session::Clocks;

/// Imports the input as an event log of one end, and also as two logs, whose share of the input the first byte gives.
/// Returns whether it is a log.
pub fn event_log(input: &[u8]) -> bool {
    let is_log = check(import::event_logs(&[input], Clocks::Separate, None), input.len());
    let Some((&share, rest)) = input.split_first() else { return is_log };
    let (near, far) = rest.split_at(rest.len() * usize::from(share) / 256);
    check(import::event_logs(&[near, far], clocks(share), None), input.len());
    is_log
}

/// Imports the input as the event log of an end whose other end has this log; returns whether they are a call.
pub fn event_log_beside(input: &[u8], other: &[u8]) -> bool {
    check(import::event_logs(&[input, other], Clocks::Separate, None), input.len().max(other.len()))
}

/// Imports the input as a capture of one point, and also as two captures, whose share of the input the first byte
/// gives. Returns whether it is a capture of a call.
pub fn capture(input: &[u8]) -> bool {
    let is_call =
        check(import::captures(&[input], &[], Hints::default(), Clocks::Separate, None), input.len());
    let Some((&share, rest)) = input.split_first() else { return is_call };
    let (near, far) = rest.split_at(rest.len() * usize::from(share) / 256);
    is_call | check(import::captures(&[near], &[far], hints(share), clocks(share), None), input.len())
}

/// Imports the input as the capture of a point whose other point has this capture; returns whether they are a call.
pub fn capture_beside(input: &[u8], other: &[u8]) -> bool {
    check(
        import::captures(&[input], &[other], Hints::default(), Clocks::Separate, None),
        input.len().max(other.len()),
    )
}

/// Every place, and every other time an address.
fn hints(share: u8) -> Hints {
    use tidegate_recordings::capture::At;
    let at = [None, Some(At::Sender), Some(At::Receiver), Some(At::Middle)][usize::from(share) % 4];
    Hints { at, rtp: (share % 8 > 3).then(|| ([10, 0, 0, 1], 5004).into()) }
}

const fn clocks(share: u8) -> Clocks {
    if share.is_multiple_of(2) { Clocks::Separate } else { Clocks::Same }
}

fn check(result: Result<Imported, FileProblem>, length: usize) -> bool {
    match result {
        Err(FileProblem { problem, .. }) => {
            assert!(problem.offset <= length, "{problem:?} in {length} bytes");
            assert!(!problem.message.is_empty());
            false
        }
        Ok(imported) => {
            assert!(imported.recorded.summary()["flows"].as_array().is_some_and(|flows| !flows.is_empty()));
            for name in imported.recorded.table_names() {
                assert!(imported.recorded.table(name).is_some(), "{name}");
            }
            true
        }
    }
}
