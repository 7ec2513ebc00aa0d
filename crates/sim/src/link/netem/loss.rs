//! Losses of the emulator: by chance, or by one of two models with states.

use super::random::{Correlated, number};
use super::{Chance, Part};
use serde::Deserialize;
use tidegate_core::Stream;

/// A model of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LossModel {
    /// By chance, each loss correlated with the one before.
    Random(Chance),
    /// Four states: gap or burst, received or lost (Salsano, Ludovici, Ordine: the general and intuitive model). The
    /// probabilities of going from one to another; a packet that is lost in a gap is alone.
    State {
        /// From a gap into a lost burst.
        p13: Part,
        /// From a lost burst into a gap.
        p31: Part,
        /// From a lost burst to what is received within it.
        p32: Part,
        /// From what is received within a burst to its losses.
        p23: Part,
        /// From a gap to a single loss.
        p14: Part,
    },
    /// Gilbert and Elliott's model.
    Gemodel {
        /// From the good state to the bad one.
        p: Part,
        /// From the bad state to the good one.
        r: Part,
        /// Probability that a packet arrives in the bad state.
        h: Part,
        /// Loss probability in the good state.
        k1: Part,
    },
}

impl Default for LossModel {
    fn default() -> Self {
        Self::Random(Chance::default())
    }
}

impl LossModel {
    /// Correlation of its random numbers.
    pub(super) const fn correlation(&self) -> Part {
        match self {
            Self::Random(chance) => chance.correlation,
            _ => 0,
        }
    }
}

/// State of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LossState {
    /// In a gap; the good state.
    #[default]
    Gap,
    /// A single loss in a gap.
    LostInGap,
    /// Received within a burst.
    Burst,
    /// Lost within a burst; the bad state.
    LostInBurst,
}

impl LossState {
    /// Whether the next packet is lost (`loss_event`).
    pub(super) fn takes(&mut self, model: &LossModel, numbers: &mut Correlated, luck: &mut Stream) -> bool {
        match *model {
            LossModel::Random(Chance { probability, .. }) => numbers.happens(probability, luck),
            LossModel::State { p13, p31, p32, p23, p14 } => {
                let drawn = number(luck);
                let next = match *self {
                    Self::Gap if drawn < p14 => Self::LostInGap,
                    Self::Gap if drawn < p13.wrapping_add(p14) => Self::LostInBurst,
                    Self::Burst if drawn < p23 => Self::LostInBurst,
                    Self::LostInBurst if drawn < p32 => Self::Burst,
                    Self::LostInBurst if drawn < p31.wrapping_add(p32) => Self::Gap,
                    Self::LostInGap => Self::Gap,
                    same => same,
                };
                *self = next;
                matches!(next, Self::LostInGap | Self::LostInBurst)
            }
            LossModel::Gemodel { p, r, h, k1 } => {
                let bad = *self == Self::LostInBurst;
                if number(luck) < if bad { r } else { p } {
                    *self = if bad { Self::Gap } else { Self::LostInBurst };
                }
                // by the state before, as in Linux
                if bad { number(luck) > h } else { number(luck) < k1 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 2_000_000;

    fn part(share: f64) -> Part {
        (share * 4_294_967_295.0) as u32
    }

    /// Share of lost packets, mean length of a run of losses, and share of runs of one.
    fn runs(model: LossModel) -> (f64, f64, f64) {
        let mut luck = Stream::new(8, "netem", "test");
        let mut numbers = Correlated::new(model.correlation(), &mut luck);
        let mut state = LossState::default();
        let lost: Vec<bool> = (0..COUNT).map(|_| state.takes(&model, &mut numbers, &mut luck)).collect();
        let losses = lost.iter().filter(|&&lost| lost).count() as f64;
        let begins = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let single = lost.windows(3).filter(|three| !three[0] && three[1] && !three[2]).count() as f64;
        (losses / COUNT as f64, losses / begins, single / begins)
    }

    #[test]
    fn gilbert_elliott_has_its_share_and_its_runs() {
        // Gilbert: every packet of the bad state is lost; p / (p + r), in runs of 1 / r
        let (share, run, _) = runs(LossModel::Gemodel { p: part(0.01), r: part(0.25), h: 0, k1: 0 });
        assert!((share / (0.01 / 0.26) - 1.0).abs() < 0.02, "{share}");
        assert!((run / 4.0 - 1.0).abs() < 0.02, "{run}");
        // 30 % arrive in the bad state, and 1 % is lost in the good one
        let (share, ..) =
            runs(LossModel::Gemodel { p: part(0.01), r: part(0.25), h: part(0.3), k1: part(0.01) });
        let expected = (0.01 * 0.7 + 0.25 * 0.01) / 0.26;
        assert!((share / expected - 1.0).abs() < 0.02, "{share} for {expected}");
    }

    /// In the model of four states with p23 = 1 and p14 = 0 runs of losses end as often as p31 + p32 says. The stationary
    /// shares are those of the chain.
    #[test]
    fn four_states_have_the_shares_of_their_chain() {
        let (p13, p31, p32, p23, p14) = (0.02, 0.3, 0.2, 0.6, 0.01);
        let model = LossModel::State {
            p13: part(p13),
            p31: part(p31),
            p32: part(p32),
            p23: part(p23),
            p14: part(p14),
        };
        // with the gap at 1: lost in the gap p14, lost burst b p13 = b p31, received burst b p32 / p23
        let lost_burst = p13 / p31;
        let total = 1.0 + p14 + lost_burst + lost_burst * p32 / p23;
        let (share, run, single) = runs(model);
        let expected = (p14 + lost_burst) / total;
        assert!((share / expected - 1.0).abs() < 0.02, "{share} for {expected}");
        // runs begin with a single loss, from the gap, or from within a burst; bursts last 1 / (p31 + p32)
        let begins = p14 + p13 + lost_burst * p32;
        let mean = (p14 + lost_burst) / begins;
        assert!((run / mean - 1.0).abs() < 0.02, "{run} for {mean}");
        let alone = (p14 + (p13 + lost_burst * p32) * (p31 + p32)) / begins;
        assert!((single / alone - 1.0).abs() < 0.02, "{single} for {alone}");
    }

    #[test]
    fn tc_has_its_defaults() {
        // `loss state 5%`: p31 = 95 %, p23 = 100 %: as if by chance
        let model = LossModel::State { p13: part(0.05), p31: part(0.95), p32: 0, p23: u32::MAX, p14: 0 };
        let (share, ..) = runs(model);
        assert!((share / 0.05 - 1.0).abs() < 0.02, "{share}");
    }
}
