//! RTP and RTCP between bytes and plain values.

pub mod rtcp;
