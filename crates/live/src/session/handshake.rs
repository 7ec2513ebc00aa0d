//! The handshake of both sides as state machines: datagrams and times go in, datagrams and an outcome come out.

use super::Ignored;
use super::keys::{Key, Nonce, PresharedKey, SessionKeys};
use super::message::{COOKIE, DecodeError, MAX_REASON, MAX_SETTINGS, Message, VERSION};
use std::net::{IpAddr, SocketAddr};
use tidegate_core::{Span, Time};

/// Time after which a caller repeats a message that was not answered.
const REPEAT_INTERVAL: Span = Span::from_millis(250);

/// Minimum lifetime of a cookie; it may be accepted for up to twice as long.
const COOKIE_LIFE: Span = Span::from_secs(30);

/// Reason why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// The other side has this version of the protocol.
    Version(u8),
    /// The other side refuses, for this reason.
    Refused(String),
}

fn decode(bytes: &[u8], key: &Key, ignored: &mut Ignored) -> Option<(Nonce, Message)> {
    match Message::decode(bytes, key) {
        Ok(message) => Some(message),
        Err(DecodeError::Forged) => {
            ignored.forged += 1;
            None
        }
        Err(DecodeError::Malformed) => {
            ignored.malformed += 1;
            None
        }
    }
}

/// The side that calls.
#[derive(Debug)]
pub struct Caller {
    key: PresharedKey,
    handshake: Key,
    nonce: Nonce,
    settings: Vec<u8>,
    cookie: Option<[u8; COOKIE]>,
    due: Time,
}

impl Caller {
    /// A caller that uses `nonce` once, and offers `settings`.
    ///
    /// # Errors
    /// With the number of bytes, if there are more than [`MAX_SETTINGS`].
    pub fn new(key: PresharedKey, nonce: Nonce, settings: Vec<u8>) -> Result<Self, usize> {
        if settings.len() > MAX_SETTINGS {
            return Err(settings.len());
        }
        Ok(Self { handshake: key.handshake(), key, nonce, settings, cookie: None, due: Time::ZERO })
    }

    /// Time of the next message, if nothing is received before.
    #[must_use]
    pub const fn due(&self) -> Time {
        self.due
    }

    /// The message that is due at `now`, if any.
    pub fn advance(&mut self, now: Time) -> Option<Vec<u8>> {
        if now < self.due {
            return None;
        }
        self.due = now + REPEAT_INTERVAL;
        let message = match self.cookie {
            None => Message::Hello,
            Some(cookie) => Message::Offer(cookie, self.settings.clone()),
        };
        Some(message.encode(&self.nonce, &self.handshake))
    }

    /// Handles a datagram; returns the session's keys if the other side has accepted.
    ///
    /// # Errors
    /// If the other side refuses or has another version.
    pub fn receive(
        &mut self,
        now: Time,
        bytes: &[u8],
        ignored: &mut Ignored,
    ) -> Result<Option<SessionKeys>, HandshakeError> {
        let Some((nonce, message)) = decode(bytes, &self.handshake, ignored) else { return Ok(None) };
        if nonce != self.nonce {
            ignored.replayed += 1;
            return Ok(None);
        }
        match message {
            Message::Retry(cookie) => {
                // a new cookie replaces an expired one
                if self.cookie.replace(cookie) != Some(cookie) {
                    self.due = now;
                }
                Ok(None)
            }
            Message::Accept(answerer) => Ok(Some(self.key.session(&self.nonce, &answerer))),
            Message::Refuse(reason) => Err(HandshakeError::Refused(reason)),
            Message::OtherVersion(version) => Err(HandshakeError::Version(version)),
            Message::Hello | Message::Offer(..) => {
                ignored.malformed += 1;
                Ok(None)
            }
        }
    }
}

/// Reaction of an answerer to a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswererAction {
    /// The datagram is ignored, and counted.
    Ignore,
    /// A reply to be sent to the datagram's source.
    Send(Vec<u8>),
    /// An offer from a proven address, to be answered by [`Answerer::accept`] or [`Answerer::refuse`].
    Offered(Offered),
    /// A caller's version of the protocol that is not supported, and the reply to be sent.
    Version(u8, Vec<u8>),
}

