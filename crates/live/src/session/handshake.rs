//! The handshake, of both sides, as state machines: datagrams and times go in, datagrams and an outcome come out.

use super::Ignored;
use super::keys::{Key, Nonce, PresharedKey, SessionKeys};
use super::message::{COOKIE, MOST_REASON, MOST_SETTINGS, Message, Unreadable, VERSION};
use std::net::{IpAddr, SocketAddr};
use tidegate_core::{Span, Time};

/// A caller says again what was not answered after this long.
const AGAIN: Span = Span::from_millis(250);

/// A cookie is taken for this long, and up to twice as long.
const COOKIE_LIFE: Span = Span::from_secs(30);

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The other side speaks this version.
    Version(u8),
    /// The other side does not want to.
    Refused(String),
}

fn read(bytes: &[u8], key: &Key, ignored: &mut Ignored) -> Option<(Nonce, Message)> {
    match Message::decode(bytes, key) {
        Ok(read) => Some(read),
        Err(Unreadable::Forged) => {
            ignored.forged += 1;
            None
        }
        Err(Unreadable::Malformed) => {
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
    /// With the number of bytes, when there are more than [`MOST_SETTINGS`].
    pub fn new(key: PresharedKey, nonce: Nonce, settings: Vec<u8>) -> Result<Self, usize> {
        if settings.len() > MOST_SETTINGS {
            return Err(settings.len());
        }
        Ok(Self { handshake: key.handshake(), key, nonce, settings, cookie: None, due: Time::ZERO })
    }

    /// When it has something to say next, if nothing is received before.
    #[must_use]
    pub const fn due(&self) -> Time {
        self.due
    }

    /// What it says at `now`, if something is due.
    pub fn advance(&mut self, now: Time) -> Option<Vec<u8>> {
        if now < self.due {
            return None;
        }
        self.due = now + AGAIN;
        let message = match self.cookie {
            None => Message::Hello,
            Some(cookie) => Message::Offer(cookie, self.settings.clone()),
        };
        Some(message.encode(&self.nonce, &self.handshake))
    }

    /// Takes a datagram in; gives the session's keys when the other side has agreed.
    ///
    /// # Errors
    /// When it has refused, or speaks another version.
    pub fn receive(
        &mut self,
        now: Time,
        bytes: &[u8],
        ignored: &mut Ignored,
    ) -> Result<Option<SessionKeys>, Failed> {
        let Some((nonce, message)) = read(bytes, &self.handshake, ignored) else { return Ok(None) };
        if nonce != self.nonce {
            ignored.replayed += 1;
            return Ok(None);
        }
        match message {
            Message::Retry(cookie) => {
                // a new cookie replaces one that has grown old
                if self.cookie.replace(cookie) != Some(cookie) {
                    self.due = now;
                }
                Ok(None)
            }
            Message::Accept(answerer) => Ok(Some(self.key.session(&self.nonce, &answerer))),
            Message::Refuse(reason) => Err(Failed::Refused(reason)),
            Message::OtherVersion(version) => Err(Failed::Version(version)),
            Message::Hello | Message::Offer(..) => {
                ignored.malformed += 1;
                Ok(None)
            }
        }
    }
}

/// What an answerer makes of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: it is ignored, and counted.
    Nothing,
    /// To be sent to where the datagram came from.
    Send(Vec<u8>),
    /// An offer from an address that has proved that it hears: [`Answerer::accept`] or [`Answerer::refuse`] it.
    Offered(Offered),
    /// A caller of another version, and what is to be sent to it.
    Version(u8, Vec<u8>),
}

/// An offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// The caller's nonce.
    pub nonce: Nonce,
    /// The settings that it offers.
    pub settings: Vec<u8>,
}

/// The side that is called. It keeps nothing of a caller until that has brought a cookie back.
#[derive(Debug)]
pub struct Answerer {
    key: PresharedKey,
    handshake: Key,
    cookies: Key,
}

impl Answerer {
    /// An answerer whose cookies depend on `secret`, which nobody else knows and no other answerer has.
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

