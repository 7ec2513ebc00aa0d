//! Target of the queueing delay, which grows beside competing flows that fill queues
//! (RFC 8298 section 4.1.2.3; draft-ietf-ccwg-rfc8298bis-screamv2 section "Competing Flows Compensation").

use std::collections::VecDeque;
use tidegate_core::math::sqrt;
use tidegate_core::{Span, Time};

/// Time between two samples of the delay (ScreamTx.cpp; both texts leave it open).
const SLOW_UPDATE_INTERVAL: Span = Span::from_millis(50);

/// Number of delays in the variance and the long mean.
const LONG_HISTORY: usize = 200;
/// Number of delays in the short mean.
const SHORT_HISTORY: usize = 50;

/// Loss event rate above which competing flows are assumed to fill the queue.
const LOSS_EVENT_THRESHOLD: f64 = 0.002;

/// Weight of a round trip in the loss event rate (ScreamTx.cpp: 0.98 and 0.02; both texts leave it open).
const EVENT_GAIN: f64 = 0.02;

/// Estimated share of round trips in which packets were lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossEvents(f64);

impl LossEvents {
    /// Takes a round trip that has ended.
    pub fn take(&mut self, lost: bool) {
        self.0 += EVENT_GAIN * (f64::from(u8::from(lost)) - self.0);
    }
}

/// Target of the queueing delay, `qdelay_target`, between a low and a high value.
#[derive(Clone, Debug)]
pub struct Target {
    low: f64,
    high: f64,
    target: f64,
    history: VecDeque<f64>,
    sampled: Option<Time>,
}

impl Target {
    /// Creates a target between `low` and `high`, s, which begins at `low`.
    #[must_use]
    pub fn new(low: f64, high: f64) -> Self {
        Self {
            low,
            high: high.max(low),
            target: low,
            history: VecDeque::with_capacity(LONG_HISTORY),
            sampled: None,
        }
    }

    /// Present target, s.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.target
    }

    /// Takes a delay, s (`adjust_qdelay_target`).
    pub fn take(&mut self, now: Time, qdelay: f64, events: LossEvents) {
        if self.sampled.is_some_and(|last| now - last < SLOW_UPDATE_INTERVAL) {
            return;
        }
        self.sampled = Some(now);
        if self.history.len() == LONG_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(qdelay / self.low);
        let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
        let count = self.history.len();
        let long_mean = mean(&mut self.history.iter().copied(), count);
        let variance = mean(&mut self.history.iter().map(|x| (x - long_mean) * (x - long_mean)), count);
        let short_count = count.min(SHORT_HISTORY);
        let average = mean(&mut self.history.iter().rev().take(short_count).copied(), short_count);
        let new_target = self.low * (average + sqrt(variance));
        self.target = if events.0 > LOSS_EVENT_THRESHOLD {
            1.5 * new_target
        } else if variance < 0.2 {
            new_target
        } else if new_target < self.low {
            (self.target * 0.5).max(new_target)
        } else {
            self.target * 0.9
        };
        self.target = self.target.min(self.high).max(self.low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Target after `qdelays`, one every 50 ms, with losses in every `nth` round trip (0: none).
    fn target_after(qdelays: impl Iterator<Item = f64>, nth: usize) -> f64 {
        let mut target = Target::new(0.1, 0.4);
        let mut events = LossEvents::default();
        for (k, qdelay) in qdelays.enumerate() {
            events.take(nth > 0 && k % nth == 0);
            target.take(Time::from_millis(50 * k as i64), qdelay, events);
        }
        target.get()
    }

    #[test]
    fn a_constant_queue_is_taken_for_that_of_competing_flows() {
        let steady = target_after(std::iter::repeat_n(0.2, 300), 0);
        assert!((steady - 0.2).abs() < 1e-12, "the mean, no variance: {steady}");
        let lossy = target_after(std::iter::repeat_n(0.2, 300), 20);
        assert!((lossy - 0.3).abs() < 1e-12, "half more where packets are lost: {lossy}");
        assert_eq!(target_after(std::iter::repeat_n(0.9, 300), 20), 0.4, "at most the high value");
        assert_eq!(target_after(std::iter::repeat_n(0.01, 300), 20), 0.1, "at least the low value");
    }

    #[test]
    fn a_queue_that_varies_is_our_own() {
        // 0 and 2 have a variance of 1 and a mean of 1: the new target would be 0.2 s
        let target = target_after((0..300).map(|k| if k % 2 == 0 { 0.2 } else { 0.0 }), 0);
        assert_eq!(target, 0.1, "nine tenths each time, down to the low value");
    }
}
