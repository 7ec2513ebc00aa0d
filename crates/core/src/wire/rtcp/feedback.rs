//! Small feedback messages: generic NACK, PLI, SLI (RFC 4585 section 6) and FIR (RFC 5104 section 4.3.1).

use super::super::Error;
use super::super::error::fit;
use super::super::reader::Reader;
use super::{put16, put32};

/// Generic negative acknowledgement (RFC 4585 section 6.2.1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Nack {
    /// SSRC of the receiver that misses packets.
    pub sender_ssrc: u32,
    /// SSRC of the stream.
    pub media_ssrc: u32,
    /// Missing packets, at least one pair.
    pub pairs: Vec<NackPair>,
}

/// Missing packet, and the missing ones among the next sixteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NackPair {
    /// RTP sequence number of the first missing packet.
    pub pid: u16,
    /// Bit mask: with bit `i` (the lowest is 0), the packet `pid + i + 1` is missing.
    pub blp: u16,
}

impl Nack {
    /// Requests the packets `lost`, in ascending order modulo 2^16, with as few pairs as possible.
    #[must_use]
    pub fn new(sender_ssrc: u32, media_ssrc: u32, lost: &[u16]) -> Self {
        let mut pairs: Vec<NackPair> = Vec::new();
        for &sequence in lost {
            let ahead = pairs.last().map(|pair| sequence.wrapping_sub(pair.pid));
            match (ahead, pairs.last_mut()) {
                (Some(0), _) => {}
                (Some(ahead @ 1..=16), Some(pair)) => pair.blp |= 1 << (ahead - 1),
                _ => pairs.push(NackPair { pid: sequence, blp: 0 }),
            }
        }
        Self { sender_ssrc, media_ssrc, pairs }
    }

    /// Requested sequence numbers, in the order of the pairs.
    pub fn lost(&self) -> impl Iterator<Item = u16> + '_ {
        self.pairs.iter().flat_map(|pair| {
            let later = (1..=16).filter(|i| pair.blp >> (i - 1) & 1 != 0);
            core::iter::once(0).chain(later).map(|i| pair.pid.wrapping_add(i))
        })
    }

    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let (sender_ssrc, media_ssrc) = parse_ssrcs(body)?;
        let pairs =
            parse_list(body, |body| Ok(NackPair { pid: body.u16("NACK PID")?, blp: body.u16("NACK BLP")? }))?;
        Ok(Self { sender_ssrc, media_ssrc, pairs })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        fit("number of NACK pairs", self.pairs.len(), 1, usize::MAX)?;
        put32(out, self.sender_ssrc);
        put32(out, self.media_ssrc);
        for pair in &self.pairs {
            put16(out, pair.pid);
            put16(out, pair.blp);
        }
        Ok(())
    }
}

/// Picture loss indication (RFC 4585 section 6.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pli {
    /// SSRC of the receiver that lost a picture.
    pub sender_ssrc: u32,
    /// SSRC of the stream.
    pub media_ssrc: u32,
}

impl Pli {
    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let (sender_ssrc, media_ssrc) = parse_ssrcs(body)?;
        body.end("number of bytes after a PLI")?;
        Ok(Self { sender_ssrc, media_ssrc })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put32(out, self.sender_ssrc);
        put32(out, self.media_ssrc);
    }
}

/// Slice loss indication (RFC 4585 section 6.3.2).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sli {
    /// SSRC of the receiver that lost slices.
    pub sender_ssrc: u32,
    /// SSRC of the stream.
    pub media_ssrc: u32,
    /// Lost slices, at least one entry.
    pub entries: Vec<SliEntry>,
}

/// Run of lost macroblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SliEntry {
    /// Address of the first lost macroblock: 13 bits.
    pub first: u16,
    /// Number of lost macroblocks: 13 bits.
    pub number: u16,
    /// Six lowest bits of the picture's identifier.
    pub picture: u8,
}

impl Sli {
    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let (sender_ssrc, media_ssrc) = parse_ssrcs(body)?;
        let entries = parse_list(body, |body| {
            let word = body.u32("SLI entry")?;
            Ok(SliEntry {
                first: (word >> 19) as u16,
                number: (word >> 6 & 0x1fff) as u16,
                picture: (word & 0x3f) as u8,
            })
        })?;
        Ok(Self { sender_ssrc, media_ssrc, entries })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        fit("number of SLI entries", self.entries.len(), 1, usize::MAX)?;
        put32(out, self.sender_ssrc);
        put32(out, self.media_ssrc);
        for entry in &self.entries {
            let first = fit("first macroblock of an SLI entry", usize::from(entry.first), 0, 0x1fff)?;
            let number = fit("number of macroblocks of an SLI entry", usize::from(entry.number), 0, 0x1fff)?;
            let picture = fit("picture of an SLI entry", usize::from(entry.picture), 0, 0x3f)?;
            put32(out, (first << 19 | number << 6 | picture) as u32);
        }
        Ok(())
    }
}

/// Full intra request (RFC 5104 section 4.3.1).
///
/// The media SSRC is zero (section 4.3.1.2): encoded so, and ignored in decoding.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Fir {
    /// SSRC of the receiver that requests pictures.
    pub sender_ssrc: u32,
    /// Requested streams, at least one.
    pub entries: Vec<FirEntry>,
}

/// Stream that has to send an intra picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FirEntry {
    /// SSRC of the stream.
    pub ssrc: u32,
    /// Number of the request, modulo 256; a repetition has the same number.
    pub sequence: u8,
}

impl Fir {
    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let (sender_ssrc, _) = parse_ssrcs(body)?;
        let entries = parse_list(body, |body| {
            let ssrc = body.u32("FIR entry SSRC")?;
            let sequence = body.u8("FIR sequence number")?;
            body.u24("FIR reserved bits")?;
            Ok(FirEntry { ssrc, sequence })
        })?;
        Ok(Self { sender_ssrc, entries })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        fit("number of FIR entries", self.entries.len(), 1, usize::MAX)?;
        put32(out, self.sender_ssrc);
        put32(out, 0);
        for entry in &self.entries {
            put32(out, entry.ssrc);
            put32(out, u32::from(entry.sequence) << 24);
        }
        Ok(())
    }
}

fn parse_ssrcs(body: &mut Reader<'_>) -> Result<(u32, u32), Error> {
    Ok((body.u32("feedback sender SSRC")?, body.u32("feedback media SSRC")?))
}

/// Parses entries until the end, at least one.
fn parse_list<'a, T>(
    body: &mut Reader<'a>,
    mut parse: impl FnMut(&mut Reader<'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut entries = vec![parse(body)?];
    while !body.is_empty() {
        entries.push(parse(body)?);
    }
    Ok(entries)
}
