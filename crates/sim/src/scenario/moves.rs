//! Changes of a scenario while it runs: of its links, starts and stops of flows, and paths, sources and limits of calls.

use super::calls::{End, OtherPath};
use super::run::Run;
use super::{FlowKind, Scenario};
use crate::engine::coupled::Coupled;
use crate::engine::external::ExternalSource;
use crate::engine::host::Host;
use crate::engine::world::Stopped;
use crate::link::LinkChange;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use tidegate_core::{FlowId, NodeId, Outbox, RouteId, Time};
use tidegate_endpoint::{Endpoint, LimitChange};

/// One change. It is made before all other events at its time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveSpec {
    /// Time of the change.
    pub time: Time,
    /// The link that is changed, if it is not a flow.
    #[serde(default)]
    pub link: Option<String>,
    /// The flow that is changed.
    #[serde(default)]
    pub flow: Option<String>,
    /// The change of the link.
    #[serde(default)]
    pub change: LinkChange,
    /// Whether the flow begins or ends.
    #[serde(default)]
    pub running: Option<bool>,
    /// Whether the video of the call goes on or pauses, that of a camera or of a screen.
    #[serde(default)]
    pub video: Option<bool>,
    /// Whether the audio of the call goes on or pauses.
    #[serde(default)]
    pub audio: Option<bool>,
    /// Limits of the rates of the call.
    #[serde(default)]
    pub limits: LimitChange,
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

/// A change of a call that is made by hand.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallMove {
    /// The links that its packets take from then on, from the flow's beginning to its end.
    pub path: Option<Vec<String>>,
    /// The links of the other direction of that path.
    pub back: Vec<String>,
    /// Whether the call's ends hear of the other path; by default they do.
    pub signalled: Option<bool>,
    /// Limits of its rates.
    pub limits: LimitChange,
}

/// A change of a call that its ends make.
#[derive(Clone, Debug)]
pub(super) enum CallChange {
    Path(PathChange),
    /// Of a flow's sending end; repair is also of its receiving one.
    Limits([End; 2], LimitChange),
}

/// Another path of a call.
#[derive(Clone, Debug)]
pub(super) struct PathChange {
    /// The flows of the call, each with its new links.
    pub(super) flows: Vec<(FlowId, Vec<NodeId>)>,
    /// The ends that send, each with the route of what it sends.
    pub(super) routes: Vec<(End, RouteId)>,
    /// Whether the ends hear of it.
    pub(super) signalled: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Link(String, Box<LinkChange>),
    Call(CallChange),
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

/// The scenario with the start and stop of its flows, and the pauses of their sources, set by the moves.
///
/// # Errors
/// When a move has neither link nor flow or an unknown flow, starts or stops a flow again, or changes of a call what is
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
        let kinds = [
            move_spec.running.is_some(),
            move_spec.path.is_some(),
            move_spec.video.is_some(),
            move_spec.audio.is_some(),
            !move_spec.limits.is_empty(),
        ];
        let alone = move_spec.link.is_none() && move_spec.change.is_empty();
        ensure(alone && kinds.iter().filter(|&&kind| kind).count() == 1, || {
            refused("found a flow without one change; expected running, path, video, audio or limits".into())
        })?;
        let Some(running) = move_spec.running else {
            let kind = &scenario.flows[flow_index].kind;
            let of_calls = move_spec.path.is_none();
            let fits = match kind {
                FlowKind::Media(_) => true,
                FlowKind::External | FlowKind::Program => !of_calls,
                FlowKind::Udp(_) | FlowKind::Tcp(_) => false,
            };
            ensure(fits, || refused(Refusal::new("flow", name, "a media flow: others keep their path")))?;
            continue;
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
    pauses(scenario, &mut changed);
    Ok(changed)
}

/// Adds the pauses of the moves of video and audio to the flows.
fn pauses(scenario: &Scenario, changed: &mut Cow<'_, Scenario>) {
    let mut switches: Vec<_> = scenario
        .moves
        .iter()
        .filter_map(|MoveSpec { time, flow, video, audio, .. }| {
            Some((*time, flow.as_ref()?, video.is_some(), video.or(*audio)?))
        })
        .collect();
    switches.sort_by_key(|&(time, ..)| time);
    for (time, name, is_video, on) in switches {
        let Some(index) = scenario.flows.iter().position(|flow| flow.name == *name) else { continue };
        let FlowKind::Media(media) = &mut changed.to_mut().flows[index].kind else { continue };
        let pauses = if is_video { &mut media.video_pauses } else { &mut media.audio_pauses };
        match pauses.last_mut().filter(|(_, to)| *to == Time::MAX) {
            None if !on => pauses.push((time, Time::MAX)),
            Some(pause) if on && time > pause.0 => pause.1 = time,
            // it goes on at the instant at which it would pause
            Some(_) if on => drop(pauses.pop()),
            _ => {}
        }
    }
}

impl Run {
    /// Takes over a scenario's changes of links and calls (by the index of their move), and checks that each of them can be made.
    ///
    /// # Errors
    /// When there is no managed link of a name, or a value is out of its range.
    pub(super) fn with_moves(
        mut self,
        moves: &[MoveSpec],
        mut calls: BTreeMap<usize, CallChange>,
    ) -> Result<Self, Refusal> {
        let mut changes = Vec::with_capacity(moves.len());
        for (index, move_spec) in moves.iter().enumerate() {
            if let Some(change) = calls.remove(&index) {
                changes.push((move_spec.time, Change::Call(change)));
            }
            let Some(link) = &move_spec.link else { continue };
            ensure(move_spec.running.is_none() && !move_spec.change.is_empty(), || {
                let message =
                    "found a link without a change; expected capacity, delay or another key of links";
                Refusal::from(message).at(&format!("moves[{}]", index + 1))
            })?;
            self.changeable(link, &move_spec.change).map_err(|refusal| at_move(index, &refusal))?;
            changes.push((move_spec.time, Change::Link(link.clone(), Box::new(move_spec.change.clone()))));
        }
        // moves of the same time keep their order in the scenario
        changes.sort_by_key(|&(time, _)| time);
        self.moves = Moves(changes.into());
        Ok(self)
    }

