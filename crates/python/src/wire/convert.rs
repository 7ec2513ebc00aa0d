//! RTCP packets of the engine as Python objects, and back.

use super::{
    App, Bye, Ccfb, EcnFeedback, ExtendedReport, Fir, Nack, Pli, ReceiverReport, Remb, ReportBlock, Sdes,
    SenderReport, Sli, Twcc, TwccStatus, Unknown,
};
use crate::errors::bad;
use pyo3::prelude::*;
use tidegate_core::wire::Error;
use tidegate_core::wire::rtcp::{self, Metric, Status};
use tidegate_core::{Ecn, Rate};

pub(super) fn twcc_to_python(twcc: rtcp::Twcc) -> Twcc {
    let status = |status: &Status| match *status {
        Status::NotReceived => TwccStatus::NotReceived,
        Status::Received { delta } => TwccStatus::Delta(delta),
        Status::ReceivedWithoutDelta => TwccStatus::Untimed,
    };
    let packets = twcc.packets.iter().map(status).collect();
    let rtcp::Twcc { sender_ssrc, media_ssrc, base_sequence, reference_time, feedback_count, .. } = twcc;
    Twcc { sender_ssrc, media_ssrc, base_sequence, reference_time, feedback_count, packets }
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

pub(super) fn to_python<'py>(py: Python<'py>, packet: &rtcp::Packet) -> PyResult<Bound<'py, PyAny>> {
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
        P::Twcc(t) => Bound::new(py, twcc_to_python(t))?.into_any(),
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
        P::EcnFeedback(e) => {
            let rtcp::EcnFeedback { sender_ssrc, media_ssrc, highest_sequence, counters } = e;
            let rtcp::EcnCounters { ect0, ect1, ce, not_ect, lost, duplicated } = counters;
            let feedback = EcnFeedback {
                sender_ssrc,
                media_ssrc,
                highest_sequence,
                ect0,
                ect1,
                ce,
                not_ect,
                lost,
                duplicated,
            };
            Bound::new(py, feedback)?.into_any()
        }
        P::ExtendedReport(x) => Bound::new(py, ExtendedReport { ssrc: x.ssrc, blocks: x.raw() })?.into_any(),
        P::Unknown(u) => {
            let rtcp::Unknown { padding, count, packet_type, body } = u;
            Bound::new(py, Unknown { padding, count, packet_type, body })?.into_any()
        }
    })
}

pub(super) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<rtcp::Packet> {
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
        let length = a.name.len();
        let name =
            a.name.try_into().map_err(|_| bad(format!("App.name has {length} bytes; it must have 4")))?;
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
            None => Ok(Metric::NotReceived),
            Some((ecn @ 0..=3, offset)) => Ok(Metric::Received { ecn: Ecn::from_bits(ecn), offset }),
            Some((ecn, _)) => {
                Err(bad(Error::Unfit { field: "ECN field", value: u64::from(ecn), minimum: 0, maximum: 3 }))
            }
        };
        let stream = |(ssrc, begin, metrics): (u32, u16, Vec<_>)| {
            let metrics = metrics.into_iter().map(metric).collect::<PyResult<_>>()?;
            Ok(rtcp::StreamMetrics { ssrc, begin, metrics })
        };
        let streams = c.streams.into_iter().map(stream).collect::<PyResult<_>>()?;
        return Ok(P::Ccfb(rtcp::Ccfb {
            sender_ssrc: c.sender_ssrc,
            streams,
            report_timestamp: c.report_timestamp,
        }));
    }
    if let Ok(e) = value.extract::<EcnFeedback>() {
        let EcnFeedback { sender_ssrc, media_ssrc, highest_sequence, ect0, ect1, .. } = e;
        let EcnFeedback { ce, not_ect, lost, duplicated, .. } = e;
        let counters = rtcp::EcnCounters { ect0, ect1, ce, not_ect, lost, duplicated };
        return Ok(P::EcnFeedback(rtcp::EcnFeedback { sender_ssrc, media_ssrc, highest_sequence, counters }));
    }
    if let Ok(x) = value.extract::<ExtendedReport>() {
        return Ok(P::ExtendedReport(rtcp::ExtendedReport::of_raw(x.ssrc, x.blocks).map_err(bad)?));
    }
    if let Ok(u) = value.extract::<Unknown>() {
        let Unknown { padding, count, packet_type, body } = u;
        return Ok(P::Unknown(rtcp::Unknown { padding, count, packet_type, body }));
    }
    let kind = value.get_type().name()?;
    Err(bad(format!("an object of type {kind} is not an RTCP packet of tidegate.wire")))
}
