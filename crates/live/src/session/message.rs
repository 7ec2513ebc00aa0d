//! Encodes and decodes handshake messages.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | [`MAGIC`] |
//! | 1 | [`VERSION`] of the protocol |
//! | 1 | kind of message |
//! | 32 | the caller's nonce |
//! | any | body, by kind |
//! | 16 | tag under the handshake key, over all before it |
//!
//! Magic, version, nonce and tag, and the message with another version, have the same layout in every version of the
//! protocol, so that two sides with different versions can detect that.

use super::TAG;
use super::keys::{Key, NONCE, Nonce};

/// First bytes of handshake messages; no RTP, RTCP or control message begins with them.
pub const MAGIC: [u8; 4] = *b"tdgt";

/// Version of this protocol, which covers its messages and the exchanged records.
pub const VERSION: u8 = 2;

/// Bytes of the largest handshake message, which fits any path that carries IPv6 (RFC 8200 section 5, 1280 bytes).
pub const MAX_MESSAGE: usize = 1232;

/// Bytes of a cookie.
pub const COOKIE: usize = 16;

/// Bytes of padding in a hello, which make it larger than any answer to it.
const PADDING: usize = 64;

const HEADER: usize = MAGIC.len() + 2 + NONCE;

/// Largest number of bytes of settings in an offer.
pub const MAX_SETTINGS: usize = MAX_MESSAGE - HEADER - COOKIE - TAG;

/// Largest number of bytes of a reason in a refusal.
pub const MAX_REASON: usize = 400;

/// A handshake message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The caller's first message.
    Hello,
    /// The answerer's cookie, with which the caller proves that it receives at its address.
    Retry([u8; COOKIE]),
    /// The caller's cookie, and the settings of the session.
    Offer([u8; COOKIE], Vec<u8>),
    /// The answerer accepts, with its nonce.
    Accept(Nonce),
    /// The answerer refuses, with a reason.
    Refuse(String),
    /// The other side has this version of the protocol.
    OtherVersion(u8),
}

/// Reason why bytes are no valid handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The layout is wrong.
    Malformed,
    /// The tag is wrong.
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

    /// Encodes this message for the session of `nonce`.
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

    /// Decodes a message, and the caller's nonce of its session.
    ///
    /// # Errors
    /// If the bytes are no message, or the tag is wrong.
    pub fn decode(bytes: &[u8], key: &Key) -> Result<(Nonce, Self), DecodeError> {
        if bytes.len() > MAX_MESSAGE {
            return Err(DecodeError::Malformed);
        }
        let (tagged, tag) = bytes.split_last_chunk::<TAG>().ok_or(DecodeError::Malformed)?;
        let rest = tagged.strip_prefix(&MAGIC).ok_or(DecodeError::Malformed)?;
        let (&[version, kind], rest) = rest.split_first_chunk().ok_or(DecodeError::Malformed)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE>().ok_or(DecodeError::Malformed)?;
        if !key.verifies(tagged, tag) {
            return Err(DecodeError::Forged);
        }
        let message = match kind {
            6 => match body {
                &[version] => Some(Self::OtherVersion(version)),
                _ => None,
            },
            _ if version != VERSION => Some(Self::OtherVersion(version)),
            _ => Self::body(kind, body),
        };
        message.map(|message| (*nonce, message)).ok_or(DecodeError::Malformed)
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
                // the reason is printed in a terminal: it must not move the cursor
                let is_printable =
                    |reason: &str| reason.len() <= MAX_REASON && !reason.contains(char::is_control);
                is_printable(reason).then(|| Self::Refuse(reason.to_owned()))
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
            Message::Offer([2; COOKIE], vec![3; MAX_SETTINGS]),
            Message::Accept([4; NONCE]),
            Message::Refuse("no encoder: «ü»".to_owned()),
            Message::OtherVersion(9),
        ]
    }

    #[test]
    fn messages_are_their_bytes_and_others_are_refused() {
        let (key, wrong_key) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
        for message in all() {
            let bytes = message.encode(&[7; NONCE], &key);
            assert!(bytes.len() <= MAX_MESSAGE, "{message:?}: {} bytes", bytes.len());
            assert_eq!(Message::decode(&bytes, &key), Ok(([7; NONCE], message.clone())));
            assert_eq!(Message::decode(&bytes, &wrong_key), Err(DecodeError::Forged));
            for length in 0..bytes.len() {
                assert!(Message::decode(&bytes[..length], &key).is_err(), "{message:?} cut to {length}");
            }
            for index in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[index] ^= 0x10;
                assert!(Message::decode(&damaged, &key).is_err(), "{message:?} damaged at byte {index}");
            }
        }
    }

    #[test]
    fn answers_before_the_cookie_are_smaller_than_a_hello() {
        let key = Key::new(&[1; 32]);
        let size = |message: Message| message.encode(&[0; NONCE], &key).len();
        let hello = size(Message::Hello);
        assert!(size(Message::Retry([0; COOKIE])) < hello);
        assert!(size(Message::OtherVersion(3)) < hello);
    }

    #[test]
    fn another_version_is_reported() {
        let key = Key::new(&[1; 32]);
        let mut bytes = Message::Accept([4; NONCE]).encode(&[7; NONCE], &key);
        bytes.truncate(bytes.len() - TAG);
        bytes[4] = VERSION + 1;
        bytes.extend(key.tag(&[&bytes]));
        assert_eq!(Message::decode(&bytes, &key), Ok(([7; NONCE], Message::OtherVersion(VERSION + 1))));
    }

    #[test]
    fn reasons_that_would_move_a_cursor_are_refused() {
        let key = Key::new(&[1; 32]);
        let bytes = Message::Refuse("\u{1b}[2J".to_owned()).encode(&[7; NONCE], &key);
        assert_eq!(Message::decode(&bytes, &key), Err(DecodeError::Malformed));
    }
}
