//! TCP headers (RFC 9293 section 3.1) with the options maximum segment size, window scale and timestamps (RFC 7323), and
//! selective acknowledgements (RFC 2018).

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

// kinds of options (RFC 9293 section 3.2, RFC 7323 sections 2.2 and 3.2, RFC 2018 sections 2 and 3)
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Length of the option of [`Timestamps`] in full words, bytes.
const STAMPED: usize = 12;

/// Length of IP and TCP headers of a segment with data, with timestamps or without, bytes.
#[must_use]
pub const fn data_headers(stamped: bool) -> u32 {
    if stamped { HEADERS + STAMPED as u32 } else { HEADERS }
}

/// Timestamps of a segment (RFC 7323 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the clock of the end that sends it.
    pub value: u32,
    /// TSecr: a value of the other end.
    pub echo: u32,
}

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Options of a SYN.
    pub opening: Opening,
    /// Timestamps, if both ends use them.
    pub timestamps: Option<Timestamps>,
    /// Blocks of selective acknowledgement, most recent first; unused ones are zeros.
    pub sack: SackBlocks,
}

impl Options {
    /// Encoded length in full words, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let Opening { segment, scale, sack } = self.opening;
        let blocks = self.blocks();
        4 * (usize::from(segment.is_some()) + usize::from(scale.is_some()) + usize::from(sack))
            + if self.timestamps.is_some() { STAMPED } else { 0 }
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

    /// Calls `visit` with the kind and the data of each option.
    fn each(&self, mut visit: impl FnMut(u8, &[u8])) {
        let Opening { segment, scale, sack } = self.opening;
        if let Some(segment) = segment {
            visit(SEGMENT_SIZE, &segment.to_be_bytes());
        }
        if let Some(scale) = scale {
            visit(WINDOW_SCALE, &[scale]);
        }
        if sack {
            visit(SACK_PERMITTED, &[]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            visit(TIMESTAMPS, [value, echo].map(u32::to_be_bytes).as_flattened());
        }
        let blocks = &self.sack[..self.blocks()];
        if !blocks.is_empty() {
            let numbers = self.sack.map(|(begin, end)| [begin.to_be_bytes(), end.to_be_bytes()]);
            visit(SACK, &numbers.as_flattened().as_flattened()[..8 * blocks.len()]);
        }
    }

    /// Length of the options without padding, bytes.
    fn bare_len(&self) -> usize {
        let mut length = 0;
        self.each(|_, data| length += 2 + data.len());
        length
    }

    /// Appends the options, each padded to full words in front if there is `room` for that.
    fn put(&self, room: usize, out: &mut Vec<u8>) {
        let is_padded = self.len() <= room;
        self.each(|kind, data| {
            let length = 2 + data.len();
            let padding = if is_padded { length.next_multiple_of(4) - length } else { 0 };
            out.extend(std::iter::repeat_n(NO_OPERATION, padding));
            out.extend([kind, length as u8]);
            out.extend(data);
        });
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
                (TIMESTAMPS, 10) => {
                    let (value, echo) = (data.u32("TCP timestamp")?, data.u32("TCP timestamp echo")?);
                    options.timestamps = Some(Timestamps { value, echo });
                }
                (SEGMENT_SIZE..=SACK | TIMESTAMPS, _)
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
    fit("TCP options size in bytes", options.bare_len(), 0, room)?;
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
    options.put(room, out);
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
