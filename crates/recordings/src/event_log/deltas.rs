//! Decodes the columns of a batch: differences of a fixed width after a first value (libwebrtc's
//! `logging/rtc_event_log/encoder/delta_encoding.cc`), or byte strings after their lengths (`blob_encoding.cc`).
//!
//! Bits go from the most significant one down. The first two bits are the encoding: 0 for unsigned differences of
//! 64-bit values, all present; 1 for parameters in the following fields. 6 bits follow with the width of a difference
//! minus one. Encoding 1 then has a bit for signed differences, a bit for values that may be missing, and 6 bits with
//! the width of a value minus one, at which it wraps. If values may be missing, a bit for each says whether it is
//! present. If the first value is missing, too, the first one present is a full varint.

use crate::problem::Problem;
use crate::protobuf::varint;

struct Bits<'a> {
    bytes: &'a [u8],
    /// Index of the next bit.
    position: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0u64;
        for _ in 0..count {
            let byte = *self.bytes.get(self.position / 8)?;
            value = value << 1 | u64::from(byte >> (7 - self.position % 8) & 1);
            self.position += 1;
        }
        Some(value)
    }

    /// Reads a varint, which need not be aligned to a byte.
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

/// Decodes the `count` values after `first` of a column that begins at `offset` of the file.
///
/// # Errors
/// If the bytes end too early or the header is invalid.
pub(super) fn numbers(
    bytes: &[u8],
    offset: usize,
    first: Option<u64>,
    count: usize,
) -> Result<Vec<Option<u64>>, Problem> {
    // libwebrtc omits a column if all values equal the first
    if bytes.is_empty() {
        return Ok(vec![first; count]);
    }
    let wrong = |message: String| Problem::new(offset, message);
    let short = || wrong(format!("a column of {count} values ends after {} bytes", bytes.len()));
    let mut bits = Bits { bytes, position: 0 };
    let encoding = bits.take(2).ok_or_else(short)?;
    let width = bits.take(6).ok_or_else(short)? as u32 + 1;
    let (signed, optional, wrap) = match encoding {
        0 => (false, false, 64),
        1 => {
            let flags = bits.take(2).ok_or_else(short)?;
            (flags & 2 != 0, flags & 1 != 0, bits.take(6).ok_or_else(short)? as u32 + 1)
        }
        encoding => return Err(wrong(format!("found encoding {encoding} of a column; expected 0 or 1"))),
    };
    if width > wrap {
        return Err(wrong(format!(
            "found differences of {width} bits between values of {wrap} bits; expected at most {wrap}"
        )));
    }
    let present = if optional {
        (0..count).map(|_| bits.take(1).map(|bit| bit == 1)).collect::<Option<Vec<_>>>().ok_or_else(short)?
    } else {
        vec![true; count]
    };
    let mask = u64::MAX >> (64 - wrap);
    let mut last = first;
    present
        .into_iter()
        .map(|present| {
            if !present {
                return Ok(None);
            }
            let value = match last {
                None => bits.varint().ok_or_else(short)?,
                Some(last) => {
                    let mut difference = bits.take(width).ok_or_else(short)?;
                    if signed && difference >> (width - 1) & 1 == 1 {
                        // two's complement of `width` bits
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

/// Decodes `count` byte strings: first all lengths, then all strings.
///
/// # Errors
/// If there are too few bytes, or too many.
pub(super) fn blobs(bytes: &[u8], offset: usize, count: usize) -> Result<Vec<&[u8]>, Problem> {
    let wrong = |position: usize, message: String| Problem::new(offset + position, message);
    let mut position = 0;
    let mut lengths = Vec::new();
    for _ in 0..count {
        let (length, varint_length) = bytes.get(position..).and_then(varint).ok_or_else(|| {
            wrong(position, format!("the data ends within the lengths of {count} byte strings"))
        })?;
        lengths.push(usize::try_from(length).unwrap_or(usize::MAX));
        position += varint_length;
    }
    let mut blobs = Vec::with_capacity(lengths.len());
    for length in lengths {
        let end = position.checked_add(length).filter(|&end| end <= bytes.len());
        let end = end.ok_or_else(|| {
            let remaining = bytes.len() - position;
            wrong(position, format!("a byte string takes {length} bytes, but {remaining} are left"))
        })?;
        blobs.push(&bytes[position..end]);
        position = end;
    }
    if position != bytes.len() {
        let excess = bytes.len() - position;
        return Err(wrong(position, format!("found {excess} more bytes after {count} byte strings")));
    }
    Ok(blobs)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tidegate_core::rng::Stream;

    #[derive(Default)]
    struct BitWriter {
        bytes: Vec<u8>,
        bits: usize,
    }

    impl BitWriter {
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

    /// Encodes a column with the given widths, which need not be optimal.
    fn encode(first: Option<u64>, values: &[Option<u64>], signed: bool, width: u32, wrap: u32) -> Vec<u8> {
        let optional = first.is_none() || values.iter().any(Option::is_none);
        let mut out = BitWriter::default();
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
                    let mut remaining = *value;
                    loop {
                        let more = remaining > 0x7f;
                        out.put(remaining & 0x7f | u64::from(more) << 7, 8);
                        remaining >>= 7;
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
    fn columns_survive_encoding_and_decoding() {
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
            let bytes = encode(first, &values, signed, width, wrap);
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
    fn invalid_columns_are_errors() {
        let error = |bytes: &[u8], count| numbers(bytes, 9, Some(0), count).unwrap_err().to_string();
        assert_eq!(error(&[0b0000_0010], 3), "byte 9: a column of 3 values ends after 1 bytes");
        assert_eq!(error(&[0xff, 0xff], 3), "byte 9: found encoding 3 of a column; expected 0 or 1");
        assert!(error(&[0b0111_1111, 0b0000_0000], 1).contains("differences of 64 bits between values of 1"));
        let blob = |bytes: &'static [u8], count| blobs(bytes, 9, count).map_err(|why| why.to_string());
        assert_eq!(blob(&[1, 2, b'a', b'b', b'c'], 2).unwrap(), [b"a".as_slice(), b"bc"]);
        assert_eq!(
            blob(&[1, 2, b'a', b'b'], 2).unwrap_err(),
            "byte 12: a byte string takes 2 bytes, but 1 are left"
        );
        assert_eq!(
            blob(&[1, b'a', b'b'], 1).unwrap_err(),
            "byte 11: found 1 more bytes after 1 byte strings"
        );
        assert_eq!(
            blob(&[1, 0x80], 3).unwrap_err(),
            "byte 10: the data ends within the lengths of 3 byte strings"
        );
    }
}
