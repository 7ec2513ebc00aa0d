//! Settings of TFRC, with the values of each preset of `tfrc` and `tfrc-sp`.

use super::history;
use crate::settings::{Kind, SettingsError, resolve, settings, unknown_preset, words};
use serde_json::Value;

/// Name of TFRC for packets of about one size.
pub(crate) const TFRC: &str = "tfrc";
/// Name of TFRC for small packets (RFC 4828).
pub(crate) const TFRC_SP: &str = "tfrc-sp";

/// Names of the presets of both.
pub(crate) const PRESETS: &[&str] = &["rfc5348", "rfc3448"];

words! {
    /// RFC whose rules calculate the rate from feedback and its absence.
    RateRules:
    /// RFC 5348: receive rates of two round trips, data-limited intervals, idle senders resume at the initial rate.
    Rfc5348 = "rfc5348",
    /// RFC 3448: at most twice the last receive rate, however much the sender had to send.
    Rfc3448 = "rfc3448",
}
words! {
    /// Bytes allowed in the first round trip.
    InitialWindow:
    /// Two to four segments.
    Rfc3390 = "rfc3390",
    /// One segment.
    OnePacket = "one-packet",
}
words! {
    /// Receive rate from which the interval before the first loss is calculated.
    FirstInterval:
    /// Largest receive rate so far.
    Largest = "largest",
    /// Present receive rate.
    Present = "present",
}

use Kind::{Flag, Number, Whole};

const RFC5348: Settings = preset(0);
const RFC3448: Settings = preset(1);
/// Preset of `tfrc-sp` with the rules of RFC 5348.
const SMALL: Settings = preset(2);
/// Preset of `tfrc-sp` with the rules of RFC 3448, where the two RFCs differ.
const SMALL_3448: Settings = Settings {
    rules: RFC3448.rules,
    initial_window: RFC3448.initial_window,
    first_interval: RFC3448.first_interval,
    discount_threshold: RFC3448.discount_threshold,
    ..SMALL
};

// Each block is a setting: name, type, unit, allowed values, [rfc5348, rfc3448, tfrc-sp], meaning, source.
settings! {
    // -- the sender's rate ---------------------------------------------------------------------------
    rules: RateRules, "", RateRules::KIND, [RateRules::Rfc5348, RateRules::Rfc3448, RateRules::Rfc5348],
        "RFC whose rules calculate the rate from feedback and its absence",
        "RFC 5348 sections 4.3 and 4.4; RFC 3448 sections 4.3 and 4.4";
    initial_window: InitialWindow, "", InitialWindow::KIND,
        [InitialWindow::Rfc3390, InitialWindow::OnePacket, InitialWindow::Rfc3390],
        "bytes allowed in the first round trip: min(4 mss, max(2 mss, 4380 bytes)) (`rfc3390`), or one segment \
         (`one-packet`)",
        "RFC 5348 section 4.2; RFC 3448 section 4.3 (s/R)";
    mss: u64, "bytes", Whole(1, 65_535), [1460, 1460, 1460],
        "maximum segment size, for the initial window, and as segment size before anything is sent",
        "RFC 5348 section 4.2; 1460 as in RFC 4828 section 3";
    segment: u64, "bytes", Whole(0, 65_535), [0, 0, 1460],
        "segment size s of the equation; 0: the mean size of the packets sent (at the receiver: of the packets \
         received)",
        "RFC 5348 section 4.1; RFC 4828 section 3: 1460";
    size_weight: f64, "", Number(1e-6, 1.0), [0.0625, 0.0625, 0.0625],
        "weight of a new packet in the mean packet size", "ours: 1/16; RFC 5348 section 4.1 leaves it open";
    rtt_weight: f64, "", Number(1e-6, 1.0), [0.1, 0.1, 0.1],
        "weight of a new sample in the round-trip time (1 - q)", "RFC 5348 section 4.3: q = 0.9";
    delayed_acks: u64, "packets", Whole(1, 100), [1, 1, 1],
        "number of segments acknowledged by one ACK of the TCP that is emulated (b)",
        "RFC 5348 section 3.1: 1 is RECOMMENDED";
    rto_rtts: f64, "round trips", Number(0.0, 1000.0), [4.0, 4.0, 4.0],
        "retransmission timeout of the TCP that is emulated", "RFC 5348 section 3.1: t_RTO = 4 R";
    max_backoff: f64, "s", Number(1.0, 3600.0), [64.0, 64.0, 64.0],
        "maximum time between two segments (t_mbi)", "RFC 5348 section 4.3: 64 s";
    start_timeout: f64, "s", Number(0.1, 64.0), [2.0, 2.0, 2.0],
        "initial nofeedback timer, before the first round-trip time", "RFC 5348 section 4.2: 2 s";
    oscillation_reduction: bool, "", Flag, [true, true, true],
        "whether the rate is lower than allowed while the round-trip time is above its mean, and higher while below",
        "RFC 5348 section 4.5 and RFC 3448 section 4.5, both OPTIONAL";
    sqmean_weight: f64, "", Number(1e-6, 1.0), [0.1, 0.1, 0.1],
        "weight of a new sample in the mean of the square root of the round-trip time (1 - q2)",
        "RFC 5348 section 4.5: q2 = 0.9";
    header: u64, "bytes", Whole(0, 1000), [0, 0, 40],
        "header bytes charged for each packet in addition to its size; 0: none", "RFC 4828 section 3: H = 40";
    min_gap: f64, "ms", Number(0.0, 1000.0), [0.0, 0.0, 10.0],
        "minimum time between two packets; 0: none", "RFC 4828 section 3: 10 ms";
    drain_time: f64, "s", Number(0.0, 60.0), [0.5, 0.5, 0.5],
        "time in which the bytes waiting in the pacer are to leave: the encoder gets less than the allowed rate \
         accordingly, but at least half; 0: the whole allowed rate",
        "ours: RFC 5348 leaves the application's queue to the application";
    // -- the receiver's loss event rate --------------------------------------------------------------
    reordering: u64, "packets", Whole(1, 100), [3, 3, 3],
        "number of later arrivals after which a missing packet is lost (NDUPACK)", "RFC 5348 section 5.1";
    first_interval: FirstInterval, "", FirstInterval::KIND,
        [FirstInterval::Largest, FirstInterval::Present, FirstInterval::Largest],
        "receive rate from which the interval before the first loss is calculated: the largest so far (`largest`), \
         or the present one (`present`)",
        "RFC 5348 section 6.3.1: the largest so far; RFC 3448 section 6.3.1: the present one";
    discounting: bool, "", Flag, [true, true, true],
        "whether a long interval without loss reduces the weights of older intervals",
        "RFC 5348 section 5.5, OPTIONAL; RFC 3448 section 5.5";
    discount_threshold: f64, "", Number(0.0, 1.0), [0.25, 0.5, 0.25],
        "with `discounting`: minimum factor of the weights of older intervals",
        "THRESHOLD in section 5.5: 0.25 in RFC 5348 (its section 9 says so), 0.5 in RFC 3448";
    short_intervals: bool, "", Flag, [false, false, true],
        "whether an interval of at most two round trips with N packets and K losses has the length N/K, and the open \
         interval counts only after two round trips",
        "RFC 4828 section 3";
}

