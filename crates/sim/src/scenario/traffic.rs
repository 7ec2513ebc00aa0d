//! Traffic that competes with media: UDP and TCP.

use serde::Deserialize;
use tidegate_core::{Rate, Span, Time};

/// UDP cross traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSpec {
    /// When packets are sent.
    pub pattern: UdpPattern,
    /// Mean rate while on.
    pub rate: Rate,
    /// Bytes on the wire of a packet.
    pub packet_size: u32,
    /// From each time on another rate; empty: `rate` for ever.
    #[serde(default)]
    pub schedule: Vec<(Time, Rate)>,
}

/// When UDP packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpPattern {
    /// At equal distances.
    Cbr,
    /// At exponential distances.
    Poisson,
    /// At equal distances while on; times on and off are exponential.
    OnOff {
        /// Mean time on.
        on: Span,
        /// Mean time off.
        off: Span,
    },
}

/// TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSpec {
    /// Congestion control.
    pub algorithm: TcpAlgorithm,
    /// What it carries.
    pub workload: TcpWorkload,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Least retransmission time-out (RFC 6298: 1 s).
    pub min_rto: Span,
    /// Whether every second segment is acknowledged (RFC 5681 section 4.2).
    pub delayed_ack: bool,
    /// Whether it begins with SYN and its answer (RFC 9293 section 3.5).
    pub handshake: bool,
    /// Whether its SYNs carry options.
    #[serde(default = "super::yes")]
    pub options: bool,
    /// Whether CUBIC has HyStart.
    #[serde(default = "super::yes")]
    pub hystart: bool,
    /// Whether data are sent ECN-capable (RFC 3168).
    #[serde(default)]
    pub ecn: bool,
    /// Receive window in bytes.
    pub receive_window: u64,
    /// Bytes on the wire of a full segment.
    pub packet_size: u32,
}

/// TCP congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TcpAlgorithm {
    /// Fast retransmit without fast recovery.
    Tahoe,
    /// RFC 5681.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 6675.
    Sack,
    /// RFC 9438 (with SACK).
    Cubic,
    /// BBR version 1 (with SACK).
    Bbr,
    /// RFC 8257 (with SACK).
    Dctcp,
    /// DCTCP for L4S.
    Prague,
}

/// What a TCP connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpWorkload {
    /// Always more data.
    Long,
    /// One download of so many bytes.
    File(u64),
    /// Downloads of uniform size, exponential idle times between (RFC 8868 section 5.1).
    Web {
        /// Least bytes.
        min: u64,
        /// Most bytes.
        max: u64,
        /// Mean idle time.
        idle: Span,
    },
}
