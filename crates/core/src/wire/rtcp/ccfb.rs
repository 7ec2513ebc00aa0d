//! RTP congestion control feedback (RFC 8888).

use super::super::Error;
use super::super::error::fit;
use super::super::reader::Reader;
use super::{put16, put32};
use crate::datagram::Ecn;
use crate::units::{RemoteTime, Span};

/// Largest number of metric blocks of a stream (RFC 8888 section 3.1).
const MAX_BLOCKS: usize = 16_384;

/// Congestion control feedback packet (RFC 8888 section 3.1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ccfb {
    /// SSRC of the receiver.
    pub sender_ssrc: u32,
    /// Reports on the streams.
    pub streams: Vec<StreamMetrics>,
    /// RTS: time of the report by the receiver's clock, in 2^-16 s (the middle 32 bits of an NTP timestamp). See
    /// [`ntp::short`](super::super::ntp::short).
    pub report_timestamp: u32,
}

/// Results of the packets of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StreamMetrics {
    /// SSRC of the stream.
    pub ssrc: u32,
    /// RTP sequence number of the first reported packet.
    pub begin: u16,
    /// Results of the packets from there on, at most 16384.
    pub metrics: Vec<Metric>,
}

/// Result of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Not received (yet).
    NotReceived,
    /// Received.
    Received {
        /// ECN field on arrival.
        ecn: Ecn,
        /// ATO: time from the arrival to the report timestamp, in 2^-10 s, 13 bits; [`Metric::OVER_RANGE`] and
        /// [`Metric::UNAVAILABLE`] are no times.
        offset: u16,
    },
}

impl Metric {
    /// Offset of a packet that arrived more than 8189/1024 s before the report.
    pub const OVER_RANGE: u16 = 0x1ffe;
    /// Offset of a packet that arrived after the report timestamp, or at an unknown time.
    pub const UNAVAILABLE: u16 = 0x1fff;

    /// Result of a packet received with `ecn`, `ago` before the report; rounded down to 2^-10 s, as in libwebrtc and pion.
    #[must_use]
    pub const fn received(ecn: Ecn, ago: Span) -> Self {
        let units = ago.as_nanos() as i128 * 1024;
        let offset = if units < 0 {
            Self::UNAVAILABLE
        } else if units > 8189 * 1_000_000_000 {
            Self::OVER_RANGE
        } else {
            (units / 1_000_000_000) as u16
        };
        Self::Received { ecn, offset }
    }

    /// Time from the arrival to the report, to the nearest nanosecond, if it is known.
    #[must_use]
    pub const fn ago(self) -> Option<Span> {
        match self {
            Self::Received { offset, .. } if offset < Self::OVER_RANGE => {
                Some(Span::from_nanos((offset as i64 * 1_000_000_000 + 512) / 1024))
            }
            _ => None,
        }
    }

    /// Parses the bits of a metric block. Without the R bit the others have no meaning.
    fn from_bits(bits: u16) -> Self {
        if bits & 0x8000 == 0 {
            return Self::NotReceived;
        }
        Self::Received { ecn: Ecn::from_bits((bits >> 13) as u8), offset: bits & 0x1fff }
    }

    fn bits(self) -> Result<u16, Error> {
        match self {
            Self::NotReceived => Ok(0),
            Self::Received { ecn, offset } => {
                fit("arrival time offset", usize::from(offset), 0, 0x1fff)?;
                Ok(0x8000 | (ecn as u16) << 13 | offset)
            }
        }
    }
}

/// Received packet, for [`StreamMetrics::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// RTP sequence number, unwrapped.
    pub sequence: u64,
    /// Arrival by the receiver's clock.
    pub at: RemoteTime,
    /// ECN field on arrival.
    pub ecn: Ecn,
}

