//! Checks of the contract: no alarms in the past, no second alarm at the same time, no invalid decisions.

use super::messages::Decision;
use super::probes::Probe;
use crate::units::{Rate, Span, Time};

/// Check of alarms: none in the past, and at the present time only once, so that time passes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AlarmCheck {
    /// Last time at which an alarm for that same time was requested.
    granted: Option<Time>,
    /// Pending alarm.
    pending: Option<Time>,
}

impl AlarmCheck {
    /// Whether an alarm at the present time `now` is pending: because another event at the same time came first, or because
    /// it was granted just now.
    pub(super) fn is_pending(&self, now: Time) -> bool {
        self.pending == Some(now)
    }

    /// Clears the pending alarm, which has come.
    pub(super) fn fired(&mut self) {
        self.pending = None;
    }

    /// Takes the alarm that was requested at `now`.
    pub(super) fn request(&mut self, now: Time, alarm: Option<Time>) -> Result<(), String> {
        let was_pending = self.is_pending(now);
        self.pending = alarm;
        match alarm {
            Some(time) if time < now => {
                Err(format!("asked for an alarm at {time}, which is in the past (now is {now})"))
            }
            Some(time) if time == now && !was_pending => {
                if self.granted.replace(now) == Some(now) {
                    return Err(format!(
                        "asked for a second alarm at the present instant ({now}); only one is granted, and the next \
                         has to be later"
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Error of a decision by itself, if there is one.
#[inline]
pub(super) fn decision_error(decision: &Decision) -> Option<String> {
    let Decision { burst, min_gap, heartbeat, probes, .. } = decision;
    // most decisions have none of the fields that can be wrong
    let is_simple = burst.is_none() && min_gap.is_none() && heartbeat.is_none() && probes.is_empty();
    if is_simple { None } else { find_error(decision) }
}

fn find_error(decision: &Decision) -> Option<String> {
    let spans =
        [("burst", decision.burst), ("minimum gap", decision.min_gap), ("heartbeat", decision.heartbeat)];
    if let Some((field, Some(span))) = spans.into_iter().find(|(_, span)| span.is_some_and(Span::is_negative))
    {
        return Some(format!("asked for a {field} of {span}, which is negative"));
    }
    let is_invalid = |probe: &&Probe| {
        probe.rate == Rate::ZERO || probe.length.is_negative() || probe.spacing.is_negative()
    };
    decision.probes.iter().find(is_invalid).map(|probe| {
        format!(
            "asked for probe {} at {} for {} with a spacing of {}; the rate must be more than zero, duration and \
             spacing must not be negative",
            probe.id, probe.rate, probe.length, probe.spacing
        )
    })
}
