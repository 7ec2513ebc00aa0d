//! Runs the checks of the fuzz target of sessions on a thousand mutations.
#![cfg(target_os = "linux")]

#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;
#[path = "../../../fuzz/src/session.rs"]
#[allow(unreachable_pub)]
mod session;

#[test]
fn messages_of_sessions() {
    mutations::each(&mutations::arbitrary(), session::check);
}
