//! The calls of a run: their ends, and the links that they may take.

use crate::engine::world::World;
use crate::refusal::{Refusal, ensure};
use crate::scenario::{LinkSpec, Scenario};
use crate::traffic::leg::TcpLeg;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::{FlowId, NodeId, Port};

/// Place of the sending end of a flow.
pub(super) type End = (NodeId, Port);

/// A node of a path, and the port at which packets enter it.
pub(super) type Hop = (NodeId, Port);

/// The connections of calls, each by the first flow of the call and the link that it crosses.
#[derive(Debug, Default)]
pub(super) struct Legs(BTreeMap<(usize, NodeId), NodeId>);

impl Legs {
    /// Adds the connection of a call over a link.
    pub(super) fn add(&mut self, call: usize, link: NodeId, node: NodeId) {
        self.0.insert((call, link), node);
    }

    /// A path of a call, with connections in place of the links that have them.
    pub(super) fn on(&self, call: usize, path: &[Hop]) -> Vec<Hop> {
        let leg = |hop: &Hop| self.0.get(&(call, hop.0)).map(|&leg| (leg, TcpLeg::ENTRY));
        path.iter().map(|hop| leg(hop).unwrap_or(*hop)).collect()
    }
}

/// One flow of a call.
#[derive(Debug)]
pub(super) struct Place {
    /// Index of the call's first flow.
    pub(super) call: usize,
    pub(super) flow: FlowId,
    /// The flow in the other direction between the same ends.
    pub(super) other: Option<FlowId>,
    /// Its sending end, and its receiving one.
    pub(super) ends: [End; 2],
    /// The points at which they are.
    pub(super) points: [String; 2],
}

/// Another path of a call, before it has routes.
pub(super) struct OtherPath {
    /// The flows of the call, each with its new links.
    pub(super) flows: Vec<(FlowId, Vec<NodeId>)>,
    /// The ends that send, each with the path of what it sends, its destination included.
    pub(super) ways: [(End, Vec<Hop>); 2],
}

/// The calls of a run by their flows' names, and the links that it has.
#[derive(Debug, Default)]
pub(super) struct Calls {
    links: Vec<NamedLink>,
    /// Points that are users of radio networks, where no other path begins or ends.
    users: BTreeSet<String>,
    pub(super) legs: Legs,
    places: BTreeMap<String, Place>,
}

/// Name and points of a link.
#[derive(Debug)]
struct NamedLink {
    name: String,
    from: String,
    to: String,
}

impl Calls {
    /// No calls over the links of a scenario, whose nodes are numbered in their order.
    pub(super) fn over(scenario: &Scenario) -> Self {
        let named = |LinkSpec { name, from, to, .. }: &LinkSpec| NamedLink {
            name: name.clone(),
            from: from.clone(),
            to: to.clone(),
        };
        let users = scenario.radios.iter().flat_map(|radio| &radio.users);
        Self {
            links: scenario.links.iter().map(named).collect(),
            users: users.map(|user| user.name.clone()).collect(),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, flow: &str, place: Place) {
        self.places.insert(flow.to_owned(), place);
    }

    /// The flow of a call with this name.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn place(&self, flow: &str) -> Result<&Place, Refusal> {
        self.places.get(flow).ok_or_else(|| Refusal::new("flow", flow, "a media flow of the scenario"))
    }

    /// The path of a call over these links, and its way back.
    ///
    /// # Errors
    /// When there is no such flow of a call, or its ends are not joined so.
    pub(super) fn other_path(
        &self,
        flow: &str,
        path: &[String],
        back: &[String],
    ) -> Result<OtherPath, Refusal> {
        let Place { call, flow, other, ends: [near, far], points: [from, to] } = self.place(flow)?;
        let (forward, backward) = (self.along(path, [from, to])?, self.along(back, [to, from])?);
        let way = |hops: &[Hop], end: &End| self.legs.on(*call, hops).into_iter().chain([*end]).collect();
        let mut flows = vec![(*flow, nodes(&forward))];
        flows.extend(other.map(|other| (other, nodes(&backward))));
        Ok(OtherPath { flows, ways: [(*near, way(&forward, far)), (*far, way(&backward, near))] })
    }

    /// The hops of a path over these links, from one point to another.
    ///
    /// # Errors
    /// When a link is not there, does not begin where the one before it ends, or a user of a radio network is at an end.
    pub(super) fn along(&self, names: &[String], [from, to]: [&str; 2]) -> Result<Vec<Hop>, Refusal> {
        if let Some(user) = [from, to].into_iter().find(|point| self.users.contains(*point)) {
            let expected =
                "a call whose ends are no users of a radio network, whose path is the radio network's";
            return Err(Refusal::new("path", user, expected));
        }
        ensure(names.len() < World::LONGEST_ROUTE, || {
            let expected = format!("at most {} links", World::LONGEST_ROUTE - 1);
            Refusal::new("path", format!("{} links", names.len()), expected)
        })?;
        let (mut point, mut hops) = (from, Vec::with_capacity(names.len()));
        for name in names {
            let position = self.links.iter().position(|link| &link.name == name);
            let position =
                position.ok_or_else(|| Refusal::new("path", name, "the name of a link of the scenario"))?;
            let link = &self.links[position];
            ensure(link.from == point, || {
                let expected = format!("a link from {point} (it leads from {} to {})", link.from, link.to);
                Refusal::new("path", name, expected)
            })?;
            point = &link.to;
            hops.push((NodeId(position as u32), Port::ZERO));
        }
        ensure(point == to && !names.is_empty(), || {
            let message = format!("found a path that ends at {point}; expected links from {from} to {to}");
            Refusal::from(message).at("path")
        })?;
        Ok(hops)
    }
}

/// The nodes of a path.
pub(super) fn nodes(path: &[Hop]) -> Vec<NodeId> {
    path.iter().map(|&(node, _)| node).collect()
}
