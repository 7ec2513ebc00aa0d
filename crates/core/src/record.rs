//! Record of a run: a typed stream of facts, no log lines.

use crate::control::Decision;
use crate::ids::{FlowId, NodeId};
use crate::packet::{Kind, Packet};
use crate::units::{Rate, Size, Span, Time};
use crate::wire::rtcp::Contents;
use serde::{Deserialize, Serialize};
use std::any::Any;

/// Cause of a packet's drop. The discriminants are the codes in recorded tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The queue was full (drop-tail), or its manager decided so (AQM).
    Queue = 0,
    /// Lost on the link's medium, by its loss model.
    Loss = 1,
    /// Corrupted by byte errors.
    Corrupt = 2,
    /// The link was down or gone.
    Outage = 3,
    /// It was larger than the link's MTU.
    TooBig = 4,
}

impl Cause {
    /// All causes, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::Queue, Self::Loss, Self::Corrupt, Self::Outage, Self::TooBig];

    /// Name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Loss => "loss",
            Self::Corrupt => "corrupt",
            Self::Outage => "outage",
            Self::TooBig => "too-big",
        }
    }
}

/// Direction in which a packet passes the interface of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// Arrival.
    In,
    /// Departure.
    Out,
}

/// Amount of a run that is recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Streaming statistics, with constant memory.
    Summary,
    /// Statistics, and series in bins.
    #[default]
    Series,
    /// All facts, packet by packet.
    Packets,
}

/// Fill level of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets waiting or in service.
    pub packets: u32,
    /// Bytes waiting or in service.
    pub bytes: Size,
}

/// Media frame that has left the encoder.
///
/// A frame has two records: this one, by its sender at the time of capture, and the [`FrameRecord`], by its receiver when
/// the frame is complete or lost. Neither end has the knowledge for both. They are joined by (flow, video, frame).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FrameSent {
    /// Flow of the frame.
    pub flow: FlowId,
    /// Whether it is a video frame (else audio).
    pub video: bool,
    /// Running number of the frame in the stream.
    pub frame: u32,
    /// Encoded bytes.
    pub size: Size,
    /// Whether it can be decoded without earlier frames; a frame of audio in silence (DTX) cannot.
    pub key: bool,
}

/// Resolution and frame rate of the video of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct VideoStep {
    /// Height of the pictures in pixels.
    pub height: u32,
    /// Nominal frames per second.
    pub fps: f64,
}

/// Result of a media frame at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FrameRecord {
    /// Flow of the frame.
    pub flow: FlowId,
    /// Whether it is a video frame (else audio).
    pub video: bool,
    /// Running number of the frame in the stream.
    pub frame: u32,
    /// Arrival of the last packet, if all arrived.
    pub complete: Option<Time>,
    /// Time of rendering, if it was rendered.
    pub rendered: Option<Time>,
    /// When it was to be rendered, if it was complete by then, whether or not it could be decoded.
    pub due: Option<Time>,
}

/// RTCP packet (compound or not) that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RtcpRecord {
    /// Flow of the session.
    pub flow: FlowId,
    /// Whether the media receiver sent it.
    pub from_receiver: bool,
    /// Bytes on the wire, including IP and UDP headers.
    pub size: Size,
    /// Types of the RTCP packets inside.
    pub contents: Contents,
    /// Wait of the reported event, for event-driven feedback.
    pub waited: Span,
}

/// Result of a receiver's attempt to report a loss (RFC 4585 section 3.5.2). The discriminants are the codes in recorded
/// tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Reporting {
    /// Reported in an early packet.
    Early = 0,
    /// Reported in a regular packet.
    Regular = 1,
    /// Suppressed, because another receiver had reported the same loss.
    Suppressed = 2,
    /// Not sent, because it could not have been sent in time.
    NotAllowed = 3,
}

impl Reporting {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Early, Self::Regular, Self::Suppressed, Self::NotAllowed];

    /// Name in tables.
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

/// Result of a sender's check of ECN on its path (RFC 6679 sections 7.2.1 and 7.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum EcnCheck {
    /// The codepoint arrives and is reported.
    Verified,
    /// The receiver does not report its counts.
    Unreported,
    /// The codepoint is cleared on the way.
    Cleared,
    /// Packets with the codepoint do not arrive.
    Dropped,
}

impl EcnCheck {
    /// Name in tables.
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

/// Circuit breaker of RFC 8083. The discriminants are the numbers in that RFC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Breaker {
    /// Media was sent, and no RTCP came back (section 4.1).
    RtcpTimeout = 1,
    /// Media was sent, and reports say that none of it has arrived (section 4.2).
    MediaTimeout = 2,
    /// The sending rate was more than ten times TCP's (section 4.3).
    Congestion = 3,
    /// The media that arrives is unusable (section 4.4).
    Usability = 4,
}

