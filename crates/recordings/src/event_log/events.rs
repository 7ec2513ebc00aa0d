//! Events of an RTC event log, with the fields that are used here.

/// Milliseconds of the monotonic clock of the log's writer.
pub type Millis = i64;

/// The header of an RTP packet, as the log keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedRtp {
    /// Time of sending or receiving.
    pub at: Millis,
    /// SSRC of its stream.
    pub ssrc: u32,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Bytes of header, payload and padding, without what SRTP adds.
    pub size: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// abs-send-time in 2^-18 s, 24 bits, if the extension was used.
    pub abs_send_time: Option<u32>,
    /// RTP sequence number.
    pub sequence: u16,
    /// Transport-wide sequence number, if the extension was used.
    pub transport_sequence: Option<u16>,
    /// RTP payload type.
    pub payload_type: u8,
    /// The marker bit.
    pub marker: bool,
}

/// A datagram of RTCP. libwebrtc does not log all of its packets (SDES and APP are left out).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedRtcp {
    /// Time of sending or receiving.
    pub at: Millis,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A change of the delay-based estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayBased {
    /// Time of the event.
    pub at: Millis,
    /// The estimate, bit/s.
    pub bitrate: u32,
    /// 1 normal, 2 underusing, 3 overusing; 0 unknown (`DetectorState` of the format).
    pub state: u8,
}

/// A change of the estimate that the sender uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossBased {
    /// Time of the event.
    pub at: Millis,
    /// The estimate, bit/s.
    pub bitrate: u32,
    /// Packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
}

/// State of libwebrtc's SCReAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scream {
    /// Time of the event.
    pub at: Millis,
    /// Its reference window, bytes.
    pub ref_window: Option<u32>,
    /// Its target rate, kbit/s.
    pub target_kbps: Option<u32>,
    /// Smoothed round trip, ms.
    pub smoothed_rtt: Option<u32>,
    /// Average queueing delay, ms.
    pub queue_delay: Option<u32>,
}

/// Beginning or result of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Time of the event.
    pub at: Millis,
    /// Id of its cluster.
    pub id: u32,
    /// Its rate or its result, bit/s; `None` if it failed.
    pub bitrate: Option<u32>,
}

/// A frame that was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// Time of the event.
    pub at: Millis,
    /// SSRC of its stream.
    pub ssrc: u32,
    /// Time at which it is to be shown.
    pub render: Millis,
}

/// A stream that the log announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Its SSRC.
    pub ssrc: u32,
    /// SSRC of its retransmissions.
    pub rtx: Option<u32>,
    /// Whether it is video.
    pub video: bool,
}
