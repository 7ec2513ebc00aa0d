//! Received rate over a sliding window of arrival time.
//!
//! Draft 5.5, R_hat = sum of L(j) / T; aiortc `RateCounter`.

use super::{Arrivals, MILLI, Packet};
use tidegate_core::units::{RemoteTime, Size, Span};

/// Time by which the bits of a window are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Divisor {
    /// Length of the window (draft 5.5).
    Length,
    /// Milliseconds since the window's first packet, up to its length; the rate is in whole bit/s (aiortc
    /// active_window_size, round()).
    Elapsed,
}

/// Sliding window.
#[derive(Clone)]
pub struct Window {
    divisor: Divisor,
    /// Length, ns.
    length: i64,
    arrivals: Arrivals,
    /// Begin of the window, ns.
    origin: i64,
    /// Whether the window has given a rate since its begin.
    rated: bool,
}

impl Window {
    /// Creates an empty window.
    #[must_use]
    pub fn new(length: Span, divisor: Divisor) -> Self {
        let arrivals = Arrivals::default();
        Self { divisor, length: length.as_nanos(), arrivals, origin: i64::MIN, rated: true }
    }

    /// Takes a received packet. Starts anew if the far clock was set back by more than the window.
    pub fn packet(&mut self, arrived: RemoteTime, size: Size) {
        let arrival = arrived.as_nanos();
        if self.arrivals.is_clock_reset(arrival, self.length) {
            *self = Self::new(Span::from_nanos(self.length), self.divisor);
        }
        let newest = self.arrivals.packets.back().map_or(arrival, |last| last.arrival.max(arrival));
        // in whole milliseconds, as in aiortc: a window of 1000 ms includes the present millisecond
        let oldest = newest.saturating_sub(self.length);
        while self.arrivals.packets.front().is_some_and(|first| first.arrival <= oldest) {
            self.arrivals.pop();
        }
        self.origin = self.origin.max(oldest.saturating_add(MILLI));
        // aiortc begins a new window only when the old one goes from a rate to no rate
        if !self.arrivals.packets.is_empty() && newest > self.origin {
            self.rated = true;
        } else if self.rated {
            (self.origin, self.rated) = (arrival, false);
        }
        self.arrivals.push(Packet { arrival, sent: 0, size: size.as_bytes() });
    }

    /// Received rate as of the newest packet, bit/s; none while too few packets have arrived.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let newest = self.arrivals.packets.back()?.arrival;
        let bits = 8000.0 * self.arrivals.bytes as f64;
        match self.divisor {
            Divisor::Length => Some(bits / Span::from_nanos(self.length).as_millis_f64()),
            Divisor::Elapsed => {
                let passed = newest.saturating_sub(self.origin);
                (passed > 0).then(|| (bits / (passed.saturating_add(MILLI) as f64 / 1e6)).round_ties_even())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Run(Window);

    impl Run {
        fn packet(&mut self, arrival: i64, size: u64) -> Option<f64> {
            self.0.packet(RemoteTime::from_nanos(arrival * MILLI), Size::from_bytes(size));
            self.0.rate()
        }
    }

    #[test]
    fn aiortc_counts_whole_bits_over_the_milliseconds_so_far() {
        let mut run = Run(Window::new(Span::from_secs(1), Divisor::Elapsed));
        // the first rows of the public trace: 1200 bytes at 49, 59 and 68 ms
        assert_eq!(run.packet(49, 1200), None);
        assert_eq!(run.packet(59, 1200), Some(1_745_455.0));
        assert_eq!(run.packet(68, 1200), Some(1_440_000.0));
        // the window is full: 1000 ms, the packet of 1049 in and that of 49 out
        assert_eq!(run.packet(1049, 1200), Some(3.0 * 9600.0));
        // after silence it begins anew
        assert_eq!(run.packet(9000, 1200), None);
        assert_eq!(run.packet(9009, 1200), Some(1_920_000.0));
        // and after the far clock went back
        assert_eq!(run.packet(10, 1200), None);
    }

    #[test]
    fn the_draft_divides_by_its_window() {
        let mut run = Run(Window::new(Span::from_millis(500), Divisor::Length));
        assert_eq!(run.packet(0, 1000), Some(16_000.0));
        for i in 1..500 {
            run.packet(i * 10, 1000);
        }
        assert_eq!(run.packet(5000, 1000), Some(800_000.0));
        for arrival in [i64::MIN / MILLI, i64::MAX / MILLI, 0, 5] {
            for size in [u64::MAX, 0] {
                assert!(run.packet(arrival, size).is_none_or(f64::is_finite));
            }
        }
    }
}
