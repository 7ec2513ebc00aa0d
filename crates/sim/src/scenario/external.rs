//! The parts of a run that its driver controls: links whose packets it carries, flows that it feeds. The driver is the
//! program that steps the run: Python code with `tidegate.simpy`, or `tidegate shell`.

use tidegate_core::{NodeId, Time};

/// The links and flows of a run that its driver controls.
#[derive(Clone, Debug, Default)]
pub struct External {
    /// Links whose packets the driver carries, with their names.
    pub links: Vec<(String, NodeId)>,
    /// Flows that the driver feeds and receives.
    pub flows: Vec<ExternalFlow>,
}

impl External {
    /// The scenario's key of the first external link or flow, for the refusal of a run without a driver.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        let link = self.links.first().map(|(name, _)| format!("links.{name}"));
        link.or_else(|| self.flows.first().map(|flow| format!("flows.{}", flow.name)))
    }
}

/// A flow that the driver feeds and receives.
#[derive(Clone, Debug)]
pub struct ExternalFlow {
    /// Name of the flow.
    pub name: String,
    /// The node that the driver feeds.
    pub source: NodeId,
    /// The node at which the flow's packets arrive.
    pub sink: NodeId,
    /// The time from which the driver may feed the flow.
    pub start: Time,
    /// The time from which the driver must not feed the flow any more.
    pub stop: Time,
}
