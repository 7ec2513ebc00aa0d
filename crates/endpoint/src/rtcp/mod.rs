//! RTCP: timing and contents of reports.

mod ecn;
pub(crate) mod feedback;
pub mod members;
pub(crate) mod reports;
pub mod schedule;
pub(crate) mod ticks;
