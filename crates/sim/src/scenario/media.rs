//! Media flows: controller, feedback, playout and sources.

use serde::{Deserialize, Serialize};
use tidegate_controllers::Content;
use tidegate_core::{Rate, Span, Time};
use tidegate_endpoint::coupling::Algorithm;
use tidegate_endpoint::media::adaptation;
use tidegate_endpoint::{BelowMin, CircuitBreakerUse, Repair, RtcpMode};

/// RTP media under a congestion controller.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaSpec {
    /// The controller.
    pub controller: ControllerSpec,
    /// The smallest target that the controller may set.
    pub min_rate: Rate,
    /// The largest target that the controller may set.
    pub max_rate: Rate,
    /// The target at the start.
    pub start_rate: Rate,
    /// The video stream, if any.
    #[serde(default)]
    pub video: Option<VideoSpec>,
    /// The audio stream, if any.
    #[serde(default)]
    pub audio: Option<AudioSpec>,
    /// Feedback from the receiver.
    pub feedback: FeedbackSpec,
    /// Playout at the receiver.
    pub playout: PlayoutSpec,
    /// Repair of lost video packets.
    #[serde(default)]
    pub repair: Repair,
    /// The ECN codepoint of its RTP packets.
    #[serde(default)]
    pub ecn: EcnSpec,
    /// Whether its sender first verifies that the path carries ECN (RFC 6679 section 7.2.1).
    #[serde(default)]
    pub ecn_initiation: bool,
    /// Use of its circuit breakers.
    #[serde(default)]
    pub circuit_breaker: CircuitBreakerUse,
    /// RTP payload bytes of a full packet.
    pub payload: u32,
    /// Bytes of IP and UDP headers.
    pub overhead: u32,
    /// Whether packets of video name the frame to which they belong.
    #[serde(default = "default_marks")]
    pub marks: bool,
    /// Number of RTP packets of media after which the flow ends, if it has not ended before.
    #[serde(default)]
    pub packets: Option<u64>,
    /// Longest time that media may wait at the sender. A frame is not sent if more is waiting than the target rate
    /// carries in this time; or the pacer drains the queue within it, where the controller wants that.
    #[serde(default = "default_queue_limit")]
    pub queue_limit: Span,
    /// Times in which the sources are off, `[from, to)`.
    #[serde(default)]
    pub pauses: Vec<(Time, Time)>,
    /// Times in which the video alone is off, which the moves add.
    #[serde(skip)]
    pub video_pauses: Vec<(Time, Time)>,
    /// Times in which the audio alone is off.
    #[serde(skip)]
    pub audio_pauses: Vec<(Time, Time)>,
    /// The flow in the other direction whose receiver sits in the same endpoint as this one's sender.
    #[serde(default)]
    pub pair: Option<String>,
}

impl MediaSpec {
    /// Times in which the video is off, or else the audio. Audio with DTX goes on when it is muted.
    pub(super) fn pauses_of(&self, video: bool) -> Vec<(Time, Time)> {
        let own = match (video, self.audio.and_then(|audio| audio.dtx)) {
            (true, _) => &self.video_pauses[..],
            (false, None) => &self.audio_pauses[..],
            (false, Some(_)) => &[],
        };
        if own.is_empty() {
            return self.pauses.clone();
        }
        let mut pauses: Vec<_> = self.pauses.iter().chain(own).copied().collect();
        pauses.sort_unstable();
        pauses.dedup_by(|later, earlier| {
            let joins = later.0 <= earlier.1;
            if joins {
                earlier.1 = earlier.1.max(later.1);
            }
            joins
        });
        pauses
    }

    /// Times in which all sources are off.
    pub(super) fn silences(&self) -> Vec<(Time, Time)> {
        match (&self.video, &self.audio) {
            (Some(_), None) => self.pauses_of(true),
            (None, Some(_)) => self.pauses_of(false),
            _ => {
                let audio = self.pauses_of(false);
                let video = self.pauses_of(true);
                if video == audio {
                    return video;
                }
                let both = video.iter().flat_map(|&(from, to)| {
                    audio.iter().map(move |&(begin, end)| (from.max(begin), to.min(end)))
                });
                both.filter(|(from, to)| from < to).collect()
            }
        }
    }
}

