//! Sender and receiver reports (RFC 3550 section 6.4).

use super::super::error::fit;
use super::super::reader::Reader;
use super::super::{Error, ntp};
use super::put32;
use crate::units::Span;

/// Sender report (RFC 3550 section 6.4.1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SenderReport {
    /// SSRC of the sender.
    pub ssrc: u32,
    /// Departure of the report, as an NTP timestamp in 2^-32 s.
    pub ntp: u64,
    /// Same time in units of the RTP timestamp.
    pub rtp_timestamp: u32,
    /// RTP packets sent since the start.
    pub packet_count: u32,
    /// RTP payload bytes sent since the start, without headers and padding.
    pub octet_count: u32,
    /// Reports on received streams, at most 31.
    pub blocks: Vec<ReportBlock>,
    /// Profile-specific extension, a multiple of four bytes.
    pub extension: Vec<u8>,
}

/// Receiver report (RFC 3550 section 6.4.2).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReceiverReport {
    /// SSRC of the receiver.
    pub ssrc: u32,
    /// Reports on received streams, at most 31.
    pub blocks: Vec<ReportBlock>,
    /// Profile-specific extension, a multiple of four bytes.
    pub extension: Vec<u8>,
}

/// Report on a received source (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReportBlock {
    /// SSRC of the source.
    pub ssrc: u32,
    /// Fraction lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start; negative with duplicates. Clamped to signed 24 bits in encoding (RFC 3550 appendix
    /// A.3).
    pub cumulative_lost: i32,
    /// Highest sequence number received, with the count of wraps in the upper 16 bits.
    pub highest_sequence: u32,
    /// Interarrival jitter in timestamp units.
    pub jitter: u32,
    /// LSR: middle 32 bits of the NTP timestamp of the last sender report, in 2^-16 s; zero for none.
    pub last_sr: u32,
    /// DLSR: time since the arrival of that report, in 2^-16 s.
    pub delay_since_last_sr: u32,
}

impl SenderReport {
    /// Middle 32 bits of the NTP timestamp, which a receiver returns as [`ReportBlock::last_sr`].
    #[must_use]
    pub const fn middle(&self) -> u32 {
        ntp::middle(self.ntp)
    }

    pub(super) fn parse(count: u8, body: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            ssrc: body.u32("SR sender SSRC")?,
            ntp: body.u64("SR NTP timestamp")?,
            rtp_timestamp: body.u32("SR RTP timestamp")?,
            packet_count: body.u32("SR packet count")?,
            octet_count: body.u32("SR octet count")?,
            blocks: parse_blocks(count, body)?,
            extension: parse_extension(body)?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        put32(out, self.ssrc);
        out.extend_from_slice(&self.ntp.to_be_bytes());
        put32(out, self.rtp_timestamp);
        put32(out, self.packet_count);
        put32(out, self.octet_count);
        write_tail(&self.blocks, &self.extension, out)
    }
}

impl ReceiverReport {
    pub(super) fn parse(count: u8, body: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            ssrc: body.u32("RR sender SSRC")?,
            blocks: parse_blocks(count, body)?,
            extension: parse_extension(body)?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        put32(out, self.ssrc);
        write_tail(&self.blocks, &self.extension, out)
    }
}

impl ReportBlock {
    /// Round-trip time from this block; `now` is the middle 32 bits of the NTP timestamp of its arrival. See
    /// [`ntp::round_trip`].
    #[must_use]
    pub fn round_trip(&self, now: u32) -> Option<Span> {
        ntp::round_trip(now, self.last_sr, self.delay_since_last_sr)
    }
}

fn parse_blocks(count: u8, body: &mut Reader<'_>) -> Result<Vec<ReportBlock>, Error> {
    (0..count)
        .map(|_| {
            let mut block = body.part(24, "report block")?;
            Ok(ReportBlock {
                ssrc: block.u32("report block SSRC")?,
                fraction_lost: block.u8("fraction lost")?,
                // the shifts extend the sign of the 24 bits
                cumulative_lost: (block.u24("cumulative lost")? << 8) as i32 >> 8,
                highest_sequence: block.u32("extended highest sequence number")?,
                jitter: block.u32("interarrival jitter")?,
                last_sr: block.u32("LSR")?,
                delay_since_last_sr: block.u32("DLSR")?,
            })
        })
        .collect()
}

fn parse_extension(body: &mut Reader<'_>) -> Result<Vec<u8>, Error> {
    let length = body.len();
    if !length.is_multiple_of(4) {
        let field = "report extension size in bytes";
        return Err(Error::Invalid { field, offset: body.offset(), value: length as u64 });
    }
    Ok(body.take(length, "report extension")?.to_vec())
}

fn write_tail(blocks: &[ReportBlock], extension: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    for block in blocks {
        put32(out, block.ssrc);
        let lost = block.cumulative_lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
        put32(out, u32::from(block.fraction_lost) << 24 | lost);
        put32(out, block.highest_sequence);
        put32(out, block.jitter);
        put32(out, block.last_sr);
        put32(out, block.delay_since_last_sr);
    }
    fit("report extension size modulo 4", extension.len() % 4, 0, 0)?;
    out.extend_from_slice(extension);
    Ok(())
}
