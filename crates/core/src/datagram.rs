//! IP datagrams: header fields with an exact encoding, and a payload of which mostly only the size is kept.
//!
//! A datagram has all that a receiver may know of a packet; the simulator's additional knowledge is in [`crate::packet`].

use crate::address::{Direction, Hosts, Service, between};
use crate::frame::Marks;
use crate::ids::FlowId;
use crate::units::Size;
use crate::wire::tcp::{Options, Timestamps};
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
    /// Converts the two bits of the IP header; higher bits are ignored.
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

/// Header fields of an RTP packet (RFC 3550 section 5.1), its header extensions (RFC 8285), and the first field of its
/// payload, if repair needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpBody {
    /// RTP timestamp in units of the payload type's clock.
    pub timestamp: u32,
    /// SSRC of the stream.
    pub ssrc: u32,
    /// RTP sequence number.
    pub sequence: u16,
    /// For a retransmission, the sequence number of the repeated packet (OSN of RFC 4588, first in the payload); for
    /// parity, that of the first protected packet (SN base of RFC 6015); else 0.
    pub original: u16,
    /// Transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    pub transport_sequence: Option<u16>,
    /// abs-send-time in 2^-18 s, big endian (see [`crate::wire::rtp::abs_send_time`]).
    pub abs_send_time: Option<[u8; 3]>,
    /// Marks of the packet's frame.
    pub marks: Option<Marks>,
    /// RTP payload type, seven bits.
    pub payload_type: u8,
    /// Bytes of padding; in a padding packet, all bytes after the header. Zero for none.
    pub padding: u8,
    /// Marker bit: for video, the last packet of a frame.
    pub marker: bool,
}

/// Parity of the packets `original`, `original + offset`, `original + 2 offset` and so on: the exclusive or of the fields
/// to be restored (RFC 6015 section 4.2). The header extensions, and so the marks of a frame, are in the protected bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity {
    /// Distance from one protected packet to the next, in sequence numbers.
    pub offset: u8,
    /// Number of protected packets.
    pub count: u8,
    /// Exclusive or of the payload types.
    pub payload_type: u8,
    /// Exclusive or of the lengths after the fixed header.
    pub length: u16,
    /// Exclusive or of the timestamps.
    pub timestamp: u32,
    /// Exclusive or of the first bytes after the fixed headers, which contain header extensions; payloads are zeros.
    pub protected: Protected,
}

/// First bytes after the fixed header of an RTP packet: enough for its header extensions, except for long stamps.
pub type Protected = [u8; 32];

impl Parity {
    /// Length of the header before the parity of the payloads (RFC 6015 section 4.2).
    pub const HEADER: u16 = 16;

    /// Encodes this header, with `base` the first protected sequence number.
    #[must_use]
    pub fn header(&self, base: u16) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[0..2].copy_from_slice(&base.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.length.to_be_bytes());
        // E: extended header, required by RFC 6015
        bytes[4] = 0x80 | self.payload_type & 0x7f;
        bytes[8..12].copy_from_slice(&self.timestamp.to_be_bytes());
        // N = 0, D = 0 (columns), type 0 (exclusive or), index 0; offset and NA; SN base ext is 0
        (bytes[13], bytes[14]) = (self.offset, self.count);
        bytes
    }

    /// Parses the header: the first protected sequence number, and the fields.
    #[must_use]
    pub fn read(bytes: &[u8; 16]) -> (u16, Self) {
        let [base_high, base_low, length_high, length_low, pt, _, _, _, t0, t1, t2, t3, _, offset, count, _] =
            *bytes;
        let parity = Self {
            offset,
            count,
            payload_type: pt & 0x7f,
            length: u16::from_be_bytes([length_high, length_low]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            protected: Protected::default(),
        };
        (u16::from_be_bytes([base_high, base_low]), parity)
    }
}

/// RFC 8285 header extension element with real bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Local identifier: 1 to 14, or up to 255 with two-byte headers.
    pub id: u8,
    /// Data: 1 to 16 bytes, or up to 255 with two-byte headers.
    pub data: Vec<u8>,
}

/// Header fields of a TCP segment (RFC 9293 section 3.1); sequence numbers count bytes and wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpBody {
    /// Sequence number of the first byte carried.
    pub sequence: u32,
    /// Next byte expected, if [`TcpBody::ACK`] is set.
    pub ack: u32,
    /// Window field of the header: bytes shifted by the negotiated scale (RFC 7323 section 2.2), except in a SYN.
    pub window: u16,
    /// Bytes of data carried.
    pub length: u16,
    /// Flags; see the associated constants.
    pub flags: u8,
}

/// Up to three SACK blocks `[start, end)`; unused ones are zeros.
pub type SackBlocks = [(u32, u32); 3];

impl TcpBody {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Connection request.
    pub const SYN: u8 = 1 << 1;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 1 << 4;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 1 << 6;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 1 << 7;
}

