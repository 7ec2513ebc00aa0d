//! What a run says about itself: a typed stream of facts, no log lines.

use crate::control::Decision;
use crate::ids::{FlowId, NodeId};
use crate::packet::{Kind, Packet};
use crate::units::{Rate, Size, Span, Time};
use crate::wire::rtcp::Contents;
use serde::{Deserialize, Serialize};
use std::any::Any;

/// Why a packet died. The discriminants are the codes in recorded tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The queue was full (drop-tail), or its manager decided so (AQM).
    Queue = 0,
    /// Lost on the link's medium, by its loss model.
    Loss = 1,
    /// Hit by byte errors.
    Corrupt = 2,
    /// The link was down or gone.
    Outage = 3,
}

impl Cause {
    /// All causes, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Queue, Self::Loss, Self::Corrupt, Self::Outage];

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Loss => "loss",
            Self::Corrupt => "corrupt",
            Self::Outage => "outage",
        }
    }
}

/// Which way a packet passes the interface of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// It has come in.
    In,
    /// It leaves.
    Out,
}

/// How much of a run is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Streaming statistics, constant memory.
    Summary,
    /// Those, and series in bins.
    #[default]
    Series,
    /// Everything, packet by packet.
    Packets,
}

/// How full a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets waiting or in service.
    pub packets: u32,
    /// Bytes waiting or in service.
    pub bytes: Size,
}

/// A media frame as it left the encoder.
///
/// Two halves make the story of a frame: this one, told by its sender at the time of capture, and the
/// [`FrameRecord`], told by its receiver when the frame's fate is known. Neither end could tell both
/// without knowledge that it does not have. They belong together by (flow, video, frame).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FrameSent {
    /// Whose frame.
    pub flow: FlowId,
    /// Whether it is a video frame (else audio).
    pub video: bool,
    /// Its running number in the stream.
    pub frame: u32,
    /// Encoded bytes.
    pub size: Size,
    /// Whether it can be decoded without earlier frames.
    pub key: bool,
}

/// What became of one media frame at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FrameRecord {
    /// Whose frame.
    pub flow: FlowId,
    /// Whether it is a video frame (else audio).
    pub video: bool,
    /// Its running number in the stream.
    pub frame: u32,
    /// When its last packet arrived, if all did.
    pub complete: Option<Time>,
    /// When it was shown, if it was.
    pub rendered: Option<Time>,
}

/// One RTCP packet (compound or not) put on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RtcpRecord {
    /// Whose session.
    pub flow: FlowId,
    /// True where it runs from the media receiver to the media sender.
    pub from_receiver: bool,
    /// Bytes on the wire, IP and UDP headers included.
    pub size: Size,
    /// Which types of RTCP packet are inside.
    pub contents: Contents,
    /// How long what it reports has waited, for event-driven feedback.
    pub waited: Span,
}

/// What became of a receiver's wish to report a loss (RFC 4585 section 3.5.2). The discriminants are the codes
/// in recorded tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Reporting {
    /// It went in an early packet.
    Early = 0,
    /// It went in a regular packet.
    Regular = 1,
    /// Another receiver had reported the same.
    Suppressed = 2,
    /// It could not have gone in time, and was not sent.
    NotAllowed = 3,
}

impl Reporting {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Early, Self::Regular, Self::Suppressed, Self::NotAllowed];

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Regular => "regular",
            Self::Suppressed => "suppressed",
            Self::NotAllowed => "not_allowed",
        }
    }

    /// Whether the loss was reported by this receiver.
    #[must_use]
    pub const fn is_sent(self) -> bool {
        matches!(self, Self::Early | Self::Regular)
    }
}

/// What a sender has found out about ECN on its path (RFC 6679 sections 7.2.1 and 7.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum EcnCheck {
    /// The codepoint arrives and is reported.
    Verified,
    /// The receiver does not report what it counts.
    Unreported,
    /// The codepoint is cleared on the way.
    Cleared,
    /// What bears the codepoint does not arrive.
    Dropped,
}

