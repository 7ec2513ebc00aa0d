//! Congestion controllers, one file or folder each, and the registry that finds them by name.
//!
//! A new controller needs four things: its file or folder here, a line in [`registry`], a page under `docs/controllers/`,
//! and a golden table of its behaviour.

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

/// Builds a half of a controller from a preset's name and an object of overrides.
pub type Build<T> = fn(preset: &str, overrides: &Value) -> Result<Box<T>, SettingsError>;

/// Content of a call's video (WebRTC's `ContentType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Camera.
    #[default]
    Camera,
    /// Shared screen.
    Screen,
}

/// Registry entry of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name of the controller.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Names of the presets; the first one is the default.
    pub presets: &'static [&'static str],
    /// Settings of a preset, with unit, range and source. Presets of the same kind share a table.
    pub settings: fn(preset: &str) -> &'static [Setting],
    /// Values of a preset as a JSON object.
    ///
    /// # Errors
    /// Fails if there is no such preset.
    pub defaults: fn(preset: &str) -> Result<Value, SettingsError>,
    /// Settings that a call makes of a preset by default, as a JSON object. Only some schemes distinguish a controller in a
    /// call from the bare one of documents and recordings.
    pub in_call: fn(preset: &str, content: Content) -> Value,
    /// Builds the sending half from a preset and a JSON object of overrides (`null`: none).
    ///
    /// # Errors
    /// Fails if there is no such preset or key, or a value is of the wrong type or out of its range.
    pub build: Build<dyn Controller>,
    /// Builds the receiving half, for schemes that have one.
    pub receiver: Option<Build<dyn ReceiverHalf>>,
}

impl Entry {
    /// Value of `in_call` for schemes of which a call changes no settings.
    pub const NO_CALL_SETTINGS: fn(&str, Content) -> Value = |_, _| Value::Object(serde_json::Map::new());

    /// Default preset.
    #[must_use]
    pub fn default_preset(&self) -> &'static str {
        self.presets[0]
    }
}

/// Entries of all controllers.
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

/// Finds a controller by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    registry().iter().find(|entry| entry.name == name)
}
