//! The queue's delay: one-way delay over its base (RFC 6817 section 3.4.2, to which both versions of SCReAM refer), and the average of it that
//! congestion is seen by (draft-ietf-ccwg-rfc8298bis-screamv2 section "Detecting Increased Queue Delay").

use std::collections::VecDeque;
use tidegate_core::control::Report;
use tidegate_core::{RemoteTime, Span, Time};

/// How many minima the base delay is the least of (RFC 6817 section 2.5: BASE_HISTORY = 10).
const BASE_HISTORY: usize = 10;

/// Over how long each of them is taken (RFC 6817 section 3.4.2: one minute).
const BASE_STEP: Span = Span::from_secs(60);

/// One-way delay over the least of the last minutes.
#[derive(Clone, Debug, Default)]
pub struct QueueDelay {
    /// Of the first packet: clocks of both ends have no common zero, so that delays count from its.
    first: Option<(Time, RemoteTime)>,
    /// Minimum of each minute, the newest last.
    minima: VecDeque<Span>,
    step_ends: Option<Time>,
    /// When the last report came, and when its newest packet had arrived by the far clock.
    last: Option<(Time, RemoteTime)>,
}

/// By so much a clock has jumped, and no queue has grown or gone: reports say when packets arrived, and come when they do.
const JUMP: u64 = 500_000_000;

impl QueueDelay {
    /// Forgets the base.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn base(&self) -> Option<Span> {
        self.minima.iter().copied().min()
    }

    /// Takes a report, and answers the delay of the newest packet that has arrived: of the highest sequence number.
    pub fn update(&mut self, now: Time, report: &Report) -> Option<Span> {
        self.notice_jump(now, report);
        let mut newest = None;
        for packet in &report.packets {
            let Some(arrival) = packet.arrival else { continue };
            let (sent0, arrival0) = *self.first.get_or_insert((packet.sent, arrival));
            // the far clock may say anything
            let arrived = arrival.as_nanos().saturating_sub(arrival0.as_nanos());
            let left = packet.sent.as_nanos().saturating_sub(sent0.as_nanos());
            let delay = Span::from_nanos(arrived.saturating_sub(left));
            self.take(now, delay);
            newest = Some(delay);
        }
        let base = self.base()?;
        newest.map(|delay| Span::from_nanos(delay.as_nanos().saturating_sub(base.as_nanos())))
    }

    /// Begins anew where the far clock has jumped against ours.
    fn notice_jump(&mut self, now: Time, report: &Report) {
        let Some(newest) = report.packets.iter().rev().find_map(|packet| packet.arrival) else { return };
        let far = |last: RemoteTime| newest.as_nanos().saturating_sub(last.as_nanos());
        let jumped = self.last.is_some_and(|(at, last)| far(last).abs_diff((now - at).as_nanos()) > JUMP);
        if jumped {
            self.reset();
        }
        self.last = Some((now, newest));
    }

    fn take(&mut self, now: Time, delay: Span) {
        if self.step_ends.is_none_or(|end| now >= end) {
            self.step_ends = Some(now + BASE_STEP);
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

/// Smoothed round-trip time (RFC 6298 section 2): the first sample, then 1/8 of each further one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmoothedRtt(Option<f64>);

impl SmoothedRtt {
    /// In seconds, once there is one.
    #[must_use]
    pub fn get(self) -> Option<f64> {
        self.0
    }

    /// Takes a sample; one of no time at all counts as a microsecond, so that there is something to divide by.
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
        let mut at = |seconds: i64, millis: i64| {
            let now = Time::from_secs(seconds);
            delay.update(now, &report(1000 * seconds, millis)).expect("it arrived").as_millis_f64()
        };
        assert_eq!(at(0, 50), 0.0);
        assert_eq!(at(1, 80), 30.0);
        assert_eq!(at(2, 40), 0.0, "a new least one");
        for second in 3..599 {
            assert_eq!(at(second, 70), 30.0);
        }
        // the minute of the 40 ms is forgotten as the eleventh begins
        assert_eq!(at(661, 70), 0.0);
        assert_eq!(delay.update(Time::from_secs(700), &Report::default()), None);
    }

    #[test]
    fn a_clock_that_jumps_is_no_queue() {
        let mut delay = QueueDelay::default();
        let mut at = |millis: i64, report: &Report| {
            delay.update(Time::from_millis(millis), report).expect("it arrived").as_millis_f64()
        };
        assert_eq!(at(100, &report(50, 20)), 0.0);
        assert_eq!(at(600, &report(150, 420)), 400.0, "a queue that grows as reports come later");
        assert_eq!(at(650, &report(600, 20)), 0.0, "and is gone");
        assert_eq!(at(700, &report(650, 1020)), 0.0, "a second more, and the report was here at once");
        assert_eq!(at(750, &report(700, 1050)), 30.0);
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