impl EcnCheck {
    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unreported => "unreported",
            Self::Cleared => "cleared",
            Self::Dropped => "dropped",
        }
    }
}

/// Which of the circuit breakers of RFC 8083 has tripped. The discriminants are their numbers there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Breaker {
    /// Media was sent, and no RTCP came back (section 4.1).
    RtcpTimeout = 1,
    /// Media was sent, and reports say that nothing of it has arrived (section 4.2).
    MediaTimeout = 2,
    /// More than ten times what TCP would get was sent (section 4.3).
    Congestion = 3,
    /// What arrives is of no use to anybody (section 4.4).
    Usability = 4,
}

impl Breaker {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::RtcpTimeout, Self::MediaTimeout, Self::Congestion, Self::Usability];

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RtcpTimeout => "RTCP timeout",
            Self::MediaTimeout => "media timeout",
            Self::Congestion => "congestion",
            Self::Usability => "media usability",
        }
    }
}

/// One lost packet, as one member of a session has seen and reported it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossRecord {
    /// The member that missed it.
    pub flow: FlowId,
    /// Whose packet it was.
    pub source: FlowId,
    /// Its RTP sequence number.
    pub sequence: u16,
    /// When it was missed.
    pub detected: Time,
    /// What became of the report.
    pub reporting: Reporting,
}

/// How a user of a radio network fared in one direction since this was told last. The names are those of any kind of
/// network; what they count is said by each kind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RadioRecord {
    /// The network.
    pub network: NodeId,
    /// The number of the user in it.
    pub user: u32,
    /// Whether this is the uplink.
    pub up: bool,
    /// The cell (or access point) that serves it.
    pub cell: u32,
    /// Bytes that arrived over the air, without the headers of the radio protocol.
    pub bytes: u64,
    /// Blocks sent for the first time: transport blocks of LTE.
    pub blocks: u32,
    /// How many of them had to be sent again.
    pub failed: u32,
    /// Their mean effective SINR in dB; not a number without any.
    pub sinr_db: f64,
    /// Mean of the index by which the rate was chosen: the reported CQI of LTE.
    pub rate_index: f64,
}

/// What a cell of a radio network sent or received since this was told last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellRecord {
    /// The network.
    pub network: NodeId,
    /// The number of the cell in it.
    pub cell: u32,
    /// Whether this is the uplink.
    pub up: bool,
    /// What of the air was in use: subbands of LTE, summed over TTIs.
    pub resources: u64,
    /// Bytes that arrived over the air, without the headers of the radio protocol.
    pub bytes: u64,
}

/// One media packet that did not arrive and was restored at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepairRecord {
    /// Whose packet.
    pub flow: FlowId,
    /// The frame that it belongs to.
    pub frame: u32,
    /// Its RTP sequence number.
    pub sequence: u16,
    /// By what: [`Kind::Retransmission`] or [`Kind::Repair`].
    pub by: Kind,
    /// Whether that was in time for playout.
    pub in_time: bool,
}

/// Takes the facts of a run. Every method has an empty body, so that a recorder names only what it keeps.
#[allow(unused_variables)]
pub trait Recorder: Send + Any {
    /// How much is kept: costly facts need not be told below their level.
    fn level(&self) -> Level {
        Level::Summary
    }
    /// A packet was put on the wire by its sender.
    fn sent(&mut self, now: Time, packet: &Packet) {}
    /// A copy of a packet was made by a multicast fan-out.
    fn copied(&mut self, now: Time, packet: &Packet) {}
    /// A packet reached its end.
    fn arrived(&mut self, now: Time, packet: &Packet) {}
    /// A media flow said goodbye: its sender sends no more.
    fn ended(&mut self, now: Time, flow: FlowId) {}
    /// A media flow's sender has found out whether its path carries ECN; from then on it sends accordingly.
    fn ecn_checked(&mut self, now: Time, flow: FlowId, check: EcnCheck) {}

    /// A circuit breaker of a media flow has tripped (RFC 8083): its sender stops, or would have to if its settings said so.
    fn tripped(&mut self, now: Time, flow: FlowId, breaker: Breaker, stops: bool) {}

