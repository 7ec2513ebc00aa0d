//! What can be wrong with bytes, or with a value that is to become bytes.

use std::fmt;

/// Why bytes were not understood, or why a value has no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The bytes end too early.
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it begins, in bytes from the start of the datagram.
        offset: usize,
        /// How many bytes it takes.
        needed: usize,
        /// How many are there.
        found: usize,
    },
    /// A field holds what it must not hold.
    Invalid {
        /// Which field.
        what: &'static str,
        /// Where it is, in bytes from the start of the datagram.
        offset: usize,
        /// What it holds.
        found: u64,
    },
    /// A value that is to be written lies outside what its field can carry.
    Unfit {
        /// Which field.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
}

impl Error {
    /// The same error in bytes that begin `bytes` after the start of the datagram.
    #[must_use]
    pub const fn after(self, bytes: usize) -> Self {
        match self {
            Self::Truncated { what, offset, needed, found } => {
                Self::Truncated { what, offset: offset + bytes, needed, found }
            }
            Self::Invalid { what, offset, found } => Self::Invalid { what, offset: offset + bytes, found },
            Self::Unfit { .. } => self,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { what, offset, needed, found } => {
                write!(f, "{what} at byte {offset} takes {needed} bytes, but {found} are left")
            }
            Self::Invalid { what, offset, found } => {
                write!(f, "{what} at byte {offset} must not be {found} ({found:#x})")
            }
            Self::Unfit { what, found, least, most } => {
                write!(f, "{what} cannot be written: it is {found}, and must be from {least} to {most}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// `found` where it lies within `least..=most`, else [`Error::Unfit`].
pub(crate) fn fit(what: &'static str, found: usize, least: usize, most: usize) -> Result<usize, Error> {
    if (least..=most).contains(&found) {
        Ok(found)
    } else {
        Err(Error::Unfit { what, found: found as u64, least: least as u64, most: most as u64 })
    }
}
