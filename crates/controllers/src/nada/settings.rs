//! Settings of NADA with the values of each preset.

use crate::settings::{Kind, SettingsError, resolve, settings, to_value, unknown_preset, words};
use serde_json::Value;

pub(super) const NAME: &str = "nada";
pub(super) const PRESETS: &[&str] = &["rfc8698", "ns3-rmcat"];

words! {
    /// Half that computes the congestion signal (RFC 8698 section 6.4).
    Placement:
    /// Sender, from per-packet feedback.
    Sender = "sender",
    /// Receiver, which sends the signal in its own messages.
    Receiver = "receiver",
}
words! {
    /// Estimation of delays, losses and rates from single packets.
    Estimates:
    /// Estimates of RFC 8698 section 5.1.
    Rfc8698 = "rfc8698",
    /// Estimates of ns3-rmcat's `sender-based-controller.cc`.
    Ns3Rmcat = "ns3-rmcat",
}

use Kind::{Flag, Number, Whole};

const RFC8698: Settings = preset(0);
const NS3_RMCAT: Settings = preset(1);

// Each block is a setting: name, type, unit, allowed values, [rfc8698, ns3-rmcat], meaning, source.
settings! {
    // -- measurements ----------------------------------------------------------------------------------
    placement: Placement, "", Placement::KIND, [Placement::Sender, Placement::Sender],
        "half that computes the congestion signal: the sender, from per-packet feedback (`sender`), or the receiver \
         (`receiver`)",
        "RFC 8698 section 6.4 allows both; ns3-rmcat computes it at the sender";
    estimates: Estimates, "", Estimates::KIND, [Estimates::Rfc8698, Estimates::Ns3Rmcat],
        "estimators of delay, loss and receive rate: those of RFC 8698 (`rfc8698`) or of ns3-rmcat (`ns3-rmcat`)",
        "RFC 8698 section 5.1; ns3-rmcat sender-based-controller.cc";
    ecn: bool, "", Flag, [true, false],
        "whether packets are sent as ECT(0), and marks enter the congestion signal",
        "RFC 8698 equation (2); ns3-rmcat has no ECN (nada-controller.cc)";
    delta: f64, "ms", Number(10.0, 10_000.0), [100.0, 100.0],
        "target interval of feedback (DELTA)", "RFC 8698 table 2; NADA_PARAM_DELTA_US";
    least_interval: f64, "ms", Number(1.0, 10_000.0), [75.0, 50.0],
        "minimum time between two updates of the rate where per-packet reports come more often",
        "ours: three quarters of DELTA, so that reports every 50 ms make an update every 100 ms; ns3-rmcat: half of DELTA";
    logwin: f64, "ms", Number(10.0, 60_000.0), [500.0, 500.0],
        "time window of packets for losses, marks and the receive rate (LOGWIN)",
        "RFC 8698 table 2; DEFAULT_HISTORY_LENGTH_US";
    base_history: u64, "min", Whole(0, 1440), [20, 0],
        "time for which the lowest one-way delay is remembered; 0: for ever",
        "RFC 8698 section 5.1.1: tens of minutes; kept by the minute as in RFC 6817 section 4.2; ns3-rmcat: for ever";
    taps: u64, "packets", Whole(1, 1000), [15, 15],
        "number of samples whose minimum is the queueing delay", "RFC 8698 section 5.1.1; ntab in ns3-rmcat";
    alpha: f64, "", Number(0.001, 1.0), [0.1, 0.1],
        "weight of a new loss or marking ratio in the smoothed ratio (ALPHA)",
        "RFC 8698 equation (10); NADA_PARAM_ALPHA";
    // -- the congestion signal -------------------------------------------------------------------------
    qth: f64, "ms", Number(0.1, 10_000.0), [50.0, 50.0],
        "queueing delay from which on the delay in the congestion signal is warped after losses (QTH)",
        "RFC 8698 equation (1); NADA_PARAM_QTH";
    lambda: f64, "", Number(0.0, 100.0), [0.5, 0.5],
        "exponent of the warping of the queueing delay (LAMBDA)", "RFC 8698 equation (1); NADA_PARAM_LAMBDA";
    multiloss: f64, "", Number(0.0, 1000.0), [7.0, 7.0],
        "number of mean loss intervals for which a loss is remembered (MULTILOSS)",
        "RFC 8698 section 4.2; NADA_PARAM_MULTILOSS";
    open_interval: bool, "", Flag, [false, true],
        "whether the packets since the last loss count as a loss interval where they make the mean longer; losses \
         are then remembered for ever, since the mean is at least a sixth of these packets",
        "RFC 5348 section 5.4, to which RFC 8698 section 4.2 refers, does; ns3-rmcat does. Ours: without, so that losses expire";
    dloss: f64, "ms", Number(0.0, 10_000.0), [10.0, 10.0],
        "delay penalty for a loss ratio of `plrref` (DLOSS)", "RFC 8698 equation (2); NADA_PARAM_DLOSS";
    plrref: f64, "", Number(1e-6, 1.0), [0.01, 0.01],
        "reference loss ratio (PLRREF)", "RFC 8698 equation (2); NADA_PARAM_PLRREF";
    dmark: f64, "ms", Number(0.0, 10_000.0), [2.0, 2.0],
        "delay penalty for a marking ratio of `pmrref` (DMARK)", "RFC 8698 equation (2)";
    pmrref: f64, "", Number(1e-6, 1.0), [0.01, 0.01],
        "reference marking ratio (PMRREF)", "RFC 8698 equation (2)";
    xmax: f64, "ms", Number(0.0, 1e6), [0.0, 500.0],
        "upper bound of the congestion signal; 0: no bound",
        "RFC 8698 has none; draft-ietf-rmcat-nada-04, NADA_PARAM_XMAX";
    // -- the reference rate ----------------------------------------------------------------------------
    prio: f64, "", Number(0.001, 1000.0), [1.0, 1.0],
        "weight of the flow relative to others (PRIO)", "RFC 8698 equation (5); NADA_PARAM_PRIO";
    xref: f64, "ms", Number(0.01, 10_000.0), [10.0, 10.0],
        "congestion signal at which the maximum rate is held (XREF)", "RFC 8698 equation (5); NADA_PARAM_XREF";
    kappa: f64, "", Number(0.0, 100.0), [0.5, 0.5],
        "gain of gradual updates of the rate (KAPPA)", "RFC 8698 equation (7); NADA_PARAM_KAPPA";
    eta: f64, "", Number(0.0, 100.0), [2.0, 2.0],
        "gain of the congestion signal's change, relative to the gain of its offset (ETA)",
        "RFC 8698 equation (7); NADA_PARAM_ETA";
    tau: f64, "ms", Number(1.0, 60_000.0), [500.0, 500.0],
        "upper bound of the round trip for gradual updates of the rate (TAU)",
        "RFC 8698 equation (7); NADA_PARAM_TAU";
    qeps: f64, "ms", Number(0.0, 10_000.0), [10.0, 10.0],
        "queueing delay of a packet from which on ramp-up ends (QEPS)", "RFC 8698 section 4.2; NADA_PARAM_QEPS_US";
    qbound: f64, "ms", Number(0.0, 10_000.0), [50.0, 50.0],
        "upper bound of the queueing delay that ramp-up may cause (QBOUND)",
        "RFC 8698 equation (3); NADA_PARAM_QBOUND";
    dfilt: f64, "ms", Number(0.0, 10_000.0), [120.0, 120.0],
        "upper bound of the delay of the filters (DFILT)", "RFC 8698 equation (3); NADA_PARAM_DFILT_US";
    gamma_max: f64, "", Number(0.0, 10.0), [0.5, 0.5],
        "largest increase above the receive rate in ramp-up, as a fraction of the receive rate (GAMMA_MAX)",
        "RFC 8698 equation (3); NADA_PARAM_GAMMA_MAX";
    // -- the rate shaping buffer -----------------------------------------------------------------------
    fps: f64, "Hz", Number(0.0, 1000.0), [30.0, 30.0],
        "frame rate of the video (FPS)", "RFC 8698 equations (11) and (12); SYNCODEC_DEFAULT_FPS";
    beta_v: f64, "", Number(0.0, 10.0), [0.1, 0.0],
        "fraction of the bytes waiting in the pacer that the encoder saves per frame (BETA_V)",
        "RFC 8698 equation (11); rmcat-constants.h";
    beta_s: f64, "", Number(0.0, 10.0), [0.1, 0.0],
        "fraction of the bytes waiting in the pacer that the pacer sends in addition per frame (BETA_S)",
        "RFC 8698 equation (12); rmcat-constants.h";
}

