//! Keys: the pre-shared key, and the keys that are derived from it.

use super::TAG;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a nonce, as many as of the hash: random nonces of this length are unique.
pub const NONCE: usize = 32;

/// A number that its side uses once.
pub type Nonce = [u8; NONCE];

/// A key for tags.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A key of these bytes.
    ///
    /// # Panics
    /// Never: HMAC takes a key of any length (RFC 2104 section 3).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(Hmac::new_from_slice(bytes).expect("HMAC takes a key of any length"))
    }

    /// The tag of the concatenated `parts`.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        let mut mac = self.0.clone();
        parts.iter().for_each(|part| mac.update(part));
        let mut tag = [0; TAG];
        tag.copy_from_slice(&mac.finalize().into_bytes()[..TAG]);
        tag
    }

    /// Whether `tag` is the tag of `bytes`, in constant time.
    #[must_use]
    pub fn verifies(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        let mut mac = self.0.clone();
        mac.update(bytes);
        mac.verify_truncated_left(tag).is_ok()
    }
}

/// The key that both sides have before a session.
#[derive(Clone)]
pub struct PresharedKey(Vec<u8>);

impl std::fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PresharedKey(..)")
    }
}

/// The keys of one session, by direction.
#[derive(Clone, Debug)]
pub struct SessionKeys {
    /// Key of datagrams from the caller to the answerer.
    pub caller_to_answerer: Key,
    /// Key of datagrams from the answerer to the caller.
    pub answerer_to_caller: Key,
}

impl PresharedKey {
    /// Minimum length in bytes: 128 bits, the usual requirement for secret keys (RFC 7525 section 4.1 has it for TLS).
    pub const MIN_LENGTH: usize = 16;

    /// A key of these bytes.
    ///
    /// # Errors
    /// With the number of bytes, if there are fewer than [`PresharedKey::MIN_LENGTH`].
    pub fn new(bytes: &[u8]) -> Result<Self, usize> {
        if bytes.len() < Self::MIN_LENGTH { Err(bytes.len()) } else { Ok(Self(bytes.to_vec())) }
    }

    fn derive(&self, salt: &[u8], info: &str) -> Key {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(Some(salt), &self.0)
            .expand(info.as_bytes(), &mut key)
            .expect("32 bytes are within HKDF's limit of 255 hash lengths (RFC 5869 section 2.3)");
        Key::new(&key)
    }

    /// The key of handshake messages. It is the same in each version of the protocol, so that two sides with different
    /// versions can report that to each other.
    #[must_use]
    pub fn handshake(&self) -> Key {
        self.derive(b"tidegate live", "handshake")
    }

    /// The keys of a session (RFC 5869). They depend on both nonces, so that neither side alone can repeat an old
    /// session.
    #[must_use]
    pub fn session(&self, caller: &Nonce, answerer: &Nonce) -> SessionKeys {
        let salt = [caller.as_slice(), answerer].concat();
        let key = |info| self.derive(&salt, info);
        SessionKeys {
            caller_to_answerer: key("caller to answerer"),
            answerer_to_caller: key("answerer to caller"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_rfc_4231() {
        // test case 1 and 2 of section 4, cut to 128 bits as in case 5
        let hex = |tag: [u8; TAG]| tag.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(Key::new(&[0x0b; 20]).tag(&[b"Hi There"])), "b0344c61d8db38535ca8afceaf0bf12b");
        let jefe = Key::new(b"Jefe").tag(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(hex(jefe), "5bdcc146bf60754e6a042426089575c7");
        assert_eq!(
            hex(Key::new(&[0x0c; 20]).tag(&[b"Test With Truncation"])),
            "a3b6167473100ee06e0c796c2955552b"
        );
    }

    #[test]
    fn each_nonce_and_direction_has_a_key_of_its_own() {
        let key = PresharedKey::new(&[7; 16]).expect("long enough");
        let second_key = PresharedKey::new(&[8; 16]).expect("long enough");
        let (a, b) = ([1; NONCE], [2; NONCE]);
        let tag = |key: &Key| key.tag(&[b"same"]);
        let mut tags = vec![tag(&key.handshake()), tag(&second_key.handshake())];
        for keys in
            [key.session(&a, &b), key.session(&b, &a), key.session(&a, &a), second_key.session(&a, &b)]
        {
            tags.extend([tag(&keys.caller_to_answerer), tag(&keys.answerer_to_caller)]);
        }
        let count = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), count);
        assert_eq!(
            tag(&key.session(&a, &b).caller_to_answerer),
            tag(&key.session(&a, &b).caller_to_answerer)
        );
    }

    #[test]
    fn short_keys_are_refused_and_none_is_shown() {
        assert_eq!(PresharedKey::new(&[1; 15]).map(drop), Err(15));
        let key = PresharedKey::new(b"sixteen bytes ..").expect("long enough");
        assert_eq!(format!("{key:?} {:?}", key.handshake()), "PresharedKey(..) Key(..)");
    }
}
