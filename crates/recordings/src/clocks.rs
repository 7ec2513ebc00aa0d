//! Aligns the clocks of two capture points.

use crate::point::{MILLI, Nanos};
use std::ops::Range;

/// Transformation from the far clock to the near clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clock {
    /// Nanoseconds to add to the far clock's time at `origin`.
    pub offset: Nanos,
    /// Nanoseconds to add for each nanosecond after `origin`; positive if the far clock is slow.
    pub drift: f64,
    /// Time on the far clock at which the drift is 0.
    pub origin: Nanos,
}

impl Clock {
    /// The identity, for two points with one clock.
    pub const SAME: Self = Self { offset: 0, drift: 0.0, origin: 0 };

    /// Converts a time of the far clock to the near clock.
    #[must_use]
    pub fn near(&self, far: Nanos) -> Nanos {
        let drifted = (far.saturating_sub(self.origin) as f64 * self.drift) as i64;
        far.saturating_add(self.offset).saturating_add(drifted)
    }
}

/// Times at which one packet passed the near point and the far point, each on its own clock.
pub type Pair = (Nanos, Nanos);

/// Relation of two clocks, as measured from packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Aligned {
    /// The transformation from the far clock to the near one.
    pub clock: Clock,
    /// Twice the minimum one-way delay, which is assumed to be the same in both directions.
    pub round_trip: Nanos,
    /// Drift in parts per million; `None` if the recording is too short to measure it.
    pub drift_ppm: Option<f64>,
    /// Minimum that the drift must add up to over the recording to be corrected; less may be chance.
    pub threshold: Nanos,
    /// The reason for which the clocks give no delays, if there is any.
    pub fault: Option<Fault>,
}

/// A fault of a clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fault {
    /// The far clock was set by so much, relative to the near one, at this time of the near one.
    Set {
        /// The near clock's time.
        at: Nanos,
        /// The step of the far clock; negative if it was set back.
        step: Nanos,
    },
    /// The clocks drift by so many parts per million.
    Drift(f64),
}

/// Largest drift of two clocks that run, in parts per million: crystals are within 100, and NTP corrects by 500 at most
/// (RFC 5905 section 11.3).
const MAX_DRIFT_PPM: f64 = 1000.0;

/// Least step of a clock that is told from changes of the path.
const MIN_STEP: Nanos = 10 * MILLI;

/// The minimum differences of each direction in windows of the near clock, as delays of clocks without offset.
struct Windows {
    first: Nanos,
    window: Nanos,
    /// `Nanos::MAX` for a window without packets.
    outgoing: Vec<Nanos>,
    incoming: Vec<Nanos>,
}

fn windows(outgoing: &[Pair], incoming: &[Pair]) -> Option<Windows> {
    /// Largest number of windows, and their least length.
    const WINDOWS: i64 = 400;
    const MIN_WINDOW: Nanos = 250 * MILLI;
    let near = || outgoing.iter().chain(incoming).map(|&(near, _)| near);
    let (first, last) = (near().min()?, near().max()?);
    let window = MIN_WINDOW.max(last.saturating_sub(first) / WINDOWS);
    let count = (last.saturating_sub(first) / window) as usize + 1;
    let minima = |pairs: &[Pair], sign: i64| {
        let mut minima = vec![Nanos::MAX; count];
        for &(near, far) in pairs {
            let index = (near.saturating_sub(first) / window) as usize;
            minima[index] = minima[index].min(far.saturating_sub(near).saturating_mul(sign));
        }
        minima
    };
    Some(Windows { first, window, outgoing: minima(outgoing, 1), incoming: minima(incoming, -1) })
}

/// Whether round trips are negative in most windows, so that the two capture points are swapped; `None` if no window has
/// packets of both directions. The offset of the clocks cancels out, even if one was set in between.
#[must_use]
pub fn is_backwards(outgoing: &[Pair], incoming: &[Pair]) -> Option<bool> {
    let Windows { outgoing, incoming, .. } = windows(outgoing, incoming)?;
    let known = outgoing.iter().zip(&incoming).filter(|&(&out, &back)| out.max(back) < Nanos::MAX);
    let round_trips: Vec<Nanos> = known.map(|(out, back)| out.saturating_add(*back)).collect();
    let negative = round_trips.iter().filter(|&&round_trip| round_trip < 0).count();
    (!round_trips.is_empty()).then_some(negative * 2 > round_trips.len())
}

