//! A host: a node that holds an endpoint.
//!
//! It takes datagrams out of their envelopes for the endpoint, puts what the endpoint sends into envelopes, and joins
//! these to the facts that the endpoint tells the record.

use tidegate_core::rng::Draws;
use tidegate_core::{
    About, Datagram, Driver, FlowId, Frame, Node, Outbox, Packet, Peer, Port, Recorder, RouteId, Span, Time,
};
use tidegate_endpoint::{Endpoint, datagram};

/// A node that holds `P`.
pub struct Host<P> {
    peer: P,
    desk: Desk,
}

/// What a host keeps of its own.
struct Desk {
    /// Where packets go.
    route: RouteId,
    /// Bytes of IP and UDP header.
    overhead: u32,
    /// For each flow that packets were sent for, how many.
    numbers: Vec<(FlowId, u32)>,
    /// Whether what comes in goes through bytes.
    through_bytes: bool,
}

impl Desk {
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

/// A datagram of RTP or RTCP as it is read from its bytes, which are as many as its size says. What the headers below
/// hold is as it was.
fn through(sent: &Datagram, overhead: u32) -> Result<Datagram, String> {
    let mut bytes = Vec::with_capacity(sent.size as usize);
    datagram::encode(sent, overhead, &mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 + u64::from(overhead) != u64::from(sent.size) {
        let length = bytes.len();
        return Err(format!("{length} bytes and {overhead} of headers make no packet of {}", sent.size));
    }
    let read = datagram::decode(&bytes, overhead).map_err(|error| error.to_string())?;
    Ok(Datagram { ports: sent.ports, ecn: sent.ecn, dscp: sent.dscp, ..read })
}

/// The outside of an endpoint, for one call.
struct Line<'a> {
    desk: &'a mut Desk,
    out: &'a mut Outbox,
    /// What has come in.
    arrived: Option<&'a Packet>,
}

impl Driver for Line<'_> {
    #[inline]
    fn record(&mut self) -> &mut dyn Recorder {
        &mut *self.out.record
    }

    fn send(&mut self, now: Time, datagram: Datagram, about: About) {
        let About { flow, kind, frame } = about;
        let sequence = self.desk.number(flow);
        let packet = Packet { frame, ..Packet::new(now, flow, self.desk.route, sequence, kind, datagram) };
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
    /// A host of `peer`, whose packets take `route` and have `overhead` bytes of IP and UDP header.
    #[must_use]
    pub fn new(peer: P, route: RouteId, overhead: u32) -> Self {
        Self { peer, desk: Desk { route, overhead, numbers: Vec::with_capacity(2), through_bytes: false } }
    }

    /// From now on the peer gets each datagram as it is read from its bytes, if `so`.
    #[must_use]
    pub fn through_bytes(mut self, so: bool) -> Self {
        self.desk.through_bytes = so;
        self
    }

    #[inline]
    fn line<'a>(&'a mut self, out: &'a mut Outbox, arrived: Option<&'a Packet>) -> (&'a mut P, Line<'a>) {
        (&mut self.peer, Line { desk: &mut self.desk, out, arrived })
    }
}

impl Host<Endpoint> {
    /// Sends on another route from now on, and tells the endpoint so.
    pub fn change_route(&mut self, now: Time, route: RouteId, out: &mut Outbox) {
        self.desk.route = route;
        let (endpoint, mut line) = self.line(out, None);
        endpoint.route_changed(now, &mut line);
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
        let (peer, mut line) = self.line(out, None);
        peer.advance(now, &mut line);
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        out.deliver(now, &packet);
        let read = if self.desk.through_bytes {
            match through(&packet, self.desk.overhead) {
                Ok(read) => Some(read),
                Err(what) => return out.fail(format!("a {} packet as bytes: {what}", packet.kind.name())),
            }
        } else {
            None
        };
        let (peer, mut line) = self.line(out, Some(&packet));
        peer.receive(now, read.as_ref().unwrap_or(&packet), &mut line);
        out.recycle(packet);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.peer.draws(visit);
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        let (peer, mut line) = self.line(out, None);
        peer.finish(now, &mut line);
    }
}
