//! Linux's network emulator: delay, losses, reordering, duplicates, corruption and rate as `tc qdisc ... netem` has them.
//!
//! It does what `net/sched/sch_netem.c` does (Linux 6.18), in the same order and in the same integers, with random
//! numbers of our own: a packet is perhaps copied, lost or damaged, and then waits until its time. Packets go in order of
//! these times, so that jitter reorders by itself.

mod loss;
mod random;
mod tables;

pub use loss::LossModel;
pub use tables::Distribution;

use crate::counts::take_away;
use crate::refusal::{Refusal, ensure};
use loss::LossState;
use random::Correlated;
use serde::Deserialize;
use std::collections::BTreeMap;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Outbox, Packet, Rate, Size, Span, Stream, Time};

/// A probability as Linux counts it: parts of `u32::MAX`.
pub type Part = u32;

/// A probability and the correlation of each event with the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chance {
    /// The probability without correlation.
    pub probability: Part,
    /// The weight of the number before.
    #[serde(default)]
    pub correlation: Part,
}

/// Serialisation of packets before their delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateSettings {
    /// The rate, in bytes a second.
    pub bytes_per_s: u64,
    /// Bytes that count beyond those of each packet.
    #[serde(default)]
    pub overhead: i32,
    /// Payload of the cells into which packets are cut; zero: they are not.
    #[serde(default)]
    pub cell: u32,
    /// Bytes that count beyond those of each cell.
    #[serde(default)]
    pub cell_overhead: i32,
}

/// A probability in per cent, as short as it can be told.
fn percent(part: Part) -> f64 {
    (f64::from(part) / f64::from(Part::MAX) * 1e6).round_ties_even() / 1e4
}

impl RateSettings {
    /// The time of a packet (`packet_time_ns`).
    fn time(&self, size: u32) -> Span {
        let mut length = i64::from(size) + i64::from(self.overhead);
        if self.cell > 0 {
            let cells = length.max(0).unsigned_abs().div_ceil(u64::from(self.cell));
            length = cells as i64 * (i64::from(self.cell) + i64::from(self.cell_overhead));
        }
        let nanos = i128::from(length.max(0)) * 1_000_000_000 / i128::from(self.bytes_per_s);
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

/// The settings of the emulator; by default it does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetemSettings {
    /// Largest number of packets in it.
    pub limit: u32,
    /// Mean delay.
    pub delay: Span,
    /// Half of the range of the delay, or its standard deviation by a distribution.
    pub jitter: Span,
    /// Correlation of the delays.
    pub delay_correlation: Part,
    /// Distribution of the delay.
    pub distribution: Distribution,
    /// Losses.
    pub loss: LossModel,
    /// Whether packets of ECN-capable transports are marked instead of lost.
    pub ecn: bool,
    /// Packets that are sent twice.
    pub duplicate: Chance,
    /// Damaged packets, which the receiver drops.
    pub corrupt: Chance,
    /// Packets that are sent at once, ahead of those that wait.
    pub reorder: Chance,
    /// Packets from one that may go ahead to the next one; zero: none does.
    pub gap: u32,
    /// Serialisation, if any.
    pub rate: Option<RateSettings>,
}

impl Default for NetemSettings {
    fn default() -> Self {
        Self {
            // `netem_parse_opt` of iproute2
            limit: 1000,
            delay: Span::ZERO,
            jitter: Span::ZERO,
            delay_correlation: 0,
            distribution: Distribution::default(),
            loss: LossModel::default(),
            ecn: false,
            duplicate: Chance::default(),
            corrupt: Chance::default(),
            reorder: Chance::default(),
            gap: 0,
            rate: None,
        }
    }
}

impl NetemSettings {
    /// Checks that the values are in their ranges.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        ensure(!self.delay.is_negative(), || Refusal::new("netem.delay", self.delay, "zero or more"))?;
        // `netem_change` caps it at `INT_MAX` ns
        let largest = Span::from_nanos(i64::from(i32::MAX));
        ensure((Span::ZERO..=largest).contains(&self.jitter), || {
            Refusal::new("netem.jitter", self.jitter, format!("from 0 to {largest}"))
        })?;
        ensure(self.limit > 0, || Refusal::new("netem.limit", 0, "at least 1 packet"))?;
        ensure(self.rate.is_none_or(|rate| rate.bytes_per_s > 0), || {
            Refusal::new("netem.rate", 0, "more than zero")
        })
    }
}

