//! The settings of an endpoint: its sender, its receiver, and its rules for RTCP.

mod checks;

use crate::clock::Clock;
use crate::media::SourceSettings;
use crate::packetizer::Extensions;
use crate::repair::Repair;
use crate::rtcp::reports;
use crate::rtcp::schedule::Avpf;
use serde::{Deserialize, Serialize};
use std::fmt;
use tidegate_core::control::ReceiverHalf;
use tidegate_core::{Controller, Ecn, FlowId, Limits, Rate, Span, Stream, Time};

/// Kind of media that a stream carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// Video, which is paced and measured by its frames.
    Video,
    /// Audio, which is sent before video.
    Audio,
    /// Packets without media, in a separate stream so that they leave no gaps in the media's sequence numbers
    /// (libwebrtc uses its retransmission stream for them).
    Padding,
    /// Retransmitted packets of the video stream (RFC 4588).
    Retransmission,
    /// Forward error correction: parity over packets of the video stream (RFC 6015).
    Parity,
}

/// Settings of one participant.
pub struct EndpointSettings {
    /// The name in tables, its RTCP CNAME, and the first part of its substreams' names.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// Its clock.
    pub clock: Clock,
    /// The SSRC in its reports while it does not send.
    pub ssrc: u32,
    /// Bytes of IP and UDP headers on each packet.
    pub overhead: u32,
    /// Settings of its sender, if it sends.
    pub send: Option<SendSettings>,
    /// Settings of its receiver, if it receives.
    pub receive: Option<ReceiveSettings>,
    /// RTCP timing.
    pub rtcp: RtcpSettings,
}

impl EndpointSettings {
    /// A participant that neither sends nor receives yet, with 28 bytes of IPv4 and UDP header.
    #[must_use]
    pub fn new(name: impl Into<String>, seed: u64) -> Self {
        let name = name.into();
        Self {
            clock: Clock::new(seed, &name),
            ssrc: Stream::new(seed, &name, "ssrc").next_u64() as u32,
            overhead: 28,
            send: None,
            receive: None,
            rtcp: RtcpSettings::default(),
            seed,
            name,
        }
    }
}

/// Effect of a circuit breaker that trips (RFC 8083).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CircuitBreakerUse {
    /// There are no circuit breakers.
    Off,
    /// The first one that trips is recorded, without any other effect.
    #[default]
    Watch,
    /// The sender ceases transmission, and says goodbye (section 4.5).
    Act,
}

/// Settings of a sender.
pub struct SendSettings {
    /// The flow that its media packets belong to.
    pub flow: FlowId,
    /// Its streams: at most one of video and one of audio.
    pub streams: Vec<StreamSettings>,
    /// The controller that determines its rate.
    pub controller: Box<dyn Controller>,
    /// Bounds of the session; `wanted` and `app_limited` are filled in by the endpoint.
    pub limits: Limits,
    /// When it begins.
    pub start: Time,
    /// When it ends, with an RTCP BYE; `None`: with the run.
    pub stop: Option<Time>,
    /// Number of RTP packets of media after which it ends, if it has not ended before; `None`: unlimited.
    pub packets: Option<u64>,
    /// The ECN field of its media packets.
    pub ecn: Ecn,
    /// Whether it first checks that the path carries ECN (RFC 6679 section 7.2.1), which needs the receiver's
    /// [`FeedbackSettings::ecn_reports`].
    pub ecn_initiation: bool,
    /// The largest RTP payload in bytes.
    pub payload: u16,
    /// Header extensions of its packets.
    pub extensions: Extensions,
    /// The per-packet feedback of the session: for RFC 8888 it keeps track of RTP sequence numbers.
    pub feedback: FeedbackFormat,
    /// Time that media may wait in the pacer. If the controller has the queue drained
    /// ([`tidegate_core::Decision::drain_queue`]), the pacer sends so fast that no packet waits longer. Else a frame is
    /// dropped if it finds more bytes in the queue than the target rate carries in this time.
    pub queue_limit: Span,
    /// Repair of video losses.
    pub repair: Repair,
    /// Use of its circuit breakers (RFC 8083).
    pub circuit_breaker: CircuitBreakerUse,
    /// Bytes of padding in a packet without media; at most 255 (RFC 3550 section 5.1).
    pub padding_payload: u8,
    /// SSRC of the padding stream.
    pub padding_ssrc: u32,
    /// Payload type of the padding stream.
    pub padding_payload_type: u8,
}

