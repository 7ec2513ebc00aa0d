//! Radio networks: many users share the capacity of the air.
//!
//! A radio network is one node of a world. Its users are points of the scenario's graph of links, and the packets to
//! and from each user have their own ports ([`port`]). A kind of network ([`lte`]; Wi-Fi would be another) is a type of
//! settings that implements [`Access`]: it makes such a node. The assembly of a world uses only that trait.

pub mod lte;
mod user;

pub use user::{Point, User};

use crate::refusal::Refusal;
use tidegate_core::{Node, Port};

/// Largest number of users of a radio network, with two ports each.
pub const MAX_USERS: usize = 32_768;

/// A kind of radio network, implemented by its settings.
pub trait Access {
    /// Makes the network called `name` in the run with `seed`: a node that takes in packets of user `k` at
    /// [`port`]`(k, up)` and puts them out again when they have passed the air. It records the state of users and cells
    /// ([`RadioRecord`](tidegate_core::record::RadioRecord), [`CellRecord`](tidegate_core::record::CellRecord)).
    ///
    /// # Errors
    /// When a setting is out of its range, or there are more users than [`MAX_USERS`].
    fn network(&self, name: &str, seed: u64, users: &[User]) -> Result<Box<dyn Node>, Refusal>;
}

/// The port of user number `user` of a radio network, uplink if `up`.
#[must_use]
pub const fn port(user: usize, up: bool) -> Port {
    Port((2 * user + up as usize) as u16)
}
