//! The mean power of a cell that reaches a user: path loss, antenna pattern, penetration, shadowing.
//!
//! The cases are those of TR 25.814 table A.2.1.1-1; the values of macro cells those of its tables A.2.1.1-2
//! and A.2.1.1-3 and of TR 36.814 tables A.2.1.1-1 and A.2.1.1-2.

use super::layout::{BORESIGHTS, Layout, SECTORS};
use crate::radio::Point;
use crate::refusal::Refusal;
use serde::Deserialize;
use tidegate_core::math;
use tidegate_core::rng::Stream;

/// Carrier frequency in hertz (TR 25.814 table A.2.1.1-1).
pub const CARRIER: f64 = 2e9;
/// Speed of light in metres a second.
const SPEED_OF_LIGHT: f64 = 299_792_458.0;
/// Loss of the walls around a user in dB, in cases 1 and 3.
const PENETRATION: f64 = 20.0;
/// Antenna gain of a sector with its cable loss, in dBi (TR 25.814 table A.2.1.1-2).
const GAIN: f64 = 14.0;
/// Width of the horizontal pattern at -3 dB in degrees.
const WIDTH: f64 = 70.0;
/// Largest attenuation of the pattern in dB: alone (TR 25.814), and with a vertical pattern (TR 36.814).
const FLOOR: (f64, f64) = (20.0, 25.0);
/// Width of the vertical pattern in degrees, and its largest attenuation in dB (TR 36.814 table A.2.1.1-2).
const VERTICAL: (f64, f64) = (10.0, 20.0);
/// Height of a site's antennas above a user's in metres: 32 and 1.5.
const HEIGHT: f64 = 30.5;
/// Smallest distance of a user from a site, in metres.
pub const NEAREST: f64 = 35.0;
/// Standard deviation of the shadowing in dB, its share common to all sites, and the distance in metres over which its
/// correlation falls to 1/e.
const SHADOWING: (f64, f64, f64) = (8.0, 0.5, 50.0);

/// The simulation cases of TR 25.814 with macro cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "u32")]
pub enum Case {
    /// Sites 500 m apart.
    One,
    /// Sites 1732 m apart.
    Three,
}

impl TryFrom<u32> for Case {
    type Error = Refusal;

    fn try_from(case: u32) -> Result<Self, Refusal> {
        match case {
            1 => Ok(Self::One),
            3 => Ok(Self::Three),
            case => Err(Refusal::new("case", case, "1 or 3")),
        }
    }
}

impl Case {
    /// Distance of two sites in metres.
    #[must_use]
    pub const fn distance(self) -> f64 {
        match self {
            Self::One => 500.0,
            Self::Three => 1732.0,
        }
    }

    /// Tilt of the antennas in degrees, if they have a vertical pattern (TR 36.814 table
    /// A.2.1.1-2).
    #[must_use]
    pub const fn tilt(self) -> f64 {
        match self {
            Self::One => 15.0,
            Self::Three => 6.0,
        }
    }
}

/// The largest Doppler shift in hertz at a speed in m/s.
#[must_use]
pub fn doppler(speed: f64) -> f64 {
    speed * CARRIER / SPEED_OF_LIGHT
}

/// Converts dB to a factor.
#[must_use]
pub fn linear(decibels: f64) -> f64 {
    math::pow(10.0, decibels / 10.0)
}

/// Path loss over `distance` metres in dB (TR 25.814 table A.2.1.1-3, 2 GHz), without walls.
#[must_use]
pub fn path_loss(distance: f64) -> f64 {
    128.1 + 37.6 * math::log10(distance.max(NEAREST) / 1000.0)
}

/// Loss of a sector's antenna towards a user, in dB below its gain: `angle` degrees off its boresight, at
/// `distance` metres; with a `tilt` in degrees the vertical pattern counts as well.
#[must_use]
pub fn pattern(angle: f64, distance: f64, tilt: Option<f64>) -> f64 {
    let horizontal = 12.0 * (angle / WIDTH) * (angle / WIDTH);
    let Some(tilt) = tilt else { return horizontal.min(FLOOR.0) };
    let (width, max_loss) = VERTICAL;
    let elevation = math::atan2(HEIGHT, distance).to_degrees() - tilt;
    let vertical = (12.0 * (elevation / width) * (elevation / width)).min(max_loss);
    (horizontal.min(FLOOR.1) + vertical).min(FLOOR.1)
}

/// Writes for each cell the share of its power that a user at `position` would receive without shadowing, in dB.
pub fn gains(layout: &Layout, position: Point, tilt: Option<f64>, into: &mut [f32]) {
    for site in 0..layout.sites().len() {
        let away = layout.from_site(site, position);
        let distance = math::sqrt(away.squared());
        let direction = math::atan2(away.y, away.x).to_degrees();
        let common = GAIN - PENETRATION - path_loss(distance);
        for (sector, look) in BORESIGHTS.iter().enumerate() {
            let mut angle = (direction - look).abs();
            if angle > 180.0 {
                angle = 360.0 - angle;
            }
            into[site * SECTORS + sector] = (common - pattern(angle, distance, tilt)) as f32;
        }
    }
}

/// Metres between two drawn values of the shadowing: a tenth of its correlation distance.
const STEP: f64 = 5.0;

/// One user's shadowing: along its walk a Gauss-Markov process common to all sites, and one for each site.
///
/// It is a function of the distance walked, independent of earlier calls, so that a user that sleeps and one
/// that is served have the same shadowing.
#[derive(Clone, Debug)]
pub struct Shadowing {
    luck: Stream,
    /// Number of steps from the start to `after`.
    steps: u64,
    /// Standard normal values before and after the present position: that common to all sites, then one for each site.
    before: Vec<f64>,
    after: Vec<f64>,
}

