//! Loss detection and loss rate. A missing packet is lost after a reordering window (RFC 8298 section 4.1.2.4;
//! draft-ietf-ccwg-rfc8298bis-screamv2 sections "Detecting Lost Data Units" and "Link layer losses and rate policers").

use tidegate_core::control::Report;
use tidegate_core::{Span, Time};

/// Longest reordering window before the first round-trip time.
const MAX_WINDOW_WITHOUT_RTT: Span = Span::from_secs(1);

/// Missing packets, and the reordering window.
#[derive(Clone, Debug)]
pub struct Losses {
    /// Sequence number of each missing packet, and the time of the report.
    missing: Vec<(u64, Time)>,
    window: Span,
}

/// Packets counted from a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Packets that have become lost.
    pub lost: u32,
    /// Received packets.
    pub arrived: u32,
}

impl Losses {
    /// Creates a detector with a first reordering window.
    #[must_use]
    pub fn new(window: Span) -> Self {
        Self { missing: Vec::new(), window }
    }

    /// Takes a report. A missing packet that arrives late extends the window to its delay, up to a smoothed round trip (the
    /// bound of RACK's window in RFC 8985 section 7.1).
    pub fn take(&mut self, now: Time, report: &Report, rtt: Option<f64>) -> Counted {
        let mut counted = Counted::default();
        let max_window = rtt.map_or(MAX_WINDOW_WITHOUT_RTT, Span::from_secs_f64);
        for packet in &report.packets {
            let position = self.missing.iter().position(|&(sequence, _)| sequence == packet.sequence);
            match (packet.arrival, position) {
                (None, None) => self.missing.push((packet.sequence, now)),
                (None, Some(_)) => {}
                (Some(_), position) => {
                    counted.arrived += 1;
                    if let Some(index) = position {
                        let (_, since) = self.missing.swap_remove(index);
                        self.window = self.window.max(now - since).min(max_window.max(self.window));
                    }
                }
            }
        }
        let before = self.missing.len();
        let window = self.window;
        self.missing.retain(|&(_, since)| now - since < window);
        counted.lost = (before - self.missing.len()) as u32;
        counted
    }
}

/// Moving average of the share of lost packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossRate(f64);

impl LossRate {
    /// Present average, from 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// Takes the packets counted from a report; `alpha` is the weight of a packet.
    pub fn take(&mut self, counted: Counted, alpha: f64) {
        for _ in 0..counted.arrived {
            self.0 *= 1.0 - alpha;
        }
        for _ in 0..counted.lost {
            self.0 = (1.0 - alpha) * self.0 + alpha;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::control::PacketResult;
    use tidegate_core::{Ecn, RemoteTime, Size, math};

    fn report(packets: &[(u64, bool)]) -> Report {
        let packets = packets.iter().map(|&(sequence, arrived)| PacketResult {
            sequence,
            size: Size::from_bytes(1000),
            sent: Time::ZERO,
            arrival: arrived.then(|| RemoteTime::from_nanos(1)),
            ecn: Ecn::NotEct,
            probe: None,
        });
        Report { packets: packets.collect(), ..Report::default() }
    }

    #[test]
    fn without_a_window_what_is_missing_is_lost_and_reordering_makes_one() {
        let mut losses = Losses::new(Span::ZERO);
        let mut counted_at = |ms: i64, packets: &[(u64, bool)]| {
            losses.take(Time::from_millis(ms), &report(packets), Some(0.05))
        };
        assert_eq!(counted_at(0, &[(0, true), (1, false), (2, true)]), Counted { lost: 1, arrived: 2 });
        assert_eq!(counted_at(10, &[(3, true)]), Counted { lost: 0, arrived: 1 });
        let mut losses = Losses::new(Span::from_millis(5));
        let mut lost_at = |ms: i64, packets: &[(u64, bool)]| {
            losses.take(Time::from_millis(ms), &report(packets), Some(0.05)).lost
        };
        assert_eq!(lost_at(0, &[(1, false), (2, true)]), 0, "it may still arrive");
        assert_eq!(lost_at(4, &[(1, true), (4, false)]), 0, "it arrived 4 ms later");
        assert_eq!(lost_at(8, &[(5, true)]), 0);
        assert_eq!(lost_at(9, &[(6, true)]), 1, "5 ms are over");
        assert_eq!(lost_at(20, &[(7, false)]), 0);
    }

    #[test]
    fn the_window_grows_to_what_reordering_took_and_no_further_than_a_round_trip() {
        let window_after = |took: i64| {
            let mut losses = Losses::new(Span::from_millis(10));
            let _ = losses.take(Time::ZERO, &report(&[(9, false)]), Some(0.05));
            let _ = losses.take(Time::from_millis(took), &report(&[(9, true)]), Some(0.05));
            losses.window
        };
        assert_eq!(window_after(4), Span::from_millis(10));
        assert_eq!(window_after(30), Span::from_millis(30));
        assert_eq!(window_after(80), Span::from_millis(50), "the round trip");
    }

    #[test]
    fn the_loss_rate_is_an_average_over_packets() {
        let mut rate = LossRate::default();
        rate.take(Counted { lost: 1, arrived: 0 }, 0.0025);
        assert!((rate.get() - 0.0025).abs() < 1e-15);
        rate.take(Counted { lost: 0, arrived: 100 }, 0.0025);
        let expected = 0.0025 * math::pow(0.9975, 100.0);
        assert!((rate.get() - expected).abs() < 1e-15);
    }
}
