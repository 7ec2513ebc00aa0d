//! The contract of everything that a world drives: links, TCP, radio networks, hosts of endpoints.
//!
//! A driver (virtual time, SimPy) does three things: it asks for the next wakeup, calls
//! [`Node::advance`] at that time, and hands over packets with [`Node::receive`]. Whatever a node has
//! to say goes into the [`Outbox`], a reused buffer: nothing has to be drained, nothing can be forgotten.

use crate::datagram::Ecn;
use crate::packet::Packet;
use crate::record::{Cause, Passing, Recorder};
use crate::rng::Draws;
use crate::units::{Rate, Size, Time};
use std::any::Any;
use std::collections::VecDeque;

/// One of a node's sockets. For a node with one way in and one way out both are [`Port::ZERO`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port(pub u16);

impl Port {
    /// The only port of a node that has one.
    pub const ZERO: Self = Self(0);
}

/// A node's place in its world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(pub u32);

/// What a node holds right now, counted from its contents and not from counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inside {
    /// Packets held.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Inside {
    /// Adds one packet.
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
}

/// How full a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets waiting or in service.
    pub packets: u32,
    /// Bytes waiting or in service.
    pub bytes: Size,
}

/// A packet that a node shows to the driver: one that has come to an end outside the world, or that the
/// driver has to do something about.
#[derive(Clone, Debug, PartialEq)]
pub struct Handed {
    /// Which node shows it.
    pub node: NodeId,
    /// What the node calls it.
    pub number: u64,
    /// A copy; the original stays where it is counted.
    pub packet: Packet,
}

/// Something that a driver drives.
pub trait Node: Send + Any {
    /// The name in tables, and the component name of its random substreams.
    fn name(&self) -> &str;

    /// When [`Node::advance`] must be called next, if nothing is received before. Calling earlier is
    /// harmless; calling later under virtual time is an error of the driver. [`Time::MAX`] is never.
    fn next_wakeup(&self) -> Option<Time>;

    /// Does whatever is due at `now`. Afterwards `next_wakeup` must be later than `now`, or this is
    /// called again at the same instant; too many calls at one instant fail the run.
    fn advance(&mut self, now: Time, out: &mut Outbox);

    /// Takes `packet` in at `port`.
    fn receive(&mut self, now: Time, port: Port, packet: Box<Packet>, out: &mut Outbox);

    /// Shows every packet that it holds; by default it holds none.
    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        let _ = visit;
    }

    /// How much is inside, counted from the contents.
    fn inside(&self) -> Inside {
        let mut inside = Inside::default();
        self.contents(&mut |packet| inside.add(packet));
        inside
    }

    /// How full its queue is at `now`, for those that have one.
    fn backlog(&self, now: Time) -> Option<Backlog> {
        let _ = now;
        None
    }

    /// What it can carry on average in `[from, to)`, whatever the traffic, for those that know: as it was, or as it
    /// will be if nobody changes it; [`Rate::MAX`] for no limit.
    fn capacity(&mut self, from: Time, to: Time) -> Option<Rate> {
        let _ = (from, to);
        None
    }

    /// Shows what each of its random substreams gave out.
    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        let _ = visit;
    }

    /// Called once when the run ends, to write what is still open (frames, counters) to the record.
    fn finish(&mut self, now: Time, out: &mut Outbox) {
        let _ = (now, out);
    }
}

/// Counts of one node, for the conservation law
/// `entered + created + copied = left + consumed + dropped + inside`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// Packets taken in from the wire.
    pub entered: u64,
    /// Packets made here.
    pub created: u64,
    /// Extra copies made here (multicast fan-out).
    pub copied: u64,
    /// Packets put on the wire.
    pub left: u64,
    /// Bytes put on the wire.
    pub left_bytes: u64,
    /// Packets that reached their end here.
    pub consumed: u64,
    /// Packets that died here.
    pub dropped: u64,
}

/// Where a node puts what it sends, drops, takes for itself and has to say.
pub struct Outbox {
    /// Packets on their way out, oldest first: the driver empties it.
    pub packets: VecDeque<(Port, Box<Packet>)>,
    /// The counts of every node, by id.
    pub census: Vec<Census>,
    /// The record of the run.
    pub record: Box<dyn Recorder>,
    /// Packets for the driver, oldest first: the driver empties it.
    pub handed: Vec<Handed>,
    /// Why the run cannot go on.
    pub failure: Option<String>,
    node: NodeId,
    /// Whether the record is told of each packet at its ends.
    captures: bool,
    /// Boxes of packets that have come to their end, for packets to come.
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: Vec<Box<Packet>>,
}

impl Outbox {
    /// More spare boxes than this are given back to the allocator.
    const SPARE: usize = 1024;

