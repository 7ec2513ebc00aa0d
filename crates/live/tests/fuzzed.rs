//! Runs the checks of the fuzz target of sessions on a thousand mutations.
#![cfg(target_os = "linux")]

#[path = "../../../fuzz/src/json.rs"]
#[allow(unreachable_pub)]
mod json;
#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;
#[path = "../../../fuzz/src/session.rs"]
#[allow(unreachable_pub)]
mod session;
#[path = "../../../fuzz/src/session_inputs.rs"]
#[allow(unreachable_pub)]
mod session_inputs;

#[test]
fn messages_of_sessions() {
    let tally =
        mutations::each("session", &session_inputs::inputs(), Some(session_inputs::change), session::check);
    assert!(tally.accepted > tally.count / 5, "{tally:?}");
}

#[test]
fn bytes_of_sessions() {
    mutations::each("session", &mutations::arbitrary(), None, session::check);
}
