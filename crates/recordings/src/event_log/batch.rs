//! One message of a log: a batch of events of one kind.

use super::{Millis, deltas};
use crate::problem::Problem;
use crate::protobuf::{Field, Fields, Value};

/// Events that a batch may have for each byte of it. An event takes at least the bits in which it differs from the one
/// before; what claims more is not a log, but wants to fill the memory.
const MOST_PER_BYTE: usize = 4;

/// The fields of a batch.
pub(super) struct Batch<'a> {
    /// Where it begins in the file.
    pub(super) offset: usize,
    length: usize,
    fields: Vec<Field<'a>>,
}

impl<'a> Batch<'a> {
    pub(super) fn read(bytes: &'a [u8], offset: usize) -> Result<Self, Problem> {
        let fields = Fields::of(bytes, offset).collect::<Result<_, _>>()?;
        Ok(Self { offset, length: bytes.len(), fields })
    }

    /// A field; where it is there several times the last one counts, as protocol buffers have it.
    fn field(&self, number: u32) -> Option<Value<'a>> {
        self.fields.iter().rev().find(|field| field.number == number).map(|field| field.value)
    }

    /// A number, if it is there.
    pub(super) fn one(&self, number: u32) -> Option<u64> {
        match self.field(number) {
            Some(Value::Number(value)) => Some(value),
            _ => None,
        }
    }

    /// A number of 32 bits, if it is there.
    pub(super) fn small(&self, number: u32) -> Option<u32> {
        self.one(number).map(|value| value as u32)
    }

    /// The number of a probe.
    pub(super) fn id(&self) -> u32 {
        self.small(2).unwrap_or(0)
    }

    /// Bytes, and where they are; none where they are not there.
    pub(super) fn bytes(&self, number: u32) -> (usize, &'a [u8]) {
        match self.field(number) {
            Some(Value::Bytes(offset, bytes)) => (offset, bytes),
            _ => (self.offset, &[]),
        }
    }

    /// How many events there are, by the field that counts those behind the first.
    pub(super) fn count(&self, number: u32) -> Result<usize, Problem> {
        let more = self.one(number).unwrap_or(0);
        let most = self.length.saturating_mul(MOST_PER_BYTE);
        usize::try_from(more).ok().filter(|&more| more < most).map(|more| more + 1).ok_or_else(|| {
            let what = format!(
                "found {more} events more in a batch of {} bytes; expected less than {most}",
                self.length
            );
            Problem::new(self.offset, what)
        })
    }

    /// A column: the first value, and those behind it.
    pub(super) fn column(&self, first: u32, rest: u32, count: usize) -> Result<Vec<Option<u64>>, Problem> {
        let mut values = vec![self.one(first)];
        let (offset, bytes) = self.bytes(rest);
        values.extend(deltas::numbers(bytes, offset, values[0], count - 1)?);
        Ok(values)
    }

    /// A column in which nothing is missing.
    pub(super) fn needed(
        &self,
        first: u32,
        rest: u32,
        count: usize,
        what: &str,
    ) -> Result<Vec<u64>, Problem> {
        let column = self.column(first, rest, count)?;
        let without = column.iter().position(Option::is_none);
        if let Some(row) = without {
            return Err(Problem::new(
                self.offset,
                format!("event {row} of a batch is without {what} (field {first})"),
            ));
        }
        Ok(column.into_iter().flatten().collect())
    }

    /// The times of all events.
    pub(super) fn times(&self, first: u32, rest: u32, count: usize) -> Result<Vec<Millis>, Problem> {
        let column = self.needed(first, rest, count, "a time")?;
        column.into_iter().map(|value| self.checked(value)).collect()
    }

    /// The time of the one event.
    pub(super) fn time(&self, number: u32) -> Result<Millis, Problem> {
        let value = self.one(number);
        let value = value
            .ok_or_else(|| Problem::new(self.offset, format!("an event without a time (field {number})")))?;
        self.checked(value)
    }

    /// A time that nanoseconds can hold, with room for sums: a century from zero.
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
