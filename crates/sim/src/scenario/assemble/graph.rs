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
}
