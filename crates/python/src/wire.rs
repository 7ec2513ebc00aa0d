//! RTP and RTCP as plain typed objects in Python.

use crate::errors::bad;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tidegate_core::Rate;
use tidegate_core::packet::Extension;
use tidegate_core::wire::rtcp::{self, Metric, Status};
use tidegate_core::wire::rtp;

/// SSRC, and (item type, text).
type SourceItems = (u32, Vec<(u8, Vec<u8>)>);
/// SSRC, first sequence number, and for each packet (ECN bits, arrival offset) if it was received.
type StreamArrivals = (u32, u16, Vec<Option<(u8, u16)>>);

/// A frozen Python class with the fields of a wire struct, made by keyword or position, compared by value.
macro_rules! wire_class {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[pyclass(frozen, get_all, eq, from_py_object, module = "tidegate.wire")]
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name { $($(#[$doc])* $field: $ty,)* }

        #[pymethods]
        impl $name {
            #[new]
            #[allow(clippy::too_many_arguments)]
            fn new($($field: $ty),*) -> Self {
                Self { $($field),* }
            }

            fn __repr__(&self) -> String {
                format!("{self:?}")
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
        /// Packets lost since the beginning, signed 24 bits.
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
        /// Who leaves.
        ssrcs: Vec<u32>,
        /// Why.
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
        /// Who asks.
        sender_ssrc: u32,
        /// For which stream.
        media_ssrc: u32,
        /// (PID, BLP).
        pairs: Vec<(u16, u16)>,
    }
);
wire_class!(
    /// A picture loss indication (RFC 4585 section 6.3.1).
    Pli {
        /// Who asks.
        sender_ssrc: u32,
        /// For which stream.
        media_ssrc: u32,
    }
);
wire_class!(
    /// A slice loss indication (RFC 4585 section 6.3.2).
    Sli {
        /// Who asks.
        sender_ssrc: u32,
        /// For which stream.
        media_ssrc: u32,
        /// (first macroblock, number, picture id).
        entries: Vec<(u16, u16, u8)>,
    }
);
wire_class!(
    /// A full intra request (RFC 5104 section 4.3.1).
    Fir {
        /// Who asks.
        sender_ssrc: u32,
        /// (SSRC, command sequence number).
        entries: Vec<(u32, u8)>,
    }
);
wire_class!(
    /// A receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb).
    Remb {
        /// Who estimates.
        sender_ssrc: u32,
        /// The rate; on the wire it has 18 significant bits and is cut, not rounded.
        bitrate_bps: u64,
        /// The streams it is for.
        ssrcs: Vec<u32>,
    }
);
wire_class!(
    /// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Twcc {
        /// Who reports.
        sender_ssrc: u32,
        /// On which stream, or 0.
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
        /// Who reports.
        sender_ssrc: u32,
        /// (SSRC, first sequence number, for each packet None or (ECN bits, arrival offset in 1/1024 s)).
        streams: Vec<StreamArrivals>,
        /// Middle 32 bits of the NTP time of the report.
        report_timestamp: u32,
    }
);
wire_class!(
    /// An RTCP packet that is none of the others, as it came.
    Unknown {
        /// The padding bit.
        padding: bool,
        /// The five bits that are a count, a subtype or a format.
        count: u8,
        /// The packet type.
        packet_type: u8,
        /// What follows the first four bytes.
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
        /// Who contributed.
        csrcs: Vec<u32>,
        /// (identifier, bytes).
        extensions: Vec<(u8, Vec<u8>)>,
        /// The payload.
        payload: Vec<u8>,
        /// Bytes of padding behind the payload.
        padding: u8,
    }
);

/// One entry of [`Twcc::packets`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TwccStatus {
    NotReceived,
    Delta(i16),
    Untimed,
}

impl<'py> IntoPyObject<'py> for TwccStatus {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(match self {
            Self::NotReceived => py.None().into_bound(py),
            Self::Delta(ticks) => ticks.into_pyobject(py)?.into_any(),
            Self::Untimed => "untimed".into_pyobject(py)?.into_any(),
        })
    }
}

impl<'py> FromPyObject<'_, 'py> for TwccStatus {
    type Error = PyErr;
    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self::NotReceived);
        }
        if let Ok(ticks) = value.extract::<i16>() {
            return Ok(Self::Delta(ticks));
        }
        match value.extract::<String>() {
            Ok(word) if word == "untimed" => Ok(Self::Untimed),
            _ => Err(bad("a status is None, a delta in 250 us (16 bits, signed), or \"untimed\"")),
        }
    }
}

