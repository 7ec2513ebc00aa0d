//! RTP and RTCP as plain typed objects in Python.

mod convert;
mod field;

use crate::errors::bad;
use convert::{from_python, to_python, twcc_to_python};
use field::{FieldArgument, Octets};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};
use tidegate_core::RemoteTime;
use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp;
use tidegate_core::wire::rtp;

/// SSRC, and (item type, text).
type SourceItems = (u32, Vec<(u8, Vec<u8>)>);
/// SSRC, first sequence number, and for each packet (ECN bits, arrival offset) if it was received.
type StreamArrivals = (u32, u16, Vec<Option<(u8, u16)>>);

/// A frozen Python class with the fields of a wire struct: made by keyword or position, compared, hashed, printed and
/// pickled by value.
macro_rules! wire_class {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[pyclass(frozen, get_all, eq, hash, from_py_object, module = "tidegate.net.wire")]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub(crate) struct $name { $($(#[$doc])* $field: $ty,)* }

        #[pymethods]
        impl $name {
            #[new]
            #[allow(clippy::too_many_arguments)]
            fn new($($field: FieldArgument<'_, $ty>),*) -> PyResult<Self> {
                let name = stringify!($name);
                Ok(Self { $($field: $field.read(name, stringify!($field))?),* })
            }

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let fields: &[&str] = &[$(stringify!($field)),*];
                let fields = fields.iter().map(|field| Ok(format!("{field}={}", slf.getattr(*field)?.repr()?)));
                Ok(format!("{}({})", stringify!($name), fields.collect::<PyResult<Vec<_>>>()?.join(", ")))
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
                let fields = [$(slf.getattr(stringify!($field))?),*];
                Ok((slf.get_type(), PyTuple::new(slf.py(), fields)?))
            }
        }
    };
}

wire_class!(
    /// A report block (RFC 3550 section 6.4.1).
    ReportBlock {
        /// The stream reported on.
        ssrc: u32,
        /// Fraction lost since the last report, in 1/256.
        fraction_lost: u8,
        /// Packets lost since the beginning; in bytes signed 24 bits, to which it is clamped (RFC 3550 A.3).
        cumulative_lost: i32,
        /// Extended highest sequence number received.
        highest_sequence: u32,
        /// Interarrival jitter in timestamp units.
        jitter: u32,
        /// Middle 32 bits of the NTP timestamp of the last SR.
        last_sr: u32,
        /// Delay since then, in 1/65536 s.
        delay_since_last_sr: u32,
    }
);
wire_class!(
    /// A sender report (RFC 3550 section 6.4.1).
    SenderReport {
        /// The sender.
        ssrc: u32,
        /// NTP timestamp, 32.32 bits.
        ntp: u64,
        /// The same instant in RTP timestamp units.
        rtp_timestamp: u32,
        /// Packets sent.
        packet_count: u32,
        /// Payload bytes sent.
        octet_count: u32,
        /// Reports on what it receives.
        blocks: Vec<ReportBlock>,
        /// Profile-specific extension.
        extension: Vec<u8>,
    }
);
wire_class!(
    /// A receiver report (RFC 3550 section 6.4.2).
    ReceiverReport {
        /// The receiver.
        ssrc: u32,
        /// Reports on what it receives.
        blocks: Vec<ReportBlock>,
        /// Profile-specific extension.
        extension: Vec<u8>,
    }
);
wire_class!(
    /// A source description (RFC 3550 section 6.5): for each source its items as (type, text).
    Sdes {
        /// (SSRC, [(item type, text as bytes)]).
        chunks: Vec<SourceItems>,
    }
);
wire_class!(
    /// A goodbye (RFC 3550 section 6.6).
    Bye {
        /// SSRCs of the sources that leave.
        ssrcs: Vec<u32>,
        /// Reason for leaving.
        reason: Option<Vec<u8>>,
    }
);
wire_class!(
    /// An application-defined packet (RFC 3550 section 6.7).
    App {
        /// Five bits.
        subtype: u8,
        /// The sender.
        ssrc: u32,
        /// Four bytes.
        name: Vec<u8>,
        /// A multiple of four bytes.
        data: Vec<u8>,
    }
);
wire_class!(
    /// A generic NACK (RFC 4585 section 6.2.1).
    Nack {
        /// SSRC of the requester.
        sender_ssrc: u32,
        /// SSRC of the requested stream.
        media_ssrc: u32,
        /// (PID, BLP).
        pairs: Vec<(u16, u16)>,
    }
);
wire_class!(
    /// A picture loss indication (RFC 4585 section 6.3.1).
    Pli {
        /// SSRC of the requester.
        sender_ssrc: u32,
        /// SSRC of the requested stream.
        media_ssrc: u32,
    }
);
wire_class!(
    /// A slice loss indication (RFC 4585 section 6.3.2).
    Sli {
        /// SSRC of the requester.
        sender_ssrc: u32,
        /// SSRC of the requested stream.
        media_ssrc: u32,
        /// (first macroblock, number, picture id).
        entries: Vec<(u16, u16, u8)>,
    }
);
wire_class!(
    /// A full intra request (RFC 5104 section 4.3.1).
    Fir {
        /// SSRC of the requester.
        sender_ssrc: u32,
        /// (SSRC, command sequence number).
        entries: Vec<(u32, u8)>,
    }
);
wire_class!(
    /// A receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb).
    Remb {
        /// SSRC of the estimating receiver.
        sender_ssrc: u32,
        /// The rate; on the wire it has 18 significant bits and is cut, not rounded.
        bitrate_bps: u64,
        /// SSRCs of the streams that it limits.
        ssrcs: Vec<u32>,
    }
);
wire_class!(
    /// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Twcc {
        /// SSRC of the reporter.
        sender_ssrc: u32,
        /// SSRC of the stream reported on, or 0.
        media_ssrc: u32,
        /// Sequence number of the first packet.
        base_sequence: u16,
        /// In 64 ms, 24 bits.
        reference_time: u32,
        /// Running number of the feedback packets.
        feedback_count: u8,
        /// For each packet None (not received), a number (received so many times 250 us after the one
        /// before, the first after the reference time), or "untimed" (received, no time told).
        packets: Vec<TwccStatus>,
    }
);
wire_class!(
    /// RFC 8888 congestion control feedback.
    Ccfb {
        /// SSRC of the reporter.
        sender_ssrc: u32,
        /// (SSRC, first sequence number, for each packet None or (ECN bits, arrival offset in 1/1024 s)).
        streams: Vec<StreamArrivals>,
        /// Middle 32 bits of the NTP time of the report.
        report_timestamp: u32,
    }
);
wire_class!(
    /// RFC 6679 ECN feedback: what was received of a stream since it began. The last four counters wrap after 16 bits.
    EcnFeedback {
        /// SSRC of the reporter.
        sender_ssrc: u32,
        /// SSRC of the stream reported on.
        media_ssrc: u32,
        /// Extended highest sequence number received.
        highest_sequence: u32,
        /// Packets with ECT(0).
        ect0: u32,
        /// Packets with ECT(1).
        ect1: u32,
        /// Packets with congestion experienced.
        ce: u16,
        /// Packets that were not ECN-capable on arrival.
        not_ect: u16,
        /// Packets that did not arrive.
        lost: u16,
        /// Duplicates of packets.
        duplicated: u16,
    }
);
wire_class!(
    /// An extended report (RFC 3611 section 2): its blocks as they are in bytes. Type 13 is RFC 6679's ECN summary.
    ExtendedReport {
        /// SSRC of the reporter.
        ssrc: u32,
        /// (block type, the byte that is specific to it, a multiple of four bytes).
        blocks: Vec<(u8, u8, Vec<u8>)>,
    }
);
wire_class!(
    /// An RTCP packet of another type, with its bytes.
    Unknown {
        /// The padding bit.
        padding: bool,
        /// The five bits that are a count, a subtype or a format.
        count: u8,
        /// The packet type.
        packet_type: u8,
        /// Bytes after the first four.
        body: Vec<u8>,
    }
);
wire_class!(
    /// An RTP packet (RFC 3550 section 5.1, header extensions of RFC 8285).
    Rtp {
        /// Seven bits.
        payload_type: u8,
        /// The sequence number.
        sequence: u16,
        /// In units of the payload type's clock.
        timestamp: u32,
        /// The stream.
        ssrc: u32,
        /// For video the last packet of a frame.
        marker: bool,
        /// SSRCs of the contributing sources (CSRC list).
        csrcs: Vec<u32>,
        /// (identifier, bytes).
        extensions: Vec<(u8, Vec<u8>)>,
        /// The payload.
        payload: Vec<u8>,
        /// Bytes of padding after the payload.
        padding: u8,
    }
);

/// One entry of [`Twcc::packets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TwccStatus {
    NotReceived,
    Delta(i16),
    Untimed,
}

