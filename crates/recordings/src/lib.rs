//! Imports recordings of calls that other programs made (captures, RTC event logs) and turns them into runs.
//!
//! Pure: the functions take bytes and return facts. They panic on no input, and the memory that they use is bounded by
//! the size of the input (`fuzz/` checks both).

pub mod capture;
pub mod clocks;
mod controller_trace;
pub mod event_log;
pub mod feedback;
pub mod frames;
mod frequent;
pub mod import;
mod jitter;
pub mod kinds;
pub mod point;
pub mod problem;
mod protobuf;
pub mod record;
pub mod replay;
pub mod session;

pub use event_log::EventLog;
pub use problem::{Problem, Problems};
