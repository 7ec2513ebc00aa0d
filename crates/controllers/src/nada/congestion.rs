//! Aggregate congestion signal x_curr: RFC 8698 equations (1), (2) and (10).

use super::settings::Settings;
use super::signals::{Losses, Signals};
use tidegate_core::math;

/// Queueing delay of `queueing` ms after the non-linear warping, ms (equation (1)).
#[must_use]
pub fn warped(queueing: f64, set: &Settings) -> f64 {
    let warps = if set.whole_millis() { math::floor(queueing) > set.qth } else { queueing >= set.qth };
    if warps { set.qth * math::exp(-set.lambda * (queueing - set.qth) / set.qth) } else { queueing }
}

/// Queueing delay that enters the signal, ms. It is warped until the last loss is `multiloss` loss intervals ago, and
/// returns linearly to `queueing` within one more (section 4.2, "in practice, it is recommended").
#[must_use]
pub fn equivalent(queueing: f64, losses: Option<Losses>, set: &Settings) -> f64 {
    let Some(Losses { mean, since }) = losses else { return queueing };
    let expired = since - set.multiloss * mean;
    if expired >= mean {
        return queueing;
    }
    let part = (expired / mean).max(0.0);
    part * queueing + (1.0 - part) * warped(queueing, set)
}

/// Aggregate congestion signal, ms (equation (2)).
#[must_use]
pub fn aggregate(equivalent: f64, marks: f64, loss: f64, set: &Settings) -> f64 {
    let square = |ratio: f64| ratio * ratio;
    let x = equivalent + set.dmark * square(marks / set.pmrref) + set.dloss * square(loss / set.plrref);
    if set.xmax > 0.0 { x.min(set.xmax) } else { x }
}

/// Congestion signal with the smoothed ratios that enter it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Congestion {
    /// Smoothed loss ratio (p_loss).
    pub loss: f64,
    /// Smoothed marking ratio (p_mark).
    pub marks: f64,
    /// Congestion signal, ms (x_curr).
    pub x: f64,
}

impl Congestion {
    /// Updates the ratios and the signal from new estimates.
    pub fn update(&mut self, signals: &Signals, set: &Settings) {
        let smooth = |old: f64, new: Option<f64>| new.map_or(old, |new| old + set.alpha * (new - old));
        self.loss = smooth(self.loss, signals.loss);
        self.marks = smooth(self.marks, signals.marks.filter(|_| set.ecn));
        if let Some(queueing) = signals.queueing {
            let equivalent = equivalent(queueing.as_millis_f64(), signals.losses, set);
            self.x = aggregate(equivalent, self.marks, self.loss, set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tidegate_core::Span;

    fn set(preset: &str) -> Settings {
        Settings::with(preset, &Value::Null).expect("a preset")
    }

    #[test]
    fn losses_warp_the_delay_for_seven_intervals_and_let_go_within_the_eighth() {
        let set = set("rfc8698");
        let tilde = 50.0 * math::exp(-0.5);
        assert_eq!(warped(100.0, &set), tilde);
        let after_intervals =
            |intervals: f64| equivalent(100.0, Some(Losses { mean: 40.0, since: 40.0 * intervals }), &set);
        assert_eq!(equivalent(100.0, None, &set), 100.0, "never a loss");
        assert_eq!(after_intervals(0.1), tilde);
        assert_eq!(after_intervals(7.0), tilde);
        assert!((after_intervals(7.25) - (0.25 * 100.0 + 0.75 * tilde)).abs() < 1e-9);
        assert!((after_intervals(7.75) - (0.75 * 100.0 + 0.25 * tilde)).abs() < 1e-9);
        assert_eq!(after_intervals(8.0), 100.0);
        // below the threshold nothing is warped
        assert_eq!(equivalent(49.0, Some(Losses { mean: 40.0, since: 1.0 }), &set), 49.0);
    }

    #[test]
    fn ns3_rmcat_compares_whole_milliseconds_and_bounds_the_signal() {
        let (rfc, ns3) = (set("rfc8698"), set("ns3-rmcat"));
        assert_eq!(warped(50.999, &ns3), 50.999);
        assert!(warped(51.0, &ns3) < 50.0);
        assert!(warped(50.999, &rfc) < 50.0);
        assert_eq!(aggregate(1.0, 0.0, 0.1, &rfc), 1001.0);
        assert_eq!(aggregate(1.0, 0.0, 0.1, &ns3), 500.0);
    }

    #[test]
    fn ratios_are_smoothed_and_what_is_not_known_stays() {
        let set = set("rfc8698");
        let mut congestion = Congestion::default();
        let signals = Signals {
            queueing: Some(Span::from_millis(20)),
            loss: Some(0.5),
            marks: Some(0.2),
            ..Signals::default()
        };
        congestion.update(&signals, &set);
        assert!((congestion.loss - 0.05).abs() < 1e-12 && (congestion.marks - 0.02).abs() < 1e-12);
        // 20 + 2 * 2^2 + 10 * 5^2
        assert!((congestion.x - 278.0).abs() < 1e-9, "{}", congestion.x);
        congestion.update(&signals, &set);
        assert!((congestion.loss - 0.095).abs() < 1e-12 && (congestion.marks - 0.038).abs() < 1e-12);
        let before = congestion;
        congestion.update(&Signals::default(), &set);
        assert_eq!(congestion, before);
        // a sender of Not-ECT packets ignores marks
        let without_ecn = Settings { ecn: false, ..set };
        let mut congestion = Congestion::default();
        congestion.update(&Signals { marks: Some(1.0), ..signals }, &without_ecn);
        assert_eq!(congestion.marks, 0.0);
        assert!((congestion.x - 270.0).abs() < 1e-9);
    }
}
