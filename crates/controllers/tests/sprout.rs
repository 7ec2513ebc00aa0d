//! Sprout against the original's forecasts, against closed forms, and with both halves over a path.

mod support;

use serde_json::Value;
use support::{read, shared};
use tidegate_controllers::sprout::forecast::Forecast;
use tidegate_controllers::sprout::model::{BINS, Belief, TICK, Transition, rate};
use tidegate_controllers::sprout::settings::Settings;
use tidegate_controllers::sprout::ticks::{Ticks, replay};
use tidegate_core::{Span, Time};

fn settings(name: &'static str, preset: &str) -> Settings {
    Settings::with(name, preset, &Value::Null).expect("a preset")
}

/// Bytes and time to next of each tick, and what the original forecasts after it.
fn vector(text: &str) -> (Vec<u64>, Vec<Span>, Vec<Forecast>) {
    let (mut bytes, mut silences, mut forecasts) = (vec![], vec![], vec![]);
    for line in text.lines().skip(1) {
        let row: Vec<u32> = line.split(',').map(|field| field.parse().expect("a number")).collect();
        let [_, _, came, silence, ref forecast @ ..] = row[..] else { panic!("{line}") };
        bytes.push(u64::from(came));
        silences.push(Span::from_millis(i64::from(silence)));
        forecasts.push(forecast.try_into().expect("eight"));
    }
    (bytes, silences, forecasts)
}

fn agrees(name: &str, text: &str) {
    let (bytes, silences, expected) = vector(text);
    assert!(bytes.len() >= 70, "{name}");
    let found = replay(&settings("sprout", "nsdi2013"), &bytes, &silences);
    for (tick, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "{name}, tick {tick}");
    }
}

#[test]
fn forecasts_are_those_of_the_original() {
    for name in ["sprout_onoff.csv", "sprout_poisson300.csv"] {
        agrees(name, &read(&format!("tests/data/sprout/{name}")));
        if let Some(text) = shared(&format!("vectors/{name}")) {
            agrees(name, &text);
        }
    }
}
