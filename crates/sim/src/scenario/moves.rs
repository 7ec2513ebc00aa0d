//! Changes that a scenario makes while it runs: of its links, and of which flows there are.

use super::Scenario;
use super::driven::LinkChange;
use super::run::Run;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::VecDeque;
use tidegate_core::{Rate, Span, Time};

/// One change. It is made before whatever else happens at its time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveSpec {
    /// When.
    pub time: Time,
    /// The link that is changed, or else a flow.
    #[serde(default)]
    pub link: Option<String>,
    /// The flow that is started or stopped.
    #[serde(default)]
    pub flow: Option<String>,
    /// What the link carries from then on.
    #[serde(default)]
    pub capacity: Option<Rate>,
    /// The propagation delay of what it serves from then on.
    #[serde(default)]
    pub delay: Option<Span>,
    /// The probability at which that is lost.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Whether the flow begins or ends.
    #[serde(default)]
    pub running: Option<bool>,
}

impl MoveSpec {
    fn change(&self) -> LinkChange {
        LinkChange { capacity: self.capacity, delay: self.delay, loss: self.loss }
    }
}

/// Changes of links that are still to come, in order of time.
#[derive(Debug, Default)]
pub(super) struct Moves(VecDeque<(Time, String, LinkChange)>);

impl Moves {
    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.front().map(|&(at, ..)| at)
    }

    /// Adds one, behind those of the same time.
    fn add(&mut self, at: Time, link: &str, change: LinkChange) {
        let place = self.0.partition_point(|&(other, ..)| other <= at);
        self.0.insert(place, (at, link.to_owned(), change));
    }

    fn take(&mut self, at: Time) -> Option<(String, LinkChange)> {
        if self.next()? > at {
            return None;
        }
        self.0.pop_front().map(|(_, link, change)| (link, change))
    }
}

/// The scenario with its flows as the moves start and stop them.
///
/// # Errors
/// When a move is of nothing, of a flow that is not there, or starts or stops one again.
pub(super) fn of_flows(scenario: &Scenario) -> Result<Cow<'_, Scenario>, Refusal> {
    let mut made = Cow::Borrowed(scenario);
    for (at, one) in scenario.moves.iter().enumerate() {
        let refused = |refusal: Refusal| refusal.at(&format!("moves[{}]", at + 1));
        let ends = Time::ZERO + scenario.duration;
        ensure((Time::ZERO..=ends).contains(&one.time), || {
            refused(Refusal::new("time", one.time, format!("within the run, which ends at {ends}")))
        })?;
        ensure(one.flow.is_some() || one.link.is_some(), || {
            refused("found neither a link nor a flow; expected one of them".into())
        })?;
        let Some(name) = &one.flow else { continue };
        let place = scenario.flows.iter().position(|flow| flow.name == *name);
        let Some(place) = place else {
            return Err(refused(Refusal::new("flow", name, "a flow of the scenario")));
        };
        let Some(running) = one.running.filter(|_| one.link.is_none() && one.change().is_empty()) else {
            return Err(refused("found a flow without running alone; expected whether it runs".into()));
        };
        let earlier =
            scenario.moves[..at].iter().any(|other| other.flow == one.flow && other.running == one.running);
        ensure(!earlier, || {
            let what = if running { "a start" } else { "a stop" };
            refused(Refusal::new(
                "running",
                format!("{what} of {name} once more"),
                "a flow begins once and ends once",
            ))
        })?;
        let flow = &mut made.to_mut().flows[place];
        if running {
            flow.start = one.time;
        } else {
            flow.stop = Some(one.time);
        }
    }
    Ok(made)
}

impl Run {
    /// Takes in what a scenario changes of its links, and tries whether each of them could be changed so.
    ///
    /// # Errors
    /// When there is no managed link of a name, or a value is out of its range.
    pub(super) fn with_moves(mut self, moves: &[MoveSpec]) -> Result<Self, Refusal> {
        let mut links = Vec::new();
        for (at, one) in moves.iter().enumerate() {
            let Some(link) = &one.link else { continue };
            ensure(one.running.is_none() && !one.change().is_empty(), || {
                let what = "found a link without a change; expected capacity, delay or loss";
                Refusal::from(what).at(&format!("moves[{}]", at + 1))
            })?;
            self.changeable(link, &one.change())
                .map_err(|refusal| refusal.at(&format!("moves[{}]", at + 1)))?;
            links.push((one.time, link.clone(), one.change()));
        }
        // those of the same time as they are written
        links.sort_by_key(|&(at, ..)| at);
        self.moves = Moves(links.into());
        Ok(self)
    }

    /// Plans a change of a link while it runs, as a move of the scenario would: it is made before whatever else happens
    /// at `at`, and after those that were planned for that time before.
    ///
    /// # Errors
    /// When there is no managed link of that name, a value is out of its range, nothing changes, or the time is not
    /// within [`Run::reached`] and the end.
    pub fn plan(&mut self, link: &str, at: Time, change: LinkChange) -> Result<(), Refusal> {
        let (from, ends) = (self.reached(), Time::ZERO + self.duration);
        ensure((from..=ends).contains(&at), || {
            Refusal::new("time", at, format!("from {from} on, where the run has got to, until {ends}"))
        })?;
        ensure(!change.is_empty(), || {
            Refusal::from("found no change; expected capacity, delay or loss").at(&format!("links.{link}"))
        })?;
        self.changeable(link, &change)?;
        self.moves.add(at, link, change);
        Ok(())
    }

    /// Forgets the changes of a link from `from` on that have not been made.
    ///
    /// # Errors
    /// When there is no managed link of that name.
    pub fn forget(&mut self, link: &str, from: Time) -> Result<(), Refusal> {
        self.managed(link)?;
        self.moves.0.retain(|(at, name, _)| *at < from || name != link);
        Ok(())
    }

    /// Makes the changes that are due at `at`; all before that has happened.
    pub(super) fn make_moves(&mut self, at: Time) {
        while let Some((link, change)) = self.moves.take(at) {
            let made = self.change(&link, at, change);
            assert!(made.is_ok(), "a change of {link} was tried before the run: {made:?}");
        }
    }
}