    /// Takes a datagram in that came from `from`.
    pub fn receive(&self, now: Time, from: SocketAddr, bytes: &[u8], ignored: &mut Ignored) -> Answer {
        let Some((nonce, message)) = read(bytes, &self.handshake, ignored) else { return Answer::Nothing };
        let slot = now.as_nanos() / COOKIE_LIFE.as_nanos();
        let answer = |message: Message| Answer::Send(message.encode(&nonce, &self.handshake));
        match message {
            Message::Hello => answer(Message::Retry(self.cookie(from, &nonce, slot))),
            Message::Offer(cookie, settings) => {
                if [slot, slot - 1].iter().any(|&slot| self.cookie(from, &nonce, slot) == cookie) {
                    return Answer::Offered(Offered { nonce, settings });
                }
                // an old one, or one that another answerer gave: the caller may have a new one
                answer(Message::Retry(self.cookie(from, &nonce, slot)))
            }
            Message::OtherVersion(version) if version != VERSION => {
                let told = Message::OtherVersion(VERSION).encode(&nonce, &self.handshake);
                Answer::Version(version, told)
            }
            _ => {
                ignored.malformed += 1;
                Answer::Nothing
            }
        }
    }

    /// Agrees to an offer: what is to be sent, and the keys. `nonce` is used once; for an offer that comes again it is the
    /// same.
    #[must_use]
    pub fn accept(&self, offered: &Offered, nonce: &Nonce) -> (Vec<u8>, SessionKeys) {
        let told = Message::Accept(*nonce).encode(&offered.nonce, &self.handshake);
        (told, self.key.session(&offered.nonce, nonce))
    }

