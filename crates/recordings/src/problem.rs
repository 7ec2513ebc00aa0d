//! Problems of a recording, each with its position in the file.

use std::fmt;

/// A part of a file that cannot be read or is out of range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Position in bytes from the start of the file.
    pub offset: usize,
    /// Message with the content of the file there, and the expected content.
    pub message: String,
}

impl Problem {
    /// A problem at a byte of the file.
    #[must_use]
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for Problem {}

/// Problems of one file: the first few with their messages, and the count of all. The number of messages is limited so
/// that a file full of problems does not fill the memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problems {
    /// The first problems, at most five.
    pub first: Vec<Problem>,
    /// Number of all problems.
    pub count: usize,
}

impl Problems {
    const MAX_MESSAGES: usize = 5;

    /// Counts a problem, and keeps its message if there is room.
    pub fn add(&mut self, problem: Problem) {
        self.count += 1;
        if self.first.len() < Self::MAX_MESSAGES {
            self.first.push(problem);
        }
    }
}
