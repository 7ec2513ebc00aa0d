//! Fuzzes IP packets: whatever they hold, reading ends in a value or an error, and what was read can be written and read
//! again. The first byte says how the rest becomes a packet: as it is, or behind headers whose lengths and checksums are
//! right, so that no time is lost getting past them.
#![no_main]

#[path = "../src/datagram.rs"]
mod datagram;

libfuzzer_sys::fuzz_target!(|input: &[u8]| datagram::check(input));
