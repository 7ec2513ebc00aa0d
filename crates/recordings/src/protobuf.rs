//! Decodes the wire format of protocol buffers (<https://protobuf.dev/programming-guides/encoding/>), as far as event
//! logs use it (`docs/design/live.md`, D115: no code generator).

use crate::problem::Problem;

/// Value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value<'a> {
    /// Wire type 0, and the fixed widths 1 and 5.
    Number(u64),
    /// Wire type 2: its offset in the file, and its bytes.
    Bytes(usize, &'a [u8]),
}

/// A field of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    /// Offset of its tag in the file.
    pub(crate) offset: usize,
    pub(crate) value: Value<'a>,
}

/// The fields of a message, one after the other; ends at the first problem.
pub(crate) struct Fields<'a> {
    remaining: &'a [u8],
    offset: usize,
    broken: bool,
}

impl<'a> Fields<'a> {
    /// The fields of a message that begins at `offset` of the file.
    pub(crate) fn of(bytes: &'a [u8], offset: usize) -> Self {
        Self { remaining: bytes, offset, broken: false }
    }

    fn take(&mut self, count: usize, name: &str) -> Result<&'a [u8], Problem> {
        let Some((taken, remaining)) = self.remaining.split_at_checked(count) else {
            let length = self.remaining.len();
            let message = format!("{name} takes {count} bytes, but {length} are left");
            return Err(Problem::new(self.offset, message));
        };
        self.remaining = remaining;
        self.offset += count;
        Ok(taken)
    }

    fn varint(&mut self, name: &str) -> Result<u64, Problem> {
        let begin = self.offset;
        let (value, length) = varint(self.remaining).ok_or_else(|| {
            let why = if self.remaining.len() < MAX_VARINT {
                "the data ends within it"
            } else {
                "it does not end after ten bytes"
            };
            Problem::new(begin, format!("{name} is not a whole number: {why}"))
        })?;
        self.take(length, name)?;
        Ok(value)
    }

    fn decode(&mut self) -> Result<Field<'a>, Problem> {
        let offset = self.offset;
        let tag = self.varint("the tag of a field")?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0 && number < 1 << 29);
        let Some(number) = number else {
            return Err(Problem::new(offset, format!("found field {}; expected 1 to 536870911", tag >> 3)));
        };
        let name = format!("field {number}");
        let value = match tag & 7 {
            0 => Value::Number(self.varint(&name)?),
            1 => Value::Number(little_endian(self.take(8, &name)?)),
            2 => {
                let length = self.varint(&name)?;
                let begin = self.offset;
                // a length that does not fit is more than the file has
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                Value::Bytes(begin, self.take(length, &name)?)
            }
            5 => Value::Number(little_endian(self.take(4, &name)?)),
            kind => {
                return Err(Problem::new(
                    offset,
                    format!("found wire type {kind} of {name}; expected 0, 1, 2 or 5"),
                ));
            }
        };
        Ok(Field { number, offset, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining.is_empty() || self.broken {
            return None;
        }
        let field = self.decode();
        self.broken = field.is_err();
        Some(field)
    }
}

/// Length of the longest varint in bytes: 64 bits, seven in a byte.
const MAX_VARINT: usize = 10;

/// The varint at the beginning of `bytes`, and its length in bytes.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        value |= u64::from(byte & 0x7f).wrapping_shl(7 * index as u32);
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
    }
    None
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Vec<Result<Field<'_>, Problem>> {
        Fields::of(bytes, 100).collect()
    }

    #[test]
    fn each_wire_type_by_hand() {
        let bytes = [0x08, 0xac, 0x02, 0x15, 1, 0, 0, 0x80, 0x1a, 2, 7, 8, 0x21, 1, 0, 0, 0, 0, 0, 0, 0];
        let decoded: Vec<_> = fields(&bytes).into_iter().map(|field| field.unwrap()).collect();
        let numbers: Vec<_> = decoded.iter().map(|field| (field.number, field.offset)).collect();
        assert_eq!(numbers, [(1, 100), (2, 103), (3, 108), (4, 112)]);
        assert_eq!(decoded[0].value, Value::Number(300));
        assert_eq!(decoded[1].value, Value::Number(0x8000_0001));
        assert_eq!(decoded[2].value, Value::Bytes(110, &[7, 8]));
        assert_eq!(decoded[3].value, Value::Number(1));
    }

    #[test]
    fn a_cut_or_wrong_field_is_reported_once_with_its_offset() {
        let error = |bytes: &[u8]| {
            let decoded = fields(bytes);
            assert_eq!(decoded.iter().filter(|field| field.is_err()).count(), 1);
            decoded.into_iter().next_back().unwrap().unwrap_err().to_string()
        };
        assert_eq!(error(&[0x08, 1, 0x1a, 5, 1]), "byte 104: field 3 takes 5 bytes, but 1 are left");
        assert_eq!(error(&[0x08, 0x80]), "byte 101: field 1 is not a whole number: the data ends within it");
        assert_eq!(
            error(&[0x08, 1, 0x0b, 0]),
            "byte 102: found wire type 3 of field 1; expected 0, 1, 2 or 5"
        );
        assert_eq!(error(&[0x00, 1]), "byte 100: found field 0; expected 1 to 536870911");
        assert!(error(&[0xff; 12]).ends_with("it does not end after ten bytes"));
    }
}
