//! What the contract forbids: alarms in the past, a second alarm at one instant, decisions that make no sense.

use super::messages::Decision;
use super::probes::Probe;
use crate::units::{Rate, Span, Time};

/// Keeps alarms out of the past, and time passing: an alarm at the present instant is granted once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AlarmCheck {
    /// The last instant at which an alarm at that instant was asked for.
    granted: Option<Time>,
    /// The alarm that is yet to come.
    pending: Option<Time>,
}

impl AlarmCheck {
    /// Whether an alarm at `now`, which is the present, is yet to come: because something else that is due at the same
    /// instant came first, or because it was granted now.
    pub(super) fn at(&self, now: Time) -> bool {
        self.pending == Some(now)
    }

    /// The alarm has come.
    pub(super) fn fired(&mut self) {
        self.pending = None;
    }

    /// Takes up what was asked for at `now`.
    pub(super) fn ask(&mut self, now: Time, alarm: Option<Time>) -> Result<(), String> {
        let waits = self.at(now);
        self.pending = alarm;
        match alarm {
            Some(at) if at < now => {
                Err(format!("asked for an alarm at {at}, which is in the past (now is {now})"))
            }
            Some(at) if at == now && !waits => {
                if self.granted.replace(now) == Some(now) {
                    return Err(format!(
                        "asked for an alarm at the present instant ({now}) once more; that is granted once, then time \
                         has to pass"
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// What is wrong with a decision by itself.
#[inline]
pub(super) fn broken(decision: &Decision) -> Option<String> {
    let Decision { burst, min_gap, heartbeat, probes, .. } = decision;
    // most have nothing that could be wrong
    let plain = burst.is_none() && min_gap.is_none() && heartbeat.is_none() && probes.is_empty();
    if plain { None } else { objection(decision) }
}

fn objection(decision: &Decision) -> Option<String> {
    let spans =
        [("burst", decision.burst), ("least gap", decision.min_gap), ("heartbeat", decision.heartbeat)];
    if let Some((what, Some(span))) = spans.into_iter().find(|(_, span)| span.is_some_and(Span::is_negative))
    {
        return Some(format!("asked for a {what} of {span}, which is negative"));
    }
    let wrong = |probe: &&Probe| {
        probe.rate == Rate::ZERO || probe.length.is_negative() || probe.spacing.is_negative()
    };
    decision.probes.iter().find(wrong).map(|probe| {
        format!(
            "asked for probe {} at {} for {} with a spacing of {}; the rate must be more than zero and neither time \
             negative",
            probe.id, probe.rate, probe.length, probe.spacing
        )
    })
}
