//! Reno's congestion avoidance (RFC 5681 section 3.1).

use super::Increase;
use super::window::{CongestionControl, Window};
use tidegate_core::{Span, Time};

/// Reno: the window grows by a segment in each round trip.
#[derive(Debug)]
pub(super) struct Reno {
    increase: Increase,
    /// Bytes acknowledged since the window grew last, with [`Increase::PerByte`].
    acked: f64,
}

impl Reno {
    pub(super) fn new(increase: Increase) -> Self {
        Self { increase, acked: 0.0 }
    }
}

impl CongestionControl for Reno {
    fn avoid(&mut self, window: &mut Window, _now: Time, acked: f64, _srtt: Option<Span>) {
        match self.increase {
            Increase::PerAck => window.cwnd += window.segment * window.segment / window.cwnd,
            Increase::PerByte => {
                self.acked += acked;
                if self.acked >= window.cwnd {
                    self.acked -= window.cwnd;
                    window.cwnd += window.segment;
                }
            }
        }
    }

    fn reduced(&mut self, _window: &Window) {
        self.acked = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reno(increase: Increase, initial_window: u32) -> (Reno, Window) {
        (Reno::new(increase), Window::new(1000, initial_window))
    }

    #[test]
    fn slow_start_doubles_and_never_counts_more_than_a_segment() {
        let (mut reno, mut window) = reno(Increase::PerAck, 2);
        for expected in [4000.0, 8000.0, 16_000.0] {
            for _ in 0..(window.cwnd / 1000.0) as u32 {
                reno.grow(&mut window, Time::ZERO, 1000, None);
            }
            assert_eq!(window.cwnd, expected);
        }
        reno.grow(&mut window, Time::ZERO, 5000, None);
        assert_eq!(window.cwnd, 17_000.0, "L = 1");
        reno.grow(&mut window, Time::ZERO, 10, None);
        assert_eq!(window.cwnd, 17_010.0, "no more than was acknowledged");
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_per_round_trip() {
        for (increase, covers, expected) in
            [(Increase::PerAck, 1, 1.0), (Increase::PerAck, 2, 0.5), (Increase::PerByte, 2, 1.0)]
        {
            let (mut reno, mut window) = reno(increase, 20);
            window.ssthresh = 1000.0;
            for _ in 0..10 {
                for _ in 0..(window.cwnd / 1000.0) as u64 / covers {
                    reno.grow(&mut window, Time::ZERO, 1000 * covers, None);
                }
            }
            let growth = (window.cwnd / 1000.0 - 20.0) / 10.0;
            assert!((growth / expected - 1.0).abs() < 0.11, "{increase:?} {covers}: {growth}");
        }
    }

    #[test]
    fn a_loss_halves_the_flight_and_a_timeout_starts_over() {
        let (mut reno, mut window) = reno(Increase::PerAck, 20);
        reno.loss(&mut window, 22_000);
        assert_eq!(window.ssthresh, 10_000.0, "limited transmit does not count");
        reno.loss(&mut window, 12_000);
        assert_eq!(window.ssthresh, 6000.0);
        reno.timeout(&mut window, Time::ZERO, Some(3000), 0);
        assert_eq!((window.cwnd, window.ssthresh), (1000.0, 2000.0), "at least two segments");
        window.ssthresh = 7000.0;
        reno.timeout(&mut window, Time::ZERO, None, 0);
        assert_eq!((window.cwnd, window.ssthresh), (1000.0, 7000.0));
    }

    #[test]
    fn a_restart_never_raises_the_window() {
        let (mut reno, mut window) = reno(Increase::PerAck, 4);
        window.cwnd = 2000.0;
        reno.restart(&mut window);
        assert_eq!(window.cwnd, 2000.0);
        window.cwnd = 90_000.0;
        reno.restart(&mut window);
        assert_eq!(window.cwnd, 4000.0);
    }
}
