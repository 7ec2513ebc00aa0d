//! One direction of a link: queue, service, propagation.
//!
//! A packet's whole life in the link is computed when it comes in: when its service begins and ends
//! (every service is first come, first served), and when it arrives at the far end. It becomes one entry
//! of one FIFO, and the link is woken for the front of it only. How full the queue is follows from a
//! cursor into the FIFO, between what is still to be served and what is already on the wire. Only jitter
//! that reorders needs a heap, for what is on the wire.

use crate::invalid::{Invalid, ensure};
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::phases::Phases;
use crate::queue::{DropTail, Room};
use crate::service::{Server, Service};
use crate::wire::Wire;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tidegate_core::node::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Node, Outbox, Packet, Port, Rate, Size, Span, Time};

/// What a link is made of.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// How fast it puts packets on the wire.
    pub service: Service,
    /// The rate that a queue limit in time is computed from; `None`: [`Service::nominal_rate`].
    pub nominal: Option<Rate>,
    /// What it holds while the wire is busy.
    pub queue: DropTail,
    /// How long a bit travels, by the time at which it leaves.
    pub delay: Phases<Span>,
    /// How that varies from packet to packet.
    pub jitter: Jitter,
    /// Losses on the wire, by the time at which a packet leaves.
    pub loss: Phases<Loss>,
    /// The probability that a byte is hit by an error, which the whole packet dies of.
    pub byte_error: f64,
}

impl LinkSettings {
    /// A link with `service` and propagation `delay`, an endless queue, and nothing lost.
    #[must_use]
    pub fn new(service: Service, delay: Span) -> Self {
        Self {
            service,
            nominal: None,
            queue: DropTail::UNLIMITED,
            delay: Phases::constant(delay),
            jitter: Jitter::None,
            loss: Phases::constant(Loss::None),
            byte_error: 0.0,
        }
    }

    /// A link of constant `rate` and propagation `delay` with an endless queue, and nothing lost.
    #[must_use]
    pub fn constant(rate: Rate, delay: Span) -> Self {
        Self::new(Service::constant(rate), delay)
    }

    /// This, with `queue`.
    #[must_use]
    pub fn with_queue(self, queue: DropTail) -> Self {
        Self { queue, ..self }
    }

    /// This, with `jitter`.
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// This, with `loss` all the time.
    #[must_use]
    pub fn with_loss(self, loss: Loss) -> Self {
        Self { loss: Phases::constant(loss), ..self }
    }
}

/// A packet between the moment it is taken in and the moment it arrives.
#[derive(Clone, Debug)]
struct Entry {
    /// When its first byte is served.
    start: Time,
    /// When its last byte has been served.
    finish: Time,
    /// When it arrives.
    arrival: Time,
    /// What it dies of, if it does.
    fate: Option<Cause>,
    packet: Box<Packet>,
}

/// An entry on a wire that reorders; the order of service breaks ties.
#[derive(Clone, Debug)]
struct Scattered {
    order: u64,
    entry: Entry,
}

impl Scattered {
    const fn key(&self) -> (Time, u64) {
        (self.entry.arrival, self.order)
    }
}

impl PartialEq for Scattered {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Scattered {}
impl PartialOrd for Scattered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scattered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The wire of a link that reorders.
#[derive(Clone, Debug, Default)]
struct Scatter {
    heap: BinaryHeap<Reverse<Scattered>>,
    order: u64,
}

impl Scatter {
    fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(first)| first.entry.arrival)
    }
}

/// One direction of a link.
///
/// A packet that the wire's loss model takes stays inside until it would have arrived, and is then
/// recorded as dropped.
#[derive(Clone, Debug)]
pub struct Link {
    name: String,
    server: Server,
    nominal: Rate,
    room: Room,
    /// The propagation delay, where that is all that the wire does.
    plain: Option<Span>,
    wire: Box<Wire>,
    /// Everything inside, in the order of service; with `scatter` only what is not yet on the wire.
    line: VecDeque<Entry>,
    /// So many entries of `line` had been served when it was last looked at.
    served: usize,
    /// Bytes of the entries behind them.
    held: u64,
    scatter: Option<Box<Scatter>>,
}

