//! Congestion controllers, one file or folder each, and the registry that finds them by name.
//!
//! A new controller touches four things: its file or folder here, one line in [`registry`], one page
//! under `docs/controllers/`, and one golden table of its behaviour.

pub mod agent;
pub mod fixed;
pub mod gcc;
pub mod lookup_table;
pub mod nada;
pub mod rrb_simd;
pub mod scream;
pub mod settings;
pub mod sprout;
pub mod tfrc;

pub use settings::{Kind, Setting, SettingsError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_core::control::{Controller, ReceiverHalf};

/// Makes something out of a preset's name and an object of overrides on it.
pub type Build<T> = fn(preset: &str, overrides: &Value) -> Result<Box<T>, SettingsError>;

/// What the video of a call shows (WebRTC's `ContentType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// What a camera sees.
    #[default]
    Camera,
    /// A shared screen.
    Screen,
}

/// What the registry says of one controller.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name it is asked for by.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Names of its sets of values; the first one is the default.
    pub presets: &'static [&'static str],
    /// Everything that can be set of a preset, with unit, range and source. Presets of one make share a table.
    pub settings: fn(preset: &str) -> &'static [Setting],
    /// All values of a preset, as a JSON object.
    ///
    /// # Errors
    /// When there is no such preset.
    pub defaults: fn(preset: &str) -> Result<Value, SettingsError>,
    /// What a call sets of a preset where nobody says otherwise, as a JSON object: for schemes that know a bare
    /// controller, which is what documents and recordings have, from one in a call.
    pub in_call: fn(preset: &str, content: Content) -> Value,
    /// Makes the sending half from a preset and a JSON object of overrides (`null`: none).
    ///
    /// # Errors
    /// When there is no such preset or key, or a value is of the wrong type or out of its range.
    pub build: Build<dyn Controller>,
    /// Makes the receiving half, for schemes that have one.
    pub receiver: Option<Build<dyn ReceiverHalf>>,
}

impl Entry {
    /// Nothing: a call has the preset as it is.
    pub const AS_IT_IS: fn(&str, Content) -> Value = |_, _| Value::Object(serde_json::Map::new());

    /// The preset that is meant where none is named.
    #[must_use]
    pub fn default_preset(&self) -> &'static str {
        self.presets[0]
    }
}

/// Every controller, by name.
#[must_use]
pub fn registry() -> &'static [Entry] {
    &[
        fixed::ENTRY,
        gcc::ENTRY,
        gcc::REMB,
        tfrc::ENTRY,
        tfrc::ENTRY_SP,
        scream::ENTRY,
        scream::V1,
        sprout::ENTRY,
        sprout::EWMA,
        nada::ENTRY,
        lookup_table::ENTRY,
        rrb_simd::ENTRY,
    ]
}

/// The controller called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    registry().iter().find(|entry| entry.name == name)
}
