//! A session between two endpoints over datagrams: a handshake, sealed datagrams, and the exchange of both sides'
//! records. Pure: it has no socket, no clock and no source of randomness; callers pass datagrams, times and nonces.
//!
//! ```text
//! caller                                            answerer
//!   | -- hello (nonce, padded) ----------------------> |   keeps no state
//!   | <------------------------- retry (cookie) ------ |   smaller than the hello
//!   | -- offer (nonce, cookie, settings) ------------> |   the cookie proves the caller's address
//!   | <------------- accept (nonce), or refuse ------- |
//!   | <========= sealed: RTP, RTCP, control =========> |
//! ```
//!
//! Handshake messages have a tag under a key that is derived from the pre-shared key. A sealed datagram is its payload,
//! a sequence number of 8 bytes and a tag of 16 ([`OVERHEAD`]). Its key is derived from the pre-shared key and both
//! nonces, one for each direction. Payloads are authenticated, but not encrypted, so that packet tools can read the
//! RTP. The first byte tells the kinds apart (as in RFC 7983): RTP and RTCP begin with version 2 (0x80 to 0xbf),
//! handshake messages with [`message::MAGIC`], control messages with a smaller byte.

use std::fmt;

pub mod control;
pub mod handshake;
pub mod keys;
pub mod message;
pub mod seal;
pub mod transfer;

/// Bytes of a tag: HMAC-SHA-256 cut to 128 bits, which RFC 2104 section 5 (at least half of the hash) and RFC 4868
/// allow.
pub const TAG: usize = 16;

/// Bytes that sealing adds to a payload: sequence number and tag.
pub const OVERHEAD: usize = 8 + TAG;

/// Counts of datagrams that were received and ignored: all that is kept of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ignored {
    /// Datagrams with a wrong tag: forged, damaged, or under another key.
    pub forged: u64,
    /// Datagrams that were received before, or are older than the replay window.
    pub replayed: u64,
    /// Datagrams longer than agreed on.
    pub oversized: u64,
    /// Datagrams that are no message, or none that is expected in this state.
    pub malformed: u64,
    /// Datagrams from another address than the peer's. The kernel drops them, uncounted, once the socket is connected;
    /// these were waiting then.
    pub strangers: u64,
}

impl Ignored {
    /// Sum of all counts.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.forged + self.replayed + self.oversized + self.malformed + self.strangers
    }
}

impl fmt::Display for Ignored {
    /// Writes the sum, and the counts by reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { forged, replayed, oversized, malformed, strangers } = self;
        write!(
            f,
            "{} datagrams were ignored: {forged} forged, {replayed} replayed, {oversized} oversized, {malformed} \
             malformed, {strangers} of strangers",
            self.total()
        )
    }
}
