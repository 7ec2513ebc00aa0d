//! Settings of controllers, with units, ranges and sources.
//!
//! A user gives a preset and a JSON object of overrides. [`resolve`] applies the overrides and refuses unknown keys, so that
//! a misspelt key never silently leaves a default unchanged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// Type and range of a setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// Number from the first to the second, both included.
    Number(f64, f64),
    /// Whole number from the first to the second, both included.
    Whole(u64, u64),
    /// Boolean, `true` or `false`.
    Flag,
    /// Word of a list.
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

/// Description of a setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// Key.
    pub name: &'static str,
    /// Unit of a number; empty for a pure number, a flag or a word.
    pub unit: &'static str,
    /// Meaning.
    pub doc: &'static str,
    /// Source of the setting and its values.
    pub source: &'static str,
    /// Type and range.
    pub kind: Kind,
}

/// Declares a word-valued setting: its meaning and name, then each choice and its word.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($(#[$choice_doc:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$choice_doc])* #[serde(rename = $word)] $variant),+ }
        impl $name { pub(crate) const KIND: $crate::settings::Kind = $crate::settings::Kind::Choice(&[$($word),+]); }
    };
}
pub(crate) use words;

/// Declares a controller's settings, each in a block: name, type, unit, allowed values, its value in each preset, meaning,
/// source. Defines `Settings`, `TABLE`, and `preset(column)`.
macro_rules! settings {
    ($($name:ident: $type:ty, $unit:literal, $kind:expr, [$($value:expr),+], $doc:literal, $source:literal;)+) => {
        /// Values of a controller's settings.
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings { $(#[doc = concat!($doc, " (", $unit, "). Source: ", $source)] pub $name: $type,)+ }

        /// Descriptions of all settings.
        pub const TABLE: &[$crate::settings::Setting] = &[$($crate::settings::Setting {
            name: stringify!($name), unit: $unit, doc: $doc, source: $source, kind: $kind,
        },)+];

        /// Preset in a column.
        const fn preset(column: usize) -> Settings { Settings { $($name: [$($value),+][column],)+ } }
    };
}
pub(crate) use settings;

/// Error of refused settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsError {
    /// Name of the controller.
    pub controller: &'static str,
    /// Key, or `preset`; empty if the settings are not an object.
    pub key: String,
    /// Value that was given, or a reason why it is refused.
    pub actual: String,
    /// Expected value: a type with its range, or a list of names.
    pub expected: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, key, actual, expected } = self;
        match key.as_str() {
            "" => write!(f, "{controller}: the settings are {actual}, expected {expected}"),
            key => write!(f, "{controller}: `{key}` is {actual}, expected {expected}"),
        }
    }
}

impl std::error::Error for SettingsError {}

pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Error for a preset that does not exist.
#[must_use]
pub fn unknown_preset(controller: &'static str, name: &str, presets: &[&str]) -> SettingsError {
    SettingsError {
        controller,
        key: "preset".into(),
        actual: format!("`{name}`"),
        expected: format!("one of {}", quoted(presets)),
    }
}

/// Converts a preset to a JSON object.
///
/// # Errors
/// Fails if a value cannot be written.
pub fn to_value<T: Serialize>(controller: &'static str, preset: &T) -> Result<Value, SettingsError> {
    serde_json::to_value(preset).map_err(|error| SettingsError {
        controller,
        key: "preset".into(),
        actual: error.to_string(),
        expected: "serializable values".into(),
    })
}

/// Applies `overrides` (an object, or `null` for none) to a preset.
///
/// # Errors
/// Fails if `overrides` is not an object, has a key that is not in `table`, or has a value of the wrong type or out of its
/// range.
pub fn resolve<T: Serialize + DeserializeOwned>(
    controller: &'static str,
    table: &[Setting],
    preset: &T,
    overrides: &Value,
) -> Result<T, SettingsError> {
    let refuse = |key: &str, actual: String, expected: String| {
        Err(SettingsError { controller, key: key.into(), actual, expected })
    };
    let mut merged = to_value(controller, preset)?;
    match overrides {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                let Some(setting) = table.iter().find(|setting| setting.name == key) else {
                    let names: Vec<_> = table.iter().map(|setting| setting.name).collect();
                    return refuse(key, "not a setting".into(), format!("one of {}", quoted(&names)));
                };
                if !setting.kind.allows(value) {
                    let unit = if setting.unit.is_empty() { "" } else { " " };
                    let expected = format!("{}{unit}{}", setting.kind, setting.unit);
                    return refuse(key, value.to_string(), expected);
                }
                merged[key] = value.clone();
            }
        }
        value => return refuse("", value.to_string(), "a JSON object".into()),
    }
    match serde_json::from_value(merged) {
        Ok(settings) => Ok(settings),
        Err(error) => refuse("", error.to_string(), "values of the types in the table".into()),
    }
}
