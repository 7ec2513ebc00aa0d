//! A call under way: the loop around the socket, until both sides have ended and have exchanged their records.

use super::line::SocketDriver;
use super::numbering::Numbering;
use super::offer::Offer;
use super::record::{Fact, Health, Sent};
use super::socket::Socket;
use super::timeline::Timeline;
use super::{EndReason, EndedCall, Phase, Progress, ProgressReply, SILENCE};
use crate::clock::monotonic;
use crate::session::Ignored;
use crate::session::control::{Control, is_rtp};
use crate::session::keys::Key;
use crate::session::message::MAGIC;
use crate::session::seal::{Opener, Sealer};
use crate::session::transfer::Fetch;
use tidegate_core::{Datagram, Ecn, Frame, Kind, Peer, Rate, Span, Time};
use tidegate_endpoint::datagram::decode_payload;
use tidegate_endpoint::{Endpoint, MediaKind};

/// Interval of the progress callback.
pub(super) const PROGRESS_INTERVAL: Span = Span::from_millis(50);
/// Interval of `Alive` messages of a side that sends nothing else: several in [`SILENCE`].
const ALIVE_INTERVAL: Span = Span::from_millis(250);
/// An answerer sends `Alive` only if it received something from the caller within this time.
const HEARD_WITHIN: Span = Span::from_millis(500);
/// Largest number of datagrams that are read before the endpoint runs: a flood must not keep it from its work.
const READ_BATCH: usize = 64;
/// Number of wakeups at one instant that count as an endless loop.
const MAX_WAKEUPS: usize = 10_000;

/// A side of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Caller,
    Answerer,
}

/// Handling of media and feedback that are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveMode {
    /// The endpoint gets them, and they are recorded.
    Live,
    /// They were in flight when the call ended, and are only recorded.
    RecordOnly,
    /// The record is closed, and they are dropped.
    Discard,
}

/// The reply that is repeated to a caller that has not received it.
pub(super) struct Accepted {
    pub(super) reply: Vec<u8>,
    /// The bytes of the offer, which the caller repeats.
    pub(super) offer: Vec<u8>,
}

/// A call under way.
pub(super) struct Session {
    side: Side,
    offer: Offer,
    endpoint: Endpoint,
    pub(super) driver: SocketDriver,
    opener: Opener,
    accepted: Option<Accepted>,
    clock: Timeline,
    /// The latest time that was passed to the endpoint.
    reached: Time,
    pub(super) last_received: Option<Time>,
    /// Lateness of each wakeup in microseconds.
    late: Vec<u32>,
    numbering: Numbering,
    /// Whether the other side has announced the end of the call.
    pub(super) remote_ended: bool,
    /// Whether the other side has this side's record.
    pub(super) remote_done: bool,
    /// Pieces of this side's record that the other side has requested: first number and count.
    pub(super) requested: Vec<(u32, u32)>,
    pub(super) fetch: Option<Fetch>,
    /// Whether the user of this side has stopped the exchange of records.
    pub(super) stopped: bool,
    buffer: Vec<u8>,
}

/// Parts of a session, without the socket.
pub(super) struct Parts {
    pub(super) side: Side,
    pub(super) offer: Offer,
    pub(super) endpoint: Endpoint,
    pub(super) keys: (Key, Key),
    pub(super) max_rate: Rate,
    pub(super) accepted: Option<Accepted>,
    /// Counts of datagrams that were ignored before the call.
    pub(super) ignored: Ignored,
}

impl Session {
    pub(super) fn new(socket: Socket, parts: Parts) -> Self {
        let Parts { side, offer, endpoint, keys: (sending_key, receiving_key), max_rate, accepted, ignored } =
            parts;
        let max_datagram = offer.max_datagram();
        let mut driver = SocketDriver::new(socket, Sealer::new(sending_key), offer.overhead, max_rate);
        driver.ignored = ignored;
        Self {
            side,
            endpoint,
            driver,
            opener: Opener::new(receiving_key, max_datagram),
            accepted,
            clock: Timeline::new(),
            reached: Time::ZERO,
            last_received: None,
            late: Vec::new(),
            numbering: Numbering::default(),
            remote_ended: false,
            remote_done: false,
            requested: Vec::new(),
            fetch: None,
            stopped: false,
            // one byte more, to detect datagrams that are too long
            buffer: vec![0; max_datagram + 1],
            offer,
        }
    }

