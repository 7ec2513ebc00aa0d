//! Reads the two formats of capture files: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng).
//!
//! Written by hand, because only a few fields are needed, and errors must have their offset in the file.

use crate::point::Nanos;
use crate::problem::{Problem, Problems};

/// A captured link-layer frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) at: Nanos,
    /// The link type (LINKTYPE_*, <https://www.tcpdump.org/linktypes.html>).
    pub(super) link: u32,
    /// Its bytes, as many as were captured.
    pub(super) bytes: &'a [u8],
    /// Its length on the link in bytes.
    pub(super) length: u32,
    /// Number of its interface among those of the file.
    pub(super) interface: u32,
    /// Whether the capturing host sent it, if the file says so.
    pub(super) leaves: Option<bool>,
}

/// Latest time that is accepted, in the year 2116: sums of times stay within 64 bits.
const MAX_TIME: i128 = 1 << 62;

/// Parts and numbers of a file.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) big_endian: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn part(&self, offset: usize, length: usize, name: &str) -> Result<&'a [u8], Problem> {
        offset.checked_add(length).and_then(|end| self.bytes.get(offset..end)).ok_or_else(|| {
            let remaining = self.bytes.len().saturating_sub(offset);
            Problem::new(
                offset.min(self.bytes.len()),
                format!("{name} takes {length} bytes, but {remaining} are left"),
            )
        })
    }

    pub(super) fn number(&self, offset: usize, length: usize, name: &str) -> Result<u32, Problem> {
        let part = self.part(offset, length, name)?;
        let add = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
        Ok(if self.big_endian { part.iter().fold(0, add) } else { part.iter().rev().fold(0, add) })
    }
}

/// Whether a file is a capture, by its first bytes.
pub(crate) fn is_capture(bytes: &[u8]) -> bool {
    matches!(bytes.first_chunk(), Some(&first) if SECTION_HEADER == first || magic(first).is_some())
}

/// Block type of a section header (pcapng), which is the same in both byte orders.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Whether a pcap file is big-endian, and the nanoseconds of a unit of its time stamps.
fn magic(first: [u8; 4]) -> Option<(bool, i64)> {
    match u32::from_be_bytes(first) {
        0xa1b2_c3d4 => Some((true, 1000)),
        0xa1b2_3c4d => Some((true, 1)),
        0xd4c3_b2a1 => Some((false, 1000)),
        0x4d3c_b2a1 => Some((false, 1)),
        _ => None,
    }
}

/// Calls `take` with each frame of a capture, in the order of the file, as far as the file can be read. Returns the number of
/// packets that were skipped between them.
///
/// # Errors
/// If it is no capture.
pub(super) fn frames<'a>(
    bytes: &'a [u8],
    problems: &mut Problems,
    take: &mut dyn FnMut(Frame<'a>),
) -> Result<usize, Problem> {
    let first = bytes.first_chunk().copied().unwrap_or_default();
    let result = if let Some((big_endian, unit)) = magic(first) {
        pcap(Reader { bytes, big_endian }, unit, take)
    } else if first == SECTION_HEADER {
        pcapng(bytes, problems, take)
    } else {
        return Err(Problem::new(0, "found no capture; expected pcap or pcapng"));
    };
    let skipped = problems.count;
    result.unwrap_or_else(|problem| problems.add(problem));
    Ok(skipped)
}

fn pcap<'a>(file: Reader<'a>, unit: i64, take: &mut dyn FnMut(Frame<'a>)) -> Result<(), Problem> {
    // the upper bits describe frame check sequences
    let link = file.number(20, 4, "the link type of a pcap file")? & 0x0fff_ffff;
    let mut offset = 24;
    while offset < file.bytes.len() {
        let header = |field, name| file.number(offset + field, 4, name);
        let (seconds, fraction) =
            (header(0, "the timestamp of a packet")?, header(4, "the timestamp of a packet")?);
        let captured = header(8, "the length of a packet")? as usize;
        let length = header(12, "the length of a packet")?;
        let bytes = file.part(offset + 16, captured, "a packet")?;
        let stamp = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * unit;
        take(Frame { at: stamp, link, bytes, length, interface: 0, leaves: None });
        offset += 16 + captured;
    }
    Ok(())
}

/// Fields of an interface description block.
#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// Units of its time stamps per second.
    units: i128,
    offset: i128,
}

/// Block types of packets (draft-ietf-opsawg-pcapng sections 4.3 and A).
const ENHANCED_PACKET: u32 = 6;
const OBSOLETE_PACKET: u32 = 2;

/// Largest number of interfaces; a forged file could describe one in every 20 bytes.
const MAX_INTERFACES: usize = 4096;

