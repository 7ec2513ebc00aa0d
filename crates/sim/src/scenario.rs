//! A whole experiment as plain data: what the Python side hands over, already checked and in base units.
//!
//! Times and spans are nanoseconds, rates bit/s, sizes bytes, probabilities fractions. People write
//! TOML with units (`"20ms"`, `"2.5Mbps"`); `python/tidegate/scenario` turns that into this.

use crate::lte::LteSpec;
use crate::service::Statuses;
use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span, Time};
use tidegate_endpoint::{Repair, RtcpMode};

/// One experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// How long it runs.
    pub duration: Span,
    /// Left out of the metrics at the beginning.
    #[serde(default)]
    pub warmup: Span,
    /// The run's seed.
    pub seed: u64,
    /// Seeds that replace `seed` for single components, by name ("with another flow's luck changed").
    #[serde(default)]
    pub seeds: Vec<(String, u64)>,
    /// How much is kept.
    #[serde(default)]
    pub record: Record,
    /// Largest sending jitter of TCP and CBR senders, `None`: off.
    #[serde(default)]
    pub sending_jitter: SendingJitter,
    /// A radio network, if there is one.
    #[serde(default)]
    pub lte: Option<LteSpec>,
    /// The links, each in one direction.
    pub links: Vec<LinkSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// The sessions of many members.
    #[serde(default)]
    pub sessions: Vec<SessionSpec>,
}

/// How much of a run is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `summary`, `series` or `packets`.
    pub level: RecordLevel,
    /// Width of a bin of the series.
    pub bin: Span,
    /// Whether the bytes of every packet are kept for a capture file.
    #[serde(default)]
    pub capture: bool,
}

impl Default for Record {
    fn default() -> Self {
        // RFC 8868 section 3.1 logs rates every 200 ms
        Self { level: RecordLevel::Series, bin: Span::from_millis(200), capture: false }
    }
}

/// See [`tidegate_core::Level`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordLevel {
    /// Streaming statistics.
    Summary,
    /// And series in bins.
    Series,
    /// And every packet.
    Packets,
}

/// Sending jitter against drop-tail phase effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SendingJitter {
    /// None.
    Off,
    /// U(0, J) with J the service time of 1500 B at the slowest link's mean rate, at most 12 ms.
    #[default]
    Auto,
    /// U(0, J) with the given J.
    #[serde(untagged)]
    Fixed(Span),
}

/// A link in one direction between two nodes of the graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Its name; unique.
    pub name: String,
    /// Graph node at its head.
    pub from: String,
    /// Graph node at its tail.
    pub to: String,
    /// What it carries.
    pub capacity: Capacity,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Span,
    /// Drop-tail queue.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Loss on the wire.
    #[serde(default)]
    pub loss: LossSpec,
    /// Probability that a byte is hit; a packet with a hit byte is dropped.
    #[serde(default)]
    pub byte_error: f64,
    /// Delay jitter.
    #[serde(default)]
    pub jitter: JitterSpec,
}

/// A link's capacity over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capacity {
    /// No serialisation at all.
    Infinite,
    /// The same for ever.
    Constant(Rate),
    /// From each time on the rate beside it; repeats with `period` if given.
    Schedule {
        /// Steps in order of time; the first at zero.
        steps: Vec<(Time, Rate)>,
        /// After this long it starts again.
        #[serde(default)]
        period: Option<Span>,
    },
    /// A recorded network: index into the traces handed over, begun at `offset`.
    Trace {
        /// Which trace.
        index: usize,
        /// Where in the trace the run begins.
        #[serde(default)]
        offset: Span,
        /// The trace's rates are multiplied by this.
        #[serde(default = "one")]
        scale: f64,
    },
    /// The generative process of the Sprout paper.
    Brownian(BrownianSpec),
    /// One of several capacities at a time, and no queue: what is too much is lost.
    Statuses(Statuses),
    /// Whoever drives the run carries the packets.
    External,
}

const fn yes() -> bool {
    true
}

const fn tenth() -> f64 {
    0.1
}

