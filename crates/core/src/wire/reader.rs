//! Cursor over bytes that knows its offset.

use super::Error;

/// Reader of consecutive big-endian fields; offsets in errors count from the datagram's start.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    remaining: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::with_offset(bytes, 0)
    }

    /// Creates a reader of bytes that begin `offset` bytes after the start of the datagram.
    pub(crate) fn with_offset(bytes: &'a [u8], offset: usize) -> Self {
        Self { remaining: bytes, offset }
    }

    /// Present position, in bytes from the start of the datagram.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remaining.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.remaining.len()
    }

    /// Remaining bytes, without moving on.
    pub(crate) fn remaining(&self) -> &'a [u8] {
        self.remaining
    }

    /// Takes the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], Error> {
        match self.remaining.split_at_checked(count) {
            Some((bytes, remaining)) => {
                self.remaining = remaining;
                self.offset += count;
                Ok(bytes)
            }
            None => Err(Error::Truncated {
                field,
                offset: self.offset,
                needed: count,
                available: self.remaining.len(),
            }),
        }
    }

    /// Takes the next `count` bytes as a separate reader.
    pub(crate) fn part(&mut self, count: usize, field: &'static str) -> Result<Self, Error> {
        let offset = self.offset;
        Ok(Self { remaining: self.take(count, field)?, offset })
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, field)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, Error> {
        self.array(field).map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, Error> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(crate) fn u24(&mut self, field: &'static str) -> Result<u32, Error> {
        self.array(field).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Error> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Error> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// Fails if bytes remain.
    pub(crate) fn end(&self, field: &'static str) -> Result<(), Error> {
        if self.remaining.is_empty() {
            Ok(())
        } else {
            Err(Error::Invalid { field, offset: self.offset, value: self.remaining.len() as u64 })
        }
    }
}
