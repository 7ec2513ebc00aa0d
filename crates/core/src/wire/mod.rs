//! Encoding and decoding of IP, UDP, TCP, RTP and RTCP.
//!
//! Each format is a struct with public fields. A decoded value can be encoded, and decodes to the same value again. A value
//! that cannot be encoded (a field beyond its bits) gives an [`Error`], and the output is unchanged. Bytes from the network
//! are not trusted: decoding gives a value, or an [`Error`] with the part and its position.

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
