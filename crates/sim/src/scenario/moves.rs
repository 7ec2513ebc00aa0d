//! Changes of a scenario while it runs: of its links, starts and stops of flows, and paths of calls.

use super::driven::LinkChange;
use super::run::Run;
use super::{FlowKind, Scenario};
use crate::engine::coupled::Coupled;
use crate::engine::external::ExternalSource;
use crate::engine::host::Host;
use crate::engine::world::Stopped;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use tidegate_core::{FlowId, NodeId, Port, Rate, RouteId, Span, Time};
use tidegate_endpoint::Endpoint;

/// One change. It is made before all other events at its time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveSpec {
    /// Time of the change.
    pub time: Time,
    /// The link that is changed, if it is not a flow.
    #[serde(default)]
    pub link: Option<String>,
    /// The flow that is started or stopped, or whose path changes.
    #[serde(default)]
    pub flow: Option<String>,
    /// The link's capacity from then on.
    #[serde(default)]
    pub capacity: Option<Rate>,
    /// The propagation delay of packets it serves from then on.
    #[serde(default)]
    pub delay: Option<Span>,
    /// The loss probability of packets it serves from then on.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Whether the flow begins or ends.
    #[serde(default)]
    pub running: Option<bool>,
    /// The links that the packets of the call take from then on, from the flow's beginning to its end.
    #[serde(default)]
    pub path: Option<Vec<String>>,
    /// The links of the other direction of that path.
    #[serde(default)]
    pub back: Vec<String>,
    /// Whether the call's ends hear of the other path; by default they do.
    #[serde(default)]
    pub signalled: Option<bool>,
}

impl MoveSpec {
    fn change(&self) -> LinkChange {
        LinkChange { capacity: self.capacity, delay: self.delay, loss: self.loss }
    }
}

/// Another path of a call.
#[derive(Clone, Debug)]
pub(super) struct PathChange {
    pub(super) time: Time,
    /// The flows of the call, each with its new links.
    pub(super) flows: Vec<(FlowId, Vec<NodeId>)>,
    /// The ends that send, each with the route of what it sends.
    pub(super) routes: Vec<((NodeId, Port), RouteId)>,
    /// Whether the ends hear of it.
    pub(super) signalled: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Link(String, LinkChange),
    Path(PathChange),
}

/// Changes that are still to come, in order of time.
#[derive(Debug, Default)]
pub(super) struct Moves(VecDeque<(Time, Change)>);

impl Moves {
    /// The time of the next change.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.front().map(|&(time, ..)| time)
    }

    /// Adds a change after those of the same time.
    fn add(&mut self, time: Time, change: Change) {
        let index = self.0.partition_point(|&(due, _)| due <= time);
        self.0.insert(index, (time, change));
    }

    fn take(&mut self, time: Time) -> Option<Change> {
        if self.next()? > time {
            return None;
        }
        self.0.pop_front().map(|(_, change)| change)
    }
}

/// The refusal of a move, for whatever key of a link it is.
pub(super) fn at_move(index: usize, refusal: &Refusal) -> Refusal {
    Refusal::from(refusal.to_string()).at(&format!("moves[{}]", index + 1))
}

/// The scenario with the start and stop of its flows set by the moves.
///
/// # Errors
/// When a move has neither link nor flow or an unknown flow, starts or stops a flow again, or changes the path of what is
/// no call.
pub(super) fn of_flows(scenario: &Scenario) -> Result<Cow<'_, Scenario>, Refusal> {
    let mut changed = Cow::Borrowed(scenario);
    for (index, move_spec) in scenario.moves.iter().enumerate() {
        let refused = |refusal: Refusal| refusal.at(&format!("moves[{}]", index + 1));
        let end = Time::ZERO + scenario.duration;
        ensure((Time::ZERO..=end).contains(&move_spec.time), || {
            refused(Refusal::new(
                "time",
                move_spec.time,
                format!("a time within the run, which ends at {end}"),
            ))
        })?;
        ensure(move_spec.flow.is_some() || move_spec.link.is_some(), || {
            refused("found neither a link nor a flow; expected one of the two".into())
        })?;
        let Some(name) = &move_spec.flow else { continue };
        let flow_index = scenario.flows.iter().position(|flow| flow.name == *name);
        let Some(flow_index) = flow_index else {
            return Err(refused(Refusal::new("flow", name, "a flow of the scenario")));
        };
        if move_spec.path.is_some() {
            let alone =
                move_spec.running.is_none() && move_spec.link.is_none() && move_spec.change().is_empty();
            ensure(alone, || refused("found a path beside another change; expected one of them".into()))?;
            let other = matches!(scenario.flows[flow_index].kind, FlowKind::Udp(_) | FlowKind::Tcp(_));
            ensure(!other, || refused(Refusal::new("flow", name, "a media flow: others keep their path")))?;
            continue;
        }
        let Some(running) =
            move_spec.running.filter(|_| move_spec.link.is_none() && move_spec.change().is_empty())
        else {
            return Err(refused(
                "found a flow without running or path, or with a change of a link; expected one of the two"
                    .into(),
            ));
        };
        let earlier = scenario.moves[..index]
            .iter()
            .any(|earlier| earlier.flow == move_spec.flow && earlier.running == move_spec.running);
        ensure(!earlier, || {
            let event = if running { "start" } else { "stop" };
            refused(Refusal::new(
                "running",
                format!("a second {event} of {name}"),
                "at most one start and one stop of each flow",
            ))
        })?;
        let flow = &mut changed.to_mut().flows[flow_index];
        if running {
            flow.start = move_spec.time;
        } else {
            flow.stop = Some(move_spec.time);
        }
    }
    Ok(changed)
}

