//! Loss event rate from loss intervals, with weights, and discounts for the past (RFC 5348 sections 5.4 and 5.5).

/// Number of closed intervals that count.
pub const INTERVALS: usize = 8;

/// Weights of the intervals, newest first (RFC 5348 section 5.4).
pub const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Closed loss interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Closed {
    /// Length, packets; with small packets possibly only a part of them.
    pub length: f64,
    /// Factor of the weight, from 0 to 1 (DF_i of RFC 5348 section 5.5).
    pub discount: f64,
}

impl Closed {
    /// Creates an interval without discount.
    #[must_use]
    pub const fn new(length: f64) -> Self {
        Self { length, discount: 1.0 }
    }
}

/// Weighted sum of the closed intervals, and sum of the weights; newest first, at most eight count.
fn weighted_sums(closed: &[Closed]) -> (f64, f64) {
    closed.iter().zip(WEIGHTS).fold((0.0, 0.0), |(total, weights), (interval, weight)| {
        (total + interval.length * weight * interval.discount, weights + weight * interval.discount)
    })
}

/// General discount factor DF of the past, from `threshold` to 1: below 1 once the `open` interval is more than twice as
/// long as the mean of the `closed` ones.
///
/// RFC 5348 section 5.5. The factor applies at once, and enters each interval's discount when the open interval closes
/// ([`close`]).
#[must_use]
pub fn discount(open: f64, closed: &[Closed], threshold: f64) -> f64 {
    let (total, weights) = weighted_sums(closed);
    if weights <= 0.0 || open * weights <= 2.0 * total {
        return 1.0;
    }
    (2.0 * total / weights / open).max(threshold)
}

/// Average loss interval I_mean = 1/p: over the closed intervals, or with the open one instead of the oldest if that is
/// longer (RFC 5348 sections 5.4 and 5.5).
///
/// `open` is I_0 in packets, `None` while it must not count (RFC 4828 section 3); `closed` are I_1 and so on; `factor` is
/// [`discount`], 1 for none. Infinite without closed intervals, that is without loss.
#[must_use]
pub fn mean(open: Option<f64>, closed: &[Closed], factor: f64) -> f64 {
    if closed.is_empty() {
        return f64::INFINITY;
    }
    let (total, weights) = weighted_sums(closed);
    let without = total / weights;
    let Some(open) = open else { return without };
    // I_0 takes the first weight, the others move one back, and the oldest drops out
    let remaining = closed.len().min(INTERVALS) - 1;
    let (mut total, mut weights) = (open * WEIGHTS[0], WEIGHTS[0]);
    for (interval, weight) in closed[..remaining].iter().zip(&WEIGHTS[1..]) {
        total += interval.length * weight * interval.discount * factor;
        weights += weight * interval.discount * factor;
    }
    without.max(total / weights)
}

/// Multiplies the discounts of `closed` by `factor`, when the open interval closes (RFC 5348 section 5.5).
pub fn close(closed: &mut [Closed], factor: f64) {
    for interval in closed {
        interval.discount *= factor;
    }
}

/// Length of an interval for small packets: `packets` over `lost` if its duration is at most two round-trip times, all
/// its packets otherwise (RFC 4828 section 3).
#[must_use]
pub fn small_packet_length(packets: f64, lost: f64, duration: f64, rtt: f64) -> f64 {
    if duration <= 2.0 * rtt { packets / lost.max(1.0) } else { packets }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(lengths: &[f64]) -> Vec<Closed> {
        lengths.iter().map(|&length| Closed::new(length)).collect()
    }

    #[test]
    fn a_full_history_by_hand() {
        let eight = closed(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]);
        // 10 + 20 + 30 + 40 + 40 + 36 + 28 + 16 = 220 over 6
        assert_eq!(mean(Some(1.0), &eight, 1.0), 220.0 / 6.0);
        // 100 + 10 + 20 + 30 + 32 + 30 + 24 + 14 = 260 over 6
        assert_eq!(mean(Some(100.0), &eight, 1.0), 260.0 / 6.0);
        assert_eq!(mean(None, &eight, 1.0), 220.0 / 6.0);
        // a ninth one does not count
        let mut nine = eight.clone();
        nine.push(Closed::new(1e6));
        assert_eq!(mean(Some(100.0), &nine, 1.0), 260.0 / 6.0);
        assert_eq!(mean(Some(5.0), &[], 1.0), f64::INFINITY);
    }

    #[test]
    fn discounting_begins_at_twice_the_mean_and_ends_at_the_threshold() {
        let past = closed(&[100.0; 8]);
        assert_eq!(discount(200.0, &past, 0.25), 1.0);
        assert_eq!(discount(250.0, &past, 0.25), 0.8);
        assert_eq!(discount(400.0, &past, 0.25), 0.5);
        assert_eq!(discount(10_000.0, &past, 0.25), 0.25);
        assert_eq!(discount(10_000.0, &past, 1.0), 1.0);
        assert_eq!(discount(10.0, &[], 0.25), 1.0);
        // I_0 = 400, DF = 0.5; the weights behind the first are 1 1 1 .8 .6 .4 .2, 5 in all
        let by_hand = (400.0 + 0.5 * 100.0 * 5.0) / (1.0 + 0.5 * 5.0);
        assert!((mean(Some(400.0), &past, 0.5) - by_hand).abs() < 1e-12);
    }

    #[test]
    fn a_discount_is_kept_when_the_interval_closes() {
        let mut past = closed(&[100.0, 50.0]);
        close(&mut past, 0.5);
        close(&mut past, 0.8);
        assert_eq!(past[1], Closed { length: 50.0, discount: 0.4 });
        past.insert(0, Closed::new(400.0));
        // the new one in full, the old ones at 0.4
        assert!((mean(None, &past, 1.0) - (400.0 + 0.4 * 150.0) / 1.8).abs() < 1e-12);
    }

    #[test]
    fn short_intervals_of_small_packets_count_their_losses() {
        assert_eq!(small_packet_length(20.0, 4.0, 0.2, 0.1), 5.0, "two round trips just count as short");
        assert_eq!(small_packet_length(20.0, 4.0, 0.201, 0.1), 20.0);
        assert_eq!(small_packet_length(20.0, 0.0, 0.1, 0.1), 20.0);
    }
}