impl Breaker {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::RtcpTimeout, Self::MediaTimeout, Self::Congestion, Self::Usability];

    /// Name in tables.
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

/// The least rate of a flow's sources, at a time at which the target is below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeastRate {
    /// Audio and the encoder's lowest rate, headers included.
    pub rate: Rate,
    /// Whether media have to wait for it: the sender keeps to the target, or to a window.
    pub held: bool,
}

/// Lost packet, as detected and reported by a member of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossRecord {
    /// Member that missed the packet.
    pub flow: FlowId,
    /// Flow of the packet's sender.
    pub source: FlowId,
    /// RTP sequence number of the packet.
    pub sequence: u16,
    /// Time of the detection.
    pub detected: Time,
    /// Result of the report.
    pub reporting: Reporting,
}

/// Statistics of a user of a radio network in one direction since the last record. The names suit any kind of network;
/// each kind defines what they count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RadioRecord {
    /// Network.
    pub network: NodeId,
    /// Number of the user in the network.
    pub user: u32,
    /// Whether this is the uplink.
    pub up: bool,
    /// Cell (or access point) that serves the user.
    pub cell: u32,
    /// Bytes that arrived over the air, without the headers of the radio protocol.
    pub bytes: u64,
    /// Blocks sent for the first time (LTE: transport blocks).
    pub blocks: u32,
    /// Number of these blocks that had to be sent again.
    pub failed: u32,
    /// Mean effective SINR of these blocks, dB; NaN without blocks.
    pub sinr_db: f64,
    /// Mean index by which the rate was chosen (LTE: the reported CQI).
    pub rate_index: f64,
}

/// Statistics of a cell of a radio network since the last record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellRecord {
    /// Network.
    pub network: NodeId,
    /// Number of the cell in the network.
    pub cell: u32,
    /// Whether this is the uplink.
    pub up: bool,
    /// Radio resources in use (LTE: subbands, summed over TTIs).
    pub resources: u64,
    /// Bytes that arrived over the air, without the headers of the radio protocol.
    pub bytes: u64,
}

/// Media packet that did not arrive and was restored at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepairRecord {
    /// Flow of the packet.
    pub flow: FlowId,
    /// Frame to which it belongs.
    pub frame: u32,
    /// RTP sequence number of the packet.
    pub sequence: u16,
    /// Means of the restoration: [`Kind::Retransmission`] or [`Kind::Repair`].
    pub by: Kind,
    /// Whether it was in time for playout.
    pub in_time: bool,
}

/// Recorder of the facts of a run. All methods have empty bodies, so that a recorder implements only those that it needs.
#[allow(unused_variables)]
pub trait Recorder: Send + Any {
    /// Amount that is kept; costly facts need not be passed below their level.
    fn level(&self) -> Level {
        Level::Summary
    }
    /// Takes a packet that leaves its sender.
    fn sent(&mut self, now: Time, packet: &Packet) {}
    /// Takes a copy of a packet from a multicast fan-out.
    fn copied(&mut self, now: Time, packet: &Packet) {}
    /// Takes a packet that reaches its destination.
    fn arrived(&mut self, now: Time, packet: &Packet) {}
    /// Takes the goodbye of a media flow, whose sender stops.
    fn ended(&mut self, now: Time, flow: FlowId) {}
    /// Takes a sender's result on whether its path carries ECN; from then on it sends accordingly.
    fn ecn_checked(&mut self, now: Time, flow: FlowId, check: EcnCheck) {}

    /// Takes a circuit breaker of a media flow that has tripped (RFC 8083); the sender stops only if its settings say so.
    fn tripped(&mut self, now: Time, flow: FlowId, breaker: Breaker, stops: bool) {}

    /// Takes a packet that is dropped at `node`.
    fn dropped(&mut self, now: Time, packet: &Packet, node: NodeId, cause: Cause) {}
    /// Takes a packet that is still on its way, at `node`, when the run ends.
    fn under_way(&mut self, packet: &Packet, node: NodeId) {}
    /// Takes a packet that `node` has marked with congestion experienced (ECN) instead of dropping it.
    fn marked(&mut self, now: Time, packet: &Packet, node: NodeId) {}
    /// Takes a packet whose ECN field `node` has cleared.
    fn bleached(&mut self, now: Time, packet: &Packet, node: NodeId) {}

