//! LTE at system level: many cells, many users, both directions, in TTIs of 1 ms.
//!
//! The whole radio network is one [`Network`], a node with a port for each user and direction. Users walk through
//! a hexagonal layout ([`layout`], [`mobility`]); what of a cell's power reaches them follows from [`propagation`]
//! and [`fading`]; every TTI each cell gives its subbands to those who have something queued ([`scheduler`]);
//! what was sent at the same time in other cells disturbs, and [`link_adaptation`] says what arrives. HARQ and
//! [`rlc`] see to the rest. Nothing is computed for users and cells that have nothing to send.

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
