//! The outbox of a node: the packets that it sends, drops or takes for itself, what it tells the record, and the packet
//! accounting.

use crate::datagram::Ecn;
use crate::ids::{NodeId, Port};
use crate::packet::Packet;
use crate::record::{Cause, Passing, Recorder};
use crate::units::Time;
use std::collections::VecDeque;

/// Packet accounting of one node, for the conservation law
/// `entered + created + copied = left + consumed + dropped + inside`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketAccount {
    /// Packets that came in.
    pub entered: u64,
    /// Packets made here.
    pub created: u64,
    /// Extra copies made here (multicast fan-out).
    pub copied: u64,
    /// Packets that went out.
    pub left: u64,
    /// Bytes that went out, headers included.
    pub left_bytes: u64,
    /// Packets that reached their end here.
    pub consumed: u64,
    /// Packets that died here.
    pub dropped: u64,
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

/// The end of a packet that the driver fed and that has died on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Died {
    /// The number that it was fed with.
    pub tag: u64,
    /// When it died.
    pub at: Time,
    /// What of.
    pub cause: Cause,
}

/// Where a node puts what it sends, drops, takes for itself and has to say.
pub struct Outbox {
    /// Packets on their way out, oldest first: the driver empties it.
    pub packets: VecDeque<(Port, Box<Packet>)>,
    /// The packet accounting of every node, by id.
    pub accounts: Vec<PacketAccount>,
    /// The record of the run.
    pub record: Box<dyn Recorder>,
    /// Packets for the driver, oldest first: the driver empties it.
    pub handed: Vec<Handed>,
    /// Fed packets that have died, oldest first, if the driver wants to know: it empties it.
    pub died: Option<Vec<Died>>,
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
            accounts: vec![PacketAccount::default(); nodes],
            captures: record.captures(),
            record,
            handed: Vec::new(),
            died: None,
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
        assert!((node.0 as usize) < self.accounts.len(), "no node {}", node.0);
        self.node = node;
    }

    /// Whose turn it is.
    #[inline]
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    #[inline]
    fn mine(&mut self) -> &mut PacketAccount {
        &mut self.accounts[self.node.0 as usize]
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
        debug_assert!(packet.sent <= now, "a packet of {} arrives at {now}", packet.sent);
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
        if let (Some(died), Some(tag)) = (&mut self.died, packet.tag()) {
            died.push(Died { tag, at: now, cause });
        }
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

    /// Clears the ECN field of a packet, as a path does that knows no ECN: codepoint and mark are gone.
    pub fn bleach(&mut self, now: Time, packet: &mut Packet) {
        if packet.ecn.is_capable() {
            packet.ecn = Ecn::NotEct;
            self.record.bleached(now, packet, self.node);
        }
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
