//! What must hold of IP packets: whatever they hold, reading ends in a value or an error, and what was read can be written and
//! read again. The first byte says how the rest becomes a packet: as it is, or behind headers whose lengths and checksums
//! are right, so that no time is lost getting past them.

use tidegate_core::address::{Hosts, Way};
use tidegate_core::datagram::Protocol;
use tidegate_core::wire::{ip, tcp};
use tidegate_core::{Ecn, FlowId};
use tidegate_endpoint::datagram::{decode, encode};

/// The packet that `choice` makes of `rest`, if it can.
fn packet(choice: u8, rest: &[u8]) -> Option<Vec<u8>> {
    let way = if choice & 4 == 0 { Way::There } else { Way::Back };
    let header = |protocol| ip::Header {
        hosts: Hosts::of(FlowId(u32::from(choice)), way),
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
        // mostly RTP and RTCP, seldom a datagram whose number or nothing is read
        _ => {
            let port = [5004, 5004, 5004, 5004, 5004, 5004, 9, 49_153][usize::from(choice >> 5)];
            ip::put_udp((port, port), rest.len(), &mut out).ok()?;
            out.extend(rest);
            header(Protocol::Udp).put_before(&mut out, 0, ip::UDP_CHECKSUM).ok()?;
        }
    }
    Some(out)
}

/// Checks one input.
///
/// # Panics
/// When a property does not hold.
pub fn check(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else { return };
    let Some(input) = packet(choice, rest) else { return };
    if let Ok(datagram) = decode(&input, 28) {
        let mut bytes = Vec::new();
        encode(&datagram, 28, &mut bytes).expect("what was read can be written");
        assert_eq!(bytes.len(), input.len());
        assert_eq!(decode(&bytes, 28), Ok(datagram));
    }
}
