//! Settings of controllers: what can be set, in which unit and range, and where the value comes from.
//!
//! A user gives a preset and a JSON object of overrides. [`resolve`] lays the one over the other and
//! refuses whatever it does not know, so that a misspelt key never silently leaves a default in place.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// What a setting may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A number from the first to the second, both included.
    Number(f64, f64),
    /// A whole number from the first to the second, both included.
    Whole(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(low, high) => write!(f, "a number from {low} to {high}"),
            Self::Whole(low, high) => write!(f, "a whole number from {low} to {high}"),
            Self::Flag => write!(f, "true or false"),
            Self::Choice(words) => write!(f, "one of {}", quoted(words)),
        }
    }
}

impl Kind {
    fn allows(self, value: &Value) -> bool {
        match self {
            Self::Number(low, high) => value.as_f64().is_some_and(|x| (low..=high).contains(&x)),
            Self::Whole(low, high) => value.as_u64().is_some_and(|x| (low..=high).contains(&x)),
            Self::Flag => value.is_boolean(),
            Self::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        }
    }
}

/// One thing that can be set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// The key.
    pub name: &'static str,
    /// The unit of a number; empty for a pure one, a flag or a word.
    pub unit: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Where it and its values come from.
    pub source: &'static str,
    /// What it may be.
    pub kind: Kind,
}

/// Declares a word-valued setting: what it is, then each choice and its word.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($(#[$say:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$say])* #[serde(rename = $word)] $variant),+ }
        impl $name { pub(crate) const KIND: $crate::settings::Kind = $crate::settings::Kind::Choice(&[$($word),+]); }
    };
}
pub(crate) use words;

/// Declares what a controller runs with, one setting a block: name, type, unit, what it may be, its value in each
/// preset, meaning, source. Makes `Settings`, `TABLE`, and `preset(column)`.
macro_rules! settings {
    ($($name:ident: $type:ty, $unit:literal, $kind:expr, [$($value:expr),+], $doc:literal, $source:literal;)+) => {
        /// The values that a controller runs with.
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings { $(#[doc = concat!($doc, " (", $unit, "). Source: ", $source)] pub $name: $type,)+ }

        /// Everything that can be set.
        pub const TABLE: &[$crate::settings::Setting] = &[$($crate::settings::Setting {
            name: stringify!($name), unit: $unit, doc: $doc, source: $source, kind: $kind,
        },)+];

        /// The preset in this column.
        const fn preset(column: usize) -> Settings { Settings { $($name: [$($value),+][column],)+ } }
    };
}
pub(crate) use settings;

/// Why settings were refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsError {
    /// Whose settings.
    pub controller: &'static str,
    /// The key, or `preset`, or empty where the whole is not an object.
    pub key: String,
    /// What was found there.
    pub found: String,
    /// What would be right: a type with its range, or the list of known names.
    pub expected: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, key, found, expected } = self;
        match key.as_str() {
            "" => write!(f, "{controller}: the settings are {found}, expected {expected}"),
            key => write!(f, "{controller}: `{key}` is {found}, expected {expected}"),
        }
    }
}

impl std::error::Error for SettingsError {}

pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The error for a preset that does not exist.
#[must_use]
pub fn unknown_preset(controller: &'static str, found: &str, known: &[&str]) -> SettingsError {
    SettingsError {
        controller,
        key: "preset".into(),
        found: format!("`{found}`"),
        expected: format!("one of {}", quoted(known)),
    }
}

/// `preset` as a JSON object.
///
/// # Errors
/// When a value cannot be written.
pub fn to_value<T: Serialize>(controller: &'static str, preset: &T) -> Result<Value, SettingsError> {
    serde_json::to_value(preset).map_err(|error| SettingsError {
        controller,
        key: "preset".into(),
        found: error.to_string(),
        expected: "serializable values".into(),
    })
}

/// `preset` as a JSON object with `overrides` (an object, or `null` for none) laid over it.
///
/// # Errors
/// When `overrides` is no object, names a key that is not in `table`, or holds a value of the wrong
/// type or out of its range.
pub fn resolve<T: Serialize + DeserializeOwned>(
    controller: &'static str,
    table: &[Setting],
    preset: &T,
    overrides: &Value,
) -> Result<T, SettingsError> {
    let refuse = |key: &str, found: String, expected: String| {
        Err(SettingsError { controller, key: key.into(), found, expected })
    };
    let mut merged = to_value(controller, preset)?;
    match overrides {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                let Some(setting) = table.iter().find(|setting| setting.name == key) else {
                    let known: Vec<_> = table.iter().map(|setting| setting.name).collect();
                    return refuse(key, "not a setting".into(), format!("one of {}", quoted(&known)));
                };
                if !setting.kind.allows(value) {
                    let unit = if setting.unit.is_empty() { "" } else { " " };
                    let expected = format!("{}{unit}{}", setting.kind, setting.unit);
                    return refuse(key, value.to_string(), expected);
                }
                merged[key] = value.clone();
            }
        }
        other => return refuse("", other.to_string(), "a JSON object".into()),
    }
    match serde_json::from_value(merged) {
        Ok(settings) => Ok(settings),
        Err(error) => refuse("", error.to_string(), "values of the types in the table".into()),
    }
}
