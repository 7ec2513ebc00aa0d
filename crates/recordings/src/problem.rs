//! What is wrong with a recording, and where.

use std::fmt;

/// Something in a file that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Where: bytes from the start of the file.
    pub offset: usize,
    /// What was found there, and what would be right.
    pub what: String,
}

impl Problem {
    /// A problem at a byte of the file.
    #[must_use]
    pub fn new(offset: usize, what: impl Into<String>) -> Self {
        Self { offset, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.what)
    }
}

impl std::error::Error for Problem {}

/// Problems of one file: the first ones in words, and how many there were. A file of nothing else would fill the memory
/// with them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problems {
    /// The first ones.
    pub first: Vec<Problem>,
    /// How many in all.
    pub count: usize,
}

impl Problems {
    const KEPT: usize = 5;

    /// Takes note of one.
    pub fn add(&mut self, problem: Problem) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(problem);
        }
    }
}