impl SendSettings {
    /// A sender without streams, from the start of the run to its end, with 1200-byte payloads, and transport-wide
    /// sequence numbers and abs-send-time on each packet.
    #[must_use]
    pub fn new(flow: FlowId, controller: Box<dyn Controller>) -> Self {
        Self {
            flow,
            streams: Vec::new(),
            controller,
            limits: Limits::default(),
            start: Time::ZERO,
            stop: None,
            packets: None,
            ecn: Ecn::NotEct,
            ecn_initiation: false,
            payload: 1200,
            extensions: Extensions::default(),
            feedback: FeedbackFormat::default(),
            queue_limit: Span::from_secs(2),
            repair: Repair::default(),
            circuit_breaker: CircuitBreakerUse::default(),
            // libwebrtc modules/rtp_rtcp/source/rtp_sender.cc: kMaxPaddingLength
            padding_payload: 224,
            padding_ssrc: 0x7064_0000 | flow.0,
            padding_payload_type: 127,
        }
    }

    /// Whether packets of video carry the marks of their frames, which those of a source without frames do not have.
    #[must_use]
    pub fn marks(&self) -> bool {
        let frames = |stream: &StreamSettings| stream.kind == MediaKind::Video && stream.signalled().frames;
        self.extensions.marks && self.streams.iter().any(frames)
    }

    /// When the first of its video streams begins: at the start of the flow, or at the end of a pause at that time.
    fn first_picture(&self) -> Time {
        let video = self.streams.iter().filter(|stream| stream.kind == MediaKind::Video);
        let begins = |stream: &StreamSettings| {
            stream
                .pauses
                .iter()
                .fold(self.start, |begin, &(from, to)| if from <= begin { begin.max(to) } else { begin })
        };
        video.map(begins).min().unwrap_or(self.start)
    }

    /// The streams as signalling describes them to the peer at the beginning of the session.
    #[must_use]
    pub fn signalled(&self) -> Vec<Signalled> {
        let helper = |kind, ssrc, payload_type| Signalled {
            kind,
            ssrc,
            payload_type,
            clock_rate: VIDEO_CLOCK,
            frames: false,
        };
        let video = self.streams.iter().any(|stream| stream.kind == MediaKind::Video);
        let mut streams: Vec<Signalled> = self.streams.iter().map(StreamSettings::signalled).collect();
        if video && self.repair.nack.is_some() {
            streams.push(helper(
                MediaKind::Retransmission,
                RETRANSMISSION_SSRC | self.flow.0,
                RETRANSMISSION_TYPE,
            ));
        }
        if video && self.repair.fec.is_some() {
            streams.push(helper(MediaKind::Parity, PARITY_SSRC | self.flow.0, PARITY_TYPE));
        }
        streams.push(helper(MediaKind::Padding, self.padding_ssrc, self.padding_payload_type));
        streams
    }
}

/// Payload type of the retransmission stream: the one after that of video, as libwebrtc numbers them.
pub(crate) const RETRANSMISSION_TYPE: u8 = 97;
/// Payload type of the parity stream.
pub(crate) const PARITY_TYPE: u8 = 98;
/// SSRC of the retransmission stream, without the flow in its low bits.
const RETRANSMISSION_SSRC: u32 = 0x7274_0000;
/// SSRC of the parity stream, without the flow in its low bits.
const PARITY_SSRC: u32 = 0x6665_0000;

/// Bytes of the largest IP packet (RFC 791 section 3.1, total length).
const LARGEST_PACKET: u32 = 65_535;
/// Bytes of the IPv4 and UDP headers in a capture file, which has them whatever the overhead is.
const OVERHEAD_MIN: u32 = 28;

/// Bytes of the largest RTP packet with `overhead` below it.
pub(crate) fn largest_rtp(overhead: u32) -> u32 {
    LARGEST_PACKET.saturating_sub(overhead.max(OVERHEAD_MIN))
}

/// The RTP clock of every video payload format (RFC 3551 section 5).
pub const VIDEO_CLOCK: u32 = 90_000;
/// The RTP clock of audio (Opus, RFC 7587 section 4.1).
pub const AUDIO_CLOCK: u32 = 48_000;