impl StreamMetrics {
    /// Reports at `now` on the packets `begin..end` of the stream `ssrc`, at most on the newest 16384. `arrivals` is in the
    /// order of arrival. Of duplicates the first one's time counts, and its ECN field unless one of them is CE (RFC 8888
    /// section 3.1).
    #[must_use]
    pub fn new(ssrc: u32, begin: u64, end: u64, arrivals: &[Arrival], now: RemoteTime) -> Self {
        let begin = begin.max(end.saturating_sub(MAX_BLOCKS as u64));
        let mut metrics = vec![Metric::NotReceived; end.saturating_sub(begin) as usize];
        for arrival in arrivals {
            let index = arrival.sequence.checked_sub(begin).and_then(|index| usize::try_from(index).ok());
            match index.and_then(|index| metrics.get_mut(index)) {
                Some(metric @ Metric::NotReceived) => {
                    *metric = Metric::received(arrival.ecn, now - arrival.at);
                }
                Some(Metric::Received { ecn, .. }) if arrival.ecn == Ecn::Ce => *ecn = Ecn::Ce,
                _ => {}
            }
        }
        Self { ssrc, begin: begin as u16, metrics }
    }

    /// RTP sequence number and result of each reported packet, in order.
    pub fn packets(&self) -> impl Iterator<Item = (u16, Metric)> + '_ {
        let mut sequence = self.begin.wrapping_sub(1);
        self.metrics.iter().map(move |&metric| {
            sequence = sequence.wrapping_add(1);
            (sequence, metric)
        })
    }
}

/// Interpretation of `num_reports`. The text of RFC 8888 says both that it is the number of blocks (zero for none), and
/// that blocks go up to `begin_seq + num_reports` inclusive, which is one more. libwebrtc and pion implement the first,
/// EricssonResearch/scream the second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumReportsMeaning {
    Number,
    Inclusive,
}

impl Ccfb {
    /// Parses a packet with `num_reports` as the number of blocks. A stream has one block more if the padding of an odd
    /// number is a received packet; and all streams have, if the lengths do not fit otherwise.
    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let sender_ssrc = body.u32("CCFB sender SSRC")?;
        let blocks = body.part(body.len().saturating_sub(4), "CCFB metric blocks")?;
        let report_timestamp = body.u32("CCFB report timestamp")?;
        let streams = parse_streams(blocks, NumReportsMeaning::Number)
            .or_else(|error| parse_streams(blocks, NumReportsMeaning::Inclusive).map_err(|_| error))?;
        Ok(Self { sender_ssrc, streams, report_timestamp })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        put32(out, self.sender_ssrc);
        for stream in &self.streams {
            let count = fit("number of metric blocks of a stream", stream.metrics.len(), 0, MAX_BLOCKS)?;
            put32(out, stream.ssrc);
            put16(out, stream.begin);
            put16(out, count as u16);
            for metric in &stream.metrics {
                put16(out, metric.bits()?);
            }
            if count % 2 != 0 {
                put16(out, 0);
            }
        }
        put32(out, self.report_timestamp);
        Ok(())
    }
}

fn parse_streams(mut body: Reader<'_>, meaning: NumReportsMeaning) -> Result<Vec<StreamMetrics>, Error> {
    let mut streams = Vec::new();
    while !body.is_empty() {
        let ssrc = body.u32("CCFB stream SSRC")?;
        let begin = body.u16("CCFB begin_seq")?;
        let offset = body.offset();
        let number = usize::from(body.u16("CCFB num_reports")?);
        let count = number + usize::from(meaning == NumReportsMeaning::Inclusive);
        if count > MAX_BLOCKS {
            return Err(Error::Invalid { field: "CCFB num_reports", offset, value: number as u64 });
        }
        let mut blocks = body.part(2 * count, "CCFB metric blocks of a stream")?;
        let mut metrics = Vec::with_capacity(count + 1);
        while !blocks.is_empty() {
            metrics.push(Metric::from_bits(blocks.u16("CCFB metric block")?));
        }
        if count % 2 != 0 {
            let padding = Metric::from_bits(body.u16("CCFB padding")?);
            if meaning == NumReportsMeaning::Number && padding != Metric::NotReceived {
                metrics.push(padding);
            }
        }
        streams.push(StreamMetrics { ssrc, begin, metrics });
    }
    Ok(streams)
}
