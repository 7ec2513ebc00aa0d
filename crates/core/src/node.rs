//! Contract of the nodes of a world: links, TCP, radio networks, hosts of endpoints.
//!
//! A driver (virtual time, SimPy) does three things: it asks for the next wakeup, calls [`Node::advance`] at that time, and
//! passes packets to [`Node::receive`]. A node puts all its output into the [`Outbox`], a reused buffer: the node has no
//! queue that a driver might forget to drain.

use crate::ids::Port;
use crate::outbox::Outbox;
use crate::packet::Packet;
use crate::record::Backlog;
use crate::rng::Draws;
use crate::units::{Rate, Time};
use std::any::Any;

/// Packets that a node holds, counted from its contents and not from counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inside {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of the packets on the wire.
    pub bytes: u64,
}

impl Inside {
    /// Adds a packet.
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
}

/// Node of a world, called by a driver.
pub trait Node: Send + Any {
    /// Name in tables, and component name of the node's random substreams.
    fn name(&self) -> &str;

    /// Time at which [`Node::advance`] must be called next, if no packet is received before. Earlier calls are harmless; a
    /// later call under virtual time is an error of the driver. [`Time::MAX`] means never.
    fn next_wakeup(&self) -> Option<Time>;

    /// Does all that is due at `now`. If `next_wakeup` is then not later than `now`, this is called again at the same time;
    /// too many calls at the same time fail the run.
    fn advance(&mut self, now: Time, out: &mut Outbox);

    /// Takes a packet that enters at `port`.
    fn receive(&mut self, now: Time, port: Port, packet: Box<Packet>, out: &mut Outbox);

    /// Passes each packet that the node holds to `visit`; by default it holds none.
    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        let _ = visit;
    }

    /// Number and bytes of the packets inside, counted from the contents.
    fn inside(&self) -> Inside {
        let mut inside = Inside::default();
        self.contents(&mut |packet| inside.add(packet));
        inside
    }

    /// Fill level of the queue at `now`, if the node has one.
    fn backlog(&self, now: Time) -> Option<Backlog> {
        let _ = now;
        None
    }

    /// Passes the name and fill level of each of the queues of which its queue consists to `visit`, without the packet in
    /// service; nothing where it is a single one.
    fn queue_parts(&self, visit: &mut dyn FnMut(&'static str, Backlog)) {
        let _ = visit;
    }

    /// Average capacity in `[from, to)`, independent of the traffic, if the node knows it. A future capacity is that without
    /// further changes of settings; [`Rate::MAX`] for no limit.
    fn capacity(&mut self, from: Time, to: Time) -> Option<Rate> {
        let _ = (from, to);
        None
    }

    /// Passes the draws of each random substream to `visit`.
    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        let _ = visit;
    }

    /// Passes warnings for the readers of the results to `warn`: the key of a setting, and a sentence about it.
    fn warnings(&self, warn: &mut dyn FnMut(&'static str, String)) {
        let _ = warn;
    }

    /// Writes open facts (frames, counters) to the record; called once at the end of the run.
    fn finish(&mut self, now: Time, out: &mut Outbox) {
        let _ = (now, out);
    }
}
