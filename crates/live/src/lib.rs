//! Runs tidegate in real time: connects its models and endpoints with real packets.
//!
//! The pure crates take the time as an argument. This crate alone reads the kernel's clocks, and receives and sends
//! packets. It is empty on systems other than Linux.
#![cfg(target_os = "linux")]
// this crate is not pure: it needs files and clocks
#![allow(clippy::disallowed_methods)]

pub mod call;
pub mod capture;
pub mod clock;
pub mod network;
pub mod session;
pub mod shell;
mod writer;
