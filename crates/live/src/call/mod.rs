//! Calls: our endpoint on a UDP socket, by the wall clock.
//!
//! A caller ([`call`]) sends one flow of media to an answerer ([`answer`]), which sends feedback. The endpoints are those of
//! the simulator; a loop around ppoll hands them the time and what comes in, with the kernel's receive stamps. Waking up
//! late is nothing wrong: it is counted and told. At the end each side fetches the other's record, and [`merge`] makes of
//! both what a simulated run leaves.

mod closing;
mod handshake;
mod line;
mod merge;
mod numbering;
mod offer;
mod record;
mod session;
pub mod socket;
mod tap;
mod timeline;

pub use handshake::{Answering, Calling, answer, call};
pub use merge::{Merged, merge};
pub use offer::Offer;
pub use record::{Fact, Health, Record};

use crate::session::Ignored;
use serde::Serialize;
use std::fmt;
use tidegate_core::Span;

/// So long nothing may come from the other side.
pub const SILENCE: Span = Span::from_secs(2);

/// What whoever drives a call is asked now and then, and how far the call is.
pub type Pulse<'a> = dyn FnMut(Phase, f64) -> Wish + 'a;

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is no other side yet.
    Waiting,
    /// Media goes.
    Media,
    /// Records are exchanged.
    Exchange,
}

/// Whether a call is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It is.
    Go,
    /// It is to end in order.
    Stop,
}

/// Why a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its time was up.
    Completed,
    /// Whoever drives this side wished so.
    Stopped,
    /// The other side ended it before its time.
    Ended,
    /// Nothing has come from the other side for [`SILENCE`].
    Silent,
    /// This side cannot go on.
    Failed(String),
}

/// Why there was no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCall {
    /// What was asked for cannot be: an address, a port, settings.
    Wrong(String),
    /// The other side does not answer, or not as it should.
    Failed(String),
    /// Whoever drives this side did not want to wait any longer; what came and was ignored until then.
    Stopped(Ignored),
}

impl fmt::Display for NoCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(reason) | Self::Failed(reason) => f.write_str(reason),
            Self::Stopped(_) => f.write_str("stopped"),
        }
    }
}

/// A call that is over, seen from one side.
#[derive(Debug)]
pub struct Ended {
    /// What was agreed on.
    pub offer: Offer,
    /// This side's record.
    pub own: Record,
    /// The other side's, if it came.
    pub other: Option<Record>,
    /// Why it ended.
    pub why: Why,
    /// Whether its capture file is whole, if there was to be one.
    pub captured: Result<(), String>,
}
