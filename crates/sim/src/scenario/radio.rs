//! Radio networks of a scenario: ends, users and technology.

use crate::radio::{User, lte};
use serde::Deserialize;

/// A radio network between a core node and the network's users; the core and each user are nodes of the graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioSpec {
    /// Name of the network; unique among links.
    pub name: String,
    /// The node behind the network's base stations.
    pub core: String,
    /// Users of the network, in the order of their numbers.
    pub users: Vec<User>,
    /// Technology of the network, with the technology's settings.
    pub access: AccessSpec,
}

/// The technology of a radio network.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessSpec {
    /// LTE at system level.
    Lte(lte::Settings),
}
