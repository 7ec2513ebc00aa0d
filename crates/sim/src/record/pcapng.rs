//! A capture file of the RTP and RTCP of a run, for Wireshark and tshark.
//!
//! pcapng (draft-ietf-opsawg-pcapng) with raw IPv4 packets (LINKTYPE_RAW) and nanosecond timestamps.
//! Each flow has two hosts, 10.x.y.1 (media sender) and 10.x.y.2 with x.y the flow's number; RTP uses
//! UDP port 5004, RTCP 5005 (RFC 3551 section 8). What a packet carries beyond its headers is zeros.

use super::{Captured, Recording};

const RTP_PORT: u16 = 5004;
const RTCP_PORT: u16 = 5005;
const LINKTYPE_RAW: u16 = 101;

impl Recording {
    /// The capture file; without a packet unless the run was recorded with a capture.
    #[must_use]
    pub fn pcapng(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(self.captured().iter().map(|p| p.bytes.len() + 72).sum::<usize>() + 128);
        section_header(&mut out);
        interface(&mut out);
        let mut media_routes = vec![None; self.flows.len()];
        for packet in self.captured().iter().filter(|packet| !packet.rtcp) {
            media_routes[packet.flow.0 as usize].get_or_insert(packet.route);
        }
        for packet in self.captured() {
            let media_route = media_routes[packet.flow.0 as usize];
            let from_sender = !packet.rtcp || media_route == Some(packet.route);
            enhanced_packet(&mut out, packet, from_sender);
        }
        out
    }
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let padding = body.len().wrapping_neg() % 4;
    let length = (12 + body.len() + padding) as u32;
    out.extend(kind.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
    out.extend(std::iter::repeat_n(0, padding));
    out.extend(length.to_le_bytes());
}

fn section_header(out: &mut Vec<u8>) {
    let mut body = Vec::new();
    body.extend(0x1a2b_3c4d_u32.to_le_bytes());
    body.extend(1u16.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    // the section's length is not given
    body.extend(u64::MAX.to_le_bytes());
    block(out, 0x0a0d_0d0a, &body);
}

fn interface(out: &mut Vec<u8>) {
    let mut body = Vec::new();
    body.extend(LINKTYPE_RAW.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    // no snapshot limit
    body.extend(0u32.to_le_bytes());
    // if_tsresol: without it readers take nanoseconds for microseconds
    body.extend(9u16.to_le_bytes());
    body.extend(1u16.to_le_bytes());
    body.extend([9, 0, 0, 0]);
    // end of options
    body.extend([0; 4]);
    block(out, 1, &body);
}

fn enhanced_packet(out: &mut Vec<u8>, packet: &Captured, from_sender: bool) {
    let datagram = datagram(packet, from_sender);
    let stamp = packet.at.as_nanos() as u64;
    let mut body = Vec::with_capacity(20 + datagram.len());
    body.extend(0u32.to_le_bytes());
    body.extend(((stamp >> 32) as u32).to_le_bytes());
    body.extend((stamp as u32).to_le_bytes());
    body.extend((datagram.len() as u32).to_le_bytes());
    body.extend((datagram.len() as u32).to_le_bytes());
    body.extend(datagram);
    block(out, 6, &body);
}

/// The packet with its IPv4 and UDP headers.
fn datagram(packet: &Captured, from_sender: bool) -> Vec<u8> {
    let udp_length = (8 + packet.bytes.len()) as u16;
    let flow = packet.flow.0.to_be_bytes();
    let host = |number: u8| [10, flow[2], flow[3], number];
    let (source, destination) = if from_sender { (host(1), host(2)) } else { (host(2), host(1)) };
    let mut ip = Vec::with_capacity(28 + packet.bytes.len());
    ip.extend([0x45, packet.ecn as u8]);
    ip.extend((20 + udp_length).to_be_bytes());
    // identification 0 and "don't fragment" (RFC 6864: atomic datagrams need no identification)
    ip.extend([0, 0, 0x40, 0]);
    ip.extend([64, 17, 0, 0]);
    ip.extend(source);
    ip.extend(destination);
    let checksum = checksum(&ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let port = if packet.rtcp { RTCP_PORT } else { RTP_PORT };
    ip.extend(port.to_be_bytes());
    ip.extend(port.to_be_bytes());
    ip.extend(udp_length.to_be_bytes());
    // checksum 0: not computed (RFC 768)
    ip.extend([0, 0]);
    ip.extend(&packet.bytes);
    ip
}

/// The Internet checksum (RFC 1071) of a header of even length.
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Ecn, FlowId, Time};

    #[test]
    fn the_checksum_of_rfc_1071() {
        // section 3 of the RFC: the sum of these words is ddf2
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn blocks_are_closed_and_a_header_checks_out() {
        let packet = Captured {
            at: Time::from_secs(5),
            flow: FlowId(258),
            rtcp: true,
            route: 0,
            ecn: Ecn::Ect1,
            bytes: vec![1, 2, 3],
        };
        let ip = datagram(&packet, false);
        assert_eq!(ip.len(), 31);
        assert_eq!(ip[12..20], [10, 1, 2, 2, 10, 1, 2, 1]);
        assert_eq!(ip[1], 1, "ECT(1) in the lower bits of the second byte (RFC 3168 section 5)");
        assert_eq!(checksum(&ip[..20]), 0, "a right header sums to zero");
        let mut out = Vec::new();
        enhanced_packet(&mut out, &packet, false);
        assert_eq!(out.len() % 4, 0);
        assert_eq!(out[4..8], (out.len() as u32).to_le_bytes());
        assert_eq!(out[out.len() - 4..], (out.len() as u32).to_le_bytes());
    }
}
