//! Runs whose receivers get nothing that was not read from bytes.
//!
//! Each node at an end of a route is put into an [`InBytes`] where a scenario wants that, and only there, so that other
//! runs pay nothing.

use std::any::Any;
use std::sync::Arc;
use tidegate_core::node::{Backlog, Inside};
use tidegate_core::rng::Draws;
use tidegate_core::wire::Error;
use tidegate_core::{Node, Outbox, Packet, Port, Rate, Time};
use tidegate_endpoint::datagram;

/// A node that is handed what is read from the bytes of the packets that come in.
pub(crate) struct InBytes {
    node: Box<dyn Node>,
    /// For each flow the bytes of headers that sizes count below RTP and RTCP.
    overheads: Arc<[u32]>,
}

impl InBytes {
    pub(crate) fn around(node: Box<dyn Node>, overheads: Arc<[u32]>) -> Self {
        Self { node, overheads }
    }

    /// The node in it.
    pub(crate) fn node(&mut self) -> &mut dyn Any {
        &mut *self.node
    }

    /// Makes the datagram of `packet` what is read from its bytes.
    fn read(&self, packet: &mut Packet) -> Result<(), Error> {
        let overhead = self.overheads[packet.flow.0 as usize];
        let mut bytes = Vec::with_capacity(packet.size as usize + 28);
        datagram::encode(packet, overhead, &mut bytes)?;
        packet.datagram = datagram::decode(&bytes, overhead)?;
        Ok(())
    }
}

impl Node for InBytes {
    fn name(&self) -> &str {
        self.node.name()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.node.next_wakeup()
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        self.node.advance(now, out);
    }

    fn receive(&mut self, now: Time, port: Port, mut packet: Box<Packet>, out: &mut Outbox) {
        match self.read(&mut packet) {
            Ok(()) => self.node.receive(now, port, packet, out),
            Err(error) => {
                let (sequence, flow, kind) = (packet.sequence, packet.flow.0, packet.kind.name());
                out.fail(format!("packet {sequence} of flow {flow} ({kind}) as bytes: {error}"));
            }
        }
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.node.contents(visit);
    }

    fn inside(&self) -> Inside {
        self.node.inside()
    }

    fn backlog(&self, now: Time) -> Option<Backlog> {
        self.node.backlog(now)
    }

    fn capacity(&mut self, from: Time, to: Time) -> Option<Rate> {
        self.node.capacity(from, to)
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.node.draws(visit);
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        self.node.finish(now, out);
    }
}