/// An offer from a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// The caller's nonce.
    pub nonce: Nonce,
    /// The settings that it offers.
    pub settings: Vec<u8>,
}

/// The side that is called. It keeps no state of a caller before the caller has returned a cookie, and sends it nothing
/// longer than the datagram that it answers (RFC 9000 section 8.1 allows three times as much).
#[derive(Debug)]
pub struct Answerer {
    key: PresharedKey,
    handshake: Key,
    cookies: Key,
}

impl Answerer {
    /// An answerer whose cookies depend on `secret`, which must be unique to it and known to no one else.
    #[must_use]
    pub fn new(key: PresharedKey, secret: &Nonce) -> Self {
        Self { handshake: key.handshake(), key, cookies: Key::new(secret) }
    }

    fn cookie(&self, from: SocketAddr, nonce: &Nonce, slot: i64) -> [u8; COOKIE] {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        self.cookies.tag(&[&ip.octets(), &from.port().to_be_bytes(), nonce, &slot.to_be_bytes()])
    }

    /// Handles a datagram from the address `from`.
    pub fn receive(
        &self,
        now: Time,
        from: SocketAddr,
        bytes: &[u8],
        ignored: &mut Ignored,
    ) -> AnswererAction {
        match self.action(now, from, bytes, ignored) {
            AnswererAction::Send(reply) | AnswererAction::Version(_, reply) if reply.len() > bytes.len() => {
                ignored.malformed += 1;
                AnswererAction::Ignore
            }
            action => action,
        }
    }

    fn action(&self, now: Time, from: SocketAddr, bytes: &[u8], ignored: &mut Ignored) -> AnswererAction {
        let Some((nonce, message)) = decode(bytes, &self.handshake, ignored) else {
            return AnswererAction::Ignore;
        };
        let slot = now.as_nanos() / COOKIE_LIFE.as_nanos();
        let reply = |message: Message| AnswererAction::Send(message.encode(&nonce, &self.handshake));
        match message {
            Message::Hello => reply(Message::Retry(self.cookie(from, &nonce, slot))),
            Message::Offer(cookie, settings) => {
                if [slot, slot - 1].iter().any(|&slot| self.cookie(from, &nonce, slot) == cookie) {
                    return AnswererAction::Offered(Offered { nonce, settings });
                }
                // the cookie has expired, or is of another answerer: send a new one
                reply(Message::Retry(self.cookie(from, &nonce, slot)))
            }
            Message::OtherVersion(version) if version != VERSION => {
                let reply = Message::OtherVersion(VERSION).encode(&nonce, &self.handshake);
                AnswererAction::Version(version, reply)
            }
            _ => {
                ignored.malformed += 1;
                AnswererAction::Ignore
            }
        }
    }

    /// Accepts an offer: the reply, and the session's keys. `nonce` must be new for each session; for a repeated offer
    /// it is the same.
    #[must_use]
    pub fn accept(&self, offered: &Offered, nonce: &Nonce) -> (Vec<u8>, SessionKeys) {
        let reply = Message::Accept(*nonce).encode(&offered.nonce, &self.handshake);
        (reply, self.key.session(&offered.nonce, nonce))
    }

