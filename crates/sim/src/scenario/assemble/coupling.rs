//! Nodes of endpoints: endpoints whose flows are coupled share a node; each of the others has its own.

use super::Refusal;
use crate::engine::coupled::Coupled;
use crate::engine::host::Host;
use crate::scenario::{FlowKind, Scenario};
use tidegate_core::{FlowId, Node, Port};
use tidegate_endpoint::coupling::Algorithm;
use tidegate_endpoint::{Endpoint, EndpointSettings};

/// Coupled flows, with their priorities.
struct Group {
    flows: Vec<(FlowId, f64)>,
    algorithm: Algorithm,
}

/// The plan of a node: one endpoint, or the endpoints of a group, with their priorities.
struct NodePlan {
    endpoints: Vec<(Host<Endpoint>, f64)>,
    group: Option<usize>,
}

/// The planned nodes of all calls, in order.
pub(super) struct Plans {
    groups: Vec<Group>,
    nodes: Vec<NodePlan>,
}

impl Plans {
    /// Plans for the couplings of a scenario, without nodes yet.
    pub(super) fn new(scenario: &Scenario) -> Result<Self, Refusal> {
        Ok(Self { groups: groups(scenario)?, nodes: Vec::new() })
    }

    /// The group of a flow and the flow's priority in it, if it is coupled.
    fn group(&self, flow: FlowId) -> Option<(usize, f64)> {
        let within =
            |group: &Group| group.flows.iter().find(|&&(id, _)| id == flow).map(|&(_, priority)| priority);
        self.groups.iter().enumerate().find_map(|(index, group)| Some((index, within(group)?)))
    }

    /// The priority of a flow in its group, if it is coupled.
    pub(super) fn priority(&self, flow: FlowId) -> Option<f64> {
        self.group(flow).map(|(_, priority)| priority)
    }

    /// Reserves the place of an endpoint: the index of its node, and its port there.
    pub(super) fn reserve(&mut self, settings: &EndpointSettings) -> (usize, Port) {
        let sends = settings.send.as_ref().map(|send| send.flow);
        let group = sends.and_then(|flow| self.group(flow)).map(|(group, _)| group);
        let existing = group.and_then(|_| self.nodes.iter().position(|node| node.group == group));
        let node = existing.unwrap_or_else(|| {
            self.nodes.push(NodePlan { endpoints: Vec::new(), group });
            self.nodes.len() - 1
        });
        (node, Port(self.nodes[node].endpoints.len() as u16))
    }

    /// Adds an endpoint to its node.
    pub(super) fn put(&mut self, node: usize, host: Host<Endpoint>, priority: f64) {
        self.nodes[node].endpoints.push((host, priority));
    }

    /// Makes the nodes.
    pub(super) fn nodes(self) -> Vec<Box<dyn Node>> {
        let mut nodes: Vec<Box<dyn Node>> = Vec::with_capacity(self.nodes.len());
        for NodePlan { endpoints, group } in self.nodes {
            match group {
                Some(group) => {
                    nodes.push(Box::new(Coupled::new(endpoints, self.groups[group].algorithm)));
                }
                None => endpoints.into_iter().for_each(|(host, _)| nodes.push(Box::new(host))),
            }
        }
        nodes
    }
}

/// The couplings of a scenario.
fn groups(scenario: &Scenario) -> Result<Vec<Group>, Refusal> {
    let mut coupled = Vec::new();
    let mut groups = Vec::new();
    for (number, spec) in scenario.couplings.iter().enumerate() {
        let mut flows = Vec::with_capacity(spec.flows.len());
        let mut from = None;
        for (name, priority) in &spec.flows {
            let refuse = |expected: &str| {
                Refusal::new("flows", name, expected).at(&format!("couplings[{}]", number + 1))
            };
            let index = scenario.flows.iter().position(|flow| &flow.name == name);
            let index = index
                .filter(|&index| matches!(scenario.flows[index].kind, FlowKind::Media(_)))
                .ok_or_else(|| refuse("a media flow"))?;
            if coupled.contains(&index) {
                return Err(refuse("a flow that is not coupled yet"));
            }
            if *from.get_or_insert(&scenario.flows[index].from) != &scenario.flows[index].from {
                return Err(refuse("a flow from the same node as the first one"));
            }
            if !(priority.is_finite() && *priority > 0.0) {
                return Err(refuse("a flow with a priority above zero"));
            }
            coupled.push(index);
            flows.push((FlowId(index as u32), *priority));
        }
        groups.push(Group { flows, algorithm: spec.algorithm });
    }
    Ok(groups)
}
