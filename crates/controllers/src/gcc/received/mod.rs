//! The received rate R_hat, how fast what was sent arrives: the ways in which it is measured, and the packets that
//! all but one of them go by.

pub mod bayes;
pub mod robust;
pub mod window;

use bayes::Bayes;
use robust::Robust;
use std::collections::VecDeque;
use tidegate_core::units::{RemoteTime, Size, Time};
use window::Window;

/// Nanoseconds in a millisecond.
const MILLI: i64 = 1_000_000;

/// How the received rate is measured.
#[derive(Clone)]
pub enum Received {
    /// libwebrtc's since 2022.
    Robust(Robust),
    /// The draft's and aiortc's.
    Window(Window),
    /// libwebrtc's before.
    Bayesian(Bayes),
}

impl Received {
    /// Takes a received packet.
    pub fn packet(&mut self, sent: Time, arrived: RemoteTime, size: Size) {
        match self {
            Self::Robust(robust) => robust.packet(sent, arrived, size),
            Self::Window(window) => window.packet(arrived, size),
            Self::Bayesian(bayes) => bayes.packet(arrived.as_nanos(), size.as_bytes()),
        }
    }

    /// The application was limited until now (libwebrtc SetAlrEndedTime).
    pub fn limit_ended(&mut self) {
        if let Self::Bayesian(bayes) = self {
            bayes.expect_change();
        }
    }

    /// The received rate in bit/s as of the newest packet; none while too little has arrived.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Robust(robust) => robust.rate(),
            Self::Window(window) => window.rate(),
            Self::Bayesian(bayes) => bayes.rate(),
        }
    }
}

/// A packet that has arrived; times in ns.
#[derive(Clone, Copy)]
struct Packet {
    arrival: i64,
    sent: i64,
    size: u64,
}

/// The last packets in order of arrival, and what they come to.
#[derive(Clone, Default)]
struct Arrivals {
    packets: VecDeque<Packet>,
    bytes: u128,
}

impl Arrivals {
    /// Whether a far clock that reads `arrival` is a new clock: it went back by more than `longest` ns.
    fn before_all(&self, arrival: i64, longest: i64) -> bool {
        self.packets.back().is_some_and(|last| last.arrival.saturating_sub(arrival) > longest)
    }

    fn push(&mut self, packet: Packet) {
        self.bytes += u128::from(packet.size);
        self.packets.push_back(packet);
        // reports may overtake each other: keep the order of arrival
        let mut at = self.packets.len() - 1;
        while at > 0 && self.packets[at].arrival < self.packets[at - 1].arrival {
            self.packets.swap(at, at - 1);
            at -= 1;
        }
        debug_assert!(self.packets.iter().is_sorted_by_key(|packet| packet.arrival), "in order of arrival");
    }

    fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u128::from(packet.size);
        debug_assert!(!self.packets.is_empty() || self.bytes == 0, "{} bytes in no packet", self.bytes);
        Some(packet)
    }
}
