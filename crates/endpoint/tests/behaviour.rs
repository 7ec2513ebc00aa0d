//! Behaviour of the endpoints: a module for each of their parts, in one program.

mod adaptation;
mod application;
mod breakers;
mod call;
mod clocks;
mod common;
mod ecn;
mod feedback;
mod floor;
mod gaps;
mod hostile;
mod keys;
mod playing;
mod refused;
mod repair;
mod reports;
mod rtcp_timing;
mod sending;
