//! The two formats of capture files: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng).
//!
//! By hand, because of each only the few fields of a packet are wanted, with their place in the file for errors.

use crate::point::Nanos;
use crate::problem::{Problem, Problems};

/// A packet as it stands in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) at: Nanos,
    /// The link type (LINKTYPE_*, <https://www.tcpdump.org/linktypes.html>).
    pub(super) link: u32,
    /// Its bytes on the link; as many as were kept.
    pub(super) bytes: &'a [u8],
    /// How many it had.
    pub(super) length: u32,
}

/// Stamps beyond this (the year 2116) are no times; sums of them stay within 64 bits.
const LATEST: i128 = 1 << 62;

#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Reader<'a> {
    fn part(&self, at: usize, length: usize, what: &str) -> Result<&'a [u8], Problem> {
        at.checked_add(length).and_then(|end| self.bytes.get(at..end)).ok_or_else(|| {
            let left = self.bytes.len().saturating_sub(at);
            Problem::new(
                at.min(self.bytes.len()),
                format!("{what} takes {length} bytes, but {left} are left"),
            )
        })
    }

    fn number(&self, at: usize, length: usize, what: &str) -> Result<u32, Problem> {
        let part = self.part(at, length, what)?;
        let add = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
        Ok(if self.big { part.iter().fold(0, add) } else { part.iter().rev().fold(0, add) })
    }
}

/// Whether a file is a capture, by its first bytes.
pub(crate) fn is_capture(bytes: &[u8]) -> bool {
    matches!(bytes.first_chunk(), Some(&first) if SECTION == first || magic(first).is_some())
}

/// The type of a section header block: the same in both byte orders.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// The byte order of a pcap file, and nanoseconds of a unit of its stamps.
fn magic(first: [u8; 4]) -> Option<(bool, i64)> {
    match u32::from_be_bytes(first) {
        0xa1b2_c3d4 => Some((true, 1000)),
        0xa1b2_3c4d => Some((true, 1)),
        0xd4c3_b2a1 => Some((false, 1000)),
        0x4d3c_b2a1 => Some((false, 1)),
        _ => None,
    }
}

/// Hands out the packets of a capture, in the order of the file, up to where it can be read.
///
/// # Errors
/// When it is no capture.
pub(super) fn frames<'a>(
    bytes: &'a [u8],
    problems: &mut Problems,
    take: &mut dyn FnMut(Frame<'a>),
) -> Result<(), Problem> {
    let first = bytes.first_chunk().copied().unwrap_or_default();
    let read = if let Some((big, unit)) = magic(first) {
        pcap(Reader { bytes, big }, unit, take)
    } else if first == SECTION {
        pcapng(bytes, problems, take)
    } else {
        return Err(Problem::new(0, "found no capture; expected pcap or pcapng"));
    };
    read.unwrap_or_else(|problem| problems.add(problem));
    Ok(())
}

fn pcap<'a>(file: Reader<'a>, unit: i64, take: &mut dyn FnMut(Frame<'a>)) -> Result<(), Problem> {
    // the upper bits tell of frame check sequences
    let link = file.number(20, 4, "the link type of a pcap file")? & 0x0fff_ffff;
    let mut at = 24;
    while at < file.bytes.len() {
        let header = |offset, what| file.number(at + offset, 4, what);
        let (seconds, fraction) = (header(0, "the stamp of a packet")?, header(4, "the stamp of a packet")?);
        let kept = header(8, "the length of a packet")? as usize;
        let length = header(12, "the length of a packet")?;
        let bytes = file.part(at + 16, kept, "a packet")?;
        let stamp = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * unit;
        take(Frame { at: stamp, link, bytes, length });
        at += 16 + kept;
    }
    Ok(())
}

/// What an interface's block says.
#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// Units of its stamps in a second.
    units: i128,
    offset: i128,
}

/// Interfaces at most: each takes 20 bytes of the file, and nobody has as many.
const MOST_INTERFACES: usize = 4096;

fn pcapng<'a>(
    bytes: &'a [u8],
    problems: &mut Problems,
    take: &mut dyn FnMut(Frame<'a>),
) -> Result<(), Problem> {
    let mut file = Reader { bytes, big: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let kind = file.part(at, 4, "the type of a block")?;
        if kind == SECTION {
            file.big = match file.part(at + 8, 4, "the byte order of a section")? {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return Err(Problem::new(at + 8, "found no byte order; expected 1a2b3c4d or 4d3c2b1a")),
            };
            interfaces.clear();
        }
        let kind = file.number(at, 4, "the type of a block")?;
        let length = file.number(at + 4, 4, "the length of a block")? as usize;
        if length < 12 || !length.is_multiple_of(4) {
            let what = format!("found a block of {length} bytes; expected a multiple of 4 from 12 on");
            return Err(Problem::new(at + 4, what));
        }
        file.part(at, length, "a block")?;
        let body = Reader { bytes: &bytes[..at + length - 4], big: file.big };
        match kind {
            1 if interfaces.len() < MOST_INTERFACES => interfaces.push(interface(body, at + 8)?),
            6 => {
                if let Err(problem) = packet(body, at + 8, &interfaces).map(&mut *take) {
                    problems.add(problem);
                }
            }
            3 => problems.add(Problem::new(at, "found a packet without a stamp (simple packet block)")),
            _ => (),
        }
        at += length;
    }
    Ok(())
}

fn interface(block: Reader<'_>, at: usize) -> Result<Interface, Problem> {
    let link = block.number(at, 2, "the link type of an interface")?;
    let mut found = Interface { link, units: 1_000_000, offset: 0 };
    let mut option = at + 8;
    while option + 4 <= block.bytes.len() {
        let code = block.number(option, 2, "an option")?;
        let length = block.number(option + 2, 2, "an option")? as usize;
        let value = block.part(option + 4, length, "an option")?;
        match (code, value) {
            (0, _) => break,
            // if_tsresol: a power of ten, or of two with the upper bit
            (9, &[power]) if power & 0x80 != 0 => found.units = 1i128 << (power & 0x7f).min(62),
            (9, &[power]) => found.units = 10i128.pow(u32::from(power).min(18)),
            (14, value) if value.len() == 8 => {
                let (high, low) = if block.big { (0, 4) } else { (4, 0) };
                let part = |offset| block.number(option + 4 + offset, 4, "an option");
                found.offset = i128::from((u64::from(part(high)?) << 32 | u64::from(part(low)?)) as i64);
            }
            _ => (),
        }
        option += 4 + length.next_multiple_of(4);
    }
    Ok(found)
}

fn packet<'a>(block: Reader<'a>, at: usize, interfaces: &[Interface]) -> Result<Frame<'a>, Problem> {
    let header = |offset| block.number(at + offset, 4, "a packet's header");
    let number = header(0)?;
    let interface = interfaces.get(number as usize).ok_or_else(|| {
        let what = format!("found a packet of interface {number}; there are {} before it", interfaces.len());
        Problem::new(at, what)
    })?;
    let ticks = i128::from(header(4)?) << 32 | i128::from(header(8)?);
    let stamp = ticks * 1_000_000_000 / interface.units + interface.offset * 1_000_000_000;
    if !(0..LATEST).contains(&stamp) {
        return Err(Problem::new(at + 4, "found a stamp beyond the year 2116, or before 1970"));
    }
    let bytes = block.part(at + 20, header(12)? as usize, "a packet")?;
    Ok(Frame { at: stamp as i64, link: interface.link, bytes, length: header(16)? })
}