fn block_to_python(block: &rtcp::ReportBlock) -> ReportBlock {
    let rtcp::ReportBlock {
        ssrc,
        fraction_lost,
        cumulative_lost,
        highest_sequence,
        jitter,
        last_sr,
        delay_since_last_sr,
    } = *block;
    ReportBlock {
        ssrc,
        fraction_lost,
        cumulative_lost,
        highest_sequence,
        jitter,
        last_sr,
        delay_since_last_sr,
    }
}

fn block_from_python(block: &ReportBlock) -> rtcp::ReportBlock {
    let ReportBlock {
        ssrc,
        fraction_lost,
        cumulative_lost,
        highest_sequence,
        jitter,
        last_sr,
        delay_since_last_sr,
    } = *block;
    rtcp::ReportBlock {
        ssrc,
        fraction_lost,
        cumulative_lost,
        highest_sequence,
        jitter,
        last_sr,
        delay_since_last_sr,
    }
}

fn to_python<'py>(py: Python<'py>, packet: &rtcp::Packet) -> PyResult<Bound<'py, PyAny>> {
    use rtcp::Packet as P;
    Ok(match packet.clone() {
        P::SenderReport(r) => {
            let blocks = r.blocks.iter().map(block_to_python).collect();
            let rtcp::SenderReport { ssrc, ntp, rtp_timestamp, packet_count, octet_count, extension, .. } = r;
            let report =
                SenderReport { ssrc, ntp, rtp_timestamp, packet_count, octet_count, blocks, extension };
            Bound::new(py, report)?.into_any()
        }
        P::ReceiverReport(r) => {
            let blocks = r.blocks.iter().map(block_to_python).collect();
            Bound::new(py, ReceiverReport { ssrc: r.ssrc, blocks, extension: r.extension })?.into_any()
        }
        P::Sdes(s) => {
            let items = |items: Vec<rtcp::SdesItem>| items.into_iter().map(|i| (i.kind, i.text)).collect();
            let chunks = s.chunks.into_iter().map(|chunk| (chunk.ssrc, items(chunk.items))).collect();
            Bound::new(py, Sdes { chunks })?.into_any()
        }
        P::Bye(b) => Bound::new(py, Bye { ssrcs: b.ssrcs, reason: b.reason })?.into_any(),
        P::App(a) => {
            Bound::new(py, App { subtype: a.subtype, ssrc: a.ssrc, name: a.name.to_vec(), data: a.data })?
                .into_any()
        }
        P::Nack(n) => {
            let pairs = n.pairs.iter().map(|pair| (pair.pid, pair.blp)).collect();
            Bound::new(py, Nack { sender_ssrc: n.sender_ssrc, media_ssrc: n.media_ssrc, pairs })?.into_any()
        }
        P::Pli(p) => Bound::new(py, Pli { sender_ssrc: p.sender_ssrc, media_ssrc: p.media_ssrc })?.into_any(),
        P::Sli(s) => {
            let entries = s.entries.iter().map(|e| (e.first, e.number, e.picture)).collect();
            Bound::new(py, Sli { sender_ssrc: s.sender_ssrc, media_ssrc: s.media_ssrc, entries })?.into_any()
        }
        P::Fir(f) => {
            let entries = f.entries.iter().map(|e| (e.ssrc, e.sequence)).collect();
            Bound::new(py, Fir { sender_ssrc: f.sender_ssrc, entries })?.into_any()
        }
        P::Remb(r) => {
            let bitrate_bps = r.bitrate.as_bps();
            Bound::new(py, Remb { sender_ssrc: r.sender_ssrc, bitrate_bps, ssrcs: r.ssrcs })?.into_any()
        }
        P::Twcc(t) => {
            let status = |status: &Status| match *status {
                Status::NotReceived => TwccStatus::NotReceived,
                Status::Received { delta } => TwccStatus::Delta(delta),
                Status::ReceivedWithoutDelta => TwccStatus::Untimed,
            };
            let packets = t.packets.iter().map(status).collect();
            let rtcp::Twcc { sender_ssrc, media_ssrc, base_sequence, reference_time, feedback_count, .. } = t;
            let twcc =
                Twcc { sender_ssrc, media_ssrc, base_sequence, reference_time, feedback_count, packets };
            Bound::new(py, twcc)?.into_any()
        }
        P::Ccfb(c) => {
            let metric = |metric: &Metric| match *metric {
                Metric::NotReceived => None,
                Metric::Received { ecn, offset } => Some((ecn as u8, offset)),
            };
            let stream = |s: &rtcp::StreamMetrics| (s.ssrc, s.begin, s.metrics.iter().map(metric).collect());
            let streams = c.streams.iter().map(stream).collect();
            let ccfb = Ccfb { sender_ssrc: c.sender_ssrc, streams, report_timestamp: c.report_timestamp };
            Bound::new(py, ccfb)?.into_any()
        }
        P::Unknown(u) => {
            let rtcp::Unknown { padding, count, packet_type, body } = u;
            Bound::new(py, Unknown { padding, count, packet_type, body })?.into_any()
        }
    })
}