const fn one() -> f64 {
    1.0
}

/// Brownian rate with sticky outages (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrownianSpec {
    /// Rate at the start.
    pub start: Rate,
    /// Largest rate.
    pub max: Rate,
    /// Standard deviation of the rate's change over one second, in bit/s.
    pub sigma: Rate,
    /// Outages end at this rate, per second.
    pub outage_escape: f64,
}

/// Limits of a drop-tail queue; several hold at once, none is no limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// In packets.
    #[serde(default)]
    pub packets: Option<u32>,
    /// In bytes.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// In time at the link's mean rate.
    #[serde(default)]
    pub time: Option<Span>,
    /// Whether the packet in service counts: then no packet waits longer than limit / rate, and a limit
    /// of n packets is ns-2's; a device queue of ns-3 does not count it.
    #[serde(default = "yes")]
    pub counts_in_service: bool,
}

/// Loss on the wire.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// None.
    #[default]
    None,
    /// Each packet independently.
    Bernoulli(f64),
    /// Two states (Gilbert, Elliott).
    GilbertElliott {
        /// P(good to bad) at each packet.
        to_bad: f64,
        /// P(bad to good) at each packet.
        to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// From each time on the Bernoulli loss beside it.
    Schedule(Vec<(Time, f64)>),
}

/// Delay jitter on a link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JitterSpec {
    /// None.
    #[default]
    None,
    /// RFC 8868 section 4.5.2: bounded, no reordering.
    Rfc8868 {
        /// Standard deviation.
        std: Span,
        /// Bound in standard deviations.
        n_std: f64,
        /// x_mean, which adds to the propagation delay.
        #[serde(default)]
        mean: Span,
    },
    /// U(0, max), packets may overtake.
    Uniform {
        /// The largest.
        max: Span,
    },
    /// N(0, std^2), but nothing arrives before it has left; packets may overtake.
    Normal {
        /// Standard deviation.
        std: Span,
    },
}

/// An RTP session of any number of members, whose packets go to all others.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSpec {
    /// Its name; unique among sessions and flows.
    pub name: String,
    /// The session bandwidth, of which RTCP may use 5 %.
    pub bandwidth: Rate,
    /// Bytes of IP and UDP headers.
    pub overhead: u32,
    /// Who takes part.
    pub members: Vec<MemberSpec>,
}

/// One member of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberSpec {
    /// Its name, unique in the session, and its CNAME.
    pub name: String,
    /// Graph node where it is.
    pub node: String,
    /// Under which profile it sends RTCP.
    pub profile: ProfileSpec,
    /// What it sends, if anything.
    #[serde(default)]
    pub media: Option<MemberMedia>,
    /// Whether it counts as a sender though it sends no RTP.
    #[serde(default)]
    pub declared_sender: bool,
    /// Whether it reports losses.
    #[serde(default = "yes")]
    pub reports_losses: bool,
    /// When it joins.
    #[serde(default)]
    pub join: Time,
    /// When it leaves; with the run by default.
    #[serde(default)]
    pub leave: Option<Time>,
    /// Whether it leaves without a goodbye.
    #[serde(default)]
    pub crashes: bool,
}

/// Under which profile a member sends RTCP.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileSpec {
    /// RFC 3551.
    Avp {
        /// The least interval before its randomisation (RFC 3550 section 6.2).
        minimum: Span,
    },
    /// RFC 4585.
    Avpf {
        /// Feedback is delayed by up to l intervals (section 3.5.2).
        l: f64,
        /// By up to k RTT/2 members instead, where the RTT is known (draft-ietf-avt-rtcp-feedback-00).
        #[serde(default)]
        k: Option<f64>,
        /// Whether the interval of `l` is drawn for each feedback, instead of that under way.
        #[serde(default)]
        redraw: bool,
        /// Feedback that cannot go within this time is not sent.
        max_feedback_delay: Span,
        /// The least time between full regular packets; zero: none.
        rr_interval: Span,
        /// Whether early packets are feedback alone (RFC 5506).
        #[serde(default)]
        reduced_size: bool,
    },
}

