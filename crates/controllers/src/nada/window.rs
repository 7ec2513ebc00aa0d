//! Estimates of RFC 8698 section 5.1: queueing delay, loss and marking ratios, receive rate, loss intervals.

use super::baseline::Baseline;
use super::settings::Settings;
use super::signals::{Losses, Packet, Signals};
use crate::tfrc::intervals::{self, Closed, INTERVALS};
use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// Largest number of packets in a window: at 1200 bytes and 500 ms, more than 1 Gb/s.
const MAX_PACKETS: usize = 1 << 16;

/// Packet of the window.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    packet: Packet,
    /// Number of lost packets between the previous received packet and this one.
    missing: u64,
}

/// Received packets of the last LOGWIN, and longer-term estimates.
#[derive(Clone, Debug)]
pub struct Window {
    span: i64,
    taps: usize,
    qeps: i64,
    base: Baseline,
    /// Packets of the last LOGWIN.
    arrivals: VecDeque<Arrival>,
    /// Delays in the minimum filter, ns, the newest last.
    delays: VecDeque<i64>,
    highest: Option<i64>,
    gaps: Gaps,
    open_interval: bool,
}

impl Window {
    /// Creates a window without packets.
    #[must_use]
    pub fn new(set: &Settings) -> Self {
        Self {
            span: Span::from_millis_f64(set.logwin).as_nanos(),
            taps: set.taps as usize,
            qeps: Span::from_millis_f64(set.qeps).as_nanos(),
            base: Baseline::new(set.base_history),
            arrivals: VecDeque::new(),
            delays: VecDeque::with_capacity(set.taps as usize),
            highest: None,
            gaps: Gaps::default(),
            open_interval: set.open_interval,
        }
    }

    /// Takes a packet whose feedback comes `now`. `lost` is the number of packets reported as lost between the previous
    /// one and this; without it, all packets in between count as lost. A reordered packet counts as lost (section 5.1.2).
    /// Returns whether the packet counts as received.
    pub fn add(&mut self, now: Time, packet: Packet, lost: Option<u64>) -> bool {
        let expected = self.highest.map_or(packet.sequence, |highest| highest.saturating_add(1));
        if packet.sequence < expected {
            return false;
        }
        self.highest = Some(packet.sequence);
        let gap = packet.sequence.abs_diff(expected);
        let missing = lost.map_or(gap, |lost| lost.min(gap));
        self.gaps.add(expected, packet.sequence, missing > 0);
        self.base.add(now, packet.delay());
        if self.delays.len() == self.taps {
            self.delays.pop_front();
        }
        self.delays.push_back(packet.delay());
        // after a clock was set back, the window has arrivals in the future
        if self
            .arrivals
            .back()
            .is_some_and(|last| last.packet.arrival > packet.arrival.saturating_add(self.span))
        {
            self.arrivals.clear();
        }
        self.arrivals.push_back(Arrival { packet, missing });
        self.trim(packet.arrival);
        true
    }

    /// Drops packets that arrived LOGWIN or longer before `now`, by the receiver's clock.
    fn trim(&mut self, now: i64) {
        let is_old = |first: &Arrival| now.saturating_sub(first.packet.arrival) >= self.span;
        while self.arrivals.len() > MAX_PACKETS || self.arrivals.front().is_some_and(is_old) {
            self.arrivals.pop_front();
        }
    }

    /// Estimates at `now` by the receiver's clock, which is not before the last arrival.
    pub fn signals(&mut self, now: i64) -> Signals {
        self.trim(now);
        let base = self.base.lowest();
        let queueing = base.and_then(|base| {
            let lowest = self.delays.iter().copied().min()?;
            // after a long silence the baseline may be newer than some of these delays
            Some(Span::from_nanos(lowest.saturating_sub(base).max(0)))
        });
        let sum =
            |field: fn(&Arrival) -> u64| self.arrivals.iter().map(field).fold(0_u64, u64::saturating_add);
        let bytes = sum(|arrival| arrival.packet.size);
        let missing = sum(|arrival| arrival.missing);
        let marked = sum(|arrival| arrival.packet.marked.into());
        let sent = (self.arrivals.len() as u64).saturating_add(missing).max(1) as f64;
        let queued =
            |arrival: &Arrival| arrival.packet.delay().saturating_sub(base.unwrap_or_default()) >= self.qeps;
        Signals {
            queueing,
            receive_rate: Some(bytes as f64 * 8e9 / self.span as f64),
            loss: Some(missing as f64 / sent),
            marks: Some(marked as f64 / sent),
            losses: self.gaps.losses(self.open_interval),
            ramp_up: missing == 0 && marked == 0 && !self.arrivals.iter().any(queued),
        }
    }

