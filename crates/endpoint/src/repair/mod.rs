//! Repair of lost video packets: requests and retransmission, parity, requests for key frames.
//!
//! | | who | what |
//! |---|---|---|
//! | `missing` | receiver | which packets are missing and when to ask for them (RFC 4585 section 6.2.1) |
//! | `resend` | sender | packets that were sent lately, to be sent once more (RFC 4588) |
//! | `parity` | both | interleaved exclusive or over groups of packets (RFC 6015) |
//! | `share` | sender | what repair takes from the target rate |
//!
//! Video is repaired, audio is not. Losses are counted before repair: neither reception statistics nor congestion
//! control take a restored packet for one that has arrived.

pub(crate) mod missing;
pub(crate) mod parity;
pub(crate) mod resend;
pub(crate) mod share;

use crate::packetizer::Extensions;
use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_core::datagram::Parity;

/// How losses are repaired; by default not at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Repair {
    /// Requests and retransmission.
    pub nack: Option<Nack>,
    /// Requests for key frames.
    pub pli: Option<Pli>,
    /// Parity.
    pub fec: Option<Fec>,
}

/// Requests of missing packets (Generic NACK, RFC 4585 section 6.2.1) and their retransmission (RFC 4588).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Nack {
    /// How long a packet may be overtaken before it is asked for.
    pub wait: Span,
    /// How often it is asked for at most, once a round trip.
    pub requests: u32,
    /// How long the sender keeps what it has sent, and the receiver asks.
    pub keep: Span,
}

impl Default for Nack {
    /// 5 ms, which is how long a burst of the pacer is; 10 requests and 1 s (libwebrtc `nack_requester.cc`:
    /// `kMaxNackRetries`; `rtp_packet_history.h`: `kMinPacketDuration`).
    fn default() -> Self {
        Self { wait: Span::from_millis(5), requests: 10, keep: Span::from_secs(1) }
    }
}

/// Requests for key frames (PLI, RFC 4585 section 6.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pli {
    /// The least time between two of them, and between two key frames that are made for them.
    pub interval: Span,
}

impl Pli {
    /// The least interval: a request that is repeated sooner tells nothing new, and takes an event each time.
    pub const INTERVAL_LEAST: Span = Span::from_millis(1);
}

impl Default for Pli {
    /// 300 ms (libwebrtc `encoder_rtcp_feedback.cc`: `kMinKeyframeSendIntervalMs`).
    fn default() -> Self {
        Self { interval: Span::from_millis(300) }
    }
}

/// Parity over groups of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fec {
    /// Packets of a group.
    pub packets: u8,
    /// Packets of parity for it: number `j` protects the packets `j`, `j + parity`, `j + 2 parity` and so on, so
    /// that as many losses in a row as there are can be restored, and any one loss for each.
    pub parity: u8,
    /// Whether a group ends with its frame, too.
    #[serde(default)]
    pub by_frame: bool,
}

impl Repair {
    /// Bytes that repair adds at most to the payload of a full packet.
    pub(crate) fn most_added(&self, extensions: Extensions) -> u32 {
        let resent = if self.nack.is_some() { u32::from(resend::OSN) } else { 0 };
        let parity = if self.fec.is_some() {
            u32::from(Parity::HEADER) + extensions.longest_header() - Extensions::NONE_LEN
        } else {
            0
        };
        resent.max(parity)
    }

    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(nack) = &self.nack
            && (nack.wait.is_negative() || nack.keep <= Span::ZERO || nack.requests == 0)
        {
            return Some(format!(
                "lost packets are asked for after {}, {} times, for {}; wait must not be negative, the others positive",
                nack.wait, nack.requests, nack.keep
            ));
        }
        if let Some(pli) = &self.pli
            && pli.interval < Pli::INTERVAL_LEAST
        {
            return Some(format!(
                "key frames are asked for every {}; the interval must be at least {}",
                pli.interval,
                Pli::INTERVAL_LEAST
            ));
        }
        if let Some(fec) = &self.fec
            && !(1..=fec.packets).contains(&fec.parity)
        {
            return Some(format!(
                "{} packets of parity for {} packets; expected from 1 to as many as there are",
                fec.parity, fec.packets
            ));
        }
        None
    }
}