/// One stream that an endpoint sends.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// Its name: the second part of its substreams' component `endpoint/stream`.
    pub name: String,
    /// Video or audio.
    pub kind: MediaKind,
    /// Its SSRC.
    pub ssrc: u32,
    /// RTP payload type, 0 to 127.
    pub payload_type: u8,
    /// Hertz of its RTP timestamp.
    pub clock_rate: u32,
    /// Source of its media.
    pub source: SourceSettings,
    /// Times at which the source is off, in order: from the first instant up to the second.
    pub pauses: Vec<(Time, Time)>,
    /// Longest time between two key frames, for sources that make them on request; `None`: only those on request.
    pub key_interval: Option<Span>,
    /// Mean number of requests of key frames a second from outside the flow, such as those of other receivers of an SFU.
    pub requests: Option<f64>,
    /// Its behaviour while the target is below the least rate of its source.
    pub below_min: BelowMin,
}

/// Behaviour of a stream that follows a target while the target is below the least rate of its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BelowMin {
    /// It is encoded at its least rate and waits at the sender, whose pacer keeps to the target, up to the queue limit.
    #[default]
    Wait,
    /// It is sent at its least rate, to which pacing is lifted (libwebrtc, `enforce_min_bitrate`).
    Send,
    /// It is not sent until the target is enough for it (libwebrtc, `suspend_below_min_bitrate`).
    Suspend,
}

impl StreamSettings {
    /// A video stream: payload type 96, 90 kHz.
    #[must_use]
    pub fn video(ssrc: u32, source: SourceSettings) -> Self {
        Self {
            name: "video".into(),
            kind: MediaKind::Video,
            ssrc,
            payload_type: 96,
            clock_rate: VIDEO_CLOCK,
            source,
            pauses: Vec::new(),
            key_interval: None,
            requests: None,
            below_min: BelowMin::default(),
        }
    }

    /// An audio stream: payload type 111, 48 kHz (Opus, RFC 7587).
    #[must_use]
    pub fn audio(ssrc: u32, source: SourceSettings) -> Self {
        Self {
            name: "audio".into(),
            kind: MediaKind::Audio,
            ssrc,
            payload_type: 111,
            clock_rate: AUDIO_CLOCK,
            source,
            pauses: Vec::new(),
            key_interval: None,
            requests: None,
            below_min: BelowMin::default(),
        }
    }

    /// The stream as signalling describes it to the peer.
    #[must_use]
    pub fn signalled(&self) -> Signalled {
        Signalled {
            kind: self.kind,
            ssrc: self.ssrc,
            payload_type: self.payload_type,
            clock_rate: self.clock_rate,
            // packets without frames are not played out
            frames: self.source.frames(),
        }
    }
}

/// A stream as signalling describes it to its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signalled {
    /// Kind of its media.
    pub kind: MediaKind,
    /// Its SSRC.
    pub ssrc: u32,
    /// Its RTP payload type, by which its packets are recognised.
    pub payload_type: u8,
    /// Hertz of its RTP timestamp.
    pub clock_rate: u32,
    /// Whether its packets form frames that are played out.
    pub frames: bool,
}

/// Settings of a receiver.
pub struct ReceiveSettings {
    /// The flow that it receives, which its feedback belongs to.
    pub flow: FlowId,
    /// The peer's streams: its [`SendSettings::signalled`].
    pub streams: Vec<Signalled>,
    /// The receiving half of the congestion control scheme, if it has one.
    pub half: Option<Box<dyn ReceiverHalf>>,
    /// Per-packet feedback.
    pub feedback: FeedbackSettings,
    /// When frames are shown.
    pub playout: Playout,
    /// Time from which on there should be pictures.
    pub start: Time,
    /// Repair of video losses.
    pub repair: Repair,
}

impl ReceiveSettings {
    /// A receiver of the streams of `peer`, as they are signalled.
    #[must_use]
    pub fn new(peer: &SendSettings) -> Self {
        Self {
            flow: peer.flow,
            streams: peer.signalled(),
            half: None,
            feedback: FeedbackSettings { format: peer.feedback, ..FeedbackSettings::default() },
            playout: Playout::default(),
            start: peer.first_picture(),
            repair: peer.repair,
        }
    }
}

/// Format of the per-packet feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackFormat {
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01.
    #[default]
    Twcc,
    /// RFC 8888.
    Ccfb,
    /// None.
    None,
}