/// The endpoint's default of `transient_change`.
const fn default_transient_change() -> f64 {
    0.1
}

/// The endpoint's default of `key_factor`.
const fn default_key_factor() -> f64 {
    1.0
}

const fn default_marks() -> bool {
    true
}

const fn default_queue_limit() -> Span {
    Span::from_secs(2)
}

/// Media flows of one sender whose congestion controls are coupled (RFC 8699).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CouplingSpec {
    /// Name and priority of each flow.
    pub flows: Vec<(String, f64)>,
    /// The algorithm that shares their common rate.
    #[serde(default)]
    pub algorithm: Algorithm,
}

/// A controller and its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Registry name, or the key of a Python object handed over.
    pub name: String,
    /// Preset; the controller's default if empty.
    #[serde(default)]
    pub preset: String,
    /// Settings that differ from the preset.
    #[serde(default)]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Whether `name` is the key of a Python class handed over.
    #[serde(default)]
    pub python: bool,
    /// Content of the call's video, for which a call sets up a controller of the registry.
    #[serde(default)]
    pub content: Content,
}

/// Feedback from the receiver.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackSpec {
    /// Format of per-packet feedback.
    pub format: FeedbackFormat,
    /// Time between two reports, or the rule for it; as in libwebrtc's receiver if not given.
    #[serde(default)]
    pub interval: FeedbackInterval,
    /// The minimum time between two RTCP reports of either end, before its randomisation (RFC 3550 section
    /// 6.3.1), or the rule for it.
    #[serde(default)]
    pub reports: ReportInterval,
    /// Rules for the times at which RTCP may be sent.
    #[serde(default)]
    pub profile: RtcpMode,
    /// The session bandwidth, of which RTCP may use 5 %; the largest rate of the media if not given.
    #[serde(default)]
    pub bandwidth: Option<Rate>,
    /// Under AVPF, whether early packets are feedback alone (RFC 5506).
    #[serde(default)]
    pub reduced_size: bool,
    /// Under AVPF, the minimum time between full packets before its randomisation (T_rr_interval, RFC 4585
    /// section 3.5.3); zero: none.
    #[serde(default)]
    pub rr_interval: Span,
    /// Whether receivers report their counts of ECN marks (RFC 6679 section 5).
    #[serde(default)]
    pub ecn_reports: bool,
}

/// The times of feedback reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FeedbackInterval {
    /// By a named rule.
    Rule(FeedbackRule),
    /// At this interval; as in libwebrtc's receiver if not given.
    Every(Option<Span>),
}

impl Default for FeedbackInterval {
    fn default() -> Self {
        Self::Every(None)
    }
}

/// The named rules for the times of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackRule {
    /// With the last packet of each frame, after 16 packets, and at most 40 ms after the last report.
    Frame,
}

/// The times of RTCP reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ReportInterval {
    /// By a named rule.
    Rule(ReportRule),
    /// With this minimum; as RFC 3550 has it if not given.
    Every(Option<Span>),
}

impl Default for ReportInterval {
    fn default() -> Self {
        Self::Every(None)
    }
}

/// The named rules for the times of RTCP reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportRule {
    /// At least 360 s over the session bandwidth in kbit/s between two reports (RFC 3550 section 6.2).
    Rfc3550,
    /// Those of libwebrtc's `RTCPSender`.
    Libwebrtc,
}

/// Format of per-packet feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackFormat {
    /// Transport-wide (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Twcc,
    /// RFC 8888.
    Ccfb,
    /// None: receiver reports only.
    None,
}

/// The ECN codepoint that packets are sent with (RFC 3168 section 5, RFC 9331 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EcnSpec {
    /// Not-ECT.
    #[default]
    Off,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
}

