//! An encoder of real video: OpenH264, the encoder of Firefox's WebRTC, where a build asks for it with the
//! feature `openh264`. Without the feature this crate is empty, and nothing of C++ is compiled.
//!
//! One call encodes one picture at the rate of the moment, in slices no larger than the payload of a packet;
//! parameter sets are handed out once, to go out of band, as in SDP. One thread: the same pictures, rates and
//! requests give the same bits.

#[cfg(feature = "openh264")]
mod h264;

#[cfg(feature = "openh264")]
pub use h264::{Coded, Format, OpenH264};
