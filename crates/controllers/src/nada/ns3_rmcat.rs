//! The estimates of ns3-rmcat: its `sender-based-controller.cc`, and what `nada-controller.cc` keeps of them.
//!
//! Where they are not those of RFC 8698 section 5.1:
//!
//! * the window goes by the times of sending, and is dropped where two packets that arrived were sent more than 500 ms apart. So
//!   are the least delay and the loss intervals then; nothing else forgets the least delay;
//! * ratios and rates need five packets, the receive rate is taken between the first and the last arrival of the window,
//!   and what cannot be estimated stays what it was;
//! * a gap before the first packet of the window is no loss; loss intervals count packets that arrived;
//! * times are whole microseconds.

use super::settings::Settings;
use super::signals::{Losses, Packet, Signals};
use crate::tfrc::intervals::{self, Closed, INTERVALS};
use std::collections::VecDeque;
use tidegate_core::Span;

/// MIN_PACKET_LOGLEN: with fewer packets there is neither a loss ratio nor a receive rate.
const ENOUGH: usize = 5;

/// MAX_INTER_PACKET_TIME_US: after a longer gap between departures the history is obsolete.
const LONGEST_GAP: i64 = 500_000;

/// A packet of the history (`PacketRecord`), in us.
#[derive(Clone, Copy, Debug)]
struct Record {
    sequence: i64,
    size: u64,
    sent: i64,
    delay: i64,
    rtt: i64,
}

/// The packets that feedback told of (`SenderBasedController`).
#[derive(Clone, Debug)]
pub struct History {
    span: i64,
    taps: usize,
    qeps: i64,
    packets: VecDeque<Record>,
    newest: Option<i64>,
    base: i64,
    /// `InterLossState`: the next number, the open interval, and the closed ones, newest first, once there was a loss.
    expected: i64,
    open: u64,
    closed: Vec<Closed>,
    /// `m_ploss`: packets lost when that could be said last.
    lost: u64,
    open_interval: bool,
}

impl History {
    /// Without a packet so far.
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

    /// `processFeedback` of a packet of which was heard at `now` ns of the sender's clock. Says whether it was taken in.
    pub fn add(&mut self, now: i64, packet: &Packet) -> bool {
        let sent = packet.sent / 1000;
        if self.newest.is_some_and(|newest| packet.sequence <= newest) {
            return false;
        }
        self.newest = Some(packet.sequence);
        if self.packets.back().is_some_and(|last| sent < last.sent) {
            return false;
        }
        if self.packets.back().is_some_and(|last| sent.saturating_sub(last.sent) > LONGEST_GAP) {
            self.packets.clear();
        }
        let delay = (packet.arrival / 1000).saturating_sub(sent);
        let rtt = (now / 1000).saturating_sub(sent);
        if self.packets.is_empty() || delay < self.base {
            self.base = delay;
        }
        self.count(packet.sequence);
        self.packets.push_back(Record { sequence: packet.sequence, size: packet.size, sent, delay, rtt });
        while self.packets.front().is_some_and(|first| sent.saturating_sub(first.sent) >= self.span) {
            self.packets.pop_front();
        }
        true
    }

    /// `updateInterLossData`.
    fn count(&mut self, sequence: i64) {
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

    /// The round trip in ms: the least of the last samples (`getCurrentRTT`).
    #[must_use]
    pub fn rtt(&self) -> Option<f64> {
        self.least(|record| record.rtt).map(|rtt| rtt as f64 / 1000.0)
    }

    fn least(&self, of: fn(&Record) -> i64) -> Option<i64> {
        self.packets.iter().rev().take(self.taps).map(of).min()
    }

    /// `updateMetrics` and `getRampUpMode`.
    pub fn signals(&mut self) -> Signals {
        let queueing = self.least(|record| record.delay).map(|least| least.saturating_sub(self.base));
        let (mut receive_rate, mut loss) = (None, None);
        if let (Some(first), Some(last)) = (self.packets.front(), self.packets.back())
            && self.packets.len() >= ENOUGH
        {
            let sent = last.sequence.abs_diff(first.sequence).saturating_add(1);
            self.lost = sent - self.packets.len() as u64;
            loss = Some(self.lost as f64 / sent as f64);
            let arrived = |record: &Record| record.sent.saturating_add(record.delay);
            let span = arrived(last).saturating_sub(arrived(first));
            // "technically, the first packet is out of the calculated time span"
            let bytes =
                self.packets.iter().skip(1).fold(0_u64, |sum, record| sum.saturating_add(record.size));
            receive_rate = (span > 0).then(|| bytes as f64 * 8e6 / span as f64);
        }
        let queued = |record: &Record| record.delay.saturating_sub(self.base) > self.qeps;
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

    /// The queueing delay of the newest packet.
    #[must_use]
    pub fn newest_queueing(&self) -> Option<Span> {
        let micros = self.packets.back()?.delay.saturating_sub(self.base);
        Some(Span::from_nanos(micros.saturating_mul(1000)))
    }

    /// A clock was set: only the last packet is of the clock as it is now.
    pub fn begin_anew(&mut self) {
        let last = self.packets.pop_back();
        self.packets.clear();
        self.packets.extend(last);
        self.base = last.map_or(0, |last| last.delay);
    }
}
