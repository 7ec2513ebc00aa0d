//! Calls: our endpoint on a UDP socket, by the wall clock.
//!
//! A caller ([`call`]) sends one flow of media to an answerer ([`answer`]), which sends feedback. The endpoints are
//! those of the simulator. A loop around ppoll passes them the time and the datagrams received, with the kernel's
//! receive time stamps. Late wakeups are no error; they are counted and reported. At the end each side fetches the
//! other's record, and [`merge`] makes a run of both, as a simulation does.

mod closing;
mod compression;
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

pub use handshake::{AnswererSettings, CallerSettings, answer, call};
pub use merge::{Merged, merge};
pub use offer::Offer;
pub use record::{Fact, Health, Record};

use crate::session::Ignored;
use serde::Serialize;
use std::fmt;
use tidegate_core::Span;

/// Longest time without a datagram from the other side; then the call ends.
pub const SILENCE: Span = Span::from_secs(2);

/// Callback with the phase and the share of it that is over; it returns whether to go on.
pub type Progress<'a> = dyn FnMut(Phase, f64) -> ProgressReply + 'a;

/// Phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for the other side.
    Waiting,
    /// Sending media.
    Media,
    /// Exchanging records.
    Exchange,
}

/// Whether to continue a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressReply {
    /// Go on.
    Continue,
    /// End the call in order.
    Stop,
}

/// Reason for the end of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its time was up.
    Completed,
    /// The user of this side stopped it.
    Stopped,
    /// The other side ended it before its time.
    Ended,
    /// Nothing was received from the other side for [`SILENCE`].
    Silent,
    /// This side failed, for this reason.
    Failed(String),
}

/// Reason why there was no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// An argument is invalid: an address, a port, settings.
    Invalid(String),
    /// The other side does not answer or refuses, or this side failed.
    Failed(String),
    /// The user of this side stopped waiting; with the datagrams that were ignored until then.
    Stopped(Ignored),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) | Self::Failed(reason) => f.write_str(reason),
            Self::Stopped(_) => f.write_str("stopped"),
        }
    }
}

/// A call that is over, from the point of view of one side.
#[derive(Debug)]
pub struct EndedCall {
    /// The settings that both sides agreed on.
    pub offer: Offer,
    /// This side's record.
    pub local: Record,
    /// The other side's record, if it arrived.
    pub remote: Option<Record>,
    /// Reason for its end.
    pub reason: EndReason,
    /// Whether the capture file is complete; `Ok` if none was wanted.
    pub capture: Result<(), String>,
}
