//! Feedback reports for controllers in Python.

use super::or_none;
use crate::errors::bad;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tidegate_core::control::{EcnCounts, LossReport, PacketResult, Report};
use tidegate_core::datagram::Ecn;
use tidegate_core::wire::rtcp;
use tidegate_core::{Rate, RemoteTime, Size, Span, Time};

/// Feedback on one packet, joined with the packet sent.
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "PacketResult")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyPacketResult {
    /// Transport-wide sequence number, unwrapped.
    sequence: u64,
    /// Bytes: payload and RTP header with extensions, without IP and UDP.
    size: u64,
    /// When it was sent, by our clock, in nanoseconds.
    sent_ns: i64,
    /// When it arrived, by the far clock, in nanoseconds; None: reported as not received.
    arrival_ns: Option<i64>,
    /// The ECN field as it arrived: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    ecn: u8,
    /// The probe it was part of.
    probe: Option<u32>,
}

#[pymethods]
impl PyPacketResult {
    #[new]
    #[pyo3(signature = (sequence, size, sent_ns, arrival_ns=None, ecn=0, probe=None))]
    fn new(
        sequence: u64,
        size: u64,
        sent_ns: i64,
        arrival_ns: Option<i64>,
        ecn: u8,
        probe: Option<u32>,
    ) -> Self {
        Self { sequence, size, sent_ns, arrival_ns, ecn, probe }
    }

    fn __repr__(&self) -> String {
        let arrival = or_none(self.arrival_ns);
        format!(
            "PacketResult(sequence={}, size={}, sent_ns={}, arrival_ns={arrival}, ecn={})",
            self.sequence, self.size, self.sent_ns, self.ecn
        )
    }
}

impl PyPacketResult {
    fn from_core(result: &PacketResult) -> Self {
        Self {
            sequence: result.sequence,
            size: result.size.as_bytes(),
            sent_ns: result.sent.as_nanos(),
            arrival_ns: result.arrival.map(RemoteTime::as_nanos),
            ecn: result.ecn as u8,
            probe: result.probe,
        }
    }

    fn to_core(&self) -> PacketResult {
        PacketResult {
            sequence: self.sequence,
            size: Size::from_bytes(self.size),
            sent: Time::from_nanos(self.sent_ns),
            arrival: self.arrival_ns.map(RemoteTime::from_nanos),
            ecn: Ecn::from_bits(self.ecn),
            probe: self.probe,
        }
    }
}

/// Statistics of a receiver report (RFC 3550 section 6.4.1).
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "LossReport")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyLossReport {
    /// Fraction lost since the last report, in 1/256.
    fraction_lost: u8,
    /// Packets lost since the session began.
    cumulative_lost: i32,
    /// Extended highest sequence number received.
    highest_sequence: u32,
    /// Interarrival jitter in nanoseconds.
    jitter_ns: i64,
    /// Packets expected since the last report.
    expected: u32,
}

#[pymethods]
impl PyLossReport {
    #[new]
    #[pyo3(signature = (fraction_lost, cumulative_lost=0, highest_sequence=0, jitter_ns=0, expected=0))]
    fn new(
        fraction_lost: u8,
        cumulative_lost: i32,
        highest_sequence: u32,
        jitter_ns: i64,
        expected: u32,
    ) -> Self {
        Self { fraction_lost, cumulative_lost, highest_sequence, jitter_ns, expected }
    }

    fn __repr__(&self) -> String {
        format!(
            "LossReport(fraction_lost={}, cumulative_lost={}, highest_sequence={}, jitter_ns={}, expected={})",
            self.fraction_lost, self.cumulative_lost, self.highest_sequence, self.jitter_ns, self.expected
        )
    }
}

/// Packets received, by the ECN field that they had on arrival (the counters of RFC 6679 section 5.1).
#[pyclass(frozen, get_all, eq, module = "tidegate", name = "EcnCounts")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyEcnCounts {
    /// Not ECN-capable: sent so, or cleared on the way.
    not_ect: u32,
    /// ECT(0).
    ect0: u32,
    /// ECT(1).
    ect1: u32,
    /// Congestion experienced.
    ce: u32,
}

#[pymethods]
impl PyEcnCounts {
    #[new]
    #[pyo3(signature = (not_ect=0, ect0=0, ect1=0, ce=0))]
    fn new(not_ect: u32, ect0: u32, ect1: u32, ce: u32) -> Self {
        Self { not_ect, ect0, ect1, ce }
    }

    fn __repr__(&self) -> String {
        format!("EcnCounts(not_ect={}, ect0={}, ect1={}, ce={})", self.not_ect, self.ect0, self.ect1, self.ce)
    }
}

/// One feedback report, joined with the packets sent.
#[pyclass(frozen, module = "tidegate", name = "Report")]
pub(crate) struct PyReport {
    pub(super) inner: Report,
}

