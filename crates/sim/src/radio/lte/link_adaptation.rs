//! Link adaptation: mutual information, block errors, CQI, and modulation and coding schemes.
//!
//! The SINRs of a transport block's subbands are mapped to one effective SINR by the mutual information of the
//! block's modulation (MIESM; IEEE 802.16m-08/004r5 section 4.3.2.1, tables 24 and 29); the block error rate follows
//! from curves over white noise.

use super::fading::{Band, WIDTH};
use tidegate_core::math;

/// Efficiencies of the CQI in bits a resource element (TS 36.213 table 7.2.3-1).
pub const CQI: [f64; 16] = [
    0.0, 0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023,
    4.5234, 5.1152, 5.5547,
];

/// SINR in dB at which a block of a CQI's efficiency has an error rate of 10 % over white noise: link-level
/// simulations of the Vienna LTE simulator (Mehlführer, Wrulich, Ikuno, Bosanska, Rupp, "Simulating the Long Term
/// Evolution physical layer", EUSIPCO 2009, figure of BLER over AWGN).
const THRESHOLD: [f64; 16] = [
    -40.0, -6.936, -5.147, -3.180, -1.253, 0.761, 2.699, 4.693, 6.525, 8.573, 10.366, 12.289, 14.173, 15.888,
    17.814, 19.829,
];

/// Standard deviation in dB of the normal distribution whose tail is the block error rate: with it the rate falls
/// from 90 % to 10 % within 1 dB, as the curves over white noise do.
const STEEPNESS: f64 = 0.39;

/// Largest error in dB of the conversion to mutual information and back; added so that equal CQI choose the scheme of
/// their efficiency.
const ROUNDING: f32 = 0.02;

/// The error rate at which a CQI is chosen (TS 36.213 section 7.2.3).
pub const TARGET: f64 = 0.1;
/// The value at which the tail of a standard normal distribution is [`TARGET`].
const TARGET_DEVIATIONS: f64 = 1.281_551_565_545;

/// Number of modulation and coding schemes (TS 36.213 table 7.1.7.1-1: 0 to 28).
pub const SCHEMES: usize = 29;

/// Smallest and largest binary exponent of a tabulated SINR, and steps an octave.
const OCTAVES: (i32, i32) = (-12, 15);
const STEPS: usize = 32;
const ENTRIES: usize = (OCTAVES.1 - OCTAVES.0) as usize * STEPS;
/// Entries of the inverse of mutual information.
const INVERSE_ENTRIES: usize = 2048;
/// Entries of block error rates, from -4 to 4 dB.
const ERRORS: usize = 512;
/// Entries of factors, from -40 to 45 dB.
const FACTORS: usize = 850;
const FACTORS_MIN: f32 = -40.0;

/// A modulation and coding scheme.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheme {
    /// Bits a resource element.
    pub efficiency: f64,
    /// Modulation: 0 for QPSK, 1 for 16-QAM, 2 for 64-QAM.
    pub modulation: usize,
    /// SINR in dB at which its block error rate is 10 %.
    pub threshold: f32,
}

/// The tables of link adaptation.
#[derive(Clone, Debug)]
pub struct Tables {
    /// All schemes, from the most robust one on.
    pub schemes: [Scheme; SCHEMES],
    /// For each modulation the mutual information over the SINR, in steps of its binary logarithm.
    information: [Box<[f32; ENTRIES]>; 3],
    /// For each modulation the SINR in dB over the mutual information.
    inverse: [Box<[f32; INVERSE_ENTRIES + 1]>; 3],
    /// For each modulation the mutual information at each CQI's threshold.
    reported: [[f32; 16]; 3],
    /// The dB of the steps, and the CQI.
    decibels: Box<[f32; ENTRIES]>,
    cqi: Box<[u8; ENTRIES]>,
    /// Block error rates over the dB above the threshold.
    errors: Box<[f32; ERRORS]>,
    /// Factors over dB.
    factors: Box<[f32; FACTORS + 1]>,
}

/// Mutual information of a bit of binary modulation with soft output of the given deviation (IEEE 802.16m-08/004r5
/// table 24).
fn binary(x: f64) -> f64 {
    if x <= 1.6363 {
        (-0.042_106_61 * x * x * x + 0.209_252 * x * x - 0.006_400_81 * x).max(0.0)
    } else {
        1.0 - math::exp(0.001_814_91 * x * x * x - 0.142_675 * x * x - 0.082_205_40 * x + 0.054_960_8)
            .min(1.0)
    }
}

