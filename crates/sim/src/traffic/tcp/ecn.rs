//! Explicit congestion notification: negotiation, and echoes of marks (RFC 3168 section 6.1).
//!
//! A window does not fall below two segments: instead of halving a window of one segment and waiting for the
//! retransmission timer (RFC 3168 section 6.1.2), equation 4 of RFC 5681 holds, as in Linux.

use super::TcpSettings;
use tidegate_core::datagram::{Ecn, TcpBody};

/// The flags of an ECN-setup SYN and of an ECN-setup SYN-ACK (RFC 3168 section 6.1.1).
pub(super) const ECN_SETUP_SYN: u8 = TcpBody::ECE | TcpBody::CWR;
pub(super) const ECN_SETUP_SYN_ACK: u8 = TcpBody::ECE;

/// Whether the ECN flags are the `expected` ones, of an ECN-setup SYN or SYN-ACK.
pub(super) const fn is_ecn_setup(flags: u8, expected: u8) -> bool {
    flags & ECN_SETUP_SYN == expected
}

/// The sending end: codepoints of data, and responses to marks.
#[derive(Debug)]
pub(super) struct Marking {
    /// Codepoint of packets with new data once both ends have agreed.
    codepoint: Ecn,
    /// Whether retransmissions have the codepoint, too.
    always: bool,
    agreed: bool,
    /// Whether the window was reduced, and no packet with CWR has been sent yet.
    owes_cwr: bool,
    /// Position below which marks of packets have had a response.
    responded: u64,
}

impl Marking {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        Self {
            codepoint: settings.codepoint(),
            always: settings.variant.algorithm().scalable.is_some(),
            agreed: !settings.handshake,
            owes_cwr: false,
            responded: 0,
        }
    }

    /// The ECN flags of a SYN.
    pub(super) fn offer(&self) -> u8 {
        if self.codepoint.is_capable() { ECN_SETUP_SYN } else { 0 }
    }

    /// Takes in the flags of the answer to a SYN.
    pub(super) fn accept(&mut self, flags: u8) {
        self.agreed = is_ecn_setup(flags, ECN_SETUP_SYN_ACK);
    }

    /// Whether the receiver echoes marks.
    pub(super) fn is_on(&self) -> bool {
        self.agreed && self.codepoint.is_capable()
    }

    /// The ECN field and the ECN flags of a packet with data from `start` on. Retransmissions have no codepoint
    /// (RFC 3168 section 6.1.5; DCTCP's do, as in Linux), and one packet of new data has CWR after a reduction (section
    /// 6.1.2).
    #[inline]
    pub(super) fn of_data(&mut self, start: u64, again: bool) -> (Ecn, u8) {
        if !self.is_on() {
            return (Ecn::NotEct, 0);
        }
        if again {
            return (if self.always { self.codepoint } else { Ecn::NotEct }, 0);
        }
        if std::mem::take(&mut self.owes_cwr) {
            // until this packet has arrived the receiver goes on to echo the mark
            self.responded = self.responded.max(start + 1);
            return (self.codepoint, TcpBody::CWR);
        }
        (self.codepoint, 0)
    }

    /// Whether an echo in an acknowledgement of all data below `una` needs a response: once for a window of data.
    pub(super) fn needs_response(&self, una: u64) -> bool {
        !self.owes_cwr && una >= self.responded
    }

    /// Whether there was a response to marks of the window with the byte at `una`; then a loss in it needs none.
    pub(super) fn has_responded(&self, una: u64) -> bool {
        self.is_on() && una < self.responded
    }

    /// Takes note that the window was reduced, for any reason, with bytes up to `max` sent.
    pub(super) fn reduced(&mut self, max: u64) {
        if self.is_on() {
            self.owes_cwr = true;
            self.responded = max;
        }
    }
}

/// The receiving end: ECE in all acknowledgements from a marked packet until the sender's CWR (RFC 3168 section 6.1.3);
/// or, if exact, in those of marked packets (RFC 8257 section 3.2).
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

    /// Takes in a SYN with these flags, and returns the ECN flags of its answer.
    pub(super) fn opened(&mut self, flags: u8) -> u8 {
        self.agreed = self.willing && is_ecn_setup(flags, ECN_SETUP_SYN);
        self.marked = false;
        if self.agreed { ECN_SETUP_SYN_ACK } else { 0 }
    }

    /// Whether a packet with this field ends a run of marked or of unmarked packets. Then the packets before it are
    /// acknowledged separately, and the packet itself at once (RFC 8257 section 3.2).
    #[inline]
    pub(super) fn turns(&self, ecn: Ecn) -> bool {
        self.exact && self.agreed && self.marked != (ecn == Ecn::Ce)
    }

    /// Takes in the ECN field and flags of a packet with data.
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

    /// The ECN flags of an acknowledgement.
    #[inline]
    pub(super) fn flags(&self) -> u8 {
        if self.marked { TcpBody::ECE } else { 0 }
    }
}
