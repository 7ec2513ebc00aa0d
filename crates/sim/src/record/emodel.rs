//! The E-model (ITU-T G.107, 06/2015): impairment of speech by loss and delay, with all other parameters at their
//! defaults.

use tidegate_core::math::{exp, log2, log10, pow, sqrt};

/// Packet-loss robustness Bpl of G.711 without concealment (ITU-T G.113 appendix I).
pub const BPL_G711: f64 = 4.3;
/// Packet-loss robustness Bpl of G.711 with the concealment of its appendix I (ITU-T G.113 appendix I).
pub const BPL_G711_CONCEALED: f64 = 25.1;

/// Default values of the parameters: G.107 table 3, in decibels where they have a unit.
mod default {
    pub(super) const SLR: f64 = 8.0;
    pub(super) const RLR: f64 = 2.0;
    pub(super) const STMR: f64 = 15.0;
    pub(super) const DS: f64 = 3.0;
    pub(super) const LSTR: f64 = 18.0;
    pub(super) const TELR: f64 = 65.0;
    pub(super) const WEPL: f64 = 110.0;
    pub(super) const QDU: f64 = 1.0;
    pub(super) const NC: f64 = -70.0;
    pub(super) const NFOR: f64 = -64.0;
    pub(super) const PS: f64 = 35.0;
    pub(super) const PR: f64 = 35.0;
}
use default::{DS, LSTR, NC, NFOR, PR, PS, QDU, RLR, SLR, STMR, TELR, WEPL};

fn db(power: f64) -> f64 {
    10.0 * log10(power)
}

fn power(db: f64) -> f64 {
    pow(10.0, db / 10.0)
}

/// The term (1 + x^n)^(1/n), which occurs in most of the formulas.
fn knee(x: f64, n: f64) -> f64 {
    pow(1.0 + pow(x, n), 1.0 / n)
}

/// Noise No in dBm0p (equations 7-3 to 7-7).
fn noise() -> f64 {
    let square = |x: f64| x * x;
    let sender = PS - SLR - DS - 100.0 + 0.004 * square(PS - (SLR + RLR) - DS - 14.0);
    let room = PR + db(1.0 + power(10.0 - LSTR));
    let receiver = RLR - 121.0 + room + 0.008 * square(room - 35.0);
    db(power(NC) + power(sender) + power(receiver) + power(NFOR + RLR))
}

/// Signal to noise Ro (equation 7-2).
fn basic() -> f64 {
    15.0 - 1.5 * (SLR + noise())
}

/// Impairments simultaneous with speech, Is (equations 7-8 to 7-17), with an echo after `delay`.
fn simultaneous(delay: f64) -> f64 {
    let overall = SLR + RLR;
    let x = (overall + 0.2 * (64.0 + noise() - RLR)) / 8.0;
    let loud = 20.0 * (knee(x, 8.0) - x);
    let side = -db(power(-STMR) + exp(-delay / 4.0) * power(-TELR));
    let sidetone = 12.0 * knee((side - 13.0) / 6.0, 8.0)
        - 28.0 * knee((side + 1.0) / 19.4, 35.0)
        - 13.0 * knee((side - 3.0) / 33.0, 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * log10(QDU);
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let (y, z) = ((basic() - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0, 46.0 / 30.0 - g / 40.0);
    let quantising = 15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z));
    loud + sidetone + quantising
}

/// Impairment by delay without echo, Idd (equations 7-27 and 7-28); `delay` in milliseconds.
#[must_use]
pub fn delay_impairment(delay: f64) -> f64 {
    if delay <= 100.0 {
        return 0.0;
    }
    let x = log2(delay / 100.0);
    25.0 * (knee(x, 6.0) - 3.0 * knee(x / 3.0, 6.0) + 2.0)
}

/// Impairment by echoes with `delay` in each direction: of the talker, Idte (equations 7-19 to 7-22), and of the
/// listener, Idle (7-25 and 7-26).
fn echoes(delay: f64) -> f64 {
    let rest = -1.5 * (noise() - RLR);
    let level =
        TELR - 40.0 * log10((1.0 + delay / 10.0) / (1.0 + delay / 150.0)) + 6.0 * exp(-0.3 * delay * delay);
    let half = (rest - (80.0 + 2.5 * (level - 14.0))) / 2.0;
    let talker = (half + sqrt(half * half + 100.0) - 1.0) * (1.0 - exp(-delay));
    let round_trip = 2.0 * delay;
    let half = (basic() - 10.5 * (WEPL + 7.0) * pow(round_trip + 1.0, -0.25)) / 2.0;
    talker + half + sqrt(half * half + 169.0)
}