fn from_python(value: &Bound<'_, PyAny>) -> PyResult<rtcp::Packet> {
    use rtcp::Packet as P;
    if let Ok(r) = value.extract::<SenderReport>() {
        let SenderReport { ssrc, ntp, rtp_timestamp, packet_count, octet_count, blocks, extension } = r;
        let blocks = blocks.iter().map(block_from_python).collect();
        let report =
            rtcp::SenderReport { ssrc, ntp, rtp_timestamp, packet_count, octet_count, blocks, extension };
        return Ok(P::SenderReport(report));
    }
    if let Ok(r) = value.extract::<ReceiverReport>() {
        let blocks = r.blocks.iter().map(block_from_python).collect();
        return Ok(P::ReceiverReport(rtcp::ReceiverReport { ssrc: r.ssrc, blocks, extension: r.extension }));
    }
    if let Ok(s) = value.extract::<Sdes>() {
        let item = |(kind, text)| rtcp::SdesItem { kind, text };
        let chunk = |(ssrc, items): (u32, Vec<_>)| rtcp::SdesChunk {
            ssrc,
            items: items.into_iter().map(item).collect(),
        };
        return Ok(P::Sdes(rtcp::Sdes { chunks: s.chunks.into_iter().map(chunk).collect() }));
    }
    if let Ok(b) = value.extract::<Bye>() {
        return Ok(P::Bye(rtcp::Bye { ssrcs: b.ssrcs, reason: b.reason }));
    }
    if let Ok(a) = value.extract::<App>() {
        let found = a.name.len();
        let name =
            a.name.try_into().map_err(|_| bad(format!("App.name has {found} bytes; it must have 4")))?;
        return Ok(P::App(rtcp::App { subtype: a.subtype, ssrc: a.ssrc, name, data: a.data }));
    }
    if let Ok(n) = value.extract::<Nack>() {
        let pairs = n.pairs.iter().map(|&(pid, blp)| rtcp::NackPair { pid, blp }).collect();
        return Ok(P::Nack(rtcp::Nack { sender_ssrc: n.sender_ssrc, media_ssrc: n.media_ssrc, pairs }));
    }
    if let Ok(p) = value.extract::<Pli>() {
        return Ok(P::Pli(rtcp::Pli { sender_ssrc: p.sender_ssrc, media_ssrc: p.media_ssrc }));
    }
    if let Ok(s) = value.extract::<Sli>() {
        let entry = |&(first, number, picture)| rtcp::SliEntry { first, number, picture };
        let entries = s.entries.iter().map(entry).collect();
        return Ok(P::Sli(rtcp::Sli { sender_ssrc: s.sender_ssrc, media_ssrc: s.media_ssrc, entries }));
    }
    if let Ok(f) = value.extract::<Fir>() {
        let entries = f.entries.iter().map(|&(ssrc, sequence)| rtcp::FirEntry { ssrc, sequence }).collect();
        return Ok(P::Fir(rtcp::Fir { sender_ssrc: f.sender_ssrc, entries }));
    }
    if let Ok(r) = value.extract::<Remb>() {
        let bitrate = Rate::from_bps(r.bitrate_bps);
        return Ok(P::Remb(rtcp::Remb { sender_ssrc: r.sender_ssrc, bitrate, ssrcs: r.ssrcs }));
    }
    if let Ok(t) = value.extract::<Twcc>() {
        let status = |status: &TwccStatus| match *status {
            TwccStatus::NotReceived => Status::NotReceived,
            TwccStatus::Delta(delta) => Status::Received { delta },
            TwccStatus::Untimed => Status::ReceivedWithoutDelta,
        };
        let packets = t.packets.iter().map(status).collect();
        let Twcc { sender_ssrc, media_ssrc, base_sequence, reference_time, feedback_count, .. } = t;
        let twcc =
            rtcp::Twcc { sender_ssrc, media_ssrc, base_sequence, reference_time, feedback_count, packets };
        return Ok(P::Twcc(twcc));
    }
    if let Ok(c) = value.extract::<Ccfb>() {
        let metric = |metric: Option<(u8, u16)>| match metric {
            None => Metric::NotReceived,
            Some((ecn, offset)) => Metric::Received { ecn: tidegate_core::Ecn::from_bits(ecn), offset },
        };
        let stream = |(ssrc, begin, metrics): (u32, u16, Vec<_>)| rtcp::StreamMetrics {
            ssrc,
            begin,
            metrics: metrics.into_iter().map(metric).collect(),
        };
        let streams = c.streams.into_iter().map(stream).collect();
        return Ok(P::Ccfb(rtcp::Ccfb {
            sender_ssrc: c.sender_ssrc,
            streams,
            report_timestamp: c.report_timestamp,
        }));
    }
    if let Ok(u) = value.extract::<Unknown>() {
        let Unknown { padding, count, packet_type, body } = u;
        return Ok(P::Unknown(rtcp::Unknown { padding, count, packet_type, body }));
    }
    let kind = value.get_type().name()?;
    Err(bad(format!("an object of type {kind} is not an RTCP packet of tidegate.wire")))
}

