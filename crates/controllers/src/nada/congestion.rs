//! From estimates to the aggregate congestion signal x_curr: RFC 8698 equations (1), (2) and (10).

use super::settings::Settings;
use super::signals::{Losses, Signals};
use tidegate_core::math;

/// Equation (1): the equivalent of a queueing delay of `queueing` ms after the non-linear warping, in ms.
#[must_use]
pub fn warped(queueing: f64, set: &Settings) -> f64 {
    let warps = if set.whole_millis() { math::floor(queueing) > set.qth } else { queueing >= set.qth };
    if warps { set.qth * math::exp(-set.lambda * (queueing - set.qth) / set.qth) } else { queueing }
}

/// The queueing delay as it counts: warped until the last loss is `multiloss` loss intervals ago, then linearly back to
/// what it is within one more (section 4.2, "in practice, it is recommended").
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

/// Equation (2): the aggregate congestion signal in ms.
#[must_use]
pub fn aggregate(equivalent: f64, marks: f64, loss: f64, set: &Settings) -> f64 {
    let square = |ratio: f64| ratio * ratio;
    let x = equivalent + set.dmark * square(marks / set.pmrref) + set.dloss * square(loss / set.plrref);
    if set.xmax > 0.0 { x.min(set.xmax) } else { x }
}

/// The congestion signal, with what is smoothed on the way to it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Congestion {
    /// Smoothed loss ratio (p_loss).
    pub loss: f64,
    /// Smoothed marking ratio (p_mark).
    pub marks: f64,
    /// The signal in ms (x_curr).
    pub x: f64,
}

impl Congestion {
    /// Takes in the estimates of an update.
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