    /// Queueing delay of the newest packet.
    #[must_use]
    pub fn newest_queueing(&self) -> Option<Span> {
        let (base, newest) = (self.base.lowest()?, self.delays.back()?);
        Some(Span::from_nanos(newest.saturating_sub(base)))
    }

    /// Starts anew with `packet`, the last one, after a clock was set.
    pub fn start_anew(&mut self, now: Time, packet: Packet) {
        self.base.clear();
        self.base.add(now, packet.delay());
        self.delays.clear();
        self.delays.push_back(packet.delay());
        self.arrivals.clear();
        self.arrivals.push_back(Arrival { packet, missing: 0 });
    }
}

/// Intervals between gaps, in packets.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// First sequence number of the open interval: the first of a gap, or of the flow.
    interval_start: Option<i64>,
    highest: i64,
    /// Closed intervals, newest first.
    closed: Vec<Closed>,
}

impl Gaps {
    /// Takes a received packet after the `expected` one; `lost` if a packet between them was lost.
    fn add(&mut self, expected: i64, sequence: i64, lost: bool) {
        self.highest = sequence;
        let start = *self.interval_start.get_or_insert(expected);
        if lost {
            self.closed.truncate(INTERVALS - 1);
            self.closed.insert(0, Closed::new(expected.saturating_sub(start) as f64));
            self.interval_start = Some(expected);
        }
    }

