//! A host: a node that holds an endpoint.
//!
//! It unpacks arriving packets for the endpoint, packs the datagrams that the endpoint sends into packets, and adds
//! the packet to the facts that the endpoint tells the recorder.

use tidegate_core::address::{Direction, Service};
use tidegate_core::rng::Draws;
use tidegate_core::{
    Body, Datagram, DatagramInfo, Driver, FlowId, Frame, Node, Outbox, Packet, Peer, Port, Rate, Recorder,
    RouteId, Span, Time,
};
use tidegate_endpoint::{Endpoint, LimitChange};

/// A node that holds the endpoint `P`.
pub struct Host<P> {
    peer: P,
    addressing: Addressing,
}

/// Route, destination and numbers of the packets that a host sends.
struct Addressing {
    /// The route of its packets.
    route: RouteId,
    /// The receivers of its packets.
    destination: Destination,
    /// For each flow the number of packets sent.
    numbers: Vec<(FlowId, u32)>,
}

/// The receivers of a host's packets, on which their addresses depend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// The other end of a call: the host sends the media of this flow, and feedback on all other flows.
    Call(Option<FlowId>),
    /// All other members of the session of this number.
    Group(u16),
}

impl Addressing {
    fn number(&mut self, flow: FlowId) -> u32 {
        let index = self.numbers.iter().position(|&(counted, _)| counted == flow);
        let index = index.unwrap_or_else(|| {
            self.numbers.push((flow, 0));
            self.numbers.len() - 1
        });
        let (_, next) = &mut self.numbers[index];
        let number = *next;
        *next = number.wrapping_add(1);
        number
    }
}

/// The driver that an endpoint is handed, for one call.
struct DriverView<'a> {
    addressing: &'a mut Addressing,
    out: &'a mut Outbox,
    /// The packet that has come in, if the call is for one.
    arrived: Option<&'a Packet>,
}

impl Driver for DriverView<'_> {
    #[inline]
    fn record(&mut self) -> &mut dyn Recorder {
        &mut *self.out.record
    }

    fn send(&mut self, now: Time, datagram: Datagram, info: DatagramInfo) {
        let DatagramInfo { flow, kind, frame } = info;
        let sequence = self.addressing.number(flow);
        let way = match self.addressing.destination {
            Destination::Call(sends) if sends == Some(flow) => Direction::Forward,
            Destination::Call(_) => Direction::Reverse,
            Destination::Group(session) => Direction::Group(session),
        };
        let service = if datagram.body == Body::Rtcp { Service::Rtcp } else { Service::Rtp };
        let datagram = datagram.between(flow, way, service);
        let packet =
            Packet { frame, ..Packet::new(now, flow, self.addressing.route, sequence, kind, datagram) };
        self.out.originate(now, Port::ZERO, packet);
    }

    fn late(&mut self, now: Time, flow: FlowId) {
        if let Some(packet) = self.arrived {
            self.out.record.late(now, flow, packet);
        }
    }

    fn true_delay(&self, now: Time) -> Span {
        self.arrived.map_or(Span::ZERO, |packet| now - packet.sent)
    }

    fn true_frame(&self) -> Frame {
        self.arrived.map_or(Frame::default(), |packet| packet.frame)
    }

    fn fail(&mut self, reason: String) {
        self.out.fail(reason);
    }

    fn has_failed(&self) -> bool {
        self.out.failure.is_some()
    }
}

impl<P: Peer> Host<P> {
    /// A host of `peer`, whose packets take `route`.
    #[must_use]
    pub fn new(peer: P, route: RouteId, destination: Destination) -> Self {
        Self { peer, addressing: Addressing { route, destination, numbers: Vec::with_capacity(2) } }
    }

    #[inline]
    fn open<'a>(
        &'a mut self,
        out: &'a mut Outbox,
        arrived: Option<&'a Packet>,
    ) -> (&'a mut P, DriverView<'a>) {
        (&mut self.peer, DriverView { addressing: &mut self.addressing, out, arrived })
    }
}

impl Host<Endpoint> {
    /// Sends on another route from now on; `signalled`: tells the endpoint about it.
    pub fn change_route(&mut self, now: Time, route: RouteId, signalled: bool, out: &mut Outbox) {
        self.addressing.route = route;
        if signalled {
            let (endpoint, mut view) = self.open(out, None);
            endpoint.route_changed(now, &mut view);
        }
    }

    /// Sets limits of what the endpoint sends.
    pub fn limit(&mut self, now: Time, change: &LimitChange, out: &mut Outbox) {
        let (endpoint, mut view) = self.open(out, None);
        endpoint.limit(now, change, &mut view);
    }

    /// Ends the repair of what the endpoint receives, or begins it anew.
    pub fn switch_repair(&mut self, now: Time, on: bool, out: &mut Outbox) {
        let (endpoint, mut view) = self.open(out, None);
        endpoint.switch_repair(now, on, &mut view);
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.peer
    }

    /// Assigns the endpoint the rate that coupling gives it.
    pub fn assign(&mut self, now: Time, rate: Rate, out: &mut Outbox) {
        let (endpoint, mut view) = self.open(out, None);
        endpoint.assign(now, rate, &mut view);
    }
}

impl<P: Peer> Node for Host<P> {
    fn name(&self) -> &str {
        self.peer.name()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.peer.next_wakeup()
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        let (peer, mut view) = self.open(out, None);
        peer.advance(now, &mut view);
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        out.deliver(now, &packet);
        let (peer, mut view) = self.open(out, Some(&packet));
        peer.receive(now, &packet, &mut view);
        out.recycle(packet);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.peer.draws(visit);
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        let (peer, mut view) = self.open(out, None);
        peer.finish(now, &mut view);
    }
}
