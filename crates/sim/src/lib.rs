//! The simulator: virtual time, links and queues, recorded and generated networks, TCP, cross traffic,
//! and the recording of what happened.

pub mod agenda;
pub mod record;
pub mod scenario;
pub mod world;

pub use world::World;
