//! TCP headers (RFC 9293 section 3.1) with the options maximum segment size, window scale (RFC 7323) and selective
//! acknowledgements (RFC 2018).

use super::Error;
use super::error::fit;
use super::ip::IP_HEADER;
use super::reader::Reader;
use crate::datagram::{Opening, SackBlocks, TcpBody};

/// Length of a header without options, bytes.
pub const HEADER: usize = 20;
/// Length of IP and TCP headers without options, bytes.
pub const HEADERS: u32 = (IP_HEADER + HEADER) as u32;
/// Position of the checksum.
pub const CHECKSUM: usize = 16;
/// Largest shift of a window (RFC 7323 section 2.3).
pub const MOST_SCALE: u8 = 14;

// kinds of options (RFC 9293 section 3.2, RFC 7323 section 2.2, RFC 2018 sections 2 and 3)
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Options of a SYN.
    pub opening: Opening,
    /// Blocks of selective acknowledgement; unused ones are zeros.
    pub sack: SackBlocks,
}

impl Options {
    /// Encoded length in full words, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let Opening { segment, scale, sack } = self.opening;
        let blocks = self.blocks();
        4 * (usize::from(segment.is_some()) + usize::from(scale.is_some()) + usize::from(sack))
            + if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }

    /// Whether there is no option.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn blocks(&self) -> usize {
        self.sack.iter().rposition(|&block| block != (0, 0)).map_or(0, |last| last + 1)
    }

    /// Appends the options; each is padded to full words in front.
    fn put(&self, out: &mut Vec<u8>) {
        let Opening { segment, scale, sack } = self.opening;
        if let Some(segment) = segment {
            out.extend([SEGMENT_SIZE, 4]);
            out.extend(segment.to_be_bytes());
        }
        if let Some(scale) = scale {
            out.extend([NO_OPERATION, WINDOW_SCALE, 3, scale]);
        }
        if sack {
            out.extend([NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
        let blocks = self.blocks();
        if blocks > 0 {
            out.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks as u8]);
            for (begin, end) in &self.sack[..blocks] {
                out.extend(begin.to_be_bytes());
                out.extend(end.to_be_bytes());
            }
        }
    }

    /// Parses options. Unknown ones are skipped (RFC 9293 section 3.2, MUST-6), as are those of a SYN in other segments (RFC
    /// 7323 section 2.2).
    fn parse(mut bytes: Reader<'_>, syn: bool) -> Result<Self, Error> {
        let mut options = Self::default();
        while !bytes.is_empty() {
            let kind = bytes.u8("TCP option")?;
            match kind {
                END => break,
                NO_OPERATION => continue,
                _ => {}
            }
            let offset = bytes.offset();
            let length = bytes.u8("TCP option length")?;
            let invalid_length = Error::Invalid { field: "TCP option length", offset, value: length.into() };
            let mut data =
                bytes.part(usize::from(length.checked_sub(2).ok_or(invalid_length)?), "TCP option")?;
            match (kind, length) {
                (SEGMENT_SIZE, 4) if syn => {
                    options.opening.segment = Some(data.u16("maximum segment size")?);
                }
                (WINDOW_SCALE, 3) if syn => {
                    // RFC 7323 section 2.3: more than 14 counts as 14
                    options.opening.scale = Some(data.u8("window scale")?.min(MOST_SCALE));
                }
                (SACK_PERMITTED, 2) if syn => options.opening.sack = true,
                (SACK, 10 | 18 | 26 | 34) if !syn => {
                    for block in &mut options.sack {
                        if !data.is_empty() {
                            *block = (data.u32("SACK block")?, data.u32("SACK block")?);
                        }
                    }
                }
                (SEGMENT_SIZE..=SACK, _)
                    if !matches!((kind, length), (2, 4) | (3, 3) | (4, 2) | (5, 10 | 18 | 26 | 34)) =>
                {
                    return Err(invalid_length);
                }
                _ => {}
            }
        }
        Ok(options)
    }
}

/// Appends the header of a segment; the checksum is zero and has to be set later. The options are padded with zeros to
/// `room` bytes, so that the packet has its size.
///
/// # Errors
/// Fails if the options do not fit the room, or the room does not fit the header; `out` is then unchanged.
pub fn put(
    body: &TcpBody,
    ports: (u16, u16),
    options: &Options,
    room: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    fit("TCP options size in bytes", options.len(), 0, room)?;
    fit("length of the TCP options in 32-bit words", room / 4, 0, 10)?;
    fit("length of the TCP options, which must be a multiple of 4, modulo 4", room % 4, 0, 0)?;
    if let Some(scale) = options.opening.scale {
        fit("window scale", usize::from(scale), 0, usize::from(MOST_SCALE))?;
    }
    let end = out.len() + HEADER + room;
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(body.sequence.to_be_bytes());
    out.extend(body.ack.to_be_bytes());
    out.extend([(((HEADER + room) / 4) << 4) as u8, body.flags]);
    out.extend(body.window.to_be_bytes());
    // checksum and urgent pointer
    out.extend([0; 4]);
    options.put(out);
    out.resize(end, END);
    Ok(())
}

/// Parses the header of `segment`, the payload of an IP packet: ports, header fields, and options.
///
/// # Errors
/// Fails if the segment is malformed.
pub fn decode(segment: &[u8]) -> Result<((u16, u16), TcpBody, Options), Error> {
    let mut reader = Reader::with_offset(segment, IP_HEADER);
    let ports = (reader.u16("TCP source port")?, reader.u16("TCP destination port")?);
    let (sequence, ack) = (reader.u32("TCP sequence number")?, reader.u32("TCP acknowledgment number")?);
    let offset = reader.offset();
    let words = reader.u8("TCP data offset")? >> 4;
    let flags = reader.u8("TCP flags")?;
    let window = reader.u16("TCP window")?;
    reader.u32("TCP checksum and urgent pointer")?;
    let Some(room) = (4 * usize::from(words)).checked_sub(HEADER) else {
        return Err(Error::Invalid { field: "TCP data offset", offset, value: words.into() });
    };
    let options = reader.part(room, "TCP options")?;
    let options = Options::parse(options, flags & TcpBody::SYN != 0)?;
    let length = reader.len() as u16;
    Ok((ports, TcpBody { sequence, ack, window, length, flags }, options))
}
