//! The path of a flow: links, and the radio networks at its ends.

use crate::radio::port;
use crate::refusal::Refusal;
use crate::scenario::{RadioSpec, Routes, Scenario};
use std::collections::BTreeMap;
use tidegate_core::{NodeId, Port};

/// The links as a directed graph, and the users of radio networks as its leaves.
pub(super) struct Graph<'a> {
    routes: Routes,
    links: usize,
    radios: &'a [RadioSpec],
    /// The users of radio networks by name: number of the network, and of the user in it.
    users: BTreeMap<&'a str, (usize, usize)>,
}

impl<'a> Graph<'a> {
    /// # Errors
    /// When two users have the same name: flows name their ends by it.
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
        Ok(Self {
            routes: Routes::of(&scenario.links),
            links: scenario.links.len(),
            radios: &scenario.radios,
            users,
        })
    }

    /// The nodes and ports of a path: see [`Routes`]. Empty between a node and itself; `None` where there is no path.
    pub(super) fn path(&self, from: &str, to: &str) -> Option<Vec<(NodeId, Port)>> {
        let (up, down) = (self.users.get(from), self.users.get(to));
        let core = |&(network, _): &(usize, usize)| self.radios[network].core.as_str();
        let (begin, end) = (up.map_or(from, core), down.map_or(to, core));
        // the nodes of radio networks follow those of the links
        let air =
            |&(network, user): &(usize, usize), up| (NodeId((self.links + network) as u32), port(user, up));
        let mut hops: Vec<_> = up.map(|user| air(user, true)).into_iter().collect();
        let links = self.routes.between(begin, end)?;
        hops.extend(links.into_iter().map(|link| (NodeId(link as u32), Port::ZERO)));
        hops.extend(down.map(|user| air(user, false)));
        Some(hops)
    }

    /// The nodes and ports of a path over these links, from one point to another.
    ///
    /// # Errors
    /// When a link is not there, does not begin where the one before it ends, or a user of a radio network is at an end.
    pub(super) fn along(
        &self,
        scenario: &Scenario,
        names: &[String],
        [from, to]: [&str; 2],
    ) -> Result<Vec<(NodeId, Port)>, Refusal> {
        if let Some(user) = [from, to].into_iter().find(|point| self.users.contains_key(point)) {
            let expected =
                "a call whose ends are no users of a radio network, whose path is the radio network's";
            return Err(Refusal::new("path", user, expected));
        }
        let (mut point, mut hops) = (from, Vec::with_capacity(names.len()));
        for name in names {
            let position = scenario.links.iter().position(|link| &link.name == name);
            let position =
                position.ok_or_else(|| Refusal::new("path", name, "the name of a link of the scenario"))?;
            let link = &scenario.links[position];
            if link.from != point {
                let expected = format!("a link from {point} (it leads from {} to {})", link.from, link.to);
                return Err(Refusal::new("path", name, expected));
            }
            point = &link.to;
            hops.push((NodeId(position as u32), Port::ZERO));
        }
        if point != to || names.is_empty() {
            let message = format!("found a path that ends at {point}; expected links from {from} to {to}");
            return Err(Refusal::from(message).at("path"));
        }
        Ok(hops)
    }
}
