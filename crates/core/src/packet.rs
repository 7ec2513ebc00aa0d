//! The packet that travels through a simulated or emulated network.

use crate::units::{Size, Span, Time};
use std::sync::Arc;

/// A flow: one controlled media session, one TCP connection, one cross-traffic source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u32);

/// A static route of the world: the nodes that a packet visits, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RouteId(pub u32);

/// What a packet is, for the record. The discriminants are the codes in recorded tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// RTP with video.
    Video = 0,
    /// RTP with audio.
    Audio = 1,
    /// RTP that carries only padding (probing, keeping a rate up).
    Padding = 2,
    /// RTP retransmission (RFC 4588).
    Retransmission = 3,
    /// RTP with forward error correction.
    Repair = 4,
    /// RTCP, compound or reduced-size.
    Rtcp = 5,
    /// A TCP segment with data.
    Data = 6,
    /// A TCP acknowledgement without data.
    Ack = 7,
    /// A UDP datagram of cross traffic.
    Datagram = 8,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Video,
        Self::Audio,
        Self::Padding,
        Self::Retransmission,
        Self::Repair,
        Self::Rtcp,
        Self::Data,
        Self::Ack,
        Self::Datagram,
    ];

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Padding => "padding",
            Self::Retransmission => "retransmission",
            Self::Repair => "repair",
            Self::Rtcp => "rtcp",
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Datagram => "datagram",
        }
    }

    /// Whether this is RTP (as against RTCP, TCP and plain UDP).
    #[must_use]
    pub const fn is_rtp(self) -> bool {
        (self as u8) < Self::Rtcp as u8
    }

    /// Whether this is feedback: RTCP or a bare TCP acknowledgement.
    #[must_use]
    pub const fn is_feedback(self) -> bool {
        matches!(self, Self::Rtcp | Self::Ack)
    }
}

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
}

/// The header fields of an RTP packet (RFC 3550) and of what it says about its frame.
///
/// The SSRC follows from (flow, payload type), which the far end was told when the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpBody {
    /// RTP timestamp in units of the payload type's clock.
    pub timestamp: u32,
    /// Which frame of the stream this belongs to (what a dependency descriptor would say).
    pub frame: u32,
    /// RTP sequence number.
    pub sequence: u16,
    /// Transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    pub transport_sequence: u16,
    /// Of a retransmission the sequence number of the packet that it repeats (the OSN of RFC 4588, first in its
    /// payload), of parity that of the first packet protected (SN base of RFC 6015); else 0.
    pub original: u16,
    /// RTP payload type.
    pub payload_type: u8,
    /// Marker and first-of-frame bits: see the associated constants.
    pub flags: u8,
}

impl RtpBody {
    /// Last packet of its frame (the RTP marker bit for video).
    pub const LAST: u8 = 1;
    /// First packet of its frame.
    pub const FIRST: u8 = 2;
    /// The frame can be decoded without earlier ones.
    pub const KEY: u8 = 4;
}

/// What a packet of parity says of the packets `original`, `original + offset`, `original + 2 offset` and so on:
/// the exclusive or of what has to be restored (RFC 6015 section 4.2, which has the header extensions, and so the
/// frame's number and marks, in the protected bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity {
    /// From one protected packet to the next.
    pub offset: u8,
    /// How many are protected.
    pub count: u8,
    /// Of their payload types.
    pub payload_type: u8,
    /// Of their flags.
    pub flags: u8,
    /// Of their lengths behind the fixed header.
    pub length: u16,
    /// Of their timestamps.
    pub timestamp: u32,
    /// Of the numbers of their frames.
    pub frame: u32,
}

impl Parity {
    /// Bytes before the parity of the payloads (RFC 6015 section 4.2).
    pub const HEADER: u16 = 16;

    /// Those bytes, with `base` the first number that is protected. The lower marks of the flags (RFC 6015 has
    /// none) are the receiver's by the parity of the header extensions, which is not written.
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
}

/// One RFC 8285 header extension element as real bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The element's local identifier: 1 to 14, or up to 255 where two-byte headers are used.
    pub id: u8,
    /// Its data: 1 to 16 bytes, or up to 255 where two-byte headers are used.
    pub data: Vec<u8>,
}

/// The header fields of a TCP segment (RFC 9293); sequence numbers count bytes and wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpBody {
    /// First byte carried.
    pub sequence: u32,
    /// Next byte expected.
    pub ack: u32,
    /// Receive window in bytes.
    pub window: u32,
    /// Bytes of data carried.
    pub length: u16,
    /// See the associated constants.
    pub flags: u8,
}

/// Up to three SACK blocks `[start, end)`, unused ones empty.
pub type SackBlocks = [(u32, u32); 3];

impl TcpBody {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Connection request.
    pub const SYN: u8 = 2;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 4;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 8;
}

/// The header fields of a packet beyond the common ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing that anybody reads (or RTCP, which is all in its bytes).
    Empty,
    /// RTP: real header fields, a payload that is only a size.
    Rtp(RtpBody),
    /// A TCP segment.
    Tcp(TcpBody),
    /// A datagram with a number that means something to its two ends only (little endian: any other form
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
    /// What a segment of a picture is coded without, because their loss was reported (NEWPRED): RTP sequence
    /// numbers, the last few reported.
    Avoids(Vec<u16>),
    /// What a packet of parity protects, and a stamp.
    Parity(Parity, Option<Extension>),
}

/// A packet in flight. 64 bytes, cheap to copy for multicast fan-out.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// When its sender put it on the wire.
    pub sent: Time,
    /// How long it has waited in queues so far.
    pub queued: Span,
    /// Whose it is.
    pub flow: FlowId,
    /// Where it goes.
    pub route: RouteId,
    /// The sender's running number of packets of this flow and direction; for the record.
    pub sequence: u32,
    /// Bytes on the wire, IP and UDP or TCP headers included.
    pub size: u32,
    /// How many nodes of its route it has left behind.
    pub hop: u8,
    /// What it is.
    pub kind: Kind,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Its header fields.
    pub body: Body,
    /// What few packets carry.
    pub attachment: Option<Arc<Attachment>>,
}

impl Packet {
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
    fn a_packet_is_one_cache_line() {
        assert!(size_of::<Packet>() <= 64, "{} bytes", size_of::<Packet>());
    }

    #[test]
    fn kinds_and_ecn_have_their_codes() {
        for (code, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(code, kind as usize);
        }
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits) as u8, bits);
        }
    }
}
