//! The contract of everything that a world drives: links, TCP, radio networks, hosts of endpoints.
//!
//! A driver (virtual time, SimPy) does three things: it asks for the next wakeup, calls
//! [`Node::advance`] at that time, and hands over packets with [`Node::receive`]. Whatever a node has
//! to say goes into the [`Outbox`], a reused buffer: nothing has to be drained, nothing can be forgotten.

use crate::ids::Port;
use crate::outbox::Outbox;
use crate::packet::Packet;
use crate::record::Backlog;
use crate::rng::Draws;
use crate::units::{Rate, Time};
use std::any::Any;

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

    /// Tells what whoever reads the results has to know of it: the key of a setting, and a sentence about it.
    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        let _ = tell;
    }

    /// Called once when the run ends, to write what is still open (frames, counters) to the record.
    fn finish(&mut self, now: Time, out: &mut Outbox) {
        let _ = (now, out);
    }
}