fn pcapng<'a>(
    bytes: &'a [u8],
    problems: &mut Problems,
    take: &mut dyn FnMut(Frame<'a>),
) -> Result<(), Problem> {
    let mut file = Reader { bytes, big_endian: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut offset = 0;
    while offset < bytes.len() {
        let kind = file.part(offset, 4, "the type of a block")?;
        if kind == SECTION_HEADER {
            file.big_endian = match file.part(offset + 8, 4, "the byte order of a section")? {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => {
                    return Err(Problem::new(
                        offset + 8,
                        "found no byte-order magic; expected 1a2b3c4d or 4d3c2b1a",
                    ));
                }
            };
            interfaces.clear();
        }
        let kind = file.number(offset, 4, "the type of a block")?;
        let length = file.number(offset + 4, 4, "the length of a block")? as usize;
        if length < 12 || !length.is_multiple_of(4) {
            let message = format!("found a block of {length} bytes; expected a multiple of 4, at least 12");
            return Err(Problem::new(offset + 4, message));
        }
        file.part(offset, length, "a block")?;
        let body = Reader { bytes: &bytes[..offset + length - 4], big_endian: file.big_endian };
        match kind {
            1 if interfaces.len() < MAX_INTERFACES => interfaces.push(interface(body, offset + 8)?),
            OBSOLETE_PACKET | ENHANCED_PACKET => {
                if let Err(problem) = packet(body, offset + 8, kind, &interfaces).map(&mut *take) {
                    problems.add(problem);
                }
            }
            3 => problems.add(Problem::new(
                offset,
                "found a packet without a timestamp (Simple Packet Block), which is left out",
            )),
            _ => (),
        }
        offset += length;
    }
    Ok(())
}

fn interface(block: Reader<'_>, offset: usize) -> Result<Interface, Problem> {
    let link = block.number(offset, 2, "the link type of an interface")?;
    let mut interface = Interface { link, units: 1_000_000, offset: 0 };
    let mut option = offset + 8;
    while option + 4 <= block.bytes.len() {
        let code = block.number(option, 2, "an option")?;
        let length = block.number(option + 2, 2, "an option")? as usize;
        let value = block.part(option + 4, length, "an option")?;
        match (code, value) {
            (0, _) => break,
            // if_tsresol: a power of ten, or of two with the upper bit
            (9, &[power]) if power & 0x80 != 0 => interface.units = 1i128 << (power & 0x7f).min(62),
            (9, &[power]) => interface.units = 10i128.pow(u32::from(power).min(18)),
            (14, value) if value.len() == 8 => {
                let (high, low) = if block.big_endian { (0, 4) } else { (4, 0) };
                let part = |byte| block.number(option + 4 + byte, 4, "an option");
                interface.offset = i128::from((u64::from(part(high)?) << 32 | u64::from(part(low)?)) as i64);
            }
            _ => (),
        }
        option += 4 + length.next_multiple_of(4);
    }
    Ok(interface)
}

/// The frame of a packet block. The obsolete kind has the interface in two bytes, and a count of drops in two more.
fn packet<'a>(
    block: Reader<'a>,
    offset: usize,
    kind: u32,
    interfaces: &[Interface],
) -> Result<Frame<'a>, Problem> {
    let header = |field| block.number(offset + field, 4, "a packet's header");
    let number =
        if kind == ENHANCED_PACKET { header(0)? } else { block.number(offset, 2, "a packet's header")? };
    let interface = interfaces.get(number as usize).ok_or_else(|| {
        let message = format!(
            "found a packet of interface {number}; {} interfaces are described before it",
            interfaces.len()
        );
        Problem::new(offset, message)
    })?;
    let ticks = i128::from(header(4)?) << 32 | i128::from(header(8)?);
    let stamp = ticks * 1_000_000_000 / interface.units + interface.offset * 1_000_000_000;
    if !(0..MAX_TIME).contains(&stamp) {
        return Err(Problem::new(offset + 4, "found a timestamp before 1970 or after 2116"));
    }
    let captured = header(12)? as usize;
    let bytes = block.part(offset + 20, captured, "a packet")?;
    let leaves = leaves(block, offset + 20 + captured.next_multiple_of(4));
    Ok(Frame {
        at: stamp as i64,
        link: interface.link,
        bytes,
        length: header(16)?,
        interface: number,
        leaves,
    })
}

/// Whether the capturing host sent a packet, by the option epb_flags (pack_flags) of its block: 1 is inbound, 2 outbound.
fn leaves(block: Reader<'_>, mut option: usize) -> Option<bool> {
    loop {
        let code = block.number(option, 2, "an option").ok()?;
        let length = block.number(option + 2, 2, "an option").ok()? as usize;
        match (code, length) {
            (0, _) => return None,
            (2, 4) => {
                return match block.number(option + 4, 4, "an option").ok()? & 3 {
                    1 => Some(false),
                    2 => Some(true),
                    _ => None,
                };
            }
            _ => option += 4 + length.next_multiple_of(4),
        }
    }
}
