//! The target and internals of the sender's controller from an event log, under the names that tidegate's controllers
//! use.

use crate::event_log::EventLog;
use crate::point::MILLI;
use crate::record::ControllerTrace;
use tidegate_core::Rate;

/// Maps the detector's state in an event log (`DelayBasedBweUpdates.DetectorState` of `rtc_event_log2.proto`: 1 normal,
/// 2 under-use, 3 over-use) to the codes of `state` here: 0 normal, 1 over-use, 2 under-use.
const STATES: [Option<f64>; 4] = [None, Some(0.0), Some(2.0), Some(1.0)];

/// Target and internals of the controller of the end that wrote the log. The target is the estimate of libwebrtc's
/// loss-based events, which includes the delay-based estimate and probes; if SCReAM ran, it is SCReAM's target.
#[must_use]
pub(crate) fn of_log(log: &EventLog) -> ControllerTrace {
    let scream = log.scream.iter().filter_map(|state| {
        state.target_kbps.map(|kbps| (state.at * MILLI, Rate::from_kbps(u64::from(kbps))))
    });
    let estimates =
        log.loss_based.iter().map(|update| (update.at * MILLI, Rate::from_bps(u64::from(update.bitrate))));
    let scream: Vec<_> = scream.collect();
    let by_scream = !scream.is_empty();
    let targets = if by_scream { scream } else { estimates.collect() };
    let mut internals: Vec<(i64, &'static str, f64)> = Vec::new();
    for update in &log.delay_based {
        internals.push((update.at * MILLI, "delay_based", f64::from(update.bitrate)));
        let state = STATES.get(usize::from(update.state)).copied().flatten();
        internals.extend(state.map(|state| (update.at * MILLI, "state", state)));
    }
    for update in &log.loss_based {
        internals.push((update.at * MILLI, "loss_fraction", f64::from(update.fraction_lost) / 256.0));
    }
    for result in &log.probe_results {
        internals.extend(result.bitrate.map(|rate| (result.at * MILLI, "probe_rate", f64::from(rate))));
    }
    for &(time, limited) in &log.application_limited {
        internals.push((time * MILLI, "app_limited", f64::from(u8::from(limited))));
    }
    for state in &log.scream {
        let values = [
            ("ref_window", state.ref_window),
            ("rtt_ms", state.smoothed_rtt),
            ("queue_delay_ms", state.queue_delay),
        ];
        internals.extend(
            values.into_iter().filter_map(|(name, value)| Some((state.at * MILLI, name, f64::from(value?)))),
        );
    }
    internals.sort_by_key(|&(time, ..)| time);
    let internals = internals.into_iter().map(|(time, name, value)| (time, name.into(), value)).collect();
    let controller = if by_scream { "recorded SCReAM" } else { "recorded" };
    ControllerTrace { targets, internals, controller: controller.to_owned() }
}
