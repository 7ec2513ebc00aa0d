//! Fast fading: a tapped delay line whose taps have Jakes's spectrum.
//!
//! A tap is a sum of plane waves of random directions and phases (Clarke 1968; Zheng and Xiao, IEEE Trans.
//! Commun. 51(6), 2003, for the directions: one in each of equal sectors, so that few waves do). Over the
//! ensemble its autocorrelation is J0(2 pi fD t), its envelope Rayleigh. The delays make it frequency-selective.
//! The channel is a function of time alone: it needs no updates while it is not used.

use serde::Deserialize;
use tidegate_core::math;
use tidegate_core::rng::Stream;

/// Number of plane waves of a tap.
const WAVES: usize = 8;
/// Largest number of subbands of a carrier.
pub const SUBBANDS: usize = 10;
/// Width of the arrays over subbands: a whole number of vector registers.
pub const WIDTH: usize = 12;
/// Largest number of antenna pairs.
pub const BRANCHES: usize = 4;
/// Largest number of taps.
const TAPS: usize = 9;

/// A value for each subband; values after the last subband are undefined.
pub type Band = [f32; WIDTH];

/// Delays in seconds and mean powers in dB of the taps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Typical Urban with 6 taps (COST 207; 3GPP TS 45.005 annex C.3.3, the second of its settings).
    Tu6,
    /// Extended Pedestrian A (TS 36.101 table B.2.1-2).
    Epa,
    /// Extended Vehicular A (TS 36.101 table B.2.1-3).
    Eva,
    /// One tap: all subbands fade alike.
    Flat,
    /// None: each antenna pair passes its mean power.
    None,
}

impl Profile {
    fn taps(self) -> &'static [(f64, f64)] {
        match self {
            Self::Tu6 => {
                &[(0.0, -3.0), (0.2e-6, 0.0), (0.5e-6, -2.0), (1.6e-6, -6.0), (2.3e-6, -8.0), (5.0e-6, -10.0)]
            }
            Self::Epa => &[
                (0.0, 0.0),
                (30e-9, -1.0),
                (70e-9, -2.0),
                (90e-9, -3.0),
                (110e-9, -8.0),
                (190e-9, -17.2),
                (410e-9, -20.8),
            ],
            Self::Eva => &[
                (0.0, 0.0),
                (30e-9, -1.5),
                (150e-9, -1.4),
                (310e-9, -3.6),
                (370e-9, -0.6),
                (710e-9, -9.1),
                (1090e-9, -7.0),
                (1730e-9, -12.0),
                (2510e-9, -16.9),
            ],
            Self::Flat | Self::None => &[(0.0, 0.0)],
        }
    }
}

/// Entries of the table of cosines and sines over a turn.
const TURN_STEPS: usize = 1024;

/// The common parameters of all channels of a radio network.
#[derive(Clone, Debug)]
pub struct Model {
    taps: usize,
    branches: usize,
    /// Cosine and sine over a turn.
    turn: Box<[(f32, f32); TURN_STEPS]>,
    /// For each tap its amplitude times the rotation of each subband by its delay: real and imaginary parts.
    delays: [(Band, Band); TAPS],
    /// The largest Doppler shift in turns a TTI.
    doppler: f64,
    /// Whether there is no fading.
    steady: bool,
}

/// The response of a channel at an instant: for each antenna pair the real and imaginary parts over the subbands.
pub type Response = [(Band, Band); BRANCHES];

/// One channel: the phases and speeds of its waves, as 32-bit fractions of a turn.
#[derive(Clone, Debug)]
pub struct Channel {
    waves: [[[(u32, u32); WAVES]; TAPS]; BRANCHES],
}

impl Default for Channel {
    fn default() -> Self {
        Self { waves: [[[(0, 0); WAVES]; TAPS]; BRANCHES] }
    }
}

