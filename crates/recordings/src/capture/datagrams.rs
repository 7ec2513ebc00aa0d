//! Takes UDP datagrams out of link-layer frames.

use super::file::Frame;
use crate::point::Nanos;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A captured UDP datagram.
#[derive(Clone, Debug)]
pub(super) struct Udp<'a> {
    pub(super) at: Nanos,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Size of the IP packet in bytes.
    pub(super) size: u32,
    /// Time to live, or hop limit.
    pub(super) hops: u8,
    /// Its payload, as much of it as was captured.
    pub(super) payload: &'a [u8],
}

fn word(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(offset)?, *bytes.get(offset + 1)?]))
}

/// The IP packet in a frame; `None` if it has none, or its link type is not supported.
fn ip<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
    let is_ip = |kind: u16| matches!(kind, 0x0800 | 0x86dd);
    let bytes = frame.bytes;
    match frame.link {
        // BSD loopback, in the byte order of the host or of the network
        0 | 108 => bytes.get(4..),
        1 => {
            let mut offset = 12;
            // IEEE 802.1Q and 802.1ad
            while matches!(word(bytes, offset)?, 0x8100 | 0x88a8) {
                offset += 4;
            }
            is_ip(word(bytes, offset)?).then(|| bytes.get(offset + 2..))?
        }
        12 | 14 | 101 | 228 | 229 => Some(bytes),
        // Linux "any" interface, versions 1 and 2
        113 => is_ip(word(bytes, 14)?).then(|| bytes.get(16..))?,
        276 => is_ip(word(bytes, 0)?).then(|| bytes.get(20..))?,
        _ => None,
    }
}

/// The supported link types (LINKTYPE_*).
pub(super) const LINKS: [u32; 10] = [0, 1, 12, 14, 101, 108, 113, 228, 229, 276];

/// The UDP datagram in a frame; `None` for fragments and other protocols.
pub(super) fn datagram<'a>(frame: &Frame<'a>) -> Option<Udp<'a>> {
    const UDP: u8 = 17;
    let ip = ip(frame)?;
    let link_header = frame.bytes.len() - ip.len();
    let (from, to, size, hops, udp): (IpAddr, IpAddr, usize, u8, usize) = match ip.first()? >> 4 {
        4 => {
            let header = usize::from(ip[0] & 0x0f) * 4;
            // fragments have no ports, and only the first one has a header
            if header < 20 || *ip.get(9)? != UDP || word(ip, 6)? & 0x3fff != 0 {
                return None;
            }
            let address = |offset: usize| -> Option<IpAddr> {
                Some(Ipv4Addr::from(*ip.get(offset..offset + 4)?.first_chunk::<4>()?).into())
            };
            (address(12)?, address(16)?, usize::from(word(ip, 2)?), *ip.get(8)?, header)
        }
        6 => {
            let address = |offset: usize| -> Option<IpAddr> {
                Some(Ipv6Addr::from(*ip.get(offset..offset + 16)?.first_chunk::<16>()?).into())
            };
            let (mut next_header, mut offset) = (*ip.get(6)?, 40);
            // hop-by-hop options, routing, destination options (RFC 8200 section 4)
            while matches!(next_header, 0 | 43 | 60) {
                let length = usize::from(*ip.get(offset + 1)?) * 8 + 8;
                next_header = *ip.get(offset)?;
                offset += length;
            }
            if next_header != UDP {
                return None;
            }
            (address(8)?, address(24)?, 40 + usize::from(word(ip, 4)?), *ip.get(7)?, offset)
        }
        _ => return None,
    };
    let ports = (word(ip, udp)?, word(ip, udp + 2)?);
    let end = udp.checked_add(usize::from(word(ip, udp + 4)?))?.min(ip.len());
    // packets that the network adapter is to segment have no length in the IP header yet
    let on_link = (frame.length as usize).saturating_sub(link_header);
    let size = if size == 0 { on_link } else { size };
    Some(Udp {
        at: frame.at,
        from: SocketAddr::new(from, ports.0),
        to: SocketAddr::new(to, ports.1),
        size: size.min(usize::from(u16::MAX)) as u32,
        hops,
        payload: ip.get(udp + 8..end)?,
    })
}
