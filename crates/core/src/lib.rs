//! Parts that all crates of tidegate share: units, randomness, packet formats, and the contracts between components.
//!
//! Nothing in this crate, nor in `controllers`, `endpoint` and `sim` above it, reads a clock, the
//! environment or a file: the same inputs give the same bits on every machine.

pub mod address;
pub mod control;
pub mod datagram;
pub mod driver;
pub mod frame;
pub mod ids;
pub mod math;
pub mod node;
pub mod outbox;
pub mod packet;
pub mod record;
pub mod rng;
pub mod units;
pub mod wire;

pub use control::{Context, Controller, ControllerHost, Decision, Limits, Report};
pub use datagram::{Body, Datagram, Ecn};
pub use driver::{DatagramInfo, Driver, Peer};
pub use frame::Frame;
pub use ids::{FlowId, NodeId, Port, RouteId};
pub use node::Node;
pub use outbox::Outbox;
pub use packet::{Kind, Packet};
pub use record::{Cause, Level, Recorder};
pub use rng::Stream;
pub use units::{Rate, RemoteTime, Size, Span, Time};
