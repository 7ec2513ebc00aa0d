//! Packets that leave and arrive, as both halves in Python see them.

use crate::errors::bad;
use pyo3::prelude::*;
use tidegate_core::control::{Arrived, NewFrame, Outgoing, Sent};
use tidegate_core::datagram::{Ecn, Extension};
use tidegate_core::{Size, Span};

/// One packet has left.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Sent")]
#[derive(Clone, PartialEq)]
pub(crate) struct PySent {
    /// Transport-wide sequence number, unwrapped.
    sequence: u64,
    /// Bytes: payload and RTP header with extensions, without IP and UDP.
    size: u64,
    /// Bytes in flight, this packet included.
    in_flight: u64,
    /// Bytes that wait in the pacer.
    backlog: u64,
}

#[pymethods]
impl PySent {
    #[new]
    #[pyo3(signature = (sequence, size, in_flight=0, backlog=0))]
    fn new(sequence: u64, size: u64, in_flight: u64, backlog: u64) -> Self {
        Self { sequence, size, in_flight, backlog }
    }

    fn __repr__(&self) -> String {
        let Self { sequence, size, in_flight, backlog } = self;
        format!("Sent(sequence={sequence}, size={size}, in_flight={in_flight}, backlog={backlog})")
    }
}

impl PySent {
    pub(super) fn from_core(packet: &Sent) -> Self {
        Self {
            sequence: packet.sequence,
            size: packet.size.as_bytes(),
            in_flight: packet.in_flight.as_bytes(),
            backlog: packet.backlog.as_bytes(),
        }
    }

    pub(super) fn to_core(&self) -> Sent {
        Sent {
            sequence: self.sequence,
            size: Size::from_bytes(self.size),
            in_flight: Size::from_bytes(self.in_flight),
            backlog: Size::from_bytes(self.backlog),
        }
    }
}

/// A frame of media has come into the pacer.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "NewFrame")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyNewFrame {
    /// Whether it is of video.
    video: bool,
    /// Bytes of its packets: payload and RTP header with extensions, without IP and UDP, but for a stamp.
    size: u64,
    /// Bytes that wait in the pacer, this frame included; by default its size.
    backlog: u64,
    /// Time that the oldest packet of media in the pacer has waited, in nanoseconds.
    pacer_delay_ns: i64,
}

#[pymethods]
impl PyNewFrame {
    #[new]
    #[pyo3(signature = (size, video=true, backlog=None, pacer_delay_ns=0))]
    fn new(size: u64, video: bool, backlog: Option<u64>, pacer_delay_ns: i64) -> Self {
        Self { video, size, backlog: backlog.unwrap_or(size), pacer_delay_ns }
    }

    fn __repr__(&self) -> String {
        let Self { video, size, backlog, pacer_delay_ns } = self;
        let video = if *video { "True" } else { "False" };
        format!("NewFrame(size={size}, video={video}, backlog={backlog}, pacer_delay_ns={pacer_delay_ns})")
    }
}

impl PyNewFrame {
    pub(super) fn from_core(frame: &NewFrame) -> Self {
        Self {
            video: frame.video,
            size: frame.size.as_bytes(),
            backlog: frame.backlog.as_bytes(),
            pacer_delay_ns: frame.pacer_delay.as_nanos(),
        }
    }

    pub(super) fn to_core(&self) -> NewFrame {
        NewFrame {
            video: self.video,
            size: Size::from_bytes(self.size),
            backlog: Size::from_bytes(self.backlog),
            pacer_delay: Span::from_nanos(self.pacer_delay_ns),
        }
    }
}

/// One packet is about to leave.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "Outgoing")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyOutgoing {
    /// Transport-wide sequence number, unwrapped.
    sequence: u64,
    /// Bytes: payload and RTP header with extensions, without IP and UDP, before the stamp.
    size: u64,
    /// Bytes that wait in the pacer after it.
    backlog: u64,
}

#[pymethods]
impl PyOutgoing {
    #[new]
    #[pyo3(signature = (sequence, size, backlog=0))]
    fn new(sequence: u64, size: u64, backlog: u64) -> Self {
        Self { sequence, size, backlog }
    }

    fn __repr__(&self) -> String {
        format!("Outgoing(sequence={}, size={}, backlog={})", self.sequence, self.size, self.backlog)
    }
}

impl PyOutgoing {
    pub(super) fn from_core(packet: &Outgoing) -> Self {
        Self { sequence: packet.sequence, size: packet.size.as_bytes(), backlog: packet.backlog.as_bytes() }
    }