/// RTCP packets as Python objects.
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

/// RTCP packets from an iterable of Python objects.
pub(crate) fn packets_from_python(values: &Bound<'_, PyAny>) -> PyResult<Vec<rtcp::Packet>> {
    values.try_iter()?.map(|value| from_python(&value?)).collect()
}

/// The RTCP packets of a compound or reduced-size packet (RFC 3550, RFC 5506). Raises ValueError with
/// what is wrong and where.
#[pyfunction]
pub(crate) fn decode<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyList>> {
    packets_to_python(py, &rtcp::decode(data).map_err(bad)?)
}

/// The bytes of RTCP packets, one after the other.
#[pyfunction]
pub(crate) fn encode<'py>(py: Python<'py>, packets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    rtcp::encode(&packets_from_python(packets)?, &mut out).map_err(bad)?;
    Ok(PyBytes::new(py, &out))
}

/// An RTP packet from its bytes. Raises ValueError with what is wrong and where.
#[pyfunction]
pub(crate) fn decode_rtp(data: &[u8]) -> PyResult<Rtp> {
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

/// The bytes of an RTP packet, padding included.
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

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ReportBlock>()?;
    module.add_class::<SenderReport>()?;
    module.add_class::<ReceiverReport>()?;
    module.add_class::<Sdes>()?;
    module.add_class::<Bye>()?;
    module.add_class::<App>()?;
    module.add_class::<Nack>()?;
    module.add_class::<Pli>()?;
    module.add_class::<Sli>()?;
    module.add_class::<Fir>()?;
    module.add_class::<Remb>()?;
    module.add_class::<Twcc>()?;
    module.add_class::<Ccfb>()?;
    module.add_class::<Unknown>()?;
    module.add_class::<Rtp>()?;
    Ok(())
}
