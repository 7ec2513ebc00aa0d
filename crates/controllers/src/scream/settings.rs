//! Settings of SCReAM version 2 by its draft, with the values of each preset.

use crate::settings::{Kind, SettingsError, resolve, settings, unknown_preset, words};
use serde_json::Value;
use tidegate_core::control::{EcnUse, FeedbackKind, Needs, ReportRule};

/// Name of SCReAM, version 2.
pub const SCREAM: &str = "scream";

words! {
    /// Use of ECN marks.
    Marks:
    /// ECT(1): frequent marks and a proportional response (L4S).
    L4s = "l4s",
    /// ECT(0): a fixed response to each mark, weaker than to a loss.
    Classic = "classic",
    /// Not-ECT: no marks.
    Off = "off",
}

impl Marks {
    /// Needs of SCReAM: per-packet reports as often as its documents have them, and the codepoint for such marks.
    pub(crate) const fn needs(self) -> Needs {
        let ecn = match self {
            Self::L4s => EcnUse::Ect1,
            Self::Classic => EcnUse::Ect0,
            Self::Off => EcnUse::Off,
        };
        Needs { ecn, interval: ReportRule::Frame, ..Needs::feedback(FeedbackKind::PerPacket) }
    }
}

use Kind::{Flag, Number};

// Each block is a setting: name, type, unit, allowed values, [draft, libwebrtc], meaning, source. "The draft" is
// draft-ietf-ccwg-rfc8298bis-screamv2 of August 2026; libwebrtc is its modules/congestion_controller/scream.
settings! {
    ecn: Marks, "", Marks::KIND, [Marks::L4s, Marks::L4s],
        "use of ECN: ECT(1) with reductions in proportion to the marks (`l4s`), ECT(0) with a fixed factor for a \
         mark (`classic`), or Not-ECT (`off`)",
        "ours: the draft has IS_L4S (false) and says what either does";
    // -- the reference window ------------------------------------------------------------------------
    min_ref_wnd: f64, "bytes", Number(100.0, 1e6), [3000.0, 3000.0],
        "minimum and initial reference window", "draft: MIN_REF_WND; libwebrtc: MinRefWindow";
    mss: f64, "bytes", Number(100.0, 65_535.0), [1000.0, 1000.0],
        "maximum segment size, by which the reference window grows per round trip",
        "draft: MSS; libwebrtc: MaxSegmentSize";
    virtual_rtt: f64, "s", Number(0.001, 1.0), [0.025, 0.025],
        "round trip as which shorter ones are treated, so that shares do not depend on the round trip",
        "draft: VIRTUAL_RTT; libwebrtc: VirtualRtt";
    beta_loss: f64, "", Number(0.1, 1.0), [0.7, 0.7],
        "factor of the reference window at a loss", "draft: BETA_LOSS; libwebrtc: BetaLoss";
    beta_ecn: f64, "", Number(0.1, 1.0), [0.8, 0.8],
        "factor of the reference window at a mark under classic ECN", "draft: BETA_ECN; libwebrtc has no classic ECN";
    l4s_gain_up: f64, "", Number(1e-4, 1.0), [0.125, 0.0625],
        "weight of a new share of marked packets in the average while the share is higher",
        "draft: L4S_AVG_G_UP; libwebrtc: L4sAvgG";
    l4s_gain_down: f64, "", Number(1e-4, 1.0), [0.0078125, 0.0625],
        "fraction by which the average share of marked packets falls per step while the new share is lower",
        "draft: L4S_AVG_G_DOWN; libwebrtc: L4sAvgG";
    inflection_factor: f64, "", Number(0.1, 100.0), [8.0, 2.0],
        "reciprocal of the distance from the last reduced window within which growth and back-off are slow (8: an \
         eighth of the window)",
        "draft: scl_t *= 8; libwebrtc: BackoffScaleFactorCloseToRefWindowI";
    post_congestion_rtts: f64, "round trips", Number(1.0, 10_000.0), [100.0, 100.0],
        "time after losses and marks until the multiplicative increase is back in full",
        "draft: POST_CONGESTION_DELAY_RTTS; libwebrtc: PostCongestionDelayRtts";
    mul_increase: f64, "", Number(0.0, 1.0), [0.02, 0.02],
        "upper bound of the multiplicative increase per round trip, as a fraction of the window, beside the growth \
         by a segment",
        "draft: MUL_INCREASE_FACTOR; libwebrtc: MultiplicativeIncreaseFactor";
    head_room: f64, "", Number(1.0, 10.0), [1.5, 1.1],
        "upper bound of the window's growth: this multiple of the bytes in flight, plus a segment",
        "draft: BYTES_IN_FLIGHT_HEAD_ROOM; libwebrtc: BytesInFlightHeadRoom";
    qdelay_target: f64, "s", Number(0.005, 1.0), [0.06, 0.1],
        "target of the queueing delay: the window is reduced from half the target on, and is halved at the target",
        "draft: QDELAY_TARGET_LO; libwebrtc: QDelayTarget";
    qdelay_gain: f64, "", Number(1e-4, 1.0), [0.25, 0.25],
        "weight of a higher queueing delay in the average, which falls at once with a lower one",
        "draft: QDELAY_AVG_G; libwebrtc: QDelayAvgG";
    reordering: f64, "ms", Number(0.0, 1000.0), [0.0, 0.0],
        "initial reordering window, after which a missing packet is lost; reordering extends the window to at most a \
         round trip",
        "draft section \"Detecting Lost Data Units\", which names no first value; RFC 8985 section 6.2: 0 until reordering is seen";
    // -- sending -------------------------------------------------------------------------------------
    overhead_min: f64, "", Number(1.0, 10.0), [1.5, 1.5],
        "upper bound of the bytes in flight where the delay varies, as a multiple of the reference window",
        "draft: REF_WND_OVERHEAD_MIN";
    overhead_max: f64, "", Number(1.0, 10.0), [3.0, 3.0],
        "upper bound of the bytes in flight where the delay does not vary, or without `reduce_jitter`, as a multiple \
         of the reference window",
        "draft: REF_WND_OVERHEAD_MAX";
    pacing_headroom: f64, "", Number(1.0, 10.0), [1.5, 1.5],
        "pacing rate as a multiple of the target bit rate", "draft: PACKET_PACING_HEADROOM";
    relaxed_pacing: f64, "", Number(1.0, 100.0), [4.0, 4.0],
        "maximum extra factor on the pacing rate, reached where the target bit rate is at its maximum",
        "draft: MAX_RELAXED_PACING_FACTOR";
    relaxed_from: f64, "", Number(0.0, 0.99), [0.8, 0.8],
        "target bit rate from which on `relaxed_pacing` is used, as a fraction of the maximum target bit rate",
        "draft: RELAXED_PACING_LIMIT_LOW";
    pace_min: f64, "bit/s", Number(1000.0, 1e8), [50_000.0, 50_000.0],
        "lower bound of the rate from which the pacing rate is calculated", "draft: RATE_PACE_MIN";
    restart: f64, "s", Number(0.05, 60.0), [0.5, 0.5],
        "time without departures after which the bytes in flight are given up, so that lost feedback does not keep \
         the window closed",
        "ScreamV2Tx.cpp, isOkToTransmit: 32768/65536 s; the draft leaves it open";
    // -- the encoder's target ------------------------------------------------------------------------
    packet_overhead: f64, "bytes", Number(0.0, 1000.0), [20.0, 0.0],
        "size of the headers for which the target bit rate leaves room in each packet",
        "draft: PACKET_OVERHEAD; not in libwebrtc";
    rate_margin: f64, "", Number(1.0, 4.0), [1.2, 1.0],
        "margin of the target bit rate: divisor of the reference window per round trip",
        "draft section \"Media Rate Control\": 1.2; not in libwebrtc";
    rate_adjust_gain: f64, "", Number(0.0, 1.0), [0.0625, 0.0],
        "gain of the reduction of the target bit rate while media waits for longer than a quarter of a frame period",
        "draft: RATE_ADJUST_GAIN; not in libwebrtc";
    frame_size_gain: f64, "", Number(0.0, 1.0), [0.015625, 0.0],
        "weight of a frame in the average excess of frame sizes", "draft: FRAME_SIZE_DEV_ALPHA; not in libwebrtc";
    // -- additional mechanisms of the draft ----------------------------------------------------------
    clock_drift: bool, "", Flag, [true, true],
        "whether a base delay that seems to have grown is measured anew, with half the target for five round trips",
        "draft section \"Clock drift issues and remedies\"";
    drift_gain: f64, "", Number(1e-5, 1.0), [0.00390625, 0.00390625],
        "weight of a round trip's lowest queueing delay in the average that shows clock drift",
        "draft: QDELAY_MIN_AVG_ALPHA";
    conditional_loss: bool, "", Flag, [false, false],
        "whether a loss reduces the window only at a high loss rate (`loss_threshold`) or with a standing queue",
        "draft section \"Link layer losses and rate policers\"";
    loss_threshold: f64, "", Number(1e-4, 1.0), [0.01, 0.01],
        "with `conditional_loss`: loss rate above which a loss always reduces the window",
        "draft: LOSS_RATE_THRESHOLD";
    policer: bool, "", Flag, [false, false],
        "with `conditional_loss`: whether losses without queueing delay limit the window",
        "draft section \"Link layer losses and rate policers\"";
    policer_threshold: f64, "", Number(1e-3, 1.0), [0.1, 0.1],
        "with `policer`: loss rate above which losses without queueing delay limit the window",
        "draft: LOSS_RATE_THRESHOLD_POLICER";
    beta_policer: f64, "", Number(0.1, 1.0), [0.9, 0.9],
        "with `policer`: limit of the window after a loss without queueing delay, as a fraction of the window; the \
         limit rises by a thousandth per round trip",
        "draft: BETA_LOSS_POLICER";
    undershoot: bool, "", Flag, [false, false],
        "whether the window is reduced less while the target bit rate is low (`acked_margin`)",
        "draft section \"Reference window undershoot at congestion\"";
    acked_margin: f64, "", Number(0.0, 1.0), [0.8, 0.8],
        "with `undershoot`: target bit rate below which the target is low, as a fraction of the acknowledged rate",
        "draft: ACKED_BITRATE_MARGIN";
    low_target_scale: f64, "", Number(0.0, 1.0), [0.25, 0.25],
        "with `undershoot`: factor on each reduction of the window by L4S marks or delay while the target bit rate is \
         low (`acked_margin`)",
        "draft: BACKOFF_SCALE_LOW_TARGET_RATE";
    competing_flows: bool, "", Flag, [false, false],
        "whether the target of the queueing delay grows in competition with flows that fill the queue",
        "draft section \"Competing Flows Compensation\", optional";
    qdelay_target_max: f64, "s", Number(0.005, 4.0), [0.4, 0.4],
        "with `competing_flows`: upper bound of the target of the queueing delay", "draft: QDELAY_TARGET_HI";
    reduce_jitter: bool, "", Flag, [false, false],
        "whether a varying delay reduces the window's growth and the bytes in flight beyond the window",
        "draft: REDUCE_JITTER";
    jitter_gain: f64, "", Number(1e-4, 1.0), [0.03125, 0.03125],
        "with `reduce_jitter`: weight of a round trip in the average variation of the delay",
        "draft: QDELAY_DEV_AVG_G";
    jitter_min_max_gain: f64, "", Number(1e-4, 1.0), [0.0625, 0.0625],
        "with `reduce_jitter`: speed at which the highest and the lowest delay approach each other",
        "draft: QDELAY_MIN_MAX_AVG_G";
    jitter_threshold: f64, "s", Number(1e-4, 1.0), [0.01, 0.01],
        "with `reduce_jitter`: variation of the delay that reduces growth to a tenth",
        "draft: QDELAY_DEV_THRESHOLD";
}

const DRAFT: Settings = preset(0);
const LIBWEBRTC: Settings = preset(1);

impl Settings {
    /// Whether marks are those of L4S (IS_L4S).
    pub(crate) fn is_l4s(&self) -> bool {
        self.ecn == Marks::L4s
    }

    fn preset(name: &str, presets: &[&str]) -> Result<Self, SettingsError> {
        match name {
            "draft" => Ok(DRAFT),
            "libwebrtc" => Ok(LIBWEBRTC),
            _ => Err(unknown_preset(SCREAM, name, presets)),
        }
    }

    /// Settings of a preset with `overrides` (an object or null); `presets` are the names of all presets.
    ///
    /// # Errors
    /// Fails if there is no such preset or setting, or a value is wrong.
    pub fn with(preset: &str, presets: &[&str], overrides: &Value) -> Result<Self, SettingsError> {
        resolve(SCREAM, TABLE, &Self::preset(preset, presets)?, overrides)
    }
}
