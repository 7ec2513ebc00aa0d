//! RTP congestion control feedback (RFC 8888).

use super::super::Error;
use super::super::error::fit;
use super::super::reader::Reader;
use super::{put16, put32};
use crate::datagram::Ecn;
use crate::units::{RemoteTime, Span};

/// Metric blocks of one stream at most (RFC 8888 section 3.1).
const MOST: usize = 16_384;

/// A congestion control feedback packet (RFC 8888 section 3.1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ccfb {
    /// SSRC of the receiver.
    pub sender_ssrc: u32,
    /// One report for each stream.
    pub streams: Vec<StreamMetrics>,
    /// RTS: when the report was made, by the receiver's clock, in 2^-16 s (the middle 32 bits of an NTP
    /// timestamp). See [`ntp::short`](super::super::ntp::short).
    pub report_timestamp: u32,
}

/// What became of the packets of one stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StreamMetrics {
    /// SSRC of the stream.
    pub ssrc: u32,
    /// RTP sequence number of the first packet reported on.
    pub begin: u16,
    /// One for each packet from there on: at most 16384.
    pub metrics: Vec<Metric>,
}

/// What became of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Not received (yet).
    NotReceived,
    /// Received.
    Received {
        /// The ECN field as it arrived.
        ecn: Ecn,
        /// ATO: how long before the report timestamp it arrived, in 2^-10 s, 13 bits;
        /// [`Metric::OVER_RANGE`] and [`Metric::UNAVAILABLE`] are no times.
        offset: u16,
    },
}

impl Metric {
    /// It arrived more than 8189/1024 s before the report.
    pub const OVER_RANGE: u16 = 0x1ffe;
    /// It arrived after the report timestamp, or nobody knows when.
    pub const UNAVAILABLE: u16 = 0x1fff;

    /// A packet received with `ecn`, `ago` before the report: rounded down to 2^-10 s, as libwebrtc and
    /// pion do.
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

    /// How long before the report it arrived, to the nearest nanosecond, if that is told.
    #[must_use]
    pub const fn ago(self) -> Option<Span> {
        match self {
            Self::Received { offset, .. } if offset < Self::OVER_RANGE => {
                Some(Span::from_nanos((offset as i64 * 1_000_000_000 + 512) / 1024))
            }
            _ => None,
        }
    }

    /// The bits of a metric block. Without the R bit the others are zero and say nothing.
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

/// One packet that arrived, for [`StreamMetrics::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// RTP sequence number, unwrapped.
    pub sequence: u64,
    /// When it arrived, by the receiver's clock.
    pub at: RemoteTime,
    /// The ECN field as it arrived.
    pub ecn: Ecn,
}

impl StreamMetrics {
    /// Reports at `now` on the packets `begin..end` of the stream `ssrc`; of more than 16384, on the
    /// newest. `arrivals` is in the order of arrival: of several copies the first one's time counts, and
    /// its ECN field unless any of them is CE (RFC 8888 section 3.1).
    #[must_use]
    pub fn new(ssrc: u32, begin: u64, end: u64, arrivals: &[Arrival], now: RemoteTime) -> Self {
        let begin = begin.max(end.saturating_sub(MOST as u64));
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

    /// RTP sequence number and fate of every packet reported on, in order.
    pub fn packets(&self) -> impl Iterator<Item = (u16, Metric)> + '_ {
        let mut sequence = self.begin.wrapping_sub(1);
        self.metrics.iter().map(move |&metric| {
            sequence = sequence.wrapping_add(1);
            (sequence, metric)
        })
    }
}

/// How `num_reports` is to be read. The text of RFC 8888 says both: that it is the number of blocks
/// (zero for none), and that blocks go up to `begin_seq + num_reports` inclusive, which is one more.
/// libwebrtc and pion hold with the first, EricssonResearch/scream with the second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Number,
    Inclusive,
}

impl Ccfb {
    /// Reads `num_reports` as the number of blocks. One block more where the padding of an odd number
    /// is a received packet; and where the lengths do not come out, one block more in every stream.
    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, Error> {
        let sender_ssrc = body.u32("CCFB sender SSRC")?;
        let blocks = body.part(body.len().saturating_sub(4), "CCFB metric blocks")?;
        let report_timestamp = body.u32("CCFB report timestamp")?;
        let streams = read_streams(blocks, Reading::Number)
            .or_else(|error| read_streams(blocks, Reading::Inclusive).map_err(|_| error))?;
        Ok(Self { sender_ssrc, streams, report_timestamp })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        put32(out, self.sender_ssrc);
        for stream in &self.streams {
            let count = fit("number of metric blocks of a stream", stream.metrics.len(), 0, MOST)?;
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

fn read_streams(mut body: Reader<'_>, reading: Reading) -> Result<Vec<StreamMetrics>, Error> {
    let mut streams = Vec::new();
    while !body.is_empty() {
        let ssrc = body.u32("CCFB stream SSRC")?;
        let begin = body.u16("CCFB begin_seq")?;
        let offset = body.offset();
        let number = usize::from(body.u16("CCFB num_reports")?);
        let count = number + usize::from(reading == Reading::Inclusive);
        if count > MOST {
            return Err(Error::Invalid { what: "CCFB num_reports", offset, found: number as u64 });
        }
        let mut blocks = body.part(2 * count, "CCFB metric blocks of a stream")?;
        let mut metrics = Vec::with_capacity(count + 1);
        while !blocks.is_empty() {
            metrics.push(Metric::from_bits(blocks.u16("CCFB metric block")?));
        }
        if count % 2 != 0 {
            let padding = Metric::from_bits(body.u16("CCFB padding")?);
            if reading == Reading::Number && padding != Metric::NotReceived {
                metrics.push(padding);
            }
        }
        streams.push(StreamMetrics { ssrc, begin, metrics });
    }
    Ok(streams)
}
