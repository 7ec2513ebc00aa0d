//! Columns of a batch: a first value, and then differences of one width (libwebrtc's
//! `logging/rtc_event_log/encoder/delta_encoding.cc`), or byte strings behind their lengths (`blob_encoding.cc`).
//!
//! Bits go from the most significant one down. A header of two bits says how the rest is to be read: 0, differences
//! without sign of values of 64 bits, all there; 1, what the next fields say. Then 6 bits with the width of a difference
//! less one, and for encoding 1 a bit for signed differences, one for values that may be missing, and 6 with the width
//! of a value less one, at which it wraps. Where values may be missing there is a bit for each that says whether it is
//! there. Where even the first one is missing, the next that is there is a varint in full.

use crate::problem::Problem;
use crate::protobuf::varint;

struct Bits<'a> {
    bytes: &'a [u8],
    /// The next bit.
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0u64;
        for _ in 0..count {
            let byte = *self.bytes.get(self.at / 8)?;
            value = value << 1 | u64::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// A varint, whose bytes need not begin where bytes do.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for index in 0..10 {
            let byte = self.take(8)?;
            value |= (byte & 0x7f).wrapping_shl(7 * index);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

/// The `count` values behind `first`, of a column that begins at `offset` of the file.
///
/// # Errors
/// When the bytes end too early or say what cannot be.
pub(super) fn numbers(
    bytes: &[u8],
    offset: usize,
    first: Option<u64>,
    count: usize,
) -> Result<Vec<Option<u64>>, Problem> {
    // libwebrtc leaves a column out in which all is as in the first event
    if bytes.is_empty() {
        return Ok(vec![first; count]);
    }
    let wrong = |what: String| Problem::new(offset, what);
    let short = || wrong(format!("a column of {count} values ends after {} bytes", bytes.len()));
    let mut bits = Bits { bytes, at: 0 };
    let encoding = bits.take(2).ok_or_else(short)?;
    let width = bits.take(6).ok_or_else(short)? as u32 + 1;
    let (signed, optional, wrap) = match encoding {
        0 => (false, false, 64),
        1 => {
            let flags = bits.take(2).ok_or_else(short)?;
            (flags & 2 != 0, flags & 1 != 0, bits.take(6).ok_or_else(short)? as u32 + 1)
        }
        other => return Err(wrong(format!("found encoding {other} of a column; expected 0 or 1"))),
    };
    if width > wrap {
        return Err(wrong(format!(
            "found differences of {width} bits between values of {wrap}; expected fewer"
        )));
    }
    let there = if optional {
        (0..count).map(|_| bits.take(1).map(|bit| bit == 1)).collect::<Option<Vec<_>>>().ok_or_else(short)?
    } else {
        vec![true; count]
    };
    let mask = u64::MAX >> (64 - wrap);
    let mut last = first;
    there
        .into_iter()
        .map(|there| {
            if !there {
                return Ok(None);
            }
            let value = match last {
                None => bits.varint().ok_or_else(short)?,
                Some(last) => {
                    let mut difference = bits.take(width).ok_or_else(short)?;
                    if signed && difference >> (width - 1) & 1 == 1 {
                        // two's complement in as many bits
                        difference |= u64::MAX.checked_shl(width).unwrap_or(0);
                    }
                    last.wrapping_add(difference) & mask
                }
            };
            last = Some(value);
            Ok(last)
        })
        .collect()
}

/// `count` byte strings: all their lengths, and then all of them.
///
/// # Errors
/// When the bytes end too early, or too late.
pub(super) fn blobs(bytes: &[u8], offset: usize, count: usize) -> Result<Vec<&[u8]>, Problem> {
    let wrong = |at: usize, what: String| Problem::new(offset + at, what);
    let mut at = 0;
    let mut lengths = Vec::new();
    for _ in 0..count {
        let (length, taken) = bytes
            .get(at..)
            .and_then(varint)
            .ok_or_else(|| wrong(at, format!("{count} byte strings end in their lengths")))?;
        lengths.push(usize::try_from(length).unwrap_or(usize::MAX));
        at += taken;
    }
    let mut found = Vec::with_capacity(lengths.len());
    for length in lengths {
        let end = at.checked_add(length).filter(|&end| end <= bytes.len());
        let end = end.ok_or_else(|| {
            wrong(at, format!("a byte string takes {length} bytes, but {} are left", bytes.len() - at))
        })?;
        found.push(&bytes[at..end]);
        at = end;
    }
    if at != bytes.len() {
        return Err(wrong(at, format!("{} bytes too many behind {count} byte strings", bytes.len() - at)));
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tidegate_core::rng::Stream;

    #[derive(Default)]
    struct Out {
        bytes: Vec<u8>,
        bits: usize,
    }

    impl Out {
        fn put(&mut self, value: u64, width: u32) {
            for bit in (0..width).rev() {
                if self.bits.is_multiple_of(8) {
                    self.bytes.push(0);
                }
                *self.bytes.last_mut().unwrap() |= ((value >> bit & 1) as u8) << (7 - self.bits % 8);
                self.bits += 1;
            }
        }
    }

    /// Writes a column with the given widths, whether they are the best or not.
    fn written(first: Option<u64>, values: &[Option<u64>], signed: bool, width: u32, wrap: u32) -> Vec<u8> {
        let optional = first.is_none() || values.iter().any(Option::is_none);
        let mut out = Out::default();
        if signed || optional || wrap != 64 {
            out.put(1, 2);
            out.put(u64::from(width - 1), 6);
            out.put(u64::from(signed), 1);
            out.put(u64::from(optional), 1);
            out.put(u64::from(wrap - 1), 6);
        } else {
            out.put(0, 2);
            out.put(u64::from(width - 1), 6);
        }
        if optional {
            values.iter().for_each(|value| out.put(u64::from(value.is_some()), 1));
        }
        let mut last = first;
        for value in values.iter().flatten() {
            match last {
                None => {
                    let mut left = *value;
                    loop {
                        let more = left > 0x7f;
                        out.put(left & 0x7f | u64::from(more) << 7, 8);
                        left >>= 7;
                        if !more {
                            break;
                        }
                    }
                }
                Some(last) => out.put(value.wrapping_sub(last) & (u64::MAX >> (64 - width)), width),
            }
            last = Some(*value);
        }
        out.bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let mut rng = Stream::new(1, "deltas", "test");
        let mut draw = |below: u64| rng.next_u64() % below;
        for _ in 0..2000 {
            let wrap = 1 + draw(64) as u32;
            let signed = draw(2) == 1;
            let width = 1 + draw(u64::from(wrap)) as u32;
            let mask = u64::MAX >> (64 - wrap);
            let step_mask = u64::MAX >> (64 - width);
            let first = (draw(3) > 0).then(|| draw(u64::MAX) & mask);
            let mut last = first;
            let values: Vec<Option<u64>> = (0..1 + draw(20))
                .map(|_| {
                    if draw(4) == 0 {
                        return None;
                    }
                    let mut step = draw(u64::MAX) & step_mask;
                    if signed && step >> (width - 1) & 1 == 1 {
                        step |= !step_mask;
                    }
                    let next = last.map_or(step & mask, |last| last.wrapping_add(step) & mask);
                    last = Some(next);
                    last
                })
                .collect();
            let bytes = written(first, &values, signed, width, wrap);
            assert_eq!(numbers(&bytes, 0, first, values.len()).unwrap(), values);
        }
    }

    #[test]
    fn a_column_by_hand() {
        // encoding 0, width 3: 0b00_000010, then 1, 0, 7
        assert_eq!(
            numbers(&[0b0000_0010, 0b0010_0011, 0b1000_0000], 0, Some(10), 3).unwrap(),
            [Some(11), Some(11), Some(18)]
        );
        // encoding 1, width 2, signed, all there, values of 16 bits: -1 wraps
        assert_eq!(
            numbers(&[0b0100_0001, 0b1000_1111, 0b1101_0000], 0, Some(0), 2).unwrap(),
            [Some(0xffff), Some(0)]
        );
        assert_eq!(numbers(&[], 0, Some(5), 2).unwrap(), [Some(5), Some(5)]);
        assert_eq!(numbers(&[], 0, None, 1).unwrap(), [None]);
    }

    #[test]
    fn columns_that_cannot_be_are_told() {
        let said = |bytes: &[u8], count| numbers(bytes, 9, Some(0), count).unwrap_err().to_string();
        assert_eq!(said(&[0b0000_0010], 3), "byte 9: a column of 3 values ends after 1 bytes");
        assert_eq!(said(&[0xff, 0xff], 3), "byte 9: found encoding 3 of a column; expected 0 or 1");
        assert!(said(&[0b0111_1111, 0b0000_0000], 1).contains("differences of 64 bits between values of 1"));
        let blob = |bytes: &'static [u8], count| blobs(bytes, 9, count).map_err(|why| why.to_string());
        assert_eq!(blob(&[1, 2, b'a', b'b', b'c'], 2).unwrap(), [b"a".as_slice(), b"bc"]);
        assert_eq!(
            blob(&[1, 2, b'a', b'b'], 2).unwrap_err(),
            "byte 12: a byte string takes 2 bytes, but 1 are left"
        );
        assert_eq!(blob(&[1, b'a', b'b'], 1).unwrap_err(), "byte 11: 1 bytes too many behind 1 byte strings");
        assert_eq!(blob(&[1, 0x80], 3).unwrap_err(), "byte 10: 3 byte strings end in their lengths");
    }
}
