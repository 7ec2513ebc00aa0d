//! Readers of other people's recordings of calls, and what they come to as a run.
//!
//! Pure: bytes come in, facts come out. Whatever the bytes are, nothing here panics, and the memory that is taken is
//! bounded by how many there are (`fuzz/` holds it to that).

mod beside;
pub mod capture;
pub mod clocks;
pub mod event_log;
pub mod feedback;
pub mod frames;
pub mod import;
pub mod kinds;
pub mod point;
pub mod problem;
mod protobuf;
pub mod record;
pub mod replay;
pub mod session;

pub use event_log::EventLog;
pub use problem::{Problem, Problems};
