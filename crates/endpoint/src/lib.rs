//! A participant of an RTP session, without I/O.
//!
//! An [`Endpoint`] is a [`tidegate_core::Peer`]: it sees datagrams and nothing else that its driver knows. It sends
//! media under one congestion controller, or receives a peer's, or both. A one-way call is a sending endpoint and a
//! receiving one; a two-way call is two endpoints that do both.
//!
//! ```text
//!   source -> packetizer -> pacer -> RTP ~~~~~~> statistics, arrival log, playout
//!     ^                       |                              |
//!  controller <- history <----+<~~~~~~ RTCP <---- feedback --+
//! ```
//!
//! This crate reads no clock and no socket: the driver tells the time and carries the packets, in virtual time or
//! over real UDP.

pub mod breaker;
mod clock;
pub mod coupling;
pub mod datagram;
mod endpoint;
pub mod group;
pub mod media;
mod packetizer;
mod receiver;
mod reception;
pub mod repair;
pub mod rtcp;
mod sender;
pub mod settings;

pub use clock::{Clock, ClockSettings, Drift};
pub use endpoint::Endpoint;
pub use media::{Bounds, SourceSettings};
pub use packetizer::{ABS_SEND_TIME_ID, Extensions, MARKS_ID, TRANSPORT_SEQUENCE_ID};
pub use reception::rtp_clock;
pub use repair::Repair;
pub use sender::LimitChange;
pub use settings::{
    AUDIO_CLOCK, BelowMin, CircuitBreakerUse, EndpointSettings, FeedbackFormat, FeedbackSettings, MediaKind,
    Playout, ReceiveSettings, RtcpMinimum, RtcpMode, RtcpSettings, SendSettings, SettingsError, Signalled,
    StreamSettings, VIDEO_CLOCK,
};
