//! Capture files of a run, for Wireshark and tshark: one for each side of its flows.
//!
//! The format is pcapng (draft-ietf-opsawg-pcapng) with raw IPv4 packets (LINKTYPE_RAW) and nanosecond timestamps. Each
//! end is an interface with the name of its node, and each packet is marked as inbound or outbound there.
//! Each flow has its own addresses and ports (`tidegate_core::address`). Payload beyond the simulated fields is zeros.
//! The interface `announcements` has packets that were on no network: an announcement (SAP) of each RTP flow. Without a
//! session description, readers recognise neither RTP nor its clocks, and compute no jitter.

use super::Recording;
use super::capture::Side;
use std::collections::BTreeMap;
use tidegate_core::address::{Direction, Hosts};
use tidegate_core::datagram::Protocol;
use tidegate_core::record::Passing;
use tidegate_core::wire::{Error, ip};
use tidegate_core::{Ecn, FlowId, Kind, Time};
use tidegate_endpoint::{AUDIO_CLOCK, VIDEO_CLOCK, datagram};

/// UDP port of announcements (RFC 2974 section 3).
const SAP_PORT: u16 = 9875;
const LINKTYPE_RAW: u16 = 101;
// sections 3.5 (all blocks), 3.5.1 and 4.2 (interfaces and packets) of the draft
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

impl Recording {
    /// The capture file of one side; it has packets only if the run was recorded with a capture.
    ///
    /// # Errors
    /// When the fields of a packet do not fit it.
    pub fn pcapng(&self, side: Side) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        section_header(&mut out);
        interface(&mut out, "announcements");
        let mut interfaces = 1;
        let mut number_of = vec![None; self.node_names.len()];
        for packet in self.captured_at(side) {
            let node = packet.node.0 as usize;
            if number_of[node].is_none() {
                number_of[node] = Some(interfaces);
                interfaces += 1;
                interface(&mut out, &self.node_names[node]);
            }
        }
        for (flow, announcement) in self.announcements(side) {
            let packet = announced(flow, &announcement).map_err(|error| error.to_string())?;
            enhanced_packet(&mut out, Time::ZERO, 0, Passing::Out, &packet);
        }
        let mut bytes = Vec::new();
        for packet in self.captured_at(side) {
            bytes.clear();
            datagram::encode(&packet.datagram, self.flows[packet.flow.0 as usize].overhead, &mut bytes)
                .map_err(|error| {
                    format!("a {} packet at {} cannot be written: {error}", packet.kind.name(), packet.time)
                })?;
            let interface = number_of[packet.node.0 as usize].unwrap_or(0);
            enhanced_packet(&mut out, packet.time, interface, packet.passing, &bytes);
        }
        Ok(out)
    }

    /// For each RTP flow its announcement (RFC 2974 section 3), with a session description (RFC 8866) of its payload
    /// types.
    fn announcements(&self, side: Side) -> Vec<(FlowId, Vec<u8>)> {
        let mut descriptions: BTreeMap<FlowId, (Hosts, u16, BTreeMap<u8, Kind>)> = BTreeMap::new();
        for packet in self.captured_at(side) {
            let datagram = &packet.datagram;
            if let Some(body) = datagram.rtp() {
                let new = || (datagram.hosts, datagram.ports.1, BTreeMap::new());
                let (_, _, types) = descriptions.entry(packet.flow).or_insert_with(new);
                types.entry(body.payload_type).or_insert(packet.kind);
            }
        }
        let describe = |(flow, (hosts, port, types)): (FlowId, (Hosts, u16, BTreeMap<u8, Kind>))| {
            let numbers: String = types.keys().map(|number| format!(" {number}")).collect();
            let maps = types.iter().map(|(number, kind)| {
                let clock = if *kind == Kind::Audio { AUDIO_CLOCK } else { VIDEO_CLOCK };
                format!("a=rtpmap:{number} x-{}/{clock}\r\n", kind.name())
            });
            let maps: String = maps.collect();
            let (from, to) = hosts.addresses();
            let (number, origin, from, to) = (flow.0, from, dotted(from), dotted(to));
            let name = &self.flows[flow.0 as usize].name;
            let text = format!(
                "v=0\r\no=- {number} 0 IN IP4 {from}\r\ns={name}\r\nc=IN IP4 {to}\r\nt=0 0\r\n\
                 m=video {port} RTP/AVP{numbers}\r\n{maps}"
            );
            // version 1; no authentication; an identifier, which must not be 0; the originating address
            let mut bytes = vec![0x20, 0];
            bytes.extend((number as u16).wrapping_add(1).max(1).to_be_bytes());
            bytes.extend(origin);
            bytes.extend(b"application/sdp\0");
            bytes.extend(text.into_bytes());
            (flow, bytes)
        };
        descriptions.into_iter().map(describe).collect()
    }
}

/// The packet of an announcement, from the sender of a flow to its receiver.
fn announced(flow: FlowId, announcement: &[u8]) -> Result<Vec<u8>, Error> {
    let hosts = Hosts::of_flow(flow, Direction::Forward);
    let mut packet = Vec::new();
    ip::put_udp((SAP_PORT, SAP_PORT), announcement.len(), &mut packet)?;
    packet.extend(announcement);
    let header = ip::Header { hosts, protocol: Protocol::Udp, ecn: Ecn::NotEct, dscp: 0 };
    header.put_before(&mut packet, 0, ip::UDP_CHECKSUM)?;
    Ok(packet)
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
    // the section's length is unspecified
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
    // without this option readers assume microseconds
    option(&mut body, IF_TSRESOL, &[9]);
    option(&mut body, END_OF_OPTIONS, &[]);
    block(out, 1, &body);
}

fn enhanced_packet(out: &mut Vec<u8>, time: Time, interface: u32, passing: Passing, bytes: &[u8]) {
    let stamp = time.as_nanos() as u64;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_closed() {
        let mut out = Vec::new();
        enhanced_packet(&mut out, Time::from_secs(5), 0, Passing::In, &[7; 31]);
        assert_eq!(out.len() % 4, 0);
        assert_eq!(out[4..8], (out.len() as u32).to_le_bytes());
        assert_eq!(out[out.len() - 4..], (out.len() as u32).to_le_bytes());
        // after 28 bytes of header and 32 of the padded packet: flags of four bytes, inbound
        assert_eq!(out[60..72], [2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
