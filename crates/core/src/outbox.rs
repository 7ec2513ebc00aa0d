//! Outbox of a node: packets that it sends, drops or consumes, facts for the record, and the packet accounting.

use crate::datagram::Ecn;
use crate::ids::{NodeId, Port};
use crate::packet::Packet;
use crate::record::{Cause, Passing, Recorder};
use crate::units::Time;
use std::collections::VecDeque;

/// Packet accounting of a node, for the conservation law
/// `entered + created + copied = departed + consumed + dropped + inside`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketAccount {
    /// Packets that entered.
    pub entered: u64,
    /// Packets created here.
    pub created: u64,
    /// Extra copies created here (multicast fan-out).
    pub copied: u64,
    /// Packets that left.
    pub departed: u64,
    /// Bytes that left, including headers.
    pub departed_bytes: u64,
    /// Packets that reached their destination here.
    pub consumed: u64,
    /// Packets that were dropped here.
    pub dropped: u64,
}

/// Packet that a node passes to the driver: one whose destination is outside the world, or that the driver has to handle.
#[derive(Clone, Debug, PartialEq)]
pub struct Handed {
    /// Node that passes the packet.
    pub node: NodeId,
    /// Number by which the node identifies the packet.
    pub number: u64,
    /// Copy of the packet; the original stays where it is counted.
    pub packet: Packet,
}

/// Drop of a packet that the driver had fed into the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Died {
    /// Number with which the packet was fed.
    pub tag: u64,
    /// Time of the drop.
    pub at: Time,
    /// Cause of the drop.
    pub cause: Cause,
    /// Whether it was a copy that the network had made.
    pub duplicate: bool,
}

/// Output buffer of nodes: packets that they send, drop or consume, and facts.
pub struct Outbox {
    /// Packets that leave, oldest first; the driver empties the queue.
    pub packets: VecDeque<(Port, Box<Packet>)>,
    /// Packet accounting of each node, by id.
    pub accounts: Vec<PacketAccount>,
    /// Record of the run.
    pub record: Box<dyn Recorder>,
    /// Packets for the driver, oldest first; the driver empties the list.
    pub handed: Vec<Handed>,
    /// Dropped packets that were fed, oldest first, if the driver wants them; the driver empties the list.
    pub died: Option<Vec<Died>>,
    /// Numbers of fed packets of which the network has made a copy, oldest first; kept beside `died`.
    pub doubled: Vec<u64>,
    /// Reason for which the run cannot continue.
    pub failure: Option<String>,
    node: NodeId,
    /// Whether each packet is recorded at its ends.
    captures: bool,
    /// Boxes of finished packets, for reuse.
    #[allow(clippy::vec_box, reason = "the boxes themselves are reused")]
    spare: Vec<Box<Packet>>,
}

impl Outbox {
    /// Largest number of spare boxes; further ones are freed.
    const SPARE: usize = 1024;

