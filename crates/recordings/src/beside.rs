//! What an event log says of the sender's controller, in the names that controllers here note.

use crate::event_log::EventLog;
use crate::point::MILLI;
use crate::record::Beside;
use tidegate_core::Rate;

/// The codes of `state`: 0 normal, 1 over-use, 2 under-use; and what an event log has for them
/// (`DelayBasedBweUpdates.DetectorState` of `rtc_event_log2.proto`: 1 normal, 2 under-use, 3 over-use).
const STATES: [Option<f64>; 4] = [None, Some(0.0), Some(2.0), Some(1.0)];

/// What the log says of the controller of its writer. The target is the estimate that libwebrtc logs with the loss-based
/// one, in which the delay-based one and probes are; where SCReAM ran, its target.
#[must_use]
pub(crate) fn of_log(log: &EventLog) -> Beside {
    let scream = log
        .scream
        .iter()
        .filter_map(|one| one.target_kbps.map(|kbps| (one.at * MILLI, Rate::from_kbps(u64::from(kbps)))));
    let estimates = log.loss_based.iter().map(|one| (one.at * MILLI, Rate::from_bps(u64::from(one.bitrate))));
    let scream: Vec<_> = scream.collect();
    let by_scream = !scream.is_empty();
    let targets = if by_scream { scream } else { estimates.collect() };
    let mut internals: Vec<(i64, &'static str, f64)> = Vec::new();
    for one in &log.delay_based {
        internals.push((one.at * MILLI, "delay_based", f64::from(one.bitrate)));
        let state = STATES.get(usize::from(one.state)).copied().flatten();
        internals.extend(state.map(|state| (one.at * MILLI, "state", state)));
    }
    for one in &log.loss_based {
        internals.push((one.at * MILLI, "loss_fraction", f64::from(one.fraction_lost) / 256.0));
    }
    for one in &log.probe_results {
        internals.extend(one.bitrate.map(|rate| (one.at * MILLI, "probe_rate", f64::from(rate))));
    }
    for &(at, limited) in &log.application_limited {
        internals.push((at * MILLI, "app_limited", f64::from(u8::from(limited))));
    }
    for one in &log.scream {
        let values = [
            ("ref_window", one.ref_window),
            ("rtt_ms", one.smoothed_rtt),
            ("queue_delay_ms", one.queue_delay),
        ];
        internals.extend(
            values.into_iter().filter_map(|(name, value)| Some((one.at * MILLI, name, f64::from(value?)))),
        );
    }
    internals.sort_by_key(|one| one.0);
    let internals = internals.into_iter().map(|(at, name, value)| (at, name.into(), value)).collect();
    let controller = if by_scream { "recorded SCReAM" } else { "recorded" };
    Beside { targets, internals, controller: controller.to_owned() }
}
