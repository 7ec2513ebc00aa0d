//! Presets by name. Each preset has its own file; this one has the parts that all share.

pub mod aiortc;
pub mod draft_02;
pub mod hoang2017;
pub mod libwebrtc_v1;

use super::groups::SendClock;
use super::receiver::Receiver;
use super::{ENTRY, REMB, libwebrtc};
use crate::Content;
use crate::settings::{Setting, SettingsError, quoted, resolve, to_value, unknown_preset};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_core::control::{Controller, ReceiverHalf};

/// Location of the delay-based part (draft 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Placement (a): all at the sender, from per-packet feedback.
    Sender,
    /// Placement (b): at the receiver, from abs-send-time; its rate goes back as REMB.
    Receiver,
}

/// Settings of a preset, from which its halves are built.
pub trait Preset: Default + Serialize + DeserializeOwned {
    /// Name of the preset.
    const NAME: &'static str;

    /// Settings in a placement; empty if the preset does not exist there.
    fn table(placement: Placement) -> &'static [Setting];

    /// Settings that a call makes by default.
    #[must_use]
    fn in_call(content: Content) -> Value {
        let _ = content;
        Value::Object(serde_json::Map::new())
    }

    /// Key, value and expected value, if two settings contradict each other.
    fn contradiction(&self) -> Option<(&'static str, f64, String)> {
        None
    }

    /// Builds the sending half.
    fn sender(self, placement: Placement) -> Box<dyn Controller>;

    /// Builds the receiving half of the second placement.
    fn receiver(self) -> Option<Receiver> {
        None
    }
}

/// Result for settings that may be refused.
type Checked<T> = Result<T, SettingsError>;

/// Functions of a preset, independent of its type.
struct PresetEntry {
    name: &'static str,
    table: fn(Placement) -> &'static [Setting],
    in_call: fn(Content) -> Value,
    defaults: fn(Placement) -> Checked<Value>,
    sender: fn(Placement, &Value) -> Checked<Box<dyn Controller>>,
    receiver: fn(&Value) -> Checked<Option<Receiver>>,
}

const ALL: [PresetEntry; 5] = [
    PresetEntry::new::<libwebrtc::settings::Settings>(),
    PresetEntry::new::<libwebrtc_v1::Settings>(),
    PresetEntry::new::<draft_02::Settings>(),
    PresetEntry::new::<aiortc::Settings>(),
    PresetEntry::new::<hoang2017::Settings>(),
];

impl PresetEntry {
    const fn new<P: Preset>() -> Self {
        Self {
            name: P::NAME,
            table: P::table,
            in_call: P::in_call,
            defaults: |placement| {
                let mut values = to_value(placement.name(), &P::default())?;
                if let Value::Object(map) = &mut values {
                    map.retain(|key, _| P::table(placement).iter().any(|setting| setting.name == key));
                }
                Ok(values)
            },
            sender: |placement, overrides| Ok(placement.settings_with::<P>(overrides)?.sender(placement)),
            receiver: |overrides| Ok(Placement::Receiver.settings_with::<P>(overrides)?.receiver()),
        }
    }
}

impl Placement {
    /// Name of the controller in the registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "gcc",
            Self::Receiver => "gcc-remb",
        }
    }

    /// Resolution of the send times in the delay-based part.
    #[must_use]
    pub const fn send_clock(self) -> SendClock {
        match self {
            Self::Sender => SendClock::Exact,
            Self::Receiver => SendClock::AbsSendTime,
        }
    }

    const fn presets(self) -> &'static [&'static str] {
        match self {
            Self::Sender => ENTRY.presets,
            Self::Receiver => REMB.presets,
        }
    }

    fn find(self, preset: &str) -> Checked<PresetEntry> {
        let matches = |entry: &PresetEntry| entry.name == preset && self.presets().contains(&preset);
        ALL.into_iter().find(matches).ok_or_else(|| unknown_preset(self.name(), preset, self.presets()))
    }

    /// Settings of a preset; empty if it does not exist.
    #[must_use]
    pub fn settings(self, preset: &str) -> &'static [Setting] {
        self.find(preset).map_or(&[], |entry| (entry.table)(self))
    }

    /// Settings that a call makes of a preset by default.
    #[must_use]
    pub fn in_call(self, preset: &str, content: Content) -> Value {
        self.find(preset).map_or(Value::Null, |entry| (entry.in_call)(content))
    }

    /// Returns all values of a preset as a JSON object.
    ///
    /// # Errors
    /// Fails if there is no such preset.
    pub fn defaults(self, preset: &str) -> Result<Value, SettingsError> {
        (self.find(preset)?.defaults)(self)
    }

    /// Builds the sending half of a preset with a JSON object of overrides.
    ///
    /// # Errors
    /// Fails if there is no such preset or key, a value is of the wrong type or out of its range, or two values
    /// contradict each other.
    pub fn sender(self, preset: &str, overrides: &Value) -> Result<Box<dyn Controller>, SettingsError> {
        (self.find(preset)?.sender)(self, overrides)
    }

    /// Builds the receiving half of the second placement.
    ///
    /// # Errors
    /// As those of [`Self::sender`].
    pub fn receiver(preset: &str, overrides: &Value) -> Result<Box<dyn ReceiverHalf>, SettingsError> {
        match (Self::Receiver.find(preset)?.receiver)(overrides)? {
            Some(receiver) => Ok(Box::new(receiver)),
            None => Err(unknown_preset(Self::Receiver.name(), preset, Self::Receiver.presets())),
        }
    }

    fn settings_with<P: Preset>(self, overrides: &Value) -> Checked<P> {
        let refuse = |key: &str, actual, expected| {
            Err(SettingsError { controller: self.name(), key: key.into(), actual, expected })
        };
        let table = P::table(self);
        let mut keys = overrides.as_object().into_iter().flat_map(serde_json::Map::keys);
        if let Some(key) = keys.find(|key| table.iter().all(|setting| setting.name != *key)) {
            let names: Vec<&str> = table.iter().map(|setting| setting.name).collect();
            return refuse(key, self.not_a_setting(P::NAME, key), format!("one of {}", quoted(&names)));
        }
        let settings: P = resolve(self.name(), table, &P::default(), overrides)?;
        match settings.contradiction() {
            Some((key, found, expected)) => refuse(key, found.to_string(), expected),
            None => Ok(settings),
        }
    }

    /// Reason why a preset has no such setting, with the presets that have it.
    fn not_a_setting(self, preset: &str, key: &str) -> String {
        let has = |name: &&&str| self.settings(name).iter().any(|setting| setting.name == key);
        let others: Vec<&str> = self.presets().iter().filter(has).copied().collect();
        match &others[..] {
            [] => format!("not a setting of `{preset}`"),
            others => format!("not a setting of `{preset}`, but of {}", quoted(others)),
        }
    }
}