    /// Refuses an offer: the reply, with as much of `reason` as fits, on one line.
    #[must_use]
    pub fn refuse(&self, offered: &Offered, reason: &str) -> Vec<u8> {
        let mut line = String::new();
        for letter in reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter }) {
            if line.len() + letter.len_utf8() > MAX_REASON {
                break;
            }
            line.push(letter);
        }
        Message::Refuse(line).encode(&offered.nonce, &self.handshake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::TAG;
    use crate::session::keys::NONCE;

    fn sides() -> (Caller, Answerer) {
        let key = PresharedKey::new(b"a key of 19 bytes !").expect("long enough");
        let caller = Caller::new(key.clone(), [1; NONCE], b"settings".to_vec()).expect("they fit");
        (caller, Answerer::new(key, &[2; NONCE]))
    }

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn caller_address() -> SocketAddr {
        "192.0.2.1:5004".parse().expect("an address")
    }

    /// The offer that a caller sends after a retry.
    fn make_offer(caller: &mut Caller, answerer: &Answerer, ignored: &mut Ignored) -> Vec<u8> {
        let hello = caller.advance(ms(0)).expect("it begins");
        let AnswererAction::Send(retry) = answerer.receive(ms(1), caller_address(), &hello, ignored) else {
            panic!("a hello is answered")
        };
        assert!(retry.len() < hello.len(), "nothing larger than what came");
        assert_eq!(caller.receive(ms(2), &retry, ignored).map(|keys| keys.is_some()), Ok(false));
        caller.advance(ms(2)).expect("at once")
    }

    #[test]
    fn two_sides_agree() {
        let (mut caller, answerer) = sides();
        let mut ignored = Ignored::default();
        let offer = make_offer(&mut caller, &answerer, &mut ignored);
        let AnswererAction::Offered(offered) =
            answerer.receive(ms(3), caller_address(), &offer, &mut ignored)
        else {
            panic!("the cookie is right")
        };
        assert_eq!(offered.settings, b"settings");
        let (accept, answerer_keys) = answerer.accept(&offered, &[9; NONCE]);
        let caller_keys = caller.receive(ms(4), &accept, &mut ignored).expect("agreed").expect("keys");
        let tags =
            |keys: &SessionKeys| [keys.caller_to_answerer.tag(&[b"x"]), keys.answerer_to_caller.tag(&[b"x"])];
        assert_eq!(tags(&caller_keys), tags(&answerer_keys));
        assert_ne!(tags(&caller_keys)[0], tags(&caller_keys)[1]);
        assert_eq!(ignored, Ignored::default());
    }

    #[test]
    fn a_message_without_answer_is_repeated() {
        let (mut caller, _) = sides();
        let first = caller.advance(ms(0)).expect("due");
        assert_eq!(caller.advance(ms(249)), None);
        assert_eq!(caller.advance(caller.due()), Some(first));
    }

    #[test]
    fn a_cookie_is_of_one_address_one_nonce_one_answerer_and_of_its_time() {
        let (mut caller, answerer) = sides();
        let mut ignored = Ignored::default();
        let offer = make_offer(&mut caller, &answerer, &mut ignored);
        let mut is_accepted = |answerer: &Answerer, from: &str, now| {
            let from = from.parse().expect("an address");
            matches!(answerer.receive(now, from, &offer, &mut ignored), AnswererAction::Offered(_))
        };
        assert!(is_accepted(&answerer, "192.0.2.1:5004", ms(29_999)));
        assert!(
            is_accepted(&answerer, "[::ffff:192.0.2.1]:5004", ms(59_999)),
            "the same on a socket of IPv6"
        );
        assert!(!is_accepted(&answerer, "192.0.2.1:5004", ms(60_000)));
        assert!(!is_accepted(&answerer, "192.0.2.1:5005", ms(3)));
        assert!(!is_accepted(&answerer, "192.0.2.2:5004", ms(3)));
        let key = PresharedKey::new(b"a key of 19 bytes !").expect("long enough");
        assert!(!is_accepted(&Answerer::new(key, &[3; NONCE]), "192.0.2.1:5004", ms(3)));
    }

    #[test]
    fn an_address_gets_no_more_bytes_than_came_from_it_before_it_is_proved() {
        let (mut caller, answerer) = sides();
        let mut ignored = Ignored::default();
        let key = PresharedKey::new(b"a key of 19 bytes !").expect("long enough").handshake();
        let offer = make_offer(&mut caller, &answerer, &mut ignored);
        let of_version = |version: u8, length: usize| {
            let mut bytes = Message::Offer([7; COOKIE], vec![1; length]).encode(&[1; NONCE], &key);
            bytes.truncate(bytes.len() - TAG);
            bytes[4] = version;
            bytes.drain(6 + NONCE..6 + NONCE + COOKIE);
            bytes.extend(key.tag(&[&bytes]));
            bytes
        };
        let mut datagrams = vec![Message::Hello.encode(&[9; NONCE], &key), offer];
        datagrams.extend((0..80).map(|length| of_version(VERSION + 1, length)));
        datagrams.extend(
            (0..80).map(|length| Message::Offer([7; COOKIE], vec![1; length]).encode(&[1; NONCE], &key)),
        );
        let (mut received, mut sent, mut replies) = (0, 0, 0);
        // replayed from another address, each many times
        let victim = "192.0.2.9:53".parse().expect("an address");
        for datagram in datagrams.iter().cycle().take(10 * datagrams.len()) {
            received += datagram.len();
            match answerer.receive(ms(5), victim, datagram, &mut ignored) {
                AnswererAction::Send(reply) | AnswererAction::Version(_, reply) => {
                    assert!(reply.len() <= datagram.len(), "{} for {}", reply.len(), datagram.len());
                    (sent, replies) = (sent + reply.len(), replies + 1);
                }
                AnswererAction::Offered(_) => panic!("the cookie is of another address"),
                AnswererAction::Ignore => {}
            }
        }
        assert!(sent <= received && replies > 1500, "{sent} of {received} in {replies}");
        // the shortest message of another version is shorter than its answer
        assert_eq!(ignored, Ignored { malformed: 10, ..Ignored::default() });
    }

    #[test]
    fn messages_under_another_key_are_ignored() {
        let (mut caller, answerer) = sides();
        let other_answerer = Answerer::new(PresharedKey::new(&[5; 16]).expect("long enough"), &[2; NONCE]);
        let mut ignored = Ignored::default();
        let hello = caller.advance(ms(0)).expect("due");
        assert_eq!(
            other_answerer.receive(ms(1), caller_address(), &hello, &mut ignored),
            AnswererAction::Ignore
        );
        assert_eq!(ignored, Ignored { forged: 1, ..Ignored::default() });
        let mut other_caller =
            Caller::new(PresharedKey::new(&[5; 16]).expect("long enough"), [1; NONCE], Vec::new())
                .expect("short");
        let AnswererAction::Send(retry) = answerer.receive(ms(1), caller_address(), &hello, &mut ignored)
        else {
            panic!("a hello is answered")
        };
        assert_eq!(other_caller.receive(ms(2), &retry, &mut ignored).map(|keys| keys.is_some()), Ok(false));
        assert_eq!(ignored.forged, 2);
    }

    #[test]
    fn answers_to_another_caller_are_ignored() {
        let (mut caller, answerer) = sides();
        let key = PresharedKey::new(b"a key of 19 bytes !").expect("long enough");
        let mut second = Caller::new(key, [8; NONCE], Vec::new()).expect("short");
        let mut ignored = Ignored::default();
        let hello = second.advance(ms(0)).expect("due");
        let AnswererAction::Send(retry) = answerer.receive(ms(1), caller_address(), &hello, &mut ignored)
        else {
            panic!("a hello is answered")
        };
        assert_eq!(caller.receive(ms(2), &retry, &mut ignored).map(|keys| keys.is_some()), Ok(false));
        assert_eq!(ignored.replayed, 1);
        assert_eq!(caller.cookie, None);
    }

    #[test]
    fn refusals_are_on_one_line() {
        let (mut caller, answerer) = sides();
        let mut ignored = Ignored::default();
        let offer = make_offer(&mut caller, &answerer, &mut ignored);
        let AnswererAction::Offered(offered) =
            answerer.receive(ms(3), caller_address(), &offer, &mut ignored)
        else {
            panic!("the cookie is right")
        };
        let refusal = answerer.refuse(&offered, &format!("no\nway {}", "ü".repeat(400)));
        let refused = caller.receive(ms(4), &refusal, &mut ignored);
        let Err(HandshakeError::Refused(reason)) = refused else { panic!("{refused:?}") };
        assert!(reason.starts_with("no way ü") && reason.len() <= MAX_REASON, "{reason}");
    }

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        let key = PresharedKey::new(&[5; 16]).expect("long enough");
        let caller = Caller::new(key, [1; NONCE], vec![0; MAX_SETTINGS + 1]);
        assert_eq!(caller.map(drop), Err(MAX_SETTINGS + 1));
    }
}
