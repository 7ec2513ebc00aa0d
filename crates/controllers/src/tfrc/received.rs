//! Receive rates at the sender: X_recv_set of RFC 5348 section 4.3.

use tidegate_core::{Span, Time};

/// Receive rates, bytes/s, with the times of their reports.
///
/// The set begins with an infinite rate, so that the receive rate is no limit for two round trips.
#[derive(Clone, Debug)]
pub struct ReceiveRates {
    set: Vec<(Time, f64)>,
}

/// Largest number of reports in two round trips; beyond it, the lowest rates are dropped. There is one regular report per
/// round trip, and one per loss event; these begin at least a round trip apart.
const MAX_REPORTS: usize = 16;

impl ReceiveRates {
    /// Creates a set with the infinite rate, as of `now`.
    #[must_use]
    pub fn new(now: Time) -> Self {
        let mut set = Vec::with_capacity(MAX_REPORTS + 1);
        set.push((now, f64::INFINITY));
        Self { set }
    }

    /// Largest rate.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.set.iter().map(|&(_, rate)| rate).fold(0.0, f64::max)
    }

    /// Adds `rate` and drops rates older than two round trips ("Update X_recv_set").
    pub fn update(&mut self, now: Time, rate: f64, rtt: Span) {
        self.set.retain(|&(time, _)| now - time <= rtt * 2);
        self.set.push((now, rate));
        if self.set.len() > MAX_REPORTS {
            let lowest = (0..self.set.len()).min_by(|&a, &b| self.set[a].1.total_cmp(&self.set[b].1));
            self.set.remove(lowest.unwrap_or(0));
        }
    }

    /// Keeps only the largest of all finite rates and `rate`, as of `now` ("Maximize X_recv_set").
    pub fn maximize(&mut self, now: Time, rate: f64) {
        self.set.retain(|&(_, rate)| rate.is_finite());
        let largest = self.largest().max(rate);
        self.replace(now, largest);
    }

    /// Halves all rates.
    pub fn halve(&mut self) {
        self.set.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
    }

    /// Keeps only `rate`, as of `now`.
    pub fn replace(&mut self, now: Time, rate: f64) {
        self.set.clear();
        self.set.push((now, rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    #[test]
    fn the_first_is_no_limit_for_two_round_trips() {
        let mut rates = ReceiveRates::new(Time::ZERO);
        rates.update(Time::from_millis(100), 5.0, RTT);
        rates.update(Time::from_millis(200), 7.0, RTT);
        assert_eq!(rates.largest(), f64::INFINITY);
        rates.update(Time::from_millis(201), 6.0, RTT);
        assert_eq!(rates.largest(), 7.0);
        rates.update(Time::from_millis(401), 1.0, RTT);
        assert_eq!(rates.largest(), 6.0, "just two round trips old");
        rates.update(Time::from_millis(402), 1.0, RTT);
        assert_eq!(rates.largest(), 1.0);
    }

    #[test]
    fn maximizing_keeps_the_largest_as_of_now() {
        let mut rates = ReceiveRates::new(Time::ZERO);
        rates.maximize(Time::from_millis(10), 5.0);
        assert_eq!(rates.largest(), 5.0, "the infinite one has gone");
        rates.maximize(Time::from_millis(100), 3.0);
        rates.update(Time::from_millis(290), 1.0, RTT);
        assert_eq!(rates.largest(), 5.0);
        rates.halve();
        assert_eq!(rates.largest(), 2.5);
        rates.replace(Time::from_millis(300), 9.0);
        assert_eq!(rates.largest(), 9.0);
    }

    #[test]
    fn it_does_not_grow() {
        let mut rates = ReceiveRates::new(Time::ZERO);
        (0..1000).for_each(|n| rates.update(Time::from_nanos(n), 1000.0 - n as f64, RTT));
        assert_eq!(rates.set.len(), MAX_REPORTS);
        assert_eq!(rates.largest(), f64::INFINITY);
    }
}
