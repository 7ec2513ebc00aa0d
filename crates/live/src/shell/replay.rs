//! A session once more in virtual time: the same arrivals through the same links.

use super::Names;
use super::arrival::{Arrival, Ending};
use super::model::Model;
use std::collections::BTreeMap;
use tidegate_core::{Span, Time};
use tidegate_sim::scenario::{Outcome, Run};

/// What a replay gives.
pub struct Replayed {
    /// What became of each packet, in order of time.
    pub endings: Vec<Ending>,
    /// The run.
    pub outcome: Outcome,
}

/// Sends `arrivals` through `run`, until after `end`; `names` are those of the programs' flows.
///
/// # Errors
/// When they do not fit the scenario or its end, or a component fails.
pub fn replay(run: Run, names: &Names, arrivals: &[Arrival], end: Time) -> Result<Replayed, String> {
    let mut model = Model::new(run, names)?;
    if end < Time::ZERO || end > Time::ZERO + model.duration() {
        return Err(format!("ends at {end}; the scenario lasts from 0 to {}", model.duration()));
    }
    // two devices are read in turns, the model goes by time; one device's packets keep their order
    let mut order: Vec<&Arrival> = arrivals.iter().collect();
    order.sort_by_key(|one| one.at);
    let mut endings = Vec::with_capacity(arrivals.len());
    let mut tell = |model: &mut Model<()>, until| {
        let tell = |one: super::model::Decided<()>| {
            let number = order[one.number as usize].number;
            endings.push(Ending { number, at: one.at, fate: one.fate, written: None });
        };
        model.advance(until, u64::MAX, tell).map_err(|stopped| stopped.to_string())
    };
    for one in &order {
        if one.at > end {
            return Err(format!("packet {} arrives at {}, after the end at {end}", one.number, one.at));
        }
        if one.flow >= model.flows() {
            return Err(format!(
                "packet {} is of flow {}; there are {}",
                one.number,
                one.flow + 1,
                model.flows()
            ));
        }
        tell(&mut model, one.at - Span::from_nanos(1))?;
        let entered = model.enter(one.from, one.flow, one.at, one.frame.size, one.frame.ecn, ());
        assert_eq!(
            entered.map(|entered| entered.at),
            Some(one.at),
            "arrivals in order enter when they arrive"
        );
    }
    tell(&mut model, end)?;
    let outcome = model.finish(end).map_err(|stopped| stopped.to_string())?;
    Ok(Replayed { endings, outcome })
}

/// The first packet whose end in the session is not that of the replay, or that has one in one of them alone: its
/// number, and both.
#[must_use]
pub fn difference(live: &[Ending], again: &[Ending]) -> Option<(u64, Option<Ending>, Option<Ending>)> {
    let plain = |endings: &[Ending]| -> BTreeMap<u64, Ending> {
        endings.iter().map(|one| (one.number, Ending { written: None, ..*one })).collect()
    };
    let (live, again) = (plain(live), plain(again));
    let numbers = live.keys().chain(again.keys());
    let differs = numbers.filter(|number| live.get(number) != again.get(number)).min()?;
    Some((*differs, live.get(differs).copied(), again.get(differs).copied()))
}
