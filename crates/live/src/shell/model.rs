//! The world of a session. Packets enter it with the kernel's time stamps, and leave it when they are due, or are
//! dropped.

use super::{Names, Side};
use std::collections::VecDeque;
use tidegate_core::outbox::Died;
use tidegate_core::{Cause, Ecn, NodeId, Span, Time};
use tidegate_sim::engine::world::Stopped;
use tidegate_sim::scenario::{Outcome, Run};

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves the last link.
    Arrives {
        /// Whether a queue has marked it.
        marked: bool,
    },
    /// It was dropped.
    Dies(Cause),
}

/// A packet that has left the model, or was dropped in it.
#[derive(Debug, PartialEq, Eq)]
pub struct PacketExit<B> {
    /// Its number.
    pub number: u64,
    /// Model time at which it leaves or was dropped.
    pub at: Time,
    /// Side that sent it.
    pub from: Side,
    /// Its fate.
    pub fate: Fate,
    /// The bytes with which it entered.
    pub bytes: B,
    /// Whether it is a copy that the network has made of the packet of this number.
    pub duplicate: bool,
}

/// A packet that has entered the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnteredPacket {
    /// Its number, counted from 0.
    pub number: u64,
    /// Model time at which it enters.
    pub at: Time,
    /// Difference to its time stamp, if the model had already passed that.
    pub clamped: Span,
}

#[derive(Clone)]
struct PendingPacket<B> {
    from: Side,
    size: u32,
    capable: Ecn,
    bytes: B,
    /// Copies of it that are in the model, too.
    copies: u32,
}

/// Bytes of packets that are in the model at once, at most: 2 Gb/s for a second.
const MAX_BYTES: u64 = 250_000_000;
/// Packets from the oldest to the newest in the model, at most: four times as many as [`MAX_BYTES`] in full packets.
const MAX_PACKETS: usize = 700_000;

/// The world of a session. `B` is stored with each packet in the model: its bytes, or nothing.
pub struct Model<B> {
    run: Run,
    /// The source node of each flow, by side and number.
    sources: [Vec<NodeId>; 2],
    /// The last entry of each source. Time stamps of one device may be out of order if two processors receive at once.
    latest: [Vec<Time>; 2],
    /// The packets in the model by number, from `first` on.
    pending: VecDeque<Option<PendingPacket<B>>>,
    first: u64,
    /// Bytes of the packets in the model.
    bytes: u64,
    /// Time up to which, inclusive, the model has run.
    simulated: Time,
}

impl<B: Clone> Model<B> {
    /// The world of a scenario with external flows for the programs: on each side those of its `names` that the
    /// scenario has.
    ///
    /// # Errors
    /// If the scenario has none of them, or more of one side than of the other.
    pub fn new(mut run: Run, names: &Names) -> Result<Self, String> {
        run.watch_deaths();
        let sources = names.each_ref().map(|names| -> Vec<NodeId> {
            let flows = &run.external().flows;
            names
                .iter()
                .map_while(|name| flows.iter().find(|flow| flow.name == *name).map(|flow| flow.source))
                .collect()
        });
        if sources[0].is_empty() || sources[0].len() != sources[1].len() {
            let first = |names: &Vec<String>| names.first().cloned().unwrap_or_default();
            let [a, b] = names.each_ref().map(first);
            return Err(format!(
                "the scenario needs external flows {a} and {b}, and the same number for both sides"
            ));
        }
        let latest = sources.each_ref().map(|sources| vec![Time::ZERO; sources.len()]);
        let simulated = Time::from_nanos(-1);
        Ok(Self { run, sources, latest, pending: VecDeque::new(), first: 0, bytes: 0, simulated })
    }