/// What a member sends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberMedia {
    /// Packets of one size at a constant rate, both counted on the wire.
    Packets {
        /// Bytes of a packet.
        size: u32,
        /// Their rate.
        rate: Rate,
    },
    /// Pictures of as many packets each, mended on NEWPRED messages.
    Segments {
        /// Pictures a second.
        fps: f64,
        /// Packets of a picture.
        segments: u16,
        /// Their rate on the wire.
        rate: Rate,
    },
}

/// One flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its name; unique.
    pub name: String,
    /// Graph node of the sender.
    pub from: String,
    /// Graph node of the receiver.
    pub to: String,
    /// When it begins.
    #[serde(default)]
    pub start: Time,
    /// When it ends; the run's end by default.
    #[serde(default)]
    pub stop: Option<Time>,
    /// What it is.
    pub kind: FlowKind,
}

/// What a flow is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowKind {
    /// RTP media under a congestion controller.
    Media(Box<MediaSpec>),
    /// UDP cross traffic.
    Udp(UdpSpec),
    /// TCP.
    Tcp(TcpSpec),
    /// Datagrams that whoever drives the run feeds and hears.
    External,
}

/// RTP media under a congestion controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaSpec {
    /// The controller.
    pub controller: ControllerSpec,
    /// Its bounds: never less.
    pub min_rate: Rate,
    /// Its bounds: never more.
    pub max_rate: Rate,
    /// Where it begins.
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
    /// How losses of video are repaired.
    #[serde(default)]
    pub repair: Repair,
    /// RTP payload bytes of a full packet.
    pub payload: u32,
    /// Bytes of IP and UDP headers.
    pub overhead: u32,
    /// After so many RTP packets of media the flow ends, if it has not before.
    #[serde(default)]
    pub packets: Option<u64>,
    /// How much may wait at the sender, as time at the target rate: a frame that comes when there is more
    /// is not sent.
    #[serde(default = "queue_limit")]
    pub queue_limit: Span,
    /// Times in which the sources are off, `[from, to)`.
    #[serde(default)]
    pub pauses: Vec<(Time, Time)>,
    /// The flow in the other direction whose receiver sits in the same endpoint as this one's sender.
    #[serde(default)]
    pub pair: Option<String>,
}

/// The endpoint's own limit.
const fn queue_limit() -> Span {
    Span::from_secs(2)
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
}

/// Feedback from the receiver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackSpec {
    /// Format of per-packet feedback.
    pub format: FeedbackFormat,
    /// Time between two reports.
    pub interval: Span,
    /// The least time between two RTCP reports of either end, before its randomisation (RFC 3550 section
    /// 6.3.1); 360 s over the session bandwidth in kbit/s if not given (section 6.2).
    #[serde(default)]
    pub reports: Option<Span>,
    /// Which rules say when RTCP may be sent.
    #[serde(default)]
    pub profile: RtcpMode,
    /// The session bandwidth, of which RTCP may use 5 %; the largest rate of the media if not given.
    #[serde(default)]
    pub bandwidth: Option<Rate>,
    /// Under AVPF, whether early packets are feedback alone (RFC 5506).
    #[serde(default)]
    pub reduced_size: bool,
    /// Under AVPF, the least time between full packets before its randomisation (T_rr_interval, RFC 4585
    /// section 3.5.3); zero: none.
    #[serde(default)]
    pub rr_interval: Span,
}

/// Format of per-packet feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackFormat {
    /// Transport-wide (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Twcc,
    /// RFC 8888.
    Ccfb,
    /// None: receiver reports only.
    None,
}

/// Playout at the receiver.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlayoutSpec {
    /// A fixed delay after the first frame.
    Fixed {
        /// The delay.
        delay: Span,
    },
    /// Grows when a frame is late, shrinks slowly.
    Adaptive {
        /// Never less.
        min: Span,
        /// Never more.
        max: Span,
    },
}

