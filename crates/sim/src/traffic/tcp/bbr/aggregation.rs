//! Aggregation of acknowledgements: the data acknowledged in excess of the bandwidth (`bbr_update_ack_aggregation` of
//! Linux's `net/ipv4/tcp_bbr.c`). The window allows for it, so that the sender goes on while acknowledgements are
//! delayed.

use tidegate_core::Time;

/// Rounds of each of the two windows of the largest excess, so that the last 5 to 10 rounds count
/// (`bbr_extra_acked_win_rtts`).
const EXTRA_ACKED_WIN_RTTS: u32 = 5;
/// Limit of the excess, as the time in seconds in which it arrives at the bandwidth (`bbr_extra_acked_max_us`).
const EXTRA_ACKED_MAX: f64 = 0.1;

/// The aggregation state of one connection; sizes in bytes, rates in bytes a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    since: Time,
    acked: f64,
    extra: [f64; 2],
    rounds: u32,
    current: usize,
}

impl Aggregation {
    /// Takes in `acked` bytes that were acknowledged at once, with the expected `bandwidth` and the window `cwnd`.
    pub(super) fn acked(&mut self, now: Time, acked: f64, bandwidth: f64, cwnd: f64, round_start: bool) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= EXTRA_ACKED_WIN_RTTS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.extra[self.current] = 0.0;
            }
        }
        let mut expected = bandwidth * now.saturating_since(self.since).as_secs_f64();
        if self.acked <= expected {
            (self.acked, self.since, expected) = (0.0, now, 0.0);
        }
        self.acked += acked;
        let extra = (self.acked - expected).min(cwnd);
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    /// The excess, which the window allows for.
    pub(super) fn extra(&self, bandwidth: f64) -> f64 {
        self.extra[0].max(self.extra[1]).min(bandwidth * EXTRA_ACKED_MAX)
    }

    /// Restarts the measurement after idle time of the sender.
    pub(super) fn restart(&mut self, now: Time) {
        (self.since, self.acked) = (now, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Span;

    /// Feeds 1000 bytes a millisecond, half of the expected rate: spaced evenly, each acknowledgement is the excess; in
    /// bunches of ten it is the bunch, for at most ten rounds.
    #[test]
    fn a_bunch_counts_for_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        let mut now = Time::from_secs(1);
        let mut feed = |aggregation: &mut Aggregation, bunch: i64, rounds: u32| {
            for _ in 0..rounds {
                for ack in 0..20 / bunch {
                    now += Span::from_millis(bunch);
                    aggregation.acked(now, 1000.0 * bunch as f64, 2e6, 40_000.0, ack == 0);
                }
            }
            aggregation.extra(1e6)
        };
        assert_eq!(feed(&mut aggregation, 1, 5), 1000.0);
        assert_eq!(feed(&mut aggregation, 10, 1), 10_000.0);
        assert_eq!(feed(&mut aggregation, 1, 4), 10_000.0);
        assert_eq!(feed(&mut aggregation, 1, 6), 1000.0);
        aggregation.acked(now, 1e6, 1e6, 40_000.0, false);
        assert_eq!(aggregation.extra(1e5), 10_000.0, "no more than 100 ms");
        assert_eq!(aggregation.extra(1e6), 40_000.0, "nor than the window");
    }
}
