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
        "the codepoint of packets: ECT(0), and each mark is answered (`classic`), or none (`off`)",
        "section 4.1.2.1; L4S is of version 2";
    // -- the congestion window -----------------------------------------------------------------------
    min_cwnd: f64, "bytes", Number(100.0, 1e6), [3000.0],
        "the least congestion window, with which it begins", "section 4.1.1.1: MIN_CWND";
    mss: f64, "bytes", Number(100.0, 65_535.0), [1000.0], "the largest segment", "section 4.1.1.1: MSS";
    gain: f64, "", Number(0.0, 10.0), [1.0], "of the window's adjustment to the delay", "section 4.1.1.1: GAIN";
    beta_loss: f64, "", Number(0.1, 1.0), [0.8], "what a loss leaves of the window", "section 4.1.1.1: BETA_LOSS";
    beta_ecn: f64, "", Number(0.1, 1.0), [0.9], "what a mark leaves of window and target", "section 4.1.1.1: BETA_ECN";
    head_room: f64, "", Number(1.0, 10.0), [1.1],
        "the window is at most this multiple of what was in flight in the last 5 s",
        "section 4.1.1.1: MAX_BYTES_IN_FLIGHT_HEAD_ROOM";
    qdelay_target: f64, "s", Number(0.005, 1.0), [0.1],
        "the queueing delay that it aims at, at least", "section 4.1.1.1: QDELAY_TARGET_LO";
    qdelay_target_max: f64, "s", Number(0.005, 4.0), [0.4],
        "and at most, beside flows that fill queues", "section 4.1.1.1: QDELAY_TARGET_HI";
    competing_flows: bool, "", Flag, [true],
        "whether it aims at more beside flows that fill queues", "section 4.1.2.3, which MAY be turned off";
    qdelay_weight: f64, "", Number(1e-4, 1.0), [0.1],
        "the weight of a sample in the average of the delay", "section 4.1.1.1: QDELAY_WEIGHT";
    trend_threshold: f64, "", Number(0.0, 1.0), [0.2],
        "a trend of the delay that ends fast increase", "section 4.1.1.1: QDELAY_TREND_TH";
    trend_low: f64, "", Number(0.0, 1.0), [0.2],
        "below which it is resumed", "section 4.1.1.1: QDELAY_TREND_LO";
    resume_after: f64, "s", Number(0.1, 600.0), [5.0],
        "after so long", "section 4.1.1.1: T_RESUME_FAST_INCREASE";
    reordering: f64, "ms", Number(0.0, 1000.0), [0.0],
        "a missing packet is lost after so long; reordering makes it longer, to a round trip at most",
        "section 4.1.2.4, which names no first value; RFC 8985 section 6.2: 0 until reordering is seen";
    pace_min: f64, "bit/s", Number(1000.0, 1e8), [50_000.0],
        "the least pacing rate", "section 4.1.1.1: RATE_PACE_MIN";
    restart: f64, "s", Number(0.05, 60.0), [0.5],
        "what is in flight is given up when nothing has left for so long, so that lost feedback does not keep the window shut",
        "ScreamTx.cpp, isOkToTransmit; the RFC leaves it open";
    // -- the encoder's target ------------------------------------------------------------------------
    adjust_interval: f64, "s", Number(0.02, 10.0), [0.2],
        "time between two adjustments of the target", "section 4.1.1.1: RATE_ADJUST_INTERVAL";
    ramp_up: f64, "bit/s per s", Number(1000.0, 1e8), [200_000.0],
        "how fast the target may grow, and no faster than by half of it a second", "section 4.1.1.1: RAMP_UP_SPEED";
    beta_rate: f64, "", Number(0.1, 1.0), [0.9], "what a loss leaves of the target", "section 4.1.1.1: BETA_R";
    congestion_guard: f64, "", Number(0.0, 1.0), [0.1],
        "how much a trend of the delay holds the target back", "section 4.1.1.1: PRE_CONGESTION_GUARD";
    queue_factor: f64, "", Number(0.0, 2.0), [1.0],
        "how much media that waits holds it back", "section 4.1.1.1: TX_QUEUE_SIZE_FACTOR";
    queue_delay: f64, "s", Number(0.0, 10.0), [0.02],
        "media that waits for longer lowers the target", "section 4.1.1.1: RTP_QDELAY_TH";
    queue_scale: f64, "", Number(0.1, 1.0), [0.95], "to this part", "section 4.1.1.1: TARGET_RATE_SCALE_RTP_QDELAY";
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