/// The video stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoSpec {
    /// Where its frames come from.
    pub source: VideoSource,
    /// Encoder's least rate.
    pub min: Rate,
    /// Encoder's largest rate.
    pub max: Rate,
    /// Frames per second.
    pub fps: f64,
}

/// Where video frames come from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoSource {
    /// Always something to send.
    Greedy,
    /// Every frame exactly target / fps.
    Ideal,
    /// RFC 8593 section 4.
    Statistical {
        /// Reaction latency (tau_v).
        tau_v: Span,
        /// Length of a transient in frames (K_d).
        transient_frames: u32,
        /// Size of the first frame of a transient in bytes (K_B).
        burst: u32,
        /// How large a change of the target, relative to the one before, starts a transient.
        #[serde(default = "tenth")]
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
        /// From each time since the flow's start on the rate beside it; both count what `packet_size` counts.
        schedule: Vec<(Time, Rate)>,
    },
    /// Recorded frame sizes: a ladder of (encoder's rate, sizes in bytes).
    Frames {
        /// Rungs in ascending order of rate.
        rungs: Vec<(Rate, Vec<u32>)>,
        /// Frames left out at the beginning when the recording starts again.
        skip: u32,
        /// Frames from one key frame to the next, where frames are sent as they were recorded.
        #[serde(default)]
        group: Option<u32>,
    },
    /// An encoder in the loop.
    Encoder(EncoderSpec),
}

/// An encoder in the loop; who drives the engine makes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderSpec {
    /// Which one.
    pub codec: String,
    /// What the driver knows the pictures by.
    pub clip: String,
    /// Pixels of a line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Frames from one key frame to the next; 0: key frames only where they are asked for.
    pub group: u32,
}

/// The audio stream: constant rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AudioSpec {
    /// Encoder's rate.
    pub rate: Rate,
    /// Time in one packet.
    pub interval: Span,
    /// Talk spurts and pauses, of which only spurts are sent.
    #[serde(default)]
    pub spurts: Option<SpurtsSpec>,
}

/// Means of exponential talk spurts and pauses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpurtsSpec {
    /// Of a talk spurt.
    pub talk: Span,
    /// Of a pause.
    pub pause: Span,
}

/// UDP cross traffic.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSpec {
    /// When packets are sent.
    pub pattern: UdpPattern,
    /// Mean rate while on.
    pub rate: Rate,
    /// Bytes on the wire of a packet.
    pub packet_size: u32,
    /// From each time on another rate; empty: `rate` for ever.
    #[serde(default)]
    pub schedule: Vec<(Time, Rate)>,
}

/// When UDP packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpPattern {
    /// At equal distances.
    Cbr,
    /// At exponential distances.
    Poisson,
    /// At equal distances while on; times on and off are exponential.
    OnOff {
        /// Mean time on.
        on: Span,
        /// Mean time off.
        off: Span,
    },
}

/// TCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSpec {
    /// Congestion control.
    pub algorithm: TcpAlgorithm,
    /// What it carries.
    pub workload: TcpWorkload,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Least retransmission time-out (RFC 6298: 1 s).
    pub min_rto: Span,
    /// Whether every second segment is acknowledged (RFC 5681 section 4.2).
    pub delayed_ack: bool,
    /// Whether it begins with SYN and its answer (RFC 9293 section 3.5).
    pub handshake: bool,
    /// Receive window in bytes.
    pub receive_window: u64,
    /// Bytes on the wire of a full segment.
    pub packet_size: u32,
}

/// TCP congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TcpAlgorithm {
    /// Fast retransmit without fast recovery.
    Tahoe,
    /// RFC 5681.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 6675.
    Sack,
    /// RFC 9438 (with SACK).
    Cubic,
}

/// What a TCP connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpWorkload {
    /// Always more data.
    Long,
    /// So many bytes.
    File(u64),
    /// Downloads of uniform size, exponential idle times between (RFC 8868 section 4.4).
    Web {
        /// Least bytes.
        min: u64,
        /// Most bytes.
        max: u64,
        /// Mean idle time.
        idle: Span,
    },
}
