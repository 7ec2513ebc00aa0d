//! Refusals of a scenario: the key, the value found there, and the value expected.

use std::fmt;

/// A fault of a scenario, or of a part of it that does not know its key in the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The dotted key (`duration`, `links.NAME`, `flows.NAME.media.controller`), relative to the part; empty for the
    /// part itself.
    pub key: String,
    /// The value found; a whole sentence where `expected` is empty.
    pub value: String,
    /// A description of the right values.
    pub expected: String,
}

impl Refusal {
    /// A refusal of the `value` found at `key`.
    pub fn new(key: impl Into<String>, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), expected: expected.into() }
    }

    /// Puts `outer`, the key of the refused part, in front of the refusal's key.
    #[must_use]
    pub fn at(mut self, outer: &str) -> Self {
        self.key = match self.key.as_str() {
            "" => outer.to_owned(),
            key => format!("{outer}.{key}"),
        };
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        match self.expected.as_str() {
            "" => f.write_str(&self.value),
            expected => write!(f, "found {}; expected {expected}", self.value),
        }
    }
}

impl std::error::Error for Refusal {}

/// Fails with `refusal` unless `condition` holds.
pub(crate) fn ensure<R: Into<Refusal>>(condition: bool, refusal: impl FnOnce() -> R) -> Result<(), Refusal> {
    if condition { Ok(()) } else { Err(refusal().into()) }
}

/// Fails unless `value` is a probability.
pub(crate) fn ensure_probability(key: &str, value: f64) -> Result<(), Refusal> {
    ensure((0.0..=1.0).contains(&value), || Refusal::new(key, value, "a probability, from 0 to 1"))
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { key: String::new(), value: message, expected: String::new() }
    }
}

impl From<&str> for Refusal {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<tidegate_endpoint::SettingsError> for Refusal {
    fn from(error: tidegate_endpoint::SettingsError) -> Self {
        error.to_string().into()
    }
}

impl From<tidegate_controllers::SettingsError> for Refusal {
    fn from(error: tidegate_controllers::SettingsError) -> Self {
        let tidegate_controllers::SettingsError { key, actual, expected, .. } = error;
        Self::new(key, actual, expected).at("media.controller")
    }
}
