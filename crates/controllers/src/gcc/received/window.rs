//! The received rate over a sliding window of arrival time.
//!
//! Draft 5.5, R_hat = sum of L(j) / T; aiortc `RateCounter`.

use super::{Arrivals, MILLI, Packet};
use tidegate_core::units::{RemoteTime, Size, Span};

/// By what the bits of a window are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// Its length (draft 5.5).
    Whole,
    /// The milliseconds that have passed since its first packet, up to its length; in whole bit/s (aiortc
    /// active_window_size, round()).
    Passed,
}

/// The window.
#[derive(Clone)]
pub struct Window {
    over: Over,
    /// ns.
    length: i64,
    arrivals: Arrivals,
    /// Where it begins; and whether it gave a rate since it was begun.
    origin: i64,
    rated: bool,
}

impl Window {
    /// An empty window.
    #[must_use]
    pub fn new(length: Span, over: Over) -> Self {
        let arrivals = Arrivals::default();
        Self { over, length: length.as_nanos(), arrivals, origin: i64::MIN, rated: true }
    }

    /// Takes a received packet. A far clock that went back by more than the window is a new clock.
    pub fn packet(&mut self, arrived: RemoteTime, size: Size) {
        let arrival = arrived.as_nanos();
        if self.arrivals.before_all(arrival, self.length) {
            *self = Self::new(Span::from_nanos(self.length), self.over);
        }
        let newest = self.arrivals.packets.back().map_or(arrival, |last| last.arrival.max(arrival));
        // in whole milliseconds, as there: a window of 1000 ms ends with the present one
        let oldest = newest.saturating_sub(self.length);
        while self.arrivals.packets.front().is_some_and(|first| first.arrival <= oldest) {
            self.arrivals.pop();
        }
        self.origin = self.origin.max(oldest.saturating_add(MILLI));
        // aiortc begins a window anew only when it goes from some rate to none
        if !self.arrivals.packets.is_empty() && newest > self.origin {
            self.rated = true;
        } else if self.rated {
            (self.origin, self.rated) = (arrival, false);
        }
        self.arrivals.push(Packet { arrival, sent: 0, size: size.as_bytes() });
    }

    /// The received rate in bit/s as of the newest packet; none while too little has arrived.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let newest = self.arrivals.packets.back()?.arrival;
        let bits = 8000.0 * self.arrivals.bytes as f64;
        match self.over {
            Over::Whole => Some(bits / Span::from_nanos(self.length).as_millis_f64()),
            Over::Passed => {
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
        let mut run = Run(Window::new(Span::from_secs(1), Over::Passed));
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
        let mut run = Run(Window::new(Span::from_millis(500), Over::Whole));
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