    /// Takes the number of impossible statements in a datagram of RTCP to a media flow's sender: about a stream or packets
    /// that it never sent, marks on packets that were not ECN-capable, or bytes that are not RTCP.
    fn refused(&mut self, now: Time, flow: FlowId, count: u32) {}

    /// Takes a packet that passes the interface of the end `node`, for a capture file. Called only if
    /// [`Recorder::captures`] is true when the run begins.
    fn captured(&mut self, now: Time, packet: &Packet, node: NodeId, passing: Passing) {}
    /// Whether [`Recorder::captured`] has to be called.
    fn captures(&self) -> bool {
        false
    }
    /// Takes useful bytes for the application: TCP in order, media payload without duplicates.
    fn goodput(&mut self, now: Time, flow: FlowId, bytes: Size) {}
    /// Takes a media packet that arrived too late for the playout buffer.
    fn late(&mut self, now: Time, flow: FlowId, packet: &Packet) {}
    /// Takes a restored media packet.
    fn repaired(&mut self, now: Time, repair: &RepairRecord) {}
    /// Takes the time that a media packet has waited at its sender before it leaves.
    fn paced(&mut self, now: Time, flow: FlowId, waited: Span) {}
    /// Takes a media frame that was not sent, because too many bytes waited at its sender.
    fn skipped(&mut self, now: Time, flow: FlowId, packets: u32, bytes: Size) {}
    /// Takes a picture that was captured and not encoded: the controller's congestion window was full, the bytes waiting at
    /// the sender would take too long to leave, or the encoder left it out to hold its rate.
    fn left_out(&mut self, now: Time, flow: FlowId) {}
    /// Takes the least rate of a flow's sources when the target falls below it; `None` when the target no longer is.
    fn below_least(&mut self, now: Time, flow: FlowId, least: Option<LeastRate>) {}
    /// Takes a decision of a controller.
    fn decision(&mut self, now: Time, flow: FlowId, decision: &Decision) {}
    /// Takes a named internal value of a controller or of TCP.
    fn internal(&mut self, now: Time, flow: FlowId, name: &str, value: f64) {}
    /// Takes that the video source of a flow is on, with its nominal interval between frames, or that it is off.
    fn video_switched(&mut self, now: Time, flow: FlowId, interval: Option<Span>) {}
    /// Takes the resolution and the frame rate that video has from its next frame on, where these follow its rate.
    fn video_step(&mut self, now: Time, flow: FlowId, step: &VideoStep) {}
    /// Takes a media frame that leaves its encoder.
    fn frame_sent(&mut self, now: Time, frame: &FrameSent) {}
    /// Takes the result of a media frame at its receiver, at most once per frame.
    fn frame(&mut self, now: Time, frame: &FrameRecord) {}
    /// Takes a freeze of the picture of the duration `length` (webrtc-stats freeze).
    fn freeze(&mut self, now: Time, flow: FlowId, length: Span) {}
    /// Takes an RTCP packet that was sent.
    fn rtcp(&mut self, now: Time, rtcp: &RtcpRecord) {}
    /// Takes a loss that a member of a session has reported, or will not report.
    fn loss(&mut self, now: Time, loss: &LossRecord) {}
    /// Takes the arrival of the first report of a loss at the packet's sender, `delay` after the packet left.
    fn loss_reported(&mut self, now: Time, source: FlowId, delay: Span) {}
    /// Takes the repair of the damage from a loss that `flow` reported, `delay` after its detection.
    fn recovered(&mut self, now: Time, flow: FlowId, delay: Span) {}
    /// Takes the statistics of a user of a radio network.
    fn radio(&mut self, now: Time, radio: &RadioRecord) {}
    /// Takes the statistics of a cell of a radio network.
    fn cell(&mut self, now: Time, cell: &CellRecord) {}
    /// Takes the average capacity of a link in a bin that began at `from`, at the bin's end.
    fn capacity(&mut self, from: Time, node: NodeId, rate: Rate) {}
    /// Takes the mean capacities between two instants, at the second one, of all links that know theirs; [`Rate::MAX`] for
    /// no limit.
    fn capacities(&mut self, from: Time, to: Time, rates: &[(NodeId, Rate)]) {}
    /// Takes the fill level of a queue, once per bin.
    fn backlog(&mut self, now: Time, node: NodeId, backlog: Backlog) {}
    /// Takes the fill level of one of the queues of which a queue consists, once per bin.
    fn queue_part(&mut self, now: Time, node: NodeId, part: &'static str, backlog: Backlog) {}
}

/// Recorder that ignores all facts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {}
