//! Why something is refused: where, what was found, what would be right.

use std::fmt;

/// What is wrong with a scenario, or with a part of it that does not know its own place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The dotted key (`duration`, `links.NAME`, `flows.NAME.media.controller`), below the part if it is one of a part;
    /// empty for the whole of it.
    pub place: String,
    /// What was found there; a sentence where `expected` is empty.
    pub found: String,
    /// What would be right.
    pub expected: String,
}

impl Refusal {
    /// A refusal of `value`, which was found at `place`.
    pub fn new(place: impl Into<String>, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self { place: place.into(), found: value.to_string(), expected: expected.into() }
    }

    /// The same refusal, seen from the whole of which the refused part is at `whole`: its key is put in front.
    #[must_use]
    pub fn at(mut self, whole: &str) -> Self {
        self.place = match self.place.as_str() {
            "" => whole.to_owned(),
            place => format!("{whole}.{place}"),
        };
        self
    }
}

impl fmt::Display for Refusal {
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

impl std::error::Error for Refusal {}

/// Fails with `refusal` unless `condition` holds.
pub(crate) fn ensure<R: Into<Refusal>>(condition: bool, refusal: impl FnOnce() -> R) -> Result<(), Refusal> {
    if condition { Ok(()) } else { Err(refusal().into()) }
}

/// Fails unless `value` is a probability.
pub(crate) fn ensure_probability(place: &str, value: f64) -> Result<(), Refusal> {
    ensure((0.0..=1.0).contains(&value), || Refusal::new(place, value, "a probability, from 0 to 1"))
}

impl From<String> for Refusal {
    fn from(found: String) -> Self {
        Self { place: String::new(), found, expected: String::new() }
    }
}

impl From<&str> for Refusal {
    fn from(found: &str) -> Self {
        found.to_owned().into()
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
        Self::new(key, found, expected).at("media.controller")
    }
}
