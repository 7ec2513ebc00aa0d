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
        "the codepoint of packets and the answer to marks: ECT(1) and in proportion (`l4s`), ECT(0) and by a fixed factor (`classic`), or none (`off`)",
        "ours: the draft has IS_L4S (false) and says what either does";
    // -- the reference window ------------------------------------------------------------------------
    min_ref_wnd: f64, "bytes", Number(100.0, 1e6), [3000.0, 3000.0],
        "the least reference window, with which it begins", "draft: MIN_REF_WND; libwebrtc: MinRefWindow";
    mss: f64, "bytes", Number(100.0, 65_535.0), [1000.0, 1000.0],
        "the largest segment: the window grows by so much a round trip", "draft: MSS; libwebrtc: MaxSegmentSize";
    virtual_rtt: f64, "s", Number(0.001, 1.0), [0.025, 0.025],
        "round trips below it are treated as if they took so long, so that shares do not depend on them",
        "draft: VIRTUAL_RTT; libwebrtc: VirtualRtt";
    beta_loss: f64, "", Number(0.1, 1.0), [0.7, 0.7],
        "what a loss leaves of the window", "draft: BETA_LOSS; libwebrtc: BetaLoss";
    beta_ecn: f64, "", Number(0.1, 1.0), [0.8, 0.8],
        "what a mark leaves of it under classic ECN", "draft: BETA_ECN; libwebrtc has no classic ECN";
    l4s_gain_up: f64, "", Number(1e-4, 1.0), [0.125, 0.0625],
        "the weight of the share of marked packets in its average while that rises",
        "draft: L4S_AVG_G_UP; libwebrtc: L4sAvgG";
    l4s_gain_down: f64, "", Number(1e-4, 1.0), [0.0078125, 0.0625],
        "the part of the average that goes at each step while the share is below it", "draft: L4S_AVG_G_DOWN; libwebrtc: L4sAvgG";
    inflection_factor: f64, "", Number(0.1, 100.0), [8.0, 2.0],
        "both growth and back-off are slow while the window is within a part of this (an eighth, a half) of where it was last reduced",
        "draft: scl_t *= 8; libwebrtc: BackoffScaleFactorCloseToRefWindowI";
    post_congestion_rtts: f64, "round trips", Number(1.0, 10_000.0), [100.0, 100.0],
        "after losses and marks the multiplicative increase comes back over so many round trips",
        "draft: POST_CONGESTION_DELAY_RTTS; libwebrtc: PostCongestionDelayRtts";
    mul_increase: f64, "", Number(0.0, 1.0), [0.02, 0.02],
        "the window grows by up to this part a round trip, beside a segment",
        "draft: MUL_INCREASE_FACTOR; libwebrtc: MultiplicativeIncreaseFactor";
    head_room: f64, "", Number(1.0, 10.0), [1.5, 1.1],
        "the window grows no further than this multiple of what was in flight, and a segment",
        "draft: BYTES_IN_FLIGHT_HEAD_ROOM; libwebrtc: BytesInFlightHeadRoom";
    qdelay_target: f64, "s", Number(0.005, 1.0), [0.06, 0.1],
        "queueing delay above half of it reduces the window: by half at the target",
        "draft: QDELAY_TARGET_LO; libwebrtc: QDelayTarget";
    qdelay_gain: f64, "", Number(1e-4, 1.0), [0.25, 0.25],
        "the weight of a delay in its average while that rises; it falls at once", "draft: QDELAY_AVG_G; libwebrtc: QDelayAvgG";
    reordering: f64, "ms", Number(0.0, 1000.0), [0.0, 0.0],
        "a missing packet is lost after so long; reordering makes it longer, to a round trip at most",
        "draft section \"Detecting Lost Data Units\", which names no first value; RFC 8985 section 6.2: 0 until reordering is seen";
    // -- sending -------------------------------------------------------------------------------------
    overhead_min: f64, "", Number(1.0, 10.0), [1.5, 1.5],
        "at least this multiple of the window may be in flight", "draft: REF_WND_OVERHEAD_MIN";
    overhead_max: f64, "", Number(1.0, 10.0), [3.0, 3.0],
        "the same where the delay does not vary, or jitter is not looked at", "draft: REF_WND_OVERHEAD_MAX";
    pacing_headroom: f64, "", Number(1.0, 10.0), [1.5, 1.5],
        "packets are paced at this multiple of the target", "draft: PACKET_PACING_HEADROOM";
    relaxed_pacing: f64, "", Number(1.0, 100.0), [4.0, 4.0],
        "and at up to so many times that where the target is at its maximum", "draft: MAX_RELAXED_PACING_FACTOR";
    relaxed_from: f64, "", Number(0.0, 0.99), [0.8, 0.8],
        "beginning at this part of the maximum", "draft: RELAXED_PACING_LIMIT_LOW";
    pace_min: f64, "bit/s", Number(1000.0, 1e8), [50_000.0, 50_000.0],
        "the least rate that pacing is made of", "draft: RATE_PACE_MIN";
    restart: f64, "s", Number(0.05, 60.0), [0.5, 0.5],
        "what is in flight is given up when nothing has left for so long, so that lost feedback does not keep the window shut",
        "ScreamV2Tx.cpp, isOkToTransmit: 32768/65536 s; the draft leaves it open";
    // -- the encoder's target ------------------------------------------------------------------------
    packet_overhead: f64, "bytes", Number(0.0, 1000.0), [20.0, 0.0],
        "headers for which the target leaves room", "draft: PACKET_OVERHEAD; not in libwebrtc";
    rate_margin: f64, "", Number(1.0, 4.0), [1.2, 1.0],
        "the target is window over round trip, divided by this", "draft section \"Media Rate Control\": 1.2; not in libwebrtc";
    rate_adjust_gain: f64, "", Number(0.0, 1.0), [0.0625, 0.0],
        "how fast the target goes down while media waits for longer than a quarter of a frame period",
        "draft: RATE_ADJUST_GAIN; not in libwebrtc";
    frame_size_gain: f64, "", Number(0.0, 1.0), [0.015625, 0.0],
        "the weight of a frame in the average of how much frames are too large", "draft: FRAME_SIZE_DEV_ALPHA; not in libwebrtc";
    // -- additional mechanisms of the draft ----------------------------------------------------------
    clock_drift: bool, "", Flag, [true, true],
        "whether a base delay that seems to have grown is measured anew, with half the target for five round trips",
        "draft section \"Clock drift issues and remedies\"";
    drift_gain: f64, "", Number(1e-5, 1.0), [0.00390625, 0.00390625],
        "the weight of a round trip's least delay in the average that tells", "draft: QDELAY_MIN_AVG_ALPHA";
    conditional_loss: bool, "", Flag, [false, false],
        "whether a loss reduces the window only where many packets are lost or a queue stands",
        "draft section \"Link layer losses and rate policers\"";
    loss_threshold: f64, "", Number(1e-4, 1.0), [0.01, 0.01],
        "how many are many", "draft: LOSS_RATE_THRESHOLD";
    policer: bool, "", Flag, [false, false],
        "whether losses without a queue bound the window (under `conditional_loss`)",
        "draft section \"Link layer losses and rate policers\"";
    policer_threshold: f64, "", Number(1e-3, 1.0), [0.1, 0.1],
        "above this share of losses", "draft: LOSS_RATE_THRESHOLD_POLICER";
    beta_policer: f64, "", Number(0.1, 1.0), [0.9, 0.9],
        "what of the window is the bound, which rises by a thousandth a round trip", "draft: BETA_LOSS_POLICER";
    undershoot: bool, "", Flag, [false, false],
        "whether the window is reduced less while the target is below what is acknowledged",
        "draft section \"Reference window undershoot at congestion\"";
    acked_margin: f64, "", Number(0.0, 1.0), [0.8, 0.8],
        "that is to say below this part of it", "draft: ACKED_BITRATE_MARGIN";
    low_target_scale: f64, "", Number(0.0, 1.0), [0.25, 0.25],
        "by so much less", "draft: BACKOFF_SCALE_LOW_TARGET_RATE";
    competing_flows: bool, "", Flag, [false, false],
        "whether the delay's target grows beside flows that fill the queue", "draft section \"Competing Flows Compensation\", optional";
    qdelay_target_max: f64, "s", Number(0.005, 4.0), [0.4, 0.4],
        "to this at most", "draft: QDELAY_TARGET_HI";
    reduce_jitter: bool, "", Flag, [false, false],
        "whether growth and head room are less where the delay varies", "draft: REDUCE_JITTER";
    jitter_gain: f64, "", Number(1e-4, 1.0), [0.03125, 0.03125],
        "the weight of a round trip in how much it varies", "draft: QDELAY_DEV_AVG_G";
    jitter_min_max_gain: f64, "", Number(1e-4, 1.0), [0.0625, 0.0625],
        "how fast the highest and the least delay approach each other", "draft: QDELAY_MIN_MAX_AVG_G";
    jitter_threshold: f64, "s", Number(1e-4, 1.0), [0.01, 0.01],
        "delay that varies by this leaves no growth but a tenth", "draft: QDELAY_DEV_THRESHOLD";
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
