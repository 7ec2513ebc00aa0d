//! Repair of lost video packets: requests and retransmission, parity, requests for key frames.
//!
//! | module | end | content |
//! |---|---|---|
//! | `missing` | receiver | missing packets, and the times of requests for them (RFC 4585 section 6.2.1) |
//! | `resend` | sender | packets kept for retransmission (RFC 4588) |
//! | `parity` | both | interleaved exclusive or over groups of packets (RFC 6015) |
//! | `share` | sender | the part of the target rate that repair takes |
//!
//! Video is repaired, audio is not. Losses are counted before repair: for reception statistics and congestion control
//! a restored packet has not arrived.

pub(crate) mod missing;
pub(crate) mod parity;
pub(crate) mod resend;
pub(crate) mod share;

use crate::packetizer::Extensions;
use serde::{Deserialize, Serialize};
use tidegate_core::Span;
use tidegate_core::datagram::Parity;

/// Means of repairing losses; none by default.
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
    /// Time from the arrival of a later packet to the first request, rounded up to the next look at the list; zero: at
    /// once.
    pub wait: Span,
    /// Requests of a packet at most, one in each round trip.
    pub requests: u32,
    /// Time for which the sender keeps packets, and the receiver requests them. `None`: by libwebrtc's rule, at least
    /// 1 s and three round trips, and up to three times that while it keeps few; the receiver sets no limit then.
    pub keep: Option<Span>,
}

impl Default for Nack {
    /// At once, 100 requests, and kept by libwebrtc's rule (`nack_requester.cc`: `WaitNumberOfPackets`,
    /// `kMaxNackRetries`; `rtp_packet_history.cc`: `CullOldPackets`).
    fn default() -> Self {
        Self { wait: Span::ZERO, requests: 100, keep: None }
    }
}

/// Requests for key frames (PLI, RFC 4585 section 6.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pli {
    /// Minimum time between two requests, and between two key frames that are made for them.
    pub interval: Span,
}

impl Pli {
    /// Smallest interval: a request that is repeated sooner says nothing new, and takes an event each time.
    pub const INTERVAL_MIN: Span = Span::from_millis(1);
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
    /// Packets of parity for a group. Number `j` protects the packets `j`, `j + parity`, `j + 2 parity` and so on, and
    /// restores any one of them. Together they restore as many losses in a row as there are packets of parity.
    pub parity: u8,
    /// Whether a group also ends with its frame.
    #[serde(default)]
    pub by_frame: bool,
}

impl Repair {
    /// The most bytes that repair adds to the payload of a full packet.
    pub(crate) fn max_added(&self, extensions: Extensions, between: u8) -> u32 {
        let resent = if self.nack.is_some() { u32::from(resend::OSN) } else { 0 };
        let parity = if self.fec.is_some() {
            u32::from(Parity::HEADER) + extensions.longest_header(between) - Extensions::NONE_LEN
        } else {
            0
        };
        resent.max(parity)
    }

    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(nack) = &self.nack
            && (nack.wait.is_negative()
                || nack.keep.is_some_and(|keep| keep <= Span::ZERO)
                || nack.requests == 0)
        {
            return Some(format!(
                "NACK: wait is {}, requests is {} and keep is {}; wait must not be negative, requests and keep must be \
                 positive",
                nack.wait,
                nack.requests,
                nack.keep.map_or_else(|| "not given".to_owned(), |keep| keep.to_string()),
            ));
        }
        if let Some(pli) = &self.pli
            && pli.interval < Pli::INTERVAL_MIN
        {
            return Some(format!(
                "key frames are requested every {}; the interval must be at least {}",
                pli.interval,
                Pli::INTERVAL_MIN
            ));
        }
        if let Some(fec) = &self.fec
            && !(1..=fec.packets).contains(&fec.parity)
        {
            return Some(format!(
                "FEC: found {} parity packets for {} media packets; expected from 1 to {} parity packets",
                fec.parity, fec.packets, fec.packets
            ));
        }
        None
    }
}
