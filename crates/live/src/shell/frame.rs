//! What of an Ethernet frame matters to the model and to the record: IPv4, ports, and the header of RTP.

use super::Side;
use std::net::Ipv4Addr;
use tidegate_core::Ecn;

/// Destination, source, type (IEEE 802.3).
const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// RFC 791 section 3.1: without options.
const IP: usize = 20;
const UDP: u8 = 17;
const TCP: u8 = 6;
/// RFC 3550 section 5.1: the fixed header.
const RTP: usize = 12;

/// Which flow: the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    /// The protocol's number in the IP header.
    pub protocol: u8,
    /// The address at side A.
    pub address_a: Ipv4Addr,
    /// The port there; 0 where there are no ports, and of fragments but the first.
    pub port_a: u16,
    /// The address at side B.
    pub address_b: Ipv4Addr,
    /// The port there.
    pub port_b: u16,
}

/// The header of an RTP packet, which SRTP (RFC 3711 section 3.1) leaves readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp {
    /// The stream.
    pub ssrc: u32,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp.
    pub timestamp: u32,
    /// Payload type.
    pub payload_type: u8,
    /// Marker.
    pub marker: bool,
}

/// What is read of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of the IP packet: what a link counts.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its flow.
    pub tuple: Tuple,
    /// Its RTP header, if its payload is one.
    pub rtp: Option<Rtp>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

impl Frame {
    /// Reads a frame that `from` has sent; `None` if it is no whole IPv4 packet.
    #[must_use]
    pub fn read(bytes: &[u8], from: Side) -> Option<Self> {
        let ip = bytes.get(ETHERNET..).filter(|ip| ip.len() >= IP && bytes[12..14] == ETHERTYPE_IPV4)?;
        let (version, header) = (ip[0] >> 4, usize::from(ip[0] & 0x0f) * 4);
        let size = usize::from(u16_at(ip, 2));
        // a short packet is padded to the least size of a frame: the IP header says how long it is
        if version != 4 || header < IP || size < header || size > ip.len() {
            return None;
        }
        let protocol = ip[9];
        let later_fragment = u16_at(ip, 6) & 0x1fff != 0;
        let above = &ip[header..size];
        let ports = matches!(protocol, UDP | TCP) && !later_fragment && above.len() >= 4;
        let (source, target) = if ports { (u16_at(above, 0), u16_at(above, 2)) } else { (0, 0) };
        let [here, there] = [12, 16].map(|at| Ipv4Addr::from_bits(u32_at(ip, at)));
        let tuple = match from {
            Side::A => Tuple { protocol, address_a: here, port_a: source, address_b: there, port_b: target },
            Side::B => Tuple { protocol, address_a: there, port_a: target, address_b: here, port_b: source },
        };
        let rtp = (ports && protocol == UDP).then(|| above.get(8..)).flatten().and_then(rtp);
        Some(Self { size: size as u32, ecn: Ecn::from_bits(ip[1]), tuple, rtp })
    }
}

/// The header of an RTP packet. RFC 7983 section 7: 128 to 191 as the first byte is RTP or RTCP; RFC 5761 section 4:
/// RTCP has 192 to 223 as the second.
fn rtp(payload: &[u8]) -> Option<Rtp> {
    let fixed = payload.get(..RTP)?;
    if fixed[0] >> 6 != 2 || (192..=223).contains(&fixed[1]) {
        return None;
    }
    Some(Rtp {
        ssrc: u32_at(fixed, 8),
        sequence: u16_at(fixed, 2),
        timestamp: u32_at(fixed, 4),
        payload_type: fixed[1] & 0x7f,
        marker: fixed[1] & 0x80 != 0,
    })
}

/// Puts a congestion mark (RFC 3168) into the IP header of a frame that [`Frame::read`] could read, and corrects its
/// checksum (RFC 1624 section 3: HC' = ~(~HC + ~m + m')).
pub fn mark(bytes: &mut [u8]) {
    let Some(ip) = bytes.get_mut(ETHERNET..ETHERNET + IP) else { return };
    let before = u16_at(ip, 0);
    ip[1] |= Ecn::Ce as u8;
    let sum = u32::from(!u16_at(ip, 10)) + u32::from(!before) + u32::from(u16_at(ip, 0));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An Ethernet frame with a UDP packet that bears `payload`.
    pub(crate) fn udp(ports: (u16, u16), tos: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend(ETHERTYPE_IPV4);
        let size = (IP + 8 + payload.len()) as u16;
        bytes.extend([0x45, tos]);
        bytes.extend(size.to_be_bytes());
        bytes.extend([0, 7, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = !checksum(&bytes[ETHERNET..]);
        bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(ports.0.to_be_bytes());
        bytes.extend(ports.1.to_be_bytes());
        bytes.extend((8 + payload.len() as u16).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }

    /// RFC 1071: the sum that is all ones over a right header.
    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 = header.chunks(2).map(|two| u32::from(u16_at(two, 0))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_flow_is_the_same_from_both_sides_and_padding_does_not_count() {
        let mut there = udp((5004, 6000), 0b10, b"x");
        there.resize(60, 0);
        let there = Frame::read(&there, Side::A).unwrap();
        let mut back = udp((6000, 5004), 0, b"hello");
        back[26..34].rotate_left(4);
        let back = Frame::read(&back, Side::B).unwrap();
        let [address_a, address_b] = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
        assert_eq!(there.tuple, Tuple { protocol: 17, address_a, port_a: 5004, address_b, port_b: 6000 });
        assert_eq!(there.tuple, back.tuple);
        assert_eq!((there.size, there.ecn, there.rtp), (29, Ecn::Ect0, None));
        assert_eq!((back.size, back.ecn), (33, Ecn::NotEct));
    }

    #[test]
    fn rtp_is_read_and_rtcp_is_none() {
        let mut packet = vec![0x80, 0x80 | 96, 0x12, 0x34, 0, 0, 1, 0, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3];
        let read = |packet: &[u8]| Frame::read(&udp((1, 2), 0, packet), Side::A).unwrap().rtp;
        let expected =
            Rtp { ssrc: 0xdead_beef, sequence: 0x1234, timestamp: 256, payload_type: 96, marker: true };
        assert_eq!(read(&packet), Some(expected));
        packet[1] = 205; // RTPFB
        assert_eq!(read(&packet), None);
        packet[1] = 96;
        packet[0] = 0; // STUN
        assert_eq!(read(&packet), None);
        assert_eq!(read(&[0x80, 96, 0]), None);
    }

    #[test]
    fn what_is_no_whole_ipv4_packet_is_none_and_a_later_fragment_has_no_ports() {
        let whole = udp((7, 8), 0, &[9; 100]);
        for cut in 0..whole.len() {
            assert_eq!(Frame::read(&whole[..cut], Side::A), None, "{cut}");
        }
        let mut arp = whole.clone();
        arp[13] = 0x06;
        assert_eq!(Frame::read(&arp, Side::A), None);
        let mut fragment = whole;
        fragment[ETHERNET + 7] = 3;
        assert_eq!(Frame::read(&fragment, Side::A).unwrap().tuple.port_a, 0);
    }

    #[test]
    fn a_mark_leaves_a_right_checksum() {
        for tos in [0b00, 0b01, 0b10, 0b11, 0xb8, 0xfe] {
            let mut frame = udp((7, 8), tos, &[9; 10]);
            mark(&mut frame);
            assert_eq!(frame[ETHERNET + 1], tos | 0b11);
            assert_eq!(checksum(&frame[ETHERNET..ETHERNET + IP]), 0xffff, "{tos}");
        }
    }
}
