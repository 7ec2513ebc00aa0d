//! Every setting of GCC's presets does something: another value, other decisions.

use crate::support::Bottleneck;
use serde_json::{Value, json};
use tidegate_controllers::{Kind, Setting, find};
use tidegate_core::{Rate, Span};

/// From which second on: capacity in kbit/s, random loss, whether feedback is cut.
const PHASES: [(u64, u64, f64, bool); 7] = [
    (0, 250, 0.0, false),
    (3, 2000, 0.0, false),
    (35, 400, 0.0, false),
    (45, 2000, 0.08, false),
    (55, 2000, 0.15, false),
    (65, 1000, 0.0, true),
    (75, 1000, 0.02, false),
];

/// All that is decided with these settings in 90 s that have a bit of everything, with delays that swing from report to
/// report, a little and much.
fn decided(name: &str, preset: &str, overrides: &Value) -> [u64; 2] {
    [11, 41].map(|swing| {
        let mut link = Bottleneck::with(name, preset, overrides, Rate::from_kbps(1000));
        for step in 0..1800 {
            let &(_, capacity, loss, cut) =
                PHASES.iter().rev().find(|phase| phase.0 * 20 <= step).expect("from zero on");
            (link.capacity, link.loss) = (Rate::from_kbps(capacity), loss);
            link.far = Span::from_millis(step as i64 * 37 % swing);
            let _ = link.step(cut);
        }
        link.decisions.hash()
    })
}

/// Other values of a setting than this one.
fn others(setting: &Setting, value: &Value) -> Vec<Value> {
    match setting.kind {
        Kind::Flag => vec![json!(value == &json!(false))],
        Kind::Choice(words) => words.iter().map(|word| json!(word)).filter(|word| word != value).collect(),
        Kind::Whole(..) => vec![json!(value.as_u64().expect("whole") / 2)],
        // half and three times what it is; of what is off, some tens of milliseconds or a second
        Kind::Number(low, high) => {
            let x = value.as_f64().expect("a number");
            let tried = if x == 0.0 { [20.0, 1000.0] } else { [0.5 * x, 3.0 * x] };
            tried.map(|other| json!(other.clamp(low, high))).to_vec()
        }
    }
}

#[test]
fn no_setting_is_without_effect() {
    for name in ["gcc", "gcc-remb"] {
        let entry = find(name).expect("registered");
        // libwebrtc's whole controller has its recordings
        for preset in entry.presets.iter().filter(|preset| **preset != "libwebrtc") {
            let defaults = (entry.defaults)(preset).expect("known");
            for setting in (entry.settings)(preset) {
                let mut base = json!({});
                if (name, setting.name) == ("gcc", "loss_interval") {
                    // a window of packets has no length in time
                    base = json!({"loss_over": "time"});
                }
                let before = decided(name, preset, &base);
                let changed = others(setting, &defaults[setting.name]).into_iter().any(|value| {
                    let mut overrides = base.clone();
                    overrides[setting.name] = value;
                    decided(name, preset, &overrides) != before
                });
                assert!(changed, "{name}:{preset}: {} has no effect", setting.name);
            }
        }
    }
}
