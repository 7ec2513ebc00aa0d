//! What an RTC event log has of each kind of event, as it is used here.

/// Of a log: milliseconds of the writer's monotonic clock.
pub type Millis = i64;

/// The header of an RTP packet, as the log keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedRtp {
    /// When it was sent or received.
    pub at: Millis,
    /// Its stream.
    pub ssrc: u32,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Bytes of header, payload and padding; what SRTP adds is not in it.
    pub size: u32,
    /// Of these, bytes of payload.
    pub payload: u32,
    /// abs-send-time in 2^-18 s, 24 bits, where the extension was used.
    pub abs_send_time: Option<u32>,
    /// RTP sequence number.
    pub sequence: u16,
    /// Transport-wide sequence number, where the extension was used.
    pub transport_sequence: Option<u16>,
    /// RTP payload type.
    pub payload_type: u8,
    /// The marker bit.
    pub marker: bool,
}

/// A datagram of RTCP, of which libwebrtc leaves out what it does not want in logs (SDES, APP).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedRtcp {
    /// When it was sent or received.
    pub at: Millis,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A change of the delay-based estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayBased {
    /// When.
    pub at: Millis,
    /// The estimate, bit/s.
    pub bitrate: u32,
    /// 1 normal, 2 underusing, 3 overusing; 0 unknown (`DetectorState` of the format).
    pub state: u8,
}

/// A change of the estimate that the sender goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossBased {
    /// When.
    pub at: Millis,
    /// The estimate, bit/s.
    pub bitrate: u32,
    /// Packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
}

/// What SCReAM in libwebrtc said of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scream {
    /// When.
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

/// A probe: it begins, or has a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// When.
    pub at: Millis,
    /// Which cluster.
    pub id: u32,
    /// Its rate, or what came out, bit/s; `None` for one that failed.
    pub bitrate: Option<u32>,
}

/// A frame that was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// When.
    pub at: Millis,
    /// Its stream.
    pub ssrc: u32,
    /// When it is to be shown.
    pub render: Millis,
}

/// A stream that the log announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Its SSRC.
    pub ssrc: u32,
    /// That of its retransmissions.
    pub rtx: Option<u32>,
    /// Whether it is video.
    pub video: bool,
}
