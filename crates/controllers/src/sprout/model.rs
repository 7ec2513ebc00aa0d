//! Receiver's model of the link: a distribution over its rate, which spreads with time and narrows with arrivals.
//!
//! NSDI 2013 section 3.1: the rate performs a Brownian motion, packets arrive as a Poisson process of that rate, and an
//! outage ends at a separate rate. Numbers and bins are those of keithw/sprout (`src/sprout/receiver.hh`, `process.cc`,
//! `sampledfunction.hh`), including the lookup table of the Gaussian, because forecasts have to agree to the packet.

use std::sync::OnceLock;
use tidegate_core::Span;
use tidegate_core::math::{erfc, exp, ln, sqrt};

/// Length of a tick (`TICK_LENGTH`).
pub const TICK: Span = Span::from_millis(20);
/// Length of a tick, s.
const TICK_S: f64 = 0.02;
/// Largest rate, packets/s.
const MAX_ARRIVAL_RATE: f64 = 1000.0;
/// Number of bins: `NUM_BINS`, and one more that begins at the largest rate and has no upper bound.
pub const BINS: usize = 257;
/// Width of a bin, packets/s.
const WIDTH: f64 = MAX_ARRIVAL_RATE / (BINS - 1) as f64;
/// Standard deviation of the rate's change after a second, packets/s.
const BROWNIAN_MOTION_RATE: f64 = 200.0;
/// Rate at which an outage ends, 1/s.
const OUTAGE_ESCAPE_RATE: f64 = 1.0;
/// Number of standard deviations at which the motion is cut off.
const REACH: f64 = 5.0;
/// Number of cells in the Gaussian's table, without the last one: 128 for each of 256 bins, from -1000 to 1000 packets/s.
const TABLE_CELLS: usize = 128 * 256;

/// Rate that stands for a bin, packets/s: its middle, and zero for the outage.
#[must_use]
pub fn rate(bin: usize) -> f64 {
    if bin == 0 { 0.0 } else { (bin as f64 + 0.5) * WIDTH }
}

/// Bin of a rate.
fn bin(rate: f64) -> usize {
    // `as` turns negative rates into zero
    ((rate / WIDTH) as usize).min(BINS - 1)
}

/// Distribution function of the Gaussian as in the original, which looks it up in a table: the middle of a cell stands for
/// the cell, the lower end for the first one.
fn gaussian(x: f64, sd: f64) -> f64 {
    let width = 2.0 * MAX_ARRIVAL_RATE / TABLE_CELLS as f64;
    let cell = (((x + MAX_ARRIVAL_RATE) / width) as usize).min(TABLE_CELLS);
    let middle = if cell == 0 { 0.0 } else { (cell as f64 + 0.5) * width };
    0.5 * erfc((MAX_ARRIVAL_RATE - middle) / (sd * std::f64::consts::SQRT_2))
}

/// Transition probabilities from one bin in a tick.
#[derive(Debug)]
struct Row {
    /// First bin with a probability.
    first: usize,
    weights: Vec<f64>,
}

/// Transition matrix of one tick, a band.
#[derive(Debug)]
pub struct Transition {
    rows: Vec<Row>,
    /// Expected packets in a tick, by bin.
    means: [f64; BINS],
    /// Logarithms of these.
    logs: [f64; BINS],
}

impl Transition {
    /// Transition that all receivers share.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Transition> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    fn new() -> Self {
        let sd = BROWNIAN_MOTION_RATE * sqrt(TICK_S);
        let escape = 1.0 - exp(-TICK_S * OUTAGE_ESCAPE_RATE);
        let row = |from: usize| {
            let present = rate(from);
            let first = bin(present - REACH * sd);
            let last = (bin(present + REACH * sd) + 1).min(BINS - 1);
            let share = |to: usize| {
                // the outermost bins take all probability beyond
                let below = if to == 0 { f64::NEG_INFINITY } else { to as f64 * WIDTH - present };
                let above = if to == BINS - 1 { f64::INFINITY } else { (to + 1) as f64 * WIDTH - present };
                let share = gaussian(above, sd) - gaussian(below, sd);
                // an outage tends to last; like the original, this does not normalise before a forecast
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

    /// Expected packets in a tick, by bin.
    #[must_use]
    pub fn means(&self) -> &[f64; BINS] {
        &self.means
    }

    /// Probability of a transition from one bin to another in a tick; those from the outage do not sum to 1.
    #[must_use]
    pub fn share(&self, from: usize, to: usize) -> f64 {
        let row = &self.rows[from];
        to.checked_sub(row.first).and_then(|index| row.weights.get(index)).copied().unwrap_or(0.0)
    }
}

/// Distribution over the rate.
#[derive(Clone, Debug)]
pub struct Belief {
    /// Weights, proportional to the probabilities until [`Belief::normalise`].
    weights: [f64; BINS],
}

impl Default for Belief {
    /// Uniform distribution.
    fn default() -> Self {
        Self { weights: [1.0 / BINS as f64; BINS] }
    }
}

impl Belief {
    /// Creates a distribution that is certain of `bin`.
    #[must_use]
    pub fn certain(bin: usize) -> Self {
        let mut weights = [0.0; BINS];
        weights[bin] = 1.0;
        Self { weights }
    }

    /// Probability of each bin, once normalised.
    #[must_use]
    pub fn weights(&self) -> &[f64; BINS] {
        &self.weights
    }

    /// Mean rate, packets/s, once normalised.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.weights.iter().enumerate().map(|(bin, weight)| weight * rate(bin)).sum()
    }

    /// Moves the distribution by a tick.
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

    /// Takes the number of packets in a tick.
    pub fn observe(&mut self, count: u32, transition: &Transition) {
        self.weigh(count, transition, |_| 1.0);
    }

    /// Takes a lower bound of the packets that the link could have delivered, when the sender had no more (ours).
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

    /// Multiplies the weights by the Poisson probability of `count` and a factor that depends on the mean.
    fn weigh(&mut self, count: u32, transition: &Transition, factor: impl Fn(f64) -> f64) {
        let count = f64::from(count);
        // relative to the likeliest mean: a factor common to all bins has no effect, and without it a burst of
        // hundreds of packets would make all weights zero
        let (lowest, highest) = (transition.means[1], transition.means[BINS - 1]);
        let likeliest = count.clamp(lowest, highest);
        let max_log = count * ln(likeliest) - likeliest;
        for ((weight, &mean), &log) in self.weights.iter_mut().zip(&transition.means).zip(&transition.logs) {
            *weight *= if mean > 0.0 {
                exp(count * log - mean - max_log) * factor(mean)
            } else if count > 0.0 {
                0.0
            } else {
                exp(-max_log)
            };
        }
    }

    /// Scales the weights to a sum of 1.
    pub fn normalise(&mut self) {
        let sum: f64 = self.weights.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            self.weights.iter_mut().for_each(|weight| *weight /= sum);
        } else {
            // no possible rate explains the arrivals: start anew
            *self = Self::default();
        }
        debug_assert!((self.weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "probabilities sum to 1");
    }
}
