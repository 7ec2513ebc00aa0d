//! Assembles a [`Run`] from a [`Scenario`]: nodes, routes, and their descriptions for the recording.

mod coupling;
mod graph;
mod legs;
mod links;
mod makers;
mod media;
mod sessions;
mod traffic;
mod trees;

use crate::engine::bytes::InBytes;
use crate::engine::world::World;
use crate::link::trace::Trace;
use crate::radio::Access;
use crate::record::member::MemberInfo;
use crate::record::target::{INTERVAL, Sharing};
use crate::record::{FlowInfo, LinkInfo, RadioInfo, Recording};
use crate::refusal::{Refusal, ensure};
use crate::scenario::calls::{Calls, nodes};
use crate::scenario::external::External;
use crate::scenario::moves::{CallChange, Moves, PathChange, of_flows};
use crate::scenario::run::Run;
use crate::scenario::tightest_link::capacity;
use crate::scenario::{
    AccessSpec, Capacity, FlowKind, FlowSpec, MediaSpec, Scenario, SendingJitter, VideoSource,
};
use crate::traffic::udp::Pattern;
use graph::Graph;
pub use makers::{EncoderMaker, EncoderRequest, Halves, Maker, Makers, from_registry, no_encoder};
pub use media::endpoint_settings;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::RouteId;
use tidegate_core::wire::ip::UDP_HEADERS;
use tidegate_core::{FlowId, Level, Node, NodeId, Port, Rate, Size, Span, Time};
use tidegate_endpoint::ClockSettings;

fn refused<T>(key: &str, value: Span, expected: &str) -> Result<T, Refusal> {
    Err(Refusal::new(key, value, expected))
}

impl Run {
    /// Builds the world of `scenario`.
    ///
    /// # Errors
    /// With the key and the problem, when the scenario is invalid.
    pub fn new<'a>(
        scenario: &Scenario,
        traces: &[Arc<Trace>],
        make: &'a mut Maker<'a>,
    ) -> Result<Self, Refusal> {
        Self::with(scenario, traces, &mut Makers { controller: make, encoder: &mut no_encoder })
    }

    /// Builds the world of `scenario`, encoders in the loop included.
    ///
    /// # Errors
    /// As [`Run::new`].
    pub fn with(scenario: &Scenario, traces: &[Arc<Trace>], make: &mut Makers<'_>) -> Result<Self, Refusal> {
        let scenario = of_flows(scenario)?;
        Builder::new(&scenario, traces)?.build(make)
    }
}

/// The parts of a scenario's world assembled so far.
struct Builder<'a> {
    scenario: &'a Scenario,
    traces: &'a [Arc<Trace>],
    graph: Graph<'a>,
    nodes: Vec<Box<dyn Node>>,
    routes: Vec<Vec<(NodeId, Port)>>,
    external: External,
    calls: Calls,
    /// Changes of calls, by the index of their move.
    changes: BTreeMap<usize, CallChange>,
    /// The flows of connections that carry calls.
    leg_infos: Vec<FlowInfo>,
}

impl<'a> Builder<'a> {
    fn new(scenario: &'a Scenario, traces: &'a [Arc<Trace>]) -> Result<Self, Refusal> {
        if scenario.duration <= Span::ZERO {
            return refused("duration", scenario.duration, "more than zero");
        }
        if scenario.warmup < Span::ZERO || scenario.warmup >= scenario.duration {
            return refused(
                "warmup",
                scenario.warmup,
                &format!("less than the duration ({})", scenario.duration),
            );
        }
        if scenario.record.bin <= Span::ZERO {
            return refused("record.bin", scenario.record.bin, "more than zero");
        }
        for (node, clock) in &scenario.clocks {
            let is_node = scenario.links.iter().any(|link| link.from == *node || link.to == *node);
            let problem =
                if is_node { clock.check().err() } else { Some("no link begins or ends there".to_owned()) };
            problem.map_or(Ok(()), |problem| Err(Refusal::from(problem).at(node).at("clocks")))?;
        }
        let graph = Graph::new(scenario)?;
        let mut builder = Self {
            scenario,
            traces,
            graph,
            nodes: Vec::new(),
            routes: Vec::new(),
            external: External::default(),
            calls: Calls::over(scenario),
            changes: BTreeMap::new(),
            leg_infos: Vec::new(),
        };
        for spec in &scenario.links {
            if matches!(spec.capacity, Capacity::External) {
                builder.external.links.push((spec.name.clone(), builder.next_node(0)));
            }
            let link = builder.link(spec)?;
            builder.nodes.push(link);
        }
        for radio in &scenario.radios {
            let network = access(&radio.access).network(&radio.name, builder.seed(&radio.name), &radio.users);
            builder.nodes.push(network.map_err(|refusal| refusal.at(&radio.name).at("radios"))?);
        }
        Ok(builder)
    }

    fn seed(&self, component: &str) -> u64 {
        seed_of(self.scenario, component)
    }

