//! What an IP datagram carries: header fields with an exact encoding, and a payload of which mostly only the size is
//! kept.
//!
//! All that a receiver may know of a packet is here; what the simulator knows beside it is in [`crate::packet`].

use crate::address::{Hosts, Service, Way, between};
use crate::frame::Marks;
use crate::ids::FlowId;
use crate::units::Size;
use std::sync::Arc;

/// The ECN field of the IP header (RFC 3168); the discriminants are the two bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, the L4S identifier (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable, classic.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// From the two bits of the IP header; higher bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark instead of dropping (RFC 3168 section 5).
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// The header fields of an RTP packet (RFC 3550 section 5.1), its header extensions (RFC 8285), and the first field
/// of its payload where repair reads one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpBody {
    /// RTP timestamp in units of the payload type's clock.
    pub timestamp: u32,
    /// The stream.
    pub ssrc: u32,
    /// RTP sequence number.
    pub sequence: u16,
    /// Of a retransmission the sequence number of the packet that it repeats (the OSN of RFC 4588, first in its
    /// payload), of parity that of the first packet protected (SN base of RFC 6015); else 0.
    pub original: u16,
    /// Transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    pub transport_sequence: Option<u16>,
    /// abs-send-time in 2^-18 s, big endian (see [`crate::wire::rtp::abs_send_time`]).
    pub abs_send_time: Option<[u8; 3]>,
    /// What it says of its frame.
    pub marks: Option<Marks>,
    /// RTP payload type: seven bits.
    pub payload_type: u8,
    /// Bytes of padding, of which a packet of padding consists behind its header; zero for none.
    pub padding: u8,
    /// The marker bit: for video, the last packet of a frame.
    pub marker: bool,
}

/// What a packet of parity says of the packets `original`, `original + offset`, `original + 2 offset` and so on:
/// the exclusive or of what has to be restored (RFC 6015 section 4.2, which has the header extensions, and so what a
/// packet says of its frame, in the protected bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity {
    /// The distance from one protected packet to the next, in sequence numbers.
    pub offset: u8,
    /// How many are protected.
    pub count: u8,
    /// Exclusive or of their payload types.
    pub payload_type: u8,
    /// Exclusive or of their lengths behind the fixed header.
    pub length: u16,
    /// Exclusive or of their timestamps.
    pub timestamp: u32,
    /// Exclusive or of the first bytes behind their fixed headers, which hold header extensions; payloads are zeros.
    pub protected: Protected,
}

/// As many bytes behind the fixed header of an RTP packet as hold its header extensions, but for long stamps.
pub type Protected = [u8; 32];

impl Parity {
    /// Bytes before the parity of the payloads (RFC 6015 section 4.2).
    pub const HEADER: u16 = 16;

    /// Those bytes, with `base` the first number that is protected.
    #[must_use]
    pub fn header(&self, base: u16) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[0..2].copy_from_slice(&base.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.length.to_be_bytes());
        // E: extended header, as RFC 6015 demands
        bytes[4] = 0x80 | self.payload_type & 0x7f;
        bytes[8..12].copy_from_slice(&self.timestamp.to_be_bytes());
        // N = 0, D = 0 (columns), type 0 (exclusive or), index 0; offset and NA; SN base ext is 0
        (bytes[13], bytes[14]) = (self.offset, self.count);
        bytes
    }

    /// Reads them: the first number that is protected, and the rest.
    #[must_use]
    pub fn read(bytes: &[u8; 16]) -> (u16, Self) {
        let [a, b, c, d, pt, _, _, _, t0, t1, t2, t3, _, offset, count, _] = *bytes;
        let parity = Self {
            offset,
            count,
            payload_type: pt & 0x7f,
            length: u16::from_be_bytes([c, d]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            protected: Protected::default(),
        };
        (u16::from_be_bytes([a, b]), parity)
    }
}

/// One RFC 8285 header extension element as real bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The element's local identifier: 1 to 14, or up to 255 where two-byte headers are used.
    pub id: u8,
    /// Its data: 1 to 16 bytes, or up to 255 where two-byte headers are used.
    pub data: Vec<u8>,
}

/// The header fields of a TCP segment (RFC 9293 section 3.1); sequence numbers count bytes and wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpBody {
    /// First byte carried.
    pub sequence: u32,
    /// Next byte expected, where [`TcpBody::ACK`] is set.
    pub ack: u32,
    /// The window as the header has it: bytes shifted by what was agreed on (RFC 7323 section 2.2), but for a SYN's.
    pub window: u16,
    /// Bytes of data carried.
    pub length: u16,
    /// See the associated constants.
    pub flags: u8,
}

/// Up to three SACK blocks `[start, end)`, unused ones zeros.
pub type SackBlocks = [(u32, u32); 3];

