//! Sessions of many members.

use serde::Deserialize;
use tidegate_core::{Rate, Span, Time};

/// An RTP session of any number of members; the packets of each go to all others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSpec {
    /// Its name; unique among sessions and flows.
    pub name: String,
    /// The session bandwidth, of which RTCP may use 5 %.
    pub bandwidth: Rate,
    /// Bytes of IP and UDP headers.
    pub overhead: u32,
    /// Its members.
    pub members: Vec<MemberSpec>,
}

/// One member of a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberSpec {
    /// Its name, unique in the session, and its CNAME.
    pub name: String,
    /// Its graph node.
    pub node: String,
    /// RTP profile of its RTCP.
    pub profile: ProfileSpec,
    /// The media it sends, if any.
    #[serde(default)]
    pub media: Option<MemberMedia>,
    /// Whether it counts as a sender though it sends no RTP.
    #[serde(default)]
    pub declared_sender: bool,
    /// Whether it reports losses.
    #[serde(default = "super::yes")]
    pub reports_losses: bool,
    /// Time at which it joins.
    #[serde(default)]
    pub join: Time,
    /// Time at which it leaves; the end of the run by default.
    #[serde(default)]
    pub leave: Option<Time>,
    /// Whether it leaves without a BYE.
    #[serde(default)]
    pub crashes: bool,
}

/// The RTP profile of a member's RTCP.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileSpec {
    /// RFC 3551.
    Avp {
        /// The minimum interval before its randomisation (RFC 3550 section 6.2).
        minimum: Span,
    },
    /// RFC 4585.
    Avpf {
        /// Feedback is delayed by up to l intervals (section 3.5.2).
        l: f64,
        /// Feedback is delayed by up to k RTT/2 members instead, where the RTT is known
        /// (draft-ietf-avt-rtcp-feedback-00).
        #[serde(default)]
        k: Option<f64>,
        /// Whether the interval of `l` is drawn for each feedback, instead of using the interval under way.
        #[serde(default)]
        redraw: bool,
        /// Feedback that cannot be sent within this time is discarded.
        max_feedback_delay: Span,
        /// The minimum time between full regular packets; zero: none.
        rr_interval: Span,
        /// Whether early packets are feedback alone (RFC 5506).
        #[serde(default)]
        reduced_size: bool,
    },
}

/// The media of a member.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberMedia {
    /// Packets of one size at a constant rate, both counted on the wire.
    Packets {
        /// Bytes of a packet.
        packet_size: u32,
        /// Their rate.
        rate: Rate,
    },
    /// Pictures with the same number of packets each, repaired on NEWPRED messages.
    Segments {
        /// Pictures a second.
        fps: f64,
        /// Packets of a picture.
        segments: u16,
        /// Their rate on the wire.
        rate: Rate,
    },
}
