//! Static routes over the links of a scenario.

use crate::radio::port;
use crate::refusal::Refusal;
use crate::scenario::{LinkSpec, RadioSpec, Scenario};
use std::collections::{BTreeMap, VecDeque};
use tidegate_core::{NodeId, Port};

/// The links as a directed graph, and the users of radio networks as its leaves.
pub(super) struct Graph<'a> {
    links: &'a [LinkSpec],
    radios: &'a [RadioSpec],
    /// The users of radio networks by name: number of the network, and of the user in it.
    users: BTreeMap<&'a str, (usize, usize)>,
}

impl<'a> Graph<'a> {
    /// # Errors
    /// When two users have one name: flows say by it where they go.
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, Refusal> {
        let mut users = BTreeMap::new();
        for (network, radio) in scenario.radios.iter().enumerate() {
            for (number, user) in radio.users.iter().enumerate() {
                if users.insert(user.name.as_str(), (network, number)).is_some() {
                    let refusal = Refusal::new("users", &user.name, "a name that no other user has");
                    return Err(refusal.at(&radio.name).at("radios"));
                }
            }
        }
        Ok(Self { links: &scenario.links, radios: &scenario.radios, users })
    }

    /// The nodes and ports of the path with the fewest hops; among equals the one found first in the order of the
    /// scenario. Empty between a node and itself; `None` where there is no way.
    pub(super) fn path(&self, from: &str, to: &str) -> Option<Vec<(NodeId, Port)>> {
        let (up, down) = (self.users.get(from), self.users.get(to));
        let core = |&(network, _): &(usize, usize)| self.radios[network].core.as_str();
        let (begin, end) = (up.map_or(from, core), down.map_or(to, core));
        // radio networks are the nodes behind those of the links
        let air = |&(network, user): &(usize, usize), up| {
            (NodeId((self.links.len() + network) as u32), port(user, up))
        };
        let mut hops: Vec<_> = up.map(|user| air(user, true)).into_iter().collect();
        let links = self.links_between(begin, end)?;
        hops.extend(links.into_iter().map(|link| (NodeId(link as u32), Port::ZERO)));
        hops.extend(down.map(|user| air(user, false)));
        Some(hops)
    }

    /// The links of the shortest path.
    fn links_between(&self, from: &str, to: &str) -> Option<Vec<usize>> {
        if from == to {
            return Some(Vec::new());
        }
        let mut reached: Vec<(&str, Option<(usize, usize)>)> = vec![(from, None)];
        let mut queue = VecDeque::from([0]);
        while let Some(place) = queue.pop_front() {
            let here = reached[place].0;
            for (index, link) in self.links.iter().enumerate().filter(|(_, link)| link.from == here) {
                if reached.iter().any(|&(name, _)| name == link.to) {
                    continue;
                }
                reached.push((&link.to, Some((place, index))));
                if link.to == to {
                    let mut path = Vec::new();
                    let mut step = reached.last()?.1;
                    while let Some((before, link)) = step {
                        path.push(link);
                        step = reached[before].1;
                    }
                    path.reverse();
                    return Some(path);
                }
                queue.push_back(reached.len() - 1);
            }
        }
        None
    }
}

/// The nodes of the graph by number, with the links that leave each.
pub(super) struct Places<'a> {
    numbers: BTreeMap<&'a str, usize>,
    out: Vec<Vec<(usize, usize)>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(links: &'a [LinkSpec]) -> Self {
        let mut numbers = BTreeMap::new();
        let mut out: Vec<Vec<(usize, usize)>> = Vec::new();
        let mut number = |name: &'a str, out: &mut Vec<Vec<(usize, usize)>>| {
            let next = numbers.len();
            let place = *numbers.entry(name).or_insert(next);
            out.resize(numbers.len(), Vec::new());
            place
        };
        for (index, link) in links.iter().enumerate() {
            let (from, to) = (number(&link.from, &mut out), number(&link.to, &mut out));
            out[from].push((index, to));
        }
        Self { numbers, out }
    }

    /// The number of the node `name`, if a link begins or ends there.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// For each node the node and the link before it on the way from `from` with the fewest hops; among
    /// equals the one found first in the order of the scenario.
    pub(super) fn ways_from(&self, from: usize) -> Vec<Option<(usize, usize)>> {
        let mut before = vec![None; self.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(place) = queue.pop_front() {
            for &(link, to) in &self.out[place] {
                if to != from && before[to].is_none() {
                    before[to] = Some((place, link));
                    queue.push_back(to);
                }
            }
        }
        before
    }
}