/// The largest step of the far clock on the near one. A clock that is set makes the minimum delay of one direction longer
/// and that of the other one shorter by the same time, at once; a path that changes does so in one direction, or in both
/// alike.
fn step(outgoing: &[Pair], incoming: &[Pair]) -> Option<Fault> {
    /// Number of windows that are compared before and after a step.
    const COMPARED: usize = 6;
    let Windows { first, window, outgoing, incoming } = windows(outgoing, incoming)?;
    let count = outgoing.len();
    let least = |minima: &[Nanos]| minima.iter().copied().min().filter(|&least| least < Nanos::MAX);
    // the windows of a round trip have packets from before and after the step
    let with_skipped = |skipped: usize| {
        let mut largest: Option<(Nanos, Fault)> = None;
        for index in 1..count {
            let before = index.saturating_sub(COMPARED)..index;
            let after = (index + skipped).min(count)..(index + skipped + COMPARED).min(count);
            let earlier = index.saturating_sub(2 * COMPARED)..before.start;
            let change = |minima: &[Nanos], from: &Range<usize>, to: &Range<usize>| {
                Some(least(&minima[to.clone()])?.saturating_sub(least(&minima[from.clone()])?))
            };
            let (Some(longer), Some(shorter)) =
                (change(&outgoing, &before, &after), change(&incoming, &before, &after))
            else {
                continue;
            };
            // a drift goes on at the same pace
            let later = after.end..(after.end + COMPARED).min(count);
            let pace = [&outgoing, &incoming].map(|minima| {
                let changes = [change(minima, &earlier, &before), change(minima, &after, &later)];
                changes.into_iter().flatten().map(i64::abs).max().unwrap_or(0)
            });
            let by_drift = pace[0].min(pace[1]).saturating_mul((COMPARED + skipped) as i64) / COMPARED as i64;
            let size = longer.saturating_abs().min(shorter.saturating_abs());
            let is_equal = longer.saturating_add(shorter).saturating_abs() <= (size / 5).max(2 * MILLI);
            let is_larger = largest.is_none_or(|(largest, _)| size > largest);
            let is_sudden = size >= MIN_STEP && size > by_drift.saturating_mul(3);
            if is_equal && is_sudden && is_larger {
                let at = first + index as i64 * window + skipped as i64 * window / 2;
                largest = Some((size, Fault::Set { at, step: longer.saturating_sub(shorter) / 2 }));
            }
        }
        largest.map(|(_, fault)| fault)
    };
    [1, 2, 4, 8, 16].into_iter().find_map(with_skipped)
}

/// Drift threshold if the times are finer than a millisecond.
const DRIFT_THRESHOLD: Nanos = MILLI;

/// Drift threshold if the times are whole milliseconds, as in event logs. The programs that write these are sometimes
/// milliseconds late: ten calls of Chromium between two ends with one clock seemed to drift by up to 4.9 ms.
const DRIFT_THRESHOLD_WHOLE_MS: Nanos = 5 * MILLI;

/// Aligns two clocks by the packets that passed both points: `outgoing` from near to far, `incoming` from far to near.
/// The minimum delay is assumed to be the same in both directions. `None` if a direction has no packet.
///
/// Drift shows as a change of the minimum delay between the first and the last third of the recording: up in one
/// direction, down in the other, with the second third in between. A change in one direction alone is a change of the
/// path, such as a slower link or a standing queue. A change that goes away again is chance: times in logs are
/// sometimes milliseconds late.
#[must_use]
pub fn aligned(outgoing: &[Pair], incoming: &[Pair]) -> Option<Aligned> {
    let (offset, round_trip) = offset(outgoing, incoming)?;
    let fault = step(outgoing, incoming);
    let far = || outgoing.iter().chain(incoming).map(|&(_, far)| far);
    let (first, last) = (far().min()?, far().max()?);
    let third = last.saturating_sub(first) / 3;
    let (early, late) = (first.saturating_add(third), last.saturating_sub(third));
    let gain = |pairs, sign| steady_gain(pairs, sign, early, late);
    let drift = match (gain(outgoing, 1), gain(incoming, -1)) {
        (Some(outgoing), Some(incoming)) if outgoing * incoming > 0.0 => {
            Some(-outgoing.signum() * outgoing.abs().min(incoming.abs()))
        }
        (Some(_), Some(_)) => Some(0.0),
        _ => None,
    };
    let without_drift = Clock { offset, drift: 0.0, origin: first };
    let whole_ms = outgoing.iter().chain(incoming).all(|&(near, far)| near % MILLI == 0 && far % MILLI == 0);
    let threshold = if whole_ms { DRIFT_THRESHOLD_WHOLE_MS } else { DRIFT_THRESHOLD };
    if fault.is_some() {
        return Some(Aligned { clock: without_drift, round_trip, drift_ppm: None, threshold, fault });
    }
    let Some(drift) =
        drift.filter(|drift| (drift * last.saturating_sub(first) as f64).abs() >= threshold as f64)
    else {
        let drift_ppm = drift.map(|drift| drift * 1e6);
        return Some(Aligned { clock: without_drift, round_trip, drift_ppm, threshold, fault });
    };
    if (drift * 1e6).abs() > MAX_DRIFT_PPM {
        let fault = Some(Fault::Drift(drift * 1e6));
        return Some(Aligned { clock: without_drift, round_trip, drift_ppm: None, threshold, fault });
    }
    // the offset is measured again with the drift corrected
    let drift_only = Clock { offset: 0, drift, origin: first };
    let corrected = |pairs: &[Pair]| -> Vec<Pair> {
        pairs.iter().map(|&(near, far)| (near, drift_only.near(far))).collect()
    };
    let (offset, round_trip) = self::offset(&corrected(outgoing), &corrected(incoming))?;
    let clock = Clock { offset, drift, origin: first };
    Some(Aligned { clock, round_trip, drift_ppm: Some(drift * 1e6), threshold, fault })
}

