//! The node at which UDP traffic ends.

use tidegate_core::{Node, Outbox, Packet, Port, Time};

/// A node at which packets arrive and leave the simulation.
#[derive(Clone, Debug)]
pub struct Sink {
    name: String,
}

impl Sink {
    /// A sink called `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

impl Node for Sink {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn advance(&mut self, _now: Time, _out: &mut Outbox) {}

    #[inline]
    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        out.deliver(now, &packet);
        out.recycle(packet);
    }
}