/// Options of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Largest segment that the sender of the SYN accepts, bytes of data (RFC 9293 section 3.7.1).
    pub segment: Option<u16>,
    /// Number of bits by which its sender shifts windows, at most 14 (RFC 7323 section 2).
    pub scale: Option<u8>,
    /// Whether its sender accepts selective acknowledgements (RFC 2018 section 2).
    pub sack: bool,
}

/// Type of a datagram with its header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// UDP without content.
    Empty,
    /// RTP: real header fields, and a payload that is mostly only a size.
    Rtp(RtpBody),
    /// RTCP, whose bytes are in [`Attachment::Rtcp`].
    Rtcp,
    /// TCP segment.
    Tcp(TcpBody),
    /// UDP with a number that has a meaning only for its two ends (little-endian bytes, because any other form would make
    /// each packet larger).
    Tagged([u8; 8]),
}

/// Contents of a few packets, shared between copies so that each packet stays small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// Real bytes of an RTCP packet, compound or reduced-size.
    Rtcp(Vec<u8>),
    /// Additional RFC 8285 extension element, stamped by a controller.
    Extension(Extension),
    /// Options of a TCP segment.
    Options(Options),
    /// RTP sequence numbers of the last packets that were reported as lost, to which a segment of a picture does not refer
    /// (NEWPRED).
    Avoids(Vec<u16>),
    /// Parity of a repair packet, and a stamp.
    Parity(Parity, Option<Extension>),
}

/// IP datagram. 48 bytes, cheap to copy for multicast fan-out.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// Bytes on the wire, including IP and UDP or TCP headers.
    pub size: u32,
    /// UDP or TCP ports of source and destination.
    pub ports: (u16, u16),
    /// Source and destination hosts.
    pub hosts: Hosts,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// DSCP of the IP header, six bits (RFC 2474).
    pub dscp: u8,
    /// Type and header fields.
    pub body: Body,
    /// Contents that only a few packets have.
    pub attachment: Option<Arc<Attachment>>,
}

impl Default for Datagram {
    /// Empty datagram of zero bytes.
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

/// Transport protocol; the discriminants are the numbers in the IP header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Protocol {
    /// TCP (RFC 9293).
    Tcp = 6,
    /// UDP (RFC 768).
    Udp = 17,
}

impl Datagram {
    /// Sets the addresses and ports of `flow`.
    #[inline]
    #[must_use]
    pub fn between(self, flow: FlowId, direction: Direction, service: Service) -> Self {
        let (hosts, ports) = between(flow, direction, service);
        Self { hosts, ports, ..self }
    }

    /// Transport protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self.body {
            Body::Tcp(_) => Protocol::Tcp,
            _ => Protocol::Udp,
        }
    }

    /// Size on the wire.
    #[must_use]
    pub fn size(&self) -> Size {
        Size::from_bytes(u64::from(self.size))
    }

    /// Bytes of an RTCP packet.
    #[must_use]
    pub fn rtcp(&self) -> Option<&[u8]> {
        match self.attachment.as_deref() {
            Some(Attachment::Rtcp(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Header fields of RTP.
    #[must_use]
    pub fn rtp(&self) -> Option<&RtpBody> {
        match &self.body {
            Body::Rtp(body) => Some(body),
            _ => None,
        }
    }

    /// Number in a tagged datagram.
    #[must_use]
    pub fn tag(&self) -> Option<u64> {
        match self.body {
            Body::Tagged(bytes) => Some(u64::from_le_bytes(bytes)),
            _ => None,
        }
    }

    /// Extension element stamped by a controller.
    #[must_use]
    pub fn extension(&self) -> Option<&Extension> {
        match self.attachment.as_deref() {
            Some(Attachment::Extension(extension)) => Some(extension),
            Some(Attachment::Parity(_, stamp)) => stamp.as_ref(),
            _ => None,
        }
    }

    /// Parity of a repair packet.
    #[must_use]
    pub fn parity(&self) -> Option<&Parity> {
        match self.attachment.as_deref() {
            Some(Attachment::Parity(parity, _)) => Some(parity),
            _ => None,
        }
    }

    /// Options of a TCP segment.
    #[must_use]
    pub fn options(&self) -> Options {
        match self.attachment.as_deref() {
            Some(&Attachment::Options(options)) => options,
            _ => Options::default(),
        }
    }

    /// Options of a TCP SYN.
    #[must_use]
    pub fn opening(&self) -> Opening {
        self.options().opening
    }

    /// Timestamps of a TCP segment.
    #[inline]
    #[must_use]
    pub fn timestamps(&self) -> Option<Timestamps> {
        match self.attachment.as_deref() {
            Some(Attachment::Options(options)) => options.timestamps,
            _ => None,
        }
    }

    /// SACK blocks of a TCP acknowledgement.
    #[must_use]
    pub fn sack(&self) -> Option<&SackBlocks> {
        match self.attachment.as_deref() {
            Some(Attachment::Options(options)) if options.sack != SackBlocks::default() => {
                Some(&options.sack)
            }
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
