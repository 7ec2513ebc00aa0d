//! The packets of a call that passed one capture point, with times of its clock.

use crate::event_log::{EventLog, LoggedRtcp, LoggedRtp, Stream};
use crate::kinds::Format;
use std::collections::BTreeMap;
use tidegate_core::wire::ip::UDP_HEADERS;

/// Nanoseconds of the recorder's clock.
pub type Nanos = i64;

/// Nanoseconds of a millisecond.
pub(crate) const MILLI: i64 = 1_000_000;

/// An RTP packet that passed the capture point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rtp {
    /// Time at which it passed.
    pub at: Nanos,
    /// SSRC of its stream.
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
    /// Whether it carries only padding.
    pub padding: bool,
    /// Number of its pair of ports in the direction: one SSRC may be of different streams on different ports.
    pub path: u16,
}

/// A datagram of RTCP that passed the capture point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rtcp {
    /// Time at which it passed.
    pub at: Nanos,
    /// Bytes of the IP packet.
    pub size: u32,
    /// Payload of the datagram: a compound packet, or one that is encrypted.
    pub bytes: Vec<u8>,
}

/// Packets that passed a capture point in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// RTP, in the order of time.
    pub rtp: Vec<Rtp>,
    /// RTCP, in the order of time.
    pub rtcp: Vec<Rtcp>,
    /// Number of frames that may hold further packets and could not be read.
    pub unread: usize,
}

impl Traffic {
    /// Times of the first and the last packet.
    #[must_use]
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        let times =
            || self.rtp.iter().map(|packet| packet.at).chain(self.rtcp.iter().map(|packet| packet.at));
        Some((times().min()?, times().max()?))
    }
}

/// The recording of a capture point at one end of a call or near it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Point {
    /// Packets from this end.
    pub sent: Traffic,
    /// Packets to this end.
    pub received: Traffic,
    /// Streams that the recording describes.
    pub streams: Vec<Stream>,
    /// Formats of streams by session descriptions.
    pub formats: BTreeMap<u32, Format>,
    /// Whether RTCP is encrypted (SRTCP), so that its contents cannot be read.
    pub encrypted: bool,
    /// Whether `received` includes packets that FEC restored: Chromium's log has them among the packets received.
    pub restored: bool,
    /// Times at which the recorder's times step back in the order of the file, and by how much.
    pub set_back: Vec<(Nanos, Nanos)>,
}

impl Point {
    /// Times of the first and the last packet of both directions.
    #[must_use]
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        [self.sent.span(), self.received.span()]
            .into_iter()
            .flatten()
            .reduce(|(from, to), (next_from, next_to)| (from.min(next_from), to.max(next_to)))
    }

    /// Converts the log of an end. The log's sizes include the RTP header; its last route change says how many bytes IP
    /// and UDP add, and without a route change it is [`UDP_HEADERS`].
    #[must_use]
    pub fn of_log(log: &EventLog) -> Self {
        let overhead = log.overhead.last().map_or(UDP_HEADERS, |&(_, bytes)| bytes.min(0xffff));
        let rtp = |packets: &[LoggedRtp]| {
            let convert = |packet: &LoggedRtp| Rtp {
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
                path: 0,
            };
            packets.iter().map(convert).collect()
        };
        let rtcp = |packets: &[LoggedRtcp]| {
            let convert = |packet: &LoggedRtcp| Rtcp {
                at: packet.at * MILLI,
                size: packet.bytes.len().min(0xffff) as u32 + overhead,
                bytes: packet.bytes.clone(),
            };
            packets.iter().map(convert).collect()
        };
        Self {
            sent: Traffic { rtp: rtp(&log.outgoing), rtcp: rtcp(&log.outgoing_rtcp), unread: 0 },
            received: Traffic { rtp: rtp(&log.incoming), rtcp: rtcp(&log.incoming_rtcp), unread: 0 },
            streams: log.streams.clone(),
            formats: BTreeMap::new(),
            encrypted: false,
            restored: true,
            set_back: Vec::new(),
        }
    }
}
