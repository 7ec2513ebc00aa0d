//! What one place saw of a call: what passed it, by its own clock.

use crate::event_log::{EventLog, LoggedRtcp, LoggedRtp, Stream};
use tidegate_core::wire::ip::UDP_HEADERS;

/// Nanoseconds of the clock of whoever recorded.
pub type Nanos = i64;

/// Nanoseconds of a millisecond.
pub(crate) const MILLI: i64 = 1_000_000;

/// An RTP packet that passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rtp {
    /// When.
    pub at: Nanos,
    /// Its stream.
    pub ssrc: u32,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Bytes of the IP packet.
    pub size: u32,
    /// abs-send-time in 2^-18 s, 24 bits.
    pub abs_send_time: Option<u32>,
    /// RTP sequence number.
    pub sequence: u16,
    /// Transport-wide sequence number.
    pub transport_sequence: Option<u16>,
    /// RTP payload type.
    pub payload_type: u8,
    /// The marker bit.
    pub marker: bool,
    /// Whether it carries padding alone.
    pub padding: bool,
}

/// A datagram of RTCP that passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rtcp {
    /// When.
    pub at: Nanos,
    /// Bytes of the IP packet.
    pub size: u32,
    /// What it carries.
    pub bytes: Vec<u8>,
}

/// What a place saw go one way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// RTP, in the order of time.
    pub rtp: Vec<Rtp>,
    /// RTCP, in the order of time.
    pub rtcp: Vec<Rtcp>,
}

impl Passed {
    /// When the first and the last packet passed.
    #[must_use]
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        let times = || self.rtp.iter().map(|one| one.at).chain(self.rtcp.iter().map(|one| one.at));
        Some((times().min()?, times().max()?))
    }
}

/// What one end of a call, or a place near it, saw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Point {
    /// What left the end.
    pub sent: Passed,
    /// What came in.
    pub received: Passed,
    /// Streams that the recording tells of.
    pub streams: Vec<Stream>,
    /// Whether RTCP is encrypted (SRTCP): then nothing in it can be read.
    pub encrypted: bool,
    /// Whether packets that the end restored (FEC) are among what came in, as in its own log: Chromium notes them like others.
    pub restored: bool,
}

impl Point {
    /// What passed a place in either direction, from when to when.
    #[must_use]
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        [self.sent.span(), self.received.span()]
            .into_iter()
            .flatten()
            .reduce(|(from, to), (other_from, other_to)| (from.min(other_from), to.max(other_to)))
    }

    /// What the end that wrote a log saw. The log has RTP with its headers; a route tells what IP and UDP add, and
    /// without one it is [`UDP_HEADERS`].
    #[must_use]
    pub fn of_log(log: &EventLog) -> Self {
        let overhead = log.overhead.last().map_or(UDP_HEADERS, |&(_, bytes)| bytes.min(0xffff));
        let rtp = |packets: &[LoggedRtp]| {
            let one = |packet: &LoggedRtp| Rtp {
                at: packet.at * MILLI,
                ssrc: packet.ssrc,
                timestamp: packet.timestamp,
                size: packet.size + overhead,
                abs_send_time: packet.abs_send_time,
                sequence: packet.sequence,
                transport_sequence: packet.transport_sequence,
                payload_type: packet.payload_type,
                marker: packet.marker,
                padding: packet.payload == 0,
            };
            packets.iter().map(one).collect()
        };
        let rtcp = |packets: &[LoggedRtcp]| {
            let one = |packet: &LoggedRtcp| Rtcp {
                at: packet.at * MILLI,
                size: packet.bytes.len().min(0xffff) as u32 + overhead,
                bytes: packet.bytes.clone(),
            };
            packets.iter().map(one).collect()
        };
        Self {
            sent: Passed { rtp: rtp(&log.outgoing), rtcp: rtcp(&log.outgoing_rtcp) },
            received: Passed { rtp: rtp(&log.incoming), rtcp: rtcp(&log.incoming_rtcp) },
            streams: log.streams.clone(),
            encrypted: false,
            restored: true,
        }
    }
}
