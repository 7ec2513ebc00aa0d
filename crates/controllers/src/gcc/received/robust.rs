//! Received rate as libwebrtc measures it since 2022: over a window of packets without its largest gap, and at most the
//! rate at which they were sent.
//!
//! libwebrtc `robust_throughput_estimator.cc`.

use super::{Arrivals, MILLI, Packet};
use std::collections::VecDeque;
use tidegate_core::units::{RemoteTime, Size, Time};

/// Shortest duration of a full window, ns (libwebrtc).
const MIN_WINDOW_DURATION: i64 = 1000 * MILLI;
/// Longest duration of the window, ns (libwebrtc).
const MAX_WINDOW_DURATION: i64 = 5000 * MILLI;
/// Smallest number of packets in a full window (libwebrtc).
const WINDOW_PACKETS: usize = 20;
/// Largest number of packets in the window (libwebrtc).
const MAX_WINDOW_PACKETS: usize = 500;
/// Number of packets before the first rate (libwebrtc).
const REQUIRED_PACKETS: usize = 10;

/// Robust estimator (libwebrtc `RobustThroughputEstimator`).
#[derive(Clone)]
pub struct Robust {
    arrivals: Arrivals,
    /// Latest send time of a packet that has left the window, ns.
    discarded: i64,
}

impl Default for Robust {
    fn default() -> Self {
        let packets = VecDeque::with_capacity(MAX_WINDOW_PACKETS + 1);
        Self { arrivals: Arrivals { packets, bytes: 0 }, discarded: i64::MIN }
    }
}

impl Robust {
    /// Takes a received packet. Starts anew if the far clock was set back by more than the window.
    pub fn packet(&mut self, sent: Time, arrived: RemoteTime, size: Size) {
        let packet = Packet { arrival: arrived.as_nanos(), sent: sent.as_nanos(), size: size.as_bytes() };
        if self.arrivals.is_clock_reset(packet.arrival, MAX_WINDOW_DURATION) {
            (self.arrivals.bytes, self.discarded) = (0, i64::MIN);
            self.arrivals.packets.clear();
        }
        self.arrivals.push(packet);
        let ends =
            |arrivals: &Arrivals| (arrivals.packets.front().copied(), arrivals.packets.back().copied());
        while let (Some(first), Some(last)) = ends(&self.arrivals) {
            let length = last.arrival.saturating_sub(first.arrival);
            let count = self.arrivals.packets.len();
            if count <= MAX_WINDOW_PACKETS
                && length <= MAX_WINDOW_DURATION
                && (count <= WINDOW_PACKETS || length <= MIN_WINDOW_DURATION)
            {
                break;
            }
            self.arrivals.pop();
            self.discarded = self.discarded.max(first.sent);
        }
    }

    /// Received rate as of the newest packet, bit/s; none while too few packets have arrived.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let packets = &self.arrivals.packets;
        let (first, last) = (packets.front()?, packets.back()?);
        if packets.len() < REQUIRED_PACKETS {
            return None;
        }
        let (mut largest, mut second) = (0_i64, 0_i64);
        let mut previous = first.arrival;
        let (mut first_sent, mut last_sent, mut last_size) = (i64::MAX, i64::MIN, 0);
        let (mut sent_bytes, mut sent_packets) = (0_u128, 0);
        for packet in packets {
            let gap = packet.arrival.saturating_sub(previous);
            previous = packet.arrival;
            if gap > largest {
                second = largest;
                largest = gap;
            } else if gap > second {
                second = gap;
            }
            // sent before a packet that has already left the window: reordered, and too old to count
            if packet.sent < self.discarded {
                continue;
            }
            if packet.sent > last_sent {
                (last_sent, last_size) = (packet.sent, packet.size);
            }
            first_sent = first_sent.min(packet.sent);
            sent_bytes += u128::from(packet.size);
            sent_packets += 1;
        }
        // n packets span n - 1 intervals: the first one's size does not count on arrival, the last one's not on
        // sending. The largest gap, which may be a stall of the network, is cut to the second largest.
        let rate = |bytes: u128, nanos: i64| bytes as f64 * 8e9 / nanos.max(MILLI) as f64;
        let duration = last.arrival.saturating_sub(first.arrival) - largest + second;
        let received = rate(self.arrivals.bytes - u128::from(first.size), duration);
        if sent_packets < REQUIRED_PACKETS {
            return Some(received);
        }
        let sent = rate(sent_bytes - u128::from(last_size), last_sent.saturating_sub(first_sent));
        Some(received.min(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Run(Robust);

    impl Run {
        fn packet(&mut self, sent: i64, arrival: i64, size: u64) -> Option<f64> {
            let arrived = RemoteTime::from_nanos(arrival * MILLI);
            self.0.packet(Time::from_millis(sent), arrived, Size::from_bytes(size));
            self.0.rate()
        }

        fn len(&self) -> usize {
            self.0.arrivals.packets.len()
        }
    }

    #[test]
    fn the_robust_rate_is_exact_for_a_steady_stream() {
        let mut run = Run::default();
        for i in 0..9 {
            assert_eq!(run.packet(i * 10, i * 10 + 7, 1250), None, "ten packets are required");
        }
        for i in 9..1000 {
            let rate = run.packet(i * 10, i * 10 + 7, 1250).expect("enough");
            assert!((rate - 1e6).abs() < 1e-3, "{rate} at {i}");
            assert!(run.len() <= 101);
        }
    }

    #[test]
    fn a_stall_does_not_lower_the_robust_rate_nor_does_its_burst_raise_it() {
        let mut run = Run::default();
        (0..200).for_each(|i| _ = run.packet(i * 10, i * 10, 1250));
        // half a second of stall, then everything at once
        let burst = (200..250).map(|i| run.packet(i * 10, 2490, 1250).expect("enough"));
        let rates: Vec<f64> = burst.collect();
        assert!(rates.iter().all(|rate| (0.98e6..=1.0001e6).contains(rate)), "{rates:?}");
    }

    #[test]
    fn the_window_obeys_its_bounds_and_a_clock_set_back_empties_it() {
        let mut run = Run::default();
        (0..5000).for_each(|i| _ = run.packet(i, i / 10, 100));
        assert_eq!(run.len(), 500);
        (0..50).for_each(|i| _ = run.packet(5000 + i * 400, 5000 + i * 400, 100));
        assert_eq!(run.len(), 13, "5 s at 400 ms");
        assert_eq!(run.packet(30_000, 1000, 100), None);
        assert_eq!((run.len(), run.0.arrivals.bytes), (1, 100));
        for arrival in [i64::MIN / MILLI, i64::MAX / MILLI, 0, 5] {
            for size in [u64::MAX, 0] {
                assert!(run.packet(arrival, arrival, size).is_none_or(f64::is_finite));
            }
        }
    }
}
