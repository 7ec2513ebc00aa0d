//! Handshake messages as bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | [`MAGIC`] |
//! | 1 | [`VERSION`] of the protocol |
//! | 1 | kind of message |
//! | 32 | the caller's nonce |
//! | any | what the kind has |
//! | 16 | tag under the handshake key, over all before it |
//!
//! Magic, version, nonce and tag, and the refusal with its version, are where they are in every version, so that two
//! sides of different versions find that out.

use super::TAG;
use super::keys::{Key, NONCE, Nonce};

/// How handshake messages begin: no RTP or RTCP does, nor a control message.
pub const MAGIC: [u8; 4] = *b"tdgt";

/// The version of this protocol, of its messages and of the records that are exchanged.
pub const VERSION: u8 = 1;

/// Bytes of the largest handshake message: it fits in any path that carries IPv6 (RFC 8200 section 5, 1280 bytes).
pub const LARGEST: usize = 1232;

/// Bytes of a cookie.
pub const COOKIE: usize = 16;

/// Bytes of padding in a hello, which make it larger than what may be answered.
const PADDING: usize = 64;

const HEADER: usize = MAGIC.len() + 2 + NONCE;

/// The most bytes of settings that fit into an offer.
pub const MOST_SETTINGS: usize = LARGEST - HEADER - COOKIE - TAG;

/// The most bytes of a reason that fit into a refusal.
pub const MOST_REASON: usize = 400;

/// A handshake message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The caller would like to speak.
    Hello,
    /// The answerer asks whether the caller hears at its address.
    Retry([u8; COOKIE]),
    /// The caller brings the cookie, and says how the session is to be.
    Offer([u8; COOKIE], Vec<u8>),
    /// The answerer agrees; its nonce.
    Accept(Nonce),
    /// The answerer does not, and says why.
    Refuse(String),
    /// The other side speaks this version.
    OtherVersion(u8),
}

/// What is wrong with bytes that should be a handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// They are none.
    Malformed,
    /// Their tag is wrong.
    Forged,
}

impl Message {
    const fn kind(&self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Retry(_) => 2,
            Self::Offer(..) => 3,
            Self::Accept(_) => 4,
            Self::Refuse(_) => 5,
            Self::OtherVersion(_) => 6,
        }
    }

    /// The bytes of this message about the session of `nonce`.
    #[must_use]
    pub fn encode(&self, nonce: &Nonce, key: &Key) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, self.kind()]);
        bytes.extend(nonce);
        match self {
            Self::Hello => bytes.extend([0; PADDING]),
            Self::Retry(cookie) => bytes.extend(cookie),
            Self::Offer(cookie, settings) => {
                bytes.extend(cookie);
                bytes.extend(settings);
            }
            Self::Accept(nonce) => bytes.extend(nonce),
            Self::Refuse(reason) => bytes.extend(reason.as_bytes()),
            Self::OtherVersion(version) => bytes.push(*version),
        }
        let tag = key.tag(&[&bytes]);
        bytes.extend(tag);
        bytes
    }

    /// Reads the bytes of a message, and about which session it is.
    ///
    /// # Errors
    /// When they are none, or their tag is wrong.
    pub fn decode(bytes: &[u8], key: &Key) -> Result<(Nonce, Self), Unreadable> {
        if bytes.len() > LARGEST {
            return Err(Unreadable::Malformed);
        }
        let (tagged, tag) = bytes.split_last_chunk::<TAG>().ok_or(Unreadable::Malformed)?;
        let rest = tagged.strip_prefix(&MAGIC).ok_or(Unreadable::Malformed)?;
        let (&[version, kind], rest) = rest.split_first_chunk().ok_or(Unreadable::Malformed)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE>().ok_or(Unreadable::Malformed)?;
        if !key.verifies(tagged, tag) {
            return Err(Unreadable::Forged);
        }
        let message = match kind {
            6 => match body {
                &[version] => Some(Self::OtherVersion(version)),
                _ => None,
            },
            _ if version != VERSION => Some(Self::OtherVersion(version)),
            _ => Self::body(kind, body),
        };
        message.map(|message| (*nonce, message)).ok_or(Unreadable::Malformed)
    }

    fn body(kind: u8, body: &[u8]) -> Option<Self> {
        match kind {
            1 => (body.len() >= PADDING).then_some(Self::Hello),
            2 => body.try_into().ok().map(Self::Retry),
            3 => {
                let (cookie, settings) = body.split_first_chunk()?;
                Some(Self::Offer(*cookie, settings.to_vec()))
            }
            4 => body.try_into().ok().map(Self::Accept),
            5 => {
                let reason = std::str::from_utf8(body).ok()?;
                // it is shown to a person: nothing that moves the cursor
                let plain = |reason: &str| reason.len() <= MOST_REASON && !reason.contains(char::is_control);
                plain(reason).then(|| Self::Refuse(reason.to_owned()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Message> {
        vec![
            Message::Hello,
            Message::Retry([1; COOKIE]),
            Message::Offer([2; COOKIE], vec![3; MOST_SETTINGS]),
            Message::Accept([4; NONCE]),
            Message::Refuse("no encoder: «ü»".to_owned()),
            Message::OtherVersion(9),
        ]
    }

    #[test]
    fn messages_are_their_bytes_and_others_are_refused() {
        let (key, other) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
        for message in all() {
            let bytes = message.encode(&[7; NONCE], &key);
            assert!(bytes.len() <= LARGEST, "{message:?}: {} bytes", bytes.len());
            assert_eq!(Message::decode(&bytes, &key), Ok(([7; NONCE], message.clone())));
            assert_eq!(Message::decode(&bytes, &other), Err(Unreadable::Forged));
            for length in 0..bytes.len() {
                assert!(Message::decode(&bytes[..length], &key).is_err(), "{message:?} cut to {length}");
            }
            for at in 0..bytes.len() {
                let mut spoiled = bytes.clone();
                spoiled[at] ^= 0x10;
                assert!(Message::decode(&spoiled, &key).is_err(), "{message:?} spoiled at {at}");
            }
        }
    }

    #[test]
    fn what_is_answered_before_the_cookie_is_smaller_than_a_hello() {
        let key = Key::new(&[1; 32]);
        let size = |message: Message| message.encode(&[0; NONCE], &key).len();
        let hello = size(Message::Hello);
        assert!(size(Message::Retry([0; COOKIE])) < hello);
        assert!(size(Message::OtherVersion(3)) < hello);
    }

    #[test]
    fn another_version_is_told() {
        let key = Key::new(&[1; 32]);
        let mut bytes = Message::Accept([4; NONCE]).encode(&[7; NONCE], &key);
        bytes.truncate(bytes.len() - TAG);
        bytes[4] = 2;
        bytes.extend(key.tag(&[&bytes]));
        assert_eq!(Message::decode(&bytes, &key), Ok(([7; NONCE], Message::OtherVersion(2))));
    }

    #[test]
    fn reasons_that_would_move_a_cursor_are_refused() {
        let key = Key::new(&[1; 32]);
        let bytes = Message::Refuse("\u{1b}[2J".to_owned()).encode(&[7; NONCE], &key);
        assert_eq!(Message::decode(&bytes, &key), Err(Unreadable::Malformed));
    }
}
