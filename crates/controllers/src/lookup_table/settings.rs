//! Settings of the lookup-table scheme, and its equation.

use crate::settings::{Kind, SettingsError, resolve, settings, unknown_preset, words};
use Kind::{Number, Whole};
use serde_json::Value;
use tidegate_core::Span;

pub(super) const NAME: &str = "lookup_table";

/// Names of the presets: the three senders of figure 3, the proposed one first.
pub(super) const PRESETS: &[&str] = &["table", "equation", "none"];

words! {
    /// Sender of figure 3.
    Mode:
    /// No congestion control.
    None = "none",
    /// The equation is used for each report.
    Equation = "equation",
    /// The first result of the equation holds for that fraction lost.
    Table = "table",
}
words! {
    /// Source of the equation's delay.
    DelaySource:
    /// Half of the round trip from LSR and DLSR of the receiver report.
    HalfRtt = "rtt/2",
    /// True delay of the last received packet, which the driver knows and the receiver half sends.
    Simulator = "simulator",
}
words! {
    /// Unit of the equation's jitter.
    JitterUnit:
    /// Converted to time.
    Nanoseconds = "ns",
    /// RTP timestamp units of a 90 kHz video clock, as in receiver reports.
    Timestamp = "timestamp",
}

// Each block is a setting: name, type, unit, allowed values, [table, equation, none], meaning, source.
settings! {
    mode: Mode, "", Mode::KIND, [Mode::Table, Mode::Equation, Mode::None],
        "sender: without congestion control (`none`), with the equation alone (`equation`), or with equation and \
         table (`table`)",
        "Lissah and Mbise 2019, section 4 and figure 3";
    scale: f64, "", Number(1.0, 1e18), [1e13, 1e13, 1e13],
        "divisor of the product of delay, jitter and fraction lost in the equation, which gives microseconds",
        "equation (1): 1e13; the text below it: 1e9, which fits `jitter_unit` = timestamp";
    jitter_unit: JitterUnit, "", JitterUnit::KIND,
        [JitterUnit::Nanoseconds, JitterUnit::Nanoseconds, JitterUnit::Nanoseconds],
        "unit of the jitter in the equation: nanoseconds (`ns`), or RTP timestamp units of a 90 kHz clock, as \
         in receiver reports (`timestamp`)",
        "not stated; RFC 3550 section 6.4.1 has timestamp units, RFC 3551 section 5 the clock";
    delay_source: DelaySource, "", DelaySource::KIND,
        [DelaySource::HalfRtt, DelaySource::HalfRtt, DelaySource::HalfRtt],
        "delay in the equation: half of the round trip that a receiver report gives (`rtt/2`), or the true delay of \
         the last packet (`simulator`)",
        "section 3: the delay of the last packet before the report, by a clock common to both ends";
    default_gap: f64, "us", Number(0.0, 1e6), [0.0, 0.0, 0.0],
        "gap in the table without losses and before the first report; 0: none",
        "section 3 has one and does not print it; ours: 0";
    packet: u64, "bytes", Whole(1, 65_535), [1200, 1200, 1200],
        "packet size with which a gap gives the rate of an encoder that adapts",
        "ours: a full payload; the document's video does not adapt";
}

/// Ticks of a 90 kHz clock per nanosecond (RFC 3551 section 5).
const TICKS_PER_NANO: f64 = 90_000.0 / 1e9;

impl Settings {
    fn preset(name: &str) -> Result<Self, SettingsError> {
        match PRESETS.iter().position(|&preset| preset == name) {
            Some(column) => Ok(preset(column)),
            None => Err(unknown_preset(NAME, name, PRESETS)),
        }
    }

    /// Settings of a preset with `overrides` (an object or null).
    ///
    /// # Errors
    /// Fails if there is no such preset or setting, or a value is wrong.
    pub fn with(preset: &str, overrides: &Value) -> Result<Self, SettingsError> {
        resolve(NAME, TABLE, &Self::preset(preset)?, overrides)
    }

    /// Values of a preset as JSON.
    pub(super) fn defaults(preset: &str) -> Result<Value, SettingsError> {
        Ok(serde_json::to_value(Self::preset(preset)?).unwrap_or_default())
    }

    /// Gap by equation (1), us, from the delay in ns, the jitter in its unit, and the 8-bit fraction lost. A negative delay or
    /// jitter counts as zero.
    #[must_use]
    pub fn equation(&self, delay: Span, jitter: Span, fraction_lost: u8) -> f64 {
        let jitter = jitter.max(Span::ZERO).as_nanos() as f64;
        let jitter = match self.jitter_unit {
            JitterUnit::Nanoseconds => jitter,
            JitterUnit::Timestamp => jitter * TICKS_PER_NANO,
        };
        delay.max(Span::ZERO).as_nanos() as f64 * jitter * f64::from(fraction_lost) / self.scale
    }
}
