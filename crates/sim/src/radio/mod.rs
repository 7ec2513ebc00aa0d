//! Radio networks: many users share what the air carries.
//!
//! A radio network is one node of a world. Its users are points of the scenario's graph of links, and packets to and from
//! each pass at ports of their own ([`port`]). A kind of network ([`lte`]; Wi-Fi would be another) is a type of settings
//! that implements [`Access`]: it makes such a node. Whoever assembles a world asks that trait and knows no kind.

pub mod lte;
mod user;

pub use user::{Point, User};

use crate::refusal::Refusal;
use tidegate_core::{Node, Port};

/// The most users of a radio network: two ports each.
pub const MOST_USERS: usize = 32_768;

/// A kind of radio network, as its settings describe it.
pub trait Access {
    /// The network called `name` in the run with `seed`: a node that takes packets of user `k` in at [`port`]`(k, way)`
    /// and puts them out again when they have passed the air. It tells the record how users and cells fare
    /// ([`RadioRecord`](tidegate_core::record::RadioRecord), [`CellRecord`](tidegate_core::record::CellRecord)).
    ///
    /// # Errors
    /// When a setting is out of its range, or there are more users than [`MOST_USERS`].
    fn network(&self, name: &str, seed: u64, users: &[User]) -> Result<Box<dyn Node>, Refusal>;
}

/// The port of user number `user` of a radio network, uplink if `up`.
#[must_use]
pub const fn port(user: usize, up: bool) -> Port {
    Port((2 * user + up as usize) as u16)
}