    /// Runs the call to its end.
    pub(super) fn run(mut self, about: String, progress: &mut Progress<'_>) -> EndedCall {
        let mut reason = self.media(progress);
        let now = self.now();
        self.endpoint.finish(now, &mut self.driver);
        self.driver.record.lasted = now - Time::ZERO;
        self.driver.record.about = about;
        let drained = reason != EndReason::Silent && self.drain(progress);
        self.driver.record.health = Health { ignored: self.driver.ignored, ..self.health() };
        let remote = if drained { self.exchange(progress) } else { None };
        if remote.is_none() && self.stopped && matches!(reason, EndReason::Completed | EndReason::Ended) {
            reason = EndReason::Stopped;
        }
        // the other side has the counts until the exchange, this side all of them
        self.driver.record.health.ignored = self.driver.ignored;
        let capture = self.driver.socket.end_capture().map_err(|error| error.to_string());
        EndedCall { offer: self.offer, local: self.driver.record, remote, reason, capture }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now().max(self.reached)
    }

    /// Sends and receives media until the call's time is over or something else ends it.
    fn media(&mut self, progress: &mut Progress<'_>) -> EndReason {
        let end = Time::ZERO + self.offer.duration;
        let mut next_progress = Time::ZERO;
        loop {
            self.clock.compare();
            self.receive(ReceiveMode::Live);
            let now = self.now();
            self.advance(now);
            if let Some(reason) = self.driver.failure.take() {
                return EndReason::Failed(reason);
            }
            let caller = self.side == Side::Caller;
            if self.remote_ended {
                return if now + SILENCE < end { EndReason::Ended } else { EndReason::Completed };
            }
            if caller && now >= end {
                return EndReason::Completed;
            }
            if now - self.last_received.unwrap_or(Time::ZERO) > SILENCE {
                return EndReason::Silent;
            }
            if now - self.driver.last_sent >= ALIVE_INTERVAL
                && (caller || self.last_received.is_some_and(|received| now - received < HEARD_WITHIN))
            {
                self.driver.send_control(now, &Control::Alive.encode());
            }
            if now >= next_progress {
                next_progress = now + PROGRESS_INTERVAL;
                let share = (now - Time::ZERO).as_secs_f64() / self.offer.duration.as_secs_f64();
                if progress(Phase::Media, share.min(1.0)) == ProgressReply::Stop {
                    return EndReason::Stopped;
                }
            }
            let next = self.endpoint.next_wakeup().unwrap_or(Time::MAX).min(next_progress);
            self.wait(if caller { next.min(end) } else { next });
        }
    }

    pub(super) fn wait(&mut self, until: Time) {
        let span = until - self.now();
        if span > Span::ZERO
            && let Err(error) = self.driver.socket.wait(span)
        {
            self.driver.set_broken("wait", &error);
        }
    }

    /// Runs the endpoint's wakeups that are due by `now`.
    fn advance(&mut self, now: Time) {
        self.reached = self.reached.max(now);
        let mut count = 0;
        while let Some(due) = self.endpoint.next_wakeup().filter(|&due| due <= now) {
            if count == 0 {
                // in microseconds; an hour fits
                let late = (now - due).as_nanos() / 1000;
                self.late.push(u32::try_from(late).unwrap_or(u32::MAX));
            }
            count += 1;
            if count > MAX_WAKEUPS {
                self.driver.failure.get_or_insert_with(|| format!("endless loop of wake-ups at {now}"));
                return;
            }
            self.endpoint.advance(now, &mut self.driver);
        }
    }

    /// Receives the waiting datagrams.
    pub(super) fn receive(&mut self, mode: ReceiveMode) {
        for _ in 0..READ_BATCH {
            let before = monotonic();
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = self.driver.socket.receive(&mut buffer);
            match &received {
                Ok(Some(received)) => {
                    let (at, is_exact) = self.clock.stamped(received.stamp);
                    let fields = (received.ecn, received.dscp);
                    let (bytes, before) = (&buffer[..received.length], self.driver.ignored.total());
                    if self.driver.socket.is_peer(received.from) {
                        self.datagram((at, is_exact), bytes, fields, mode);
                    } else {
                        self.driver.ignored.strangers += 1;
                    }
                    let ignored = self.driver.ignored.total() > before;
                    self.driver.socket.capture_received(received, bytes, ignored);
                }
                Ok(None) => self.clock.empty = before,
                Err(error) => self.driver.set_broken("receive", error),
            }
            self.buffer = buffer;
            if !matches!(received, Ok(Some(_))) {
                return;
            }
        }
    }

