//! How the clocks of two places are brought together.

use crate::point::{MILLI, Nanos};

/// What the clock of a far place reads when the near one reads something.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clock {
    /// What is added to the far clock at `origin`.
    pub offset: Nanos,
    /// How much the far clock goes too slow: what is added for each nanosecond after `origin`.
    pub drift: f64,
    /// By the far clock.
    pub origin: Nanos,
}

impl Clock {
    /// Two clocks that are one.
    pub const SAME: Self = Self { offset: 0, drift: 0.0, origin: 0 };

    /// What the near clock read when the far one read `far`.
    #[must_use]
    pub fn near(&self, far: Nanos) -> Nanos {
        let drifted = (far.saturating_sub(self.origin) as f64 * self.drift) as i64;
        far.saturating_add(self.offset).saturating_add(drifted)
    }
}

/// A packet that passed both places: by the near clock, and by the far one.
pub type Pair = (Nanos, Nanos);

/// What two clocks were found to be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Aligned {
    /// How to get from one to the other.
    pub clock: Clock,
    /// Twice the least one-way delay, which is taken to be the same both ways.
    pub round_trip: Nanos,
    /// Drift in parts per million, if the recording is long enough to tell; it is corrected where it comes to `worth`.
    pub drift_ppm: Option<f64>,
    /// What a drift has to come to over the recording: less than that is chance.
    pub worth: Nanos,
}

/// What a drift has to come to where stamps are finer than a millisecond.
const WORTH: Nanos = MILLI;

/// And where they are whole milliseconds, as in logs of calls: these are written by programs that are milliseconds late at
/// times. Ten calls of Chromium between two ends with one clock seemed to drift by up to 4.9 ms.
const WORTH_OF_WHOLE: Nanos = 5 * MILLI;

/// Brings two clocks together by the packets that passed both places, `there` from near to far and `back` from far to
/// near: the least delay is taken to be the same both ways. `None` where one way has no packet.
///
/// From the first third to the last one the least delay of each way changes by the drift, of one way up and of the other one
/// down, and it is on its way there in the second third. What only one way shows is a change of the path: a slower link, a
/// queue that stands. What comes and goes is chance: stamps of logs are milliseconds late at times.
#[must_use]
pub fn aligned(there: &[Pair], back: &[Pair]) -> Option<Aligned> {
    let (offset, round_trip) = offset(there, back)?;
    let far = || there.iter().chain(back).map(|&(_, far)| far);
    let (first, last) = (far().min()?, far().max()?);
    let third = last.saturating_sub(first) / 3;
    let (early, late) = (first.saturating_add(third), last.saturating_sub(third));
    let gains = |pairs, sign| steady(pairs, sign, early, late);
    let drift = match (gains(there, 1), gains(back, -1)) {
        (Some(there), Some(back)) if there * back > 0.0 => {
            Some(-there.signum() * there.abs().min(back.abs()))
        }
        (Some(_), Some(_)) => Some(0.0),
        _ => None,
    };
    let plain = Clock { offset, drift: 0.0, origin: first };
    let whole = there.iter().chain(back).all(|&(near, far)| near % MILLI == 0 && far % MILLI == 0);
    let worth = if whole { WORTH_OF_WHOLE } else { WORTH };
    let Some(drift) = drift.filter(|drift| (drift * last.saturating_sub(first) as f64).abs() >= worth as f64)
    else {
        return Some(Aligned { clock: plain, round_trip, drift_ppm: drift.map(|drift| drift * 1e6), worth });
    };
    // with the drift taken out the offset is found anew
    let turned = Clock { offset: 0, drift, origin: first };
    let straight =
        |pairs: &[Pair]| -> Vec<Pair> { pairs.iter().map(|&(near, far)| (near, turned.near(far))).collect() };
    let (offset, round_trip) = self::offset(&straight(there), &straight(back))?;
    let clock = Clock { offset, drift, origin: first };
    Some(Aligned { clock, round_trip, drift_ppm: Some(drift * 1e6), worth })
}

/// The offset, and the least round trip.
fn offset(there: &[Pair], back: &[Pair]) -> Option<(Nanos, Nanos)> {
    // far minus near is delay less offset one way, and its negative delay plus offset the other way
    let ((there, _), (back, _)) = (least(there, 1, |_| true)?, least(back, -1, |_| true)?);
    Some(((back.saturating_sub(there)) / 2, there.saturating_add(back)))
}

/// How much the far clock gains on the near one in a nanosecond, as one way's least delays up to `early` and from `late` on
/// show it; nothing where those in between are not between them.
fn steady(pairs: &[Pair], sign: i64, early: Nanos, late: Nanos) -> Option<f64> {
    let (before, at) = least(pairs, sign, |far| far <= early)?;
    let (after, then) = least(pairs, sign, |far| far >= late)?;
    let halfway = least(pairs, sign, |far| early < far && far < late);
    let between = |middle: Nanos| before.min(after) <= middle && middle <= before.max(after);
    if halfway.is_some_and(|(middle, _)| !between(middle)) {
        return Some(0.0);
    }
    (then > at).then(|| sign as f64 * (after - before) as f64 / (then - at) as f64)
}

