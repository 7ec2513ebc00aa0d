//! UDP cross traffic that does not react to anything.

use crate::invalid::{Invalid, ensure};
use crate::service::Constant;
use tidegate_core::node::Inside;
use tidegate_core::{Body, Ecn, FlowId, Kind, Node, Outbox, Packet, Port, Rate, RouteId, Span, Time};

/// Who sends what, when and where to.
#[derive(Clone, Debug)]
pub struct CrossSettings {
    /// Whose packets these are.
    pub flow: FlowId,
    /// Where they go.
    pub route: RouteId,
    /// Bytes of each packet on the wire, IP and UDP headers included.
    pub size: u32,
    /// When it begins.
    pub start: Time,
    /// Nothing is sent at or after this.
    pub stop: Time,
    /// When packets leave.
    pub pattern: Pattern,
}

/// When packets leave.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// At equal intervals, beginning at the start.
    Constant(Rate),
}

/// A source of UDP datagrams.
#[derive(Clone, Debug)]
pub struct Cross {
    name: String,
    packet: Packet,
    /// When the next packet leaves.
    next: Time,
    stop: Time,
    clock: Clock,
}

/// Where a pattern is.
#[derive(Clone, Debug)]
enum Clock {
    Constant(Constant),
}

impl Cross {
    /// A source called `name` in the run with `seed`.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(name: impl Into<String>, seed: u64, settings: CrossSettings) -> Result<Self, Invalid> {
        let name = name.into();
        let _ = seed;
        let CrossSettings { flow, route, size, start, stop, pattern } = settings;
        ensure(size > 0, || format!("{name}: packets of 0 bytes"))?;
        let clock = match pattern {
            Pattern::Constant(rate) => Clock::Constant(Constant::idle_until(rate, start)),
        };
        let packet = Packet {
            sent: start,
            queued: Span::ZERO,
            flow,
            route,
            sequence: 0,
            size,
            hop: 0,
            kind: Kind::Datagram,
            ecn: Ecn::NotEct,
            body: Body::Empty,
            attachment: None,
        };
        Ok(Self { name, packet, next: start, stop, clock })
    }
}

impl Node for Cross {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        (self.next < self.stop).then_some(self.next)
    }

    #[inline]
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.next > now || self.next >= self.stop {
            return;
        }
        let mut packet = self.packet.clone();
        packet.sent = now;
        self.packet.sequence = self.packet.sequence.wrapping_add(1);
        out.originate(now, Port::ZERO, packet);
        self.next = match &mut self.clock {
            // a transmitter that is never idle finishes packets at the exact pace
            Clock::Constant(pace) => pace.serve(Time::from_nanos(i64::MIN), self.packet.size).finish,
        };
    }

    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        // nobody answers a datagram; whatever is routed here has arrived
        out.deliver(now, &packet);
    }

    fn inside(&self) -> Inside {
        Inside::default()
    }
}
