//! A host: a node that holds an endpoint.
//!
//! It takes datagrams out of their envelopes for the endpoint, puts what the endpoint sends into envelopes, and joins
//! these to the facts that the endpoint tells the record.

use tidegate_core::address::{Service, Way};
use tidegate_core::rng::Draws;
use tidegate_core::{
    About, Body, Datagram, Driver, FlowId, Frame, Node, Outbox, Packet, Peer, Port, Rate, Recorder, RouteId,
    Span, Time,
};
use tidegate_endpoint::Endpoint;

/// A node that holds the endpoint `P`.
pub struct Host<P> {
    peer: P,
    addressing: Addressing,
}

/// What a host needs to put datagrams into envelopes.
struct Addressing {
    /// Where packets go.
    route: RouteId,
    /// Whom it talks to.
    talks: Talks,
    /// How many packets were sent for each flow.
    numbers: Vec<(FlowId, u32)>,
}

/// Whom a host talks to, which says the addresses of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Talks {
    /// The other end of a call; it sends the media of this flow, and feedback on all others.
    Call(Option<FlowId>),
    /// All other members of the session of this number.
    Group(u16),
}

impl Addressing {
    fn number(&mut self, flow: FlowId) -> u32 {
        let place = self.numbers.iter().position(|&(known, _)| known == flow);
        let place = place.unwrap_or_else(|| {
            self.numbers.push((flow, 0));
            self.numbers.len() - 1
        });
        let (_, number) = &mut self.numbers[place];
        let this = *number;
        *number = this.wrapping_add(1);
        this
    }
}

/// What an endpoint sees of its driver, while it is called once.
struct DriverView<'a> {
    addressing: &'a mut Addressing,
    out: &'a mut Outbox,
    /// What has come in.
    arrived: Option<&'a Packet>,
}

impl Driver for DriverView<'_> {
    #[inline]
    fn record(&mut self) -> &mut dyn Recorder {
        &mut *self.out.record
    }

    fn send(&mut self, now: Time, datagram: Datagram, about: About) {
        let About { flow, kind, frame } = about;
        let sequence = self.addressing.number(flow);
        let way = match self.addressing.talks {
            Talks::Call(sends) if sends == Some(flow) => Way::There,
            Talks::Call(_) => Way::Back,
            Talks::Group(session) => Way::Group(session),
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
    pub fn new(peer: P, route: RouteId, talks: Talks) -> Self {
        Self { peer, addressing: Addressing { route, talks, numbers: Vec::with_capacity(2) } }
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
    /// Sends on another route from now on, and tells the endpoint so.
    pub fn change_route(&mut self, now: Time, route: RouteId, out: &mut Outbox) {
        self.addressing.route = route;
        let (endpoint, mut line) = self.open(out, None);
        endpoint.route_changed(now, &mut line);
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.peer
    }

    /// Lets the endpoint go on with the rate that coupling gives it.
    pub fn assign(&mut self, now: Time, rate: Rate, out: &mut Outbox) {
        let (endpoint, mut line) = self.open(out, None);
        endpoint.assign(now, rate, &mut line);
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
        let (peer, mut line) = self.open(out, None);
        peer.advance(now, &mut line);
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        out.deliver(now, &packet);
        let (peer, mut line) = self.open(out, Some(&packet));
        peer.receive(now, &packet, &mut line);
        out.recycle(packet);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.peer.draws(visit);
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        let (peer, mut line) = self.open(out, None);
        peer.finish(now, &mut line);
    }
}
