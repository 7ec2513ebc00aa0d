//! A cursor over bytes that knows where it is.

use super::Error;

/// Reads big-endian fields one after the other; offsets in errors count from the datagram's start.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    left: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// A reader of bytes that begin `offset` bytes after the start of the datagram.
    pub(crate) fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self { left: bytes, offset }
    }

    /// Bytes from the start of the datagram to here.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.left.len()
    }

    /// What is left, without moving on.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Error> {
        match self.left.split_at_checked(count) {
            Some((taken, left)) => {
                self.left = left;
                self.offset += count;
                Ok(taken)
            }
            None => {
                Err(Error::Truncated { what, offset: self.offset, needed: count, found: self.left.len() })
            }
        }
    }

    /// The next `count` bytes as a reader of their own.
    pub(crate) fn part(&mut self, count: usize, what: &'static str) -> Result<Self, Error> {
        let offset = self.offset;
        Ok(Self { left: self.take(count, what)?, offset })
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, Error> {
        self.array(what).map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(crate) fn u24(&mut self, what: &'static str) -> Result<u32, Error> {
        self.array(what).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, Error> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// An error where anything is left.
    pub(crate) fn end(&self, what: &'static str) -> Result<(), Error> {
        if self.left.is_empty() {
            Ok(())
        } else {
            Err(Error::Invalid { what, offset: self.offset, found: self.left.len() as u64 })
        }
    }
}
