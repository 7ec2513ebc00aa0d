//! Segmentation offload (GSO, TSO): segments leave in bursts, as the sending host hands them to its network interface.
//!
//! Sizes of bursts and the wait for a larger one are those of Linux 6.18 (`net/ipv4/tcp_output.c`), whose functions
//! are named here. A burst is paced as a whole. The receiver acknowledges its segments each on their own or every
//! second one: that a host also joins arriving segments (GRO) is left out.

use super::sack::Scoreboard;
use super::sender::{Phase, TcpSender};
use super::window::Window;
use tidegate_core::{Span, Time};

/// The largest burst in bytes (`GSO_LEGACY_MAX_SIZE`).
const GSO_MAX_SIZE: f64 = 65_536.0;
/// Bursts a second at the pacing rate: each takes 2^-10 s (`sk_pacing_shift`).
const BURSTS: f64 = 1024.0;
/// The smallest burst in segments (`tcp_min_tso_segs`).
pub(super) const MIN_TSO_SEGS: u32 = 2;
/// The time by which the smallest round trip halves the allowance for near hosts: 2^9 us (`tcp_tso_rtt_log`).
const TSO_RTT: Span = Span::from_micros(512);
/// The part of a window that leaves without waiting for more (`tcp_tso_win_divisor`).
const TSO_WIN_DIVISOR: f64 = 3.0;
/// The time after which a flow no longer waits: since the last segment, and until the next acknowledgement.
const RECENT: Span = Span::from_millis(1);
/// Pacing rate over window a round trip: in the first half of slow start, and afterwards (`tcp_pacing_ss_ratio`,
/// `tcp_pacing_ca_ratio`).
const PACING_SS_RATIO: f64 = 2.0;
const PACING_CA_RATIO: f64 = 1.2;

/// Segments in a burst that takes about 1 ms at a rate in bytes a second, with `extra` bytes more.
pub(super) fn segments(rate: f64, extra: f64, segment: f64, least: u32) -> u32 {
    let bytes = (rate / BURSTS + extra).min(GSO_MAX_SIZE);
    ((bytes / segment) as u32).max(least)
}

/// Bytes by which bursts to a near host are larger (`tcp_tso_autosize`).
fn allowance(min_rtt: Option<Span>) -> f64 {
    let halvings = min_rtt.unwrap_or_default().as_nanos() / TSO_RTT.as_nanos();
    GSO_MAX_SIZE / (1_u64 << halvings.clamp(0, 32)) as f64
}

/// The rate that sizes the bursts of a sender that is not paced (`tcp_update_pacing_rate`), bytes a second.
fn unpaced_rate(window: &Window, under_way: u64, srtt: Option<Span>) -> f64 {
    let Some(srtt) = srtt.filter(|&srtt| srtt > Span::ZERO) else { return f64::INFINITY };
    let is_starting = window.cwnd < window.ssthresh / 2.0;
    let ratio = if is_starting { PACING_SS_RATIO } else { PACING_CA_RATIO };
    ratio * window.cwnd.max(under_way as f64) / srtt.as_secs_f64()
}

impl TcpSender {
    /// The number of segments that may leave at once; `None` if they wait for more.
    pub(super) fn burst(&mut self, now: Time) -> Option<u32> {
        if !self.settings.offload {
            return Some(1);
        }
        let srtt = self.rtt.srtt();
        let rate = self.control.pacing_rate(&self.window, srtt);
        let rate = rate.unwrap_or_else(|| unpaced_rate(&self.window, self.flight.unacknowledged(), srtt));
        let least = self.control.min_tso_segs();
        let most = segments(rate, allowance(self.rtt.least()), self.window.segment, least);
        // at most half the window (`tcp_cwnd_test`)
        let most = most.min((self.window.segments() / 2.0) as u32).max(1);
        self.defers = self.should_defer(now, most);
        (!self.defers).then_some(most)
    }

    /// Whether the next burst waits for an acknowledgement, which would make it larger (`tcp_tso_should_defer`).
    fn should_defer(&self, now: Time, most: u32) -> bool {
        if self.phase != Phase::Open || self.pacer.free_from().max(self.last_sent) + RECENT < now {
            return false;
        }
        let (Some(first), Some(srtt)) = (self.flight.get(0), self.rtt.srtt()) else { return false };
        let under_way =
            self.board.as_ref().map_or_else(|| self.flight.outstanding(), Scoreboard::pipe) as f64;
        let offered = self.receive_window as f64;
        let room = (self.window.cwnd - under_way).min(offered - self.flight.unacknowledged() as f64);
        let left = (self.written - self.flight.max()) as f64;
        if room >= left.min(f64::from(most) * self.window.segment)
            || room >= self.window.cwnd.min(offered) / TSO_WIN_DIVISOR
        {
            return false;
        }
        first.sent + srtt - now <= (srtt / 2).min(RECENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_a_millisecond_and_has_at_most_64_kilobytes() {
        // 100 Mbit/s: 12 207 bytes in 2^-10 s
        assert_eq!(segments(12.5e6, 0.0, 1460.0, 2), 8);
        assert_eq!(segments(0.1e6, 0.0, 1460.0, 2), 2);
        assert_eq!(segments(f64::INFINITY, 0.0, 1460.0, 2), 44);
        assert_eq!(segments(12.5e6, 65_536.0, 1460.0, 2), 44);
    }

    #[test]
    fn hosts_within_milliseconds_get_larger_bursts() {
        let bytes = |micros| allowance(Some(Span::from_micros(micros)));
        assert_eq!([0, 511, 512, 1024, 3072].map(bytes), [65_536.0, 65_536.0, 32_768.0, 16_384.0, 1024.0]);
        assert!(bytes(40_000) < 1e-3);
    }

    #[test]
    fn a_sender_that_is_not_paced_has_twice_the_window_a_round_trip_at_first_and_then_six_fifths() {
        let mut window = Window::new(1000, 10);
        let rtt = Some(Span::from_millis(100));
        assert_eq!(unpaced_rate(&window, 0, rtt), 200_000.0);
        window.ssthresh = 20_000.0;
        assert_eq!(unpaced_rate(&window, 0, rtt), 120_000.0);
        assert_eq!(unpaced_rate(&window, 15_000, rtt), 180_000.0);
        assert_eq!(unpaced_rate(&window, 0, None), f64::INFINITY);
    }
}
