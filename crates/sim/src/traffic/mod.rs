//! Traffic that competes with media: TCP, UDP at given rates, and the node at which UDP ends.

pub mod leg;
pub mod sending_jitter;
mod sink;
pub mod tcp;
pub mod udp;

pub use sink::Sink;
