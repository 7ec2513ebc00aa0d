//! Errors of decoding and encoding.

use std::fmt;

/// Error of decoding bytes or of encoding a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The bytes end too early.
    Truncated {
        /// Part that was being decoded.
        what: &'static str,
        /// Start of the part, in bytes from the start of the datagram.
        offset: usize,
        /// Number of bytes that the part needs.
        needed: usize,
        /// Number of bytes that are left.
        found: usize,
    },
    /// A field has an invalid value.
    Invalid {
        /// Field.
        what: &'static str,
        /// Position of the field, in bytes from the start of the datagram.
        offset: usize,
        /// Value of the field.
        found: u64,
    },
    /// A value to be encoded is outside the range of its field.
    Unfit {
        /// Field.
        what: &'static str,
        /// Value.
        found: u64,
        /// Lowest valid value.
        least: u64,
        /// Highest valid value.
        most: u64,
    },
}

impl Error {
    /// Shifts the error's offset, for bytes that begin `bytes` after the start of the datagram.
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

/// Returns `value` if it is within `min..=max`, else [`Error::Unfit`].
pub(crate) fn fit(field: &'static str, value: usize, min: usize, max: usize) -> Result<usize, Error> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(Error::Unfit { what: field, found: value as u64, least: min as u64, most: max as u64 })
    }
}