/// Mutual information a bit of a modulation at a SINR given as a factor (IEEE 802.16m-08/004r5 table 29).
#[must_use]
pub fn mutual_information(modulation: usize, sinr: f64) -> f64 {
    // beyond 35 dB the fitted polynomial decreases
    let root = math::sqrt(sinr);
    let j = |scale: f64| binary((scale * root).min(38.0));
    match modulation {
        0 => j(2.0),
        1 => 0.5 * j(0.8) + 0.25 * j(2.17) + 0.25 * j(0.965),
        _ => (j(1.47) + j(0.529) + j(0.366)) / 3.0,
    }
}

/// Block error rate of a block `margin` dB above the SINR at which it is 10 %.
#[must_use]
pub fn block_errors(margin: f64) -> f64 {
    let deviations = margin / STEEPNESS + TARGET_DEVIATIONS;
    0.5 - 0.5 * math::erf(deviations / std::f64::consts::SQRT_2)
}

/// The entry of a SINR in the tables: sign, exponent and the first five bits of the mantissa.
#[inline]
fn entry(sinr: f32) -> usize {
    let position = (sinr.to_bits() >> 18) as i32 - ((OCTAVES.0 + 127) << 5);
    position.clamp(0, ENTRIES as i32 - 1) as usize
}

/// The SINR in the middle of an entry.
fn value(entry: usize) -> f64 {
    let octave = OCTAVES.0 + (entry / STEPS) as i32;
    let within = 1.0 + ((entry % STEPS) as f64 + 0.5) / STEPS as f64;
    within * math::pow(2.0, f64::from(octave))
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

impl Tables {
    /// Computes the tables.
    #[must_use]
    pub fn new() -> Self {
        let mut schemes = [Scheme::default(); SCHEMES];
        for (index, scheme) in schemes.iter_mut().enumerate() {
            // even schemes are those of a CQI, odd ones lie half way between (R1-081483)
            let (low, high) = (1 + index / 2, (1 + index.div_ceil(2)).min(15));
            scheme.efficiency = (CQI[low] + CQI[high]) / 2.0;
            scheme.threshold = ((THRESHOLD[low] + THRESHOLD[high]) / 2.0) as f32;
            // TS 36.213 table 7.1.7.1-1
            scheme.modulation = match index {
                0..=9 => 0,
                10..=16 => 1,
                _ => 2,
            };
        }
        let mut information = [(); 3].map(|()| Box::new([0.0; ENTRIES]));
        let mut inverse = [(); 3].map(|()| Box::new([0.0; INVERSE_ENTRIES + 1]));
        let mut reported = [[0.0; 16]; 3];
        let mut decibels = Box::new([0.0; ENTRIES]);
        for modulation in 0..3 {
            for index in 0..ENTRIES {
                information[modulation][index] = mutual_information(modulation, value(index)) as f32;
                decibels[index] = (10.0 * math::log10(value(index))) as f32;
            }
            for (cqi, entry) in reported[modulation].iter_mut().enumerate() {
                let sinr = math::pow(10.0, THRESHOLD[cqi] / 10.0);
                *entry = mutual_information(modulation, sinr) as f32;
            }
            // the SINR at which the information is that of the entry, by bisection
            for (index, entry) in inverse[modulation].iter_mut().enumerate() {
                let information_level = index as f64 / INVERSE_ENTRIES as f64;
                let (mut low, mut high) = (-36.0, 40.0);
                for _ in 0..50 {
                    let middle = (low + high) / 2.0;
                    if mutual_information(modulation, math::pow(10.0, middle / 10.0)) < information_level {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                *entry = high as f32;
            }
        }
        let mut cqi = Box::new([0; ENTRIES]);
        for (cqi, &decibels) in cqi.iter_mut().zip(decibels.iter()) {
            *cqi =
                THRESHOLD.iter().rposition(|&threshold| f64::from(decibels) >= threshold).unwrap_or(0) as u8;
        }
        let mut errors = Box::new([0.0; ERRORS]);
        for (index, rate) in errors.iter_mut().enumerate() {
            *rate = block_errors((index as f64 + 0.5) * 8.0 / ERRORS as f64 - 4.0) as f32;
        }
        let mut factors = Box::new([0.0; FACTORS + 1]);
        for (index, factor) in factors.iter_mut().enumerate() {
            *factor = math::pow(10.0, (f64::from(FACTORS_MIN) + index as f64 / 10.0) / 10.0) as f32;
        }
        Self { schemes, information, inverse, reported, decibels, cqi, errors, factors }
    }

    /// The block error rate by [`block_errors`], for a margin accurate to a hundredth of a dB.
    #[inline]
    #[must_use]
    pub fn block_errors(&self, margin: f32) -> f64 {
        let position = (margin + 4.0) * (ERRORS as f32 / 8.0);
        f64::from(self.errors[(position.max(0.0) as usize).min(ERRORS - 1)])
    }

    /// Converts dB to a factor, between -40 and 45 dB.
    #[inline]
    #[must_use]
    pub fn factor(&self, decibels: f32) -> f32 {
        let position = ((decibels - FACTORS_MIN) * 10.0).clamp(0.0, FACTORS as f32 - 0.5);
        let index = position as usize;
        self.factors[index] + (self.factors[index + 1] - self.factors[index]) * (position - index as f32)
    }

    /// Converts a SINR to dB, accurate to 0.07 dB.
    #[inline]
    #[must_use]
    pub fn decibels(&self, sinr: f32) -> f32 {
        self.decibels[entry(sinr)]
    }

    /// The effective SINR in dB of mean mutual information.
    #[inline]
    fn effective(&self, modulation: usize, information: f32) -> f32 {
        let position = information.clamp(0.0, 1.0) * INVERSE_ENTRIES as f32;
        let index = (position as usize).min(INVERSE_ENTRIES - 1);
        let table = &self.inverse[modulation];
        table[index] + (table[index + 1] - table[index]) * (position - index as f32)
    }

    /// The effective SINR in dB of a block of `modulation` over the subbands of `mask`.
    #[inline]
    #[must_use]
    pub fn over(&self, modulation: usize, sinr: &Band, mask: u32) -> f32 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (subband, &sinr) in sinr.iter().enumerate() {
            if mask >> subband & 1 == 1 {
                sum += self.information[modulation][entry(sinr)];
                count += 1.0;
            }
        }
        self.effective(modulation, sum / count)
    }

    /// The CQI of a SINR: the largest one for which nine of ten blocks would arrive.
    #[inline]
    #[must_use]
    pub fn cqi(&self, sinr: f32) -> u8 {
        self.cqi[entry(sinr)]
    }

    /// The scheme for the subbands of `mask` with these CQI, whose SINR is corrected by `offset` dB.
    #[must_use]
    pub fn scheme(&self, cqi: &[u8; WIDTH], mask: u32, offset: f32) -> usize {
        let mut means = [0.0_f32; 3];
        let mut count = 0.0;
        for (subband, &cqi) in cqi.iter().enumerate() {
            if mask >> subband & 1 == 1 {
                for (mean, table) in means.iter_mut().zip(&self.reported) {
                    *mean += table[usize::from(cqi)];
                }
                count += 1.0;
            }
        }
        let reach: [f32; 3] = std::array::from_fn(|modulation| {
            self.effective(modulation, means[modulation] / count) + offset + ROUNDING
        });
        self.schemes.iter().rposition(|scheme| reach[scheme.modulation] >= scheme.threshold).unwrap_or(0)
    }
}

/// The outer loop: corrects the SINR of CQI until blocks fail at the target rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct OuterLoop {
    offset: f32,
}

impl OuterLoop {
    /// Step down after a failed block in dB; the step up follows from the error rate [`TARGET`] (Pedersen et al., VTC
    /// Fall 2007).
    const DOWN: f32 = 0.5;
    const UP: f32 = Self::DOWN * (TARGET / (1.0 - TARGET)) as f32;
    /// Largest absolute offset in dB.
    const MAX_OFFSET: f32 = 6.0;

    /// The correction of a reported SINR in dB.
    #[must_use]
    pub fn offset(self) -> f32 {
        self.offset
    }

    /// Updates the offset with the result of a block's first transmission.
    pub fn learn(&mut self, decoded: bool) {
        let step = if decoded { Self::UP } else { -Self::DOWN };
        self.offset = (self.offset + step).clamp(-Self::MAX_OFFSET, Self::MAX_OFFSET);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_ordered_and_less_efficient_than_capacity() {
        let tables = Tables::new();
        for pair in tables.schemes.windows(2) {
            assert!(pair[0].efficiency < pair[1].efficiency && pair[0].threshold < pair[1].threshold);
        }
        for scheme in &tables.schemes {
            let shannon = math::log2(1.0 + math::pow(10.0, f64::from(scheme.threshold) / 10.0));
            assert!(scheme.efficiency < shannon, "{scheme:?}");
            // and than what its own modulation can carry, but by less than 3 dB
            let bits = [2.0, 4.0, 6.0][scheme.modulation];
            let capacity = |decibels: f64| {
                bits * mutual_information(scheme.modulation, math::pow(10.0, decibels / 10.0))
            };
            let threshold = f64::from(scheme.threshold);
            assert!(
                capacity(threshold) > scheme.efficiency && capacity(threshold - 3.0) < scheme.efficiency,
                "{scheme:?}"
            );
        }
        assert_eq!(tables.schemes[0].efficiency, 0.1523);
        assert_eq!(tables.schemes[28].efficiency, 5.5547);
    }

    #[test]
    fn mutual_information_rises_to_one_and_its_inverse_is_exact() {
        let tables = Tables::new();
        for modulation in 0..3 {
            let mut last = 0.0;
            for tenth in -250..350 {
                let sinr = math::pow(10.0, f64::from(tenth) / 100.0);
                let information = mutual_information(modulation, sinr);
                assert!(information >= last - 1e-12 && information <= 1.0, "{modulation} {tenth}");
                last = information;
                // equal subbands: the effective SINR is theirs, within the step of the table
                if information > 0.002 && information < 0.98 {
                    let effective = tables.over(modulation, &[sinr as f32; WIDTH], 0b11);
                    assert!(
                        (f64::from(effective) - f64::from(tenth) / 10.0).abs() < 0.12,
                        "{modulation} {tenth} {effective}"
                    );
                }
            }
            assert!(last > 0.999);
        }
        // QPSK at 0 dB: 0.4859 bits a bit (the capacity of BPSK at 0 dB)
        assert!((mutual_information(0, 1.0) - 0.486).abs() < 0.005, "{}", mutual_information(0, 1.0));
    }

    #[test]
    fn errors_are_a_tenth_at_the_threshold_and_fall_fast() {
        assert!((block_errors(0.0) - 0.1).abs() < 1e-9);
        assert!((block_errors(-2.0 * TARGET_DEVIATIONS * STEEPNESS) - 0.9).abs() < 1e-9);
        assert!(block_errors(1.5) < 1e-6 && block_errors(-3.0) > 0.999_999);
    }

    #[test]
    fn tables_agree_with_their_functions() {
        let tables = Tables::new();
        for tenth in -390..440 {
            let decibels = tenth as f32 / 10.0 + 0.03;
            let exact = math::pow(10.0, f64::from(decibels) / 10.0);
            assert!((f64::from(tables.factor(decibels)) / exact - 1.0).abs() < 1e-4, "{decibels} dB");
            if decibels > -36.0 {
                assert!((tables.decibels(exact as f32) - decibels).abs() < 0.07, "{decibels} dB");
            }
            // the steepest slope is a fraction of 1 a dB
            let exact = block_errors(f64::from(decibels));
            assert!((tables.block_errors(decibels) - exact).abs() < 0.011, "{decibels} dB");
        }
    }

    #[test]
    fn a_cqi_chooses_the_scheme_of_its_efficiency() {
        let tables = Tables::new();
        for cqi in 1..16 {
            let scheme = tables.scheme(&[cqi; WIDTH], 0b111, 0.0);
            assert_eq!(scheme, 2 * (usize::from(cqi) - 1), "CQI {cqi}");
            let sinr = math::pow(10.0, (THRESHOLD[usize::from(cqi)] + 0.1) / 10.0);
            assert_eq!(tables.cqi(sinr as f32), cqi);
        }
        assert_eq!(tables.cqi(0.0), 0);
        // one subband in a deep fade costs less than its share of dB, and more than nothing
        let mut mixed = [10; WIDTH];
        mixed[1] = 4;
        let scheme = tables.scheme(&mixed, 0b111, 0.0);
        assert!(scheme > 10 && scheme < 18, "{scheme}");
    }

    #[test]
    fn the_outer_loop_balances_at_its_target() {
        let mut outer = OuterLoop::default();
        // nine decoded blocks for each failed one leave the offset unchanged
        for _ in 0..50 {
            outer.learn(false);
            (0..9).for_each(|_| outer.learn(true));
        }
        assert!(outer.offset().abs() < 1e-3, "{}", outer.offset());
    }
}