impl Run {
    /// Takes over a scenario's changes of links and paths (by the index of their move), and checks that each of them can be made.
    ///
    /// # Errors
    /// When there is no managed link of a name, or a value is out of its range.
    pub(super) fn with_moves(
        mut self,
        moves: &[MoveSpec],
        mut paths: BTreeMap<usize, PathChange>,
    ) -> Result<Self, Refusal> {
        let mut changes = Vec::with_capacity(moves.len());
        for (index, move_spec) in moves.iter().enumerate() {
            if let Some(change) = paths.remove(&index) {
                changes.push((change.time, Change::Path(change)));
            }
            let Some(link) = &move_spec.link else { continue };
            ensure(move_spec.running.is_none() && !move_spec.change().is_empty(), || {
                let message = "found a link without a change; expected capacity, delay or loss";
                Refusal::from(message).at(&format!("moves[{}]", index + 1))
            })?;
            self.changeable(link, &move_spec.change()).map_err(|refusal| at_move(index, &refusal))?;
            changes.push((move_spec.time, Change::Link(link.clone(), move_spec.change())));
        }
        // moves of the same time keep their order in the scenario
        changes.sort_by_key(|&(time, _)| time);
        self.moves = Moves(changes.into());
        Ok(self)
    }

    /// Plans a change of a link while it runs, as a move of the scenario would: it is made before all other events at
    /// `time`, and after the changes already planned for that time.
    ///
    /// # Errors
    /// When there is no managed link of that name, a value is out of its range, nothing changes, or the time is not
    /// within [`Run::reached`] and the end.
    pub fn plan(&mut self, link: &str, time: Time, change: LinkChange) -> Result<(), Refusal> {
        let (from, end) = (self.reached(), Time::ZERO + self.duration);
        ensure((from..=end).contains(&time), || {
            Refusal::new("time", time, format!("a time from {from}, which the run has reached, to {end}"))
        })?;
        ensure(!change.is_empty(), || {
            Refusal::from("found no change; expected capacity, delay or loss").at(&format!("links.{link}"))
        })?;
        self.changeable(link, &change)?;
        self.moves.add(time, Change::Link(link.to_owned(), change));
        Ok(())
    }

    /// Cancels the changes of a link that are planned from `from` on.
    ///
    /// # Errors
    /// When there is no managed link of that name.
    pub fn forget(&mut self, link: &str, from: Time) -> Result<(), Refusal> {
        self.managed(link)?;
        self.moves.0.retain(|(time, change)| {
            *time < from || !matches!(change, Change::Link(name, _) if name == link)
        });
        Ok(())
    }

    /// Applies the changes that are due at `time`; all earlier events have been processed.
    ///
    /// # Errors
    /// When a component fails at it.
    pub(super) fn apply_moves(&mut self, time: Time) -> Result<(), Stopped> {
        while let Some(change) = self.moves.take(time) {
            match change {
                Change::Link(link, change) => {
                    let result = self.change(&link, time, change);
                    assert!(
                        result.is_ok(),
                        "changing {link} failed, although it was validated before the run: {result:?}"
                    );
                }
                Change::Path(PathChange { routes, signalled, .. }) => {
                    for ((node, port), route) in routes {
                        self.world.tell_at(time, node, |end, out| {
                            if let Some(host) = end.downcast_mut::<Host<Endpoint>>() {
                                host.change_route(time, route, signalled, out);
                            } else if let Some(coupled) = end.downcast_mut::<Coupled>() {
                                coupled.change_route(time, port, route, signalled, out);
                            } else if let Some(source) = end.downcast_mut::<ExternalSource>() {
                                source.set_route(route);
                            }
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}
