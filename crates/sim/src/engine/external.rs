//! Where the driver takes part in the world: links that it carries packets over, flows that it feeds and hears.
//!
//! These nodes act when the driver says so. What happens at one nanosecond is ordered by a rule that does not ask
//! when a wakeup was set (see `wakeups`). So a link that the driver works leaves the same record behind as a link of
//! the same name that does the same in the world.

use std::collections::VecDeque;
use tidegate_core::address::{Service, Way};
use tidegate_core::datagram::Ecn;
use tidegate_core::{Body, Cause, Datagram, FlowId, Kind, Node, Outbox, Packet, Port, RouteId, Size, Time};

/// A link whose packets the driver carries: each is shown to it, and stays inside until the driver sends it
/// on its way or lets it die.
#[derive(Debug)]
pub struct ExternalLink {
    name: String,
    /// Packets that the driver has to decide about; the front is number `first`, and `None` is one that it has
    /// decided about.
    held: VecDeque<Option<Box<Packet>>>,
    first: u64,
    /// What it has decided, in order of time: when each packet leaves, or what it dies of then.
    due: VecDeque<(Time, Box<Packet>, Option<Cause>)>,
}

impl ExternalLink {
    /// A link called `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), held: VecDeque::new(), first: 0, due: VecDeque::new() }
    }

    /// At `at`, which is not earlier than at the last call, packet `number` leaves the link at its far end, or
    /// dies of `cause`. False if the driver does not have such a packet.
    ///
    /// # Panics
    /// If a packet that has not left yet is to do so later than this one.
    #[must_use]
    pub fn decide(&mut self, number: u64, at: Time, cause: Option<Cause>) -> bool {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let Some(packet) = place.and_then(|place| self.held.get_mut(place)).and_then(Option::take) else {
            return false;
        };
        while let Some(None) = self.held.front() {
            self.held.pop_front();
            self.first += 1;
        }
        assert!(self.due.back().is_none_or(|&(last, ..)| last <= at), "{}: times go back to {at}", self.name);
        self.due.push_back((at, packet, cause));
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
        while self.due.front().is_some_and(|&(at, ..)| at <= now) {
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
        out.hand(self.first + self.held.len() as u64, (*packet).clone());
        self.held.push_back(Some(packet));
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.held.iter().flatten().for_each(|packet| visit(packet));
        self.due.iter().for_each(|(_, packet, _)| visit(packet));
    }
}

/// A source of datagrams that the driver feeds.
#[derive(Debug)]
pub struct ExternalSource {
    name: String,
    flow: FlowId,
    route: RouteId,
    sent: u32,
    due: VecDeque<(Time, u32, Ecn, u64)>,
}

impl ExternalSource {
    /// A source called `name` of the packets of `flow`, which go along `route`.
    #[must_use]
    pub fn new(name: impl Into<String>, flow: FlowId, route: RouteId) -> Self {
        Self { name: name.into(), flow, route, sent: 0, due: VecDeque::new() }
    }

    /// At `at`, which is not earlier than at the last call, a datagram leaves: `size` bytes on the wire that bear
    /// `ecn`, with a number that its receiver reads.
    ///
    /// # Panics
    /// If a datagram that has not left yet is to do so later than this one.
    pub fn feed(&mut self, at: Time, size: u32, ecn: Ecn, tag: u64) {
        assert!(self.due.back().is_none_or(|&(last, ..)| last <= at), "{}: times go back to {at}", self.name);
        self.due.push_back((at, size, ecn, tag));
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
        // one at a time, as other sources do: whoever is due at the same instant has its turn in between
        if self.due.front().is_none_or(|&(at, ..)| at > now) {
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
                Way::There,
                Service::Tagged,
            ),
        );
        self.sent = self.sent.wrapping_add(1);
        out.originate(now, Port::ZERO, packet);
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        // nobody answers a datagram; whatever is routed here has arrived
        out.deliver(now, &packet);
        out.recycle(packet);
    }
}

/// Where a fed flow ends: every packet has arrived, and is shown to the driver.
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

    /// Counts as useful what is in each packet behind so many bytes of headers.
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
        out.hand(self.arrived, (*packet).clone());
        self.arrived += 1;
        out.recycle(packet);
    }
}
