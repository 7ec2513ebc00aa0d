//! Sessions of many members: from their specification to participants, and trees between them.

use super::graph::Places;
use super::{Builder, Refusal};
use crate::engine::host::{Host, Talks};
use crate::engine::replicator::{Branches, Replicator};
use crate::record::FlowInfo;
use crate::record::member::MemberInfo;
use crate::scenario::{MemberMedia, MemberSpec, ProfileSpec, SessionSpec};
use std::collections::BTreeMap;
use tidegate_core::RouteId;
use tidegate_core::{FlowId, NodeId, Port, Time};
use tidegate_endpoint::group::{Leave, MediaSettings, Participant, ParticipantSettings};
use tidegate_endpoint::rtcp::schedule::Avpf;
use tidegate_endpoint::{RtcpMinimum, RtcpMode, RtcpSettings};

/// A member on its way to a participant.
struct Member<'a> {
    spec: &'a MemberSpec,
    /// `SESSION.MEMBER`.
    name: String,
    /// Its node in the graph of the scenario, and in the world.
    place: usize,
    node: NodeId,
    flow: FlowId,
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
struct Trees<'a> {
    members: &'a [Member<'a>],
    /// The members at each place.
    at: Vec<Vec<usize>>,
    /// For each place the links, and where they lead, by which the present source reaches members.
    onward: Vec<Vec<(usize, usize)>>,
    routes: &'a mut Vec<Vec<(NodeId, Port)>>,
    known: BTreeMap<Stretch, RouteId>,
    /// The replicators so far: node and branches, by place.
    replicators: BTreeMap<usize, (NodeId, Branches)>,
    /// The node of the first replicator.
    first_replicator: u32,
}

impl Trees<'_> {
    /// The route from `source` to all other members.
    fn plant(&mut self, source: usize, places: &Places<'_>) -> Result<RouteId, Refusal> {
        let root = self.members[source].place;
        let before = places.ways_from(root);
        self.onward.iter_mut().for_each(Vec::clear);
        let mut reached = vec![false; places.len()];
        reached[root] = true;
        for member in self.members {
            let mut place = member.place;
            while !reached[place] {
                let Some((from, link)) = before[place] else {
                    let (from, to) = (&self.members[source].spec.node, &member.spec.node);
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

impl Builder<'_> {
    /// The participants of all sessions, and the trees between them.
    pub(super) fn sessions(&mut self, infos: &mut Vec<FlowInfo>) -> Result<Vec<MemberInfo>, Refusal> {
        let scenario = self.scenario;
        let places = Places::new(&scenario.links);
        let mut named = Vec::new();
        for (index, session) in scenario.sessions.iter().enumerate() {
            self.session(index, session, &places, infos, &mut named)
                .map_err(|refusal| refusal.at(&format!("sessions.{}", session.name)))?;
        }
        Ok(named)
    }

    fn session(
        &mut self,
        index: usize,
        session: &SessionSpec,
        places: &Places<'_>,
        infos: &mut Vec<FlowInfo>,
        named: &mut Vec<MemberInfo>,
    ) -> Result<(), Refusal> {
        if session.members.len() < 2 {
            return Err(Refusal::new("members", session.members.len(), "at least 2"));
        }
        let first = infos.len();
        let mut members = Vec::with_capacity(session.members.len());
        let mut at = vec![Vec::new(); places.len()];
        for (number, spec) in session.members.iter().enumerate() {
            let place = places.number(&spec.node);
            let place = place.ok_or_else(|| {
                format!("member {}: no link begins or ends at its node {}", spec.name, spec.node)
            })?;
            at[place].push(number);
            let name = format!("{}.{}", session.name, spec.name);
            let (node, flow) = (self.next_node(number), FlowId((first + number) as u32));
            members.push(Member { spec, name, place, node, flow });
        }
        let first_replicator = self.next_node(members.len()).0;
        let mut trees = Trees {
            members: &members,
            at,
            onward: vec![Vec::new(); places.len()],
            routes: &mut self.routes,
            known: BTreeMap::new(),
            replicators: BTreeMap::new(),
            first_replicator,
        };
        let routes: Vec<RouteId> =
            (0..members.len()).map(|source| trees.plant(source, places)).collect::<Result<_, _>>()?;
        let mut replicators: Vec<_> = trees.replicators.into_values().collect();
        replicators.sort_by_key(|&(node, _)| node);
        for (member, route) in members.iter().zip(routes) {
            let settings = settings(self.seed(&member.name), session, member);
            let participant = Participant::new(settings)?;
            self.nodes.push(Box::new(Host::new(participant, route, Talks::Group(index as u16))));
            infos.push(info(member, session.overhead, self.scenario.duration));
            named.push(MemberInfo {
                flow: member.flow,
                session: index as u32,
                name: member.spec.name.clone(),
                bandwidth: session.bandwidth,
            });
        }
        for (number, (_, branches)) in replicators.into_iter().enumerate() {
            self.nodes.push(Box::new(Replicator::new(
                format!("{}.replicator{}", session.name, number + 1),
                branches,
            )));
        }
        Ok(())
    }
}

fn info(member: &Member<'_>, overhead: u32, duration: tidegate_core::Span) -> FlowInfo {
    let end = Time::ZERO + duration;
    FlowInfo {
        name: member.name.clone(),
        kind: "member",
        controller: match member.spec.profile {
            ProfileSpec::Avp { .. } => "avp",
            ProfileSpec::Avpf { .. } => "avpf",
        }
        .to_owned(),
        start: member.spec.join,
        stop: member.spec.leave.map_or(end, |at| at.min(end)),
        tightest: None,
        links: Vec::new(),
        overhead,
    }
}

fn settings(seed: u64, session: &SessionSpec, member: &Member<'_>) -> ParticipantSettings {
    let spec = member.spec;
    let (mode, minimum, avpf, reduced_size) = match spec.profile {
        ProfileSpec::Avp { minimum } => (RtcpMode::Avp, RtcpMinimum::Fixed(minimum), Avpf::default(), false),
        ProfileSpec::Avpf { l, k, redraw, max_feedback_delay, rr_interval, reduced_size } => {
            let avpf = Avpf { l, k, redraw, max_feedback_delay, rr_interval };
            (RtcpMode::Avpf, RtcpMinimum::Standard, avpf, reduced_size)
        }
    };
    let pictures = session.members.iter().find_map(|member| match member.media {
        Some(MemberMedia::Segments { segments, .. }) => Some(segments),
        _ => None,
    });
    ParticipantSettings {
        cname: spec.name.clone(),
        overhead: session.overhead,
        rtcp: RtcpSettings { mode, session_bandwidth: session.bandwidth, minimum, avpf, reduced_size },
        media: spec.media.map(|media| match media {
            MemberMedia::Packets { packet_size, rate } => MediaSettings::Packets { size: packet_size, rate },
            MemberMedia::Segments { fps, segments, rate } => MediaSettings::Segments { fps, segments, rate },
        }),
        segments: pictures,
        declared_sender: spec.declared_sender,
        declared_senders: session.members.iter().any(|member| member.declared_sender),
        reports_losses: spec.reports_losses,
        join: spec.join,
        leave: spec.leave.map(|at| (at, if spec.crashes { Leave::Crash } else { Leave::Goodbye })),
        ..ParticipantSettings::new(&member.name, seed, member.flow)
    }
}
