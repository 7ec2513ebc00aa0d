//! Errors of decoding and encoding.

use std::fmt;

/// Error of decoding bytes or of encoding a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The bytes end too early.
    Truncated {
        /// Part that was being decoded.
        field: &'static str,
        /// Start of the part, in bytes from the start of the datagram.
        offset: usize,
        /// Number of bytes that the part needs.
        needed: usize,
        /// Number of bytes that are left.
        available: usize,
    },
    /// A field has an invalid value.
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// Position of the field, in bytes from the start of the datagram.
        offset: usize,
        /// Value of the field.
        value: u64,
    },
    /// A value to be encoded is outside the range of its field.
    Unfit {
        /// Name of the field.
        field: &'static str,
        /// Value.
        value: u64,
        /// Lowest valid value.
        minimum: u64,
        /// Highest valid value.
        maximum: u64,
    },
}

impl Error {
    /// Shifts the error's offset, for bytes that begin `bytes` after the start of the datagram.
    #[must_use]
    pub const fn after(self, bytes: usize) -> Self {
        match self {
            Self::Truncated { field, offset, needed, available } => {
                Self::Truncated { field, offset: offset + bytes, needed, available }
            }
            Self::Invalid { field, offset, value } => Self::Invalid { field, offset: offset + bytes, value },
            Self::Unfit { .. } => self,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { field, offset, needed, available } => {
                write!(f, "{field} at byte {offset} takes {needed} bytes, but {available} are left")
            }
            Self::Invalid { field, offset, value } => {
                write!(f, "{field} at byte {offset} must not be {value} ({value:#x})")
            }
            Self::Unfit { field, value, minimum, maximum } => {
                write!(f, "cannot write {value} as {field}: it must be from {minimum} to {maximum}")
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
        Err(Error::Unfit { field, value: value as u64, minimum: min as u64, maximum: max as u64 })
    }
}
