//! Decodes one message of a log: a batch of events of one kind.

use super::{Millis, deltas};
use crate::problem::Problem;
use crate::protobuf::{Field, Fields, Value};

/// Largest number of events per byte of a batch. An event takes at least the bits in which it differs from the previous
/// one; a batch that claims more events is forged to fill the memory.
const MAX_EVENTS_PER_BYTE: usize = 4;

/// The fields of a batch.
pub(super) struct Batch<'a> {
    /// Offset of the batch in the file.
    pub(super) offset: usize,
    length: usize,
    fields: Vec<Field<'a>>,
}

impl<'a> Batch<'a> {
    pub(super) fn decode(bytes: &'a [u8], offset: usize) -> Result<Self, Problem> {
        let fields = Fields::of(bytes, offset).collect::<Result<_, _>>()?;
        Ok(Self { offset, length: bytes.len(), fields })
    }

    /// The value of a field; if it is repeated, the last one, as in all protocol buffers.
    fn field(&self, number: u32) -> Option<Value<'a>> {
        self.fields.iter().rev().find(|field| field.number == number).map(|field| field.value)
    }

    /// A numeric field, if it is present.
    pub(super) fn number(&self, number: u32) -> Option<u64> {
        match self.field(number) {
            Some(Value::Number(value)) => Some(value),
            _ => None,
        }
    }

    /// A numeric field of 32 bits, if it is present.
    pub(super) fn number32(&self, number: u32) -> Option<u32> {
        self.number(number).map(|value| value as u32)
    }

    /// The id of a probe cluster.
    pub(super) fn probe_id(&self) -> u32 {
        self.number32(2).unwrap_or(0)
    }

    /// A bytes field with its offset in the file; empty if it is absent.
    pub(super) fn bytes(&self, number: u32) -> (usize, &'a [u8]) {
        match self.field(number) {
            Some(Value::Bytes(offset, bytes)) => (offset, bytes),
            _ => (self.offset, &[]),
        }
    }

    /// The number of events; field `number` counts those after the first.
    pub(super) fn count(&self, number: u32) -> Result<usize, Problem> {
        let following = self.number(number).unwrap_or(0);
        let limit = self.length.saturating_mul(MAX_EVENTS_PER_BYTE);
        let count = usize::try_from(following).ok().filter(|&count| count < limit);
        count.map(|count| count + 1).ok_or_else(|| {
            let message = format!(
                "found {following} events after the first in a batch of {} bytes; expected fewer than {limit}",
                self.length
            );
            Problem::new(self.offset, message)
        })
    }

    /// A column: the value of the first event in field `first`, and the other values in field `rest`.
    pub(super) fn column(&self, first: u32, rest: u32, count: usize) -> Result<Vec<Option<u64>>, Problem> {
        let mut values = vec![self.number(first)];
        let (offset, bytes) = self.bytes(rest);
        values.extend(deltas::numbers(bytes, offset, values[0], count - 1)?);
        Ok(values)
    }

    /// A column of which each event must have a value. `name` is for the error.
    pub(super) fn required(
        &self,
        first: u32,
        rest: u32,
        count: usize,
        name: &str,
    ) -> Result<Vec<u64>, Problem> {
        let column = self.column(first, rest, count)?;
        let missing = column.iter().position(Option::is_none);
        if let Some(row) = missing {
            return Err(Problem::new(
                self.offset,
                format!("event {row} of a batch lacks {name} (field {first})"),
            ));
        }
        Ok(column.into_iter().flatten().collect())
    }

    /// The times of all events.
    pub(super) fn times(&self, first: u32, rest: u32, count: usize) -> Result<Vec<Millis>, Problem> {
        let column = self.required(first, rest, count, "a time")?;
        column.into_iter().map(|value| self.checked(value)).collect()
    }

    /// The time of a single event.
    pub(super) fn time(&self, number: u32) -> Result<Millis, Problem> {
        let value = self.number(number);
        let value = value
            .ok_or_else(|| Problem::new(self.offset, format!("an event lacks a time (field {number})")))?;
        self.checked(value)
    }

    /// Checks that a time in nanoseconds fits 64 bits with room for sums: less than a century from zero.
    fn checked(&self, value: u64) -> Result<Millis, Problem> {
        const CENTURY: u64 = 100 * 366 * 86_400 * 1000;
        let time = value as i64;
        if time.unsigned_abs() > CENTURY {
            return Err(Problem::new(
                self.offset,
                format!("found a time of {time} ms; expected less than a century"),
            ));
        }
        Ok(time)
    }
}
