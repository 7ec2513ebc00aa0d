//! Sender with a constant rate, as background traffic and for comparison.

use crate::Entry;
use crate::settings::{Kind, Setting, SettingsError, resolve, unknown_preset};
use serde::{Deserialize, Serialize};
use tidegate_core::control::{Context, Controller, Decision, FeedbackKind, Limits, Needs, Report};
use tidegate_core::units::{Rate, Time};

const NAME: &str = "fixed";
const PRESETS: &[&str] = &["default"];

/// Registry entry for this controller.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "constant rate, without reaction to feedback",
    presets: PRESETS,
    settings: |_| TABLE,
    in_call: Entry::NO_CALL_SETTINGS,
    defaults: |preset| {
        check_preset(preset)?;
        Ok(serde_json::json!({ "rate": Settings::default().rate }))
    },
    build: |preset, overrides| {
        check_preset(preset)?;
        let settings = resolve(NAME, TABLE, &Settings::default(), overrides)?;
        Ok(Box::new(Fixed { rate: Rate::from_bps_f64(settings.rate) }))
    },
    receiver: None,
};

const TABLE: &[Setting] = &[Setting {
    name: "rate",
    unit: "bit/s",
    doc: "sending rate, kept within the session's limits",
    source: "ours: 1 Mb/s, the reference capacity of RFC 8867 section 4",
    kind: Kind::Number(1.0, 1e12),
}];

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Settings {
    rate: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { rate: 1e6 }
    }
}

fn check_preset(preset: &str) -> Result<(), SettingsError> {
    if PRESETS.contains(&preset) { Ok(()) } else { Err(unknown_preset(NAME, preset, PRESETS)) }
}

struct Fixed {
    rate: Rate,
}

impl Controller for Fixed {
    fn needs(&self) -> Needs {
        Needs::feedback(FeedbackKind::None)
    }

    fn on_report(&mut self, _now: Time, _report: &Report, cx: &mut Context<'_>) -> Decision {
        cx.unchanged()
    }

    fn on_limits(&mut self, _now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        Decision::rate(self.rate.clamp(limits.min, limits.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tidegate_core::{ControllerHost, Stream};

    fn host(overrides: &Value, limits: &Limits) -> Result<ControllerHost, SettingsError> {
        let controller = (ENTRY.build)("default", overrides)?;
        Ok(ControllerHost::new("test", controller, Stream::new(1, "test", "rng"), Time::ZERO, limits)
            .expect("the contract is kept"))
    }

    #[test]
    fn it_sends_at_its_rate_whatever_is_reported() {
        let mut host = host(&json!({ "rate": 123_456 }), &Limits::default()).expect("valid");
        let first = *host.decision();
        assert_eq!(first, Decision::rate(Rate::from_bps(123_456)));
        let bad = Report { remb: Some(Rate::from_bps(1)), ..Report::default() };
        assert_eq!(host.report(Time::from_secs(1), &bad), Ok(&first));
        assert_eq!(
            self::host(&Value::Null, &Limits::default()).expect("valid").decision().target,
            Rate::from_mbps(1)
        );
    }

    #[test]
    fn limits_hold_it_and_let_it_go() {
        let low = Limits { max: Rate::from_kbps(500), ..Limits::default() };
        let mut host = host(&Value::Null, &low).expect("valid");
        assert_eq!(host.decision().target, Rate::from_kbps(500));
        assert_eq!(host.limits(Time::ZERO, &Limits::default()).expect("fine").pacing, Rate::from_mbps(1));
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        let refusal =
            |overrides: Value| host(&overrides, &Limits::default()).err().expect("refused").to_string();
        assert_eq!(refusal(json!({"rates": 1})), "fixed: `rates` is not a setting, expected one of `rate`");
        assert_eq!(
            refusal(json!({"rate": "1"})),
            "fixed: `rate` is \"1\", expected a number from 1 to 1000000000000 bit/s"
        );
        assert!(refusal(json!({"rate": 0})).starts_with("fixed: `rate` is 0, expected a number from 1"));
        assert_eq!(refusal(json!([1])), "fixed: the settings are [1], expected a JSON object");
        let error = (ENTRY.build)("fast", &Value::Null).err().expect("refused");
        assert_eq!(error.to_string(), "fixed: `preset` is `fast`, expected one of `default`");
    }
}