/// The offset, and the minimum round trip.
fn offset(outgoing: &[Pair], incoming: &[Pair]) -> Option<(Nanos, Nanos)> {
    // outgoing, far minus near is the delay minus the offset; incoming, near minus far is the delay plus the offset
    let ((outgoing, _), (incoming, _)) =
        (min_difference(outgoing, 1, |_| true)?, min_difference(incoming, -1, |_| true)?);
    Some(((incoming.saturating_sub(outgoing)) / 2, outgoing.saturating_add(incoming)))
}

/// Gain of the far clock on the near one per nanosecond, from the minimum delays of one direction up to `early` and
/// from
/// `late` on. It is 0 if the minimum delay between `early` and `late` is not between those two.
fn steady_gain(pairs: &[Pair], sign: i64, early: Nanos, late: Nanos) -> Option<f64> {
    let (before, before_time) = min_difference(pairs, sign, |far| far <= early)?;
    let (after, after_time) = min_difference(pairs, sign, |far| far >= late)?;
    let halfway = min_difference(pairs, sign, |far| early < far && far < late);
    let between = |middle: Nanos| before.min(after) <= middle && middle <= before.max(after);
    if halfway.is_some_and(|(middle, _)| !between(middle)) {
        return Some(0.0);
    }
    (after_time > before_time)
        .then(|| sign as f64 * (after - before) as f64 / (after_time - before_time) as f64)
}

