//! The presets of both placements: columns of the table in [`settings`](super::settings), and what the
//! receiver's clock and messages change in them.

use super::settings::{
    AIORTC, AdaptClock, DRAFT_02, HOANG_2017, LIBWEBRTC_V1, LossFrom, LossOver, SendClock, Settings,
    StartFrom, TABLE,
};
use crate::settings::{SettingsError, resolve, to_value, unknown_preset};
use serde_json::Value;

/// Where the delay-based part is (draft 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// (a): all at the sender, from per-packet feedback.
    Sender,
    /// (b): at the receiver, from abs-send-time; its rate goes back as REMB.
    Receiver,
}

impl Placement {
    /// The controller's name in the registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "gcc",
            Self::Receiver => "gcc-remb",
        }
    }

    /// Names of the presets; the first one is the default.
    #[must_use]
    pub const fn presets(self) -> &'static [&'static str] {
        match self {
            Self::Sender => &["libwebrtc-v1", "draft-02", "aiortc", "hoang2017"],
            Self::Receiver => &["draft-02", "aiortc", "hoang2017"],
        }
    }

    /// The values of a preset.
    ///
    /// # Errors
    /// When there is no such preset.
    pub fn preset(self, name: &str) -> Result<Settings, SettingsError> {
        let settings = match name {
            "libwebrtc-v1" if self == Self::Sender => LIBWEBRTC_V1,
            "draft-02" => DRAFT_02,
            "aiortc" => AIORTC,
            "hoang2017" => HOANG_2017,
            _ => return Err(unknown_preset(self.name(), name, self.presets())),
        };
        Ok(match self {
            Self::Sender => settings,
            Self::Receiver => at_receiver(name, settings),
        })
    }

    /// The values of a preset with a JSON object of overrides laid over it.
    ///
    /// # Errors
    /// When there is no such preset or key, a value is of the wrong type or out of its range, or two
    /// values contradict each other.
    pub fn with(self, preset: &str, overrides: &Value) -> Result<Settings, SettingsError> {
        let settings = resolve(self.name(), TABLE, &self.preset(preset)?, overrides)?;
        in_order(self.name(), &settings)?;
        Ok(settings)
    }

    /// All values of a preset as a JSON object.
    ///
    /// # Errors
    /// When there is no such preset.
    pub fn defaults(self, preset: &str) -> Result<Value, SettingsError> {
        to_value(self.name(), &self.preset(preset)?)
    }
}

impl Settings {
    /// The values of a preset of the first placement.
    ///
    /// # Errors
    /// When there is no such preset.
    pub fn preset(name: &str) -> Result<Self, SettingsError> {
        Placement::Sender.preset(name)
    }
}

/// A preset of the first placement as the second one needs it.
fn at_receiver(name: &str, first: Settings) -> Settings {
    let second = Settings {
        send_clock: SendClock::AbsSendTime,
        loss_from: LossFrom::ReceiverReports,
        // the receiver knows nothing of the session's start rate
        start_from: StartFrom::Throughput,
        lost_repeat: false,
        ..first
    };
    if name == "aiortc" {
        // as it is shipped: the packet that completes a group gives the time, and no clock is watched
        return Settings {
            adapt_clock: AdaptClock::Packet,
            send_unsigned: true,
            clock_jump_reset: 0.0,
            ..second
        };
    }
    Settings {
        // one window of draft 5.5, so that the first rate is that of a full window
        start_after: second.received_window,
        // a packet is too short a step where each one adds 1000 bit/s: every 50 ms, which is in the range of
        // the feedback intervals of draft 3 (a), so that both placements keep the same step
        update_interval: 50.0,
        // a receiver report counts packets and names none
        loss_over: LossOver::Interval,
        ..second
    }
}

/// Checks what no single range can: that lower bounds are below upper ones, and that what is asked for
/// can be known.
fn in_order(controller: &'static str, settings: &Settings) -> Result<(), SettingsError> {
    let refuse = |key: &str, found: String, expected: String| {
        Err(SettingsError { controller, key: key.into(), found, expected })
    };
    let s = settings;
    let pairs = [
        ("threshold_min", s.threshold_min, "threshold_max", s.threshold_max),
        ("loss_low", s.loss_low, "loss_high", s.loss_high),
        ("received_window", s.received_window, "robust_longest", s.robust_longest),
        ("robust_packets", s.robust_packets as f64, "robust_most", s.robust_most as f64),
        ("robust_required", s.robust_required as f64, "robust_packets", s.robust_packets as f64),
    ];
    for (low, at_least, high, at_most) in pairs {
        if at_least > at_most {
            return refuse(low, at_least.to_string(), format!("at most `{high}`, which is {at_most}"));
        }
    }
    if s.loss_over != LossOver::Interval && s.loss_from == LossFrom::ReceiverReports {
        let expected = "`interval` where `loss_from` is `receiver-reports`, which name no packets";
        return refuse("loss_over", "a window of single packets".into(), expected.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_preset_obeys_its_own_table() {
        for placement in [Placement::Sender, Placement::Receiver] {
            for preset in placement.presets() {
                let values = placement.defaults(preset).expect("known");
                assert_eq!(values.as_object().expect("object").len(), TABLE.len());
                // handing a preset's own values back as overrides checks type and range of each one
                assert_eq!(placement.with(preset, &values), placement.preset(preset));
            }
        }
        let error = Placement::Receiver.preset("libwebrtc-v1").expect_err("only at the sender");
        assert_eq!(
            error.to_string(),
            "gcc-remb: `preset` is `libwebrtc-v1`, expected one of `draft-02`, `aiortc`, `hoang2017`"
        );
    }

    #[test]
    fn contradictions_and_slips_are_refused() {
        let with = |overrides| Placement::Sender.with("libwebrtc-v1", &overrides);
        let say = |overrides| with(overrides).expect_err("refused").to_string();
        assert_eq!(
            say(json!({"threshold_min": 700})),
            "gcc: `threshold_min` is 700, expected at most `threshold_max`, which is 600"
        );
        assert_eq!(say(json!({"beta": 1.01})), "gcc: `beta` is 1.01, expected a number from 0.1 to 1");
        assert_eq!(
            say(json!({"filter": "median"})),
            "gcc: `filter` is \"median\", expected one of `trendline`, `kalman`"
        );
        assert!(say(json!({"trend_window": 20.5})).contains("a whole number from 2 to 1000 groups"));
        assert!(
            say(json!({"betta": 0.8}))
                .starts_with("gcc: `betta` is not a setting, expected one of `grouping`, `lost_repeat`")
        );
        assert_eq!(
            say(json!({"loss_over": "time", "loss_from": "receiver-reports"})),
            "gcc: `loss_over` is a window of single packets, expected `interval` where `loss_from` is \
             `receiver-reports`, which name no packets"
        );
        let fine = Placement::Sender.with("draft-02", &json!({"beta": 1, "loss_part": false})).expect("fine");
        assert_eq!((fine.beta, fine.loss_part, fine.k_up), (1.0, false, 0.01));
    }
}
