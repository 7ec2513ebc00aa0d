//! Settings of SCReAM version 1 (RFC 8298).

use crate::scream::settings::Marks;
use crate::settings::{Kind, SettingsError, resolve, settings, unknown_preset};
use serde_json::Value;

/// Name of SCReAM, version 1.
pub const SCREAM_V1: &str = "scream-v1";

/// Names of the presets.
pub const PRESETS: &[&str] = &["rfc8298"];

use Kind::{Flag, Number};

// Each block is a setting: name, type, unit, allowed values, [rfc8298], meaning, source.
settings! {
    ecn: Marks, "", Kind::Choice(&["classic", "off"]), [Marks::Classic],
        "use of ECN: ECT(0) with a reaction to each mark (`classic`), or Not-ECT (`off`)",
        "section 4.1.2.1; L4S is of version 2";
    // -- the congestion window -----------------------------------------------------------------------
    min_cwnd: f64, "bytes", Number(100.0, 1e6), [3000.0],
        "minimum and initial congestion window", "section 4.1.1.1: MIN_CWND";
    mss: f64, "bytes", Number(100.0, 65_535.0), [1000.0], "maximum segment size", "section 4.1.1.1: MSS";
    gain: f64, "", Number(0.0, 10.0), [1.0],
        "gain of the congestion window's adjustment to the queueing delay", "section 4.1.1.1: GAIN";
    beta_loss: f64, "", Number(0.1, 1.0), [0.8],
        "factor of the congestion window at a loss", "section 4.1.1.1: BETA_LOSS";
    beta_ecn: f64, "", Number(0.1, 1.0), [0.9],
        "factor of congestion window and target at a mark", "section 4.1.1.1: BETA_ECN";
    head_room: f64, "", Number(1.0, 10.0), [1.1],
        "upper bound of the congestion window, as a multiple of the most bytes in flight in the last 5 s",
        "section 4.1.1.1: MAX_BYTES_IN_FLIGHT_HEAD_ROOM";
    qdelay_target: f64, "s", Number(0.005, 1.0), [0.1],
        "minimum target of the queueing delay", "section 4.1.1.1: QDELAY_TARGET_LO";
    qdelay_target_max: f64, "s", Number(0.005, 4.0), [0.4],
        "maximum target of the queueing delay, beside flows that fill queues", "section 4.1.1.1: QDELAY_TARGET_HI";
    competing_flows: bool, "", Flag, [true],
        "whether the target of the queueing delay grows beside flows that fill queues",
        "section 4.1.2.3, which MAY be turned off";
    qdelay_weight: f64, "", Number(1e-4, 1.0), [0.1],
        "weight of a sample in the average of the queueing delay", "section 4.1.1.1: QDELAY_WEIGHT";
    trend_threshold: f64, "", Number(0.0, 1.0), [0.2],
        "trend of the queueing delay from which on fast increase ends", "section 4.1.1.1: QDELAY_TREND_TH";
    trend_low: f64, "", Number(0.0, 1.0), [0.2],
        "trend of the queueing delay below which fast increase may resume", "section 4.1.1.1: QDELAY_TREND_LO";
    resume_after: f64, "s", Number(0.1, 600.0), [5.0],
        "time with a trend below `trend_low` after which fast increase resumes",
        "section 4.1.1.1: T_RESUME_FAST_INCREASE";
    reordering: f64, "ms", Number(0.0, 1000.0), [0.0],
        "initial reordering window, after which a missing packet is lost; reordering extends the window to at most a \
         round trip",
        "section 4.1.2.4, which names no first value; RFC 8985 section 6.2: 0 until reordering is seen";
    pace_min: f64, "bit/s", Number(1000.0, 1e8), [50_000.0],
        "minimum pacing rate", "section 4.1.1.1: RATE_PACE_MIN";
    restart: f64, "s", Number(0.05, 60.0), [0.5],
        "time without departures after which the bytes in flight are given up, so that lost feedback does not keep \
         the window closed",
        "ScreamTx.cpp, isOkToTransmit; the RFC leaves it open";
    // -- the encoder's target ------------------------------------------------------------------------
    adjust_interval: f64, "s", Number(0.02, 10.0), [0.2],
        "time between two adjustments of the target", "section 4.1.1.1: RATE_ADJUST_INTERVAL";
    ramp_up: f64, "bit/s per s", Number(1000.0, 1e8), [200_000.0],
        "upper bound of the target's growth, which is also at most half the target per second",
        "section 4.1.1.1: RAMP_UP_SPEED";
    beta_rate: f64, "", Number(0.1, 1.0), [0.9], "factor of the target at a loss", "section 4.1.1.1: BETA_R";
    congestion_guard: f64, "", Number(0.0, 1.0), [0.1],
        "weight with which a trend of the queueing delay holds the target back",
        "section 4.1.1.1: PRE_CONGESTION_GUARD";
    queue_factor: f64, "", Number(0.0, 2.0), [1.0],
        "weight with which media waiting in the pacer holds the target back", "section 4.1.1.1: TX_QUEUE_SIZE_FACTOR";
    queue_delay: f64, "s", Number(0.0, 10.0), [0.02],
        "delay of media in the pacer above which the target is reduced", "section 4.1.1.1: RTP_QDELAY_TH";
    queue_scale: f64, "", Number(0.1, 1.0), [0.95],
        "factor of the target while media waits for longer than `queue_delay`",
        "section 4.1.1.1: TARGET_RATE_SCALE_RTP_QDELAY";
}

const RFC8298: Settings = preset(0);

impl Settings {
    /// Settings of a preset with `overrides` (an object or null).
    ///
    /// # Errors
    /// Fails if there is no such preset or setting, or a value is wrong.
    pub fn with(preset: &str, overrides: &Value) -> Result<Self, SettingsError> {
        match preset {
            "rfc8298" => resolve(SCREAM_V1, TABLE, &RFC8298, overrides),
            _ => Err(unknown_preset(SCREAM_V1, preset, PRESETS)),
        }
    }
}
