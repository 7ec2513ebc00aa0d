//! A link with a drop-tail queue that computes a packet's departure and arrival when it comes in.
//!
//! The beginning and end of its service (all service is first come, first served) and its arrival at the far end are
//! known at once, because no later packet changes them. A packet becomes one entry of a FIFO, and the link is woken
//! only for the front of it. The queue length follows from a cursor into the FIFO, between the packets still to be
//! served and those already on the medium. Only jitter that reorders needs a heap, for the packets on the medium.

use super::LinkSettings;
use super::capacity::Server;
use super::flight::{Flying, Scatter};
use super::medium::Medium;
use super::queue::{Discipline, Room};
use crate::counts::take_away;
use crate::refusal::{Refusal, ensure};
use std::collections::VecDeque;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Cause, Node, Outbox, Packet, Port, Rate, Size, Span, Time};

/// A packet between its acceptance and its arrival.
#[derive(Clone, Debug)]
struct Entry {
    /// Time at which the service of its first byte begins.
    start: Time,
    /// Time at which the service of its last byte ends.
    finish: Time,
    /// Time at which it arrives at the far end.
    arrival: Time,
    /// Cause of its death, if it dies.
    fate: Option<Cause>,
    packet: Box<Packet>,
}

impl Entry {
    #[inline]
    fn flying(self) -> Flying {
        Flying { arrival: self.arrival, fate: self.fate, packet: self.packet }
    }
}

/// One direction of a link.
///
/// A packet lost to the medium's loss model stays inside until it would have arrived, and is then
/// recorded as dropped.
#[derive(Clone, Debug)]
// three cache lines, in the order in which they are needed: in a world of many links they are not in the cache
#[repr(C, align(64))]
pub struct Link {
    /// All packets inside, in the order of service; with `scatter` only those not yet on the medium.
    line: VecDeque<Entry>,
    /// Number of entries of `line` that had been served when the cursor was last moved.
    served: usize,
    /// Bytes of the other entries, which were still to be served.
    held: u64,
    scatter: Option<Box<Scatter>>,
    room: Room,
    /// The propagation delay, if the medium has a constant delay and nothing else.
    constant_delay: Option<Span>,
    server: Server,
    medium: Box<Medium>,
    name: String,
    nominal: Rate,
}

impl Link {
    /// A link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range, or its discipline is not drop-tail.
    pub fn new(name: impl Into<String>, seed: u64, settings: LinkSettings) -> Result<Self, Refusal> {
        let name = name.into();
        ensure(settings.discipline == Discipline::DropTail, || {
            // the others decide when a packet is served, and this link when it comes in
            let expected = "drop-tail; other disciplines need a managed link";
            Refusal::new("discipline", settings.discipline.name(), expected).at(&name)
        })?;
        ensure(settings.netem.is_none(), || {
            Refusal::new("netem", "an emulator", "none; it needs a managed link").at(&name)
        })?;
        ensure(settings.mtu.is_none(), || {
            Refusal::new("mtu", "an MTU", "none; it needs a managed link").at(&name)
        })?;
        let nominal = settings.nominal_rate();
        let room = settings.queue.resolve(nominal);
        let scatter = settings.jitter.reorders().then(Box::default);
        let (server, medium) = settings.parts(&name, seed)?;
        Ok(Self {
            name,
            server,
            nominal,
            room,
            constant_delay: medium.constant_delay(),
            medium: Box::new(medium),
            line: VecDeque::new(),
            served: 0,
            held: 0,
            scatter,
        })
    }

    /// The rate from which a queue limit in time is computed.
    #[must_use]
    pub fn nominal_rate(&self) -> Rate {
        self.nominal
    }

    /// The capacity in each `bin` of `[from, to)`, independent of the traffic (the record's table `truth`). The last
    /// bin may be shorter; a bin that is not positive gives an empty series. See [`Node::capacity`].
    #[must_use]
    pub fn capacity_series(&mut self, from: Time, to: Time, bin: Span) -> Vec<(Time, Rate)> {
        self.server.capacity_series(from, to, bin)
    }

