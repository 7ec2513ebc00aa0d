//! The engine: virtual time, who is woken when, and where packets go.
//!
//! [`world`] drives nodes and carries packets between them, [`wakeups`] knows who is due next. The rest are nodes that a
//! world needs whatever it models: [`host`] holds an endpoint, [`coupled`] several whose congestion controls are coupled, `bytes` lets a node read what comes in from its bytes,
//! [`external`] are links and flows of whoever drives the run, [`replicator`] copies packets where a multicast tree branches.

pub(crate) mod bytes;
pub mod coupled;
pub mod external;
pub mod host;
pub mod replicator;
pub mod wakeups;
pub mod world;

pub use world::World;