impl Model {
    /// Channels of `profile` between `branches` antenna pairs over `subbands` subbands each `spacing` hertz wide,
    /// with a largest Doppler shift of `doppler` hertz.
    #[must_use]
    pub fn new(profile: Profile, branches: usize, subbands: usize, spacing: f64, doppler: f64) -> Self {
        let taps = profile.taps();
        let total_power: f64 = taps.iter().map(|&(_, power)| math::pow(10.0, power / 10.0)).sum();
        let two_pi = 2.0 * std::f64::consts::PI;
        let mut delays = [([0.0; WIDTH], [0.0; WIDTH]); TAPS];
        for (&(delay, power), (real, imaginary)) in taps.iter().zip(&mut delays) {
            // the waves of a tap have unit amplitude: their sum has power WAVES
            let amplitude = math::sqrt(math::pow(10.0, power / 10.0) / total_power / WAVES as f64);
            for subband in 0..WIDTH {
                let frequency = (subband as f64 - (subbands as f64 - 1.0) / 2.0) * spacing;
                let angle = -two_pi * frequency * delay;
                real[subband] = (amplitude * math::cos(angle)) as f32;
                imaginary[subband] = (amplitude * math::sin(angle)) as f32;
            }
        }
        let mut turn = Box::new([(0.0, 0.0); TURN_STEPS]);
        for (step, value) in turn.iter_mut().enumerate() {
            let angle = two_pi * (step as f64 + 0.5) / TURN_STEPS as f64;
            *value = (math::cos(angle) as f32, math::sin(angle) as f32);
        }
        Self {
            taps: taps.len(),
            branches,
            turn,
            delays,
            doppler: doppler / 1000.0,
            steady: profile == Profile::None,
        }
    }

    /// Number of antenna pairs.
    #[must_use]
    pub fn branches(&self) -> usize {
        self.branches
    }

    /// Draws a channel.
    pub fn draw(&self, luck: &mut Stream, output: &mut Channel) {
        for branch in &mut output.waves[..self.branches] {
            for tap in &mut branch[..self.taps] {
                for (number, (phase, speed)) in tap.iter_mut().enumerate() {
                    let direction =
                        2.0 * std::f64::consts::PI * (number as f64 + luck.uniform()) / WAVES as f64;
                    let turns = self.doppler * math::cos(direction);
                    *phase = (luck.next_u64() >> 32) as u32;
                    *speed = math::round(turns * 4_294_967_296.0) as i64 as u32;
                }
            }
        }
    }

    /// The channel at a TTI.
    #[inline]
    pub fn at(&self, channel: &Channel, tti: i64, output: &mut Response) {
        let time = tti as u32;
        for (branch, (real, imaginary)) in channel.waves[..self.branches].iter().zip(output.iter_mut()) {
            *real = [0.0; WIDTH];
            *imaginary = [0.0; WIDTH];
            for (tap, (cosines, sines)) in branch[..self.taps].iter().zip(&self.delays) {
                let (mut a, mut b) = (0.0_f32, 0.0_f32);
                for &(phase, speed) in tap {
                    let index =
                        phase.wrapping_add(speed.wrapping_mul(time)) >> (32 - TURN_STEPS.trailing_zeros());
                    let (cosine, sine) = self.turn[index as usize];
                    a += cosine;
                    b += sine;
                }
                for subband in 0..WIDTH {
                    real[subband] += a * cosines[subband] - b * sines[subband];
                    imaginary[subband] += a * sines[subband] + b * cosines[subband];
                }
            }
        }
    }

    /// The power after maximum-ratio combining of the antenna pairs: the sum of their powers, 1 on average for each.
    #[inline]
    pub fn combined(&self, response: &Response, output: &mut Band) {
        *output = [if self.steady { self.branches as f32 } else { 0.0 }; WIDTH];
        if self.steady {
            return;
        }
        for (real, imaginary) in &response[..self.branches] {
            for subband in 0..WIDTH {
                output[subband] += real[subband] * real[subband] + imaginary[subband] * imaginary[subband];
            }
        }
    }