/// Playout at the receiver.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlayoutSpec {
    /// A fixed delay after the first frame.
    Fixed {
        /// The delay.
        delay: Span,
    },
    /// Grows when a frame is late, shrinks slowly.
    Adaptive {
        /// The smallest delay.
        min: Span,
        /// The largest delay.
        max: Span,
    },
}

/// The video stream.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoSpec {
    /// The source of its frames.
    pub source: VideoSource,
    /// Encoder's smallest rate.
    pub min: Rate,
    /// Encoder's largest rate.
    pub max: Rate,
    /// Frames per second.
    pub fps: f64,
    /// The application's rate limit over time: each rate holds from the time beside it, counted from the flow's start.
    #[serde(default)]
    pub schedule: Vec<(Time, Rate)>,
    /// Longest time between two key frames; only those on request if not given.
    #[serde(default)]
    pub key_interval: Option<Span>,
    /// Mean number of requests of key frames a second from outside the flow; none if not given.
    #[serde(default)]
    pub requests: Option<f64>,
    /// Its behaviour while the target is below `min`.
    #[serde(default)]
    pub below_min: BelowMin,
    /// Steps of resolution and frame rate that follow the rate; one resolution at `fps` if not given.
    #[serde(default)]
    pub adaptation: Option<adaptation::Settings>,
}

/// A source of video frames.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoSource {
    /// Always something to send.
    Greedy,
    /// Every frame exactly target / fps.
    Ideal,
    /// RFC 8593 section 5.
    Statistical {
        /// Reaction latency (tau_v).
        tau_v: Span,
        /// Length of a transient in frames (K_d).
        transient_frames: u32,
        /// Size of the first frame of a transient in bytes (K_B).
        burst: u32,
        /// Size of a key frame as a multiple of the mean frame, at least that of the first frame of a transient.
        #[serde(default = "default_key_factor")]
        key_factor: f64,
        /// Smallest change of the target, relative to the last one, that starts a transient.
        #[serde(default = "default_transient_change")]
        transient_change: f64,
        /// Laplace scale of the normalised frame interval (SCALE_t).
        scale_t: f64,
        /// Laplace scale of the normalised frame size (SCALE_B).
        scale_b: f64,
    },
    /// Packets of one size at a given rate, whatever the target.
    Cbr {
        /// Bytes of a packet on the wire.
        packet_size: u32,
        /// Rates over time: each holds from the time beside it, counted from the flow's start. A rate counts the same
        /// bytes as `packet_size`.
        schedule: Vec<(Time, Rate)>,
    },
    /// Recorded frame sizes: a ladder of (encoder's rate, sizes in bytes).
    Frames {
        /// Rungs in ascending order of rate.
        rungs: Vec<(Rate, Vec<u32>)>,
        /// Frames skipped at the beginning when the recording starts again.
        skip: u32,
        /// Frames from one key frame to the next, where frames are sent as recorded.
        #[serde(default)]
        group: Option<u32>,
        /// Frames to which no later one refers, in order: B frames. Only with `group`.
        #[serde(default)]
        unreferenced: Vec<usize>,
    },
    /// An encoder in the loop.
    Encoder(EncoderSpec),
}

/// An encoder in the loop, which the driver of the engine creates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderSpec {
    /// Name of the encoder.
    pub codec: String,
    /// The driver's name for the pictures.
    pub clip: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Frames from one key frame to the next; 0: key frames only on request.
    pub group: u32,
}

/// The audio stream: constant rate.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AudioSpec {
    /// Encoder's rate.
    pub rate: Rate,
    /// Media time of one packet.
    pub interval: Span,
    /// Talk spurts and pauses; only spurts are sent.
    #[serde(default)]
    pub spurts: Option<SpurtsSpec>,
    /// Time between two packets of a silence (DTX); none are sent if not given.
    #[serde(default)]
    pub dtx: Option<Span>,
}

/// Mean durations of exponential talk spurts and pauses.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpurtsSpec {
    /// Mean duration of a talk spurt.
    pub talk: Span,
    /// Mean duration of a pause.
    pub pause: Span,
}
