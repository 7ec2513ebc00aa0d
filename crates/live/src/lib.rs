//! tidegate by the wall clock: what connects its models with real packets.
//!
//! The pure crates are told the time. This one asks the kernel for it, reads packets and writes them; it is the only
//! crate that does, and it is empty where there is no Linux.
#![cfg(target_os = "linux")]
// this crate is not pure: files and clocks are what it is for
#![allow(clippy::disallowed_methods)]

pub mod call;
pub mod capture;
pub mod clock;
pub mod network;
pub mod session;
pub mod shell;
mod writer;
