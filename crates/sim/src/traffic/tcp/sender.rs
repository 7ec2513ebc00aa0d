//! The sending end: the segments that may leave, their times, and the retransmission timer.

use super::algorithm::{Algorithm, Recovery};
use super::delivery::{Delivery, Snapshot};
use super::ecn::Marking;
use super::flight::Flight;
use super::pacer::Pacer;
use super::prr::Prr;
use super::rack::{Rack, Timer};
use super::rto::RoundTrip;
use super::sack::{NextSeg, Scoreboard};
use super::sequence::Numbering;
use super::stamps::clock;
use super::window::{CongestionControl, Window};
use super::workload::{Act, Application};
use super::{RttSampling, TcpSettings};
use crate::refusal::Refusal;
use crate::traffic::sending_jitter::SendingJitter;
use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_core::address::{Direction, Service};
use tidegate_core::datagram::{Attachment, TcpBody};
use tidegate_core::rng::Draws;
use tidegate_core::wire::tcp::{self, Options, Timestamps};
use tidegate_core::{
    Body, Datagram, FlowId, Kind, Level, Node, Outbox, Packet, Port, RouteId, Span, Stream, Time,
};

/// The state of loss recovery of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No repair is under way, or a variant without SACK slow-starts after a timeout.
    Open,
    /// Fast recovery after duplicates.
    Recovery,
    /// With SACK: after a timeout, until all data then under way is acknowledged.
    Timeout,
}

/// The sending end of a connection.
///
/// Data packets leave by [`Port::ZERO`] on the given route; acknowledgements may come in at any
/// port. It records the data as sent. From [`Level::Series`] on it records, whenever they change, the internals
/// `cwnd` and `ssthresh` (bytes), `srtt_ms` and `rto_ms`, and at the end of each download `download_ms`,
/// the time from its beginning (its SYN, with a handshake) until the sender knows that all data has arrived.
pub struct TcpSender {
    pub(super) name: String,
    pub(super) flow: FlowId,
    route: RouteId,
    pub(super) settings: TcpSettings,
    pub(super) numbering: Numbering,
    pub(super) flight: Flight,
    /// The scoreboard of variants that use SACK.
    pub(super) board: Option<Scoreboard>,
    /// The state of RACK, with [`Recovery::Rack`].
    pub(super) rack: Option<Rack>,
    /// The proportional rate reduction under way.
    pub(super) prr: Option<Prr>,
    pub(super) window: Window,
    pub(super) control: Box<dyn CongestionControl>,
    pub(super) recovery: Recovery,
    pub(super) rtt: RoundTrip,
    pub(super) marking: Marking,
    /// Delivery rates and random numbers, for variants whose window is set by a model of the path.
    pub(super) delivery: Option<Delivery>,
    pub(super) luck: Stream,
    pub(super) pacer: Pacer,
    /// Whether segments that the window allows wait for more (segmentation offload).
    pub(super) defers: bool,
    pub(super) phase: Phase,
    /// Duplicates in a row.
    pub(super) duplicates: u32,
    /// One past the highest byte sent when the last recovery or timeout began (`recover` of RFC 6582,
    /// RecoveryPoint of RFC 6675).
    pub(super) recover: Option<u64>,
    /// Whether this recovery has seen a partial acknowledgement.
    pub(super) partial_seen: bool,
    /// The first unacknowledged byte at the last timeout.
    pub(super) timed_out_at: Option<u64>,
    /// The window that the receiver advertised last, in bytes, and its window scale in bits.
    pub(super) receive_window: u64,
    pub(super) scale: u8,
    /// The last timestamp of the receiver.
    pub(super) stamp: u32,
    /// RCV.NXT: the next byte expected from the receiver, which sends only SYNs.
    pub(super) rcv_nxt: u32,
    /// With [`RttSampling::OneAtATime`]: the end of the segment that is timed, and its departure.
    pub(super) timed: Option<(u64, Time)>,
    /// The SYN under way, if there is one.
    pub(super) opening: Option<Opening>,
    /// The end of the retransmission timer, if it runs.
    pub(super) deadline: Option<Time>,
    /// Time of the next check of the timers: not later than their ends, but often earlier, so that moving
    /// an end with every acknowledgement costs nothing.
    check: Option<Time>,
    /// One past the last byte that the application has written.
    pub(super) written: u64,
    began: Time,
    pub(super) application: Application,
    pub(super) last_sent: Time,
    /// Packets that wait for their departure after sending jitter.
    departures: VecDeque<Packet>,
    jitter: Option<SendingJitter>,
    number: u32,
    recorded: Internals,
}