    /// Number of flows of each side.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.sources[0].len()
    }

    /// Duration of the scenario.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.run.duration()
    }

    /// Time up to which, inclusive, the model has run.
    #[must_use]
    pub fn simulated(&self) -> Time {
        self.simulated
    }

    /// Time of the next event, as far as it is known.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.run.peek()
    }

    /// Whether the model takes a packet of `size` bytes: a flood on a link without a limit must not fill the memory.
    #[must_use]
    pub fn has_room(&self, size: u32) -> bool {
        self.bytes + u64::from(size) <= MAX_BYTES && self.pending.len() < MAX_PACKETS
    }

    /// Enters a packet of `size` bytes from `from` on flow number `flow`, with time stamp `stamp`.
    ///
    /// It enters at its time stamp, or at the first later time that the model has not reached; not at all if the
    /// scenario is over then.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn enter(
        &mut self,
        from: Side,
        flow: usize,
        stamp: Time,
        size: u32,
        ecn: Ecn,
        bytes: B,
    ) -> Option<EnteredPacket> {
        let over = Time::ZERO + self.duration();
        let (source, latest) = (self.sources[from as usize][flow], &mut self.latest[from as usize][flow]);
        let entry = stamp.max(self.simulated + Span::from_nanos(1)).max(*latest);
        if entry > over {
            return None;
        }
        *latest = entry;
        let number = self.first + self.pending.len() as u64;
        self.pending.push_back(Some(PendingPacket { from, size, capable: ecn, bytes, copies: 0 }));
        self.bytes += u64::from(size);
        let fed = self.run.feed(source, entry, size, ecn, number);
        assert!(fed, "the source of {}-{} is no external flow", from.name(), flow + 1);
        Some(EnteredPacket { number, at: entry, clamped: entry - stamp })
    }

    /// Runs the model up to and including `until`, but for not many more than `events` events. Calls `on_exit` with
    /// each packet that leaves or is dropped, in order of time. Returns whether `until` was reached.
    ///
    /// # Errors
    /// If a component of the scenario fails.
    pub fn advance(
        &mut self,
        until: Time,
        events: u64,
        mut on_exit: impl FnMut(PacketExit<B>),
    ) -> Result<bool, Stopped> {
        let mut remaining = events;
        let done = loop {
            // the engine stops at each packet that it hands over, before many events: they count as one
            let batch = remaining.min(1024);
            let done = self.run.run_driven(until, batch)?;
            for number in self.run.take_doubled() {
                if let Some(packet) = self.pending(number) {
                    packet.copies += 1;
                }
            }
            // packets were dropped at or before the event at which the engine stopped
            for died in self.run.take_died() {
                let Died { tag: number, at, cause, duplicate } = died;
                if let Some(PendingPacket { from, bytes, .. }) = self.release(number) {
                    on_exit(PacketExit { number, at, from, fate: Fate::Dies(cause), bytes, duplicate });
                }
            }
            let handed = self.run.take_handed();
            let now = self.run.now();
            for delivery in &handed {
                let (Some(number), duplicate) = (delivery.packet.tag(), delivery.packet.duplicate) else {
                    continue;
                };
                if let Some(PendingPacket { from, bytes, capable, .. }) = self.release(number) {
                    let marked = delivery.packet.ecn == Ecn::Ce && capable != Ecn::Ce;
                    let fate = Fate::Arrives { marked };
                    on_exit(PacketExit { number, at: now, from, fate, bytes, duplicate });
                }
            }
            if done {
                break true;
            }
            remaining -= if handed.is_empty() { batch } else { 1 };
            if remaining == 0 {
                break false;
            }
        };
        self.simulated = self.simulated.max(if done { until } else { self.run.now() });
        Ok(done)
    }

    fn pending(&mut self, number: u64) -> Option<&mut PendingPacket<B>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.pending.get_mut(index)?.as_mut()
    }

    /// The packet of a number, one time less than there are copies of it.
    fn release(&mut self, number: u64) -> Option<PendingPacket<B>> {
        let packet = self.pending(number)?;
        if packet.copies > 0 {
            packet.copies -= 1;
            return Some(packet.clone());
        }
        let pending = self.pending[(number - self.first) as usize].take();
        self.bytes -= pending.as_ref().map_or(0, |pending| u64::from(pending.size));
        while let Some(None) = self.pending.front() {
            self.pending.pop_front();
            self.first += 1;
        }
        pending
    }

    /// Number of packets in the model.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    /// Ends the run after `end`.
    ///
    /// # Errors
    /// If a component fails at the end.
    pub fn finish(self, end: Time) -> Result<Outcome, Stopped> {
        self.run.finish_at(end)
    }
}
