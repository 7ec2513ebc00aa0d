//! Packets of a simulated network: a datagram, with the driver's additional knowledge about it.

use crate::datagram::Datagram;
use crate::frame::Frame;
use crate::ids::{FlowId, RouteId};
use crate::units::{Span, Time};
use crate::wire::ip;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// Kind of a packet, for the record. The discriminants are the codes in recorded tables.
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

    /// Name in tables.
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

/// Packet in flight: the driver's envelope with the datagram, which is all that the receiver gets. Dereferences to its
/// datagram. 88 bytes, cheap to copy for multicast fan-out.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Departure from its sender.
    pub sent: Time,
    /// Time in queues so far.
    pub queued: Span,
    /// Flow of the packet.
    pub flow: FlowId,
    /// Route of the packet.
    pub route: RouteId,
    /// Sender's running number of packets in this flow and direction, for the record.
    pub sequence: u32,
    /// Frame to which it belongs, for the record.
    pub frame: Frame,
    /// Number of nodes of its route that it has passed.
    pub hop: u8,
    /// Kind, for the record.
    pub kind: Kind,
    /// Whether the network made it of another packet: it is no packet of its sender, and none that is lost or arrives.
    pub duplicate: bool,
    /// Number of IP packets beyond the first in which it goes; zero: it is whole.
    pub fragments: u8,
    /// Datagram.
    pub datagram: Datagram,
}

impl Packet {
    /// Creates a packet of `flow` that leaves on `route` at `sent`, as number `sequence`.
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
            duplicate: false,
            fragments: 0,
            datagram,
        }
    }

    /// Whether any of its fragments meets the event that `happens` draws, once for each of them in turn.
    #[inline]
    pub fn any_fragment(&self, mut happens: impl FnMut() -> bool) -> bool {
        (0..=self.fragments).fold(false, |any, _| happens() || any)
    }

    /// Bytes on the wire, with the IP headers of its fragments.
    #[inline]
    #[must_use]
    pub fn wire_size(&self) -> u32 {
        self.datagram.size + u32::from(self.fragments) * ip::IP_HEADER as u32
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
