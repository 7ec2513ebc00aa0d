//! Settings of the preset `ericsson-2026-07`: those that EricssonResearch/scream leaves to its caller, with the values of
//! its simulators.

use crate::scream::settings::{Marks, SCREAM};
use crate::settings::{Kind, SettingsError, resolve, settings};
use serde_json::Value;

use Kind::{Flag, Number, Whole};

// Each block is a setting: name, type, unit, allowed values, [ericsson-2026-07], meaning, source. "Caller" is
// scream_simulator.cpp, with its arguments for the constructor of ScreamV2Tx.
settings! {
    ecn: Marks, "", Marks::KIND, [Marks::L4s],
        "the codepoint of packets and the answer to marks: ECT(1) and in proportion (`l4s`), ECT(0) and by a fixed factor (`classic`), or none (`off`)",
        "ScreamV2Tx.cpp: isL4s";
    initial_window: u64, "bytes", Whole(200, 10_000_000), [10_000],
        "the first window", "caller: 10000; 0 means 200 in ScreamV2Tx.cpp";
    min_window: u64, "bytes", Whole(0, 10_000_000), [2000],
        "the least window, if two segments are less", "caller: setCwndMinLow(2000)";
    beta_loss: f64, "", Number(0.1, 1.0), [0.7],
        "what a loss leaves of the window; 1: losses are ignored", "caller: 0.7; kLossBeta";
    beta_ecn: f64, "", Number(0.1, 1.0), [0.8],
        "what a mark leaves of it under classic ECN", "caller: 0.8; kEcnCeBeta is 0.9";
    qdelay_target: f64, "s", Number(0.005, 0.3), [0.06],
        "queueing delay above half of it is as marks are", "caller: 0.06; kQueueDelayTargetMin is 0.1";
    pacing_headroom: f64, "", Number(1.0, 10.0), [1.5],
        "packets are paced at this multiple of the target", "caller: 1.5; kPacketPacingHeadRoom";
    frame_pacing: f64, "", Number(1.0, 10.0), [1.5],
        "and at up to so many times that where a frame is larger than the target has it", "caller: 1.5; kMaxAdaptivePacingRateScale";
    relaxed_pacing: f64, "", Number(1.0, 100.0), [5.0],
        "and at up to so many times that from 0.8 of the largest target on; 1: no faster there",
        "kMaxRelaxedPacingFactor; its simulators call enableRelaxedPacing(true)";
    head_room: f64, "", Number(1.0, 10.0), [2.0],
        "the window grows no further than this multiple of what was in flight, and a segment", "caller: 2.0; kBytesInFlightHeadRoom";
    mul_increase: f64, "", Number(0.0, 1.0), [0.05],
        "the window grows by up to this part a round trip, beside a segment", "caller: 0.05; kMultiplicativeIncreaseScalefactor";
    window_headroom: f64, "", Number(1.5, 10.0), [3.0],
        "up to this multiple of the window may be in flight, and 1.5 where the delay varies", "caller: 3.0; kMinWindowHeadroom";
    post_congestion_rtts: f64, "round trips", Number(1.0, 10_000.0), [200.0],
        "after congestion the multiplicative increase comes back over so many round trips", "kPostCongestionDelayRtts";
    policer: bool, "", Flag, [false],
        "whether losses without a queue bound the window", "enableRatePolicerProtection, off";
    beta_policer: f64, "", Number(0.1, 1.0), [0.8],
        "what of the mean of window and inflection point is the bound", "kBetaLossPolicer";
    competing_flows: bool, "", Flag, [false],
        "whether the delay's target grows beside flows that fill the queue", "caller: enableSbd is false";
    frame_stamps: bool, "", Flag, [true],
        "whether a packet is late only when it is so beside the time between its frame and the newest one: few are then found before they are 512 packets behind",
        "addTransmitted: timeStamp, which its sender and simulators hand over (0 by default: not)";
    rate_scale: bool, "", Flag, [false],
        "whether an encoder that makes more or less than it is told is told otherwise, by up to a fifth", "isAdaptiveTargetRateScale, on by default";
}

/// Values of the preset.
pub(crate) const ERICSSON: Settings = preset(0);

/// Values of the preset with `overrides` (an object or null).
///
/// # Errors
/// Fails if there is no such setting, or a value is wrong.
pub fn with(overrides: &Value) -> Result<Settings, SettingsError> {
    resolve(SCREAM, TABLE, &ERICSSON, overrides)
}