    /// Moves the cursor past all entries that have been served by `now`.
    #[inline]
    fn pass_served(&mut self, now: Time) {
        while let Some(entry) = self.line.get(self.served) {
            if entry.finish > now {
                break;
            }
            take_away(&mut self.held, u64::from(entry.packet.size), "bytes of a queue");
            self.served += 1;
        }
    }

    /// Whether the queue takes in `size` more bytes; the cursor must be up to date.
    #[inline]
    fn admits(&mut self, now: Time, size: u32) -> bool {
        if self.room.is_unlimited() {
            return true;
        }
        let mut packets = (self.line.len() - self.served) as u64;
        let mut bytes = self.held;
        if packets == 0 {
            self.room.takes_one(size);
            return true;
        }
        if !self.room.counts_in_service
            && let Some(first) = self.line.get(self.served).filter(|first| first.start <= now)
        {
            packets -= 1;
            take_away(&mut bytes, u64::from(first.packet.size), "bytes of a queue");
        }
        self.room.fits(packets, bytes, size)
    }

    /// Takes the front entry off the line.
    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        let entry = self.line.pop_front()?;
        match self.served.checked_sub(1) {
            Some(served) => self.served = served,
            None => take_away(&mut self.held, u64::from(entry.packet.size), "bytes of a queue"),
        }
        // the counts, which follow each packet, agree with the contents
        debug_assert!(
            !self.line.is_empty() || (self.held, self.served) == (0, 0),
            "{} bytes counted in an empty queue",
            self.held
        );
        Some(entry)
    }

    /// Moves served packets to the medium, and arrived packets out of it.
    fn advance_scattered(&mut self, now: Time, out: &mut Outbox) {
        while self.line.front().is_some_and(|entry| entry.finish <= now) {
            let Some(entry) = self.pop() else { return };
            if let Some(scatter) = &mut self.scatter {
                scatter.push(entry.flying());
            }
        }
        let Some(scatter) = &mut self.scatter else { return };
        while let Some(flying) = scatter.arrived(now) {
            flying.land(now, out);
        }
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
        next.filter(|&time| time != Time::MAX)
    }

    #[inline]
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.scatter.is_some() {
            return self.advance_scattered(now, out);
        }
        while self.line.front().is_some_and(|entry| entry.arrival <= now) {
            let Some(entry) = self.pop() else { return };
            entry.flying().land(now, out);
        }
    }

    #[inline]
    fn receive(&mut self, now: Time, _port: Port, mut packet: Box<Packet>, out: &mut Outbox) {
        self.pass_served(now);
        if !self.admits(now, packet.size) {
            out.discard(now, &packet, Cause::Queue);
            return;
        }
        let served = self.server.serve(now, packet.wire_size());
        assert!(now <= served.start && served.start <= served.finish, "service of {now} from {served:?}");
        debug_assert!(
            self.line.back().is_none_or(|last| last.finish <= served.finish),
            "a later packet is served later"
        );
        packet.queued += served.start - now;
        self.held += u64::from(packet.size);
        let (arrival, fate) = match self.constant_delay {
            Some(delay) => (served.finish + delay, None),
            None => self.medium.carry(now, served, &mut packet, out),
        };
        self.line.push_back(Entry { start: served.start, finish: served.finish, arrival, fate, packet });
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.line.iter().for_each(|entry| visit(&entry.packet));
        if let Some(scatter) = &self.scatter {
            scatter.for_each(visit);
        }
    }

    fn backlog(&self, now: Time) -> Option<Backlog> {
        let mut packets = self.line.len() - self.served;
        let mut bytes = self.held;
        for entry in self.line.iter().skip(self.served).take_while(|entry| entry.finish <= now) {
            packets -= 1;
            take_away(&mut bytes, u64::from(entry.packet.size), "bytes of a queue");
        }
        Some(Backlog { packets: u32::try_from(packets).unwrap_or(u32::MAX), bytes: Size::from_bytes(bytes) })
    }

    fn capacity(&mut self, from: Time, to: Time) -> Option<Rate> {
        Some(self.server.mean_rate(from, to))
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.server.draws(visit);
        self.medium.draws(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.room.warnings(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_three_cache_lines() {
        assert_eq!(size_of::<Link>(), 192, "{} bytes of server", size_of::<Server>());
    }
}
