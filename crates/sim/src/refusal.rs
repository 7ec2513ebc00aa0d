//! Why a scenario is refused: where, what was found, what would be right.

use crate::Invalid;
use std::fmt;

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The dotted key: `duration`, `links.NAME`, `flows.NAME.media.controller`.
    pub place: String,
    /// What was found there; a sentence where `expected` is empty.
    pub found: String,
    /// What would be right.
    pub expected: String,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        match self.expected.as_str() {
            "" => f.write_str(&self.found),
            expected => write!(f, "found {}; expected {expected}", self.found),
        }
    }
}

impl std::error::Error for BuildError {}

/// What is wrong with a part of a scenario that does not know its own place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The dotted key below the part, empty for the whole of it.
    pub key: String,
    /// What was found; a sentence where `expected` is empty.
    pub found: String,
    /// What would be right.
    pub expected: String,
}

impl Refusal {
    /// At `key`, `value` was found.
    pub fn new(key: impl Into<String>, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self { key: key.into(), found: value.to_string(), expected: expected.into() }
    }

    /// As an error of the part at `place`.
    pub(crate) fn at(self, place: &str) -> BuildError {
        let place = match self.key.as_str() {
            "" => place.to_owned(),
            key => format!("{place}.{key}"),
        };
        BuildError { place, found: self.found, expected: self.expected }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, found, expected } = self;
        write!(f, "{}", BuildError { place: key.clone(), found: found.clone(), expected: expected.clone() })
    }
}

impl From<String> for Refusal {
    fn from(found: String) -> Self {
        Self { key: String::new(), found, expected: String::new() }
    }
}

impl From<&str> for Refusal {
    fn from(found: &str) -> Self {
        found.to_owned().into()
    }
}

impl From<Invalid> for Refusal {
    fn from(Invalid(found): Invalid) -> Self {
        found.into()
    }
}

impl From<tidegate_endpoint::SettingsError> for Refusal {
    fn from(error: tidegate_endpoint::SettingsError) -> Self {
        error.to_string().into()
    }
}

impl From<tidegate_controllers::SettingsError> for Refusal {
    fn from(error: tidegate_controllers::SettingsError) -> Self {
        let tidegate_controllers::SettingsError { key, found, expected, .. } = error;
        let key =
            if key.is_empty() { "media.controller".to_owned() } else { format!("media.controller.{key}") };
        Self::new(key, found, expected)
    }
}
