//! Radio networks of a scenario: their ends, users and kind.

use crate::radio::{User, lte};
use serde::Deserialize;

/// A radio network between a node of the graph and its users, each of which is a node of the graph as well.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioSpec {
    /// Its name; unique among links.
    pub name: String,
    /// The graph node behind its base stations.
    pub core: String,
    /// The users, in the order of their numbers.
    pub users: Vec<User>,
    /// Its kind, with that kind's settings.
    pub access: AccessSpec,
}

/// The kind of a radio network.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessSpec {
    /// LTE at system level.
    Lte(lte::Settings),
}