/// Settings of per-packet feedback and of ECN reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedbackSettings {
    /// Format of the feedback.
    pub format: FeedbackFormat,
    /// Time between two reports, while packets arrive. `None`: as libwebrtc's receiver sends transport-wide feedback,
    /// every 50 to 250 ms by the rate that its end may send itself, and every 50 ms if it sends nothing.
    pub interval: Option<Span>,
    /// Whether it sends the ECN reports of RFC 6679: a summary with each regular report, and feedback between them on
    /// the first packet that is ECN-capable and on marks.
    pub ecn_reports: bool,
    /// Whether reports go with frames instead: with the last packet of each, after 16 packets, and 40 ms apart at most.
    pub frames: bool,
}

impl Default for FeedbackSettings {
    /// TWCC as often as libwebrtc's receiver sends it.
    fn default() -> Self {
        Self { format: FeedbackFormat::Twcc, interval: None, ecn_reports: false, frames: false }
    }
}

/// Rule for the times at which the frames of a stream are shown.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "mode")]
pub enum Playout {
    /// Each frame is shown `delay` after the time at which it would have arrived with the first frame's transit
    /// time. A frame that is not complete by then is given up.
    Fixed {
        /// Time added to the first frame's transit time.
        delay: Span,
    },
    /// The delay grows at once when a frame comes late and shrinks slowly.
    Adaptive {
        /// Margin above the transit time of the slowest recent frame.
        min: Span,
        /// Largest delay above the transit time of the fastest frame: later frames are given up.
        max: Span,
        /// Decrease of the delay, as a part of the time that passes.
        shrink: f64,
    },
}

impl Default for Playout {
    /// Adaptive from 0 ms to 10 s (libwebrtc `modules/video_coding/timing`: the default minimum playout delay and
    /// `kMaxVideoDelay`), shrinking by 2 %, which is not noticed in sound and picture.
    fn default() -> Self {
        Self::Adaptive { min: Span::ZERO, max: Span::from_secs(10), shrink: 0.02 }
    }
}

/// Rules for when RTCP may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RtcpMode {
    /// Reports at the times of RFC 3550 section 6.3; per-packet feedback and urgent messages at any time, as
    /// reduced-size packets (RFC 5506): in effect the rules of WebRTC.
    #[default]
    Free,
    /// Reports and feedback in compounds at the times of RFC 3550 section 6.3 (the profile of RFC 3551).
    Avp,
    /// Feedback early where RFC 4585 section 3 allows it, else in the next regular compound.
    Avpf,
}

/// Minimum time between two reports, before its randomisation; half of it for the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RtcpMinimum {
    /// 5 s (RFC 3550 section 6.2).
    Standard,
    /// 360 s divided by the session bandwidth in kb/s (RFC 3550 section 6.2).
    #[default]
    Reduced,
    /// A fixed time.
    Fixed(Span),
    /// The rule of libwebrtc's `RTCPSender`, whatever the session bandwidth is: 1 s, 5 s for audio alone, and for
    /// senders of video at most 360 s divided by the rate in kb/s that they send.
    Libwebrtc,
}

impl RtcpMinimum {
    /// The minimum time in a session of bandwidth `session`.
    #[must_use]
    pub fn span(self, session: Rate) -> Span {
        match self {
            Self::Standard => Span::from_secs(5),
            Self::Fixed(span) => span,
            Self::Libwebrtc => reports::interval(true, None),
            Self::Reduced => Span::from_secs_f64(360_000.0 / session.as_bps_f64()),
        }
    }
}

/// Settings of RTCP timing.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RtcpSettings {
    /// Rules for the times of packets.
    pub mode: RtcpMode,
    /// The session bandwidth, of which RTCP may use 5 %.
    pub session_bandwidth: Rate,
    /// Minimum time between two reports of [`RtcpMode::Free`] and [`RtcpMode::Avp`]; libwebrtc's rule is for the former.
    pub minimum: RtcpMinimum,
    /// Parameters of [`RtcpMode::Avpf`].
    pub avpf: Avpf,
    /// Whether early packets have only feedback (RFC 5506), without report and source description.
    pub reduced_size: bool,
}

impl Default for RtcpSettings {
    /// Free, for a session of 1 Mb/s: reports about every 360 ms.
    fn default() -> Self {
        Self {
            mode: RtcpMode::Free,
            session_bandwidth: Rate::from_mbps(1),
            minimum: RtcpMinimum::Reduced,
            avpf: Avpf::default(),
            reduced_size: false,
        }
    }
}

/// A problem in the settings of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// Name of the endpoint.
    pub endpoint: String,
    /// The setting and its value.
    pub problem: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint {}: {}", self.endpoint, self.problem)
    }
}

impl std::error::Error for SettingsError {}
