//! Settings of libwebrtc's controller: the values of its field trials, and those that the call sets.
//!
//! All other numbers are constants beside the code that uses them.

use crate::Content;
use crate::settings::{Kind, settings, words};
use serde_json::Value;

words! {
    /// Effect of a full congestion window.
    Pushback:
    /// No congestion window.
    Off = "off",
    /// The encoder drops frames; the target stays.
    Frames = "frames",
    /// The target goes down.
    Rate = "rate",
}

use Kind::{Flag, Number, Whole};

settings! {
    // -- the call ----------------------------------------------------------------------------------------
    pacing_factor: f64, "", Number(1.0, 100.0), [2.5],
        "the pacer may send this times the target",
        "kDefaultPaceMultiplier; a call sets it (StreamsConfig::pacing_factor)";
    burst: f64, "ms", Number(0.0, 1000.0), [40.0],
        "the pacer sends at once what it may send in this time, at most 63 kB, whenever media comes to an empty queue",
        "PacingController::kDefaultBurstInterval; RTCConfiguration::pacer_burst_interval";
    alr_probing: bool, "", Flag, [true],
        "probe every alr_interval while the application is the limit",
        "StreamsConfig::requests_alr_probing; of a call, screen share asks for it";
    padding: f64, "bit/s", Number(0.0, 1e9), [0.0],
        "keep this much on the wire, up to the target",
        "StreamsConfig::max_padding_rate";
    least_allocated: f64, "bit/s", Number(0.0, 1e9), [0.0],
        "the least rate at which all streams can be sent: a lower bound of target and pacing",
        "StreamsConfig::min_total_allocated_bitrate, WebRTC-Bwe-MinAllocAsLowerBound";

    // -- delay -------------------------------------------------------------------------------------------
    trend_window: u64, "groups", Whole(10, 200), [20],
        "the line is fitted to this many groups of packets",
        "WebRTC-BweWindowSizeInPackets; kDefaultTrendlineWindowSize";
    beta: f64, "", Number(0.1, 0.999), [0.85],
        "on over-use the rate becomes this times the received rate, less 5 kbit/s",
        "WebRTC-BweBackOffFactor; kDefaultBackoffFactor";

    // -- losses ------------------------------------------------------------------------------------------
    loss_part: bool, "", Flag, [true],
        "whether the loss-based part of 2021 limits the rate; without it, that of before does",
        "WebRTC-Bwe-LossBasedBweV2 Enabled";
    loss_observation: f64, "ms", Number(1.0, 60_000.0), [250.0],
        "packets sent within this, or more, are one observation",
        "ObservationDurationLowerBound";
    loss_observations: u64, "", Whole(1, 15), [3],
        "the loss-based part has nothing to say before it has so many",
        "MinNumObservations";
    loss_weight: f64, "", Number(0.01, 1.0), [0.9],
        "weight of an observation over that of the next one",
        "TemporalWeightFactor, InstantUpperBoundTemporalWeightFactor";
    loss_up: f64, "", Number(1.0, 10.0), [1.02],
        "a candidate is this times the present estimate",
        "CandidateFactors";
    loss_down: f64, "", Number(0.01, 1.0), [0.95],
        "... and another one this",
        "CandidateFactors";
    loss_bias: f64, "", Number(0.0, 10.0), [0.0002],
        "how much a kbit/s of bandwidth is worth",
        "HigherBwBiasFactor";
    loss_log_bias: f64, "", Number(0.0, 10.0), [0.02],
        "... and a factor of e of it",
        "HigherLogBwBiasFactor";
    loss_preference: f64, "", Number(0.0, 0.999), [0.2],
        "where more than this is lost, less bandwidth is preferred",
        "LossThresholdOfHighBandwidthPreference";
    loss_inherent_start: f64, "", Number(0.0, 0.999), [0.01],
        "the inherent loss at first",
        "InitialInherentLossEstimate";
    loss_inherent_least: f64, "", Number(0.0, 0.999), [0.001],
        "the inherent loss is never less",
        "InherentLossLowerBound";
    loss_offset: f64, "", Number(0.0, 0.999), [0.05],
        "losses up to this may be inherent at any rate, and bound no rate",
        "InherentLossUpperBoundOffset, InstantUpperBoundLossOffset";
    loss_balance: f64, "bit/s", Number(1.0, 1e9), [100_000.0],
        "this over the rate may be inherent on top; this over the loss beyond the offset bounds the rate",
        "InherentLossUpperBoundBwBalance, InstantUpperBoundBwBalance";
    loss_newton: f64, "", Number(0.01, 1.0), [0.75],
        "length of the one step of Newton's method",
        "NewtonStepSize (NewtonIterations: 1)";
    loss_median_factor: f64, "", Number(0.0, 100.0), [2.0],
        "the worst observation counts where it was sent at this times the median rate",
        "MedianSendingRateFactor";
    loss_rampup: f64, "", Number(1.0, 100.0), [1.5],
        "while losses limit it, the estimate rises to at most this times the received rate",
        "BwRampupUpperBoundFactor";
    loss_rampup_hold: f64, "", Number(1.0, 100.0), [1.2],
        "... or to this, near the rate of the last hold",
        "BwRampupUpperBoundInHoldFactor";
    loss_hold_threshold: f64, "", Number(0.0, 100.0), [1.3],
        "near is a received rate below this times that rate",
        "BwRampupUpperBoundHoldThreshold";
    loss_increase: f64, "", Number(1.0, 100.0), [1.3],
        "the estimate rises by at most this factor in loss_increase_window",
        "MaxIncreaseFactor";
    loss_increase_window: f64, "ms", Number(1.0, 60_000.0), [300.0],
        "how long that holds",
        "DelayedIncreaseWindow";
    loss_hold_factor: f64, "", Number(0.0, 100.0), [2.0],
        "each hold lasts this times the one before, from 300 ms up to 60 s; 0: no hold",
        "HoldDurationFactor; kInitHoldDuration, kMaxHoldDuration";
    loss_padding: f64, "ms", Number(0.0, 60_000.0), [2000.0],
        "how long padding helps an increase; 0: not at all",
        "PaddingDuration";

    // -- no feedback -------------------------------------------------------------------------------------
    rtt_limit: f64, "ms", Number(0.0, 1e6), [3000.0],
        "back off when a round trip, or waiting for one, takes longer; 0: never",
        "WebRTC-Bwe-MaxRttLimit limit";
    rtt_factor: f64, "", Number(0.01, 1.0), [0.8],
        "factor of a back-off",
        "WebRTC-Bwe-MaxRttLimit fraction";
    rtt_interval: f64, "ms", Number(1.0, 60_000.0), [1000.0],
        "least time between two back-offs",
        "WebRTC-Bwe-MaxRttLimit interval";
    rtt_floor: f64, "bit/s", Number(0.0, 1e9), [5000.0],
        "no back-off below this",
        "WebRTC-Bwe-MaxRttLimit floor";

    // -- application-limited region ----------------------------------------------------------------------
    alr_usage: f64, "", Number(0.01, 1.0), [0.8],
        "the part of the target that is to be used",
        "AlrExperimentSettings, kDefaultProbingScreenshareBweSettings 1.0,2875,80,40,-60,3";
    alr_start: f64, "", Number(-1.0, 1.0), [0.4],
        "limited from this level of a budget of 500 ms on",
        "the same; AlrDetectorConfig itself says 0.80";
    alr_stop: f64, "", Number(-1.0, 1.0), [-0.6],
        "... until it is below this",
        "the same; AlrDetectorConfig itself says 0.50";

    // -- probing -----------------------------------------------------------------------------------------
    probe_first: f64, "", Number(1.0, 100.0), [3.0],
        "the first probe is this times the start rate",
        "WebRTC-Bwe-ProbingConfiguration p1";
    probe_second: f64, "", Number(0.0, 100.0), [6.0],
        "... and the second one this; 0: there is none",
        "p2";
    probe_step: f64, "", Number(1.0, 100.0), [2.0],
        "after a good result the next one is this times the result",
        "step_size";
    probe_further: f64, "", Number(0.0, 10.0), [0.7],
        "good is a result above this times what was probed",
        "further_probe_threshold";
    probe_duration: f64, "ms", Number(1.0, 10_000.0), [15.0],
        "a probe is at least so long",
        "min_probe_duration";
    probe_packets: u64, "packets", Whole(1, 1000), [5],
        "... and has at least so many packets",
        "min_probe_packets_sent";
    probe_spacing: f64, "ms", Number(0.001, 1000.0), [2.0],
        "least time between departures",
        "min_probe_delta";
    alr_interval: f64, "ms", Number(1.0, 1e6), [5000.0],
        "time between probes of a limited application",
        "alr_interval";
    alr_scale: f64, "", Number(1.0, 100.0), [2.0],
        "such a probe is this times the estimate",
        "alr_scale";
    loss_limited_scale: f64, "", Number(1.0, 100.0), [1.5],
        "while losses limit the estimate and it rises, no probe is above this times it",
        "loss_limited_scale";
    allocation_first: f64, "", Number(0.0, 100.0), [1.0],
        "when the sources want more: a probe at this times what they want; 0: none",
        "alloc_p1 (probe_max_allocation)";
    allocation_second: f64, "", Number(0.0, 100.0), [2.0],
        "... and one at this; 0: none",
        "alloc_p2";
    allocation_limit: f64, "", Number(1.0, 100.0), [2.0],
        "... neither above this times the estimate",
        "alloc_current_bwe_limit";

    // -- congestion window -------------------------------------------------------------------------------
    pushback: Pushback, "", Pushback::KIND, [Pushback::Frames],
        "what more bytes in flight than the target carries in a round trip and window_extra do",
        "WebRTC-CongestionWindow QueueSize:350,MinBitrate:30000,DropFrame:true";
    window_extra: f64, "ms", Number(0.0, 60_000.0), [350.0],
        "the window is what the target carries in the shortest round trip of late, and this",
        "QueueSize";
    window_floor: f64, "bit/s", Number(0.0, 1e9), [30_000.0],
        "no pushback below this",
        "MinBitrate";
}

impl Default for Settings {
    fn default() -> Self {
        preset(0)
    }
}

impl Settings {
    /// Settings that a call makes (`video_send_stream_impl.cc`). For a camera: `kStrictPacingMultiplier`, and no probes in
    /// the application-limited region. For a shared screen: the pacing factor of `kDefaultProbingScreenshareBweSettings`
    /// (`alr_experiment.cc`), and such probes.
    #[must_use]
    pub fn in_call(content: Content) -> Value {
        match content {
            Content::Camera => serde_json::json!({"pacing_factor": 1.1, "alr_probing": false}),
            Content::Screen => serde_json::json!({"pacing_factor": 1.0, "alr_probing": true}),
        }
    }
}