impl<'py> IntoPyObject<'py> for TwccStatus {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = pyo3::inspect::PyStaticExpr::Name { id: "_TwccStatus" };
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(match self {
            Self::NotReceived => py.None().into_bound(py),
            Self::Delta(ticks) => ticks.into_pyobject(py)?.into_any(),
            Self::Untimed => "untimed".into_pyobject(py)?.into_any(),
        })
    }
}

/// Converts RTCP packets to Python objects.
pub(crate) fn packets_to_python<'py>(
    py: Python<'py>,
    packets: &[rtcp::Packet],
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for packet in packets {
        list.append(to_python(py, packet)?)?;
    }
    Ok(list)
}

/// Converts an iterable of Python objects to RTCP packets.
pub(crate) fn packets_from_python(values: &Bound<'_, PyAny>) -> PyResult<Vec<rtcp::Packet>> {
    values.try_iter()?.map(|value| from_python(&value?)).collect()
}

/// Decodes the RTCP packets of a compound or reduced-size packet (RFC 3550, RFC 5506).
///
/// `data` may be any object with the buffer protocol: bytes, bytearray, memoryview, array. A ValueError has the problem
/// and its place.
#[pyfunction]
#[pyo3(signature = (data: "Buffer") -> "list[_Packet]")]
pub(crate) fn decode<'py>(py: Python<'py>, data: Octets<'py>) -> PyResult<Bound<'py, PyList>> {
    packets_to_python(py, &rtcp::decode(data.as_bytes()).map_err(bad)?)
}

