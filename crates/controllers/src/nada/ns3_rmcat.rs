//! Estimates of ns3-rmcat: its `sender-based-controller.cc`, and their use in `nada-controller.cc`.
//!
//! They differ from RFC 8698 section 5.1 as follows:
//!
//! * the window is over departures. When two received packets left more than 500 ms apart, the window, the base delay
//!   and the loss intervals are reset; otherwise the base delay is never dropped;
//! * ratios and rates need five packets, the receive rate is taken between the first and the last arrival of the window,
//!   and without a new estimate the old one stays;
//! * a gap before the first packet of the window is no loss; loss intervals count received packets;
//! * times are whole microseconds.

use super::settings::Settings;
use super::signals::{Losses, Packet, Signals};
use crate::tfrc::intervals::{self, Closed, INTERVALS};
use std::collections::VecDeque;
use tidegate_core::Span;

/// Number of packets below which there is neither a loss ratio nor a receive rate (`sender-based-controller.h`).
const MIN_PACKET_LOGLEN: usize = 5;

/// Gap between departures after which the history is obsolete, us (`sender-based-controller.h`).
const MAX_INTER_PACKET_TIME_US: i64 = 500_000;

/// Packet of the history, with times in us.
#[derive(Clone, Copy, Debug)]
struct PacketRecord {
    sequence: i64,
    size: u64,
    sent: i64,
    delay: i64,
    rtt: i64,
}

/// Received packets (`SenderBasedController`).
#[derive(Clone, Debug)]
pub struct History {
    span: i64,
    taps: usize,
    qeps: i64,
    packets: VecDeque<PacketRecord>,
    newest: Option<i64>,
    base: i64,
    /// Next expected sequence number (`InterLossState`).
    expected: i64,
    /// Packets in the open loss interval.
    open: u64,
    /// Closed loss intervals, newest first, once there was a loss.
    closed: Vec<Closed>,
    /// Packets lost in the window, as of the last estimate (`m_ploss`).
    lost: u64,
    open_interval: bool,
}

impl History {
    /// Creates a history without packets.
    #[must_use]
    pub fn new(set: &Settings) -> Self {
        let micros = |millis| Span::from_millis_f64(millis).as_nanos() / 1000;
        Self {
            span: micros(set.logwin),
            taps: set.taps as usize,
            qeps: micros(set.qeps),
            packets: VecDeque::new(),
            newest: None,
            base: 0,
            expected: 0,
            open: 0,
            closed: Vec::with_capacity(INTERVALS),
            lost: 0,
            open_interval: set.open_interval,
        }
    }

    /// Takes a packet whose feedback came at `now` ns of the sender's clock (`processFeedback`). Returns whether it was
    /// added.
    pub fn add(&mut self, now: i64, packet: &Packet) -> bool {
        let sent = packet.sent / 1000;
        if self.newest.is_some_and(|newest| packet.sequence <= newest) {
            return false;
        }
        self.newest = Some(packet.sequence);
        if self.packets.back().is_some_and(|last| sent < last.sent) {
            return false;
        }
        if self.packets.back().is_some_and(|last| sent.saturating_sub(last.sent) > MAX_INTER_PACKET_TIME_US) {
            self.packets.clear();
        }
        let delay = (packet.arrival / 1000).saturating_sub(sent);
        let rtt = (now / 1000).saturating_sub(sent);
        if self.packets.is_empty() || delay < self.base {
            self.base = delay;
        }
        self.update_loss_intervals(packet.sequence);
        self.packets.push_back(PacketRecord {
            sequence: packet.sequence,
            size: packet.size,
            sent,
            delay,
            rtt,
        });
        while self.packets.front().is_some_and(|first| sent.saturating_sub(first.sent) >= self.span) {
            self.packets.pop_front();
        }
        true
    }

    /// Updates the loss intervals (`updateInterLossData`).
    fn update_loss_intervals(&mut self, sequence: i64) {
        if self.packets.is_empty() {
            (self.open, self.expected) = (0, sequence);
            self.closed.clear();
        }
        if sequence == self.expected {
            self.open += 1;
        } else {
            self.closed.truncate(INTERVALS - 1);
            self.closed.insert(0, Closed::new(self.open as f64));
            self.open = 1;
        }
        self.expected = sequence.saturating_add(1);
    }

    /// Round trip, ms: the lowest of the last samples (`getCurrentRTT`).
    #[must_use]
    pub fn rtt(&self) -> Option<f64> {
        self.min_of_last(|record| record.rtt).map(|rtt| rtt as f64 / 1000.0)
    }

    fn min_of_last(&self, field: fn(&PacketRecord) -> i64) -> Option<i64> {
        self.packets.iter().rev().take(self.taps).map(field).min()
    }

