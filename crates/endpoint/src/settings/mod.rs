//! The settings of an endpoint: what it sends, what it receives, and by which rules it speaks RTCP.

mod checks;

use crate::media::SourceSettings;
use crate::packetizer::Extensions;
use crate::repair::Repair;
use crate::rtcp::schedule::Avpf;
use serde::{Deserialize, Serialize};
use std::fmt;
use tidegate_core::control::ReceiverHalf;
use tidegate_core::{Controller, Ecn, FlowId, Limits, Rate, Span, Stream, Time};

/// What kind of media a stream carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// Video: paced, and judged by its frames.
    Video,
    /// Audio: served before video.
    Audio,
    /// Packets without media, in a stream of their own so that they leave no gaps in the media's
    /// sequence numbers (what a retransmission stream is used for in libwebrtc).
    Padding,
    /// Retransmitted packets of the video stream (RFC 4588).
    Retransmission,
    /// Forward error correction: parity over packets of the video stream (RFC 6015).
    Parity,
}

/// One participant.
pub struct EndpointSettings {
    /// The name in tables, its RTCP CNAME, and the first part of its substreams' names.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// Its NTP clock is the driver's time plus this. [`EndpointSettings::new`] draws it from the
    /// substream (seed, name, "clock"), so that no scheme can take a difference of two clocks for a delay.
    pub clock_offset: Span,
    /// The SSRC under which it reports while it does not send.
    pub ssrc: u32,
    /// Bytes of IP and UDP headers on each packet.
    pub overhead: u32,
    /// What it sends.
    pub send: Option<SendSettings>,
    /// What it receives.
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
            clock_offset: clock_offset(seed, &name),
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

/// The default clock offset of the endpoint `name` in the run with `seed`: a date between 1968 and 2002
/// in NTP's count of seconds since 1900, so that neither the run's start nor a peer's clock shows in it.
#[must_use]
pub fn clock_offset(seed: u64, name: &str) -> Span {
    const EARLIEST_SECS: u64 = 1 << 31;
    const RANGE_NANOS: u64 = (1 << 30) * 1_000_000_000;
    let nanos = Stream::new(seed, name, "clock").below(RANGE_NANOS) + EARLIEST_SECS * 1_000_000_000;
    Span::from_nanos(nanos as i64)
}

/// What comes of a circuit breaker that trips (RFC 8083).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CircuitBreakerUse {
    /// There are none.
    Off,
    /// The first one that trips is told of, and nothing else changes.
    #[default]
    Watch,
    /// The sender ceases transmission, and says goodbye (section 4.5).
    Act,
}

/// What an endpoint sends.
pub struct SendSettings {
    /// The flow that its media packets belong to.
    pub flow: FlowId,
    /// Its streams: at most one of video and one of audio.
    pub streams: Vec<StreamSettings>,
    /// Who decides how much.
    pub controller: Box<dyn Controller>,
    /// Bounds of the session; `wanted` and `app_limited` are filled in by the endpoint.
    pub limits: Limits,
    /// When it begins.
    pub start: Time,
    /// When it ends, with an RTCP BYE; `None`: with the run.
    pub stop: Option<Time>,
    /// It ends when it has sent so many RTP packets of media, if it has not ended before; `None`: no such number.
    pub packets: Option<u64>,
    /// The ECN field of its media packets.
    pub ecn: Ecn,
    /// Whether it first finds out that the path carries ECN (RFC 6679 section 7.2.1): it takes the receiver's
    /// [`FeedbackSettings::ecn_reports`].
    pub ecn_initiation: bool,
    /// The largest RTP payload in bytes.
    pub payload: u16,
    /// Which header extensions its packets carry.
    pub extensions: Extensions,
    /// The per-packet feedback that was agreed on: for RFC 8888 it keeps track of RTP sequence numbers.
    pub feedback: FeedbackFormat,
    /// How long media may wait in the pacer. Where the controller has the queue drained
    /// ([`tidegate_core::Decision::drain_queue`]), the pacer sends so fast that nothing waits longer; else a frame that comes
    /// when more waits than the target rate carries in this time is not sent at all.
    pub queue_limit: Span,
    /// How losses of video are repaired.
    pub repair: Repair,
    /// What its circuit breakers do (RFC 8083).
    pub circuit_breaker: CircuitBreakerUse,
    /// Bytes of padding in a packet that has nothing else; at most 255 (RFC 3550 section 5.1).
    pub padding_payload: u8,
    /// SSRC of the padding stream.
    pub padding_ssrc: u32,
    /// Payload type of the padding stream.
    pub padding_payload_type: u8,
}

impl SendSettings {
    /// Sends nothing yet: from the start of the run to its end, 1200-byte payloads, transport-wide
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

    /// Whether packets of video say to which frame they belong: those of a source without frames have nothing to say.
    #[must_use]
    pub fn marks(&self) -> bool {
        let frames = |stream: &StreamSettings| stream.kind == MediaKind::Video && stream.signalled().frames;
        self.extensions.marks && self.streams.iter().any(frames)
    }

    /// When the first of its video streams begins: at the start of the flow, or at the end of a pause over it.
    fn first_picture(&self) -> Time {
        let video = self.streams.iter().filter(|stream| stream.kind == MediaKind::Video);
        let begins = |stream: &StreamSettings| {
            stream.pauses.iter().fold(self.start, |at, &(from, to)| if from <= at { at.max(to) } else { at })
        };
        video.map(begins).min().unwrap_or(self.start)
    }