    fn build(mut self, make: &mut Makers<'_>) -> Result<Run, Refusal> {
        let scenario = self.scenario;
        let jitter = self.sending_jitter();
        let mut infos = Vec::with_capacity(scenario.flows.len());
        for (index, flow) in scenario.flows.iter().enumerate() {
            let id = FlowId(index as u32);
            let key = format!("flows.{}", flow.name);
            let Some(path) = self.graph.path(&flow.from, &flow.to) else {
                return Err(no_path(&flow.from, &flow.to).at(&key));
            };
            let stop = flow.stop.unwrap_or(Time::MAX);
            if stop <= flow.start {
                let expected = format!("after the start ({})", flow.start);
                return Err(Refusal::new("stop", stop, expected).at(&key));
            }
            infos.push(FlowInfo {
                name: flow.name.clone(),
                kind: match flow.kind {
                    FlowKind::Media(_) => "media",
                    FlowKind::Udp(_) => "udp",
                    FlowKind::Tcp(_) => "tcp",
                    FlowKind::External => "external",
                    FlowKind::Program => "program",
                },
                controller: label(&flow.kind),
                start: flow.start,
                stop: stop.min(Time::ZERO + scenario.duration),
                tightest: None,
                path: nodes(&path).into(),
                overhead: match &flow.kind {
                    FlowKind::Media(media) => media.overhead,
                    _ => UDP_HEADERS,
                },
                sharing: match &flow.kind {
                    FlowKind::Media(media) if adapts(media) => Sharing::Adaptive,
                    FlowKind::Media(_) | FlowKind::Udp(_) => Sharing::Fixed,
                    FlowKind::Tcp(_) => Sharing::Sending,
                    FlowKind::External | FlowKind::Program => Sharing::Unknown,
                },
                pauses: match &flow.kind {
                    FlowKind::Media(media) => media.silences(),
                    _ => Vec::new(),
                },
            });
            match &flow.kind {
                FlowKind::Udp(udp) => self.udp(id, flow, udp, &path, jitter),
                FlowKind::Tcp(tcp) => self.tcp(id, flow, tcp, &path, jitter),
                FlowKind::External | FlowKind::Program => {
                    self.external_flow(id, flow, &path);
                    Ok(())
                }
                FlowKind::Media(_) => Ok(()),
            }
            .map_err(|refusal| refusal.at(&key))?;
            if matches!(flow.kind, FlowKind::External | FlowKind::Program) {
                self.external_paths(id, flow)?;
            }
        }
        self.add_legs()?;
        for FlowId(index) in self.media(make)? {
            infos[index as usize].sharing = Sharing::Fixed;
        }
        for (&index, change) in &self.changes {
            let CallChange::Path(PathChange { flows, .. }) = change else { continue };
            for (FlowId(flow), links) in flows {
                infos[*flow as usize].path.change(scenario.moves[index].time, links.clone());
            }
        }
        let members = self.sessions(&mut infos)?;
        infos.append(&mut self.leg_infos);
        self.finish(infos, members)
    }

    /// Checks that no path has more nodes than a packet can count hops.
    fn check_lengths(&self) -> Result<(), Refusal> {
        let nodes = self.routes.iter().map(Vec::len).max().unwrap_or(0);
        ensure(nodes <= World::LONGEST_ROUTE, || {
            let max_links = World::LONGEST_ROUTE - 1;
            Refusal::new(
                "links",
                format!("a path over {} links", nodes - 1),
                format!("at most {max_links} links"),
            )
        })
    }

    fn finish(mut self, infos: Vec<FlowInfo>, members: Vec<MemberInfo>) -> Result<Run, Refusal> {
        self.check_lengths()?;
        let scenario = self.scenario;
        let (recordings, remarks) = (self.recordings()?, self.remarks()?);
        let begin = Time::ZERO + scenario.warmup;
        let links = scenario.links.iter().enumerate().map(|(index, spec)| LinkInfo {
            node: NodeId(index as u32),
            name: spec.name.clone(),
            // set at the end of the run, which may be early
            capacity: None,
        });
        // a radio network has no capacity of its own: it depends on the positions of its users
        let radios = || (scenario.links.len() as u32..).map(NodeId).zip(&scenario.radios);
        let air = radios().map(|(node, radio)| LinkInfo { node, name: radio.name.clone(), capacity: None });
        let links = links.chain(air).collect();
        let users = radios().map(|(node, radio)| RadioInfo {
            node,
            users: radio.users.iter().map(|user| user.name.clone()).collect(),
        });
        let level = scenario.record.level;
        let bin = scenario.record.bin;
        let names = self.nodes.iter().map(|node| node.name().to_owned()).collect();
        if scenario.bytes {
            self.wrap_in_bytes(&infos);
        }
        let mut recording = Recording::new(level, bin, begin, infos, links, names)
            .with_members(members)
            .with_radios(users.collect());
        if scenario.record.capture {
            recording = recording.with_capture();
        }
        // a member of a session has no target, and a share of trees of links
        let compares = scenario.sessions.is_empty();
        if compares {
            recording = recording.with_available_rates();
        }
        let mut world = World::new(self.nodes, self.routes, Box::new(recording));
        if compares {
            world.measure_every(INTERVAL);
        }
        if level >= Level::Series {
            world.sample_every(bin);
        }
        let (duration, warmup) = (scenario.duration, scenario.warmup);
        let moves = Moves::default();
        let (external, calls) = (self.external, self.calls);
        Run { world, duration, warmup, before: None, external, calls, moves, recordings, remarks }
            .with_moves(&scenario.moves, self.changes)
    }

