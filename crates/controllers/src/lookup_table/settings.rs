//! Every number and choice of the lookup-table scheme, and its equation.

use crate::settings::{Kind, Setting, SettingsError, resolve, unknown_preset};
use Kind::{Choice, Number, Whole};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_core::Span;

pub(super) const NAME: &str = "lookup_table";

/// The three senders of figure 3, the proposed one first.
pub(super) const PRESETS: &[&str] = &["table", "equation", "none"];

/// Which of the three senders of figure 3 it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// No congestion control.
    None,
    /// The equation answers every report.
    Equation,
    /// What the equation has answered once holds for that fraction lost.
    Table,
}

/// Where the equation's delay comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DelaySource {
    /// Half of a round trip from LSR and DLSR of the receiver report.
    #[serde(rename = "rtt/2")]
    HalfRtt,
    /// What the driver knows of the last packet that arrived; the receiver half says it.
    #[serde(rename = "simulator")]
    Simulator,
}

/// What the equation's jitter is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JitterUnit {
    /// Converted to time.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// As it stands in the report, by a video clock of 90 kHz.
    #[serde(rename = "timestamp")]
    Timestamp,
}

/// The values that a controller runs with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Which sender it is.
    pub mode: Mode,
    /// What the product is divided by.
    pub scale: f64,
    /// What the jitter is counted in.
    pub jitter_unit: JitterUnit,
    /// Where the delay comes from.
    pub delay_source: DelaySource,
    /// The gap while nothing is lost, in microseconds.
    pub default_gap: f64,
    /// The packet with which a gap makes a rate, in bytes.
    pub packet: u64,
}

const DEFAULT: Settings = Settings {
    mode: Mode::Table,
    scale: 1e13,
    jitter_unit: JitterUnit::Nanoseconds,
    delay_source: DelaySource::HalfRtt,
    default_gap: 0.0,
    packet: 1200,
};

/// Everything that can be set.
pub(super) const TABLE: &[Setting] = &[
    Setting {
        name: "mode",
        unit: "",
        doc: "no congestion control, the equation alone, or with the table",
        source: "Lissah and Mbise 2019, section 4 and figure 3",
        kind: Choice(&["none", "equation", "table"]),
    },
    Setting {
        name: "scale",
        unit: "",
        doc: "the product of delay, jitter and fraction lost is divided by it, which gives microseconds",
        source: "equation (1): 1e13; the text below it: 1e9, which fits `jitter_unit` = timestamp",
        kind: Number(1.0, 1e18),
    },
    Setting {
        name: "jitter_unit",
        unit: "",
        doc: "the product takes the jitter in nanoseconds, or in units of a 90 kHz clock as the report has it",
        source: "not stated; RFC 3550 section 6.4.1 has timestamp units, RFC 3551 section 5 the clock",
        kind: Choice(&["ns", "timestamp"]),
    },
    Setting {
        name: "delay_source",
        unit: "",
        doc: "half of the round trip that a receiver report gives, or the true delay of the last packet",
        source: "section 3: the delay of the last packet before the report, by a clock common to both ends",
        kind: Choice(&["rtt/2", "simulator"]),
    },
    Setting {
        name: "default_gap",
        unit: "us",
        doc: "the table's gap while nothing is lost, and before the first report; 0: none",
        source: "section 3 has one and does not print it; ours: 0",
        kind: Number(0.0, 1e6),
    },
    Setting {
        name: "packet",
        unit: "bytes",
        doc: "the packet with which a gap makes a rate for an encoder that adapts",
        source: "ours: a full payload; the document's video does not adapt",
        kind: Whole(1, 65_535),
    },
];

/// Units of a 90 kHz clock in a nanosecond (RFC 3551 section 5).
const TICKS: f64 = 90_000.0 / 1e9;

impl Settings {
    fn preset(name: &str) -> Result<Self, SettingsError> {
        let mode = match name {
            "table" => Mode::Table,
            "equation" => Mode::Equation,
            "none" => Mode::None,
            _ => return Err(unknown_preset(NAME, name, PRESETS)),
        };
        Ok(Self { mode, ..DEFAULT })
    }

    /// A preset with `overrides` (an object or null) laid over it.
    ///
    /// # Errors
    /// When there is no such preset or setting, or a value is wrong.
    pub fn with(preset: &str, overrides: &Value) -> Result<Self, SettingsError> {
        resolve(NAME, TABLE, &Self::preset(preset)?, overrides)
    }

    /// All values of a preset.
    pub(super) fn defaults(preset: &str) -> Result<Value, SettingsError> {
        Ok(serde_json::to_value(Self::preset(preset)?).unwrap_or_default())
    }

    /// Equation (1), in microseconds: the delay in nanoseconds, the jitter in its unit, the 8-bit fraction
    /// lost. A delay or jitter below zero is none.
    #[must_use]
    pub fn equation(&self, delay: Span, jitter: Span, fraction_lost: u8) -> f64 {
        let jitter = jitter.max(Span::ZERO).as_nanos() as f64;
        let jitter = match self.jitter_unit {
            JitterUnit::Nanoseconds => jitter,
            JitterUnit::Timestamp => jitter * TICKS,
        };
        delay.max(Span::ZERO).as_nanos() as f64 * jitter * f64::from(fraction_lost) / self.scale
    }
}
