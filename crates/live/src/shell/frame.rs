//! Reads the fields of an Ethernet frame that the model and the record need: IPv4, ports, and the RTP header.

use super::Side;
use std::net::Ipv4Addr;
use tidegate_core::Ecn;

/// Length of the Ethernet header: destination, source, type (IEEE 802.3).
const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// Length of the IPv4 header without options (RFC 791 section 3.1).
const IP: usize = 20;
const UDP: u8 = 17;
const TCP: u8 = 6;
/// Length of the fixed RTP header (RFC 3550 section 5.1).
const RTP: usize = 12;

/// The 5-tuple of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    /// Protocol number in the IP header.
    pub protocol: u8,
    /// Address of side A.
    pub address_a: Ipv4Addr,
    /// Port of side A; 0 if the protocol has no ports, and for fragments other than the first.
    pub port_a: u16,
    /// Address of side B.
    pub address_b: Ipv4Addr,
    /// Port of side B.
    pub port_b: u16,
}

/// The header of an RTP packet, which SRTP (RFC 3711 section 3.1) leaves readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp {
    /// SSRC of the stream.
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

/// Fields of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Size of the IP packet in bytes, which links count.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its flow.
    pub tuple: Tuple,
    /// Its RTP header, if its payload is RTP.
    pub rtp: Option<Rtp>,
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..offset + 2).map_or(0, |pair| u16::from_be_bytes([pair[0], pair[1]]))
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from(u16_at(bytes, offset)) << 16 | u32::from(u16_at(bytes, offset + 2))
}

impl Frame {
    /// Parses a frame that `from` has sent; `None` if it is no complete IPv4 packet.
    #[must_use]
    pub fn parse(bytes: &[u8], from: Side) -> Option<Self> {
        let ip = bytes.get(ETHERNET..).filter(|ip| ip.len() >= IP && bytes[12..14] == ETHERTYPE_IPV4)?;
        let (version, header) = (ip[0] >> 4, usize::from(ip[0] & 0x0f) * 4);
        let size = usize::from(u16_at(ip, 2));
        // a short packet is padded to the minimum size of a frame: its length is in the IP header
        if version != 4 || header < IP || size < header || size > ip.len() {
            return None;
        }
        let protocol = ip[9];
        let later_fragment = u16_at(ip, 6) & 0x1fff != 0;
        let payload = &ip[header..size];
        let ports = matches!(protocol, UDP | TCP) && !later_fragment && payload.len() >= 4;
        let (source, target) = if ports { (u16_at(payload, 0), u16_at(payload, 2)) } else { (0, 0) };
        let [sender, receiver] = [12, 16].map(|offset| Ipv4Addr::from_bits(u32_at(ip, offset)));
        let tuple = match from {
            Side::A => {
                Tuple { protocol, address_a: sender, port_a: source, address_b: receiver, port_b: target }
            }
            Side::B => {
                Tuple { protocol, address_a: receiver, port_a: target, address_b: sender, port_b: source }
            }
        };
        let rtp = (ports && protocol == UDP).then(|| payload.get(8..)).flatten().and_then(rtp);
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

/// Puts a congestion mark (RFC 3168) into the IP header of a frame that [`Frame::parse`] can parse, and corrects its
/// checksum (RFC 1624 section 3: HC' = ~(~HC + ~m + m')).
pub fn mark(bytes: &mut [u8]) {
    let Some(ip) = bytes.get_mut(ETHERNET..ETHERNET + IP) else { return };
    let old_word = u16_at(ip, 0);
    ip[1] |= Ecn::Ce as u8;
    let sum = u32::from(!u16_at(ip, 10)) + u32::from(!old_word) + u32::from(u16_at(ip, 0));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An Ethernet frame with a UDP packet.
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

    /// The sum of RFC 1071, which is all ones for a header with a correct checksum.
    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 = header.chunks(2).map(|pair| u32::from(u16_at(pair, 0))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_flow_is_the_same_from_both_sides_and_padding_does_not_count() {
        let mut from_a = udp((5004, 6000), 0b10, b"x");
        from_a.resize(60, 0);
        let from_a = Frame::parse(&from_a, Side::A).unwrap();
        let mut from_b = udp((6000, 5004), 0, b"hello");
        from_b[26..34].rotate_left(4);
        let from_b = Frame::parse(&from_b, Side::B).unwrap();
        let [address_a, address_b] = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
        assert_eq!(from_a.tuple, Tuple { protocol: 17, address_a, port_a: 5004, address_b, port_b: 6000 });
        assert_eq!(from_a.tuple, from_b.tuple);
        assert_eq!((from_a.size, from_a.ecn, from_a.rtp), (29, Ecn::Ect0, None));
        assert_eq!((from_b.size, from_b.ecn), (33, Ecn::NotEct));
    }

    #[test]
    fn rtp_is_read_and_rtcp_is_none() {
        let mut packet = vec![0x80, 0x80 | 96, 0x12, 0x34, 0, 0, 1, 0, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3];
        let parse_rtp = |packet: &[u8]| Frame::parse(&udp((1, 2), 0, packet), Side::A).unwrap().rtp;
        let expected =
            Rtp { ssrc: 0xdead_beef, sequence: 0x1234, timestamp: 256, payload_type: 96, marker: true };
        assert_eq!(parse_rtp(&packet), Some(expected));
        packet[1] = 205; // RTPFB
        assert_eq!(parse_rtp(&packet), None);
        packet[1] = 96;
        packet[0] = 0; // STUN
        assert_eq!(parse_rtp(&packet), None);
        assert_eq!(parse_rtp(&[0x80, 96, 0]), None);
    }

    #[test]
    fn incomplete_ipv4_packets_are_none_and_a_later_fragment_has_no_ports() {
        let complete = udp((7, 8), 0, &[9; 100]);
        for cut in 0..complete.len() {
            assert_eq!(Frame::parse(&complete[..cut], Side::A), None, "{cut}");
        }
        let mut arp = complete.clone();
        arp[13] = 0x06;
        assert_eq!(Frame::parse(&arp, Side::A), None);
        let mut fragment = complete;
        fragment[ETHERNET + 7] = 3;
        assert_eq!(Frame::parse(&fragment, Side::A).unwrap().tuple.port_a, 0);
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