    /// The power of `interferer` after maximum-ratio combining for `serving`: |s^H i|^2 / |s|^2, 1 on average.
    #[inline]
    pub fn leaked(&self, serving: &Response, power: &Band, interferer: &Response, output: &mut Band) {
        if self.steady {
            *output = [1.0; WIDTH];
            return;
        }
        let (mut along, mut across) = ([0.0_f32; WIDTH], [0.0_f32; WIDTH]);
        for ((a, b), (c, d)) in serving[..self.branches].iter().zip(interferer) {
            for subband in 0..WIDTH {
                along[subband] += a[subband] * c[subband] + b[subband] * d[subband];
                across[subband] += a[subband] * d[subband] - b[subband] * c[subband];
            }
        }
        for subband in 0..WIDTH {
            output[subband] = (along[subband] * along[subband] + across[subband] * across[subband])
                / power[subband].max(1e-9);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::propagation::doppler;
    use super::*;

    const CHANNELS: u64 = 600;

    fn model(profile: Profile, branches: usize, speed: f64) -> Model {
        Model::new(profile, branches, 10, 900e3, doppler(speed / 3.6))
    }

    fn channels(model: &Model) -> Vec<Channel> {
        let mut luck = Stream::new(3, "lte", "fading test");
        (0..CHANNELS)
            .map(|_| {
                let mut channel = Channel::default();
                model.draw(&mut luck, &mut channel);
                channel
            })
            .collect()
    }

    /// Bessel's J0 by its series; for arguments below 8.
    fn bessel(x: f64) -> f64 {
        let (mut sum, mut term) = (1.0, 1.0);
        for k in 1..40 {
            term *= -(x * x / 4.0) / f64::from(k * k);
            sum += term;
        }
        sum
    }

    /// The complex autocorrelation of Jakes's spectrum is J0(2 pi fD t).
    #[test]
    fn the_autocorrelation_is_clarkes() {
        for profile in [Profile::Tu6, Profile::Flat] {
            let model = model(profile, 1, 30.0);
            let channels = channels(&model);
            let mut response = Response::default();
            let mut sample = |channel: &Channel, tti| {
                model.at(channel, tti, &mut response);
                (f64::from(response[0].0[4]), f64::from(response[0].1[4]))
            };
            for lag in [0, 2, 4, 7, 10, 13, 20] {
                let mut sum = 0.0;
                let starts = 40;
                for channel in &channels {
                    for start in 0..starts {
                        let (a, b) = sample(channel, start * 1000);
                        let (c, d) = sample(channel, start * 1000 + lag);
                        sum += a * c + b * d;
                    }
                }
                let actual = sum / (CHANNELS * starts as u64) as f64;
                let expected = bessel(2.0 * std::f64::consts::PI * doppler(30.0 / 3.6) * lag as f64 / 1000.0);
                // 24 000 products of deviation 1, at most: 4 deviations are 0.026
                assert!((actual - expected).abs() < 0.026, "{profile:?} lag {lag}: {actual} {expected}");
            }
        }
    }

    /// Crossings of the level rho (relative to the root mean square) going up: sqrt(2 pi) fD rho exp(-rho^2) a
    /// second (Rice; Jakes 1974, section 1.3), and the time spent below it: 1 - exp(-rho^2).
    #[test]
    fn level_crossings_and_fades_are_rayleighs() {
        let model = model(Profile::Tu6, 1, 3.0);
        let shift = doppler(3.0 / 3.6);
        let channels = channels(&model);
        let mut response = Response::default();
        for level in [0.3, 0.7, 1.0, 1.5] {
            let (mut up, mut below, mut count) = (0_u32, 0_u32, 0_u32);
            for channel in &channels[..200] {
                let mut last = None;
                for tti in 0..10_000 {
                    model.at(channel, tti, &mut response);
                    let (a, b) = (f64::from(response[0].0[5]), f64::from(response[0].1[5]));
                    let is_above = a * a + b * b >= level * level;
                    up += u32::from(is_above && last == Some(false));
                    below += u32::from(!is_above);
                    count += 1;
                    last = Some(is_above);
                }
            }
            let rate = f64::from(up) / (200.0 * 10.0);
            let expected = math::sqrt(2.0 * std::f64::consts::PI) * shift * level * math::exp(-level * level);
            // 200 channels of 55 periods: some 5000 crossings or more, which come in clusters
            assert!((rate / expected - 1.0).abs() < 0.06, "level {level}: {rate}/s, {expected}/s");
            let share = f64::from(below) / f64::from(count);
            let expected = 1.0 - math::exp(-level * level);
            assert!((share - expected).abs() < 0.02, "level {level}: {share} {expected}");
        }
    }

    /// The correlation over frequency is the Fourier transform of the delay profile.
    #[test]
    fn subbands_fade_apart_as_the_delays_say() {
        for profile in [Profile::Tu6, Profile::Epa, Profile::Eva] {
            let model = model(profile, 1, 3.0);
            let channels = channels(&model);
            let total_power: f64 =
                profile.taps().iter().map(|&(_, power)| math::pow(10.0, power / 10.0)).sum();
            let mut response = Response::default();
            for distance in [0_usize, 1, 3] {
                let (mut real, mut imaginary) = (0.0, 0.0);
                for channel in &channels {
                    for start in 0..30 {
                        model.at(channel, start * 2000, &mut response);
                        let sample = |subband: usize| {
                            (f64::from(response[0].0[subband]), f64::from(response[0].1[subband]))
                        };
                        let ((a, b), (c, d)) = (sample(2), sample(2 + distance));
                        real += a * c + b * d;
                        imaginary += a * d - b * c;
                    }
                }
                let count = (CHANNELS * 30) as f64;
                let (mut x, mut y) = (0.0, 0.0);
                for &(delay, power) in profile.taps() {
                    let angle = -2.0 * std::f64::consts::PI * distance as f64 * 900e3 * delay;
                    x += math::pow(10.0, power / 10.0) / total_power * math::cos(angle);
                    y += math::pow(10.0, power / 10.0) / total_power * math::sin(angle);
                }
                assert!((real / count - x).abs() < 0.03, "{profile:?} {distance}: {} {x}", real / count);
                assert!(
                    (imaginary / count - y).abs() < 0.03,
                    "{profile:?} {distance}: {} {y}",
                    imaginary / count
                );
            }
        }
    }

    /// With two antennas the power is chi-square with four degrees of freedom; the leakage is exponential with mean 1.
    #[test]
    fn combining_adds_powers_and_lets_one_share_through() {
        let model = model(Profile::Tu6, 2, 3.0);
        let channels = channels(&model);
        let (mut serving, mut interferer) = (Response::default(), Response::default());
        let (mut power, mut leak) = (Band::default(), Band::default());
        let (mut first, mut second, mut leaked, mut squared) = (0.0, 0.0, 0.0, 0.0);
        let half = channels.len() / 2;
        for (serving_channel, interfering_channel) in channels[..half].iter().zip(&channels[half..]) {
            for start in 0..60 {
                model.at(serving_channel, start * 2000, &mut serving);
                model.at(interfering_channel, start * 2000, &mut interferer);
                model.combined(&serving, &mut power);
                model.leaked(&serving, &power, &interferer, &mut leak);
                let (x, y) = (f64::from(power[0]), f64::from(leak[0]));
                first += x;
                second += x * x;
                leaked += y;
                squared += y * y;
            }
        }
        let count = (half * 60) as f64;
        // means 2, 4 + 2, 1, 2 from 18 000 samples of 300 channels
        assert!((first / count - 2.0).abs() < 0.05, "{}", first / count);
        assert!((second / count - 6.0).abs() < 0.35, "{}", second / count);
        assert!((leaked / count - 1.0).abs() < 0.04, "{}", leaked / count);
        assert!((squared / count - 2.0).abs() < 0.25, "{}", squared / count);
    }
}
