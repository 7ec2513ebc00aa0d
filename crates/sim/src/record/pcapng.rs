//! Capture files of a run, for Wireshark and tshark: one for each side of its flows.
//!
//! pcapng (draft-ietf-opsawg-pcapng) with raw IPv4 packets (LINKTYPE_RAW) and nanosecond timestamps. Each end is an
//! interface with the name of its node, and each packet says whether it came in there or left.
//! Each flow has two hosts, 10.x.y.1 (its sender) and 10.x.y.2 with x.y the flow's number; RTP uses
//! UDP port 5004, RTCP 5005 (RFC 3551 section 8). What a packet carries beyond its headers is zeros.
//! An interface of its own has what was on no network: an announcement (SAP) of each flow of RTP, because readers know
//! neither RTP nor its clocks without a session description, and compute no jitter then.

use super::Recording;
use super::capture::{Captured, Side};

use std::collections::BTreeMap;
use tidegate_core::record::Passing;
use tidegate_core::{FlowId, Kind, Time};
use tidegate_endpoint::{AUDIO_CLOCK, VIDEO_CLOCK, datagram};

const RTP_PORT: u16 = 5004;
const RTCP_PORT: u16 = 5005;
/// RFC 2974 section 3.
const SAP_PORT: u16 = 9875;
const LINKTYPE_RAW: u16 = 101;
// section 3.5 of the draft, and 3.5.1 and 4.2 for interfaces and packets
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

impl Recording {
    /// The capture file of one side; without a packet unless the run was recorded with a capture.
    ///
    /// # Errors
    /// When the fields of a packet do not fit it.
    pub fn pcapng(&self, side: Side) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        section_header(&mut out);
        interface(&mut out, "announcements");
        let mut interfaces = 1;
        let mut number_of = vec![None; self.node_names.len()];
        for (packet, _) in self.seen(side) {
            let node = packet.node.0 as usize;
            if number_of[node].is_none() {
                number_of[node] = Some(interfaces);
                interfaces += 1;
                interface(&mut out, &self.node_names[node]);
            }
        }
        for (flow, announcement) in self.announcements(side) {
            let packet = udp(flow, true, 0, SAP_PORT, &announcement);
            enhanced_packet(&mut out, Time::ZERO, 0, Passing::Out, &packet);
        }
        for (packet, from_sender) in self.seen(side) {
            if packet.kind.is_rtp() || packet.kind == Kind::Rtcp {
                let overhead = self.flows[packet.flow.0 as usize].overhead;
                let bytes = ip_packet(packet, overhead, from_sender)?;
                let interface = number_of[packet.node.0 as usize].unwrap_or(0);
                enhanced_packet(&mut out, packet.at, interface, packet.passing, &bytes);
            }
        }
        Ok(out)
    }

    /// For each flow of RTP its announcement (RFC 2974 section 3) with a session description (RFC 8866) that says
    /// what its payload types are.
    fn announcements(&self, side: Side) -> Vec<(FlowId, Vec<u8>)> {
        let mut types: BTreeMap<FlowId, BTreeMap<u8, Kind>> = BTreeMap::new();
        for (packet, _) in self.seen(side) {
            if let Some(body) = packet.datagram.rtp() {
                types.entry(packet.flow).or_default().entry(body.payload_type).or_insert(packet.kind);
            }
        }
        let describe = |(flow, types): (FlowId, BTreeMap<u8, Kind>)| {
            let numbers: String = types.keys().map(|number| format!(" {number}")).collect();
            let maps = types.iter().map(|(number, kind)| {
                let clock = if *kind == Kind::Audio { AUDIO_CLOCK } else { VIDEO_CLOCK };
                format!("a=rtpmap:{number} x-{}/{clock}\r\n", kind.name())
            });
            let maps: String = maps.collect();
            let ([from, to], number) = (hosts(flow).map(dotted), flow.0);
            let name = &self.flows[flow.0 as usize].name;
            let text = format!(
                "v=0\r\no=- {number} 0 IN IP4 {from}\r\ns={name}\r\nc=IN IP4 {to}\r\nt=0 0\r\n\
                 m=video {RTP_PORT} RTP/AVP{numbers}\r\n{maps}"
            );
            // version 1; no authentication; an identifier, which is not to be 0; where it is from
            let mut bytes = vec![0x20, 0];
            bytes.extend((number as u16).wrapping_add(1).max(1).to_be_bytes());
            bytes.extend(hosts(flow)[0]);
            bytes.extend(b"application/sdp\0");
            bytes.extend(text.into_bytes());
            (flow, bytes)
        };
        types.into_iter().map(describe).collect()
    }
}

/// The addresses of a flow's sender and receiver.
fn hosts(flow: FlowId) -> [[u8; 4]; 2] {
    let flow = flow.0.to_be_bytes();
    [1, 2].map(|number| [10, flow[2], flow[3], number])
}