    /// Mean by RFC 5348 section 5.4; with `open`, the open interval counts if it makes the mean longer.
    fn losses(&self, open: bool) -> Option<Losses> {
        if self.closed.is_empty() {
            return None;
        }
        let since = self.highest.saturating_sub(self.interval_start?).saturating_add(1) as f64;
        Some(Losses { mean: intervals::mean(open.then_some(since), &self.closed, 1.0), since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const MS: i64 = 1_000_000;

    fn window(overrides: &Value) -> Window {
        Window::new(&Settings::with("rfc8698", overrides).expect("valid"))
    }

    /// Packet of 1000 bytes, sent at `sent` ms, with a delay of 40 ms plus `queued` ms.
    fn packet(sequence: i64, sent: i64, queued: i64) -> Packet {
        Packet { sequence, size: 1000, sent: sent * MS, arrival: (sent + 40 + queued) * MS, marked: false }
    }

    fn add(window: &mut Window, packet: Packet) -> bool {
        window.add(Time::from_nanos(packet.arrival + 40 * MS), packet, None)
    }

    fn signals_at(window: &mut Window, ms: i64) -> Signals {
        window.signals(ms * MS)
    }

    #[test]
    fn the_rate_is_what_arrived_within_the_window() {
        let mut window = window(&Value::Null);
        for sequence in 0..100 {
            assert!(add(&mut window, packet(sequence, sequence * 10, 0)));
        }
        // 1000 bytes every 10 ms
        assert_eq!(signals_at(&mut window, 1030).receive_rate, Some(800e3));
        assert_eq!(signals_at(&mut window, 1280).receive_rate, Some(400e3));
        assert_eq!(signals_at(&mut window, 1531).receive_rate, Some(0.0));
    }

    #[test]
    fn the_queueing_delay_is_the_least_of_fifteen_above_the_baseline() {
        let mut window = window(&Value::Null);
        assert!(add(&mut window, packet(0, 0, 0)));
        for sequence in 1..15 {
            assert!(add(&mut window, packet(sequence, sequence * 10, 30)));
        }
        assert_eq!(
            signals_at(&mut window, 200).queueing,
            Some(Span::ZERO),
            "the first one is still among them"
        );
        assert!(add(&mut window, packet(15, 150, 31)));
        assert_eq!(signals_at(&mut window, 200).queueing, Some(Span::from_millis(30)));
        assert!(add(&mut window, packet(16, 160, 12)));
        assert_eq!(signals_at(&mut window, 210).queueing, Some(Span::from_millis(12)));
    }

    #[test]
    fn no_queueing_delay_is_negative_after_the_baseline_was_forgotten() {
        let mut window = window(&json!({ "base_history": 1 }));
        for sequence in 0..15 {
            assert!(add(&mut window, packet(sequence, sequence * 10, 0)));
        }
        assert!(add(&mut window, packet(15, 300_000, 20)));
        assert_eq!(signals_at(&mut window, 300_060).queueing, Some(Span::ZERO));
    }

    #[test]
    fn a_delay_a_loss_or_a_mark_within_the_window_ends_ramp_up() {
        let ramp_up_after = |spoil: fn(&mut Packet)| {
            let mut window = window(&Value::Null);
            for sequence in 0..100 {
                let mut packet = packet(sequence, sequence * 10, 9);
                if sequence == 50 {
                    spoil(&mut packet);
                }
                let _ = add(&mut window, packet);
            }
            // the base is one packet without a queue
            let mut packet = packet(100, 1000, 0);
            packet.arrival -= 1;
            let _ = add(&mut window, packet);
            // packet 50 arrived at 549 ms
            [1040, 1048, 1049].map(|ms| signals_at(&mut window, ms).ramp_up)
        };
        assert_eq!(ramp_up_after(|_| {}), [true; 3]);
        assert_eq!(ramp_up_after(|packet| packet.marked = true), [false, false, true]);
        assert_eq!(
            ramp_up_after(|packet| packet.arrival += MS),
            [false, false, false],
            "just over 10 ms, at 550 ms"
        );
        assert_eq!(
            ramp_up_after(|packet| packet.sequence = 49),
            [false, false, false],
            "51 misses one before it"
        );
    }

    #[test]
    fn gaps_are_losses_and_what_comes_late_stays_one() {
        let mut window = window(&Value::Null);
        for sequence in [0, 1, 2, 5, 6, 7, 8, 9] {
            assert!(add(&mut window, packet(sequence, sequence * 10, 0)));
        }
        assert!(!add(&mut window, packet(3, 30, 70)), "overtaken");
        assert!(!add(&mut window, packet(9, 90, 0)), "twice");
        assert_eq!(signals_at(&mut window, 130).loss, Some(0.2));
        // an outage that is longer than the window counts when it is over
        for sequence in 100..110 {
            assert!(add(&mut window, packet(sequence, sequence * 10, 0)));
        }
        assert_eq!(signals_at(&mut window, 1130).loss, Some(0.9));
        // the window is 500 ms from the packet behind it
        assert_eq!(signals_at(&mut window, 1539).loss, Some(90.0 / 100.0));
        assert_eq!(signals_at(&mut window, 1540).loss, Some(0.0));
    }

    #[test]
    fn marks_are_a_part_of_all_that_was_sent() {
        let mut window = window(&Value::Null);
        for sequence in [0, 1, 2, 3, 4, 5, 6, 9] {
            let marked = sequence == 2 || sequence == 9;
            assert!(add(&mut window, Packet { marked, ..packet(sequence, sequence * 10, 0) }));
        }
        assert_eq!(signals_at(&mut window, 130).marks, Some(0.2));
    }

    #[test]
    fn loss_intervals_by_hand() {
        let mut without = window(&Value::Null);
        let mut with = window(&json!({ "open_interval": true }));
        // 0 to 9, gap of 2, 12 to 19, gap of 1, 21 to 60
        for sequence in (0..10).chain(12..20).chain(21..61) {
            for window in [&mut without, &mut with] {
                assert!(add(window, packet(sequence, sequence * 10, 0)));
            }
            if sequence < 10 {
                assert_eq!(signals_at(&mut without, sequence * 10 + 40).losses, None);
            }
        }
        // intervals 10 and 10 are closed, 20 to 60 is open
        assert_eq!(signals_at(&mut without, 650).losses, Some(Losses { mean: 10.0, since: 41.0 }));
        assert_eq!(
            signals_at(&mut with, 650).losses,
            Some(Losses { mean: (41.0 + 10.0) / 2.0, since: 41.0 })
        );
        // with the open one in it, no loss is ever over
        for sequence in 61..5000 {
            let _ = add(&mut with, packet(sequence, sequence * 10, 0));
        }
        let Losses { mean, since } = signals_at(&mut with, 50_040).losses.expect("there were");
        assert!(since / mean < 7.0, "{since} packets, {mean} a loss");
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_no_window_from_the_future() {
        let mut window = window(&Value::Null);
        for sequence in 0..10 {
            let _ = add(&mut window, packet(sequence, 100_000 + sequence * 10, 0));
        }
        let back = Packet { arrival: 0, ..packet(10, 100_100, 0) };
        assert!(add(&mut window, back));
        assert_eq!(window.signals(0).receive_rate, Some(16e3), "one packet");
    }
}
