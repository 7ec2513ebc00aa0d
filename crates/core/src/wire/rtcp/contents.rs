//! Types of the packets in a datagram of RTCP, as a set of bits for the record.

use super::Packet;
use serde::{Deserialize, Serialize};
use std::ops::BitOr;

/// Set of types of RTCP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Contents(u16);

impl Contents {
    /// Sender report.
    pub const SR: Self = Self(1);
    /// Receiver report.
    pub const RR: Self = Self(1 << 1);
    /// Source description.
    pub const SDES: Self = Self(1 << 2);
    /// Goodbye.
    pub const BYE: Self = Self(1 << 3);
    /// Application-defined.
    pub const APP: Self = Self(1 << 4);
    /// Generic NACK.
    pub const NACK: Self = Self(1 << 5);
    /// Picture loss indication.
    pub const PLI: Self = Self(1 << 6);
    /// Full intra request.
    pub const FIR: Self = Self(1 << 7);
    /// Receiver estimated maximum bitrate.
    pub const REMB: Self = Self(1 << 8);
    /// Transport-wide feedback.
    pub const TWCC: Self = Self(1 << 9);
    /// RFC 8888 congestion control feedback.
    pub const CCFB: Self = Self(1 << 10);
    /// RFC 6679 ECN feedback.
    pub const ECN: Self = Self(1 << 11);
    /// Extended report.
    pub const XR: Self = Self(1 << 12);
    /// Names of the bits in tables, lowest first.
    pub const NAMES: [&'static str; 13] =
        ["SR", "RR", "SDES", "BYE", "APP", "NACK", "PLI", "FIR", "REMB", "TWCC", "CCFB", "ECN", "XR"];

    /// Types of the packets of a datagram. Slice loss indications and unknown packets have no bit.
    #[must_use]
    pub fn of(packets: &[Packet]) -> Self {
        packets.iter().fold(Self::default(), |types, packet| types | Self::of_packet(packet))
    }

    const fn of_packet(packet: &Packet) -> Self {
        match packet {
            Packet::SenderReport(_) => Self::SR,
            Packet::ReceiverReport(_) => Self::RR,
            Packet::Sdes(_) => Self::SDES,
            Packet::Bye(_) => Self::BYE,
            Packet::App(_) => Self::APP,
            Packet::Nack(_) => Self::NACK,
            Packet::Pli(_) => Self::PLI,
            Packet::Fir(_) => Self::FIR,
            Packet::Remb(_) => Self::REMB,
            Packet::Twcc(_) => Self::TWCC,
            Packet::Ccfb(_) => Self::CCFB,
            Packet::EcnFeedback(_) => Self::ECN,
            Packet::ExtendedReport(_) => Self::XR,
            Packet::Sli(_) | Packet::Unknown(_) => Self(0),
        }
    }

    /// Whether the set has one of `types`.
    #[must_use]
    pub const fn has(self, types: Self) -> bool {
        self.0 & types.0 != 0
    }

    /// Bits of the set.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl BitOr for Contents {
    type Output = Self;

    fn bitor(self, rhs: Self) -> Self {
        Self(self.0 | rhs.0)
    }
}
