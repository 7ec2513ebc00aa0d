//! Changes messages of protocol buffers by their fields, so that tags and lengths around a change fit.

use crate::mutations::Rng;

#[derive(Clone)]
enum Value {
    Number(u64),
    /// Four or eight bytes.
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
}

#[derive(Clone)]
struct Field {
    number: u64,
    value: Value,
}

/// Changes a field at some depth of a message; bytes that are no message get a byte changed.
pub fn change(input: &mut Vec<u8>, rng: &mut Rng) {
    match decode(input) {
        Some(mut fields) if !fields.is_empty() => {
            change_fields(&mut fields, rng);
            *input = encode(&fields);
        }
        _ => change_blob(input, rng),
    }
}

fn change_fields(fields: &mut Vec<Field>, rng: &mut Rng) {
    let (at, other) = (rng.below(fields.len()), rng.below(fields.len()));
    match rng.below(12) {
        0 => drop(fields.remove(at)),
        1 => fields.insert(other, fields[at].clone()),
        2 => fields.swap(at, other),
        3 => fields[at].number = fields[other].number,
        4 => fields[at].number = rng.number(fields[at].number).clamp(1, (1 << 29) - 1),
        5 => fields[at].value = fields[other].value.clone(),
        6 => {
            fields[at].value = match &fields[at].value {
                Value::Number(value) => Value::Fixed(value.to_le_bytes()[..[4, 8][rng.below(2)]].to_vec()),
                Value::Fixed(bytes) => Value::Bytes(bytes.clone()),
                Value::Bytes(bytes) => Value::Number(bytes.len() as u64),
            };
        }
        _ => match &mut fields[at].value {
            Value::Number(value) => *value = rng.number(*value),
            Value::Fixed(bytes) => {
                let place = rng.below(bytes.len());
                bytes[place] = rng.byte();
            }
            Value::Bytes(bytes) if rng.below(4) > 0 => change(bytes, rng),
            Value::Bytes(bytes) => change_blob(bytes, rng),
        },
    }
}

/// Changes packed values: bits, the two bytes with their widths, the end.
fn change_blob(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(bytes.len());
    match rng.below(6) {
        _ if bytes.is_empty() => bytes.extend((0..rng.below(9)).map(|_| rng.byte())),
        0 | 1 => bytes[at] ^= 1 << rng.below(8),
        2 => {
            let head = at.min(1);
            bytes[head] = rng.byte();
        }
        3 => bytes.truncate(at),
        4 => bytes.extend((0..=rng.below(8)).map(|_| rng.byte())),
        _ => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 0x40][rng.below(6)],
    }
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes)?;
        let mut take = |count: usize| {
            let (taken, rest) = bytes.split_at_checked(count)?;
            bytes = rest;
            Some(taken.to_vec())
        };
        let value = match tag & 7 {
            1 => Value::Fixed(take(8)?),
            5 => Value::Fixed(take(4)?),
            0 => Value::Number(take_varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
                let (taken, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Value::Bytes(taken.to_vec())
            }
            _ => return None,
        };
        fields.push(Field { number: tag >> 3, value });
    }
    Some(fields)
}

fn encode(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        let kind = match &field.value {
            Value::Number(_) => 0,
            Value::Fixed(bytes) if bytes.len() == 8 => 1,
            Value::Fixed(_) => 5,
            Value::Bytes(_) => 2,
        };
        put_varint(&mut out, field.number << 3 | kind);
        match &field.value {
            Value::Number(value) => put_varint(&mut out, *value),
            Value::Fixed(bytes) => out.extend(bytes),
            Value::Bytes(bytes) => {
                put_varint(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
        }
    }
    out
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for index in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).wrapping_shl(7 * index);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
