//! Received packets, and the estimates from them.

use tidegate_core::Span;

/// Received packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packet {
    /// Sequence number in the flow, unwrapped.
    pub sequence: i64,
    /// Size, bytes, as rates count them.
    pub size: u64,
    /// Departure by the sender's clock, ns.
    pub sent: i64,
    /// Arrival by the receiver's clock, ns.
    pub arrival: i64,
    /// Whether the packet was marked on its way (ECN CE).
    pub marked: bool,
}

impl Packet {
    /// One-way delay plus the offset of the two clocks, ns; only its changes have a meaning.
    #[must_use]
    pub const fn delay(&self) -> i64 {
        self.arrival.wrapping_sub(self.sent)
    }
}

/// Estimates of RFC 8698 section 5.1 at an update; with `None`, the previous estimate stays.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Signals {
    /// Queueing delay after the minimum filter (d_queue).
    pub queueing: Option<Span>,
    /// Receive rate, bit/s (r_recv).
    pub receive_rate: Option<f64>,
    /// Part of the window's packets that did not arrive.
    pub loss: Option<f64>,
    /// Part of the window's packets that was marked.
    pub marks: Option<f64>,
    /// Loss intervals, once there was a loss.
    pub losses: Option<Losses>,
    /// Whether the window allows accelerated ramp-up (rmode 0).
    pub ramp_up: bool,
}

/// Loss intervals, in packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Losses {
    /// Mean loss interval (loss_int).
    pub mean: f64,
    /// Packets since the last loss.
    pub since: f64,
}