    /// An empty one for a world of `nodes` nodes that writes to `record`.
    ///
    /// # Panics
    /// Without any node.
    #[must_use]
    pub fn new(nodes: usize, record: Box<dyn Recorder>) -> Self {
        assert!(nodes > 0, "an outbox for no node");
        Self {
            packets: VecDeque::with_capacity(64),
            census: vec![Census::default(); nodes],
            captures: record.captures(),
            record,
            handed: Vec::new(),
            failure: None,
            node: NodeId::default(),
            spare: Vec::new(),
        }
    }

    /// Says whose turn it is; the driver does before every call of a node.
    ///
    /// # Panics
    /// If there is no such node.
    #[inline]
    pub fn turn(&mut self, node: NodeId) {
        assert!((node.0 as usize) < self.census.len(), "no node {}", node.0);
        self.node = node;
    }

    /// Whose turn it is.
    #[inline]
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    #[inline]
    fn mine(&mut self) -> &mut Census {
        &mut self.census[self.node.0 as usize]
    }

    /// Takes note that a packet comes in at the node whose turn it is; the driver does.
    #[inline]
    pub fn enter(&mut self) {
        self.mine().entered += 1;
    }

    /// Sends a packet that was made here: its life begins, and is recorded from here on.
    #[inline]
    pub fn originate(&mut self, now: Time, port: Port, packet: Packet) {
        let mine = self.mine();
        mine.created += 1;
        mine.left += 1;
        mine.left_bytes += u64::from(packet.size);
        self.tell_sent(now, &packet);
        let packet = self.boxed(packet);
        self.packets.push_back((port, packet));
    }

    /// Takes back the box of a packet that has come to its end. Dropping it does as well, only slower.
    #[inline]
    pub fn recycle(&mut self, packet: Box<Packet>) {
        if self.spare.len() < Self::SPARE {
            self.spare.push(packet);
        }
    }

    /// Counts a packet as made here that is to leave later with [`Outbox::forward`] (a sending host's
    /// own queue). It is recorded as sent now.
    #[inline]
    pub fn create(&mut self, now: Time, packet: &Packet) {
        self.mine().created += 1;
        self.tell_sent(now, packet);
    }

    #[inline]
    fn tell_sent(&mut self, now: Time, packet: &Packet) {
        self.record.sent(now, packet);
        if self.captures {
            self.record.captured(now, packet, self.node, Passing::Out);
        }
    }

    /// Sends a packet on that came in.
    #[inline]
    pub fn forward(&mut self, port: Port, packet: Box<Packet>) {
        let mine = self.mine();
        mine.left += 1;
        mine.left_bytes += u64::from(packet.size);
        self.packets.push_back((port, packet));
    }

    /// Sends one more copy of a packet that came in (multicast fan-out).
    pub fn copy(&mut self, now: Time, port: Port, packet: Packet) {
        let mine = self.mine();
        mine.copied += 1;
        mine.left += 1;
        mine.left_bytes += u64::from(packet.size);
        self.record.copied(now, &packet);
        let packet = self.boxed(packet);
        self.packets.push_back((port, packet));
    }

    #[inline]
    fn boxed(&mut self, packet: Packet) -> Box<Packet> {
        match self.spare.pop() {
            Some(mut boxed) => {
                *boxed = packet;
                boxed
            }
            None => Box::new(packet),
        }
    }

    /// Takes a packet at its end: it has arrived.
    #[inline]
    pub fn deliver(&mut self, now: Time, packet: &Packet) {
        self.mine().consumed += 1;
        self.record.arrived(now, packet);
        if self.captures {
            self.record.captured(now, packet, self.node, Passing::In);
        }
    }

    /// Lets a packet die here.
    #[inline]
    pub fn discard(&mut self, now: Time, packet: &Packet, cause: Cause) {
        self.mine().dropped += 1;
        let node = self.node;
        self.record.dropped(now, packet, node, cause);
    }

    /// Marks a packet with congestion experienced, if it is of an ECN-capable transport; says whether. One that bears
    /// the mark already keeps it and is not told of again.
    pub fn mark(&mut self, now: Time, packet: &mut Packet) -> bool {
        if packet.ecn.is_capable() && packet.ecn != Ecn::Ce {
            packet.ecn = Ecn::Ce;
            self.record.marked(now, packet, self.node);
        }
        packet.ecn.is_capable()
    }

    /// Shows a packet, which the node calls `number`, to the driver.
    pub fn hand(&mut self, number: u64, packet: Packet) {
        self.handed.push(Handed { node: self.node, number, packet });
    }

    /// Ends the run with a reason; the first one counts.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.failure.get_or_insert_with(|| reason.into());
    }
}