    /// Wraps the nodes at the ends of routes, so that their packets are encoded to bytes and decoded.
    fn wrap_in_bytes(&mut self, infos: &[FlowInfo]) {
        let overheads: Arc<[u32]> = infos.iter().map(|info| info.overhead).collect();
        let ends = self.nodes.split_off(self.scenario.links.len() + self.scenario.radios.len());
        let around = |node| -> Box<dyn Node> { Box::new(InBytes::around(node, overheads.clone())) };
        self.nodes.extend(ends.into_iter().map(around));
    }

    /// The largest sending jitter: the service time of 1500 B at the slowest link's mean rate, at most 12 ms.
    fn sending_jitter(&mut self) -> Option<Span> {
        match self.scenario.sending_jitter {
            SendingJitter::Off => None,
            SendingJitter::Fixed(span) => Some(span).filter(|&span| span > Span::ZERO),
            SendingJitter::Auto => {
                let end = Time::ZERO + self.scenario.duration;
                let links = (0..self.scenario.links.len() as u32).map(NodeId);
                let slowest = links
                    .filter_map(|link| capacity(&mut self.nodes, link, Time::ZERO, end))
                    .min()
                    .filter(|&rate| rate > Rate::ZERO)?;
                Some(slowest.time_for(Size::from_bytes(1500)).min(Span::from_millis(12)))
            }
        }
    }

    /// Adds a route over the links of `path` to the node that will be added as `end`.
    fn route(&mut self, path: &[(NodeId, Port)], end: NodeId) -> RouteId {
        self.route_to(path, (end, Port::ZERO))
    }

    fn route_to(&mut self, path: &[(NodeId, Port)], end: (NodeId, Port)) -> RouteId {
        self.add_route(path.iter().copied().chain([end]).collect())
    }

    /// Adds a route over these hops, the last of which is its destination.
    fn add_route(&mut self, hops: Vec<(NodeId, Port)>) -> RouteId {
        self.routes.push(hops);
        RouteId(self.routes.len() as u32 - 1)
    }

    fn next_node(&self, ahead: usize) -> NodeId {
        NodeId((self.nodes.len() + ahead) as u32)
    }

    fn way_back(&self, flow: &FlowSpec) -> Result<Vec<(NodeId, Port)>, Refusal> {
        let back = self.graph.path(&flow.to, &flow.from);
        back.ok_or_else(|| no_path(&flow.to, &flow.from))
    }
}

/// Whether the rate of a flow's media can follow a controller: that of audio and of constant packets cannot.
fn adapts(media: &MediaSpec) -> bool {
    media.video.as_ref().is_some_and(|video| !matches!(video.source, VideoSource::Cbr { .. }))
}

/// The refusal of two nodes that no path connects.
fn no_path(from: &str, to: &str) -> Refusal {
    format!("there is no path from {from} to {to}").into()
}

/// The seed of a component: its own one if the scenario gives it, or the run's.
fn seed_of(scenario: &Scenario, component: &str) -> u64 {
    let special = scenario.seeds.iter().find(|(name, _)| name == component);
    special.map_or(scenario.seed, |&(_, seed)| seed)
}

/// The clock of the ends at a node of the graph.
fn clock_of(scenario: &Scenario, node: &str) -> ClockSettings {
    scenario.clocks.get(node).cloned().unwrap_or_default()
}

/// The maker of radio networks of the kind.
fn access(spec: &AccessSpec) -> &dyn Access {
    match spec {
        AccessSpec::Lte(settings) => settings,
    }
}

/// The label of a flow in tables: the controller and its preset, the TCP algorithm, or the UDP pattern.
#[must_use]
pub fn label(kind: &FlowKind) -> String {
    match kind {
        FlowKind::Media(media) if media.controller.preset.is_empty() => media.controller.name.clone(),
        FlowKind::Media(media) => format!("{}:{}", media.controller.name, media.controller.preset),
        FlowKind::Udp(udp) => match udp.pattern {
            Pattern::Cbr => "cbr".to_owned(),
            Pattern::Poisson => "poisson".to_owned(),
            Pattern::OnOff { .. } => "on_off".to_owned(),
        },
        FlowKind::Tcp(tcp) => format!("{:?}", tcp.algorithm).to_lowercase(),
        FlowKind::External => "external".to_owned(),
        FlowKind::Program => "program".to_owned(),
    }
}