fn dotted([a, b, c, d]: [u8; 4]) -> String {
    format!("{a}.{b}.{c}.{d}")
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

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    out.extend(std::iter::repeat_n(0, value.len().wrapping_neg() % 4));
}

fn interface(out: &mut Vec<u8>, name: &str) {
    let mut body = Vec::new();
    body.extend(LINKTYPE_RAW.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    // no snapshot limit
    body.extend(0u32.to_le_bytes());
    option(&mut body, IF_NAME, name.as_bytes());
    // without it readers take nanoseconds for microseconds
    option(&mut body, IF_TSRESOL, &[9]);
    option(&mut body, END_OF_OPTIONS, &[]);
    block(out, 1, &body);
}

fn enhanced_packet(out: &mut Vec<u8>, at: Time, interface: u32, passing: Passing, bytes: &[u8]) {
    let stamp = at.as_nanos() as u64;
    let mut body = Vec::with_capacity(36 + bytes.len());
    body.extend(interface.to_le_bytes());
    body.extend(((stamp >> 32) as u32).to_le_bytes());
    body.extend((stamp as u32).to_le_bytes());
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend(bytes);
    body.extend(std::iter::repeat_n(0, bytes.len().wrapping_neg() % 4));
    // bits 0 and 1 of the flags: inbound or outbound
    let flags: u32 = match passing {
        Passing::In => 1,
        Passing::Out => 2,
    };
    option(&mut body, EPB_FLAGS, &flags.to_le_bytes());
    option(&mut body, END_OF_OPTIONS, &[]);
    block(out, 6, &body);
}

/// The packet with its IPv4 and UDP headers.
fn ip_packet(packet: &Captured, overhead: u32, from_sender: bool) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(packet.datagram.size as usize);
    datagram::encode(&packet.datagram, overhead, &mut bytes)
        .map_err(|error| format!("a {} packet at {}: {error}", packet.kind.name(), packet.at))?;
    let port = if packet.kind == Kind::Rtcp { RTCP_PORT } else { RTP_PORT };
    Ok(udp(packet.flow, from_sender, packet.datagram.ecn as u8, port, &bytes))
}

fn udp(flow: FlowId, from_sender: bool, ecn: u8, port: u16, bytes: &[u8]) -> Vec<u8> {
    let udp_length = (8 + bytes.len()) as u16;
    let [sender, receiver] = hosts(flow);
    let (source, destination) = if from_sender { (sender, receiver) } else { (receiver, sender) };
    let mut ip = Vec::with_capacity(28 + bytes.len());
    ip.extend([0x45, ecn]);
    ip.extend((20 + udp_length).to_be_bytes());
    // identification 0 and "don't fragment" (RFC 6864: atomic datagrams need no identification)
    ip.extend([0, 0, 0x40, 0]);
    ip.extend([64, 17, 0, 0]);
    ip.extend(source);
    ip.extend(destination);
    let checksum = checksum(&ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    ip.extend(port.to_be_bytes());
    ip.extend(port.to_be_bytes());
    ip.extend(udp_length.to_be_bytes());
    // checksum 0: not computed (RFC 768)
    ip.extend([0, 0]);
    ip.extend(bytes);
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
    use std::sync::Arc;
    use tidegate_core::datagram::Attachment;
    use tidegate_core::{Body, Datagram, Ecn, NodeId};

    #[test]
    fn the_checksum_of_rfc_1071() {
        // section 3 of the RFC: the sum of these words is ddf2
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn blocks_are_closed_and_a_header_checks_out() {
        let packet = Captured {
            at: Time::from_secs(5),
            node: NodeId(3),
            passing: Passing::In,
            flow: FlowId(258),
            kind: Kind::Rtcp,
            datagram: Datagram {
                size: 31,
                ecn: Ecn::Ect1,
                body: Body::Rtcp,
                attachment: Some(Arc::new(Attachment::Rtcp(vec![1, 2, 3]))),
                ..Datagram::default()
            },
        };
        let ip = ip_packet(&packet, 28, false).unwrap();
        assert_eq!(ip.len(), 31);
        assert_eq!(ip[12..20], [10, 1, 2, 2, 10, 1, 2, 1]);
        assert_eq!(ip[1], 1, "ECT(1) in the lower bits of the second byte (RFC 3168 section 5)");
        assert_eq!(checksum(&ip[..20]), 0, "a right header sums to zero");
        let mut out = Vec::new();
        enhanced_packet(&mut out, packet.at, 0, packet.passing, &ip);
        assert_eq!(out.len() % 4, 0);
        assert_eq!(out[4..8], (out.len() as u32).to_le_bytes());
        assert_eq!(out[out.len() - 4..], (out.len() as u32).to_le_bytes());
        // behind 28 bytes of header and 32 of the padded packet: flags of four bytes, inbound
        assert_eq!(out[60..72], [2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
