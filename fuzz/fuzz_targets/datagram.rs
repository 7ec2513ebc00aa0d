//! Fuzzes IP packets: any bytes decode to a datagram or an error, and a decoded datagram can be encoded and decoded
//! again. The first byte chooses how the rest becomes a packet: as it is, or behind headers with correct lengths and
//! checksums, so that fuzzing gets past them at once.
#![no_main]

#[path = "../src/datagram.rs"]
mod datagram;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    datagram::check(input);
});
