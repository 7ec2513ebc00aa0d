//! Replays a session in virtual time: the same arrivals go through the same links.

use super::Names;
use super::arrival::{Arrival, FateRecord};
use super::model::Model;
use std::collections::BTreeMap;
use tidegate_core::{Span, Time};
use tidegate_sim::scenario::{Outcome, Run};

/// Result of a replay.
pub struct Replayed {
    /// The fates of the packets, in order of time.
    pub fates: Vec<FateRecord>,
    /// The run.
    pub outcome: Outcome,
}

/// Sends `arrivals` through `run` up to `end`; `names` are the names of the external flows.
///
/// # Errors
/// If the arrivals do not fit the scenario or its end, or a component fails.
pub fn replay(run: Run, names: &Names, arrivals: &[Arrival], end: Time) -> Result<Replayed, String> {
    let mut model = Model::new(run, names)?;
    if end < Time::ZERO || end > Time::ZERO + model.duration() {
        return Err(format!("the session ends at {end}; the scenario lasts from 0 to {}", model.duration()));
    }
    // the devices were read in turns, but the model needs the order of time; packets of one device keep their order
    let mut order: Vec<&Arrival> = arrivals.iter().collect();
    order.sort_by_key(|arrival| arrival.at);
    let mut fates = Vec::with_capacity(arrivals.len());
    let mut advance = |model: &mut Model<()>, until| {
        let on_exit = |exit: super::model::PacketExit<()>| {
            let number = order[exit.number as usize].number;
            // a copy is no packet of its own
            if !exit.duplicate {
                fates.push(FateRecord { number, at: exit.at, fate: exit.fate, written: None });
            }
        };
        model.advance(until, u64::MAX, on_exit).map_err(|stopped| stopped.to_string())
    };
    for arrival in &order {
        if arrival.at > end {
            return Err(format!(
                "packet {} arrives at {}, after the session's end at {end}",
                arrival.number, arrival.at
            ));
        }
        if arrival.flow >= model.flows() {
            return Err(format!(
                "packet {} belongs to flow {}; the scenario has {} flows",
                arrival.number,
                arrival.flow + 1,
                model.flows()
            ));
        }
        advance(&mut model, arrival.at - Span::from_nanos(1))?;
        let entered =
            model.enter(arrival.from, arrival.flow, arrival.at, arrival.frame.size, arrival.frame.ecn, ());
        assert_eq!(
            entered.map(|entered| entered.at),
            Some(arrival.at),
            "arrivals in order enter when they arrive"
        );
    }
    advance(&mut model, end)?;
    let outcome = model.finish(end).map_err(|stopped| stopped.to_string())?;
    Ok(Replayed { fates, outcome })
}

/// The first packet whose fate in the session differs from that in the replay, or is missing in one of them: its
/// number, and both fates.
#[must_use]
pub fn difference(
    live: &[FateRecord],
    replayed: &[FateRecord],
) -> Option<(u64, Option<FateRecord>, Option<FateRecord>)> {
    let by_number = |fates: &[FateRecord]| -> BTreeMap<u64, FateRecord> {
        fates.iter().map(|fate| (fate.number, FateRecord { written: None, ..*fate })).collect()
    };
    let (live, replayed) = (by_number(live), by_number(replayed));
    let numbers = live.keys().chain(replayed.keys());
    let first = numbers.filter(|number| live.get(number) != replayed.get(number)).min()?;
    Some((*first, live.get(first).copied(), replayed.get(first).copied()))
}
