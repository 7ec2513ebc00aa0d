//! What a controller needs of its session.

use crate::datagram::Ecn;

/// The feedback without which a controller cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FeedbackKind {
    /// None at all.
    Nothing,
    /// Arrival times of single packets (transport-wide feedback, RFC 8888).
    #[default]
    PerPacket,
    /// Receiver reports (RFC 3550).
    ReceiverReports,
    /// Messages of its own receiver half.
    OwnMessages,
}

impl FeedbackKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::PerPacket, Self::ReceiverReports, Self::OwnMessages];

    /// The name used in tables and by Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::PerPacket => "per-packet",
            Self::ReceiverReports => "receiver-reports",
            Self::OwnMessages => "own",
        }
    }
}

/// The ECN codepoint that packets are sent with. CE is not among them: only the network sets it (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnUse {
    /// Not-ECT: routers drop where they would mark.
    #[default]
    Off,
    /// ECT(0): a mark is answered as a loss is (RFC 3168 section 5; for RTP, RFC 6679).
    Ect0,
    /// ECT(1): marks are frequent and answered in proportion (RFC 9331 section 4).
    Ect1,
}

impl EcnUse {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Ect0, Self::Ect1];

    /// The name used in scenarios, in tables and by Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ect0 => "ect0",
            Self::Ect1 => "ect1",
        }
    }

    /// The ECN field that packets are sent with.
    #[must_use]
    pub const fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            Self::Ect0 => Ecn::Ect0,
            Self::Ect1 => Ecn::Ect1,
        }
    }
}

/// Which bytes a controller counts: in its rates and its window, and in the sizes that it is told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counts {
    /// RTP packets: payload, header and extensions, without IP and UDP.
    #[default]
    Rtp,
    /// IP packets: what the network carries (libwebrtc since 2020: `AddPacket`'s `overhead_bytes` and the pacer's
    /// `SetIncludeOverhead`).
    Ip,
}

impl Counts {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Rtp, Self::Ip];

    /// The name used in tables and by Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rtp => "rtp",
            Self::Ip => "ip",
        }
    }
}

/// When the receiver is to report on packets, where nobody says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReportRule {
    /// At the intervals of libwebrtc's receiver.
    #[default]
    Usual,
    /// With the last packet of each frame, after 16 packets, and 40 ms apart at most
    /// (draft-ietf-ccwg-rfc8298bis-screamv2, section "Receiver Requirements on Feedback Intensity").
    Frame,
}

impl ReportRule {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Usual, Self::Frame];

    /// The name used in scenarios, in tables and by Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Frame => "frame",
        }
    }
}

/// What a controller needs of its session. A scenario that leaves the choice to it (`auto`) goes by this.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// What it works from.
    pub feedback: FeedbackKind,
    /// How its packets are to be sent.
    pub ecn: EcnUse,
    /// Which bytes its rates and sizes count.
    pub counts: Counts,
    /// When it is to be told.
    pub interval: ReportRule,
}

impl Needs {
    /// This feedback at the usual times, no ECN, and rates of RTP packets.
    #[must_use]
    pub const fn feedback(feedback: FeedbackKind) -> Self {
        Self { feedback, ecn: EcnUse::Off, counts: Counts::Rtp, interval: ReportRule::Usual }
    }
}