/// The correlated random numbers of each kind of event.
#[derive(Clone, Debug)]
struct Numbers {
    delay: Correlated,
    loss: Correlated,
    duplicate: Correlated,
    corrupt: Correlated,
    reorder: Correlated,
}

impl Numbers {
    fn new(settings: &NetemSettings, luck: &mut Stream) -> Self {
        let mut start = |correlation| Correlated::new(correlation, luck);
        Self {
            delay: start(settings.delay_correlation),
            loss: start(settings.loss.correlation()),
            duplicate: start(settings.duplicate.correlation),
            corrupt: start(settings.corrupt.correlation),
            reorder: start(settings.reorder.correlation),
        }
    }
}

/// The emulator with the packets in it.
#[derive(Debug)]
pub(crate) struct Netem {
    settings: NetemSettings,
    numbers: Numbers,
    loss: LossState,
    luck: Stream,
    /// Packets that wait for their times, in order of these; those of one time as they came.
    waiting: BTreeMap<(Time, u64), Held>,
    /// Packets that go at once, the last one first: one, and perhaps its copy.
    ahead: Vec<Held>,
    bytes: u64,
    /// Packets that came so far.
    order: u64,
    /// Packets since the last one that went ahead.
    counter: u32,
}

/// A packet in the emulator.
#[derive(Debug)]
struct Held {
    packet: Box<Packet>,
    corrupt: bool,
}

impl Netem {
    /// The emulator of the link called `name` in the run with `seed`; it draws from the substream for "netem".
    pub(crate) fn new(settings: NetemSettings, seed: u64, name: &str) -> Result<Self, Refusal> {
        settings.check()?;
        let mut luck = Stream::new(seed, name, "netem");
        Ok(Self {
            numbers: Numbers::new(&settings, &mut luck),
            loss: LossState::default(),
            settings,
            luck,
            waiting: BTreeMap::new(),
            ahead: Vec::new(),
            bytes: 0,
            order: 0,
            counter: 0,
        })
    }

    /// Changes the settings, which must be valid, for packets that come from now on (`netem_change`).
    pub(crate) fn change(&mut self, settings: NetemSettings) {
        self.numbers = Numbers::new(&settings, &mut self.luck);
        self.loss = LossState::default();
        self.settings = settings;
        self.counter = 0;
    }

    /// Takes in a packet (`netem_enqueue`); afterwards all that are due have to be taken out.
    pub(crate) fn enqueue(&mut self, now: Time, packet: Box<Packet>, out: &mut Outbox) {
        let doubled = self.numbers.duplicate.happens(self.settings.duplicate.probability, &mut self.luck);
        let copy = doubled.then(|| (*packet).clone());
        self.pass(now, packet, copy, out);
    }

