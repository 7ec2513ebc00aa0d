//! IP, UDP, TCP, RTP and RTCP between bytes and plain values.
//!
//! Every format is a plain struct with public fields. What was decoded can be encoded, and decodes to
//! the same value again; what cannot be written (a field beyond its bits) is an [`Error`] and leaves
//! the output as it was. Bytes from the network are never trusted: whatever they hold, decoding ends in
//! a value or in an [`Error`] that says what was wrong and where.

pub mod descriptor;
mod error;
pub mod ip;
pub mod ntp;
mod reader;
pub mod rtcp;
pub mod rtp;
pub mod tcp;
pub mod wrap;

pub use error::Error;
