//! Settings of Sprout, with the values of each preset of `sprout` and `sprout-ewma`.

use crate::settings::{Kind, SettingsError, resolve, settings, unknown_preset, words};
use serde_json::Value;

/// Name of Sprout, with inference over a distribution of the rate.
pub(crate) const SPROUT: &str = "sprout";
/// Name of Sprout-EWMA, with a moving average.
pub(crate) const SPROUT_EWMA: &str = "sprout-ewma";

/// Names of the presets of both.
pub(crate) const PRESETS: &[&str] = &["nsdi2013", "bulk", "aware"];

words! {
    /// Meaning of arrivals while the sender has nothing more to send.
    AppLimited:
    /// All that the link can carry, as at other times.
    Observe = "observe",
    /// Lower bound of what the link can carry.
    Ignore = "ignore",
}
words! {
    /// Rate offered to the encoder.
    Offer:
    /// Rate of the forecast.
    Forecast = "forecast",
    /// Session's maximum; the window limits the rate.
    All = "all",
}

use Kind::{Number, Whole};

const NSDI2013: Settings = preset(0);
const BULK: Settings = preset(1);
const AWARE: Settings = preset(2);

// Each block is a setting: name, type, unit, allowed values, [nsdi2013, bulk, aware] of sprout, meaning, source.
settings! {
    // -- the receiver ----------------------------------------------------------------------------
    average_weight: f64, "", Number(0.0, 1.0), [0.0, 0.0, 0.0],
        "weight of a new tick in the moving average that is forecast; 0: inference over the distribution of rates",
        "NSDI 2013 section 5.3; 1/8 in the receiver of Sprout-EWMA";
    confidence: f64, "%", Number(1.0, 99.0), [95.0, 95.0, 95.0],
        "probability that at least the forecast bytes are delivered; not used if a moving average (EWMA) is forecast",
        "NSDI 2013 section 3.3: 95 %; receiver.cc: the quantile 0.05";
    packet: u64, "bytes", Whole(1, 65_535), [1400, 1400, 1400],
        "number of RTP bytes that the receiver counts as one packet", "receiver.cc: len / 1400.0";
    app_limited: AppLimited, "", AppLimited::KIND,
        [AppLimited::Observe, AppLimited::Observe, AppLimited::Ignore],
        "meaning of arrivals while the sender has nothing more to send: the rate of the link (`observe`), or a lower \
         bound of it (`ignore`)",
        "ours, after Hermanns (IETF 88, 2013); the original observes";
    // -- the sender ------------------------------------------------------------------------------
    forecast_packet: u64, "bytes", Whole(1, 65_535), [1440, 1440, 1440],
        "number of bytes that the sender may send for each packet of the forecast", "sproutconn.cc: 1440";
    delay_ticks: u64, "ticks", Whole(1, 7), [5, 5, 5],
        "number of ticks of 20 ms within which the bytes sent are to be delivered",
        "sproutconn.h: TARGET_DELAY_TICKS";
    packet_overhead: u64, "bytes", Whole(0, 1000), [50, 50, 50],
        "increase of the sequence number for each packet, in addition to its RTP bytes", "network.cc: new_packet";
    reordering: f64, "ms", Number(0.0, 1000.0), [10.0, 10.0, 10.0],
        "reordering window: a missing packet is lost when a packet sent this much later has arrived",
        "network.h: REORDER_LIMIT";
    heartbeat: f64, "ms", Number(1.0, 10_000.0), [50.0, 50.0, 50.0],
        "maximum time without departures, after which an empty packet is sent even if the window is full; announced \
         as time_to_next by the last packet of a flight",
        "sproutbt2.cc: fallback_interval; NSDI 2013 section 3.4";
    offer: Offer, "", Offer::KIND, [Offer::Forecast, Offer::All, Offer::Forecast],
        "rate offered to the encoder: that of the forecast (`forecast`), or the session's maximum, for a source that \
         always has something to send (`all`)",
        "ours: the paper's sender always has something to send";
    drain_time: f64, "s", Number(0.0, 60.0), [0.5, 0.5, 0.5],
        "with `offer` = forecast: time in which the bytes waiting in the pacer are to leave; the encoder gets less \
         than the forecast accordingly, but at least half; 0: the whole forecast",
        "ours: the original leaves the application's queue to the application";
}

/// Weight of a tick in Sprout-EWMA.
const AVERAGE_WEIGHT: f64 = 0.125;

impl Settings {
    fn preset(controller: &'static str, name: &str) -> Result<Self, SettingsError> {
        let settings = match name {
            "nsdi2013" => NSDI2013,
            "bulk" => BULK,
            "aware" => AWARE,
            _ => return Err(unknown_preset(controller, name, PRESETS)),
        };
        let average_weight = if controller == SPROUT_EWMA { AVERAGE_WEIGHT } else { 0.0 };
        Ok(Self { average_weight, ..settings })
    }

    /// Settings of a preset of `sprout` or `sprout-ewma` with `overrides` (an object or null).
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn presets_differ_where_the_pages_say_so() {
        let differ = |a: &Settings, b: &Settings| -> Vec<String> {
            let [a, b] = [a, b].map(|settings| serde_json::to_value(settings).expect("values"));
            let names = TABLE.iter().map(|setting| setting.name);
            names.filter(|name| a[name] != b[name]).map(Into::into).collect()
        };
        assert_eq!(differ(&NSDI2013, &BULK), ["offer"]);
        assert_eq!(differ(&NSDI2013, &AWARE), ["app_limited"]);
        let ewma = Settings::with(SPROUT_EWMA, "nsdi2013", &Value::Null).expect("a preset");
        assert_eq!(differ(&NSDI2013, &ewma), ["average_weight"]);
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        let refusal =
            |preset, overrides| Settings::with(SPROUT, preset, &overrides).expect_err("refused").to_string();
        assert_eq!(
            refusal("alfalfa", Value::Null),
            "sprout: `preset` is `alfalfa`, expected one of `nsdi2013`, `bulk`, `aware`"
        );
        assert_eq!(
            refusal("bulk", json!({"delay_ticks": 8})),
            "sprout: `delay_ticks` is 8, expected a whole number from 1 to 7 ticks"
        );
        assert_eq!(
            refusal("aware", json!({"app_limited": "yes"})),
            "sprout: `app_limited` is \"yes\", expected one of `observe`, `ignore`"
        );
    }
}