/// Encodes RTCP packets, one after the other. Only the last packet is padded with the padding bit (RFC 3550
/// section 6.4.1). A value that does not fit its field is a ValueError.
#[pyfunction]
#[pyo3(signature = (packets: "Sequence[_Packet]"))]
pub(crate) fn encode<'py>(py: Python<'py>, packets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    rtcp::encode(&packets_from_python(packets)?, &mut out).map_err(bad)?;
    Ok(PyBytes::new(py, &out))
}

/// Decodes an RTP packet from any buffer. A ValueError has the problem and its place.
#[pyfunction]
#[pyo3(signature = (data: "Buffer"))]
pub(crate) fn decode_rtp(data: Octets<'_>) -> PyResult<Rtp> {
    let data = data.as_bytes();
    let (header, payload) = rtp::Header::decode(data).map_err(bad)?;
    Ok(Rtp {
        payload_type: header.payload_type,
        sequence: header.sequence,
        timestamp: header.timestamp,
        ssrc: header.ssrc,
        marker: header.marker,
        csrcs: header.csrcs,
        extensions: header.extensions.into_iter().map(|e| (e.id, e.data)).collect(),
        payload: data[payload].to_vec(),
        padding: header.padding,
    })
}

/// Encodes an RTP packet, padding included.
#[pyfunction]
pub(crate) fn encode_rtp<'py>(py: Python<'py>, packet: &Rtp) -> PyResult<Bound<'py, PyBytes>> {
    let header = rtp::Header {
        padding: packet.padding,
        marker: packet.marker,
        payload_type: packet.payload_type,
        sequence: packet.sequence,
        timestamp: packet.timestamp,
        ssrc: packet.ssrc,
        csrcs: packet.csrcs.clone(),
        extensions: packet
            .extensions
            .iter()
            .map(|(id, data)| Extension { id: *id, data: data.clone() })
            .collect(),
    };
    let mut out = Vec::new();
    header.encode(&mut out).map_err(bad)?;
    out.extend(&packet.payload);
    if packet.padding > 0 {
        out.extend(std::iter::repeat_n(0, usize::from(packet.padding) - 1));
        out.push(packet.padding);
    }
    Ok(PyBytes::new(py, &out))
}

