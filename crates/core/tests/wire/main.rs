//! The wire formats: by hand, against vectors of another implementation, against another library, and
//! against bytes that mean no good.

mod arbitrary;
mod by_hand;
#[allow(unreachable_pub, reason = "a library of its own as well")]
#[path = "../../../../fuzz/src/lib.rs"]
mod checks;
mod mutation;
mod peer;
mod twcc;
mod vectors;

use tidegate_core::wire::rtcp::{self, Packet};

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(text, 16).expect("hexadecimal digits")
    };
    digits.chunks(2).map(pair).collect()
}

fn encoded(packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    rtcp::encode(packets, &mut bytes).expect("fits");
    bytes
}

fn decoded_one(bytes: &[u8]) -> Packet {
    let mut packets = rtcp::decode(bytes).expect("well-formed");
    assert_eq!(packets.len(), 1);
    packets.remove(0)
}
