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
        "pacing rate as a multiple of the target bit rate",
        "kDefaultPaceMultiplier; a call sets it (StreamsConfig::pacing_factor)";
    burst: f64, "ms", Number(0.0, 1000.0), [40.0],
        "burst that the pacer sends at once when media comes to an empty queue, as time at the pacing rate; at most \
         63 kB",
        "PacingController::kDefaultBurstInterval; RTCConfiguration::pacer_burst_interval";
    alr_probing: bool, "", Flag, [true],
        "whether to probe every `alr_interval` while the application limits the rate",
        "StreamsConfig::requests_alr_probing; of a call, screen share asks for it";
    padding: f64, "bit/s", Number(0.0, 1e9), [0.0],
        "rate that padding keeps on the wire, at most the target bit rate",
        "StreamsConfig::max_padding_rate";
    least_allocated: f64, "bit/s", Number(0.0, 1e9), [0.0],
        "lowest rate at which all streams can be sent: a lower bound of target and pacing rate",
        "StreamsConfig::min_total_allocated_bitrate, WebRTC-Bwe-MinAllocAsLowerBound";

    // -- delay -------------------------------------------------------------------------------------------
    trend_window: u64, "groups", Whole(10, 200), [20],
        "number of groups of packets to which the trend line is fitted",
        "WebRTC-BweWindowSizeInPackets; kDefaultTrendlineWindowSize";
    beta: f64, "", Number(0.1, 0.999), [0.85],
        "rate after over-use, as a fraction of the received rate; 5 kbit/s are subtracted from the product",
        "WebRTC-BweBackOffFactor; kDefaultBackoffFactor";

    // -- losses ------------------------------------------------------------------------------------------
    loss_part: bool, "", Flag, [true],
        "whether the loss-based estimator of 2021 limits the rate; false: the one before it does",
        "WebRTC-Bwe-LossBasedBweV2 Enabled";
    loss_observation: f64, "ms", Number(1.0, 60_000.0), [250.0],
        "minimum duration of an observation, which counts the bytes sent and lost in this time",
        "ObservationDurationLowerBound";
    loss_observations: u64, "", Whole(1, 15), [3],
        "minimum number of observations before the loss-based estimator gives an estimate",
        "MinNumObservations";
    loss_weight: f64, "", Number(0.01, 1.0), [0.9],
        "weight of an observation relative to the next newer one",
        "TemporalWeightFactor, InstantUpperBoundTemporalWeightFactor";
    loss_up: f64, "", Number(1.0, 10.0), [1.02],
        "higher candidate for the estimate, as a multiple of the present estimate",
        "CandidateFactors";
    loss_down: f64, "", Number(0.01, 1.0), [0.95],
        "lower candidate for the estimate, as a fraction of the present estimate",
        "CandidateFactors";
    loss_bias: f64, "", Number(0.0, 10.0), [0.0002],
        "preference for candidates of more bandwidth: weight of the bandwidth in kbit/s",
        "HigherBwBiasFactor";
    loss_log_bias: f64, "", Number(0.0, 10.0), [0.02],
        "preference for candidates of more bandwidth: weight of the natural logarithm of the bandwidth in kbit/s",
        "HigherLogBwBiasFactor";
    loss_preference: f64, "", Number(0.0, 0.999), [0.2],
        "fraction lost above which candidates of less bandwidth are preferred",
        "LossThresholdOfHighBandwidthPreference";
    loss_inherent_start: f64, "", Number(0.0, 0.999), [0.01],
        "initial estimate of the inherent loss",
        "InitialInherentLossEstimate";
    loss_inherent_least: f64, "", Number(0.0, 0.999), [0.001],
        "lower bound of the inherent loss",
        "InherentLossLowerBound";
    loss_offset: f64, "", Number(0.0, 0.999), [0.05],
        "fraction lost up to which losses may be inherent at any rate, and limit no rate",
        "InherentLossUpperBoundOffset, InstantUpperBoundLossOffset";
    loss_balance: f64, "bit/s", Number(1.0, 1e9), [100_000.0],
        "rate B in two bounds: inherent loss at most `loss_offset` + B / bandwidth, estimate at most B / (fraction \
         lost - `loss_offset`)",
        "InherentLossUpperBoundBwBalance, InstantUpperBoundBwBalance";
    loss_newton: f64, "", Number(0.01, 1.0), [0.75],
        "factor of the one step of Newton's method that fits the inherent loss",
        "NewtonStepSize (NewtonIterations: 1)";
    loss_median_factor: f64, "", Number(0.0, 100.0), [2.0],
        "sending rate from which on the observation with most losses counts in the average loss, as a multiple of \
         the median rate",
        "MedianSendingRateFactor";
    loss_rampup: f64, "", Number(1.0, 100.0), [1.5],
        "upper bound of a rising estimate while losses limit it, as a multiple of the received rate",
        "BwRampupUpperBoundFactor";
    loss_rampup_hold: f64, "", Number(1.0, 100.0), [1.2],
        "value in place of `loss_rampup` while the received rate is near the rate of the last hold",
        "BwRampupUpperBoundInHoldFactor";
    loss_hold_threshold: f64, "", Number(0.0, 100.0), [1.3],
        "multiple of the rate of the last hold below which the received rate counts as near that rate",
        "BwRampupUpperBoundHoldThreshold";
    loss_increase: f64, "", Number(1.0, 100.0), [1.3],
        "largest factor by which the estimate rises within `loss_increase_window`",
        "MaxIncreaseFactor";
    loss_increase_window: f64, "ms", Number(1.0, 60_000.0), [300.0],
        "duration for which `loss_increase` limits the rise of the estimate",
        "DelayedIncreaseWindow";
    loss_hold_factor: f64, "", Number(0.0, 100.0), [2.0],
        "duration of a hold of the estimate as a multiple of the previous hold's, from 300 ms to 60 s; 0: no hold",
        "HoldDurationFactor; kInitHoldDuration, kMaxHoldDuration";
    loss_padding: f64, "ms", Number(0.0, 60_000.0), [2000.0],
        "duration of padding that supports an increase of the estimate; 0: no padding",
        "PaddingDuration";

    // -- no feedback -------------------------------------------------------------------------------------
    rtt_limit: f64, "ms", Number(0.0, 1e6), [3000.0],
        "round-trip time, plus the time since the last feedback while sending, above which the rate is reduced; 0: no \
         limit",
        "WebRTC-Bwe-MaxRttLimit limit";
    rtt_factor: f64, "", Number(0.01, 1.0), [0.8],
        "factor of the target at a reduction for a long round trip (`rtt_limit`)",
        "WebRTC-Bwe-MaxRttLimit fraction";
    rtt_interval: f64, "ms", Number(1.0, 60_000.0), [1000.0],
        "minimum time between two reductions for a long round trip (`rtt_limit`)",
        "WebRTC-Bwe-MaxRttLimit interval";
    rtt_floor: f64, "bit/s", Number(0.0, 1e9), [5000.0],
        "lower bound of the target at reductions for a long round trip (`rtt_limit`)",
        "WebRTC-Bwe-MaxRttLimit floor";

    // -- application-limited region ----------------------------------------------------------------------
    alr_usage: f64, "", Number(0.01, 1.0), [0.8],
        "rate at which the budget that detects a limited application fills, as a fraction of the target",
        "AlrExperimentSettings, kDefaultProbingScreenshareBweSettings 1.0,2875,80,40,-60,3";
    alr_start: f64, "", Number(-1.0, 1.0), [0.4],
        "level of the budget, which is full (1) after 500 ms, above which the application counts as limited",
        "the same; AlrDetectorConfig itself says 0.80";
    alr_stop: f64, "", Number(-1.0, 1.0), [-0.6],
        "level of the budget, which is full (1) after 500 ms, below which the application no longer counts as \
         limited",
        "the same; AlrDetectorConfig itself says 0.50";

    // -- probing -----------------------------------------------------------------------------------------
    probe_first: f64, "", Number(1.0, 100.0), [3.0],
        "rate of the first probe as a multiple of the start rate",
        "WebRTC-Bwe-ProbingConfiguration p1";
    probe_second: f64, "", Number(0.0, 100.0), [6.0],
        "rate of the second probe as a multiple of the start rate; 0: no second probe",
        "p2";
    probe_step: f64, "", Number(1.0, 100.0), [2.0],
        "rate of a further probe after a good result, as a multiple of that result",
        "step_size";
    probe_further: f64, "", Number(0.0, 10.0), [0.7],
        "fraction of the probed rate above which a result is good, and a further probe follows",
        "further_probe_threshold";
    probe_duration: f64, "ms", Number(1.0, 10_000.0), [15.0],
        "minimum duration of a probe",
        "min_probe_duration";
    probe_packets: u64, "packets", Whole(1, 1000), [5],
        "minimum number of packets of a probe",
        "min_probe_packets_sent";
    probe_spacing: f64, "ms", Number(0.001, 1000.0), [2.0],
        "minimum time between the departures of a probe",
        "min_probe_delta";
    alr_interval: f64, "ms", Number(1.0, 1e6), [5000.0],
        "time between probes while the application limits the rate",
        "alr_interval";
    alr_scale: f64, "", Number(1.0, 100.0), [2.0],
        "rate of a probe while the application limits the rate, as a multiple of the estimate",
        "alr_scale";
    loss_limited_scale: f64, "", Number(1.0, 100.0), [1.5],
        "upper bound of probes while losses limit a rising estimate, as a multiple of the estimate",
        "loss_limited_scale";
    allocation_first: f64, "", Number(0.0, 100.0), [1.0],
        "rate of the first probe when the sources want more than the estimate, as a multiple of the wanted rate; 0: \
         no probe",
        "alloc_p1 (probe_max_allocation)";
    allocation_second: f64, "", Number(0.0, 100.0), [2.0],
        "rate of the second probe when the sources want more than the estimate, as a multiple of the wanted rate; 0: \
         none",
        "alloc_p2";
    allocation_limit: f64, "", Number(1.0, 100.0), [2.0],
        "upper bound of probes when the sources want more than the estimate, as a multiple of the estimate",
        "alloc_current_bwe_limit";

    // -- congestion window -------------------------------------------------------------------------------
    pushback: Pushback, "", Pushback::KIND, [Pushback::Frames],
        "effect of more bytes in flight than the congestion window: the encoder drops frames (`frames`), the target \
         falls (`rate`), or none (`off`)",
        "WebRTC-CongestionWindow QueueSize:350,MinBitrate:30000,DropFrame:true";
    window_extra: f64, "ms", Number(0.0, 60_000.0), [350.0],
        "time that, added to the shortest recent round trip, gives the congestion window in bytes at the target \
         rate",
        "QueueSize";
    window_floor: f64, "bit/s", Number(0.0, 1e9), [30_000.0],
        "rate below which a full congestion window does not reduce the rate further",
        "MinBitrate";
}

impl Default for Settings {
    fn default() -> Self {
        preset(0)
    }
}

/// Pacing factor that a call sets (`video_send_stream_impl.cc`). For a camera: `kStrictPacingMultiplier`. For a shared
/// screen: that of `kDefaultProbingScreenshareBweSettings` (`alr_experiment.cc`).
pub(super) const fn call_pacing_factor(content: Content) -> f64 {
    match content {
        Content::Camera => 1.1,
        Content::Screen => 1.0,
    }
}

impl Settings {
    /// Settings that a call makes (`video_send_stream_impl.cc`): the pacing factor of its content, and probes in the
    /// application-limited region for a shared screen alone.
    #[must_use]
    pub fn in_call(content: Content) -> Value {
        let alr_probing = content == Content::Screen;
        serde_json::json!({"pacing_factor": call_pacing_factor(content), "alr_probing": alr_probing})
    }
}
