//! Changes Parquet files by the fields of their footer and page headers, which are Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>). The length of the footer stays
//! right.

use crate::mutations::Rng;
use std::ops::Range;

const MAGIC: &[u8] = b"PAR1";
/// Structs in each other; a footer has five.
const DEPTH_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Type and distance of a field, or type and length of a list.
    Head,
    Varint,
    /// The bytes of a text.
    Text,
    /// A double, or a byte.
    Fixed,
    /// A whole struct, in a list or in a field.
    Struct,
}

/// Changes one part of a file; of others the bytes stay as they are.
pub fn change(input: &mut Vec<u8>, rng: &mut Rng) {
    let Some(footer) = footer(input) else { return };
    let pages = pages(&input[..footer.start]);
    match rng.below(8) {
        0 | 1 if !pages.is_empty() => {
            // the offsets in the footer stay right when a page keeps its length
            let (header, data) = &pages[rng.below(pages.len())];
            if rng.below(3) == 0 && !data.is_empty() {
                let at = data.start + rng.below(data.len().min(32));
                input[at] = rng.byte();
                return;
            }
            let parts = parts(&input[header.clone()]).unwrap_or_default();
            let numbers: Vec<_> = parts.iter().filter(|(part, _)| *part == Part::Varint).collect();
            if let Some((_, place)) = numbers.get(rng.below(numbers.len())) {
                let place = header.start + place.start..header.start + place.end;
                let value = rng.number(read(&input[place.clone()]));
                overwrite(&mut input[place], value);
            }
        }
        _ => {
            let mut thrift = input[footer.clone()].to_vec();
            change_struct(&mut thrift, rng);
            input.truncate(footer.start);
            input.extend(&thrift);
            input.extend((thrift.len() as u32).to_le_bytes());
            input.extend(MAGIC);
        }
    }
}

/// The footer's place in a file.
fn footer(file: &[u8]) -> Option<Range<usize>> {
    let (rest, magic) = file.split_last_chunk::<4>()?;
    let (rest, length) = rest.split_last_chunk::<4>()?;
    let begin = rest.len().checked_sub(u32::from_le_bytes(*length) as usize)?;
    (magic == MAGIC).then_some(begin..rest.len())
}

/// The headers and the data of all pages, which follow each other in the files that tidegate writes.
fn pages(file: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut pages, mut at) = (Vec::new(), MAGIC.len());
    while at < file.len() {
        let Some(parts) = parts(&file[at..]) else { break };
        // type, uncompressed size, compressed size (PageHeader of parquet.thrift)
        let mut numbers = parts.iter().filter(|(part, _)| *part == Part::Varint);
        let Some((_, size)) = numbers.nth(2) else { break };
        let size = (read(&file[at + size.start..at + size.end]) >> 1) as usize;
        let begin = at + parts.last().map_or(0, |(_, place)| place.end);
        let end = begin.saturating_add(size).min(file.len());
        pages.push((at..begin, begin..end));
        at = end;
    }
    pages
}

fn change_struct(thrift: &mut Vec<u8>, rng: &mut Rng) {
    let Some(parts) = parts(thrift).filter(|parts| !parts.is_empty()) else { return };
    let (part, place) = parts[rng.below(parts.len())].clone();
    let old = thrift[place.clone()].to_vec();
    let same: Vec<_> = parts.iter().filter(|(other, _)| *other == part).collect();
    let other = thrift[same[rng.below(same.len())].1.clone()].to_vec();
    let new = match part {
        _ if rng.below(4) == 0 => other,
        Part::Head => vec![rng.number(old[0].into()) as u8],
        Part::Varint => varint(rng.number(read(&old))),
        Part::Text | Part::Fixed => {
            let mut bytes = old;
            let at = rng.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.byte();
            }
            bytes
        }
        Part::Struct => match rng.below(2) {
            0 => Vec::new(),
            _ => [old.as_slice(), &old].concat(),
        },
    };
    thrift.splice(place, new);
}

/// The parts of the struct at the beginning of `bytes`, each with its place; the last one ends where the struct ends.
fn parts(bytes: &[u8]) -> Option<Vec<(Part, Range<usize>)>> {
    let mut reader = Reader { bytes, at: 0, parts: Vec::new() };
    reader.fields(0)?;
    let end = reader.at;
    reader.parts.push((Part::Struct, 0..end));
    Some(reader.parts)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    parts: Vec<(Part, Range<usize>)>,
}

impl Reader<'_> {
    fn take(&mut self, part: Part, count: usize) -> Option<()> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len())?;
        self.parts.push((part, self.at..end));
        self.at = end;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let length = self.bytes[self.at..].iter().position(|byte| byte & 0x80 == 0)? + 1;
        let begin = self.at;
        self.take(Part::Varint, length)?;
        Some(read(&self.bytes[begin..self.at]))
    }

    fn fields(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        loop {
            let head = *self.bytes.get(self.at)?;
            if head == 0 {
                // a stop belongs to its struct alone
                self.at += 1;
                return Some(());
            }
            self.take(Part::Head, 1)?;
            if head >> 4 == 0 {
                self.varint()?;
            }
            self.value(head & 15, depth, false)?;
        }
    }

    fn value(&mut self, kind: u8, depth: usize, in_list: bool) -> Option<()> {
        match kind {
            // of a list each truth value takes a byte, of a field none
            1 | 2 => {
                if in_list {
                    self.take(Part::Fixed, 1)
                } else {
                    Some(())
                }
            }
            3 => self.take(Part::Fixed, 1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(Part::Fixed, 8),
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.take(Part::Text, length)
            }
            9 | 10 => {
                let head = *self.bytes.get(self.at)?;
                self.take(Part::Head, 1)?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                (0..count).try_for_each(|_| self.value(head & 15, depth + 1, true))
            }
            12 => {
                let begin = self.at;
                self.fields(depth + 1)?;
                self.parts.push((Part::Struct, begin..self.at));
                Some(())
            }
            _ => None,
        }
    }
}

fn read(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 7 | u64::from(byte & 0x7f))
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// Puts as much of a number as fits in place of another one.
fn overwrite(bytes: &mut [u8], mut value: u64) {
    let last = bytes.len().saturating_sub(1);
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (value & 0x7f) as u8 | if index < last { 0x80 } else { 0 };
        value >>= 7;
    }
}