impl Preset for libwebrtc::settings::Settings {
    const NAME: &'static str = libwebrtc::NAME;

    fn table(placement: Placement) -> &'static [Setting] {
        match placement {
            Placement::Sender => libwebrtc::settings::TABLE,
            Placement::Receiver => &[],
        }
    }

    fn in_call(content: Content) -> Value {
        Self::in_call(content)
    }

    fn sender(self, _placement: Placement) -> Box<dyn Controller> {
        Box::new(libwebrtc::GoogCc::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(placement: Placement, preset: &str, overrides: &Value) -> String {
        placement.sender(preset, overrides).err().expect("refused").to_string()
    }

    #[test]
    fn every_preset_obeys_its_own_table() {
        for placement in [Placement::Sender, Placement::Receiver] {
            for preset in placement.presets() {
                let values = placement.defaults(preset).expect("known");
                let (keys, table) = (values.as_object().expect("object"), placement.settings(preset));
                assert_eq!(keys.len(), table.len());
                assert!(!table.is_empty(), "{preset}");
                // a preset's own values as overrides check the type and range of each setting
                assert!(placement.sender(preset, &values).is_ok(), "{preset}");
                assert!(placement == Placement::Sender || Placement::receiver(preset, &values).is_ok());
            }
        }
        assert_eq!(
            refusal(Placement::Receiver, "libwebrtc-v1", &Value::Null),
            "gcc-remb: `preset` is `libwebrtc-v1`, expected one of `draft-02`, `aiortc`, `hoang2017`"
        );
    }

    #[test]
    fn a_placement_has_the_settings_that_mean_something_there() {
        let only_in = |preset, placement: Placement, counterpart: Placement| {
            let has = |placement: Placement, name: &str| {
                placement.settings(preset).iter().any(|setting| setting.name == name)
            };
            let names = placement.settings(preset).iter().map(|setting| setting.name);
            names.filter(|name| !has(counterpart, name)).collect::<Vec<_>>()
        };
        let (sender, receiver) = (Placement::Sender, Placement::Receiver);
        assert_eq!(only_in("draft-02", sender, receiver), Vec::<&str>::new());
        assert_eq!(only_in("draft-02", receiver, sender), ["remb_interval", "remb_drop"]);
        assert_eq!(only_in("aiortc", sender, receiver), ["send_clock", "adapt_clock"]);
        assert_eq!(only_in("aiortc", receiver, sender), Vec::<&str>::new());
        assert_eq!(only_in("hoang2017", sender, receiver), ["lost_repeat", "loss_over", "late_after"]);
        assert_eq!(only_in("hoang2017", receiver, sender), Vec::<&str>::new());
    }

    #[test]
    fn contradictions_and_slips_are_refused() {
        let v1 = |overrides| refusal(Placement::Sender, "libwebrtc-v1", &overrides);
        assert_eq!(
            v1(json!({"loss_low": 0.2})),
            "gcc: `loss_low` is 0.2, expected at most `loss_high`, which is 0.1"
        );
        assert_eq!(v1(json!({"beta": 1.01})), "gcc: `beta` is 1.01, expected a number from 0.1 to 1");
        assert_eq!(
            v1(json!({"received_rate": "median"})),
            "gcc: `received_rate` is \"median\", expected one of `robust`, `bayesian`"
        );
        assert!(v1(json!({"trend_window": 20.5})).contains("a whole number from 2 to 1000 groups"));
        assert!(v1(json!({"betta": 0.8})).starts_with(
            "gcc: `betta` is not a setting of `libwebrtc-v1`, expected one of `trend_window`, "
        ));
        assert!(Placement::Sender.sender("draft-02", &json!({"beta": 1, "loss_part": false})).is_ok());
    }

    #[test]
    fn a_setting_of_another_preset_is_refused_with_its_name() {
        let refused = refusal(Placement::Sender, "aiortc", &json!({"loss_over": "time"}));
        assert!(
            refused.starts_with(
                "gcc: `loss_over` is not a setting of `aiortc`, but of `hoang2017`, expected one of `send_clock`, "
            ),
            "{refused}"
        );
        // the second placement has no reports on single packets
        let refused = refusal(Placement::Receiver, "hoang2017", &json!({"loss_over": "time"}));
        assert!(
            refused.starts_with("gcc-remb: `loss_over` is not a setting of `hoang2017`, expected"),
            "{refused}"
        );
        let refused = refusal(Placement::Sender, libwebrtc::NAME, &json!({"k_up": 0.01}));
        assert!(refused.contains("of `libwebrtc`, but of `libwebrtc-v1`, `draft-02`, "), "{refused}");
    }
}
