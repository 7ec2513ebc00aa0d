//! One direction of a link: queue, service, propagation.
//!
//! A packet's whole life in the link is computed when it comes in: when its service begins and ends
//! (every service is first come, first served), and when it arrives at the far end. It becomes one entry
//! of one FIFO, and the link is woken for the front of it only. How full the queue is follows from a
//! cursor into the FIFO, between what is still to be served and what is already on the wire.

use crate::invalid::{Invalid, ensure};
use crate::queue::{DropTail, Room};
use crate::service::Service;
use std::collections::VecDeque;
use tidegate_core::node::{Backlog, Inside};
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
    /// How long a bit travels.
    pub delay: Span,
}

impl LinkSettings {
    /// A link of constant `rate` and propagation `delay` with an endless queue, and nothing lost.
    #[must_use]
    pub const fn constant(rate: Rate, delay: Span) -> Self {
        Self::new(Service::constant(rate), delay)
    }

    /// A link with `service` and propagation `delay`, an endless queue, and nothing lost.
    #[must_use]
    pub const fn new(service: Service, delay: Span) -> Self {
        Self { service, nominal: None, queue: DropTail::UNLIMITED, delay }
    }

    /// This, with `queue`.
    #[must_use]
    pub const fn with_queue(mut self, queue: DropTail) -> Self {
        self.queue = queue;
        self
    }
}

/// A packet between the day it is taken in and the day it arrives.
#[derive(Clone, Debug)]
struct Entry {
    /// When its first byte is served.
    start: Time,
    /// When its last byte has been served.
    finish: Time,
    /// When it leaves the FIFO.
    due: Time,
    /// What it dies of, if it does.
    fate: Option<Cause>,
    packet: Box<Packet>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    name: String,
    service: Service,
    room: Room,
    delay: Span,
    line: VecDeque<Entry>,
    /// So many entries of `line` had been served when it was last looked at.
    served: usize,
    /// Bytes of the entries behind them.
    held: u64,
}

impl Link {
    /// A link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(name: impl Into<String>, seed: u64, settings: LinkSettings) -> Result<Self, Invalid> {
        let name = name.into();
        let _ = seed;
        let LinkSettings { service, nominal, queue, delay } = settings;
        ensure(!delay.is_negative(), || format!("{name}: a delay of {delay}"))?;
        let room = queue.resolve(nominal.unwrap_or_else(|| service.nominal_rate()));
        Ok(Self { name, service, room, delay, line: VecDeque::with_capacity(64), served: 0, held: 0 })
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
                None if self.service.is_ready(now) => return true,
                Some(first) if first.start <= now => {
                    packets -= 1;
                    bytes -= u64::from(first.packet.size);
                }
                _ => {}
            }
        }
        self.room.fits(packets, bytes, size)
    }
}

impl Node for Link {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        self.line.front().map(|entry| entry.due).filter(|&due| due != Time::MAX)
    }

    #[inline]
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        while self.line.front().is_some_and(|entry| entry.due <= now) {
            let Some(Entry { fate, packet, .. }) = self.line.pop_front() else { return };
            match self.served.checked_sub(1) {
                Some(served) => self.served = served,
                None => self.held -= u64::from(packet.size),
            }
            match fate {
                None => out.forward(Port::ZERO, packet),
                Some(cause) => out.discard(now, &packet, cause),
            }
        }
    }

    #[inline]
    fn receive(&mut self, now: Time, _port: Port, mut packet: Box<Packet>, out: &mut Outbox) {
        self.settle(now);
        if !self.admits(now, packet.size) {
            out.discard(now, &packet, Cause::Queue);
            return;
        }
        let served = self.service.serve(now, packet.size);
        packet.queued += served.start - now;
        self.held += u64::from(packet.size);
        let due = served.finish + self.delay;
        self.line.push_back(Entry { start: served.start, finish: served.finish, due, fate: None, packet });
    }

    fn inside(&self) -> Inside {
        let mut inside = Inside::default();
        self.line.iter().for_each(|entry| inside.add(&entry.packet));
        inside
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
}
