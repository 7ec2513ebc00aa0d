//! What the receiver believes of the link: a distribution over its rate that drifts, and that arrivals sharpen.
//!
//! NSDI 2013 section 3.1: the rate performs a Brownian motion, packets arrive as a Poisson process of that rate,
//! and an outage, once begun, ends at a rate of its own. Numbers and bins are those of keithw/sprout
//! (`src/sprout/receiver.hh`, `process.cc`, `sampledfunction.hh`), down to the table in which it looks the
//! Gaussian up, because forecasts are to agree to the packet.

use std::sync::OnceLock;
use tidegate_core::Span;
use tidegate_core::math::{erfc, exp, ln, sqrt};

/// How long a tick is (`TICK_LENGTH`).
pub const TICK: Span = Span::from_millis(20);
/// A tick in seconds.
const TICK_S: f64 = 0.02;
/// The largest rate in packets/s (`MAX_ARRIVAL_RATE`).
const MAX_RATE: f64 = 1000.0;
/// `NUM_BINS`, and one more that begins at the largest rate and has no end.
pub const BINS: usize = 257;
/// Packets/s in a bin.
const WIDTH: f64 = MAX_RATE / (BINS - 1) as f64;
/// Standard deviation of the rate's change in packets/s after a second (`BROWNIAN_MOTION_RATE`).
const BROWNIAN: f64 = 200.0;
/// How often an outage ends, a second (`OUTAGE_ESCAPE_RATE`).
const ESCAPE: f64 = 1.0;
/// The motion is cut off at so many standard deviations.
const REACH: f64 = 5.0;
/// Values of the Gaussian's table: 128 for each of 256 bins, from -1000 to 1000 packets/s, and one more.
const TABLE: usize = 128 * 256;

/// The rate that stands for a bin, in packets/s: its middle, and zero for the outage.
#[must_use]
pub fn rate(bin: usize) -> f64 {
    if bin == 0 { 0.0 } else { (bin as f64 + 0.5) * WIDTH }
}

/// The bin of a rate.
fn bin(rate: f64) -> usize {
    // `as` cuts off what is below zero
    ((rate / WIDTH) as usize).min(BINS - 1)
}

/// The Gaussian's distribution function as the original has it: looked up in a table whose cells are
/// represented by their middles, the first one by its lower end.
fn gaussian(x: f64, sd: f64) -> f64 {
    let width = 2.0 * MAX_RATE / TABLE as f64;
    let cell = (((x + MAX_RATE) / width) as usize).min(TABLE);
    let middle = if cell == 0 { 0.0 } else { (cell as f64 + 0.5) * width };
    0.5 * erfc((MAX_RATE - middle) / (sd * std::f64::consts::SQRT_2))
}

/// Where probability goes from one bin in a tick.
#[derive(Debug)]
struct Row {
    /// The first bin that gets any.
    first: usize,
    weights: Vec<f64>,
}

/// The transition of one tick: a band of rows.
#[derive(Debug)]
pub struct Transition {
    rows: Vec<Row>,
    /// Packets expected in a tick of each bin, and its logarithm.
    means: [f64; BINS],
    logs: [f64; BINS],
}

impl Transition {
    /// The one that every receiver uses.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Transition> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    fn new() -> Self {
        let sd = BROWNIAN * sqrt(TICK_S);
        let escape = 1.0 - exp(-TICK_S * ESCAPE);
        let row = |from: usize| {
            let old = rate(from);
            let first = bin(old - REACH * sd);
            let last = (bin(old + REACH * sd) + 1).min(BINS - 1);
            let share = |to: usize| {
                // the outermost bins take all that lies beyond
                let below = if to == 0 { f64::NEG_INFINITY } else { to as f64 * WIDTH - old };
                let above = if to == BINS - 1 { f64::INFINITY } else { (to + 1) as f64 * WIDTH - old };
                let share = gaussian(above, sd) - gaussian(below, sd);
                // an outage is sticky; the original weighs and does not normalise until it forecasts
                match (from, to) {
                    (0, 0) => share * (1.0 - escape),
                    (0, _) => share * escape,
                    _ => share,
                }
            };
            Row { first, weights: (first..=last).map(share).collect() }
        };
        let means = std::array::from_fn(|bin| rate(bin) * TICK_S);
        Self { rows: (0..BINS).map(row).collect(), means, logs: means.map(ln) }
    }

    /// Packets expected in a tick, by bin.
    #[must_use]
    pub fn means(&self) -> &[f64; BINS] {
        &self.means
    }

    /// The probability of going from one bin to another in a tick; the outage's do not sum up to 1.
    #[must_use]
    pub fn share(&self, from: usize, to: usize) -> f64 {
        let row = &self.rows[from];
        to.checked_sub(row.first).and_then(|at| row.weights.get(at)).copied().unwrap_or(0.0)
    }
}