/// The minimum of `sign` times (far minus near), and its time on the far clock.
fn min_difference(pairs: &[Pair], sign: i64, within: impl Fn(Nanos) -> bool) -> Option<(Nanos, Nanos)> {
    let selected = pairs.iter().filter(|&&(_, far)| within(far));
    selected.map(|&(near, far)| (far.saturating_sub(near).saturating_mul(sign), far)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every 10 ms in each direction with a delay of 20 ms; the far clock is 5 s ahead and drifts by `ppm`.
    fn pairs(seconds: i64, ppm: f64) -> (Vec<Pair>, Vec<Pair>) {
        let far = |near: i64| near + 5_000 * MILLI + (near as f64 * ppm / 1e6) as i64;
        let pair = |k: i64| {
            let (sent, wait) = (10 * k * MILLI, k % 7 * MILLI);
            ((sent, far(sent + 20 * MILLI + wait)), (sent + 20 * MILLI + wait, far(sent)))
        };
        (0..100 * seconds).map(pair).unzip()
    }

    #[test]
    fn clocks_that_are_apart_are_brought_together() {
        let (outgoing, incoming) = pairs(30, 0.0);
        let alignment = aligned(&outgoing, &incoming).unwrap();
        assert_eq!((alignment.clock.offset, alignment.round_trip), (-5_000 * MILLI, 40 * MILLI));
        assert_eq!(alignment.clock.near(5_020 * MILLI), 20 * MILLI);
        assert!(alignment.drift_ppm.unwrap().abs() < 0.01);
        assert!(aligned(&outgoing, &[]).is_none());
    }

    #[test]
    fn drift_is_found_and_taken_out() {
        let (outgoing, incoming) = pairs(300, 100.0);
        let alignment = aligned(&outgoing, &incoming).unwrap();
        assert!((alignment.drift_ppm.unwrap() + 100.0).abs() < 1.0, "{alignment:?}");
        for (near, far) in [outgoing[0], outgoing[29_000]] {
            let delay = alignment.clock.near(far) - near;
            assert!((20 * MILLI..27 * MILLI).contains(&(delay + MILLI / 20)), "{delay}");
        }
        // over a few seconds it is below the threshold
        let (outgoing, incoming) = pairs(5, 100.0);
        assert_eq!(aligned(&outgoing, &incoming).unwrap().clock.drift, 0.0);
    }

    #[test]
    fn whole_milliseconds_have_a_higher_threshold() {
        // 200 ppm are 4 ms in 20 s, and 12 ms in a minute
        for (seconds, corrected) in [(20, false), (60, true)] {
            let (outgoing, incoming) = pairs(seconds, 200.0);
            let whole = |pairs: &[Pair]| -> Vec<Pair> {
                pairs.iter().map(|&(near, far)| (near, far / MILLI * MILLI)).collect()
            };
            assert_ne!(aligned(&outgoing, &incoming).unwrap().clock.drift, 0.0);
            assert_eq!(aligned(&whole(&outgoing), &whole(&incoming)).unwrap().clock.drift != 0.0, corrected);
        }
    }

    #[test]
    fn a_path_that_gets_longer_one_way_is_no_drift() {
        // one clock, and a link that becomes slower halfway: 6 ms more per packet in one direction
        let delay = |sent: i64| if sent > 10_000 * MILLI { 26 * MILLI } else { 20 * MILLI };
        let outgoing: Vec<Pair> = (0..2_000)
            .map(|k| 10 * k * MILLI)
            .map(|sent| (sent, sent + delay(sent) + sent % (70 * MILLI) / 10))
            .collect();
        let incoming: Vec<Pair> =
            (0..2_000).map(|k| 10 * k * MILLI).map(|sent| (sent + 20 * MILLI, sent)).collect();
        let alignment = aligned(&outgoing, &incoming).unwrap();
        assert_eq!((alignment.clock.offset, alignment.clock.drift, alignment.drift_ppm), (0, 0.0, Some(0.0)));
        // with a drift in addition, the unchanged direction determines it
        let drifted = |pairs: &[Pair]| -> Vec<Pair> {
            pairs.iter().map(|&(near, far)| (near, far + (far as f64 * 100e-6) as i64)).collect()
        };
        let alignment = aligned(&drifted(&outgoing), &drifted(&incoming)).unwrap();
        assert!((alignment.drift_ppm.unwrap() + 100.0).abs() < 1.0, "{alignment:?}");
    }

    #[test]
    fn a_clock_that_is_set_is_found() {
        for step in [250, -250, 15] {
            let (mut outgoing, mut incoming) = pairs(60, 0.0);
            for pairs in [&mut outgoing, &mut incoming] {
                for (near, far) in pairs.iter_mut().filter(|(near, _)| *near > 30_000 * MILLI) {
                    assert!(*near > 0);
                    *far += step * MILLI;
                }
            }
            match aligned(&outgoing, &incoming).unwrap().fault {
                Some(Fault::Set { at, step: found }) => {
                    assert!((at - 30_000 * MILLI).abs() <= 500 * MILLI, "{at}");
                    assert!((found - step * MILLI).abs() <= MILLI, "{found}");
                }
                other => panic!("{other:?}"),
            }
        }
        let (outgoing, incoming) = pairs(60, 2000.0);
        let fault = aligned(&outgoing, &incoming).unwrap().fault;
        assert!(matches!(fault, Some(Fault::Drift(ppm)) if (ppm + 2000.0).abs() < 20.0), "{fault:?}");
    }

    #[test]
    fn a_queue_that_stands_one_way_and_goes_the_other_way_is_no_step() {
        let busy = |near: i64| if near > 30_000 * MILLI { 80 * MILLI } else { 20 * MILLI };
        let times = || (0..6_000).map(|k| 10 * k * MILLI);
        let outgoing: Vec<Pair> = times().map(|near| (near, near + busy(near))).collect();
        let incoming: Vec<Pair> = times().map(|near| (near, near - 50 * MILLI)).collect();
        assert_eq!(aligned(&outgoing, &incoming).unwrap().fault, None);
        // a longer path both ways
        let incoming: Vec<Pair> = times().map(|near| (near, near - busy(near))).collect();
        assert_eq!(aligned(&outgoing, &incoming).unwrap().fault, None);
    }

    #[test]
    fn a_passing_change_is_no_drift() {
        // times are late for a while: the last third looks like a drift in both directions, the second third does not
        let third = |sent: i64| usize::from(sent > 9_000 * MILLI) + usize::from(sent > 21_000 * MILLI);
        let outgoing = |sent: i64| [20, 28, 24][third(sent)] * MILLI;
        let incoming = |sent: i64| [24, 28, 20][third(sent)] * MILLI;
        let times = || (0..3_000).map(|k| 10 * k * MILLI);
        let (outgoing, incoming): (Vec<Pair>, Vec<Pair>) = (
            times().map(|sent| (sent, sent + outgoing(sent))).collect(),
            times().map(|sent| (sent + incoming(sent), sent)).collect(),
        );
        assert_eq!(aligned(&outgoing, &incoming).unwrap().clock.drift, 0.0);
    }
}
