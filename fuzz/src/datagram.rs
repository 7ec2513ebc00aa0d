//! Properties of IP packets: any bytes decode to a datagram or an error, and a decoded datagram can be encoded and
//! decoded again. The first byte chooses how the rest becomes a packet: as it is, or behind headers with correct
//! lengths and checksums, so that fuzzing gets past them at once.

use tidegate_core::address::{Direction, Hosts};
use tidegate_core::datagram::Protocol;
use tidegate_core::wire::{ip, tcp};
use tidegate_core::{Ecn, FlowId};
use tidegate_endpoint::datagram::{decode, encode};

/// The packet that `choice` makes of `rest`, if one is possible.
fn packet(choice: u8, rest: &[u8]) -> Option<Vec<u8>> {
    let direction = if choice & 4 == 0 { Direction::Forward } else { Direction::Reverse };
    let header = |protocol| ip::Header {
        hosts: Hosts::of_flow(FlowId(u32::from(choice)), direction),
        protocol,
        ecn: Ecn::from_bits(choice >> 3),
        dscp: choice >> 2,
    };
    let mut out = Vec::new();
    match choice & 3 {
        0 => out.extend(rest),
        1 => {
            out.extend(rest);
            out.get_mut(tcp::CHECKSUM..tcp::CHECKSUM + 2)?.fill(0);
            header(Protocol::Tcp).put_before(&mut out, 0, tcp::CHECKSUM).ok()?;
        }
        // mostly RTP and RTCP, sometimes a datagram with only a number or without content
        _ => {
            let port = [5004, 5004, 5004, 5004, 5004, 5004, 9, 49_153][usize::from(choice >> 5)];
            ip::put_udp((port, port), rest.len(), &mut out).ok()?;
            out.extend(rest);
            header(Protocol::Udp).put_before(&mut out, 0, ip::UDP_CHECKSUM).ok()?;
        }
    }
    Some(out)
}

/// Checks one input; returns whether it is a datagram.
///
/// # Panics
/// When a property does not hold.
pub fn check(input: &[u8]) -> bool {
    let Some((&choice, rest)) = input.split_first() else { return false };
    let Some(input) = packet(choice, rest) else { return false };
    let decoded = decode(&input, 28);
    if let Ok(datagram) = &decoded {
        let mut bytes = Vec::new();
        encode(datagram, 28, &mut bytes).expect("a decoded datagram can be encoded");
        assert_eq!(bytes.len(), input.len());
        assert_eq!(decode(&bytes, 28).as_ref(), Ok(datagram));
    }
    decoded.is_ok()
}