impl Settings {
    fn preset(name: &str) -> Result<Self, SettingsError> {
        match name {
            "rfc8698" => Ok(RFC8698),
            "ns3-rmcat" => Ok(NS3_RMCAT),
            _ => Err(unknown_preset(NAME, name, PRESETS)),
        }
    }

    /// Settings of a preset with `overrides` (an object or null).
    ///
    /// # Errors
    /// Fails if there is no such preset or setting, a value is wrong, or two values contradict each other.
    pub fn with(preset: &str, overrides: &Value) -> Result<Self, SettingsError> {
        let settings: Self = resolve(NAME, TABLE, &Self::preset(preset)?, overrides)?;
        if settings.placement == Placement::Receiver && settings.estimates == Estimates::Ns3Rmcat {
            return Err(SettingsError {
                controller: NAME,
                key: "placement".into(),
                actual: "`receiver` with the estimates of `ns3-rmcat`".into(),
                expected: "`sender`, or `estimates` of `rfc8698`".into(),
            });
        }
        Ok(settings)
    }

    /// Values of a preset as JSON.
    pub(super) fn defaults(preset: &str) -> Result<Value, SettingsError> {
        to_value(NAME, &Self::preset(preset)?)
    }

    /// Whether comparisons use whole milliseconds, because ns3-rmcat divides integers (nada-controller.cc `calcDtilde`,
    /// `calcAcceleratedRampUp`).
    pub(super) fn whole_millis(&self) -> bool {
        self.estimates == Estimates::Ns3Rmcat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn presets_differ_where_the_page_says_so() {
        let [a, b] = [RFC8698, NS3_RMCAT].map(|settings| serde_json::to_value(settings).expect("values"));
        let names = TABLE.iter().map(|setting| setting.name);
        let differ: Vec<&str> = names.filter(|name| a[name] != b[name]).collect();
        assert_eq!(
            differ,
            [
                "estimates",
                "ecn",
                "least_interval",
                "base_history",
                "open_interval",
                "xmax",
                "beta_v",
                "beta_s"
            ]
        );
    }

    #[test]
    fn wrong_settings_are_refused_with_the_reason() {
        let refusal =
            |preset, overrides| Settings::with(preset, &overrides).expect_err("refused").to_string();
        assert_eq!(
            refusal("draft", Value::Null),
            "nada: `preset` is `draft`, expected one of `rfc8698`, `ns3-rmcat`"
        );
        assert_eq!(
            refusal("rfc8698", json!({"tau": 0})),
            "nada: `tau` is 0, expected a number from 1 to 60000 ms"
        );
        assert_eq!(
            refusal("ns3-rmcat", json!({"placement": "receiver"})),
            "nada: `placement` is `receiver` with the estimates of `ns3-rmcat`, expected `sender`, or \
             `estimates` of `rfc8698`"
        );
        assert!(Settings::with("rfc8698", &json!({"placement": "receiver"})).is_ok());
    }
}
