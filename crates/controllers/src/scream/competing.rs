//! The target of the queue's delay grows beside flows that fill queues
//! (RFC 8298 section 4.1.2.3; draft-ietf-ccwg-rfc8298bis-screamv2 section "Competing Flows Compensation").

use std::collections::VecDeque;
use tidegate_core::math::sqrt;
use tidegate_core::{Span, Time};

/// The delay is noted so often (ScreamTx.cpp: `kSlowUpdateInterval`; both texts leave it open).
const STEP: Span = Span::from_millis(50);

/// How many delays the variance is of, and the mean.
const LONG: usize = 200;
/// How many the mean is of.
const SHORT: usize = 50;

/// Above this the loss event rate says that others fill the queue.
const LOSS_EVENTS: f64 = 0.002;

/// The weight of a round trip in the loss event rate (ScreamTx.cpp: 0.98 and 0.02; both texts leave it open).
const EVENT_GAIN: f64 = 0.02;

/// The estimated share of round trips in which packets were lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossEvents(f64);

impl LossEvents {
    /// A round trip is over.
    pub fn take(&mut self, lost: bool) {
        self.0 += EVENT_GAIN * (f64::from(u8::from(lost)) - self.0);
    }
}

/// `qdelay_target`, from its low value to its high one.
#[derive(Clone, Debug)]
pub struct Target {
    low: f64,
    high: f64,
    target: f64,
    history: VecDeque<f64>,
    noted: Option<Time>,
}

impl Target {
    /// A target that begins at `low`, in seconds.
    #[must_use]
    pub fn new(low: f64, high: f64) -> Self {
        Self { low, high: high.max(low), target: low, history: VecDeque::with_capacity(LONG), noted: None }
    }

    /// In seconds.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.target
    }

    /// Takes a delay, in seconds (`adjust_qdelay_target`).
    pub fn take(&mut self, now: Time, qdelay: f64, events: LossEvents) {
        if self.noted.is_some_and(|then| now - then < STEP) {
            return;
        }
        self.noted = Some(now);
        if self.history.len() == LONG {
            self.history.pop_front();
        }
        self.history.push_back(qdelay / self.low);
        let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
        let count = self.history.len();
        let long = mean(&mut self.history.iter().copied(), count);
        let variance = mean(&mut self.history.iter().map(|x| (x - long) * (x - long)), count);
        let short = count.min(SHORT);
        let average = mean(&mut self.history.iter().rev().take(short).copied(), short);
        let new = self.low * (average + sqrt(variance));
        self.target = if events.0 > LOSS_EVENTS {
            1.5 * new
        } else if variance < 0.2 {
            new
        } else if new < self.low {
            (self.target * 0.5).max(new)
        } else {
            self.target * 0.9
        };
        self.target = self.target.min(self.high).max(self.low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target after `qdelays`, one each 50 ms, with losses in every `nth` round trip (0: none).
    fn after(qdelays: impl Iterator<Item = f64>, nth: usize) -> f64 {
        let mut target = Target::new(0.1, 0.4);
        let mut events = LossEvents::default();
        for (k, qdelay) in qdelays.enumerate() {
            events.take(nth > 0 && k % nth == 0);
            target.take(Time::from_millis(50 * k as i64), qdelay, events);
        }
        target.get()
    }

    #[test]
    fn a_queue_that_stands_still_is_somebody_elses() {
        let steady = after(std::iter::repeat_n(0.2, 300), 0);
        assert!((steady - 0.2).abs() < 1e-12, "the mean, no variance: {steady}");
        let lossy = after(std::iter::repeat_n(0.2, 300), 20);
        assert!((lossy - 0.3).abs() < 1e-12, "half more where packets are lost: {lossy}");
        assert_eq!(after(std::iter::repeat_n(0.9, 300), 20), 0.4, "at most the high one");
        assert_eq!(after(std::iter::repeat_n(0.01, 300), 20), 0.1, "at least the low one");
    }

    #[test]
    fn a_queue_that_varies_is_our_own() {
        // variance of 0 and 2 is 1, and the mean 1: what is new would be 0.2 s
        let target = after((0..300).map(|k| if k % 2 == 0 { 0.2 } else { 0.0 }), 0);
        assert_eq!(target, 0.1, "nine tenths each time, down to the low one");
    }
}