    fn datagram(
        &mut self,
        (at, is_exact): (Time, bool),
        bytes: &[u8],
        (ecn, dscp): (Ecn, u8),
        mode: ReceiveMode,
    ) {
        if bytes.starts_with(&MAGIC) {
            // the caller has not received the reply that accepts it
            match &self.accepted {
                Some(accepted) if accepted.offer == bytes => {
                    let sent = self.driver.socket.send(&accepted.reply, Ecn::NotEct, 0, None);
                    self.driver.record.health.unsent += u64::from(!matches!(sent, Ok(true)));
                }
                _ => self.driver.ignored.malformed += 1,
            }
            return;
        }
        let Some((number, carried)) = self.opener.open(bytes, &mut self.driver.ignored) else { return };
        let now = at.max(self.reached);
        self.last_received = Some(now);
        if is_rtp(carried) {
            self.driver.record.health.clamped += u64::from(!is_exact || at < self.reached);
            match decode_payload(carried, self.offer.overhead) {
                Ok(datagram) => {
                    self.arrived(now, number, Datagram { ecn, dscp, ..datagram }, mode);
                }
                Err(_) => self.driver.ignored.malformed += 1,
            }
            return;
        }
        match Control::decode(carried) {
            Some(Control::Alive) => {}
            Some(Control::End) => self.remote_ended = true,
            Some(Control::Done) => (self.remote_ended, self.remote_done) = (true, true),
            Some(Control::Ask { from, count }) => {
                self.remote_ended = true;
                // only the newest request counts: lost pieces are requested again
                self.requested = vec![(from, count)];
            }
            Some(Control::Piece { number, total, bytes }) => {
                let taken = self.fetch.as_mut().is_some_and(|fetch| fetch.piece(now, number, total, bytes));
                self.driver.ignored.malformed += u64::from(!taken);
            }
            None => self.driver.ignored.malformed += 1,
        }
    }

    /// Handles a packet of media or feedback from the other side.
    fn arrived(&mut self, now: Time, number: u64, datagram: Datagram, mode: ReceiveMode) {
        if mode == ReceiveMode::Discard {
            return;
        }
        self.driver.record.add(now, Fact::Arrived(number, datagram.ecn as u8));
        let frame = self.frame(&datagram);
        if self.side == Side::Answerer {
            let kind = self.kind(&datagram);
            self.driver.record.received.push((number, Sent::new(number as u32, kind, frame, &datagram)));
        }
        if mode == ReceiveMode::Live {
            self.advance(now);
            self.driver.arrived = Some((number, frame));
            self.endpoint.receive(now, &datagram, &mut self.driver);
            self.driver.arrived = None;
        }
    }

    fn kind(&self, datagram: &Datagram) -> Kind {
        let Some(body) = datagram.rtp() else { return Kind::Rtcp };
        let stream = self.offer.streams.iter().find(|stream| stream.payload_type == body.payload_type);
        match stream.map_or(MediaKind::Padding, |stream| stream.kind) {
            MediaKind::Video => Kind::Video,
            MediaKind::Audio => Kind::Audio,
            MediaKind::Padding => Kind::Padding,
            MediaKind::Retransmission => Kind::Retransmission,
            MediaKind::Parity => Kind::Repair,
        }
    }

    /// The frame to which a packet belongs. Only the streams of the offer are numbered, so that there are no more of them.
    fn frame(&mut self, datagram: &Datagram) -> Frame {
        let is_offered = |ssrc| self.offer.streams.iter().any(|stream| stream.ssrc == ssrc);
        match datagram.rtp() {
            Some(body) if body.marks.is_none() && is_offered(body.ssrc) => {
                let number = self.numbering.frame(body.ssrc, body.sequence);
                Frame { number, flags: Frame::FIRST | Frame::LAST | Frame::KEY }
            }
            body => {
                let number = body.and_then(|body| body.marks).map_or(0, |marks| marks.frame);
                Frame { number: number.into(), flags: 0 }
            }
        }
    }

    fn health(&mut self) -> Health {
        self.late.sort_unstable();
        let late = |share: f64| {
            let last = self.late.len().saturating_sub(1);
            self.late.get((last as f64 * share) as usize).map_or(0.0, |&micros| f64::from(micros) / 1e3)
        };
        Health {
            wakeups: self.late.len() as u64,
            late_ms: (late(0.5), late(0.99), late(1.0)),
            ..self.driver.record.health.clone()
        }
    }
}
