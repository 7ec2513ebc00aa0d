//! What of a run is its driver's: links that it carries packets over, flows that it feeds.

use tidegate_core::{NodeId, Time};

/// The parts of a run that are its driver's.
#[derive(Clone, Debug, Default)]
pub struct External {
    /// Links that it carries packets over, by name.
    pub links: Vec<(String, NodeId)>,
    /// Flows that it feeds and hears.
    pub flows: Vec<ExternalFlow>,
}

impl External {
    /// The scenario's key of the first part, if there is one: a run without a driver cannot have any.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        let link = self.links.first().map(|(name, _)| format!("links.{name}"));
        link.or_else(|| self.flows.first().map(|flow| format!("flows.{}", flow.name)))
    }
}

/// A flow that the driver feeds and hears.
#[derive(Clone, Debug)]
pub struct ExternalFlow {
    /// Its name.
    pub name: String,
    /// The node that the driver feeds.
    pub source: NodeId,
    /// The node at which its packets arrive.
    pub sink: NodeId,
    /// It must not be fed before this.
    pub start: Time,
    /// Nor from this on.
    pub stop: Time,
}