    /// A packet died at `node`.
    fn dropped(&mut self, now: Time, packet: &Packet, node: NodeId, cause: Cause) {}
    /// The run is over, and a packet is still on its way, at `node`.
    fn under_way(&mut self, packet: &Packet, node: NodeId) {}
    /// `node` has marked a packet with congestion experienced (ECN) instead of dropping it.
    fn marked(&mut self, now: Time, packet: &Packet, node: NodeId) {}
    /// `node` has cleared the ECN field of a packet.
    fn bleached(&mut self, now: Time, packet: &Packet, node: NodeId) {}

    /// What a media flow's sender was told in one datagram of RTCP had so many things in it that cannot be: about a stream or
    /// packets that it never sent, marks on packets that were not ECN-capable, or bytes that are no RTCP.
    fn refused(&mut self, now: Time, flow: FlowId, count: u32) {}

    /// A packet passes the interface of the end that is `node`: it leaves there, or has come in. For a capture file,
    /// and told only if [`Recorder::captures`] says so when the run begins.
    fn captured(&mut self, now: Time, packet: &Packet, node: NodeId, passing: Passing) {}
    /// Whether [`Recorder::captured`] is worth calling.
    fn captures(&self) -> bool {
        false
    }
    /// Useful bytes reached the application: TCP in order, media payload without duplicates.
    fn goodput(&mut self, now: Time, flow: FlowId, bytes: Size) {}
    /// A media packet arrived too late for the playout buffer.
    fn late(&mut self, now: Time, flow: FlowId, packet: &Packet) {}
    /// A media packet that did not arrive was restored.
    fn repaired(&mut self, now: Time, repair: &RepairRecord) {}
    /// A media packet leaves its sender, where it has waited this long for its turn.
    fn paced(&mut self, now: Time, flow: FlowId, waited: Span) {}
    /// A media frame of so many packets was not sent at all, because too much waited at its sender.
    fn skipped(&mut self, now: Time, flow: FlowId, packets: u32, bytes: Size) {}
    /// A picture was not encoded, because the controller's congestion window was full or what waits at the sender would take
    /// too long to leave.
    fn left_out(&mut self, now: Time, flow: FlowId) {}
    /// A controller decided.
    fn decision(&mut self, now: Time, flow: FlowId, decision: &Decision) {}
    /// A named internal value of a controller or of TCP.
    fn internal(&mut self, now: Time, flow: FlowId, name: &str, value: f64) {}
    /// A media frame left its encoder at `now`.
    fn frame_sent(&mut self, now: Time, frame: &FrameSent) {}
    /// A media frame's fate is known at its receiver; told at most once a frame.
    fn frame(&mut self, now: Time, frame: &FrameRecord) {}
    /// The picture stood still for `length` (webrtc-stats freeze).
    fn freeze(&mut self, now: Time, flow: FlowId, length: Span) {}
    /// An RTCP packet was put on the wire.
    fn rtcp(&mut self, now: Time, rtcp: &RtcpRecord) {}
    /// A member of a session has reported a loss, or will not.
    fn loss(&mut self, now: Time, loss: &LossRecord) {}
    /// The first report of a loss has reached the sender of the packet, `delay` after it had sent it.
    fn loss_reported(&mut self, now: Time, source: FlowId, delay: Span) {}
    /// What a loss reported by `flow` had damaged is whole again, `delay` after it was detected.
    fn recovered(&mut self, now: Time, flow: FlowId, delay: Span) {}
    /// How a user of a radio network fared.
    fn radio(&mut self, now: Time, radio: &RadioRecord) {}
    /// What a cell of a radio network did.
    fn cell(&mut self, now: Time, cell: &CellRecord) {}
    /// What a link could carry on average from `from` on, once a bin, at its end.
    fn capacity(&mut self, from: Time, node: NodeId, rate: Rate) {}
    /// How full a queue is, once a bin.
    fn backlog(&mut self, now: Time, node: NodeId, backlog: Backlog) {}
}

/// A recorder that keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Recorder for Nothing {}
