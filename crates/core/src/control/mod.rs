//! The controller contract: event in, whole decision out, one alarm.
//!
//! A [`Controller`] is a pure value: no clock, no randomness but what it is handed, no I/O. It is told
//! of four kinds of event and answers each with its complete present policy. A [`ReceiverHalf`] is the
//! same at the other end, for schemes that measure or decide there. A [`ControllerHost`] holds a controller, its
//! substream and its last decision, checks the contract, and is what every driver talks to: the
//! endpoint in a simulation or on a socket, a Python loop, a test.

mod checks;
mod contract;
mod host;
mod messages;
mod needs;
mod probes;

pub use contract::{Context, Controller, Notes, ReceiverHalf};
pub use host::{ControllerHost, Failure, ReceiverHost};
pub use messages::{
    Arrived, Ask, Decision, EcnCounts, Feedback, Limits, LossReport, NewFrame, Outgoing, PacketResult,
    Report, Sent, Urgency,
};
pub use needs::{Counts, EcnUse, FeedbackKind, Needs, ReportRule};
pub use probes::{Probe, Probes, TooManyProbes};
