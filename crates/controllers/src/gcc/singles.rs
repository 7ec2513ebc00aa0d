//! Single packets as groups: the difference from each packet to the next.
//!
//! Draft 5.1 as Hoang's thesis of 2017 reads it (3.4.3.1: "the i-th packet"): bursts are not merged, and a difference is
//! available at once, not when the next packet arrives.

use super::groups::{Delta, SendClock, millis};
use tidegate_core::units::{RemoteTime, Size, Time};

#[derive(Clone, Copy)]
struct Single {
    send: i64,
    arrival: i64,
    size: u64,
}

/// Differences between consecutive packets.
#[derive(Clone)]
pub struct Singles {
    send_clock: SendClock,
    previous: Option<Single>,
}

impl Singles {
    /// Creates a state without packets; `send_clock` is the resolution of send times.
    #[must_use]
    pub fn new(send_clock: SendClock) -> Self {
        Self { send_clock, previous: None }
    }

    /// Takes the next packet and returns its difference from the last one; none for the first packet, and for one sent
    /// before the last.
    pub fn packet(&mut self, sent: Time, arrived: RemoteTime, size: Size) -> Option<Delta> {
        let clock = self.send_clock;
        let packet = Single { send: clock.ticks(sent), arrival: arrived.as_nanos(), size: size.as_bytes() };
        if self.previous.is_some_and(|previous| packet.send < previous.send) {
            return None;
        }
        let previous = self.previous.replace(packet)?;
        Some(Delta {
            arrival: millis(packet.arrival.saturating_sub(previous.arrival)),
            send: clock.millis(packet.send.saturating_sub(previous.send)),
            size: packet.size as f64 - previous.size as f64,
            arrived,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_a_group_by_itself() {
        let mut singles = Singles::new(SendClock::Exact);
        let mut packet = |send: f64, arrival: f64, size| {
            let nanos = |ms: f64| (ms * 1e6) as i64;
            let (sent, arrived) = (Time::from_nanos(nanos(send)), RemoteTime::from_nanos(nanos(arrival)));
            singles.packet(sent, arrived, Size::from_bytes(size))
        };
        assert_eq!(packet(0.0, 100.0, 1000), None);
        // sent at one instant, arrived in one burst: a difference nevertheless, and at once
        let delta = packet(0.0, 100.5, 700).expect("a difference");
        assert_eq!((delta.send, delta.arrival, delta.size), (0.0, 0.5, -300.0));
        assert_eq!(delta.arrived, RemoteTime::from_nanos(100_500_000));
        // an overtaken packet is used as it is
        assert_eq!(packet(33.0, 5000.0, 700).map(|delta| delta.variation()), Some(4866.5));
        assert_eq!(packet(66.0, 4990.0, 700).map(|delta| delta.arrival), Some(-10.0));
        assert_eq!(packet(50.0, 5010.0, 700), None, "sent before: left out");
        assert_eq!(packet(99.0, 5023.0, 700).map(|delta| delta.variation()), Some(0.0));
        for (send, arrival) in [(-1e300, 1e300), (1e300, -1e300), (0.0, 0.0), (1e300, 1e300)] {
            let _ = packet(send, arrival, u64::MAX);
        }
    }
}
