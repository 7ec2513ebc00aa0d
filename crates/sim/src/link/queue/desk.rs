//! For tests of disciplines: a link's part of the contract, without a link.

use super::{Moment, QueueDiscipline, Waiting};
use std::sync::{Arc, Mutex};
use tidegate_core::{
    Cause, Datagram, Ecn, FlowId, Kind, NodeId, Outbox, Packet, Rate, Recorder, RouteId, Span, Time,
};

/// What was told: when, which packet (its number), and whether it died (it was marked otherwise).
pub(super) type Told = Vec<(Time, u32, bool)>;

#[derive(Default)]
struct Notes(Arc<Mutex<Told>>);

impl Recorder for Notes {
    fn dropped(&mut self, now: Time, packet: &Packet, _node: NodeId, cause: Cause) {
        assert_eq!(cause, Cause::Queue);
        self.0.lock().unwrap().push((now, packet.sequence, true));
    }

    fn marked(&mut self, now: Time, packet: &Packet, _node: NodeId) {
        self.0.lock().unwrap().push((now, packet.sequence, false));
    }
}

/// A discipline under test, with packets that are numbered as they come.
pub(super) struct Desk<Q> {
    pub(super) queue: Q,
    out: Outbox,
    told: Arc<Mutex<Told>>,
    pub(super) sent: u32,
}

impl<Q: QueueDiscipline> Desk<Q> {
    pub(super) fn new(queue: Q) -> Self {
        let notes = Notes::default();
        let told = notes.0.clone();
        Self { queue, out: Outbox::new(1, Box::new(notes)), told, sent: 0 }
    }

    /// A moment of a link that is busy with a packet of 1000 bytes.
    pub(super) fn with<R>(&mut self, now: Time, ask: impl FnOnce(&mut Q, &mut Moment<'_>) -> R) -> R {
        let nominal = Rate::from_mbps(10);
        let mut moment = Moment { now, nominal, in_service: Some(1000), out: &mut self.out };
        ask(&mut self.queue, &mut moment)
    }

    /// A packet of `flow`, `size` and `ecn` comes at `now`, having waited for `waited` already.
    pub(super) fn put(&mut self, now: Time, waited: Span, flow: u32, size: u32, ecn: Ecn) {
        let datagram = Datagram { size, ecn, ..Datagram::default() };
        let datagram = datagram.between(
            FlowId(flow),
            tidegate_core::address::Way::There,
            tidegate_core::address::Service::Rtp,
        );
        let packet = Packet::new(now, FlowId(flow), RouteId(0), self.sent, Kind::Datagram, datagram);
        self.sent += 1;
        let waiting = Waiting { since: now - waited, packet: Box::new(packet) };
        self.with(now, |queue, moment| queue.enqueue(moment, waiting));
    }

    /// What goes at `now`: its flow, number and size.
    pub(super) fn take(&mut self, now: Time) -> Option<(u32, u32, u32)> {
        let going = self.with(now, |queue, moment| queue.dequeue(moment))?;
        Some((going.packet.flow.0, going.packet.sequence, going.packet.size))
    }

    /// What was told since the last call.
    pub(super) fn told(&self) -> Told {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}
