//! Legs of calls over TCP: from the links that calls cross to connections.

use super::{Builder, Refusal};
use crate::record::FlowInfo;
use crate::record::path::Path;
use crate::record::target::Sharing;
use crate::scenario::{FlowKind, FlowSpec, LinkSpec};
use crate::traffic::leg::TcpLeg;
use tidegate_core::wire::ip::UDP_HEADERS;
use tidegate_core::{FlowId, NodeId, Port, Time};

impl Builder<'_> {
    /// Adds the connections of all calls over links with `via`, each of which is a flow, too.
    ///
    /// # Errors
    /// When such a link has no other direction for acknowledgements, or a setting is out of its range.
    pub(super) fn add_legs(&mut self) -> Result<(), Refusal> {
        let scenario = self.scenario;
        if scenario.links.iter().all(|link| link.via.is_none()) {
            return Ok(());
        }
        let members: usize = scenario.sessions.iter().map(|session| session.members.len()).sum();
        let mut flow = FlowId((scenario.flows.len() + members) as u32);
        for (call, spec) in scenario.flows.iter().enumerate() {
            let FlowKind::Media(media) = &spec.kind else { continue };
            let pair_of = |flow: &FlowSpec| match &flow.kind {
                FlowKind::Media(media) => media.pair.clone(),
                _ => None,
            };
            // the first flow of a pair stands for both
            if scenario.flows[..call].iter().any(|earlier| pair_of(earlier).as_ref() == Some(&spec.name)) {
                continue;
            }
            let peer =
                media.pair.as_ref().and_then(|name| scenario.flows.iter().find(|flow| flow.name == *name));
            for link in self.links_of(spec, peer)? {
                self.add_leg(call, link, flow)?;
                flow.0 += 1;
            }
        }
        Ok(())
    }

    /// The links with `via` that a call crosses in either direction, at first or after a move.
    fn links_of(&self, flow: &FlowSpec, peer: Option<&FlowSpec>) -> Result<Vec<NodeId>, Refusal> {
        let scenario = self.scenario;
        let named = |name: &String| scenario.links.iter().position(|link| &link.name == name);
        let mut links: Vec<NodeId> = Vec::new();
        for (from, to) in [(&flow.from, &flow.to), (&flow.to, &flow.from)] {
            let path = self.graph.path(from, to).unwrap_or_default();
            links.extend(path.into_iter().map(|(node, _)| node));
        }
        let names = [Some(&flow.name), peer.map(|peer| &peer.name)];
        for change in scenario.moves.iter().filter(|change| names.contains(&change.flow.as_ref())) {
            let moved = change.path.iter().flatten().chain(&change.back).filter_map(named);
            links.extend(moved.map(|link| NodeId(link as u32)));
        }
        links.sort_unstable();
        links.dedup();
        links.retain(|link| scenario.links.get(link.0 as usize).is_some_and(|link| link.via.is_some()));
        Ok(links)
    }

    fn add_leg(&mut self, call: usize, link: NodeId, flow: FlowId) -> Result<(), Refusal> {
        let scenario = self.scenario;
        let spec = &scenario.links[link.0 as usize];
        let Some(settings) = spec.via else { return Ok(()) };
        let key = format!("links.{}", spec.name);
        let is_back = |other: &LinkSpec| (&other.from, &other.to) == (&spec.to, &spec.from);
        let other = match spec.name.strip_suffix(".back") {
            Some(name) => name.to_owned(),
            None => format!("{}.back", spec.name),
        };
        let back =
            scenario.links.iter().position(|link| link.name == other && is_back(link)).ok_or_else(|| {
                let expected = "a link with another direction, which the connection's acknowledgements take";
                Refusal::new("via", "a connection", expected).at(&key)
            })?;
        let node = self.next_node(0);
        let back = NodeId(back as u32);
        let data = self.route_to(&[(link, Port::ZERO)], (node, TcpLeg::DATA));
        let acks = self.route_to(&[(back, Port::ZERO)], (node, TcpLeg::ACKS));
        let name = format!("{}.{}", scenario.flows[call].name, spec.name);
        let seed = self.seed(&scenario.flows[call].name);
        let leg =
            TcpLeg::new(&name, seed, flow, [data, acks], settings).map_err(|refusal| refusal.at(&key))?;
        self.nodes.push(Box::new(leg));
        self.calls.legs.add(call, link, node);
        self.leg_infos.push(FlowInfo {
            name,
            kind: "leg",
            controller: format!("{:?}", settings.algorithm).to_lowercase(),
            start: Time::ZERO,
            stop: Time::ZERO + scenario.duration,
            tightest: None,
            // what it carries counts on the links of the call
            path: Path::default(),
            overhead: UDP_HEADERS,
            sharing: Sharing::Fixed,
            pauses: Vec::new(),
        });
        Ok(())
    }
}
