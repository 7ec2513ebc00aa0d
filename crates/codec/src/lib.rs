//! An encoder of real video: OpenH264, the encoder of Firefox's WebRTC, in builds with the feature `openh264`. Without
//! the feature this crate is empty, and no C++ is compiled.
//!
//! One call encodes one picture at the current rate, in slices no larger than the payload of a packet. Parameter sets
//! are handed out once, to go out of band, as in SDP. With one thread, the same pictures, rates and requests give the
//! same bits.

#[cfg(feature = "openh264")]
mod h264;

#[cfg(feature = "openh264")]
pub use h264::{Coded, Format, OpenH264};
