//! A call under way: the loop around the socket, until both sides have ended and have exchanged their records.

use super::line::Line;
use super::numbering::Numbering;
use super::offer::Offer;
use super::record::{Fact, Health, Sent};
use super::socket::Socket;
use super::timeline::Timeline;
use super::{Ended, Phase, Pulse, SILENCE, Why, Wish};
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

/// Whoever drives the call is asked this often.
pub(super) const PULSE: Span = Span::from_millis(50);
/// A side that has nothing else to send says so often that it is there: several times in [`SILENCE`].
const ALIVE: Span = Span::from_millis(250);
/// An answerer says so only while it hears the caller: within this time.
const HEARS: Span = Span::from_millis(500);
/// Datagrams that are read before the endpoint has its turn: a flood must not keep it from its work.
const AT_ONCE: usize = 64;
/// Wakeups at one instant that are an endless loop.
const MOST_WAKEUPS: usize = 10_000;

/// Which side of a call this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Caller,
    Answerer,
}

/// What becomes of media and feedback that come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// The endpoint gets them.
    Live,
    /// They were on their way when the call ended: the record has them.
    Record,
    /// The record is closed.
    Nothing,
}

/// What is said again to a caller that has not heard that it was accepted.
pub(super) struct Accepted {
    pub(super) reply: Vec<u8>,
    /// The bytes of the offer, which then come again.
    pub(super) offer: Vec<u8>,
}

/// A call under way.
pub(super) struct Session {
    side: Side,
    offer: Offer,
    endpoint: Endpoint,
    pub(super) line: Line,
    opener: Opener,
    accepted: Option<Accepted>,
    clock: Timeline,
    /// The time up to which the endpoint has been told.
    told: Time,
    pub(super) heard: Option<Time>,
    late: Vec<u32>,
    numbering: Numbering,
    /// What the other side has said of the end.
    pub(super) end: bool,
    pub(super) done: bool,
    pub(super) asked: Vec<(u32, u32)>,
    pub(super) fetch: Option<Fetch>,
    buffer: Vec<u8>,
}

/// What a session is made of, beside the socket.
pub(super) struct Parts {
    pub(super) side: Side,
    pub(super) offer: Offer,
    pub(super) endpoint: Endpoint,
    pub(super) keys: (Key, Key),
    pub(super) most: Rate,
    pub(super) accepted: Option<Accepted>,
}

impl Session {
    pub(super) fn new(socket: Socket, parts: Parts) -> Self {
        let Parts { side, offer, endpoint, keys: (ours, theirs), most, accepted } = parts;
        let largest = offer.largest();
        Self {
            side,
            endpoint,
            line: Line::new(socket, Sealer::new(ours), offer.overhead, most),
            opener: Opener::new(theirs, largest),
            accepted,
            clock: Timeline::new(),
            told: Time::ZERO,
            heard: None,
            late: Vec::new(),
            numbering: Numbering::default(),
            end: false,
            done: false,
            asked: Vec::new(),
            fetch: None,
            // one more byte shows that a datagram is longer than it may be
            buffer: vec![0; largest + 1],
            offer,
        }
    }

    /// Counts what was ignored before the call.
    pub(super) fn ignored_before(&mut self, ignored: Ignored) {
        self.line.ignored = ignored;
    }

    /// Runs the call to its end.
    pub(super) fn run(mut self, about: String, pulse: &mut Pulse<'_>) -> Ended {
        let why = self.media(pulse);
        let now = self.now();
        self.endpoint.finish(now, &mut self.line);
        self.line.record.lasted = now - Time::ZERO;
        self.line.record.about = about;
        let heard = why != Why::Silent && self.drain(pulse);
        self.line.record.health = Health { ignored: self.line.ignored, ..self.health() };
        let other = if heard { self.exchange(pulse) } else { None };
        let captured = self.line.socket.end_capture().map_err(|error| error.to_string());
        Ended { offer: self.offer, own: self.line.record, other, why, captured }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now().max(self.told)
    }

    /// Media goes, until its time is up or something else ends it.
    fn media(&mut self, pulse: &mut Pulse<'_>) -> Why {
        let end = Time::ZERO + self.offer.duration;
        let mut beat = Time::ZERO;
        loop {
            self.clock.compare();
            self.receive(Take::Live);
            let now = self.now();
            self.advance(now);
            if let Some(reason) = self.line.failure.take() {
                return Why::Failed(reason);
            }
            let caller = self.side == Side::Caller;
            if self.end {
                return if now + SILENCE < end { Why::Ended } else { Why::Completed };
            }
            if caller && now >= end {
                return Why::Completed;
            }
            if now - self.heard.unwrap_or(Time::ZERO) > SILENCE {
                return Why::Silent;
            }
            if now - self.line.spoke >= ALIVE && (caller || self.heard.is_some_and(|at| now - at < HEARS)) {
                self.line.say(now, &Control::Alive.encode());
            }
            if now >= beat {
                beat = now + PULSE;
                let share = (now - Time::ZERO).as_secs_f64() / self.offer.duration.as_secs_f64();
                if pulse(Phase::Media, share.min(1.0)) == Wish::Stop {
                    return Why::Stopped;
                }
            }
            let next = self.endpoint.next_wakeup().unwrap_or(Time::MAX).min(beat);
            self.wait(if caller { next.min(end) } else { next });
        }
    }