/// A distribution over the rate.
#[derive(Clone, Debug)]
pub struct Belief {
    /// Up to a factor, until [`Belief::normalise`].
    weights: [f64; BINS],
}

impl Default for Belief {
    /// Every rate is as likely as any other.
    fn default() -> Self {
        Self { weights: [1.0 / BINS as f64; BINS] }
    }
}

impl Belief {
    /// The rate is that of `bin`.
    #[must_use]
    pub fn certain(bin: usize) -> Self {
        let mut weights = [0.0; BINS];
        weights[bin] = 1.0;
        Self { weights }
    }

    /// The probability of each bin, once normalised.
    #[must_use]
    pub fn weights(&self) -> &[f64; BINS] {
        &self.weights
    }

    /// Mean rate in packets/s, once normalised.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.weights.iter().enumerate().map(|(bin, weight)| weight * rate(bin)).sum()
    }

    /// Lets a tick pass.
    pub fn evolve(&mut self, transition: &Transition) {
        let mut new = [0.0; BINS];
        for (weight, row) in self.weights.iter().zip(&transition.rows) {
            let to = &mut new[row.first..row.first + row.weights.len()];
            for (new, share) in to.iter_mut().zip(&row.weights) {
                *new += weight * share;
            }
        }
        self.weights = new;
    }

    /// Learns that `count` packets came in a tick.
    pub fn observe(&mut self, count: u32, transition: &Transition) {
        self.weigh(count, transition, |_| 1.0);
    }

    /// Learns that at least `count` packets could have come: the sender had no more. (Ours.)
    pub fn observe_at_least(&mut self, count: u32, transition: &Transition) {
        if count == 0 {
            return;
        }
        // P(X >= n) = P(X = n) (1 + m/(n+1) + m^2/((n+1)(n+2)) + ...)
        self.weigh(count, transition, |mean| {
            let (mut sum, mut term, mut next) = (1.0, 1.0, f64::from(count) + 1.0);
            while term > f64::EPSILON * sum {
                term *= mean / next;
                sum += term;
                next += 1.0;
            }
            sum
        });
    }

    /// Multiplies with the Poisson probability of `count` and a further factor of the mean.
    fn weigh(&mut self, count: u32, transition: &Transition, factor: impl Fn(f64) -> f64) {
        let count = f64::from(count);
        // relative to the likeliest mean there is: the factor common to all bins says nothing, and without
        // it a burst of hundreds of packets would leave nothing but zeros
        let (least, most) = (transition.means[1], transition.means[BINS - 1]);
        let best = count.clamp(least, most);
        let top = count * ln(best) - best;
        for ((weight, &mean), &log) in self.weights.iter_mut().zip(&transition.means).zip(&transition.logs) {
            *weight *= if mean > 0.0 {
                exp(count * log - mean - top) * factor(mean)
            } else if count > 0.0 {
                0.0
            } else {
                exp(-top)
            };
        }
    }

    /// Makes the sum 1.
    pub fn normalise(&mut self) {
        let sum: f64 = self.weights.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            self.weights.iter_mut().for_each(|weight| *weight /= sum);
        } else {
            // nothing that was believed possible is: begin anew
            *self = Self::default();
        }
        debug_assert!((self.weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "probabilities sum up to 1");
    }
}
