//! The trees of a multicast session: for each source the routes to all other members, which share what they have in
//! common.

use crate::engine::replicator::Branches;
use crate::refusal::Refusal;
use crate::scenario::Routes;
use std::collections::BTreeMap;
use tidegate_core::{NodeId, Port, RouteId};

/// Where a session has a member.
pub(super) struct Leaf<'a> {
    /// Its node in the graph of the scenario: name and number.
    pub(super) at: &'a str,
    pub(super) place: usize,
    /// Its node in the world.
    pub(super) node: NodeId,
}

/// A stretch of a tree: the nodes of the world up to a participant, or up to the replicator at a place, from where
/// the branches go on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    nodes: Vec<NodeId>,
    replicator: Option<usize>,
    branches: Vec<RouteId>,
}

/// The trees of all sources of a session, whose common stretches are there once.
pub(super) struct Trees<'a> {
    members: &'a [Leaf<'a>],
    /// The members at each place.
    at: Vec<Vec<usize>>,
    /// For each place, the links on the present source's tree that begin there, and where they lead.
    onward: Vec<Vec<(usize, usize)>>,
    routes: &'a mut Vec<Vec<(NodeId, Port)>>,
    known: BTreeMap<Stretch, RouteId>,
    /// The replicators so far: node and branches, by place.
    replicators: BTreeMap<usize, (NodeId, Branches)>,
    /// The node of the first replicator.
    first_replicator: u32,
}

impl<'a> Trees<'a> {
    /// No tree yet, between `members` in the graph of `places`. New routes go into `routes`; the first replicator will be
    /// the node `first_replicator`, and others follow it.
    pub(super) fn new(
        members: &'a [Leaf<'a>],
        places: &Routes,
        routes: &'a mut Vec<Vec<(NodeId, Port)>>,
        first_replicator: u32,
    ) -> Self {
        let mut at = vec![Vec::new(); places.points()];
        for (number, member) in members.iter().enumerate() {
            at[member.place].push(number);
        }
        let onward = vec![Vec::new(); places.points()];
        let (known, replicators) = (BTreeMap::new(), BTreeMap::new());
        Self { members, at, onward, routes, known, replicators, first_replicator }
    }

    /// The branches at each replicator, in the order of their nodes.
    pub(super) fn into_branches(self) -> Vec<Branches> {
        let mut replicators: Vec<_> = self.replicators.into_values().collect();
        replicators.sort_by_key(|&(node, _)| node);
        replicators.into_iter().map(|(_, branches)| branches).collect()
    }

    /// The route from `source` to all other members.
    pub(super) fn plant(&mut self, source: usize, places: &Routes) -> Result<RouteId, Refusal> {
        let root = self.members[source].place;
        let before = places.tree(root);
        self.onward.iter_mut().for_each(Vec::clear);
        let mut reached = vec![false; places.points()];
        reached[root] = true;
        for member in self.members {
            let mut place = member.place;
            while !reached[place] {
                let Some((from, link)) = before[place] else {
                    let (from, to) = (self.members[source].at, member.at);
                    return Err(format!("no way from {from} to {to}").into());
                };
                reached[place] = true;
                self.onward[from].push((link, place));
                place = from;
            }
        }
        // in the order of the scenario's links
        self.onward.iter_mut().for_each(|links| links.sort_unstable());
        let stretch = self.stretch(root, source);
        Ok(self.route(stretch))
    }

    fn route(&mut self, stretch: Stretch) -> RouteId {
        if let Some(&route) = self.known.get(&stretch) {
            return route;
        }
        let route = RouteId(self.routes.len() as u32);
        self.routes.push(stretch.nodes.iter().map(|&node| (node, Port::ZERO)).collect());
        if let Some((_, branches)) = stretch.replicator.and_then(|place| self.replicators.get_mut(&place)) {
            branches.insert(route, stretch.branches.clone().into());
        }
        self.known.insert(stretch, route);
        route
    }

    /// The way of a packet of `source` from `place` on.
    fn stretch(&mut self, place: usize, source: usize) -> Stretch {
        let mut nodes = Vec::new();
        let mut place = place;
        loop {
            let here: Vec<usize> =
                self.at[place].iter().copied().filter(|&member| member != source).collect();
            match (&here[..], &self.onward[place][..]) {
                (&[member], []) => {
                    nodes.push(self.members[member].node);
                    return Stretch { nodes, replicator: None, branches: Vec::new() };
                }
                ([], &[(link, to)]) => {
                    nodes.push(NodeId(link as u32));
                    place = to;
                }
                _ => {
                    let branches = self.branches(place, &here, source);
                    let next = NodeId(self.first_replicator + self.replicators.len() as u32);
                    let (replicator, _) = self.replicators.entry(place).or_insert((next, BTreeMap::new()));
                    nodes.push(*replicator);
                    return Stretch { nodes, replicator: Some(place), branches };
                }
            }
        }
    }

    fn branches(&mut self, place: usize, here: &[usize], source: usize) -> Vec<RouteId> {
        let mut branches = Vec::with_capacity(here.len() + self.onward[place].len());
        for &member in here {
            let nodes = vec![self.members[member].node];
            branches.push(self.route(Stretch { nodes, replicator: None, branches: Vec::new() }));
        }
        for (link, to) in self.onward[place].clone() {
            let mut behind = self.stretch(to, source);
            behind.nodes.insert(0, NodeId(link as u32));
            branches.push(self.route(behind));
        }
        branches
    }
}