impl TcpBody {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Connection request.
    pub const SYN: u8 = 1 << 1;
    /// The acknowledgment number means something.
    pub const ACK: u8 = 1 << 4;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 1 << 6;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 1 << 7;
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The largest segment that its sender takes: bytes of data (RFC 9293 section 3.7.1).
    pub segment: Option<u16>,
    /// By how many bits its sender shifts windows: at most 14 (RFC 7323 section 2).
    pub scale: Option<u8>,
    /// Whether its sender takes selective acknowledgements (RFC 2018 section 2).
    pub sack: bool,
}

/// What a datagram is, by its header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// UDP with nothing that anybody reads.
    Empty,
    /// RTP: real header fields, a payload that is mostly only a size.
    Rtp(RtpBody),
    /// RTCP: all in the bytes of [`Attachment::Rtcp`].
    Rtcp,
    /// A TCP segment.
    Tcp(TcpBody),
    /// UDP with a number that means something to its two ends only (little endian: any other form
    /// would make every packet larger).
    Tagged([u8; 8]),
}

/// What few packets carry, shared between copies so that every packet stays small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// The real bytes of an RTCP packet, compound or reduced-size.
    Rtcp(Vec<u8>),
    /// A further RFC 8285 extension element that a controller stamped.
    Extension(Extension),
    /// SACK blocks (RFC 2018), most recent first.
    Sack(SackBlocks),
    /// The options of a TCP SYN.
    Opening(Opening),
    /// What a segment of a picture is coded without, because their loss was reported (NEWPRED): RTP sequence
    /// numbers, the last few reported.
    Avoids(Vec<u16>),
    /// What a packet of parity protects, and a stamp.
    Parity(Parity, Option<Extension>),
}

/// What an IP datagram carries. 48 bytes, cheap to copy for multicast fan-out.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// Bytes on the wire, IP and UDP or TCP headers included.
    pub size: u32,
    /// UDP or TCP ports: from where, and to where.
    pub ports: (u16, u16),
    /// From which host, and to which.
    pub hosts: Hosts,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The DSCP of its IP header (RFC 2474): six bits.
    pub dscp: u8,
    /// Its header fields.
    pub body: Body,
    /// What few packets carry.
    pub attachment: Option<Arc<Attachment>>,
}

impl Default for Datagram {
    /// An empty one of no bytes.
    fn default() -> Self {
        Self {
            size: 0,
            ports: (0, 0),
            hosts: Hosts::default(),
            ecn: Ecn::NotEct,
            dscp: 0,
            body: Body::Empty,
            attachment: None,
        }
    }
}

/// What an IP packet carries; the discriminants are the numbers in its header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Protocol {
    /// RFC 9293.
    Tcp = 6,
    /// RFC 768.
    Udp = 17,
}

impl Datagram {
    /// This datagram with the addresses and ports of `flow`.
    #[inline]
    #[must_use]
    pub fn between(self, flow: FlowId, way: Way, service: Service) -> Self {
        let (hosts, ports) = between(flow, way, service);
        Self { hosts, ports, ..self }
    }

    /// What carries it.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self.body {
            Body::Tcp(_) => Protocol::Tcp,
            _ => Protocol::Udp,
        }
    }

    /// Bytes on the wire.
    #[must_use]
    pub fn size(&self) -> Size {
        Size::from_bytes(u64::from(self.size))
    }

    /// The bytes of an RTCP packet.
    #[must_use]
    pub fn rtcp(&self) -> Option<&[u8]> {
        match self.attachment.as_deref() {
            Some(Attachment::Rtcp(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The header fields of RTP.
    #[must_use]
    pub fn rtp(&self) -> Option<&RtpBody> {
        match &self.body {
            Body::Rtp(body) => Some(body),
            _ => None,
        }
    }

    /// The number that a tagged datagram carries.
    #[must_use]
    pub fn tag(&self) -> Option<u64> {
        match self.body {
            Body::Tagged(bytes) => Some(u64::from_le_bytes(bytes)),
            _ => None,
        }
    }

    /// The extension element that a controller stamped on it.
    #[must_use]
    pub fn extension(&self) -> Option<&Extension> {
        match self.attachment.as_deref() {
            Some(Attachment::Extension(extension)) => Some(extension),
            Some(Attachment::Parity(_, stamp)) => stamp.as_ref(),
            _ => None,
        }
    }

    /// What a packet of parity protects.
    #[must_use]
    pub fn parity(&self) -> Option<&Parity> {
        match self.attachment.as_deref() {
            Some(Attachment::Parity(parity, _)) => Some(parity),
            _ => None,
        }
    }

    /// The options of a TCP SYN.
    #[must_use]
    pub fn opening(&self) -> Opening {
        match self.attachment.as_deref() {
            Some(Attachment::Opening(opening)) => *opening,
            _ => Opening::default(),
        }
    }

    /// The SACK blocks of a TCP acknowledgement.
    #[must_use]
    pub fn sack(&self) -> Option<&SackBlocks> {
        match self.attachment.as_deref() {
            Some(Attachment::Sack(blocks)) => Some(blocks),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_small() {
        assert!(size_of::<Datagram>() <= 48, "{} bytes", size_of::<Datagram>());
    }

    #[test]
    fn ecn_has_its_codes() {
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits) as u8, bits);
        }
    }
}
