//! What is known of a packet that has arrived, and what many of them say.

use tidegate_core::Span;

/// A packet that has arrived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packet {
    /// Its number in the flow, unwrapped.
    pub sequence: i64,
    /// Bytes, as rates count them.
    pub size: u64,
    /// When it was sent, by the sender's clock, in ns.
    pub sent: i64,
    /// When it arrived, by the receiver's clock, in ns.
    pub arrival: i64,
    /// Whether it was marked on its way (ECN CE).
    pub marked: bool,
}

impl Packet {
    /// The one-way delay with the difference of the two clocks in it, in ns: only its changes mean anything.
    #[must_use]
    pub const fn delay(&self) -> i64 {
        self.arrival.wrapping_sub(self.sent)
    }
}

/// The estimates of RFC 8698 section 5.1 at an update. What is `None` stays as it was.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Signals {
    /// Queueing delay behind the minimum filter (d_queue).
    pub queueing: Option<Span>,
    /// Receive rate in bit/s (r_recv).
    pub receive_rate: Option<f64>,
    /// Part of the packets of the window that did not arrive.
    pub loss: Option<f64>,
    /// Part of them that was marked.
    pub marks: Option<f64>,
    /// How losses follow each other, once there was one.
    pub losses: Option<Losses>,
    /// Whether nothing in the window speaks against accelerated ramp-up (rmode 0).
    pub ramp_up: bool,
}

/// How losses follow each other, in packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Losses {
    /// The mean loss interval (loss_int).
    pub mean: f64,
    /// Packets since the last loss.
    pub since: f64,
}
