//! Nodes that the driver controls: links whose packets it carries, flows that it sends and receives.
//!
//! These nodes act when the driver says so. The order of events at one nanosecond does not depend on when a wakeup
//! was set (see `wakeups`). So a link that the driver works leaves the same record as a link of the same name that
//! does the same in the world.

use std::collections::VecDeque;
use tidegate_core::address::{Direction, Service};
use tidegate_core::datagram::Ecn;
use tidegate_core::{Body, Cause, Datagram, FlowId, Kind, Node, Outbox, Packet, Port, RouteId, Size, Time};

/// A link whose packets the driver carries: each is handed to the driver, and stays inside until the driver forwards
/// or drops it.
#[derive(Debug)]
pub struct ExternalLink {
    name: String,
    /// Packets that the driver has to decide about; the front is number `first`, and `None` stands for a packet
    /// that it has decided about.
    held: VecDeque<Option<Box<Packet>>>,
    first: u64,
    /// Decided packets in order of time: when each leaves, or dies of the cause.
    due: VecDeque<(Time, Box<Packet>, Option<Cause>)>,
}

impl ExternalLink {
    /// A link called `name`, without packets.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), held: VecDeque::new(), first: 0, due: VecDeque::new() }
    }

    /// Lets packet `number` leave the link at its far end at `time`, or die of `cause`. `time` must not be earlier than
    /// that of the last call. False if the driver holds no such packet.
    ///
    /// # Panics
    /// If another packet is still to leave at a later time.
    #[must_use]
    pub fn decide(&mut self, number: u64, time: Time, cause: Option<Cause>) -> bool {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let Some(packet) = index.and_then(|index| self.held.get_mut(index)).and_then(Option::take) else {
            return false;
        };
        while let Some(None) = self.held.front() {
            self.held.pop_front();
            self.first += 1;
        }
        assert!(
            self.due.back().is_none_or(|&(last, ..)| last <= time),
            "{}: times go back to {time}",
            self.name
        );
        self.due.push_back((time, packet, cause));
        true
    }
}

impl Node for ExternalLink {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.due.front().map(|&(at, ..)| at)
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        while self.due.front().is_some_and(|&(time, ..)| time <= now) {
            let Some((_, packet, cause)) = self.due.pop_front() else { return };
            match cause {
                None => out.forward(Port::ZERO, packet),
                Some(cause) => {
                    out.discard(now, &packet, cause);
                    out.recycle(packet);
                }
            }
        }
    }

    fn receive(&mut self, _now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        out.pass_to_driver(self.first + self.held.len() as u64, (*packet).clone());
        self.held.push_back(Some(packet));
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.held.iter().flatten().for_each(|packet| visit(packet));
        self.due.iter().for_each(|(_, packet, _)| visit(packet));
    }
}

/// A source of the datagrams that the driver feeds.
#[derive(Debug)]
pub struct ExternalSource {
    name: String,
    flow: FlowId,
    route: RouteId,
    sent: u32,
    due: VecDeque<(Time, u32, Ecn, u64)>,
}

impl ExternalSource {
    /// A source called `name`; its packets belong to `flow` and take `route`.
    #[must_use]
    pub fn new(name: impl Into<String>, flow: FlowId, route: RouteId) -> Self {
        Self { name: name.into(), flow, route, sent: 0, due: VecDeque::new() }
    }

    /// Lets the packets take another route from now on.
    pub fn set_route(&mut self, route: RouteId) {
        self.route = route;
    }

    /// Lets a datagram leave at `time`, which must not be earlier than that of the last call: `size` bytes on the wire
    /// with the codepoint `ecn` and a `tag` that its receiver reads.
    ///
    /// # Panics
    /// If another datagram is still to leave at a later time.
    pub fn feed(&mut self, time: Time, size: u32, ecn: Ecn, tag: u64) {
        assert!(
            self.due.back().is_none_or(|&(last, ..)| last <= time),
            "{}: times go back to {time}",
            self.name
        );
        self.due.push_back((time, size, ecn, tag));
    }
}

impl Node for ExternalSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.due.front().map(|&(at, ..)| at)
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        // one at a time, as other sources do: nodes that are due at the same instant have their turn in between
        if self.due.front().is_none_or(|&(time, ..)| time > now) {
            return;
        }
        let Some((_, size, ecn, tag)) = self.due.pop_front() else { return };
        let packet = Packet::new(
            now,
            self.flow,
            self.route,
            self.sent,
            Kind::Datagram,
            Datagram { size, ecn, body: Body::Tagged(tag.to_le_bytes()), ..Datagram::default() }.between(
                self.flow,
                Direction::Forward,
                Service::Tagged,
            ),
        );
        self.sent = self.sent.wrapping_add(1);
        out.originate(now, Port::ZERO, packet);
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        // no node answers a datagram; a packet that is routed to this node has arrived
        out.deliver(now, &packet);
        out.recycle(packet);
    }
}

/// The end of a fed flow: every packet that comes in has arrived, and is handed to the driver.
#[derive(Debug)]
pub struct ExternalSink {
    name: String,
    arrived: u64,
    headers: Option<u32>,
}

impl ExternalSink {
    /// A sink called `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arrived: 0, headers: None }
    }

    /// Counts as goodput the bytes of each packet after `headers` bytes of headers.
    #[must_use]
    pub fn useful_behind(self, headers: u32) -> Self {
        Self { headers: Some(headers), ..self }
    }
}

impl Node for ExternalSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn advance(&mut self, _now: Time, _out: &mut Outbox) {}

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        out.deliver(now, &packet);
        if let Some(headers) = self.headers {
            let useful = packet.datagram.size.saturating_sub(headers);
            out.record.goodput(now, packet.flow, Size::from_bytes(u64::from(useful)));
        }
        out.pass_to_driver(self.arrived, (*packet).clone());
        self.arrived += 1;
        out.recycle(packet);
    }
}
