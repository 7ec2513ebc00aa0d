//! The simulator: virtual time, links and queues, recorded and generated networks, TCP, cross traffic,
//! and the recording of what happened.

mod counts;
pub mod engine;
pub mod link;
pub mod radio;
pub mod record;
mod refusal;
pub mod scenario;
pub mod traffic;

pub use engine::World;
pub use link::{Link, LinkSettings, ManagedLink};
pub use refusal::Refusal;
pub use traffic::Sink;
pub use traffic::udp::UdpSource;
