//! The receiving end: order, delayed acknowledgements, SACK blocks.

use super::TcpSettings;
use super::ecn::Echo;
use super::sequence::Numbering;
use crate::refusal::Refusal;
use std::sync::Arc;
use tidegate_core::address::{Service, Way};
use tidegate_core::datagram::{Attachment, Opening, TcpBody};
use tidegate_core::wire::tcp::{self, Options};
use tidegate_core::{Body, Datagram, FlowId, Kind, Node, Outbox, Packet, Port, RouteId, Size, Span, Time};

/// The receiving end of a connection, with an application that reads at once.
///
/// Acknowledgements leave by [`Port::ZERO`] on the route it was given, as soon as they are due. Records
/// the acknowledgements as sent, and as goodput each byte once, when it is there in order.
pub struct TcpReceiver {
    name: String,
    flow: FlowId,
    route: RouteId,
    /// What it advertises, in bytes, and by how many bits that is shifted.
    window: u32,
    scale: u8,
    /// The options of its answer to a SYN.
    opening: Option<Opening>,
    delay: Option<Span>,
    sack: bool,
    echo: Echo,
    numbering: Numbering,
    /// The next byte expected (RCV.NXT).
    next: u64,
    /// The next number of its own, of which only SYNs take any (SND.NXT).
    own: u32,
    /// Runs of bytes beyond the hole, the one that grew last in front (RFC 2018 section 4).
    runs: Vec<(u64, u64)>,
    /// Segments that came in order and are not acknowledged.
    owed: u32,
    /// When the one acknowledgement that waits must leave.
    deadline: Option<Time>,
    /// When to look at the deadline; not later than it.
    check: Option<Time>,
    number: u32,
}

impl TcpReceiver {
    /// The receiver of `flow`, whose acknowledgements take `route`; `settings` are those of the sender.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(
        name: impl Into<String>,
        flow: FlowId,
        route: RouteId,
        settings: &TcpSettings,
    ) -> Result<Self, Refusal> {
        let name = name.into();
        settings.check()?;
        Ok(Self {
            name,
            flow,
            route,
            window: settings.receive_window,
            scale: settings.scale(),
            opening: settings.opening(settings.scale()),
            delay: settings.delayed_ack,
            sack: settings.variant.uses_sack(),
            echo: Echo::new(settings),
            numbering: Numbering::new(settings.initial_sequence),
            next: 0,
            own: 0,
            runs: Vec::new(),
            owed: 0,
            deadline: None,
            check: None,
            number: 0,
        })
    }

    /// Takes in a data segment, which is acknowledged `at_once` or when it is due.
    #[inline]
    fn segment(&mut self, now: Time, start: u64, length: u16, at_once: bool, out: &mut Outbox) {
        let end = start + u64::from(length);
        if end <= self.next || start > self.next {
            // old or beyond a hole: say at once where the hole is (RFC 5681 section 4.2)
            if start > self.next {
                self.keep(start, end);
            }
            self.acknowledge(now, None, out);
            return;
        }
        let before = self.next;
        self.next = end;
        let filled = !self.runs.is_empty();
        if filled {
            self.join();
        }
        out.record.goodput(now, self.flow, Size::from_bytes(self.next - before));
        self.owed += 1;
        match self.delay {
            // a segment that fills a hole, or part of one, is acknowledged at once, as is every second one
            Some(delay) if !filled && !at_once && self.owed < 2 => {
                let deadline = now + delay;
                self.deadline = Some(deadline);
                self.check.get_or_insert(deadline);
            }
            _ => self.acknowledge(now, None, out),
        }
    }

    /// Remembers bytes beyond the hole.
    fn keep(&mut self, start: u64, end: u64) {
        let mut union = (start, end);
        self.runs.retain(|&(run_start, run_end)| {
            let apart = run_end < union.0 || run_start > union.1;
            if !apart {
                union = (union.0.min(run_start), union.1.max(run_end));
            }
            apart
        });
        self.runs.insert(0, union);
    }

    /// Moves up over the run that the hole was before, if it is full.
    fn join(&mut self) {
        // runs neither overlap nor touch, but a segment may reach into several
        while let Some(index) = self.runs.iter().position(|&(start, _)| start <= self.next) {
            self.next = self.next.max(self.runs.remove(index).1);
        }
    }

    /// Acknowledges all that there is in order; as the answer to a SYN with those flags beside its own.
    fn acknowledge(&mut self, now: Time, syn: Option<u8>, out: &mut Outbox) {
        debug_assert!(
            self.runs.iter().all(|&(start, end)| self.next < start && start < end),
            "{:?}",
            self.runs
        );
        self.owed = 0;
        self.deadline = None;
        let mut options = Options::default();
        let mut attachment = None;
        if let (Some(_), Some(opening)) = (syn, self.opening) {
            options.opening = opening;
            attachment = Some(Arc::new(Attachment::Opening(opening)));
        } else if self.sack && !self.runs.is_empty() {
            for (block, &(start, end)) in options.sack.iter_mut().zip(&self.runs) {
                *block = (self.numbering.wire(start), self.numbering.wire(end));
            }
            attachment = Some(Arc::new(Attachment::Sack(options.sack)));
        }
        let size = tcp::HEADERS + options.len() as u32;
        let body = TcpBody {
            sequence: self.own.wrapping_sub(u32::from(syn.is_some())),
            ack: self.numbering.wire(self.next),
            // RFC 7323 section 2.2: the window of a SYN is not shifted
            window: match syn {
                Some(_) => self.window.min(u16::MAX.into()) as u16,
                None => (self.window >> self.scale) as u16,
            },
            length: 0,
            flags: TcpBody::ACK | syn.map_or_else(|| self.echo.flags(), |flags| TcpBody::SYN | flags),
        };
        let packet = Packet::new(
            now,
            self.flow,
            self.route,
            self.number,
            Kind::Ack,
            Datagram { size, body: Body::Tcp(body), attachment, ..Datagram::default() }.between(
                self.flow,
                Way::Back,
                Service::Discard,
            ),
        );
        self.number = self.number.wrapping_add(1);
        out.originate(now, Port::ZERO, packet);
    }
}

impl Node for TcpReceiver {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        self.check
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if self.check.is_none_or(|check| check > now) {
            return;
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.acknowledge(now, None, out);
        }
        self.check = self.deadline;
    }

    #[inline]
    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        let Body::Tcp(body) = packet.body else {
            out.fail(format!(
                "a {} packet of flow {} came to a TCP receiver",
                packet.kind.name(),
                packet.flow.0
            ));
            return;
        };
        out.deliver(now, &packet);
        let ecn = packet.ecn;
        out.recycle(packet);
        let Some(start) = self.numbering.position(body.sequence, self.next) else { return };
        if body.flags & TcpBody::SYN != 0 {
            // a SYN takes one number; the answer to a repeated one is the same
            if start == self.next {
                self.next += 1;
                self.own = self.own.wrapping_add(1);
            }
            let flags = self.echo.opened(body.flags);
            self.acknowledge(now, Some(flags), out);
        } else if body.length > 0 {
            let turns = self.echo.turns(ecn);
            if turns && self.owed > 0 {
                self.acknowledge(now, None, out);
            }
            self.echo.data(ecn, body.flags);
            self.segment(now, start, body.length, turns, out);
        }
    }
}
