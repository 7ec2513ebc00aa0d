//! Identifiers of the parts of a world: flows, routes, nodes and their ports.

use serde::{Deserialize, Serialize};

/// Flow: a controlled media session, a TCP connection, or a cross-traffic source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FlowId(pub u32);

/// Static route of the world: the nodes that a packet visits, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RouteId(pub u32);

/// Index of a node in its world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(pub u32);

/// Port of a node. For a node with one input and one output, both are [`Port::ZERO`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port(pub u16);

impl Port {
    /// Only port of a node with a single one.
    pub const ZERO: Self = Self(0);
}
