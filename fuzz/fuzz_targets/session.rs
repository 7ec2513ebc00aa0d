//! Fuzzes what a session reads from the network: handshake messages behind a tag that is right, as a holder of the key
//! could send them, and as they are; control messages; sealed datagrams.
#![no_main]

#[path = "../src/session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(|input: &[u8]| session::check(input));