impl Settings {
    fn preset(controller: &'static str, name: &str) -> Result<Self, SettingsError> {
        match (controller, name) {
            (TFRC, "rfc5348") => Ok(RFC5348),
            (TFRC, "rfc3448") => Ok(RFC3448),
            (_, "rfc5348") => Ok(SMALL),
            (_, "rfc3448") => Ok(SMALL_3448),
            _ => Err(unknown_preset(controller, name, PRESETS)),
        }
    }

    /// Settings of a preset of `tfrc` or `tfrc-sp` with `overrides` (an object or null).
    ///
    /// # Errors
    /// Fails if there is no such preset or setting, or a value is wrong.
    pub fn with(controller: &'static str, preset: &str, overrides: &Value) -> Result<Self, SettingsError> {
        resolve(controller, TABLE, &Self::preset(controller, preset)?, overrides)
    }

    /// Values of a preset as JSON.
    pub(crate) fn defaults(controller: &'static str, preset: &str) -> Result<Value, SettingsError> {
        Ok(serde_json::to_value(Self::preset(controller, preset)?).unwrap_or_default())
    }

    /// Parameters of the receiver's loss history.
    pub(crate) fn history(&self) -> history::Config {
        history::Config {
            reordering: self.reordering as u32,
            discount_threshold: if self.discounting { self.discount_threshold } else { 1.0 },
            short_intervals: self.short_intervals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn presets_differ_where_the_page_says_so() {
        let differ = |a: &Settings, b: &Settings| -> Vec<String> {
            let [a, b] = [a, b].map(|settings| serde_json::to_value(settings).expect("values"));
            let names = TABLE.iter().map(|setting| setting.name);
            names.filter(|name| a[name] != b[name]).map(Into::into).collect()
        };
        assert_eq!(
            differ(&RFC5348, &RFC3448),
            ["rules", "initial_window", "first_interval", "discount_threshold"]
        );
        assert_eq!(
            differ(&SMALL, &SMALL_3448),
            ["rules", "initial_window", "first_interval", "discount_threshold"]
        );
        assert_eq!(differ(&RFC5348, &SMALL), ["segment", "header", "min_gap", "short_intervals"]);
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        let refusal =
            |preset, overrides| Settings::with(TFRC, preset, &overrides).expect_err("refused").to_string();
        assert_eq!(
            refusal("rfc4342", Value::Null),
            "tfrc: `preset` is `rfc4342`, expected one of `rfc5348`, `rfc3448`"
        );
        assert_eq!(
            refusal("rfc5348", json!({"reordering": 0})),
            "tfrc: `reordering` is 0, expected a whole number from 1 to 100 packets"
        );
        assert_eq!(
            refusal("rfc5348", json!({"rules": "rfc1"})),
            "tfrc: `rules` is \"rfc1\", expected one of `rfc5348`, `rfc3448`"
        );
    }
}
