//! The reference rate: RFC 8698 equations (3) to (9).

use super::settings::Settings;
use tidegate_core::math;

/// How the rate is updated (rmode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Accelerated ramp-up (0).
    RampUp,
    /// Gradual update (1).
    Gradual,
}

/// Equation (3): by which part above the receive rate ramp-up goes, where the round trip is `rtt` ms.
#[must_use]
pub fn gamma(rtt: f64, set: &Settings) -> f64 {
    let lag = rtt + set.delta + set.dfilt;
    let lag = if set.whole_millis() { math::floor(lag) } else { lag };
    set.gamma_max.min(set.qbound / lag)
}

/// Equations (5) to (7) for `r_ref` bit/s, `delta` ms after the last update: the next rate before it is clipped. In (7) the
/// offset is multiplied by the rate that (5) divides by, so that a rate of zero grows, too.
#[must_use]
pub fn gradual(r_ref: f64, x: f64, x_before: f64, delta: f64, most: f64, set: &Settings) -> f64 {
    let offset = x * r_ref - set.prio * set.xref * most;
    let change = (x - x_before) * r_ref;
    r_ref - set.kappa * delta / set.tau * offset / set.tau - set.kappa * set.eta * change / set.tau
}

/// What an update goes by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Update {
    /// Which of the two rules.
    pub mode: Mode,
    /// The congestion signal in ms.
    pub x: f64,
    /// The receive rate in bit/s.
    pub receive_rate: f64,
    /// The round trip in ms.
    pub rtt: f64,
    /// Time since the last update in ms.
    pub delta: f64,
}

/// The reference rate and what it remembers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reference {
    /// r_ref in bit/s.
    pub rate: f64,
    /// The signal of the last update in ms (x_prev).
    pub before: f64,
}

impl Reference {
    /// Beginning with `rate` bit/s.
    #[must_use]
    pub const fn new(rate: f64) -> Self {
        Self { rate, before: 0.0 }
    }

    /// Equations (8) and (9): within `least` and `most` bit/s.
    pub fn clip(&mut self, least: f64, most: f64) {
        self.rate = self.rate.min(most).max(least);
    }

    /// Updates the rate within `least` and `most` bit/s.
    pub fn update(&mut self, by: &Update, least: f64, most: f64, set: &Settings) {
        self.rate = match by.mode {
            // equation (4)
            Mode::RampUp => self.rate.max((1.0 + gamma(by.rtt, set)) * by.receive_rate),
            Mode::Gradual => gradual(self.rate, by.x, self.before, by.delta, most, set),
        };
        self.clip(least, most);
        self.before = by.x;
    }
}
