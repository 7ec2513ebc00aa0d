//! The estimates of RFC 8698 section 5.1: queueing delay, loss and marking ratios, receive rate, loss intervals.

use super::baseline::Baseline;
use super::settings::Settings;
use super::signals::{Losses, Packet, Signals};
use crate::tfrc::intervals::{self, Closed, INTERVALS};
use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// No window holds more packets: at 1200 bytes and 500 ms they are more than 1 Gb/s.
const MOST: usize = 1 << 16;

/// A packet of the window.
#[derive(Clone, Copy, Debug)]
struct Seen {
    packet: Packet,
    /// How many that were sent before it, and after the one before it, did not arrive.
    missing: u64,
}

/// What has arrived lately.
#[derive(Clone, Debug)]
pub struct Window {
    span: i64,
    taps: usize,
    qeps: i64,
    base: Baseline,
    /// Those of the last LOGWIN.
    seen: VecDeque<Seen>,
    /// The last delays in ns, the newest last: as many as the minimum filter looks at.
    delays: VecDeque<i64>,
    highest: Option<i64>,
    gaps: Gaps,
    open_interval: bool,
}

impl Window {
    /// Without a packet so far.
    #[must_use]
    pub fn new(set: &Settings) -> Self {
        Self {
            span: Span::from_millis_f64(set.logwin).as_nanos(),
            taps: set.taps as usize,
            qeps: Span::from_millis_f64(set.qeps).as_nanos(),
            base: Baseline::new(set.base_history),
            seen: VecDeque::new(),
            delays: VecDeque::with_capacity(set.taps as usize),
            highest: None,
            gaps: Gaps::default(),
            open_interval: set.open_interval,
        }
    }

    /// Takes in a packet of which was heard `now`. One that comes after a later one counts as lost (section 5.1.2). Says
    /// whether it counts as arrived.
    pub fn add(&mut self, now: Time, packet: Packet) -> bool {
        let expected = self.highest.map_or(packet.sequence, |highest| highest.saturating_add(1));
        if packet.sequence < expected {
            return false;
        }
        self.highest = Some(packet.sequence);
        let missing = packet.sequence.abs_diff(expected);
        self.gaps.add(expected, packet.sequence);
        self.base.add(now, packet.delay());
        if self.delays.len() == self.taps {
            self.delays.pop_front();
        }
        self.delays.push_back(packet.delay());
        // a clock that is set back leaves a window from the future
        if self.seen.back().is_some_and(|last| last.packet.arrival > packet.arrival.saturating_add(self.span))
        {
            self.seen.clear();
        }
        self.seen.push_back(Seen { packet, missing });
        self.trim(packet.arrival);
        true
    }

    /// Drops what arrived longer than LOGWIN before `now`, by the receiver's clock.
    fn trim(&mut self, now: i64) {
        let old = |first: &Seen| now.saturating_sub(first.packet.arrival) >= self.span;
        while self.seen.len() > MOST || self.seen.front().is_some_and(old) {
            self.seen.pop_front();
        }
    }

    /// What it says at `now` by the receiver's clock; no later packet has arrived by then.
    pub fn signals(&mut self, now: i64) -> Signals {
        self.trim(now);
        let base = self.base.least();
        let queueing = base.and_then(|base| {
            let least = self.delays.iter().copied().min()?;
            Some(Span::from_nanos(least.saturating_sub(base)))
        });
        let sum = |of: fn(&Seen) -> u64| self.seen.iter().map(of).fold(0_u64, u64::saturating_add);
        let bytes = sum(|seen| seen.packet.size);
        let missing = sum(|seen| seen.missing);
        let marked = sum(|seen| seen.packet.marked.into());
        let sent = (self.seen.len() as u64).saturating_add(missing).max(1) as f64;
        let queued = |seen: &Seen| seen.packet.delay().saturating_sub(base.unwrap_or_default()) >= self.qeps;
        Signals {
            queueing,
            receive_rate: Some(bytes as f64 * 8e9 / self.span as f64),
            loss: Some(missing as f64 / sent),
            marks: Some(marked as f64 / sent),
            losses: self.gaps.losses(self.open_interval),
            ramp_up: missing == 0 && marked == 0 && !self.seen.iter().any(queued),
        }
    }

    /// The queueing delay of the newest packet.
    #[must_use]
    pub fn newest_queueing(&self) -> Option<Span> {
        let (base, newest) = (self.base.least()?, self.delays.back()?);
        Some(Span::from_nanos(newest.saturating_sub(base)))
    }

    /// A clock was set: only `packet`, the last one, is of the clock as it is now.
    pub fn begin_anew(&mut self, now: Time, packet: Packet) {
        self.base.forget();
        self.base.add(now, packet.delay());
        self.delays.clear();
        self.delays.push_back(packet.delay());
        self.seen.clear();
        self.seen.push_back(Seen { packet, missing: 0 });
    }
}

/// The intervals between gaps, in packets.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// The first packet of the open interval: the first of a gap, or of all.
    begun: Option<i64>,
    highest: i64,
    /// The closed ones, newest first.
    closed: Vec<Closed>,
}

impl Gaps {
    /// `sequence` has come where `expected` should have.
    fn add(&mut self, expected: i64, sequence: i64) {
        self.highest = sequence;
        let begun = *self.begun.get_or_insert(expected);
        if sequence > expected {
            self.closed.truncate(INTERVALS - 1);
            self.closed.insert(0, Closed::new(expected.saturating_sub(begun) as f64));
            self.begun = Some(expected);
        }
    }

    /// The mean by RFC 5348 section 5.4, with the `open` interval where that makes it longer, or without.
    fn losses(&self, open: bool) -> Option<Losses> {
        if self.closed.is_empty() {
            return None;
        }
        let since = self.highest.saturating_sub(self.begun?).saturating_add(1) as f64;
        Some(Losses { mean: intervals::mean(open.then_some(since), &self.closed, 1.0), since })
    }
}
