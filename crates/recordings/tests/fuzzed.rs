//! Runs the checks of the fuzz targets on their corpora, and on a thousand mutations of each input.

#[path = "../../../fuzz/src/captures.rs"]
#[allow(unreachable_pub)]
mod captures;
#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;
#[path = "../../../fuzz/src/protobuf.rs"]
#[allow(unreachable_pub)]
mod protobuf;
#[path = "../../../fuzz/src/recordings.rs"]
#[allow(unreachable_pub)]
mod recordings;

use mutations::{corpus, each};

#[test]
fn event_logs() {
    let tally = each("event_log", &corpus("event_log"), Some(protobuf::change), recordings::event_log);
    assert!(tally.accepted > tally.count / 5, "{tally:?}");
}

#[test]
fn event_logs_of_both_ends() {
    let logs = corpus("event_log");
    let (receiver, sender) = (&logs[0], vec![logs[1].clone()]);
    let check = |input: &[u8]| recordings::event_log_beside(input, receiver);
    let tally = each("event_log", &sender, Some(protobuf::change), check);
    assert!(tally.accepted > tally.count / 5, "{tally:?}");
}

#[test]
fn captures() {
    let tally = each("capture", &corpus("capture"), Some(captures::change), recordings::capture);
    assert!(tally.accepted > tally.count / 5, "{tally:?}");
}

#[test]
fn captures_of_both_ends() {
    let (share, both) =
        corpus("capture")[2].split_first().map(|(&share, rest)| (share, rest.to_vec())).expect("two");
    let (near, far) = both.split_at(both.len() * usize::from(share) / 256);
    let check = |input: &[u8]| recordings::capture_beside(input, far);
    let tally = each("capture", &[near.to_vec()], Some(captures::change), check);
    assert!(tally.accepted > tally.count / 5, "{tally:?}");
}
