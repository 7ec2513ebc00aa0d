//! Needs of a controller in its session.

use crate::datagram::Ecn;

/// Feedback without which a controller cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FeedbackKind {
    /// No feedback.
    None,
    /// Arrival times of single packets (transport-wide feedback, RFC 8888).
    #[default]
    PerPacket,
    /// Receiver reports (RFC 3550).
    ReceiverReports,
    /// Messages of the scheme's receiver half.
    OwnMessages,
}

impl FeedbackKind {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::None, Self::PerPacket, Self::ReceiverReports, Self::OwnMessages];

    /// Name in tables and in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PerPacket => "per-packet",
            Self::ReceiverReports => "receiver-reports",
            Self::OwnMessages => "own",
        }
    }
}

/// ECN codepoint of sent packets. CE is not among them, because only the network sets it (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnUse {
    /// Not-ECT: routers drop where they would mark.
    #[default]
    Off,
    /// ECT(0): a mark has the same response as a loss (RFC 3168 section 5; for RTP, RFC 6679).
    Ect0,
    /// ECT(1): marks are frequent, with a proportional response (RFC 9331 section 4).
    Ect1,
}

impl EcnUse {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Off, Self::Ect0, Self::Ect1];

    /// Name in scenarios, in tables and in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ect0 => "ect0",
            Self::Ect1 => "ect1",
        }
    }

    /// ECN field of sent packets.
    #[must_use]
    pub const fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            Self::Ect0 => Ecn::Ect0,
            Self::Ect1 => Ecn::Ect1,
        }
    }
}

/// Bytes that a controller counts in its rates, its window and the sizes of its input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counts {
    /// RTP packets: payload, header and extensions, without IP and UDP.
    #[default]
    Rtp,
    /// IP packets, as the network carries them (libwebrtc since 2020: `AddPacket`'s `overhead_bytes` and the pacer's
    /// `SetIncludeOverhead`).
    Ip,
}

impl Counts {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Rtp, Self::Ip];

    /// Name in tables and in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rtp => "rtp",
            Self::Ip => "ip",
        }
    }
}

/// Default times of the receiver's reports on packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReportRule {
    /// At the intervals of libwebrtc's receiver.
    #[default]
    Usual,
    /// With the last packet of each frame, after 16 packets, and at most 40 ms apart
    /// (draft-ietf-ccwg-rfc8298bis-screamv2, section "Receiver Requirements on Feedback Intensity").
    Frame,
}

impl ReportRule {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Usual, Self::Frame];

    /// Name in scenarios, in tables and in Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Frame => "frame",
        }
    }
}

/// Needs of a controller in its session. A scenario that leaves the choice to the controller (`auto`) uses them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Feedback that it needs.
    pub feedback: FeedbackKind,
    /// ECN codepoint of its packets.
    pub ecn: EcnUse,
    /// Bytes that its rates and sizes count.
    pub counts: Counts,
    /// Times of reports.
    pub interval: ReportRule,
}

impl Needs {
    /// Creates needs of a kind of feedback at the usual times, without ECN, and with rates of RTP packets.
    #[must_use]
    pub const fn feedback(feedback: FeedbackKind) -> Self {
        Self { feedback, ecn: EcnUse::Off, counts: Counts::Rtp, interval: ReportRule::Usual }
    }
}
