//! Contract of controllers: event in, complete decision out, one alarm.
//!
//! A [`Controller`] is a pure value: no clock, no randomness but the given substream, no I/O. It gets events, and returns
//! its complete present policy for each. A [`ReceiverHalf`] is the counterpart at the receiver, for schemes that measure
//! or decide there. A [`ControllerHost`] holds a controller, its substream and its last decision, and checks the contract;
//! all drivers use it: the endpoint in a simulation or on a socket, a Python loop, a test.

mod checks;
mod contract;
mod host;
mod messages;
mod needs;
mod probes;

pub use contract::{Context, Controller, Notes, ReceiverHalf};
pub use host::{ControllerHost, Failure, ReceiverHost};
pub use messages::{
    Arrived, Decision, EcnCounts, Feedback, FeedbackRequest, Limits, LossReport, NewFrame, Outgoing,
    PacketResult, Report, Sent, Urgency,
};
pub use needs::{Counts, EcnUse, FeedbackKind, Needs, ReportRule};
pub use probes::{Probe, Probes, TooManyProbes};
