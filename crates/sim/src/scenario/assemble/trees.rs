//! The trees of a multicast session: for each source the routes to all other members, with shared common parts.

use super::no_path;
use crate::engine::replicator::Branches;
use crate::refusal::Refusal;
use crate::scenario::Routes;
use std::collections::BTreeMap;
use tidegate_core::{NodeId, Port, RouteId};

/// The nodes of a session's member.
pub(super) struct Leaf<'a> {
    /// Its node in the graph of the scenario: name and number.
    pub(super) name: &'a str,
    pub(super) point: usize,
    /// Its node in the world.
    pub(super) node: NodeId,
}

/// A stretch of a tree: the nodes of the world up to a participant, or up to the replicator at a point, where the
/// branches begin.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    nodes: Vec<NodeId>,
    replicator: Option<usize>,
    branches: Vec<RouteId>,
}

/// The trees of all sources of a session; their common stretches are stored once.
pub(super) struct Trees<'a> {
    members: &'a [Leaf<'a>],
    /// The members at each point.
    members_at: Vec<Vec<usize>>,
    /// For each point, the links of the present source's tree that begin there, and the points where they end.
    onward: Vec<Vec<(usize, usize)>>,
    routes: &'a mut Vec<Vec<(NodeId, Port)>>,
    routes_of: BTreeMap<Stretch, RouteId>,
    /// The replicators so far: node and branches, by point.
    replicators: BTreeMap<usize, (NodeId, Branches)>,
    /// The node of the first replicator.
    first_replicator: u32,
}

impl<'a> Trees<'a> {
    /// An empty set of trees between `members` in the graph of `points`. New routes go into `routes`; the first
    /// replicator will be the node `first_replicator`, and the others follow it.
    pub(super) fn new(
        members: &'a [Leaf<'a>],
        points: &Routes,
        routes: &'a mut Vec<Vec<(NodeId, Port)>>,
        first_replicator: u32,
    ) -> Self {
        let mut members_at = vec![Vec::new(); points.points()];
        for (number, member) in members.iter().enumerate() {
            members_at[member.point].push(number);
        }
        let onward = vec![Vec::new(); points.points()];
        let (routes_of, replicators) = (BTreeMap::new(), BTreeMap::new());
        Self { members, members_at, onward, routes, routes_of, replicators, first_replicator }
    }

    /// The branches at each replicator, in the order of their nodes.
    pub(super) fn into_branches(self) -> Vec<Branches> {
        let mut replicators: Vec<_> = self.replicators.into_values().collect();
        replicators.sort_by_key(|&(node, _)| node);
        replicators.into_iter().map(|(_, branches)| branches).collect()
    }

    /// Adds the tree of `source`, and returns the route from it to all other members.
    pub(super) fn plant(&mut self, source: usize, points: &Routes) -> Result<RouteId, Refusal> {
        let root = self.members[source].point;
        let before = points.tree(root);
        self.onward.iter_mut().for_each(Vec::clear);
        let mut reached = vec![false; points.points()];
        reached[root] = true;
        for member in self.members {
            let mut point = member.point;
            while !reached[point] {
                let Some((from, link)) = before[point] else {
                    return Err(no_path(self.members[source].name, member.name));
                };
                reached[point] = true;
                self.onward[from].push((link, point));
                point = from;
            }
        }
        // in the order of the scenario's links
        self.onward.iter_mut().for_each(|links| links.sort_unstable());
        let stretch = self.stretch(root, source);
        Ok(self.route(stretch))
    }

    fn route(&mut self, stretch: Stretch) -> RouteId {
        if let Some(&route) = self.routes_of.get(&stretch) {
            return route;
        }
        let route = RouteId(self.routes.len() as u32);
        self.routes.push(stretch.nodes.iter().map(|&node| (node, Port::ZERO)).collect());
        if let Some((_, branches)) = stretch.replicator.and_then(|point| self.replicators.get_mut(&point)) {
            branches.insert(route, stretch.branches.clone().into());
        }
        self.routes_of.insert(stretch, route);
        route
    }

    /// The path of a packet of `source` from `point` on.
    fn stretch(&mut self, point: usize, source: usize) -> Stretch {
        let mut nodes = Vec::new();
        let mut point = point;
        loop {
            let local_members: Vec<usize> =
                self.members_at[point].iter().copied().filter(|&member| member != source).collect();
            match (&local_members[..], &self.onward[point][..]) {
                (&[member], []) => {
                    nodes.push(self.members[member].node);
                    return Stretch { nodes, replicator: None, branches: Vec::new() };
                }
                ([], &[(link, to)]) => {
                    nodes.push(NodeId(link as u32));
                    point = to;
                }
                _ => {
                    let branches = self.branches(point, &local_members, source);
                    let next = NodeId(self.first_replicator + self.replicators.len() as u32);
                    let (replicator, _) = self.replicators.entry(point).or_insert((next, BTreeMap::new()));
                    nodes.push(*replicator);
                    return Stretch { nodes, replicator: Some(point), branches };
                }
            }
        }
    }

    fn branches(&mut self, point: usize, local_members: &[usize], source: usize) -> Vec<RouteId> {
        let mut branches = Vec::with_capacity(local_members.len() + self.onward[point].len());
        for &member in local_members {
            let nodes = vec![self.members[member].node];
            branches.push(self.route(Stretch { nodes, replicator: None, branches: Vec::new() }));
        }
        for (link, to) in self.onward[point].clone() {
            let mut behind = self.stretch(to, source);
            behind.nodes.insert(0, NodeId(link as u32));
            branches.push(self.route(behind));
        }
        branches
    }
}