/// The least of far minus near, or of its negative, and the instant (far clock) at which it was.
fn least(pairs: &[Pair], sign: i64, within: impl Fn(Nanos) -> bool) -> Option<(Nanos, Nanos)> {
    let kept = pairs.iter().filter(|&&(_, far)| within(far));
    kept.map(|&(near, far)| (far.saturating_sub(near).saturating_mul(sign), far)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every 10 ms each way over 20 ms, between clocks of which the far one is 5 s ahead and goes wrong by so much.
    fn pairs(seconds: i64, ppm: f64) -> (Vec<Pair>, Vec<Pair>) {
        let far = |near: i64| near + 5_000 * MILLI + (near as f64 * ppm / 1e6) as i64;
        let one = |k: i64| {
            let (at, wait) = (10 * k * MILLI, k % 7 * MILLI);
            ((at, far(at + 20 * MILLI + wait)), (at + 20 * MILLI + wait, far(at)))
        };
        (0..100 * seconds).map(one).unzip()
    }

    #[test]
    fn clocks_that_are_apart_are_brought_together() {
        let (there, back) = pairs(30, 0.0);
        let found = aligned(&there, &back).unwrap();
        assert_eq!((found.clock.offset, found.round_trip), (-5_000 * MILLI, 40 * MILLI));
        assert_eq!(found.clock.near(5_020 * MILLI), 20 * MILLI);
        assert!(found.drift_ppm.unwrap().abs() < 0.01);
        assert!(aligned(&there, &[]).is_none());
    }

    #[test]
    fn drift_is_found_and_taken_out() {
        let (there, back) = pairs(300, 100.0);
        let found = aligned(&there, &back).unwrap();
        assert!((found.drift_ppm.unwrap() + 100.0).abs() < 1.0, "{found:?}");
        for (near, far) in [there[0], there[29_000]] {
            let delay = found.clock.near(far) - near;
            assert!((20 * MILLI..27 * MILLI).contains(&(delay + MILLI / 20)), "{delay}");
        }
        // over seconds it is less than what a stamp tells
        let (there, back) = pairs(5, 100.0);
        assert_eq!(aligned(&there, &back).unwrap().clock.drift, 0.0);
    }

    #[test]
    fn whole_milliseconds_tell_less() {
        // 200 parts in a million come to 4 ms in 20 s, and to 12 ms in a minute
        for (seconds, told) in [(20, false), (60, true)] {
            let (there, back) = pairs(seconds, 200.0);
            let whole = |pairs: &[Pair]| -> Vec<Pair> {
                pairs.iter().map(|&(near, far)| (near, far / MILLI * MILLI)).collect()
            };
            assert_ne!(aligned(&there, &back).unwrap().clock.drift, 0.0);
            assert_eq!(aligned(&whole(&there), &whole(&back)).unwrap().clock.drift != 0.0, told);
        }
    }

    #[test]
    fn a_path_that_gets_longer_one_way_is_no_drift() {
        // a link that becomes slower halfway: 6 ms more a packet, one way; both clocks are one
        let slower = |at: i64| if at > 10_000 * MILLI { 26 * MILLI } else { 20 * MILLI };
        let there: Vec<Pair> = (0..2_000)
            .map(|k| 10 * k * MILLI)
            .map(|at| (at, at + slower(at) + at % (70 * MILLI) / 10))
            .collect();
        let back: Vec<Pair> = (0..2_000).map(|k| 10 * k * MILLI).map(|at| (at + 20 * MILLI, at)).collect();
        let found = aligned(&there, &back).unwrap();
        assert_eq!((found.clock.offset, found.clock.drift, found.drift_ppm), (0, 0.0, Some(0.0)));
        // and a drift beside it is told by the way that stays as it is
        let drifted = |pairs: &[Pair]| -> Vec<Pair> {
            pairs.iter().map(|&(near, far)| (near, far + (far as f64 * 100e-6) as i64)).collect()
        };
        let found = aligned(&drifted(&there), &drifted(&back)).unwrap();
        assert!((found.drift_ppm.unwrap() + 100.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn what_comes_and_goes_is_no_drift() {
        // stamps that are late for a while: both ways end as a drift would have them, but were elsewhere in between
        let part = |at: i64| usize::from(at > 9_000 * MILLI) + usize::from(at > 21_000 * MILLI);
        let there = |at: i64| [20, 28, 24][part(at)] * MILLI;
        let back = |at: i64| [24, 28, 20][part(at)] * MILLI;
        let at = || (0..3_000).map(|k| 10 * k * MILLI);
        let (there, back): (Vec<Pair>, Vec<Pair>) =
            (at().map(|at| (at, at + there(at))).collect(), at().map(|at| (at + back(at), at)).collect());
        assert_eq!(aligned(&there, &back).unwrap().clock.drift, 0.0);
    }
}
