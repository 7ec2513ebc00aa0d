//! The receiving end: reordering, delayed acknowledgements, SACK blocks.

use super::TcpSettings;
use super::algorithm::Recovery;
use super::ecn::Echo;
use super::sequence::Numbering;
use super::stamps::Stamps;
use crate::refusal::Refusal;
use std::sync::Arc;
use tidegate_core::address::{Direction, Service};
use tidegate_core::datagram::{Attachment, Opening, TcpBody};
use tidegate_core::wire::tcp::{self, Options};
use tidegate_core::{Body, Datagram, FlowId, Kind, Node, Outbox, Packet, Port, RouteId, Size, Span, Time};

/// The receiving end of a connection, with an application that reads at once.
///
/// Acknowledgements leave by [`Port::ZERO`] on the given route, as soon as they are due. It records
/// the acknowledgements as sent, and each byte once as goodput, when it has arrived in order.
pub struct TcpReceiver {
    name: String,
    flow: FlowId,
    route: RouteId,
    /// The advertised window in bytes, and its scale in bits.
    window: u32,
    scale: u8,
    /// The options of its answer to a SYN.
    opening: Option<Opening>,
    delay: Option<Span>,
    sack: bool,
    /// Whether it tells of copies of data that it has (RFC 2883), and the copy that it tells of next.
    dsack: bool,
    copy: Option<(u64, u64)>,
    echo: Echo,
    stamps: Option<Stamps>,
    numbering: Numbering,
    /// The next byte expected (RCV.NXT).
    rcv_nxt: u64,
    /// The next number to send (SND.NXT); only SYNs use numbers.
    snd_nxt: u32,
    /// Runs of bytes beyond the hole, the most recently changed one first (RFC 2018 section 4).
    runs: Vec<(u64, u64)>,
    /// Number of segments that came in order and are not acknowledged.
    unacknowledged: u32,
    /// Time at which the delayed acknowledgement must leave.
    deadline: Option<Time>,
    /// Time of the next check of the deadline; not later than the deadline.
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
            dsack: settings.loss_recovery() == Recovery::Rack,
            copy: None,
            echo: Echo::new(settings),
            stamps: settings.timestamps.then(Stamps::default),
            numbering: Numbering::new(settings.initial_sequence),
            rcv_nxt: 0,
            snd_nxt: 0,
            runs: Vec::new(),
            unacknowledged: 0,
            deadline: None,
            check: None,
            number: 0,
        })
    }

    /// Position in the stream up to which all bytes have arrived.
    pub(in crate::traffic) fn in_order(&self) -> u64 {
        self.rcv_nxt
    }

    /// Takes in a data segment, which is acknowledged `at_once` or when it is due.
    #[inline]
    fn segment(&mut self, now: Time, start: u64, length: u16, at_once: bool, out: &mut Outbox) {
        let end = start + u64::from(length);
        if end <= self.rcv_nxt || start > self.rcv_nxt {
            // old or beyond a hole: report the hole at once (RFC 5681 section 4.2)
            let is_copy = end <= self.rcv_nxt || self.runs.iter().any(|run| run.0 <= start && end <= run.1);
            self.copy = Some((start, end)).filter(|_| self.dsack && is_copy);
            if start > self.rcv_nxt {
                self.keep(start, end);
            }
            self.acknowledge(now, None, out);
            return;
        }
        let before = self.rcv_nxt;
        self.rcv_nxt = end;
        let fills_hole = !self.runs.is_empty();
        if fills_hole {
            self.join();
        }
        out.record.goodput(now, self.flow, Size::from_bytes(self.rcv_nxt - before));
        self.unacknowledged += 1;
        match self.delay {
            // a segment that fills a hole, or part of one, is acknowledged at once, as is every second one
            Some(delay) if !fills_hole && !at_once && self.unacknowledged < 2 => {
                let deadline = now + delay;
                self.deadline = Some(deadline);
                self.check.get_or_insert(deadline);
            }
            _ => self.acknowledge(now, None, out),
        }
    }

    /// Adds bytes beyond the hole to the runs.
    fn keep(&mut self, start: u64, end: u64) {
        let mut union = (start, end);
        self.runs.retain(|&(run_start, run_end)| {
            let is_apart = run_end < union.0 || run_start > union.1;
            if !is_apart {
                union = (union.0.min(run_start), union.1.max(run_end));
            }
            is_apart
        });
        self.runs.insert(0, union);
    }

    /// Moves up over the runs that the filled hole preceded.
    fn join(&mut self) {
        // runs neither overlap nor touch, but a segment may reach into several
        while let Some(index) = self.runs.iter().position(|&(start, _)| start <= self.rcv_nxt) {
            self.rcv_nxt = self.rcv_nxt.max(self.runs.remove(index).1);
        }
    }

    /// Acknowledges all data in order; `syn` are the ECN flags of an answer to a SYN.
    fn acknowledge(&mut self, now: Time, syn: Option<u8>, out: &mut Outbox) {
        debug_assert!(
            self.runs.iter().all(|&(start, end)| self.rcv_nxt < start && start < end),
            "{:?}",
            self.runs
        );
        self.unacknowledged = 0;
        self.deadline = None;
        let mut options = Options::default();
        if let (Some(_), Some(opening)) = (syn, self.opening) {
            options.opening = opening;
        } else if syn.is_none() && self.sack && (!self.runs.is_empty() || self.copy.is_some()) {
            // a copy comes first (RFC 2883 section 4)
            let blocks = self.copy.take().into_iter().chain(self.runs.iter().copied());
            for (block, (start, end)) in options.sack.iter_mut().zip(blocks) {
                *block = (self.numbering.wire(start), self.numbering.wire(end));
            }
        }
        if let Some(stamps) = self.stamps.as_mut().filter(|_| syn.is_none() || self.opening.is_some()) {
            options.timestamps = Some(stamps.acknowledged(now, self.rcv_nxt));
        }
        let attachment = (!options.is_empty()).then(|| Arc::new(Attachment::Options(options)));
        let size = tcp::HEADERS + options.len() as u32;
        let body = TcpBody {
            sequence: self.snd_nxt.wrapping_sub(u32::from(syn.is_some())),
            ack: self.numbering.wire(self.rcv_nxt),
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
                Direction::Reverse,
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
            out.fail(format!("a TCP receiver got a {} packet of flow {}", packet.kind.name(), packet.flow.0));
            return;
        };
        out.deliver(now, &packet);
        let (ecn, timestamps) = (packet.ecn, packet.timestamps());
        out.recycle(packet);
        let Some(start) = self.numbering.position(body.sequence, self.rcv_nxt) else { return };
        if let (Some(stamps), Some(timestamps)) = (&mut self.stamps, timestamps) {
            stamps.arrived(start, timestamps.value);
        }
        if body.flags & TcpBody::SYN != 0 {
            // a SYN takes one number; the answer to a repeated one is the same
            if start == self.rcv_nxt {
                self.rcv_nxt += 1;
                self.snd_nxt = self.snd_nxt.wrapping_add(1);
            }
            let flags = self.echo.opened(body.flags);
            self.acknowledge(now, Some(flags), out);
        } else if body.length > 0 {
            let turns = self.echo.turns(ecn);
            if turns && self.unacknowledged > 0 {
                self.acknowledge(now, None, out);
            }
            self.echo.data(ecn, body.flags);
            self.segment(now, start, body.length, turns, out);
        }
    }
}
