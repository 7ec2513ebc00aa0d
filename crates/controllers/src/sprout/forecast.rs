//! Forecast of the packets that the link will almost certainly deliver in the next ticks.
//!
//! For each present rate of the link, the distribution of the cumulated arrivals in the next one to eight ticks is computed
//! once (`processforecaster.cc`); a forecast mixes these distributions by the present belief. As in the original, more
//! than 29 packets in one tick do not count: their probability is dropped without normalisation.

use super::model::{BINS, Belief, Transition};
use std::sync::OnceLock;
use tidegate_core::math::exp;

/// Number of ticks that a forecast covers (`NUM_TICKS`).
pub const TICKS: usize = 8;
/// Number of counts in a tick, from zero.
const MAX_ARRIVALS_PER_TICK: usize = 30;

/// Cumulated number of packets delivered by the end of each tick.
pub type Forecast = [u32; TICKS];

/// Distribution functions of the cumulated arrivals: `[tick][count][bin]`.
#[derive(Debug)]
pub struct Tables {
    below: Vec<Vec<[f64; BINS]>>,
}

impl Tables {
    /// Tables that all receivers share.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Tables> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(Transition::shared()))
    }

    fn new(transition: &Transition) -> Self {
        let likelihood = likelihood(transition);
        let mut below: Vec<Vec<[f64; BINS]>> =
            (1..=TICKS).map(|ticks| vec![[0.0; BINS]; ticks * (MAX_ARRIVALS_PER_TICK - 1) + 1]).collect();
        for bin in 0..BINS {
            let mut belief = Belief::certain(bin);
            let mut arrived = vec![1.0];
            for tables in &mut below {
                let tick = likelihood.each_ref().map(|row| dot(belief.weights(), row));
                arrived = convolve(&arrived, &tick);
                let mut sum = 0.0;
                for (table, probability) in tables.iter_mut().zip(&arrived) {
                    sum += probability;
                    table[bin] = sum;
                }
                belief.evolve(transition);
                belief.normalise();
            }
        }
        Self { below }
    }

    /// Quantile of the cumulated arrivals by the end of each tick: fewer arrive with the probability `quantile`. `belief`
    /// must be normalised.
    #[must_use]
    pub fn forecast(&self, belief: &Belief, quantile: f64) -> Forecast {
        let mut count = 0;
        std::array::from_fn(|tick| {
            let tables = &self.below[tick];
            let steps = tables[count..].partition_point(|row| dot(belief.weights(), row) < quantile);
            if count + steps == tables.len() {
                // the dropped probability exceeds the rest; the original returns this
                return tables.len() as u32 + 1;
            }
            count += steps;
            count as u32
        })
    }
}

/// Poisson probabilities, `[count][bin]`.
fn likelihood(transition: &Transition) -> [[f64; BINS]; MAX_ARRIVALS_PER_TICK] {
    let mut rows = [[0.0; BINS]; MAX_ARRIVALS_PER_TICK];
    for (bin, &mean) in transition.means().iter().enumerate() {
        let mut probability = exp(-mean);
        for (count, row) in rows.iter_mut().enumerate() {
            row[bin] = probability;
            probability *= mean / (count + 1) as f64;
        }
    }
    rows
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (sum, y) in sum[i..].iter_mut().zip(b) {
            *sum += x * y;
        }
    }
    sum
}

/// Scalar product in eight independent sums, for speed.
fn dot(a: &[f64; BINS], b: &[f64; BINS]) -> f64 {
    let (a_chunks, a_remainder) = a.as_chunks::<8>();
    let (b_chunks, b_remainder) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for ((sum, x), y) in sums.iter_mut().zip(a).zip(b) {
            *sum += x * y;
        }
    }
    let remainder: f64 = a_remainder.iter().zip(b_remainder).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + remainder
}
