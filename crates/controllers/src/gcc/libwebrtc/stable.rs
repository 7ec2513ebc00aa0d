//! Stable target: the rate that the path has carried for some time.
//!
//! `LinkCapacityTracker` of `send_side_bandwidth_estimation.cc`. It falls at once and rises within some ten seconds; an
//! encoder may use it for choices that are costly to change.

use super::rounding::{between, bps};
use tidegate_core::math;
use tidegate_core::units::{Rate, Time};

/// Time constant of the rise, s (`OnRateUpdate`).
const RISE_TIME_CONSTANT: f64 = 10.0;

/// Stable target (`LinkCapacityTracker`).
#[derive(Clone, Default)]
pub(super) struct LinkCapacityTracker {
    rate: f64,
    last: Option<Time>,
    /// Last delay-based rate.
    delay_based: Option<Rate>,
}

impl LinkCapacityTracker {
    pub(super) fn rate(&self) -> Rate {
        bps(self.rate)
    }

    pub(super) fn start(&mut self, start: Rate) {
        if self.last.is_none() {
            self.rate = start.as_bps_f64();
        }
    }

    pub(super) fn delay_based(&mut self, rate: Rate, now: Time) {
        if self.delay_based.is_none_or(|before| rate < before) {
            self.lower(rate, now);
        }
        self.delay_based = Some(rate);
    }

    /// Lowers the stable target to `rate` at once.
    pub(super) fn lower(&mut self, rate: Rate, now: Time) {
        self.rate = self.rate.min(rate.as_bps_f64());
        self.last = Some(now);
    }

    /// Takes a new target and the received rate (`OnRateUpdate`).
    pub(super) fn target(&mut self, acked: Option<Rate>, target: Rate, now: Time) {
        let Some(acked) = acked else { return };
        let rate = acked.min(target).as_bps_f64();
        if rate > self.rate {
            let passed = self.last.map(|last| between(last, now).as_nanos().max(0) as f64 / 1e9);
            let keep = passed.map_or(0.0, |passed| math::exp(-passed / RISE_TIME_CONSTANT));
            self.rate = keep * self.rate + (1.0 - keep) * rate;
        }
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_falls_at_once_and_rises_in_ten_seconds() {
        let mut stable = LinkCapacityTracker::default();
        stable.start(Rate::from_kbps(300));
        assert_eq!(stable.rate(), Rate::from_kbps(300));
        stable.delay_based(Rate::from_mbps(1), Time::ZERO);
        stable.target(None, Rate::from_mbps(1), Time::from_secs(5));
        assert_eq!(stable.rate(), Rate::from_kbps(300), "nothing has arrived");
        stable.target(Some(Rate::from_mbps(1)), Rate::from_mbps(2), Time::from_secs(10));
        let risen = 1e6 - 700_000.0 * math::exp(-1.0);
        assert!((stable.rate().as_bps_f64() - risen).abs() <= 1.0, "{:?}", stable.rate());
        stable.delay_based(Rate::from_kbps(200), Time::from_secs(11));
        assert_eq!(stable.rate(), Rate::from_kbps(200));
        stable.delay_based(Rate::from_kbps(900), Time::from_secs(12));
        assert_eq!(stable.rate(), Rate::from_kbps(200));
    }
}