#[pymethods]
impl PyReport {
    #[new]
    #[pyo3(signature = (packets=Vec::new(), *, in_flight=0, backlog=0, pacer_delay_ns=0, report_rtt_ns=None, packet_rtt_ns=None, ecn=None, loss=None, remb_bps=None, messages: "Sequence[tuple[str, bytes]]" = Vec::new(), reporter=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        packets: Vec<PyRef<'_, PyPacketResult>>,
        in_flight: u64,
        backlog: u64,
        pacer_delay_ns: i64,
        report_rtt_ns: Option<i64>,
        packet_rtt_ns: Option<i64>,
        ecn: Option<PyRef<'_, PyEcnCounts>>,
        loss: Option<PyRef<'_, PyLossReport>>,
        remb_bps: Option<u64>,
        messages: Vec<(String, Vec<u8>)>,
        reporter: u32,
    ) -> PyResult<Self> {
        let messages = messages
            .into_iter()
            .map(|(name, data)| {
                let name = <[u8; 4]>::try_from(name.as_bytes()).map_err(|_| {
                    bad(format!("messages: found the name {name:?}; a name must have four ASCII characters"))
                })?;
                Ok(rtcp::App { subtype: 0, ssrc: reporter, name, data })
            })
            .collect::<PyResult<_>>()?;
        Ok(Self {
            inner: Report {
                reporter,
                packets: packets.iter().map(|packet| packet.to_core()).collect(),
                in_flight: Size::from_bytes(in_flight),
                backlog: Size::from_bytes(backlog),
                pacer_delay: Span::from_nanos(pacer_delay_ns),
                report_rtt: report_rtt_ns.map(Span::from_nanos),
                packet_rtt: packet_rtt_ns.map(Span::from_nanos),
                ecn: ecn.map(|counts| {
                    let PyEcnCounts { not_ect, ect0, ect1, ce } = *counts;
                    EcnCounts { not_ect, ect0, ect1, ce }
                }),
                loss: loss.map(|loss| LossReport {
                    fraction_lost: loss.fraction_lost,
                    cumulative_lost: loss.cumulative_lost,
                    highest_sequence: loss.highest_sequence,
                    jitter: Span::from_nanos(loss.jitter_ns),
                    expected: loss.expected,
                }),
                remb: remb_bps.map(Rate::from_bps),
                messages,
            },
        })
    }

    /// SSRC of the reporter.
    #[getter]
    fn reporter(&self) -> u32 {
        self.inner.reporter
    }
    /// Per-packet results in order of sequence.
    #[getter]
    fn packets(&self) -> Vec<PyPacketResult> {
        self.inner.packets.iter().map(PyPacketResult::from_core).collect()
    }
    /// Their sequence numbers as an array.
    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.inner.packets.iter().map(|p| p.sequence))
    }
    /// Their sizes in bytes as an array.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.inner.packets.iter().map(|p| p.size.as_bytes()))
    }
    /// Their sending times in nanoseconds as an array.
    #[getter]
    fn sent_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.inner.packets.iter().map(|p| p.sent.as_nanos()))
    }
    /// Their arrival times in nanoseconds of the far clock as floats; NaN: not received.
    #[getter]
    fn arrival_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let arrival = |p: &PacketResult| p.arrival.map_or(f64::NAN, |arrival| arrival.as_nanos() as f64);
        PyArray1::from_iter(py, self.inner.packets.iter().map(arrival))
    }
    /// Bytes sent and not yet reported on.
    #[getter]
    fn in_flight(&self) -> u64 {
        self.inner.in_flight.as_bytes()
    }
    /// Bytes that wait in the pacer, as rates count them.
    #[getter]
    fn backlog(&self) -> u64 {
        self.inner.backlog.as_bytes()
    }
    /// Time that the oldest packet of media in the pacer has waited, in nanoseconds.
    #[getter]
    fn pacer_delay_ns(&self) -> i64 {
        self.inner.pacer_delay.as_nanos()
    }
    /// The round trip by a receiver report's LSR and DLSR, in nanoseconds.
    #[getter]
    fn report_rtt_ns(&self) -> Option<i64> {
        self.inner.report_rtt.map(Span::as_nanos)
    }
    /// The round trip of the newest packet reported as received, in nanoseconds.
    #[getter]
    fn packet_rtt_ns(&self) -> Option<i64> {
        self.inner.packet_rtt.map(Span::as_nanos)
    }
    /// A fresh round-trip sample in nanoseconds: that of a receiver report, or else that of the newest packet.
    #[getter]
    fn rtt_ns(&self) -> Option<i64> {
        self.inner.rtt().map(Span::as_nanos)
    }
    /// The packets of which this report is the first to say that they were received, by ECN field; None: the
    /// feedback does not tell.
    #[getter]
    fn ecn(&self) -> Option<PyEcnCounts> {
        let convert = |EcnCounts { not_ect, ect0, ect1, ce }| PyEcnCounts { not_ect, ect0, ect1, ce };
        self.inner.ecn.map(convert)
    }
    /// Receiver-report statistics.
    #[getter]
    fn loss(&self) -> Option<PyLossReport> {
        self.inner.loss.map(|loss| PyLossReport {
            fraction_lost: loss.fraction_lost,
            cumulative_lost: loss.cumulative_lost,
            highest_sequence: loss.highest_sequence,
            jitter_ns: loss.jitter.as_nanos(),
            expected: loss.expected,
        })
    }
    /// A REMB rate in bit/s.
    #[getter]
    fn remb_bps(&self) -> Option<u64> {
        self.inner.remb.map(Rate::as_bps)
    }
    /// The scheme's own messages as (name, bytes).
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let name = |app: &rtcp::App| String::from_utf8_lossy(&app.name).into_owned();
        self.inner.messages.iter().map(|app| (name(app), PyBytes::new(py, &app.data))).collect()
    }
    fn __repr__(&self) -> String {
        format!(
            "<Report on {} packets, {} bytes in flight>",
            self.inner.packets.len(),
            self.inner.in_flight.as_bytes()
        )
    }
}
