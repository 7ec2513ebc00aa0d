//! Explicit congestion notification: what the two ends tell each other of marks (RFC 3168 section 6.1).
//!
//! The sender bounds nothing below two segments: where RFC 3168 section 6.1.2 halves a window of one and then waits for the
//! retransmission timer, equation 4 of RFC 5681 holds, as in Linux.

use super::TcpSettings;
use tidegate_core::datagram::{Ecn, TcpBody};

/// The flags by which a SYN offers ECN, and by which its answer accepts (RFC 3168 section 6.1.1).
pub(super) const OFFER: u8 = TcpBody::ECE | TcpBody::CWR;
pub(super) const ACCEPT: u8 = TcpBody::ECE;

/// Whether these are the flags of an offer, or of an acceptance.
pub(super) const fn asks(flags: u8, what: u8) -> bool {
    flags & OFFER == what
}

/// The sending end: what data are sent with, and what was done about marks.
#[derive(Debug)]
pub(super) struct Marking {
    /// What packets with new data bear once both ends have agreed.
    codepoint: Ecn,
    /// Whether what is sent again bears it, too.
    always: bool,
    agreed: bool,
    /// The window was reduced, and no packet has told so yet.
    owes_cwr: bool,
    /// Marks of packets below this have been answered for.
    answered: u64,
}

impl Marking {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        Self {
            codepoint: settings.codepoint(),
            always: settings.variant.algorithm().scalable.is_some(),
            agreed: !settings.handshake,
            owes_cwr: false,
            answered: 0,
        }
    }

    /// The flags of a SYN beside its own.
    pub(super) fn offer(&self) -> u8 {
        if self.codepoint.is_capable() { OFFER } else { 0 }
    }

    /// The answer to a SYN has come.
    pub(super) fn answer(&mut self, flags: u8) {
        self.agreed = asks(flags, ACCEPT);
    }

    /// Whether the receiver tells of marks.
    pub(super) fn is_on(&self) -> bool {
        self.agreed && self.codepoint.is_capable()
    }

    /// The ECN field and the further flags of a packet with data from `start` on. What is sent again bears no codepoint
    /// (RFC 3168 section 6.1.5; DCTCP's does, as in Linux), and new data tell of a reduction once (section 6.1.2).
    #[inline]
    pub(super) fn of_data(&mut self, start: u64, again: bool) -> (Ecn, u8) {
        if !self.is_on() {
            return (Ecn::NotEct, 0);
        }
        if again {
            return (if self.always { self.codepoint } else { Ecn::NotEct }, 0);
        }
        if std::mem::take(&mut self.owes_cwr) {
            // until this packet has arrived the receiver goes on to echo what was answered for
            self.answered = self.answered.max(start + 1);
            return (self.codepoint, TcpBody::CWR);
        }
        (self.codepoint, 0)
    }

    /// Whether an echo in an acknowledgement of all below `una` is to be answered: once for a window of data.
    pub(super) fn is_news(&self, una: u64) -> bool {
        !self.owes_cwr && una >= self.answered
    }

    /// Whether marks of the window to which the byte at `una` belongs were answered for, so that a loss in it is not to be.
    pub(super) fn has_answered(&self, una: u64) -> bool {
        self.is_on() && una < self.answered
    }

    /// The window was reduced, for whatever reason, with bytes up to `max` sent.
    pub(super) fn reduced(&mut self, max: u64) {
        if self.is_on() {
            self.owes_cwr = true;
            self.answered = max;
        }
    }
}

/// The receiving end: ECE in all acknowledgements from a marked packet until the sender says that it has reduced its window
/// (RFC 3168 section 6.1.3), or, exactly, in those of marked packets (RFC 8257 section 3.2).
#[derive(Debug)]
pub(super) struct Echo {
    exact: bool,
    willing: bool,
    agreed: bool,
    marked: bool,
}

impl Echo {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        let willing = settings.codepoint().is_capable();
        let exact = settings.variant.algorithm().scalable.is_some();
        Self { exact, willing, agreed: willing && !settings.handshake, marked: false }
    }

    /// Takes in a SYN with these flags, and says what its answer bears beside its own.
    pub(super) fn opened(&mut self, flags: u8) -> u8 {
        self.agreed = self.willing && asks(flags, OFFER);
        self.marked = false;
        if self.agreed { ACCEPT } else { 0 }
    }

    /// Whether a packet with this field ends a run of marked packets or of others: what is not acknowledged yet is told
    /// apart from it, and the packet is acknowledged at once (RFC 8257 section 3.2).
    #[inline]
    pub(super) fn turns(&self, ecn: Ecn) -> bool {
        self.exact && self.agreed && self.marked != (ecn == Ecn::Ce)
    }

    /// A packet with data has come.
    #[inline]
    pub(super) fn data(&mut self, ecn: Ecn, flags: u8) {
        if !self.agreed {
            return;
        }
        if self.exact {
            self.marked = ecn == Ecn::Ce;
            return;
        }
        if flags & TcpBody::CWR != 0 {
            self.marked = false;
        }
        self.marked |= ecn == Ecn::Ce;
    }

    /// The further flags of an acknowledgement.
    #[inline]
    pub(super) fn flags(&self) -> u8 {
        if self.marked { TcpBody::ECE } else { 0 }
    }
}