    /// Refuses an offer: what is to be sent. Of `reason` as much is told as fits, on one line.
    #[must_use]
    pub fn refuse(&self, offered: &Offered, reason: &str) -> Vec<u8> {
        let mut told = String::new();
        for letter in reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter }) {
            if told.len() + letter.len_utf8() > MOST_REASON {
                break;
            }
            told.push(letter);
        }
        Message::Refuse(told).encode(&offered.nonce, &self.handshake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::keys::NONCE;

    fn sides() -> (Caller, Answerer) {
        let key = PresharedKey::new(b"a key of 19 bytes !").expect("long enough");
        let caller = Caller::new(key.clone(), [1; NONCE], b"settings".to_vec()).expect("they fit");
        (caller, Answerer::new(key, &[2; NONCE]))
    }

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn here() -> SocketAddr {
        "192.0.2.1:5004".parse().expect("an address")
    }

    /// The offer that a caller makes after a retry.
    fn offered(caller: &mut Caller, answerer: &Answerer, ignored: &mut Ignored) -> Vec<u8> {
        let hello = caller.advance(at(0)).expect("it begins");
        let Answer::Send(retry) = answerer.receive(at(1), here(), &hello, ignored) else {
            panic!("a hello is answered")
        };
        assert!(retry.len() < hello.len(), "nothing larger than what came");
        assert_eq!(caller.receive(at(2), &retry, ignored).map(|keys| keys.is_some()), Ok(false));
        caller.advance(at(2)).expect("at once")
    }

    #[test]
    fn two_sides_agree() {
        let (mut caller, answerer) = sides();
        let mut ignored = Ignored::default();
        let offer = offered(&mut caller, &answerer, &mut ignored);
        let Answer::Offered(offered) = answerer.receive(at(3), here(), &offer, &mut ignored) else {
            panic!("the cookie is right")
        };
        assert_eq!(offered.settings, b"settings");
        let (accept, theirs) = answerer.accept(&offered, &[9; NONCE]);
        let ours = caller.receive(at(4), &accept, &mut ignored).expect("agreed").expect("keys");
        assert_eq!(ours.there.tag(&[b"x"]), theirs.there.tag(&[b"x"]));
        assert_eq!(ours.back.tag(&[b"x"]), theirs.back.tag(&[b"x"]));
        assert_ne!(ours.there.tag(&[b"x"]), ours.back.tag(&[b"x"]));
        assert_eq!(ignored, Ignored::default());
    }

    #[test]
    fn what_is_not_answered_is_said_again() {
        let (mut caller, _) = sides();
        let first = caller.advance(at(0)).expect("due");
        assert_eq!(caller.advance(at(249)), None);
        assert_eq!(caller.advance(caller.due()), Some(first));
    }

    #[test]
    fn a_cookie_is_of_one_address_one_nonce_one_answerer_and_of_its_time() {
        let (mut caller, answerer) = sides();
        let mut ignored = Ignored::default();
        let offer = offered(&mut caller, &answerer, &mut ignored);
        let mut taken = |answerer: &Answerer, from: &str, now| {
            let from = from.parse().expect("an address");
            matches!(answerer.receive(now, from, &offer, &mut ignored), Answer::Offered(_))
        };
        assert!(taken(&answerer, "192.0.2.1:5004", at(29_999)));
        assert!(taken(&answerer, "[::ffff:192.0.2.1]:5004", at(59_999)), "the same on a socket of IPv6");
        assert!(!taken(&answerer, "192.0.2.1:5004", at(60_000)));
        assert!(!taken(&answerer, "192.0.2.1:5005", at(3)));
        assert!(!taken(&answerer, "192.0.2.2:5004", at(3)));
        let key = PresharedKey::new(b"a key of 19 bytes !").expect("long enough");
        assert!(!taken(&Answerer::new(key, &[3; NONCE]), "192.0.2.1:5004", at(3)));
    }

    #[test]
    fn another_key_hears_nothing_and_says_nothing() {
        let (mut caller, answerer) = sides();
        let stranger = Answerer::new(PresharedKey::new(&[5; 16]).expect("long enough"), &[2; NONCE]);
        let mut ignored = Ignored::default();
        let hello = caller.advance(at(0)).expect("due");
        assert_eq!(stranger.receive(at(1), here(), &hello, &mut ignored), Answer::Nothing);
        assert_eq!(ignored, Ignored { forged: 1, ..Ignored::default() });
        let mut other =
            Caller::new(PresharedKey::new(&[5; 16]).expect("long enough"), [1; NONCE], Vec::new())
                .expect("short");
        let Answer::Send(retry) = answerer.receive(at(1), here(), &hello, &mut ignored) else {
            panic!("a hello is answered")
        };
        assert_eq!(other.receive(at(2), &retry, &mut ignored).map(|keys| keys.is_some()), Ok(false));
        assert_eq!(ignored.forged, 2);
    }

    #[test]
    fn answers_to_another_caller_are_ignored() {
        let (mut caller, answerer) = sides();
        let key = PresharedKey::new(b"a key of 19 bytes !").expect("long enough");
        let mut second = Caller::new(key, [8; NONCE], Vec::new()).expect("short");
        let mut ignored = Ignored::default();
        let hello = second.advance(at(0)).expect("due");
        let Answer::Send(retry) = answerer.receive(at(1), here(), &hello, &mut ignored) else {
            panic!("a hello is answered")
        };
        assert_eq!(caller.receive(at(2), &retry, &mut ignored).map(|keys| keys.is_some()), Ok(false));
        assert_eq!(ignored.replayed, 1);
        assert_eq!(caller.cookie, None);
    }

    #[test]
    fn refusals_are_told_on_one_line() {
        let (mut caller, answerer) = sides();
        let mut ignored = Ignored::default();
        let offer = offered(&mut caller, &answerer, &mut ignored);
        let Answer::Offered(offered) = answerer.receive(at(3), here(), &offer, &mut ignored) else {
            panic!("the cookie is right")
        };
        let told = answerer.refuse(&offered, &format!("no\nway {}", "ü".repeat(400)));
        let refused = caller.receive(at(4), &told, &mut ignored);
        let Err(Failed::Refused(reason)) = refused else { panic!("{refused:?}") };
        assert!(reason.starts_with("no way ü") && reason.len() <= MOST_REASON, "{reason}");
    }

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        let key = PresharedKey::new(&[5; 16]).expect("long enough");
        let made = Caller::new(key, [1; NONCE], vec![0; MOST_SETTINGS + 1]);
        assert_eq!(made.map(drop), Err(MOST_SETTINGS + 1));
    }
}
