//! RTCP: when reports are due, and what is in them.

mod ecn;
pub(crate) mod feedback;
pub mod members;
pub mod schedule;
pub(crate) mod ticks;
