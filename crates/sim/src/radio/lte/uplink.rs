//! Uplink rules: power control and waiting for a grant.

use super::propagation::linear;
use super::settings::BLOCKS;

/// Target of the received power of each resource block in dBm, and the share of the path loss that a user compensates
/// (P_O_PUSCH and alpha of TS 36.213 section 5.1.1.1, open loop; the values of TR 36.814 table A.2.2-1).
const P0_PUSCH: f64 = -106.0;
const ALPHA: f64 = 1.0;
/// Largest power of a user in dBm (TS 36.101 power class 3).
const MAX_POWER: f64 = 23.0;
/// Noise of a cell's receiver in dBm for each resource block: -174 dBm/Hz over 180 kHz with a noise figure of
/// 5 dB (TR 25.814 table A.2.1.1-2).
const NOISE: f64 = -174.0 + 52.552_725_051 + 5.0;
/// Resource elements of a resource block pair for data: 12 of 14 symbols are not reference symbols (TS 36.211
/// section 5.5.2.1).
pub const ELEMENTS: f64 = 144.0;
/// TTIs between two opportunities of a user to request a grant (TS 36.213 table 10.1.5-1).
const REQUEST_PERIOD: i64 = 10;
/// TTIs from the request to the first transmission: four until the cell has decoded and answered, four until the user
/// sends (TS 36.213 section 8).
const GRANT_DELAY: i64 = 8;

/// Noise of a cell's receiver in milliwatts for each resource block.
#[must_use]
pub fn noise() -> f32 {
    linear(NOISE) as f32
}

/// A user's power in milliwatts for each resource block, and its largest number of subbands, if the share `gain` of the
/// power reaches its cell.
#[must_use]
pub fn power(gain: f32, subbands: usize) -> (f32, usize) {
    let gain = f64::from(gain);
    let target = linear(P0_PUSCH) * tidegate_core::math::pow(gain, -ALPHA);
    let max_power = linear(MAX_POWER) / BLOCKS as f64;
    let count = (max_power / target).min(subbands as f64).max(1.0);
    (target.min(max_power) as f32, count as usize)
}

/// The first TTI in which user number `user` may send data that comes in during TTI `tti`.
#[must_use]
pub fn first_grant(user: u32, tti: i64) -> i64 {
    let phase = i64::from(user) % REQUEST_PERIOD;
    tti + (phase - tti).rem_euclid(REQUEST_PERIOD) + GRANT_DELAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_the_target_of_the_cell_or_the_limit_of_the_user() {
        // a coupling loss of 100 dB: -6 dBm a resource block, 1 dBm a subband: 22 dB below the most, 158 subbands
        let (power_near, subbands) = power(1e-10, 10);
        assert!((f64::from(power_near) / linear(-6.0) - 1.0).abs() < 1e-5);
        assert_eq!(subbands, 10);
        // 120 dB: 14 dBm a block, 21 a subband: one
        assert_eq!(power(1e-12, 10).1, 1);
        // 115 dB: 9 dBm a block, 16 a subband: five
        assert_eq!(power(linear(-115.0) as f32, 10).1, 5);
        // 140 dB would need 34 dBm a block: 23 dBm over five of them
        let (power_far, subbands) = power(1e-14, 10);
        assert!((f64::from(power_far) / (linear(23.0) / 5.0) - 1.0).abs() < 1e-5);
        assert_eq!(subbands, 1);
    }

    #[test]
    fn a_grant_takes_eight_to_seventeen_ttis() {
        let mut waits: Vec<i64> = (0..10).map(|tti| first_grant(3, 100 + tti) - (100 + tti)).collect();
        assert_eq!(waits[3], 8);
        waits.sort_unstable();
        assert_eq!(waits, (8..18).collect::<Vec<_>>());
    }
}