    /// Creates an empty outbox for a world of `nodes` nodes that writes to `record`.
    ///
    /// # Panics
    /// Panics if there is no node.
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
            doubled: Vec::new(),
            failure: None,
            node: NodeId::default(),
            spare: Vec::new(),
        }
    }

    /// Sets the node that is called next; the driver does so before each call of a node.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[inline]
    pub fn set_node(&mut self, node: NodeId) {
        assert!((node.0 as usize) < self.accounts.len(), "no node {}", node.0);
        self.node = node;
    }

    /// Node that is being called.
    #[inline]
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    #[inline]
    fn account(&mut self) -> &mut PacketAccount {
        &mut self.accounts[self.node.0 as usize]
    }

    /// Counts a packet that enters the node being called; the driver does so.
    #[inline]
    pub fn enter(&mut self) {
        self.account().entered += 1;
    }

    /// Sends a packet that was created here, and records it as sent.
    #[inline]
    pub fn originate(&mut self, now: Time, port: Port, packet: Packet) {
        let account = self.account();
        account.created += 1;
        account.departed += 1;
        account.departed_bytes += u64::from(packet.size);
        self.record_sent(now, &packet);
        let packet = self.boxed(packet);
        self.packets.push_back((port, packet));
    }

    /// Keeps the box of a finished packet for reuse. Dropping the box instead is correct, but slower.
    #[inline]
    pub fn recycle(&mut self, packet: Box<Packet>) {
        if self.spare.len() < Self::SPARE {
            self.spare.push(packet);
        }
    }

    /// Counts a packet as created here that will leave later with [`Outbox::forward`] (from a sending host's own queue). It
    /// is recorded as sent now.
    #[inline]
    pub fn create(&mut self, now: Time, packet: &Packet) {
        self.account().created += 1;
        self.record_sent(now, packet);
    }

    #[inline]
    fn record_sent(&mut self, now: Time, packet: &Packet) {
        self.record.sent(now, packet);
        if self.captures {
            self.record.captured(now, packet, self.node, Passing::Out);
        }
    }

    /// Forwards a packet that has entered.
    #[inline]
    pub fn forward(&mut self, port: Port, packet: Box<Packet>) {
        let account = self.account();
        account.departed += 1;
        account.departed_bytes += u64::from(packet.wire_size());
        self.packets.push_back((port, packet));
    }

    /// Sends an additional copy of a packet that has entered (multicast fan-out).
    pub fn copy(&mut self, now: Time, port: Port, packet: Packet) {
        let account = self.account();
        account.copied += 1;
        account.departed += 1;
        account.departed_bytes += u64::from(packet.size);
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

    /// A second copy of a packet that has entered, which leaves later (a duplicate that the network makes).
    #[must_use]
    pub fn double(&mut self, now: Time, packet: Packet) -> Box<Packet> {
        self.account().copied += 1;
        self.record.copied(now, &packet);
        if self.died.is_some() {
            self.doubled.extend(packet.tag());
        }
        self.boxed(Packet { duplicate: true, ..packet })
    }

    /// Consumes a packet that has arrived at its destination.
    #[inline]
    pub fn deliver(&mut self, now: Time, packet: &Packet) {
        debug_assert!(packet.sent <= now, "a packet of {} arrives at {now}", packet.sent);
        self.account().consumed += 1;
        self.record.arrived(now, packet);
        if self.captures {
            self.record.captured(now, packet, self.node, Passing::In);
        }
    }

    /// Drops a packet here.
    #[inline]
    pub fn discard(&mut self, now: Time, packet: &Packet, cause: Cause) {
        self.account().dropped += 1;
        let node = self.node;
        self.record.dropped(now, packet, node, cause);
        if let (Some(died), Some(tag)) = (&mut self.died, packet.tag()) {
            died.push(Died { tag, at: now, cause, duplicate: packet.duplicate });
        }
    }

    /// Marks a packet with congestion experienced if its transport is ECN-capable, and returns whether it is. A packet that
    /// is already marked is not recorded again.
    pub fn mark(&mut self, now: Time, packet: &mut Packet) -> bool {
        if packet.ecn.is_capable() && packet.ecn != Ecn::Ce {
            packet.ecn = Ecn::Ce;
            self.record.marked(now, packet, self.node);
        }
        packet.ecn.is_capable()
    }

    /// Clears the ECN field of a packet, codepoint and mark, as a path without ECN support does.
    pub fn bleach(&mut self, now: Time, packet: &mut Packet) {
        if packet.ecn.is_capable() {
            packet.ecn = Ecn::NotEct;
            self.record.bleached(now, packet, self.node);
        }
    }

    /// Passes a packet to the driver; `number` is the node's identifier of it.
    pub fn pass_to_driver(&mut self, number: u64, packet: Packet) {
        self.handed.push(Handed { node: self.node, number, packet });
    }

    /// Ends the run with a reason; the first one counts.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.failure.get_or_insert_with(|| reason.into());
    }
}