    /// What the peer is told of the streams when the session begins.
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
/// SSRCs of both, the flow in the low bits.
const RETRANSMISSION_SSRC: u32 = 0x7274_0000;
const PARITY_SSRC: u32 = 0x6665_0000;

/// Bytes of the largest IP packet (RFC 791 section 3.1, total length).
const LARGEST_PACKET: u32 = 65_535;
/// Bytes of the IPv4 and UDP headers that a capture file has, whatever the overhead is.
const LEAST_OVERHEAD: u32 = 28;

/// Bytes of the largest RTP packet with `overhead` below it.
pub(crate) fn largest_rtp(overhead: u32) -> u32 {
    LARGEST_PACKET.saturating_sub(overhead.max(LEAST_OVERHEAD))
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
    /// Where its media comes from.
    pub source: SourceSettings,
    /// When the source is off, in order: from the first instant up to the second.
    pub pauses: Vec<(Time, Time)>,
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
        }
    }

    /// What the peer is told of it.
    #[must_use]
    pub fn signalled(&self) -> Signalled {
        Signalled {
            kind: self.kind,
            ssrc: self.ssrc,
            payload_type: self.payload_type,
            clock_rate: self.clock_rate,
            // packets without frames are nothing that anybody looks at
            frames: self.source.frames(),
        }
    }
}

/// What a receiver knows of a stream from signalling.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signalled {
    /// What it carries.
    pub kind: MediaKind,
    /// Its SSRC.
    pub ssrc: u32,
    /// Its RTP payload type, by which packets are told apart.
    pub payload_type: u8,
    /// Hertz of its RTP timestamp.
    pub clock_rate: u32,
    /// Whether its packets form frames that are played out.
    pub frames: bool,
}

/// What an endpoint receives.
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
    /// From when on there should be pictures.
    pub start: Time,
    /// How losses of video are repaired.
    pub repair: Repair,
}

impl ReceiveSettings {
    /// Receives what `peer` sends, as signalled.
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

/// Which per-packet feedback a receiver sends.
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

/// Per-packet feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedbackSettings {
    /// In which format.
    pub format: FeedbackFormat,
    /// How often, while packets arrive. `None`: as libwebrtc's receiver sends transport-wide feedback, every 50 to 250 ms by
    /// what its end may send itself, and every 50 ms where that sends nothing.
    pub interval: Option<Span>,
    /// Whether it reports what it counts of ECN as RFC 6679 has it: a summary with each regular report, and feedback between
    /// them on the first packet that is ECN-capable and on marks.
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

/// When the frames of a stream are shown.
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
        /// Kept as a margin above the slowest recent frame.
        min: Span,
        /// Never more than this above the fastest frame: what comes later is given up.
        max: Span,
        /// How fast the delay shrinks, as a part of the time that passes.
        shrink: f64,
    },
}

impl Default for Playout {
    /// Adaptive from 0 ms to 10 s (libwebrtc `modules/video_coding/timing`: the default minimum playout
    /// delay and `kMaxVideoDelay`), shrinking by 2 %, which sound and picture take without notice.
    fn default() -> Self {
        Self::Adaptive { min: Span::ZERO, max: Span::from_secs(10), shrink: 0.02 }
    }
}

/// Which rules say when RTCP may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RtcpMode {
    /// Reports at the times of RFC 3550 section 6.3; per-packet feedback and urgent messages whenever
    /// there is something to say, as reduced-size packets (RFC 5506): what WebRTC does in effect.
    #[default]
    Free,
    /// Everything in compounds at the times of RFC 3550 section 6.3 (the profile of RFC 3551).
    Avp,
    /// Feedback early where RFC 4585 section 3 allows it, else in the next regular compound.
    Avpf,
}

/// The least time between two reports, before its randomisation; half of it for the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RtcpMinimum {
    /// 5 s (RFC 3550 section 6.2).
    Standard,
    /// 360 s divided by the session bandwidth in kb/s (RFC 3550 section 6.2).
    #[default]
    Reduced,
    /// This long.
    Fixed(Span),
}

impl RtcpMinimum {
    /// How long that is in a session of bandwidth `session`.
    #[must_use]
    pub fn span(self, session: Rate) -> Span {
        match self {
            Self::Standard => Span::from_secs(5),
            Self::Fixed(span) => span,
            Self::Reduced => Span::from_secs_f64(360_000.0 / session.as_bps_f64()),
        }
    }
}

/// RTCP timing.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RtcpSettings {
    /// Under which rules.
    pub mode: RtcpMode,
    /// The session bandwidth, of which RTCP may use 5 %.
    pub session_bandwidth: Rate,
    /// The least time between two reports of [`RtcpMode::Free`] and [`RtcpMode::Avp`].
    pub minimum: RtcpMinimum,
    /// What [`RtcpMode::Avpf`] leaves to the session.
    pub avpf: Avpf,
    /// Whether early packets are feedback alone (RFC 5506), without report and source description.
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

/// What is wrong with the settings of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// Whose.
    pub endpoint: String,
    /// Which setting, and what it is.
    pub problem: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint {}: {}", self.endpoint, self.problem)
    }
}

impl std::error::Error for SettingsError {}
