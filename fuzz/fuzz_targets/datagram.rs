//! Fuzzes datagrams of RTP and RTCP: whatever they hold, reading ends in a value or an error, and what was read can be
//! written and read again.
#![no_main]

use tidegate_endpoint::datagram::{decode, encode};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(datagram) = decode(input, 28) {
        let mut bytes = Vec::new();
        encode(&datagram, 28, &mut bytes).expect("what was read can be written");
        assert_eq!(bytes.len(), input.len());
        assert_eq!(decode(&bytes, 28), Ok(datagram));
    }
});
