//! LTE at system level: many cells, many users, both directions, in TTIs of 1 ms.
//!
//! The whole radio network is one [`Network`], a node with a port for each user and direction. Users walk through
//! a hexagonal layout ([`layout`], [`mobility`]); the power that they receive from each cell follows from
//! [`propagation`] and [`fading`]; every TTI each cell assigns its subbands to users with queued data ([`scheduler`]);
//! simultaneous transmissions in other cells interfere, and [`link_adaptation`] determines which blocks arrive. HARQ
//! and [`rlc`] send lost data again. Users and cells without data to send cost no computation.

pub mod fading;
mod frame;
pub mod layout;
pub mod link_adaptation;
pub mod mobility;
mod network;
mod presence;
pub mod propagation;
pub mod rlc;
pub mod scheduler;
pub mod settings;
pub mod survey;
pub mod uplink;
pub mod user;

pub use network::Network;
pub use settings::{Antennas, Bandwidth, Handover, Scheduler, Settings};
