//! Received rate R_hat: its three estimators, and the list of packets that two of them use.

pub mod bayes;
pub mod robust;
pub mod window;

use bayes::Bayes;
use robust::Robust;
use std::collections::VecDeque;
use tidegate_core::units::{RemoteTime, Size, Time};
use window::Window;

/// Number of nanoseconds in a millisecond.
const MILLI: i64 = 1_000_000;

/// Estimator of the received rate.
#[derive(Clone)]
pub enum Received {
    /// libwebrtc since 2022.
    Robust(Robust),
    /// Draft and aiortc.
    Window(Window),
    /// libwebrtc before 2022.
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

    /// Tells the estimator that an application-limited time has ended (libwebrtc SetAlrEndedTime).
    pub fn limit_ended(&mut self) {
        if let Self::Bayesian(bayes) = self {
            bayes.expect_change();
        }
    }

    /// Received rate as of the newest packet, bit/s; none while too few packets have arrived.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Robust(robust) => robust.rate(),
            Self::Window(window) => window.rate(),
            Self::Bayesian(bayes) => bayes.rate(),
        }
    }
}

/// Received packet; times in ns.
#[derive(Clone, Copy)]
struct Packet {
    arrival: i64,
    sent: i64,
    size: u64,
}

/// Last packets in order of arrival, and the sum of their sizes.
#[derive(Clone, Default)]
struct Arrivals {
    packets: VecDeque<Packet>,
    bytes: u128,
}

impl Arrivals {
    /// Whether a far clock that reads `arrival` has been set back: by more than `longest` ns before the newest packet.
    fn is_clock_reset(&self, arrival: i64, longest: i64) -> bool {
        self.packets.back().is_some_and(|last| last.arrival.saturating_sub(arrival) > longest)
    }

    fn push(&mut self, packet: Packet) {
        self.bytes += u128::from(packet.size);
        self.packets.push_back(packet);
        // reports may overtake each other: keep the order of arrival
        let mut index = self.packets.len() - 1;
        while index > 0 && self.packets[index].arrival < self.packets[index - 1].arrival {
            self.packets.swap(index, index - 1);
            index -= 1;
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