/// The rating R (equations 7-1, 7-29) of speech that arrives after `delay` ms, with the fraction `loss`
/// missing at random, in a codec of equipment impairment `ie` and robustness `bpl`.
#[must_use]
pub fn rating(delay: f64, loss: f64, ie: f64, bpl: f64) -> f64 {
    let percent = 100.0 * loss;
    let equipment = ie + (95.0 - ie) * percent / (percent + bpl);
    basic() - simultaneous(delay) - echoes(delay) - delay_impairment(delay) - equipment
}

/// The mean opinion score of a rating, 1 to 4.5 (annex B, equation B-4). Just above R = 0 the equation dips below
/// 1, the smallest score; there the result is 1.
#[must_use]
pub fn mos(rating: f64) -> f64 {
    if rating <= 0.0 {
        return 1.0;
    }
    if rating >= 100.0 {
        return 4.5;
    }
    (1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() <= tolerance, "{actual}, expected {expected}");
    }

    #[test]
    fn with_all_defaults_r_is_93_2() {
        // G.107 clause 7.7
        near(rating(0.0, 0.0, 0.0, BPL_G711), 93.2, 0.05);
        near(mos(rating(0.0, 0.0, 0.0, BPL_G711)), 4.41, 0.005);
        near(basic(), 94.77, 0.005);
        near(simultaneous(0.0), 1.41, 0.005);
    }

    #[test]
    fn delay_costs_what_the_equations_and_their_published_line_say() {
        assert_eq!(delay_impairment(100.0), 0.0);
        // X = 2 by hand: 25 (65^(1/6) - 3 (1 + 64/729)^(1/6) + 2)
        let by_hand = 25.0 * (pow(65.0, 1.0 / 6.0) - 3.0 * pow(793.0 / 729.0, 1.0 / 6.0) + 2.0);
        near(delay_impairment(400.0), by_hand, 1e-9);
        // Cole and Rosenbluth (2001): Id = 0.024 d + 0.11 (d - 177.3) beyond 177.3 ms, fitted to this model
        // with its defaults; the error is largest at the corner of the line
        let cost = |d: f64| rating(0.0, 0.0, 0.0, 4.3) - rating(d, 0.0, 0.0, 4.3);
        let line = |d: f64| 0.024 * d + 0.11 * (d - 177.3f64).max(0.0);
        for (d, tolerance) in [(150.0, 0.2), (177.3, 1.0), (200.0, 0.2), (250.0, 0.2), (300.0, 0.2)] {
            near(cost(d), line(d), tolerance);
        }
        // from an independent transcription of all equations
        for (d, r) in [(150.0, 89.539_131_973_6), (177.3, 88.051_877_111_7), (400.0, 62.246_826_681_6)] {
            near(rating(d, 0.0, 0.0, 4.3), r, 1e-9);
        }
    }

    #[test]
    fn loss_costs_half_of_95_where_it_equals_the_robustness() {
        let cost = |loss, bpl| rating(0.0, 0.0, 0.0, bpl) - rating(0.0, loss, 0.0, bpl);
        near(cost(0.043, BPL_G711), 47.5, 1e-9);
        near(cost(0.251, BPL_G711_CONCEALED), 47.5, 1e-9);
        near(cost(0.01, BPL_G711_CONCEALED), 95.0 / 26.1, 1e-9);
        near(rating(0.0, 0.0, 10.0, 4.3), rating(0.0, 0.0, 0.0, 4.3) - 10.0, 1e-9);
    }

    #[test]
    fn scores_are_those_of_annex_b() {
        // G.107 table B.1, rounded up to two digits there
        for (r, score) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            let short = score - mos(r);
            assert!((-1e-9..0.01).contains(&short), "{r}: {short}");
        }
        assert_eq!((mos(-5.0), mos(0.0), mos(3.0), mos(100.0), mos(120.0)), (1.0, 1.0, 1.0, 4.5, 4.5));
    }
}
