//! Numbers that name the parts of a world: flows, routes, nodes and their ports.

use serde::{Deserialize, Serialize};

/// A flow: one controlled media session, one TCP connection, one cross-traffic source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FlowId(pub u32);

/// A static route of the world: the nodes that a packet visits, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RouteId(pub u32);

/// A node's place in its world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(pub u32);

/// One of a node's sockets. For a node with one way in and one way out both are [`Port::ZERO`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port(pub u16);

impl Port {
    /// The only port of a node that has one.
    pub const ZERO: Self = Self(0);
}
