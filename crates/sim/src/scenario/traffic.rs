//! Traffic that competes with media: UDP and TCP.

use crate::traffic::tcp::{SackRecovery, Variant, Workload};
use crate::traffic::udp::Pattern;
use serde::Deserialize;
use tidegate_core::{Rate, Span, Time};

/// UDP cross traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSpec {
    /// Pattern of the sending times.
    pub pattern: Pattern,
    /// Mean rate while on.
    pub rate: Rate,
    /// Bytes on the wire of a packet.
    pub packet_size: u32,
    /// Rates over time: each holds from the time beside it; empty: `rate` for ever.
    #[serde(default)]
    pub schedule: Vec<(Time, Rate)>,
}

/// TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSpec {
    /// Congestion control.
    pub algorithm: Variant,
    /// Its way to find and repair losses, if not its algorithm's.
    #[serde(default)]
    pub recovery: Option<SackRecovery>,
    /// Its workload.
    pub workload: Workload,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Minimum retransmission time-out; by default that of its way to repair losses.
    #[serde(default)]
    pub min_rto: Option<Span>,
    /// Whether only every second segment is acknowledged (RFC 5681 section 4.2).
    pub delayed_ack: bool,
    /// Whether it begins with a handshake: SYN and SYN-ACK (RFC 9293 section 3.5).
    pub handshake: bool,
    /// Whether its SYN segments carry options.
    #[serde(default = "super::yes")]
    pub options: bool,
    /// Whether CUBIC has HyStart.
    #[serde(default = "super::yes")]
    pub hystart: bool,
    /// Whether data are sent ECN-capable (RFC 3168).
    #[serde(default)]
    pub ecn: bool,
    /// Whether segments carry timestamps (RFC 7323).
    #[serde(default)]
    pub timestamps: bool,
    /// Whether segments leave in bursts (segmentation offload).
    #[serde(default)]
    pub offload: bool,
    /// Receive window in bytes.
    pub receive_window: u64,
    /// Bytes on the wire of a full segment.
    pub packet_size: u32,
}