    /// Loses a packet, or lets it wait; its copy, if there is one, goes the same way before it does.
    fn pass(&mut self, now: Time, mut packet: Box<Packet>, copy: Option<Packet>, out: &mut Outbox) {
        let lost = packet
            .any_fragment(|| self.loss.takes(&self.settings.loss, &mut self.numbers.loss, &mut self.luck));
        let lost = lost && !(self.settings.ecn && out.mark(now, &mut packet));
        // a packet that is lost and doubled goes once
        let copy = match (copy, lost) {
            (None, true) => return Self::drop(now, packet, Cause::Loss, out),
            (copy, lost) => copy.filter(|_| !lost),
        };
        let corrupt = packet
            .any_fragment(|| self.numbers.corrupt.happens(self.settings.corrupt.probability, &mut self.luck));
        if self.packets() >= u64::from(self.settings.limit) {
            return Self::drop(now, packet, Cause::Queue, out);
        }
        if let Some(copy) = copy {
            let copy = out.double(now, copy);
            self.pass(now, copy, None, out);
        }
        self.bytes += u64::from(packet.size);
        let held = Held { packet, corrupt };
        let settings = &self.settings;
        let waits = settings.gap == 0
            || self.counter < settings.gap - 1
            || settings.reorder.probability < self.numbers.reorder.next(&mut self.luck);
        if !waits {
            self.counter = 0;
            self.ahead.push(held);
            return;
        }
        let time = self.time(now, held.packet.wire_size());
        self.counter = self.counter.wrapping_add(1);
        self.order += 1;
        self.waiting.insert((time, self.order), held);
    }

    /// The time at which a packet of `size` that comes now goes on.
    fn time(&mut self, now: Time, size: u32) -> Time {
        let NetemSettings { delay, jitter, distribution, rate, .. } = &self.settings;
        let delay = distribution.delay(*delay, *jitter, &mut self.numbers.delay, &mut self.luck);
        let Some(rate) = rate else { return now + delay };
        let (from, delay) = match self.waiting.last_key_value() {
            // the wait for the packets before it counts as part of the delay
            Some((&(last, _), _)) => (last, (delay - (last - now)).max(Span::ZERO)),
            None => (now, delay),
        };
        from + delay + rate.time(size)
    }

    /// Takes the next packet whose time has come (`netem_dequeue`). A damaged one is dropped, as its receiver does.
    pub(crate) fn dequeue(&mut self, now: Time, out: &mut Outbox) -> Option<Box<Packet>> {
        loop {
            let held = match self.ahead.pop() {
                Some(held) => held,
                None => self.waiting.first_entry().filter(|first| first.key().0 <= now)?.remove(),
            };
            take_away(&mut self.bytes, u64::from(held.packet.size), "bytes of an emulator");
            if !held.corrupt {
                return Some(held.packet);
            }
            Self::drop(now, held.packet, Cause::Corrupt, out);
        }
    }

    fn drop(now: Time, packet: Box<Packet>, cause: Cause, out: &mut Outbox) {
        out.discard(now, &packet, cause);
        out.recycle(packet);
    }

    /// When the next packet goes; all that are due have been taken.
    pub(crate) fn next(&self) -> Option<Time> {
        debug_assert!(self.ahead.is_empty(), "a packet that goes at once is still here");
        self.waiting.first_key_value().map(|(&(time, _), _)| time)
    }

    fn packets(&self) -> u64 {
        (self.waiting.len() + self.ahead.len()) as u64
    }

    /// Packets and bytes in it.
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets() as u32, bytes: Size::from_bytes(self.bytes) }
    }

    /// The rate at which it lets packets pass, without overhead.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.settings.rate.map(|rate| Rate::from_bps(rate.bytes_per_s.saturating_mul(8)))
    }

    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&Packet)) {
        self.ahead.iter().chain(self.waiting.values()).for_each(|held| visit(&held.packet));
    }

    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.luck.draws());
    }

    /// Warns about correlations, which make events rarer than their probability says.
    pub(crate) fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        let loss = match self.settings.loss {
            LossModel::Random(chance) => chance,
            _ => Chance::default(),
        };
        let NetemSettings { duplicate, corrupt, .. } = self.settings;
        for (word, Chance { probability, correlation }) in
            [("loss", loss), ("duplicate", duplicate), ("corrupt", corrupt)]
        {
            if probability > 0 && correlation > 0 {
                let (stated, weight) = (percent(probability), percent(correlation));
                let share = 100.0 * random::share(probability, correlation);
                let meant = format!("{word} {stated}% {weight}% is {share:.3} % in truth");
                tell("netem", format!("{meant}: numbers that are correlated are rarely small, in Linux too"));
            }
        }
    }
}