    pub(super) fn to_core(&self) -> Outgoing {
        Outgoing {
            sequence: self.sequence,
            size: Size::from_bytes(self.size),
            backlog: Size::from_bytes(self.backlog),
        }
    }
}

/// A data packet that has arrived at the receiver.
#[pyclass(frozen, get_all, module = "tidegate", name = "Arrived")]
pub(crate) struct PyArrived {
    /// Transport-wide sequence number, unwrapped; None where no header extension carries it.
    sequence: Option<u64>,
    /// Bytes: payload and RTP header with extensions, without IP and UDP.
    size: u64,
    /// Bytes of the RTP header with extensions.
    header: u64,
    /// Bytes of padding at its end.
    padding: u64,
    /// Payload type, 7 bits.
    payload_type: u8,
    /// Abs-send-time in 2^-18 s, 24 bits (wraps every 64 s); None where no header extension carries it.
    abs_send_time: Option<u32>,
    /// SSRC of its stream.
    ssrc: u32,
    /// RTP sequence number, unwrapped.
    rtp_sequence: u64,
    /// RTP timestamp.
    timestamp: u32,
    /// The marker bit: of video, the last packet of its frame.
    marker: bool,
    /// The ECN field as it arrived.
    ecn: u8,
    /// Header extension that the sending half stamped on it: (id, bytes).
    extension: Option<(u8, Vec<u8>)>,
    /// True one-way delay in nanoseconds, which no receiver can measure: only for a half that `needs_true_delay`, and
    /// only if the driver knows it.
    true_delay_ns: Option<i64>,
}

#[pymethods]
impl PyArrived {
    #[new]
    #[pyo3(signature = (sequence, size, abs_send_time, *, ssrc=0, rtp_sequence=None, timestamp=0, marker=false, ecn=0, extension: "tuple[int, bytes] | None" = None, true_delay_ns=None, header=12, padding=0, payload_type=96))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        sequence: Option<u64>,
        size: u64,
        abs_send_time: Option<u32>,
        ssrc: u32,
        rtp_sequence: Option<u64>,
        timestamp: u32,
        marker: bool,
        ecn: u8,
        extension: Option<(u8, Vec<u8>)>,
        true_delay_ns: Option<i64>,
        header: u64,
        padding: u64,
        payload_type: u8,
    ) -> PyResult<Self> {
        if let Some(abs_send_time) = abs_send_time.filter(|time| *time >= 1 << 24) {
            return Err(bad(format!("abs_send_time: found {abs_send_time}; it must fit into 24 bits")));
        }
        if payload_type > 127 {
            return Err(bad(format!("payload_type: found {payload_type}; it must fit into 7 bits")));
        }
        let rtp_sequence =
            rtp_sequence.or(sequence).ok_or_else(|| bad("a packet needs sequence, rtp_sequence, or both"))?;
        Ok(Self {
            sequence,
            size,
            header,
            padding,
            payload_type,
            abs_send_time,
            ssrc,
            rtp_sequence,
            timestamp,
            marker,
            ecn,
            extension,
            true_delay_ns,
        })
    }
}

impl PyArrived {
    pub(super) fn from_core(packet: &Arrived<'_>) -> Self {
        Self {
            sequence: packet.sequence,
            size: packet.size.as_bytes(),
            header: packet.header.as_bytes(),
            padding: packet.padding.as_bytes(),
            payload_type: packet.payload_type,
            abs_send_time: packet.abs_send_time,
            ssrc: packet.ssrc,
            rtp_sequence: packet.rtp_sequence,
            timestamp: packet.timestamp,
            marker: packet.marker,
            ecn: packet.ecn as u8,
            extension: packet.extension.map(|extension| (extension.id, extension.data.clone())),
            true_delay_ns: packet.true_delay.map(Span::as_nanos),
        }
    }

    /// Its stamp, which [`PyArrived::to_core`] lends out.
    pub(super) fn stamp(&self) -> Option<Extension> {
        self.extension.as_ref().map(|(id, data)| Extension { id: *id, data: data.clone() })
    }

    pub(super) fn to_core<'a>(&self, stamp: Option<&'a Extension>) -> Arrived<'a> {
        Arrived {
            sequence: self.sequence,
            size: Size::from_bytes(self.size),
            header: Size::from_bytes(self.header),
            padding: Size::from_bytes(self.padding),
            payload_type: self.payload_type,
            abs_send_time: self.abs_send_time,
            ssrc: self.ssrc,
            rtp_sequence: self.rtp_sequence,
            timestamp: self.timestamp,
            marker: self.marker,
            ecn: Ecn::from_bits(self.ecn),
            extension: stamp,
            true_delay: self.true_delay_ns.map(Span::from_nanos),
        }
    }
}
