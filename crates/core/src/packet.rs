//! The packet that travels through a simulated network: a datagram, and what its driver knows beside it.

use crate::datagram::Datagram;
use crate::frame::Frame;
use crate::ids::{FlowId, RouteId};
use crate::units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// What a packet is, for the record. The discriminants are the codes in recorded tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
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

/// A packet in flight: an envelope that belongs to the driver, and in it the datagram, which is all that its receiver
/// gets to see. Reads as its datagram. 88 bytes, cheap to copy for multicast fan-out.
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
    /// Which frame it belongs to, as its sender tells the record.
    pub frame: Frame,
    /// How many nodes of its route it has left behind.
    pub hop: u8,
    /// What it is, as its sender tells the record.
    pub kind: Kind,
    /// What travels.
    pub datagram: Datagram,
}

impl Packet {
    /// A packet of `flow` that leaves on `route` at `sent`, as number `sequence`.
    #[inline]
    #[must_use]
    pub fn new(
        sent: Time,
        flow: FlowId,
        route: RouteId,
        sequence: u32,
        kind: Kind,
        datagram: Datagram,
    ) -> Self {
        Self {
            sent,
            queued: Span::ZERO,
            flow,
            route,
            sequence,
            frame: Frame { number: 0, flags: 0 },
            hop: 0,
            kind,
            datagram,
        }
    }
}

impl Deref for Packet {
    type Target = Datagram;

    #[inline]
    fn deref(&self) -> &Datagram {
        &self.datagram
    }
}

impl DerefMut for Packet {
    #[inline]
    fn deref_mut(&mut self) -> &mut Datagram {
        &mut self.datagram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_small() {
        assert!(size_of::<Packet>() <= 88, "{} bytes", size_of::<Packet>());
    }

    #[test]
    fn kinds_have_their_codes() {
        for (code, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(code, kind as usize);
        }
    }
}
