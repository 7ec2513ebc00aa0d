//! What must hold of recordings of calls, whatever the bytes are: an error that says where it is, or a run whose tables can
//! be made.
#![allow(dead_code)]

use tidegate_recordings::import::{self, Imported, Wrong};
use tidegate_recordings::session::Clocks;

/// An event log of one end; and where a first byte says how long it is, one of each end.
pub fn event_log(input: &[u8]) {
    check(import::event_logs(&[input], Clocks::Own, None), input.len());
    let Some((&share, rest)) = input.split_first() else { return };
    let (near, far) = rest.split_at(rest.len() * usize::from(share) / 256);
    let clocks = if share % 2 == 0 { Clocks::Own } else { Clocks::Same };
    check(import::event_logs(&[near, far], clocks, None), input.len());
}

/// A capture of one place; and where a first byte says how long it is, one of each place.
pub fn capture(input: &[u8]) {
    check(import::captures(&[input], &[], Clocks::Own, None), input.len());
    let Some((&share, rest)) = input.split_first() else { return };
    let (near, far) = rest.split_at(rest.len() * usize::from(share) / 256);
    let clocks = if share % 2 == 0 { Clocks::Own } else { Clocks::Same };
    check(import::captures(&[near], &[far], clocks, None), input.len());
}

fn check(found: Result<Imported, Wrong>, length: usize) {
    match found {
        Err(wrong) => {
            assert!(wrong.problem.offset <= length, "{:?} in {length} bytes", wrong.problem);
            assert!(!wrong.problem.what.is_empty());
        }
        Ok(imported) => {
            assert!(imported.recorded.summary()["flows"].as_array().is_some_and(|flows| !flows.is_empty()));
            for name in imported.recorded.table_names() {
                assert!(imported.recorded.table(name).is_some(), "{name}");
            }
        }
    }
}