/// A SYN under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) sent: Time,
    pub(super) repeated: bool,
}

/// The internals as they were last recorded.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Internals {
    cwnd: f64,
    ssthresh: f64,
    srtt: Span,
    rto: Span,
}

impl TcpSender {
    /// The sender of `flow`, whose data take `route`, in the run with `seed`. With `jitter` each data
    /// packet leaves later by a time uniform in [0, `jitter`), in order, as from a host that is busy: this
    /// breaks the phase effects of drop-tail queues (Floyd and Jacobson 1992). Acknowledgements have none.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(
        name: impl Into<String>,
        seed: u64,
        flow: FlowId,
        route: RouteId,
        settings: TcpSettings,
        jitter: Option<Span>,
    ) -> Result<Self, Refusal> {
        let name = name.into();
        settings.check()?;
        let application = Application::new(&settings, &name, seed);
        let Algorithm { control, .. } = settings.variant.algorithm();
        let recovery = settings.loss_recovery();
        let mut control = control(&settings, settings.start);
        let has_model = control.model().is_some();
        Ok(Self {
            flow,
            route,
            numbering: Numbering::new(settings.initial_sequence),
            flight: Flight::new(),
            board: Scoreboard::of(recovery, settings.segment, has_model),
            rack: Rack::of(recovery),
            prr: None,
            window: Window::new(settings.segment, settings.initial_window),
            rtt: settings.round_trip(),
            marking: Marking::new(&settings),
            delivery: has_model.then(Delivery::default),
            control,
            recovery,
            luck: Stream::new(seed, &name, "model"),
            pacer: Pacer::default(),
            defers: false,
            phase: Phase::Open,
            duplicates: 0,
            recover: None,
            partial_seen: false,
            timed_out_at: None,
            receive_window: u64::from(settings.receive_window >> settings.scale() << settings.scale()),
            scale: settings.scale(),
            stamp: 0,
            rcv_nxt: 0,
            timed: None,
            opening: None,
            deadline: None,
            check: None,
            written: 0,
            began: settings.start,
            application,
            last_sent: settings.start,
            departures: VecDeque::new(),
            jitter: jitter.map(|max| SendingJitter::new(max, Stream::new(seed, &name, "jitter"))),
            number: 0,
            recorded: Internals::default(),
            name,
            settings,
        })
    }

    /// Begins a connection (a new one for congestion control) with this many bytes to send.
    fn begin(&mut self, now: Time, bytes: u64, out: &mut Outbox) {
        let settings = &self.settings;
        self.window = Window::new(settings.segment, settings.initial_window);
        self.control = (settings.variant.algorithm().control)(settings, now);
        self.rtt = settings.round_trip();
        self.board = Scoreboard::of(self.recovery, settings.segment, self.delivery.is_some());
        self.rack = Rack::of(self.recovery);
        self.prr = None;
        self.marking = Marking::new(settings);
        self.delivery = self.delivery.as_ref().map(|_| Delivery::default());
        self.phase = Phase::Open;
        self.duplicates = 0;
        self.recover = None;
        self.timed_out_at = None;
        self.timed = None;
        self.deadline = None;
        self.began = now;
        if self.settings.handshake {
            self.flight.skip_one();
            self.opening = Some(Opening { sent: now, repeated: false });
            self.syn(now, out);
        }
        self.written = self.flight.max() + bytes;
        self.last_sent = now;
        self.fill(now, out);
    }

    /// Sends as much as window and application allow.
    pub(super) fn fill(&mut self, now: Time, out: &mut Outbox) {
        if self.opening.is_some() {
            return;
        }
        if self.flight.is_empty() {
            if self.flight.max() == self.written {
                return;
            }
            if now.saturating_since(self.last_sent) > self.rtt.timeout() {
                self.control.restart(&mut self.window);
            }
            if let Some(delivery) = &self.delivery
                && delivery.is_app_limited()
                && let Some(model) = self.control.model()
            {
                model.restart(now, &mut self.window.cwnd, &mut self.luck);
            }
        }
        if self.board.is_some() {
            let max = self.flight.max();
            while !self.pacer.holds(now) && self.send_burst(now, out) {}
            if self.flight.max() > max {
                self.schedule_probe(now);
            }
            self.check_limited();
        } else {
            while self.send_burst(now, out) {}
        }
    }

    /// Sends a segment, or with segmentation offload a burst of them; returns whether any left.
    #[inline]
    fn send_burst(&mut self, now: Time, out: &mut Outbox) -> bool {
        let Some(most) = self.burst(now) else { return false };
        (0..most).take_while(|_| self.send_segment(now, out)).count() > 0
    }

    #[inline]
    fn send_segment(&mut self, now: Time, out: &mut Outbox) -> bool {
        if self.board.is_some() { self.send_by_scoreboard(now, out) } else { self.send_in_order(now, out) }
    }

    /// Marks the delivery rate as limited by the application, if it has no more data to send for now and no segment is
    /// to be sent again (draft-cheng-iccrg-delivery-rate-estimation-00 section 3.4).
    fn check_limited(&mut self) {
        if let (Some(delivery), Some(board)) = (&mut self.delivery, &self.board)
            && self.flight.max() == self.written
            && board.next_seg(&self.flight, self.phase == Phase::Recovery, false).is_none()
            && (board.pipe() as f64) < self.window.cwnd
        {
            delivery.limited(board.pipe());
        }
    }

    /// Length of the next segment with new data, if the receiver's window has room for it.
    #[inline]
    pub(super) fn new_segment(&self) -> Option<u32> {
        let length = u64::from(self.settings.segment).min(self.written - self.flight.max());
        let fits = self.flight.unacknowledged() + length <= self.receive_window;
        (length > 0 && fits).then_some(length as u32)
    }

    /// Sends a segment of a variant without SACK: the window counts from the first unacknowledged byte.
    #[inline]
    fn send_in_order(&mut self, now: Time, out: &mut Outbox) -> bool {
        let room = self.window.cwnd - self.flight.outstanding() as f64;
        if let Some(index) = self.flight.to_repeat() {
            let length = self.flight.get(index).map_or(0, |segment| segment.length);
            if f64::from(length) > room {
                return false;
            }
            self.flight.repeated();
            self.repeat(now, index, out);
            return true;
        }
        // RFC 3042: one more segment for each of the first two duplicates
        let extra = match self.phase {
            Phase::Open if self.settings.limited_transmit => self.duplicates.min(2),
            _ => 0,
        };
        let room = room + f64::from(extra) * f64::from(self.settings.segment);
        match self.new_segment() {
            Some(length) if f64::from(length) <= room => {
                self.send_new(now, length, out);
                true
            }
            _ => false,
        }
    }

    /// Sends a segment of a variant with SACK: the window counts the pipe (RFC 6675).
    #[inline]
    fn send_by_scoreboard(&mut self, now: Time, out: &mut Outbox) -> bool {
        let Some(board) = &mut self.board else { return false };
        let room = self.window.cwnd - board.pipe() as f64;
        if room < 1.0 {
            return false;
        }
        let new_length = self.new_segment();
        let Some(board) = &mut self.board else { return false };
        let next = match self.phase {
            Phase::Open => new_length.map(|_| NextSeg::New),
            Phase::Recovery | Phase::Timeout => {
                // with RACK what may be lost is left to its timers
                let recovery = self.phase == Phase::Recovery && self.rack.is_none();
                board.next_seg(&self.flight, recovery, new_length.is_some())
            }
        };
        let (length, index) = match next {
            None => return false,
            Some(NextSeg::New) => (new_length.unwrap_or(0), None),
            Some(NextSeg::Lost(index) | NextSeg::MayBeLost(index) | NextSeg::Rescue(index)) => {
                (self.flight.get(index).map_or(0, |segment| segment.length), Some(index))
            }
        };
        if f64::from(length) > room {
            return false;
        }
        match (index, next) {
            (Some(index), Some(next)) => {
                board.repeated(&mut self.flight, next, self.recover.unwrap_or(0));
                self.repeat(now, index, out);
            }
            _ => {
                let unacknowledged = (self.flight.unacknowledged() + u64::from(length)) as f64;
                let limited = self.phase == Phase::Open && !self.settings.limited_transmit;
                if limited && unacknowledged > self.window.cwnd {
                    return false;
                }
                self.send_new(now, length, out);
            }
        }
        true
    }

    #[inline]
    pub(super) fn send_new(&mut self, now: Time, length: u32, out: &mut Outbox) {
        let start = self.flight.max();
        let sent = self.put(now, start, length, false, out);
        let snapshot = self.snapshot(sent, length);
        let departure = self.rack.as_mut().map_or(0, |rack| rack.sent(sent, start));
        self.flight.push(sent, departure, length, snapshot);
        if let Some(board) = &mut self.board {
            board.sent(length);
        }
        if self.settings.rtt_sampling == RttSampling::OneAtATime {
            self.timed.get_or_insert((start + u64::from(length), sent));
        }
    }

    /// Sends the segment at `index` of the flight again.
    pub(super) fn repeat(&mut self, now: Time, index: usize, out: &mut Outbox) {
        let Some(&segment) = self.flight.get(index) else { return };
        let sent = self.put(now, segment.start, segment.length, true, out);
        let snapshot = self.snapshot(sent, 0);
        let departure = self.rack.as_mut().map_or(0, |rack| rack.sent(sent, segment.start));
        if let Some(segment) = self.flight.get_mut(index) {
            (segment.sent, segment.departure, segment.snapshot) = (sent, departure, snapshot);
            segment.repeated = true;
        }
        if index == 0 && self.rack.is_some() {
            // a full timeout for the first segment under way (Linux's `tcp_xmit_retransmit_queue`)
            self.arm(now);
        }
        self.timed = None;
    }

    /// The delivery state to store with a segment that leaves at `sent`, with `length` bytes that are not yet counted
    /// as under way.
    #[inline]
    fn snapshot(&mut self, sent: Time, length: u32) -> Snapshot {
        let idle = self.flight.is_empty();
        let (Some(delivery), Some(board)) = (&mut self.delivery, &self.board) else {
            return Snapshot::default();
        };
        delivery.sent(sent, idle, board.lost(), board.pipe() + u64::from(length))
    }

    fn put(&mut self, now: Time, start: u64, length: u32, again: bool, out: &mut Outbox) -> Time {
        self.last_sent = now;
        if self.deadline.is_none() {
            self.arm(now);
        }
        if let Some(rate) = self.control.pacing_rate(&self.window, self.rtt.srtt()) {
            self.pacer.sent(now, length, rate);
        }
        let (sequence, ack, length) = (self.numbering.wire(start), self.rcv_nxt, length as u16);
        if let Some(prr) = &mut self.prr {
            prr.sent(length.into());
        }
        let (ecn, flags) = self.marking.of_data(start, again);
        let body = TcpBody { sequence, ack, window: Self::WINDOW, length, flags: TcpBody::ACK | flags };
        let size = tcp::data_headers(self.settings.timestamps) + u32::from(length);
        let attachment = self.stamped(now).map(|options| Arc::new(Attachment::Options(options)));
        self.depart(
            now,
            Datagram { size, ecn, body: Body::Tcp(body), attachment, ..Datagram::default() },
            out,
        )
    }

    pub(super) fn syn(&mut self, now: Time, out: &mut Outbox) {
        self.arm(now);
        let sequence = self.numbering.wire(self.flight.una() - 1);
        let flags = TcpBody::SYN | self.marking.offer();
        let body = TcpBody { sequence, window: Self::WINDOW, flags, ..TcpBody::default() };
        let options = self.settings.opening(0).map(|opening| {
            let stamped = self.stamped(now).unwrap_or_default();
            Options { opening, ..stamped }
        });
        let datagram = Datagram {
            size: tcp::HEADERS + options.unwrap_or_default().len() as u32,
            body: Body::Tcp(body),
            attachment: options.map(|options| Arc::new(Attachment::Options(options))),
            ..Datagram::default()
        };
        self.depart(now, datagram, out);
    }

    /// The options of a segment with timestamps.
    #[inline]
    fn stamped(&self, now: Time) -> Option<Options> {
        let timestamps = Some(Timestamps { value: clock(now), echo: self.stamp });
        self.settings.timestamps.then(|| Options { timestamps, ..Options::default() })
    }

    /// The sender's own window in all headers: the receiver sends no data, so any value will do.
    const WINDOW: u16 = u16::MAX;

    /// Puts a segment on the wire, now or after the sending jitter, and returns its departure.
    #[inline]
    fn depart(&mut self, now: Time, segment: Datagram, out: &mut Outbox) -> Time {
        let sent = self.jitter.as_mut().map_or(now, |jitter| jitter.depart(now));
        let datagram = segment.between(self.flow, Direction::Forward, Service::Discard);
        let packet = Packet::new(sent, self.flow, self.route, self.number, Kind::Data, datagram);
        self.number = self.number.wrapping_add(1);
        if sent <= now && self.departures.is_empty() {
            out.originate(now, Port::ZERO, packet);
        } else {
            self.departures.push_back(packet);
        }
        sent
    }

    /// (Re)starts the timer.
    #[inline]
    pub(super) fn arm(&mut self, now: Time) {
        let deadline = now + self.rtt.timeout();
        self.deadline = Some(deadline);
        self.check_by(deadline);
    }

    /// Sees to it that the timers are looked at by `deadline`.
    #[inline]
    pub(super) fn check_by(&mut self, deadline: Time) {
        if self.check.is_none_or(|check| check > deadline) {
            self.check = Some(deadline);
        }
    }

    /// Stops the timer.
    #[inline]
    pub(super) fn disarm(&mut self) {
        self.deadline = None;
    }

    fn look_at_timers(&mut self, now: Time, out: &mut Outbox) {
        if self.check.is_none_or(|check| check > now) {
            return;
        }
        // the actions below set the next time
        self.check = None;
        match self.rack.as_mut().and_then(|rack| rack.take_due(now)) {
            Some(Timer::Reordering) => self.reordering_timeout(now, out),
            // in place of a timeout that is due at the same time (RFC 8985 section 7.2)
            Some(Timer::Probe) => self.send_probe(now, out),
            None if self.deadline.is_some_and(|deadline| deadline <= now) => self.timeout(now, out),
            None => {}
        }
        let pending = self.rack.as_ref().and_then(Rack::deadline);
        for deadline in self.deadline.into_iter().chain(pending) {
            self.check_by(deadline);
        }
    }

    fn act(&mut self, now: Time, out: &mut Outbox) {
        loop {
            match self.application.act(now) {
                Act::Idle => return,
                Act::Begin(bytes) => self.begin(now, bytes, out),
                Act::Stop => {
                    self.written = self.flight.max();
                    if self.opening.take().is_some() {
                        // an end that closes before the answer to its SYN has no connection (RFC 9293 section 3.10.4)
                        self.disarm();
                    }
                }
            }
        }
    }

    /// Ends the download if all data of the application has arrived.
    #[inline]
    pub(super) fn check_completed(&mut self, now: Time, out: &mut Outbox) {
        let completed = self.flight.is_empty() && self.flight.max() == self.written;
        if completed && self.application.completed(now) && out.record.level() >= Level::Series {
            let duration = (now - self.began).as_millis_f64();
            out.record.internal(now, self.flow, "download_ms", duration);
        }
    }

    fn record_internals(&mut self, now: Time, out: &mut Outbox) {
        if out.record.level() < Level::Series {
            return;
        }
        let new = Internals {
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            srtt: self.rtt.srtt().unwrap_or_default(),
            rto: self.rtt.timeout(),
        };
        let old = std::mem::replace(&mut self.recorded, new);
        let mut record = |changed: bool, name: &str, value: f64| {
            if changed && value.is_finite() {
                out.record.internal(now, self.flow, name, value);
            }
        };
        record(old.cwnd != new.cwnd, "cwnd", new.cwnd);
        record(old.ssthresh != new.ssthresh, "ssthresh", new.ssthresh);
        record(old.srtt != new.srtt, "srtt_ms", new.srtt.as_millis_f64());
        record(old.rto != new.rto, "rto_ms", new.rto.as_millis_f64());
    }
}

impl Node for TcpSender {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        let departure = self.departures.front().map(|packet| packet.sent);
        [departure, self.check, self.application.next_wakeup(), self.pacer.next_wakeup()]
            .into_iter()
            .flatten()
            .min()
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        while self.departures.front().is_some_and(|packet| packet.sent <= now) {
            let Some(packet) = self.departures.pop_front() else { return };
            out.originate(now, Port::ZERO, packet);
        }
        self.act(now, out);
        self.look_at_timers(now, out);
        if self.pacer.releases(now) {
            self.fill(now, out);
        }
        self.record_internals(now, out);
    }

    #[inline]
    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        let Body::Tcp(body) = packet.body else {
            out.fail(format!("a TCP sender got a {} packet of flow {}", packet.kind.name(), packet.flow.0));
            return;
        };
        out.deliver(now, &packet);
        self.acknowledgement(now, body, &packet, out);
        out.recycle(packet);
        self.record_internals(now, out);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.application.luck().draws());
        if let Some(jitter) = &self.jitter {
            visit(jitter.draws());
        }
        if self.delivery.is_some() {
            visit(self.luck.draws());
        }
    }
}