/// Makes transport-wide feedback from arrivals. Each receiver needs a builder of its own, which counts its packets.
#[pyclass(module = "tidegate.net.wire")]
#[derive(Debug)]
pub(crate) struct TwccBuilder(rtcp::TwccBuilder);

#[pymethods]
impl TwccBuilder {
    #[new]
    #[pyo3(signature = (sender_ssrc, media_ssrc, feedback_count=None))]
    fn new(
        sender_ssrc: FieldArgument<'_, u32>,
        media_ssrc: FieldArgument<'_, u32>,
        feedback_count: Option<FieldArgument<'_, u8>>,
    ) -> PyResult<Self> {
        let name = "TwccBuilder";
        Ok(Self(rtcp::TwccBuilder {
            sender_ssrc: sender_ssrc.read(name, "sender_ssrc")?,
            media_ssrc: media_ssrc.read(name, "media_ssrc")?,
            feedback_count: feedback_count.map_or(Ok(0), |count| count.read(name, "feedback_count"))?,
        }))
    }

    /// SSRC of the reporter.
    #[getter]
    fn sender_ssrc(&self) -> u32 {
        self.0.sender_ssrc
    }

    /// SSRC of the stream reported on, or 0.
    #[getter]
    fn media_ssrc(&self) -> u32 {
        self.0.media_ssrc
    }

    /// Running number of the next feedback packet.
    #[getter]
    fn feedback_count(&self) -> u8 {
        self.0.feedback_count
    }

    fn __repr__(&self) -> String {
        let rtcp::TwccBuilder { sender_ssrc, media_ssrc, feedback_count } = self.0;
        format!(
            "TwccBuilder(sender_ssrc={sender_ssrc}, media_ssrc={media_ssrc}, feedback_count={feedback_count})"
        )
    }

    /// Feedback on all packets from `begin` to the last of `arrivals`.
    ///
    /// An arrival is (transport-wide sequence number without wraps, time in nanoseconds of the receiver's clock).
    /// Arrivals ascend by number; packets between them were not received. Times are rounded to 250 us. Arrivals that do
    /// not fit one feedback packet (a step of more than 8.19 s, 65535 packets) begin another one.
    #[pyo3(signature = (begin, arrivals: "Iterable[tuple[int, int]]"))]
    fn build(
        &mut self,
        begin: FieldArgument<'_, u32>,
        arrivals: FieldArgument<'_, Vec<(u32, i64)>>,
    ) -> PyResult<Vec<Twcc>> {
        let begin = begin.read("build", "begin")?;
        let arrivals = arrivals.read("build", "arrivals")?;
        let arrivals: Vec<_> =
            arrivals.iter().map(|&(n, at)| (u64::from(n), RemoteTime::from_nanos(at))).collect();
        Ok(self.0.build(u64::from(begin), &arrivals).into_iter().map(twcc_to_python).collect())
    }
}