    /// Estimates (`updateMetrics` and `getRampUpMode`).
    pub fn signals(&mut self) -> Signals {
        let queueing = self.min_of_last(|record| record.delay).map(|delay| delay.saturating_sub(self.base));
        let (mut receive_rate, mut loss) = (None, None);
        if let (Some(first), Some(last)) = (self.packets.front(), self.packets.back())
            && self.packets.len() >= MIN_PACKET_LOGLEN
        {
            let sent = last.sequence.abs_diff(first.sequence).saturating_add(1);
            self.lost = sent - self.packets.len() as u64;
            loss = Some(self.lost as f64 / sent as f64);
            let arrived = |record: &PacketRecord| record.sent.saturating_add(record.delay);
            let span = arrived(last).saturating_sub(arrived(first));
            // "technically, the first packet is out of the calculated time span"
            let bytes =
                self.packets.iter().skip(1).fold(0_u64, |sum, record| sum.saturating_add(record.size));
            receive_rate = (span > 0).then(|| bytes as f64 * 8e6 / span as f64);
        }
        let queued = |record: &PacketRecord| record.delay.saturating_sub(self.base) > self.qeps;
        let since = self.open as f64;
        let mean = || intervals::mean(self.open_interval.then_some(since), &self.closed, 1.0);
        Signals {
            queueing: queueing.map(|micros| Span::from_nanos(micros.saturating_mul(1000))),
            receive_rate,
            loss,
            marks: None,
            losses: (!self.closed.is_empty()).then(|| Losses { mean: mean(), since }),
            ramp_up: self.lost == 0 && !self.packets.iter().any(queued),
        }
    }

    /// Queueing delay of the newest packet.
    #[must_use]
    pub fn newest_queueing(&self) -> Option<Span> {
        let micros = self.packets.back()?.delay.saturating_sub(self.base);
        Some(Span::from_nanos(micros.saturating_mul(1000)))
    }

    /// Starts anew with the last packet, after a clock was set.
    pub fn start_anew(&mut self) {
        let last = self.packets.pop_back();
        self.packets.clear();
        self.packets.extend(last);
        self.base = last.map_or(0, |last| last.delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const MS: i64 = 1_000_000;

    fn history() -> History {
        History::new(&Settings::with("ns3-rmcat", &Value::Null).expect("a preset"))
    }

    fn add(history: &mut History, sequence: i64, sent: i64, delay: i64) -> bool {
        let [sent, arrival] = [sent, sent + delay].map(|millis| millis * MS);
        history.add(arrival + 25 * MS, &Packet { sequence, size: 1000, sent, arrival, marked: true })
    }

    #[test]
    fn four_packets_are_too_few() {
        let mut history = history();
        assert_eq!(history.signals(), Signals { ramp_up: true, ..Signals::default() });
        for sequence in 0..4 {
            assert!(add(&mut history, sequence, 10 * sequence, 40));
        }
        let signals = history.signals();
        assert_eq!((signals.receive_rate, signals.loss), (None, None));
        assert!(add(&mut history, 5, 50, 40));
        let signals = history.signals();
        // four packets after the first one, in 50 ms; one of six is missing
        assert_eq!((signals.receive_rate, signals.loss), (Some(640e3), Some(1.0 / 6.0)));
        assert_eq!(signals.losses.map(|losses| losses.since), Some(1.0));
        assert!(!signals.ramp_up && signals.marks.is_none());
        assert!(!add(&mut history, 4, 40, 90), "overtaken");
    }

    #[test]
    fn half_a_second_of_departures_and_the_least_delay_since_they_paused() {
        let mut history = history();
        for sequence in 0..60 {
            assert!(add(&mut history, sequence, 10 * sequence, if sequence == 0 { 40 } else { 45 }));
        }
        assert_eq!(history.packets.len(), 50);
        // the least delay is older than the window; the round trip is not
        assert_eq!(history.signals().queueing, Some(Span::from_millis(5)));
        assert_eq!(history.rtt(), Some(70.0));
        // 500 ms to the next departure are not too long, one more is
        assert!(add(&mut history, 60, 1090, 60));
        assert_eq!(history.signals().queueing, Some(Span::from_millis(20)));
        assert!(add(&mut history, 61, 1591, 60));
        assert_eq!(history.signals().queueing, Some(Span::ZERO));
        assert_eq!(history.packets.len(), 1);
    }

    #[test]
    fn what_was_lost_speaks_against_ramp_up_until_five_packets_say_otherwise() {
        let mut history = history();
        for sequence in [0, 1, 2, 4, 5] {
            assert!(add(&mut history, sequence, 10 * sequence, 40));
        }
        assert!(!history.signals().ramp_up);
        // after a pause there are too few to tell
        assert!(add(&mut history, 6, 1000, 40));
        assert!(!history.signals().ramp_up);
        assert_eq!(history.signals().losses, None, "loss intervals begin anew");
        for sequence in 7..11 {
            assert!(add(&mut history, sequence, 940 + 10 * sequence, 40));
        }
        assert!(history.signals().ramp_up);
        assert!(add(&mut history, 11, 1050, 50));
        assert!(history.signals().ramp_up, "10 ms are not more than QEPS");
        assert!(add(&mut history, 12, 1060, 51));
        assert!(!history.signals().ramp_up);
    }
}
