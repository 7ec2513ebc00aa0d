//! Reference rate: RFC 8698 equations (3) to (9).

use super::settings::Settings;
use tidegate_core::math;

/// Rule of the rate's update (rmode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Accelerated ramp-up (0).
    RampUp,
    /// Gradual update (1).
    Gradual,
}

/// Part by which ramp-up exceeds the receive rate, for a round trip of `rtt` ms (equation (3)).
#[must_use]
pub fn gamma(rtt: f64, set: &Settings) -> f64 {
    let lag = rtt + set.delta + set.dfilt;
    let lag = if set.whole_millis() { math::floor(lag) } else { lag };
    set.gamma_max.min(set.qbound / lag)
}

/// Rate after a gradual update, before it is clipped (equations (5) to (7)), from `r_ref` bit/s, `delta` ms after the
/// last update. In (7) the offset is multiplied by the rate that (5) divides by, so that a rate of zero grows, too.
#[must_use]
pub fn gradual(r_ref: f64, x: f64, x_before: f64, delta: f64, rmax: f64, set: &Settings) -> f64 {
    let offset = x * r_ref - set.prio * set.xref * rmax;
    let change = (x - x_before) * r_ref;
    r_ref - set.kappa * delta / set.tau * offset / set.tau - set.kappa * set.eta * change / set.tau
}

/// Input of an update.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Update {
    /// Rule of the update.
    pub mode: Mode,
    /// Congestion signal, ms.
    pub x: f64,
    /// Receive rate, bit/s.
    pub receive_rate: f64,
    /// Round trip, ms.
    pub rtt: f64,
    /// Time since the last update, ms.
    pub delta: f64,
}

/// Reference rate and the signal of its last update.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reference {
    /// Reference rate, bit/s (r_ref).
    pub rate: f64,
    /// Signal of the last update, ms (x_prev).
    pub before: f64,
}

impl Reference {
    /// Creates a reference of `rate` bit/s.
    #[must_use]
    pub const fn new(rate: f64) -> Self {
        Self { rate, before: 0.0 }
    }

    /// Clips the rate to `rmin` and `rmax` bit/s (equations (8) and (9)).
    pub fn clip(&mut self, rmin: f64, rmax: f64) {
        self.rate = self.rate.min(rmax).max(rmin);
    }

    /// Updates the rate within `rmin` and `rmax` bit/s.
    pub fn update(&mut self, update: &Update, rmin: f64, rmax: f64, set: &Settings) {
        self.rate = match update.mode {
            // equation (4)
            Mode::RampUp => self.rate.max((1.0 + gamma(update.rtt, set)) * update.receive_rate),
            Mode::Gradual => gradual(self.rate, update.x, self.before, update.delta, rmax, set),
        };
        self.clip(rmin, rmax);
        self.before = update.x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn at_rest_the_signal_goes_by_priority_and_largest_rate() {
        for (prio, rate, x) in [(1.0, 1e6, 15.0), (2.0, 1e6, 30.0), (0.5, 3e5, 25.0)] {
            let set = Settings::with("rfc8698", &json!({ "prio": prio })).expect("valid");
            assert!((gradual(rate, x, x, 100.0, 1.5e6, &set) / rate - 1.0).abs() < 1e-12);
            assert!(gradual(rate, x + 1.0, x, 100.0, 1.5e6, &set) < rate);
            assert!(gradual(rate, x, x + 1.0, 100.0, 1.5e6, &set) > rate, "a signal that falls");
        }
    }

    #[test]
    fn a_rate_of_nothing_grows_and_one_beyond_the_range_is_clipped() {
        let set = Settings::with("rfc8698", &Value::Null).expect("a preset");
        // 0.5 * 100 / 500 * 10 / 500 * 1.5e6
        assert!((gradual(0.0, 0.0, 0.0, 100.0, 1.5e6, &set) - 3000.0).abs() < 1e-9);
        let mut reference = Reference { rate: 1e6, before: 0.0 };
        let update = Update { mode: Mode::Gradual, x: 1e5, receive_rate: 0.0, rtt: 0.0, delta: 1e6 };
        reference.update(&update, 150e3, 1.5e6, &set);
        assert_eq!(reference, Reference { rate: 150e3, before: 1e5 });
        let update = Update { mode: Mode::RampUp, x: 0.0, receive_rate: 5e6, ..update };
        reference.update(&update, 150e3, 1.5e6, &set);
        assert_eq!(reference.rate, 1.5e6);
    }

    #[test]
    fn ramp_up_is_slower_the_longer_the_loop_and_never_goes_down() {
        let [rfc, ns3] =
            ["rfc8698", "ns3-rmcat"].map(|name| Settings::with(name, &Value::Null).expect("a preset"));
        assert_eq!(gamma(30.0, &rfc), 0.2);
        // ns3-rmcat cuts to whole milliseconds
        assert_eq!(gamma(30.9, &ns3), 0.2);
        assert!(gamma(30.9, &rfc) < 0.2);
        let quick = Settings { delta: 10.0, dfilt: 0.0, ..rfc };
        assert_eq!(gamma(0.0, &quick), 0.5, "GAMMA_MAX");
        let mut reference = Reference::new(1e6);
        let update = Update { mode: Mode::RampUp, x: 0.0, receive_rate: 5e5, rtt: 30.0, delta: 100.0 };
        reference.update(&update, 0.0, 1e7, &quick);
        assert_eq!(reference.rate, 1e6);
    }
}
