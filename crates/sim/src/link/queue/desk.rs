//! A stand-in for a link in tests of disciplines.

use super::{Moment, QueueDiscipline, Waiting};
use std::sync::{Arc, Mutex};
use tidegate_core::{
    Cause, Datagram, Ecn, FlowId, Kind, NodeId, Outbox, Packet, Rate, Recorder, RouteId, Span, Time,
};

/// Drops and marks: time, number of the packet, and whether it was dropped (or else marked).
pub(super) type QueueEvents = Vec<(Time, u32, bool)>;

#[derive(Default)]
struct Notes(Arc<Mutex<QueueEvents>>);

impl Recorder for Notes {
    fn dropped(&mut self, now: Time, packet: &Packet, _node: NodeId, cause: Cause) {
        assert_eq!(cause, Cause::Queue);
        self.0.lock().unwrap().push((now, packet.sequence, true));
    }

    fn marked(&mut self, now: Time, packet: &Packet, _node: NodeId) {
        self.0.lock().unwrap().push((now, packet.sequence, false));
    }
}

/// A discipline under test; its packets are numbered as they come.
pub(super) struct Desk<Q> {
    pub(super) queue: Q,
    out: Outbox,
    events: Arc<Mutex<QueueEvents>>,
    pub(super) sent: u32,
}

impl<Q: QueueDiscipline> Desk<Q> {
    pub(super) fn new(queue: Q) -> Self {
        let notes = Notes::default();
        let events = notes.0.clone();
        Self { queue, out: Outbox::new(1, Box::new(notes)), events, sent: 0 }
    }

    /// Calls the discipline at a moment at which the link is busy with a packet of 1000 bytes.
    pub(super) fn with<R>(&mut self, now: Time, ask: impl FnOnce(&mut Q, &mut Moment<'_>) -> R) -> R {
        let nominal = Rate::from_mbps(10);
        let mut moment = Moment { now, nominal, in_service: Some(1000), out: &mut self.out };
        ask(&mut self.queue, &mut moment)
    }

    /// Enqueues a packet of `flow`, `size` and `ecn` at `now`, as if it had waited for `waited` already.
    pub(super) fn put(&mut self, now: Time, waited: Span, flow: u32, size: u32, ecn: Ecn) {
        let datagram = Datagram { size, ecn, ..Datagram::default() };
        let datagram = datagram.between(
            FlowId(flow),
            tidegate_core::address::Direction::Forward,
            tidegate_core::address::Service::Rtp,
        );
        let packet = Packet::new(now, FlowId(flow), RouteId(0), self.sent, Kind::Datagram, datagram);
        self.sent += 1;
        let waiting = Waiting { since: now - waited, packet: Box::new(packet) };
        self.with(now, |queue, moment| queue.enqueue(moment, waiting));
    }

    /// Dequeues a packet at `now`; returns its flow, number and size.
    pub(super) fn take(&mut self, now: Time) -> Option<(u32, u32, u32)> {
        let going = self.with(now, |queue, moment| queue.dequeue(moment))?;
        Some((going.packet.flow.0, going.packet.sequence, going.packet.size))
    }

    /// Drops and marks since the last call.
    pub(super) fn take_events(&self) -> QueueEvents {
        std::mem::take(&mut *self.events.lock().unwrap())
    }
}