impl Shadowing {
    /// The shadowing of `sites` sites.
    #[must_use]
    pub fn new(mut luck: Stream, sites: usize) -> Self {
        let before: Vec<f64> = (0..=sites).map(|_| luck.normal()).collect();
        let mut shadowing = Self { luck, steps: 0, after: before.clone(), before };
        shadowing.step();
        shadowing
    }

    fn step(&mut self) {
        let correlation = math::exp(-STEP / SHADOWING.2);
        let innovation = math::sqrt(1.0 - correlation * correlation);
        for (before, after) in self.before.iter_mut().zip(&mut self.after) {
            *before = *after;
            *after = correlation * *after + innovation * self.luck.normal();
        }
        self.steps += 1;
    }

    /// Adds the shadowing after `metres`, which must not decrease from call to call, to the gains of all cells in dB.
    pub fn add(&mut self, metres: f64, gains: &mut [f32]) {
        while metres >= self.steps as f64 * STEP {
            self.step();
        }
        let share = 1.0 - (self.steps as f64 * STEP - metres) / STEP;
        let correlation = math::exp(-STEP / SHADOWING.2);
        // interpolates between two values of a known correlation, with weights that keep the variance
        let (weight_before, weight_after) = (1.0 - share, share);
        let norm = 1.0
            / math::sqrt(
                weight_before * weight_before
                    + weight_after * weight_after
                    + 2.0 * weight_before * weight_after * correlation,
            );
        let (deviation, shared, _) = SHADOWING;
        let value = |index: usize| {
            (weight_before * self.before[index] + weight_after * self.after[index]) * norm * deviation
        };
        let common = math::sqrt(shared) * value(0);
        for (site, cells) in gains.chunks_mut(SECTORS).enumerate() {
            let shadow = common + math::sqrt(1.0 - shared) * value(site + 1);
            cells.iter_mut().for_each(|gain| *gain += shadow as f32);
        }
    }

    /// The stream of random numbers.
    #[must_use]
    pub fn luck(&self) -> &Stream {
        &self.luck
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Rings;
    use super::*;

    #[test]
    fn gains_are_those_of_the_tables() {
        // case 1 at 250 m in the main beam: 14 - 20 - (128.1 + 37.6 log10 0.25)
        assert!((path_loss(1000.0) - 128.1).abs() < 1e-12);
        assert!((path_loss(100.0) - 90.5).abs() < 1e-9);
        assert_eq!(path_loss(1.0), path_loss(NEAREST));
        assert!((pattern(35.0, 200.0, None) - 3.0).abs() < 1e-12, "-3 dB at half the width");
        assert_eq!(pattern(180.0, 200.0, None), 20.0);
        // the beam's axis, 15 degrees down, reaches the user at 113.8 m
        let distance = HEIGHT / math::sin(15_f64.to_radians()) * math::cos(15_f64.to_radians());
        assert!(pattern(0.0, distance, Some(15.0)) < 1e-9);
        // 1.7 degrees below the horizon at 1 km, 13.3 off the axis: the largest vertical attenuation
        assert_eq!(pattern(0.0, 1000.0, Some(15.0)), 20.0);
        assert_eq!(pattern(180.0, 35.0, Some(15.0)), 25.0);
        let layout = Layout::new(Rings::One, 500.0, true);
        let mut cells = vec![0.0; 21];
        let (x, y) = (250.0 * math::cos(30_f64.to_radians()), 125.0);
        gains(&layout, Point { x, y }, None, &mut cells);
        let expected = 14.0 - 20.0 - (128.1 + 37.6 * math::log10(0.25));
        assert!((f64::from(cells[0]) - expected).abs() < 1e-3, "{} {expected}", cells[0]);
        // the site's other antennas point away
        assert!((f64::from(cells[1]) - (expected - 20.0)).abs() < 1e-3);
        assert!((doppler(3.0 / 3.6) - 5.559).abs() < 1e-3);
    }

    #[test]
    fn shadowing_has_its_deviation_and_correlations() {
        let (users, sites) = (4000, 7);
        let (mut squares, mut across_sites, mut far, mut near) = (0.0, 0.0, 0.0, 0.0);
        for user in 0..users {
            let mut shadowing =
                Shadowing::new(Stream::new(1, "lte", &format!("user {user} shadowing")), sites);
            let mut sample = |metres: f64| {
                let mut gains = vec![0.0_f32; sites * SECTORS];
                shadowing.add(metres, &mut gains);
                assert_eq!(gains[0], gains[2], "one site, one shadow");
                (f64::from(gains[0]), f64::from(gains[3]))
            };
            let (first, second_site) = sample(2.5);
            let (later, _) = sample(52.5);
            let (end, _) = sample(302.5);
            squares += first * first;
            across_sites += first * second_site;
            near += first * later;
            far += first * end;
        }
        let count = f64::from(users);
        let (variance, shared) = (squares / count, across_sites / count);
        // 64 dB^2; four deviations of a mean of squares of 4000 normals: 64 * sqrt(2/4000) * 4 = 5.7
        assert!((variance - 64.0).abs() < 5.7, "{variance}");
        assert!((shared - 32.0).abs() < 5.0, "{shared}");
        // 1/e after 50 m; 0.25 % after 300 m
        assert!((near / count - 64.0 / std::f64::consts::E).abs() < 4.5, "{}", near / count);
        assert!((far / count).abs() < 4.2, "{}", far / count);
    }
}
