//! A session between two of our endpoints over datagrams: a handshake, sealed datagrams, and the exchange of what both
//! sides have recorded. Pure: no socket, no clock, no source of randomness; these are handed in.
//!
//! ```text
//! caller                                            answerer
//!   | -- hello (nonce, padded) ----------------------> |   nothing is kept
//!   | <------------------------- retry (cookie) ------ |   smaller than the hello
//!   | -- offer (nonce, cookie, settings) ------------> |   an address that has proved that it hears
//!   | <------------- accept (nonce), or refuse ------- |
//!   | <========= sealed: RTP, RTCP, control =========> |
//! ```
//!
//! Handshake messages bear a tag under a key that is derived from the pre-shared one; sealed datagrams are what they
//! carry, a sequence number of 8 bytes and a tag of 16 ([`OVERHEAD`]), under keys for each direction that are derived from
//! the pre-shared one and both nonces. What is carried stays readable, as RTP is, for tools that look at packets:
//! datagrams are authenticated, not secret. The first byte tells them apart (as RFC 7983 does): RTP and RTCP begin with
//! version 2 (0x80 to 0xbf), handshake messages with [`message::MAGIC`], control with less.

pub mod control;
pub mod handshake;
pub mod keys;
pub mod message;
pub mod seal;
pub mod transfer;

/// Bytes of a tag: HMAC-SHA-256 cut to 128 bits, which RFC 2104 section 5 (at least half of the hash) and RFC 4868 allow.
pub const TAG: usize = 16;

/// Bytes that a sealed datagram has beside what it carries: sequence number and tag.
pub const OVERHEAD: usize = 8 + TAG;

/// What came from the network and was ignored, and what of one's own did not leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ignored {
    /// Whose tag is wrong: forged, damaged, or under another key.
    pub forged: u64,
    /// That have come before, or are older than the replay window.
    pub replayed: u64,
    /// Longer than was agreed on.
    pub oversized: u64,
    /// That are no message at all, or none that fits here.
    pub malformed: u64,
    /// That came from another address than the peer's.
    pub strangers: u64,
}

impl Ignored {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.forged + self.replayed + self.oversized + self.malformed + self.strangers
    }
}