    pub(super) fn wait(&mut self, until: Time) {
        let span = until - self.now();
        if span > Span::ZERO
            && let Err(error) = self.line.socket.wait(span)
        {
            self.line.broken("wait", &error);
        }
    }

    /// Lets the endpoint do what is due by `now`.
    fn advance(&mut self, now: Time) {
        self.told = self.told.max(now);
        let mut count = 0;
        while let Some(at) = self.endpoint.next_wakeup().filter(|&at| at <= now) {
            if count == 0 {
                // in microseconds; an hour fits
                let late = (now - at).as_nanos() / 1000;
                self.late.push(u32::try_from(late).unwrap_or(u32::MAX));
            }
            count += 1;
            if count > MOST_WAKEUPS {
                self.line.failure.get_or_insert_with(|| format!("at {now}: time does not pass"));
                return;
            }
            self.endpoint.advance(now, &mut self.line);
        }
    }

    /// Takes in what has come.
    pub(super) fn receive(&mut self, take: Take) {
        for _ in 0..AT_ONCE {
            let before = monotonic();
            let mut buffer = std::mem::take(&mut self.buffer);
            let got = self.line.socket.receive(&mut buffer);
            match &got {
                Ok(Some(got)) => {
                    let (at, known) = self.clock.stamped(got.stamp);
                    let fields = (got.ecn, got.dscp);
                    self.datagram((at, known), &buffer[..got.length], fields, take);
                }
                Ok(None) => self.clock.empty = before,
                Err(error) => self.line.broken("receive", error),
            }
            self.buffer = buffer;
            if !matches!(got, Ok(Some(_))) {
                return;
            }
        }
    }

    fn datagram(&mut self, (at, known): (Time, bool), bytes: &[u8], (ecn, dscp): (Ecn, u8), take: Take) {
        if bytes.starts_with(&MAGIC) {
            // the caller has not heard that it was accepted
            match &self.accepted {
                Some(accepted) if accepted.offer == bytes => {
                    let sent = self.line.socket.send(&accepted.reply, Ecn::NotEct, 0, None);
                    self.line.record.health.unsent += u64::from(!matches!(sent, Ok(true)));
                }
                _ => self.line.ignored.malformed += 1,
            }
            return;
        }
        let Some((number, carried)) = self.opener.open(bytes, &mut self.line.ignored) else { return };
        let now = at.max(self.told);
        self.heard = Some(now);
        if is_rtp(carried) {
            self.line.record.health.clamped += u64::from(!known || at < self.told);
            match decode_payload(carried, self.offer.overhead) {
                Ok(datagram) => {
                    self.arrived(now, number, Datagram { ecn, dscp, ..datagram }, take);
                }
                Err(_) => self.line.ignored.malformed += 1,
            }
            return;
        }
        match Control::decode(carried) {
            Some(Control::Alive) => {}
            Some(Control::End) => self.end = true,
            Some(Control::Done) => (self.end, self.done) = (true, true),
            Some(Control::Ask { from, count }) => {
                self.end = true;
                // the newest is what counts: it is asked again for what was lost
                self.asked = vec![(from, count)];
            }
            Some(Control::Piece { number, total, bytes }) => {
                let taken = self.fetch.as_mut().is_some_and(|fetch| fetch.piece(now, number, total, bytes));
                self.line.ignored.malformed += u64::from(!taken);
            }
            None => self.line.ignored.malformed += 1,
        }
    }

    /// A packet of the other side has come in.
    fn arrived(&mut self, now: Time, number: u64, datagram: Datagram, take: Take) {
        if take == Take::Nothing {
            return;
        }
        self.line.record.add(now, Fact::Arrived(number, datagram.ecn as u8));
        let frame = self.frame(&datagram);
        if self.side == Side::Answerer {
            let kind = self.kind(&datagram);
            self.line.record.heard.push((number, Sent::new(number as u32, kind, frame, &datagram)));
        }
        if take == Take::Live {
            self.advance(now);
            self.line.arrived = Some((number, frame));
            self.endpoint.receive(now, &datagram, &mut self.line);
            self.line.arrived = None;
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

    /// Which frame a packet is of.
    fn frame(&mut self, datagram: &Datagram) -> Frame {
        match datagram.rtp() {
            Some(body) if body.marks.is_none() => {
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
            ..self.line.record.health.clone()
        }
    }
}