    /// Refuses a time that the run has passed, or that is after its end.
    fn is_to_come(&self, time: Time) -> Result<(), Refusal> {
        let (from, end) = (self.reached(), Time::ZERO + self.duration);
        ensure((from..=end).contains(&time), || {
            Refusal::new("time", time, format!("a time from {from}, which the run has reached, to {end}"))
        })
    }

    /// Plans a change of a link while it runs, as a move of the scenario would: it is made before all other events at
    /// `time`, and after the changes already planned for that time.
    ///
    /// # Errors
    /// When there is no managed link of that name, a value is out of its range, nothing changes, or the time is not
    /// within [`Run::reached`] and the end.
    pub fn plan(&mut self, link: &str, time: Time, change: LinkChange) -> Result<(), Refusal> {
        self.is_to_come(time)?;
        ensure(!change.is_empty(), || {
            Refusal::from("found no change; expected capacity, delay or another key of links")
                .at(&format!("links.{link}"))
        })?;
        self.changeable(link, &change)?;
        self.moves.add(time, Change::Link(link.to_owned(), Box::new(change)));
        Ok(())
    }

    /// Plans a change of a flow of a call while it runs, as a move of the scenario would: see [`Run::plan`].
    ///
    /// # Errors
    /// When there is no such flow, its ends are not joined so, nothing changes, or the time is not within
    /// [`Run::reached`] and the end.
    pub fn plan_call(&mut self, flow: &str, time: Time, change: &CallMove) -> Result<(), Refusal> {
        self.is_to_come(time)?;
        for change in self.changes_of_call(flow, time, change)? {
            self.moves.add(time, Change::Call(change));
        }
        Ok(())
    }

    /// Changes a flow of a call at `time`; the world must have handled all events before it.
    ///
    /// # Errors
    /// When there is no such flow, its ends are not joined so, nothing changes, or a component fails at it.
    pub fn change_call(&mut self, flow: &str, time: Time, change: &CallMove) -> Result<(), Refusal> {
        for change in self.changes_of_call(flow, time, change)? {
            self.change_end(time, change).map_err(|stopped| Refusal::from(stopped.to_string()))?;
        }
        Ok(())
    }

    /// The changes that a call's ends make at `time`; routes of another path are added, and the record knows it.
    fn changes_of_call(
        &mut self,
        flow: &str,
        time: Time,
        change: &CallMove,
    ) -> Result<Vec<CallChange>, Refusal> {
        let CallMove { path, back, signalled, limits } = change;
        let refused = |refusal: Refusal| refusal.at(&format!("flows.{flow}"));
        let ends = self.calls.place(flow)?.ends;
        ensure(path.is_some() || !limits.is_empty(), || {
            refused("found no change; expected path, max_rate, min_rate, video_max or repair".into())
        })?;
        let mut changes = Vec::new();
        if let Some(path) = path {
            let OtherPath { flows, ways } = self.calls.other_path(flow, path, back).map_err(refused)?;
            let routes = ways.map(|(end, hops)| (end, self.world.add_route(&hops))).to_vec();
            for (flow, links) in &flows {
                self.recording_mut().flows[flow.0 as usize].path.change(time, links.clone());
            }
            let signalled = signalled.unwrap_or(true);
            changes.push(CallChange::Path(PathChange { flows, routes, signalled }));
        }
        if !limits.is_empty() {
            changes.push(CallChange::Limits(ends, *limits));
        }
        Ok(changes)
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
                    let result = self.change(&link, time, &change);
                    assert!(
                        result.is_ok(),
                        "changing {link} failed, although it was validated before the run: {result:?}"
                    );
                }
                Change::Call(change) => self.change_end(time, change)?,
            }
        }
        Ok(())
    }

    /// Makes a change of a call at its ends.
    fn change_end(&mut self, time: Time, change: CallChange) -> Result<(), Stopped> {
        match change {
            CallChange::Path(PathChange { routes, signalled, .. }) => {
                for (end, route) in routes {
                    self.tell_end(time, end, |host, out| host.change_route(time, route, signalled, out))?;
                    self.world.tell(end.0, |source: &mut ExternalSource| source.set_route(route));
                }
                Ok(())
            }
            CallChange::Limits([near, far], change) => {
                self.tell_end(time, near, |host, out| host.limit(time, &change, out))?;
                let Some(on) = change.repair else { return Ok(()) };
                self.tell_end(time, far, |host, out| host.switch_repair(time, on, out))
            }
        }
    }

    /// Calls `tell` with the endpoint at a place, if there is one.
    fn tell_end(
        &mut self,
        time: Time,
        (node, port): End,
        tell: impl FnOnce(&mut Host<Endpoint>, &mut Outbox),
    ) -> Result<(), Stopped> {
        self.world.tell_at(time, node, |end, out| {
            if let Some(host) = end.downcast_mut::<Host<Endpoint>>() {
                tell(host, out);
            } else if let Some(coupled) = end.downcast_mut::<Coupled>() {
                coupled.tell(time, port, out, tell);
            }
        })
    }
}