impl Link {
    /// A link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(name: impl Into<String>, seed: u64, settings: LinkSettings) -> Result<Self, Invalid> {
        let name = name.into();
        let LinkSettings { service, nominal, queue, delay, jitter, loss, byte_error } = settings;
        let build = || -> Result<(Server, Wire), Invalid> {
            let server = service.start(seed, &name)?;
            let excess = server.excess(seed, &name);
            if excess.is_some() {
                ensure(queue.resolve(service.nominal_rate()).is_unlimited(), || {
                    "a queue limit beside statuses: what they cannot carry is lost, and nothing waits"
                        .to_owned()
                })?;
                ensure(loss == Phases::constant(Loss::None), || {
                    "a loss beside statuses: what they lose follows from their capacity".to_owned()
                })?;
            }
            Ok((server, Wire::new(delay, jitter, loss, excess, byte_error, seed, &name)?))
        };
        let (server, wire) = build().map_err(|Invalid(what)| Invalid(format!("link {name}: {what}")))?;
        let nominal = nominal.unwrap_or_else(|| service.nominal_rate());
        Ok(Self {
            name,
            server,
            nominal,
            room: queue.resolve(nominal),
            plain: wire.plain_delay(),
            wire: Box::new(wire),
            line: VecDeque::with_capacity(64),
            served: 0,
            held: 0,
            scatter: jitter.reorders().then(Box::default),
        })
    }

    /// The rate that a queue limit in time is computed from.
    #[must_use]
    pub fn nominal_rate(&self) -> Rate {
        self.nominal
    }

    /// The capacity in each `bin` of `[from, to)`, whatever the traffic: what the record calls truth.
    /// Exact means of a rate; for opportunities those that fall in the bin. The last bin may be shorter;
    /// a bin that is not positive gives nothing.
    #[must_use]
    pub fn capacity_series(&self, from: Time, to: Time, bin: Span) -> Vec<(Time, Rate)> {
        self.server.capacity_series(from, to, bin)
    }

    /// The mean capacity over `[from, to)`; zero for an empty stretch.
    #[must_use]
    pub fn mean_rate(&self, from: Time, to: Time) -> Rate {
        let whole = if to > from { to - from } else { Span::ZERO };
        self.server.capacity_series(from, to, whole).first().map_or(Rate::ZERO, |&(_, rate)| rate)
    }

    /// Moves the cursor behind all that has been served by `now`.
    #[inline]
    fn settle(&mut self, now: Time) {
        while let Some(entry) = self.line.get(self.served) {
            if entry.finish > now {
                break;
            }
            self.held -= u64::from(entry.packet.size);
            self.served += 1;
        }
    }

    /// Whether the queue takes in `size` more bytes; the cursor must be up to date.
    #[inline]
    fn admits(&self, now: Time, size: u32) -> bool {
        if self.room.is_unlimited() {
            return true;
        }
        let mut packets = (self.line.len() - self.served) as u64;
        let mut bytes = self.held;
        if !self.room.counts_in_service {
            match self.line.get(self.served) {
                None if self.server.is_ready(now) => return true,
                Some(first) if first.start <= now => {
                    packets -= 1;
                    bytes -= u64::from(first.packet.size);
                }
                _ => {}
            }
        }
        self.room.fits(packets, bytes, size)
    }

    /// Takes the front entry off the line.
    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        let entry = self.line.pop_front()?;
        match self.served.checked_sub(1) {
            Some(served) => self.served = served,
            None => self.held -= u64::from(entry.packet.size),
        }
        Some(entry)
    }

    /// What has been served goes on the wire, and what has arrived leaves it.
    fn advance_scattered(&mut self, now: Time, out: &mut Outbox) {
        while self.line.front().is_some_and(|entry| entry.finish <= now) {
            let Some(entry) = self.pop() else { return };
            if let Some(scatter) = &mut self.scatter {
                scatter.order += 1;
                scatter.heap.push(Reverse(Scattered { order: scatter.order, entry }));
            }
        }
        let Some(scatter) = &mut self.scatter else { return };
        while scatter.next().is_some_and(|arrival| arrival <= now) {
            let Some(Reverse(Scattered { entry, .. })) = scatter.heap.pop() else { return };
            release(now, entry, out);
        }
    }
}

/// At its far end an entry leaves or is found missing.
#[inline]
fn release(now: Time, entry: Entry, out: &mut Outbox) {
    match entry.fate {
        None => out.forward(Port::ZERO, entry.packet),
        Some(cause) => out.discard(now, &entry.packet, cause),
    }
}

impl Node for Link {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        let next = match &self.scatter {
            None => self.line.front().map(|entry| entry.arrival),
            Some(scatter) => {
                let line = self.line.front().map(|entry| entry.finish);
                [line, scatter.next()].into_iter().flatten().min()
            }
        };
        next.filter(|&at| at != Time::MAX)
    }

    #[inline]
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.scatter.is_some() {
            return self.advance_scattered(now, out);
        }
        while self.line.front().is_some_and(|entry| entry.arrival <= now) {
            let Some(entry) = self.pop() else { return };
            release(now, entry, out);
        }
    }

    #[inline]
    fn receive(&mut self, now: Time, _port: Port, mut packet: Box<Packet>, out: &mut Outbox) {
        self.settle(now);
        if !self.admits(now, packet.size) {
            out.discard(now, &packet, Cause::Queue);
            return;
        }
        let served = self.server.serve(now, packet.size);
        packet.queued += served.start - now;
        self.held += u64::from(packet.size);
        let (arrival, fate) = match self.plain {
            Some(delay) => (served.finish + delay, None),
            None => self.wire.carry(served, packet.size),
        };
        self.line.push_back(Entry { start: served.start, finish: served.finish, arrival, fate, packet });
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.line.iter().for_each(|entry| visit(&entry.packet));
        if let Some(scatter) = &self.scatter {
            scatter.heap.iter().for_each(|Reverse(scattered)| visit(&scattered.entry.packet));
        }
    }

    fn backlog(&self, now: Time) -> Option<Backlog> {
        let mut packets = self.line.len() - self.served;
        let mut bytes = self.held;
        for entry in self.line.iter().skip(self.served).take_while(|entry| entry.finish <= now) {
            packets -= 1;
            bytes -= u64::from(entry.packet.size);
        }
        Some(Backlog { packets: u32::try_from(packets).unwrap_or(u32::MAX), bytes: Size::from_bytes(bytes) })
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.server.draws(visit);
        self.wire.draws(visit);
    }
}
