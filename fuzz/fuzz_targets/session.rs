//! Fuzzes the input of a session from the network: handshake messages as they are and with a correct tag, as an owner
//! of the key could send them; control messages; sealed datagrams.
#![no_main]

#[path = "../src/json.rs"]
#[allow(dead_code)]
mod json;
#[path = "../src/mutations.rs"]
#[allow(dead_code)]
mod mutations;
#[path = "../src/session.rs"]
mod session;
#[path = "../src/session_inputs.rs"]
#[allow(dead_code)]
mod session_inputs;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    session::check(input);
});
