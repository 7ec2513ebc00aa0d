//! Queueing delay: the one-way delay above its base (RFC 6817 section 3.4.2, to which both versions of SCReAM refer).
//! Smoothed round-trip time.

use std::collections::VecDeque;
use tidegate_core::control::Report;
use tidegate_core::{RemoteTime, Span, Time};

/// Number of minima over which the base delay is the minimum (RFC 6817 section 2.5).
const BASE_HISTORY: usize = 10;

/// Time over which each minimum is taken (RFC 6817 section 3.4.2).
const BASE_INTERVAL: Span = Span::from_secs(60);

/// One-way delay above the minimum of the last minutes.
#[derive(Clone, Debug, Default)]
pub struct QueueDelay {
    /// Departure and arrival of the first packet. The clocks have no common zero, so delays are relative to its delay.
    first: Option<(Time, RemoteTime)>,
    /// Minimum of each minute, the newest last.
    minima: VecDeque<Span>,
    interval_end: Option<Time>,
    /// Time of the last report, and arrival of its newest packet by the far clock.
    last: Option<(Time, RemoteTime)>,
}

/// Difference in ns from which a clock has jumped: both the arrivals in reports and the reports themselves show a change
/// of the queue, but only the arrivals show a jump of the far clock.
const CLOCK_JUMP: u64 = 500_000_000;

impl QueueDelay {
    /// Drops the base delay.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn base(&self) -> Option<Span> {
        self.minima.iter().copied().min()
    }

    /// Takes a report and returns the queueing delay of the newest received packet, with the highest sequence number.
    pub fn update(&mut self, now: Time, report: &Report) -> Option<Span> {
        self.detect_jump(now, report);
        let mut newest = None;
        for packet in &report.packets {
            let Some(arrival) = packet.arrival else { continue };
            let (first_sent, first_arrival) = *self.first.get_or_insert((packet.sent, arrival));
            // saturating, because the far clock may have any value
            let arrived = arrival.as_nanos().saturating_sub(first_arrival.as_nanos());
            let departed = packet.sent.as_nanos().saturating_sub(first_sent.as_nanos());
            let delay = Span::from_nanos(arrived.saturating_sub(departed));
            self.take(now, delay);
            newest = Some(delay);
        }
        let base = self.base()?;
        newest.map(|delay| Span::from_nanos(delay.as_nanos().saturating_sub(base.as_nanos())))
    }

    /// Starts anew if the far clock has jumped against ours.
    fn detect_jump(&mut self, now: Time, report: &Report) {
        let Some(newest) = report.packets.iter().rev().find_map(|packet| packet.arrival) else { return };
        let advance = |last: RemoteTime| newest.as_nanos().saturating_sub(last.as_nanos());
        let jumped = self
            .last
            .is_some_and(|(time, last)| advance(last).abs_diff((now - time).as_nanos()) > CLOCK_JUMP);
        if jumped {
            self.reset();
        }
        self.last = Some((now, newest));
    }

    fn take(&mut self, now: Time, delay: Span) {
        if self.interval_end.is_none_or(|end| now >= end) {
            self.interval_end = Some(now + BASE_INTERVAL);
            self.minima.push_back(delay);
            if self.minima.len() > BASE_HISTORY {
                self.minima.pop_front();
            }
        }
        if let Some(last) = self.minima.back_mut() {
            *last = (*last).min(delay);
        }
    }
}

/// Smoothed round-trip time (RFC 6298 section 2): the first sample, later ones with a weight of 1/8.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmoothedRtt(Option<f64>);

impl SmoothedRtt {
    /// Smoothed round-trip time, s; none before the first sample.
    #[must_use]
    pub fn get(self) -> Option<f64> {
        self.0
    }

    /// Takes a sample, at least a microsecond, because divisions by it follow.
    pub fn sample(&mut self, rtt: Span) {
        let sample = rtt.as_secs_f64().max(1e-6);
        self.0 = Some(self.0.map_or(sample, |old| old + (sample - old) / 8.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::control::PacketResult;
    use tidegate_core::{Ecn, Size};

    fn report(sent: i64, delay: i64) -> Report {
        let packet = PacketResult {
            sequence: 0,
            size: Size::from_bytes(1000),
            sent: Time::from_millis(sent),
            arrival: Some(RemoteTime::from_nanos((sent + delay - 1_000_000) * 1_000_000)),
            ecn: Ecn::NotEct,
            probe: None,
        };
        Report { packets: vec![packet], ..Report::default() }
    }

    #[test]
    fn the_base_is_the_least_of_ten_minutes() {
        let mut delay = QueueDelay::default();
        let mut delay_at = |seconds: i64, millis: i64| {
            let now = Time::from_secs(seconds);
            delay.update(now, &report(1000 * seconds, millis)).expect("it arrived").as_millis_f64()
        };
        assert_eq!(delay_at(0, 50), 0.0);
        assert_eq!(delay_at(1, 80), 30.0);
        assert_eq!(delay_at(2, 40), 0.0, "a new minimum");
        for second in 3..599 {
            assert_eq!(delay_at(second, 70), 30.0);
        }
        // the minute of the 40 ms is dropped when the eleventh begins
        assert_eq!(delay_at(661, 70), 0.0);
        assert_eq!(delay.update(Time::from_secs(700), &Report::default()), None);
    }

    #[test]
    fn a_clock_that_jumps_is_no_queue() {
        let mut delay = QueueDelay::default();
        let mut delay_at = |millis: i64, report: &Report| {
            delay.update(Time::from_millis(millis), report).expect("it arrived").as_millis_f64()
        };
        assert_eq!(delay_at(100, &report(50, 20)), 0.0);
        assert_eq!(delay_at(600, &report(150, 420)), 400.0, "a queue that grows as reports come later");
        assert_eq!(delay_at(650, &report(600, 20)), 0.0, "and is gone");
        assert_eq!(delay_at(700, &report(650, 1020)), 0.0, "a second more, but the report came at once");
        assert_eq!(delay_at(750, &report(700, 1050)), 30.0);
    }

    #[test]
    fn the_round_trip_is_smoothed_as_in_rfc_6298() {
        let mut rtt = SmoothedRtt::default();
        assert_eq!(rtt.get(), None);
        rtt.sample(Span::from_millis(80));
        rtt.sample(Span::from_millis(160));
        assert!((rtt.get().expect("sampled") - 0.09).abs() < 1e-12);
    }
}
