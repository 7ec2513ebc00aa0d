//! The simulator: virtual time, links and queues, recorded and generated networks, TCP, cross traffic,
//! and the recording of what happened.

pub mod build;
mod bytes;
pub mod cross;
mod excess;
pub mod external;
pub mod fork;
pub mod host;
pub mod jitter;
pub mod link;
pub mod loss;
pub mod lte;
pub mod phases;
pub mod record;
mod refusal;
pub mod scenario;
pub mod sink;
pub mod tcp;
pub mod trace;
pub mod wakeups;
pub mod world;

pub use cross::Cross;
pub use link::{Link, LinkSettings, ManagedLink};
pub use refusal::Refusal;
pub use sink::Sink;
pub use world::World;
