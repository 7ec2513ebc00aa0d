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
        "use of ECN: ECT(1) with reductions in proportion to the marks (`l4s`), ECT(0) with a fixed factor for a \
         mark (`classic`), or Not-ECT (`off`)",
        "ScreamV2Tx.cpp: isL4s";
    initial_window: u64, "bytes", Whole(200, 10_000_000), [10_000],
        "initial congestion window", "caller: 10000; 0 means 200 in ScreamV2Tx.cpp";
    min_window: u64, "bytes", Whole(0, 10_000_000), [2000],
        "minimum congestion window, or two segments if these are more", "caller: setCwndMinLow(2000)";
    beta_loss: f64, "", Number(0.1, 1.0), [0.7],
        "factor of the congestion window at a loss; 1: losses are ignored", "caller: 0.7; kLossBeta";
    beta_ecn: f64, "", Number(0.1, 1.0), [0.8],
        "factor of the congestion window at a mark under classic ECN", "caller: 0.8; kEcnCeBeta is 0.9";
    qdelay_target: f64, "s", Number(0.005, 0.3), [0.06],
        "target of the queueing delay: a delay above half the target has the effect of marks",
        "caller: 0.06; kQueueDelayTargetMin is 0.1";
    pacing_headroom: f64, "", Number(1.0, 10.0), [1.5],
        "pacing rate as a multiple of the target bit rate", "caller: 1.5; kPacketPacingHeadRoom";
    frame_pacing: f64, "", Number(1.0, 10.0), [1.5],
        "maximum extra factor on the pacing rate while a frame exceeds the size that the target bit rate allows",
        "caller: 1.5; kMaxAdaptivePacingRateScale";
    relaxed_pacing: f64, "", Number(1.0, 100.0), [5.0],
        "maximum extra factor on the pacing rate, used from 0.8 of the maximum target bit rate on; 1: none",
        "kMaxRelaxedPacingFactor; its simulators call enableRelaxedPacing(true)";
    head_room: f64, "", Number(1.0, 10.0), [2.0],
        "upper bound of the window's growth: this multiple of the bytes in flight, plus a segment",
        "caller: 2.0; kBytesInFlightHeadRoom";
    mul_increase: f64, "", Number(0.0, 1.0), [0.05],
        "upper bound of the multiplicative increase per round trip, as a fraction of the window, beside the growth \
         by a segment",
        "caller: 0.05; kMultiplicativeIncreaseScalefactor";
    window_headroom: f64, "", Number(1.5, 10.0), [3.0],
        "upper bound of the bytes in flight where the delay does not vary, as a multiple of the window; 1.5 where it \
         varies",
        "caller: 3.0; kMinWindowHeadroom";
    post_congestion_rtts: f64, "round trips", Number(1.0, 10_000.0), [200.0],
        "time after congestion until the multiplicative increase is back in full", "kPostCongestionDelayRtts";
    policer: bool, "", Flag, [false],
        "whether losses without queueing delay limit the window", "enableRatePolicerProtection, off";
    beta_policer: f64, "", Number(0.1, 1.0), [0.8],
        "with `policer`: limit of the window after a loss without queueing delay, as a fraction of the mean of window \
         and inflection point",
        "kBetaLossPolicer";
    competing_flows: bool, "", Flag, [false],
        "whether the target of the queueing delay grows in competition with flows that fill the queue",
        "caller: enableSbd is false";
    frame_stamps: bool, "", Flag, [true],
        "whether the time between a packet's frame and the newest frame is added to the time after which the packet \
         is lost; few losses are then found before the packet is 512 packets behind",
        "addTransmitted: timeStamp, which its sender and simulators hand over (0 by default: not)";
    rate_scale: bool, "", Flag, [false],
        "whether the target bit rate is corrected, by up to a fifth, for an encoder whose rate differs from the target",
        "isAdaptiveTargetRateScale, on by default";
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
