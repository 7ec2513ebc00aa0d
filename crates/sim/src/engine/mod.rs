//! The engine: virtual time, the order in which nodes act, and the routes of packets.
//!
//! [`world`] drives nodes and carries packets between them; [`wakeups`] orders their wakeups. The other modules are
//! nodes that do not depend on the network modelled: [`host`] holds an endpoint, [`coupled`] several endpoints whose
//! congestion controls are coupled, `bytes` hands a node the packets as decoded from their bytes, [`external`] are
//! links and flows that the driver of a run controls, [`replicator`] copies packets where a multicast tree branches.

pub(crate) mod bytes;
pub mod coupled;
pub mod external;
pub mod host;
pub mod replicator;
pub mod wakeups;
pub mod world;

pub use world::World;
