//! Packets as bytes: a wrapper that hands its node each packet as decoded from its bytes.
//!
//! In a run with `bytes` each node at an end of a route is wrapped in an [`InBytes`]. Other runs have no wrappers and
//! no cost.

use std::any::Any;
use std::sync::Arc;
use tidegate_core::node::Inside;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::wire::Error;
use tidegate_core::{Node, Outbox, Packet, Port, Rate, Time};
use tidegate_endpoint::datagram;

/// A node whose incoming packets are encoded to bytes and decoded again first.
pub(crate) struct InBytes {
    node: Box<dyn Node>,
    /// For each flow: bytes of headers below RTP and RTCP that its packet sizes include.
    overheads: Arc<[u32]>,
}

impl InBytes {
    pub(crate) fn around(node: Box<dyn Node>, overheads: Arc<[u32]>) -> Self {
        Self { node, overheads }
    }

    /// The wrapped node.
    pub(crate) fn node(&mut self) -> &mut dyn Any {
        &mut *self.node
    }

    /// Replaces the datagram of `packet` by the one decoded from its bytes.
    fn recode(&self, packet: &mut Packet) -> Result<(), Error> {
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
        match self.recode(&mut packet) {
            Ok(()) => self.node.receive(now, port, packet, out),
            Err(error) => {
                let (sequence, flow, kind) = (packet.sequence, packet.flow.0, packet.kind.name());
                out.fail(format!(
                    "packet {sequence} of flow {flow} ({kind}) cannot be encoded and decoded: {error}"
                ));
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

    fn queue_parts(&self, visit: &mut dyn FnMut(&'static str, Backlog)) {
        self.node.queue_parts(visit);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tidegate_core::address::{Direction, Service};
    use tidegate_core::datagram::RtpBody;
    use tidegate_core::record::NullRecorder;
    use tidegate_core::{Body, Datagram, Ecn, FlowId, Kind, RouteId};

    /// A node that keeps the datagrams it receives.
    struct Keeper(Arc<Mutex<Vec<Datagram>>>);

    impl Node for Keeper {
        fn name(&self) -> &str {
            "keeper"
        }
        fn next_wakeup(&self) -> Option<Time> {
            None
        }
        fn advance(&mut self, _: Time, _: &mut Outbox) {}
        fn receive(&mut self, _: Time, _: Port, packet: Box<Packet>, _: &mut Outbox) {
            self.0.lock().unwrap().push(packet.datagram);
        }
    }

    #[test]
    fn a_node_is_handed_what_is_on_the_wire_and_nothing_else() {
        let datagrams = Arc::new(Mutex::new(Vec::new()));
        let mut node = InBytes::around(Box::new(Keeper(datagrams.clone())), [28, 40].into());
        let mut out = Outbox::new(1, Box::new(NullRecorder));
        // only a retransmission has an original sequence number
        let body = |original| RtpBody { payload_type: 96, sequence: 7, original, ..RtpBody::default() };
        let datagram = |original| {
            let body = Body::Rtp(body(original));
            let datagram = Datagram { size: 100, ecn: Ecn::Ce, dscp: 46, body, ..Datagram::default() };
            datagram.between(FlowId(1), Direction::Forward, Service::Rtp)
        };
        let packet = Packet::new(Time::ZERO, FlowId(1), RouteId(0), 0, Kind::Video, datagram(5));
        node.receive(Time::ZERO, Port::ZERO, Box::new(packet), &mut out);
        assert_eq!(*datagrams.lock().unwrap(), [datagram(0)]);
        assert_eq!(out.failure, None);
    }
}
