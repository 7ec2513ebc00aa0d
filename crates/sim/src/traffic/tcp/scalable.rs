//! DCTCP's answer to marks (RFC 8257 section 3.3), and what Prague changes of it (RFC 9331 section 4.3; Linux's
//! `net/ipv4/tcp_prague.c` of the L4S team).
//!
//! Of the requirements of RFC 9331 section 4.3 Prague here has 1 (another algorithm may be chosen), 2 (a loss halves the
//! window), 4 (below 25 ms it grows as a flow with that round trip does; Linux waits 500 rounds before that) and 7 (it paces).
//! Left out are 3 (nothing looks for a queue that marks for RFC 3168), 5 (no window of less than two segments) and 6 (losses
//! are found by RFC 6675, not by RACK).

use super::window::{CongestionControl, Window};
use tidegate_core::{Span, Time};

/// The estimation gain g (RFC 8257 section 4.2; `PRAGUE_SHIFT_G`).
const GAIN: f64 = 1.0 / 16.0;
/// The round trip as which Prague behaves where its own is shorter (`prague_rtt_target`).
const REFERENCE_RTT: Span = Span::from_millis(25);

/// How much of what is sent is marked.
#[derive(Clone, Debug)]
pub(super) struct Scalable {
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked of this window of data, which ends at DCTCP.WindowEnd.
    acked: u64,
    marked: u64,
    end: u64,
    /// Prague's: whether any mark was seen, when alpha was computed and the window reduced last.
    prague: bool,
    seen: bool,
    computed: Option<Time>,
    reduced: Option<Time>,
}

impl Scalable {
    pub(super) fn new(prague: bool) -> Self {
        // RFC 8257 section 3.3: the first mark halves the window
        Self { alpha: 1.0, acked: 0, marked: 0, end: 0, prague, seen: false, computed: None, reduced: None }
    }

    /// `bytes` were acknowledged, all up to `una` of all up to `max` that were sent, and were `marked` or not.
    fn acked(&mut self, now: Time, bytes: u64, una: u64, max: u64, marked: bool) {
        self.acked += bytes;
        if marked {
            self.marked += bytes;
            self.seen = true;
        }
        if una <= self.end || self.is_early(now, self.computed) {
            return;
        }
        // without a mark there is no sign of a queue that marks, and the first one is to halve Prague's window, too
        if self.acked > 0 && (self.seen || !self.prague) {
            let fraction = self.marked as f64 / self.acked as f64;
            self.alpha += GAIN * (fraction - self.alpha);
        }
        (self.acked, self.marked, self.end) = (0, 0, max);
        self.computed = Some(now);
    }

    /// What a mark leaves of the window, or `None` if Prague answered for one within its reference round trip.
    fn keeps(&mut self, now: Time) -> Option<f64> {
        if self.is_early(now, self.reduced) {
            return None;
        }
        self.reduced = Some(now);
        Some(1.0 - self.alpha / 2.0)
    }

    fn is_early(&self, now: Time, last: Option<Time>) -> bool {
        self.prague && last.is_some_and(|last| now - last < REFERENCE_RTT)
    }

    /// How many segments the window grows by in a round trip.
    fn increase(&self, srtt: Option<Span>) -> f64 {
        match srtt {
            Some(srtt) if self.prague && srtt < REFERENCE_RTT => {
                let ratio = srtt.as_secs_f64() / REFERENCE_RTT.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        }
    }
}

impl CongestionControl for Scalable {
    fn avoid(&mut self, window: &mut Window, _now: Time, acked: f64, srtt: Option<Span>) {
        // a segment for each window of bytes, delayed acknowledgements or not
        window.cwnd += self.increase(srtt) * window.segment * acked / window.cwnd;
    }

    fn echoed(&mut self, now: Time, bytes: u64, una: u64, max: u64, marked: bool) {
        self.acked(now, bytes, una, max, marked);
    }

    /// By the share of marks (RFC 8257 section 3.3).
    fn marked(&mut self, window: &mut Window, now: Time, _flight: u64) -> bool {
        let Some(keeps) = self.keeps(now) else { return false };
        window.cwnd = (window.cwnd * keeps).max(2.0 * window.segment);
        window.ssthresh = window.cwnd;
        true
    }

    fn pacing_rate(&self, window: &Window, srtt: Option<Span>) -> Option<f64> {
        if !self.prague {
            return None;
        }
        // twice as fast while slow start doubles the window (`prague_update_pacing_rate`)
        let doubles = if window.cwnd < window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        srtt.filter(|srtt| *srtt > Span::ZERO).map(|srtt| doubles * window.cwnd / srtt.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::math;

    /// Windows of ten segments of which so many are marked, one each round trip of 40 ms.
    fn windows(scalable: &mut Scalable, marked: u64, rounds: u64, from: u64) {
        for round in from..from + rounds {
            for segment in 1..=10 {
                let una = (10 * round + segment) * 1000;
                let now = Time::from_millis(40 * round as i64);
                scalable.acked(now, 1000, una, (10 * round + 10) * 1000, segment <= marked);
            }
        }
    }

    /// RFC 8257 section 3.3: alpha follows the fraction of marked bytes by 1/16 of the difference for each window.
    #[test]
    fn alpha_is_the_fraction_of_marked_bytes() {
        let mut dctcp = Scalable::new(false);
        assert_eq!(dctcp.keeps(Time::ZERO), Some(0.5));
        windows(&mut dctcp, 2, 33, 0);
        // the first acknowledgement ends a window of its own, which was marked; 32 whole ones follow
        let expected = 0.2 + (1.0 - 0.2) * math::pow(15.0 / 16.0, 32.0);
        assert!((dctcp.alpha - expected).abs() < 1e-9, "{} {expected}", dctcp.alpha);
        assert!((dctcp.keeps(Time::from_secs(9)).unwrap() - (1.0 - expected / 2.0)).abs() < 1e-9);
    }

    #[test]
    fn prague_waits_for_a_mark_and_is_no_faster_than_its_reference() {
        let mut prague = Scalable::new(true);
        windows(&mut prague, 0, 50, 0);
        assert_eq!(prague.keeps(Time::from_secs(10)), Some(0.5), "no marks, no reason to trust them less");
        assert_eq!(prague.keeps(Time::from_millis(10_024)), None);
        assert!(prague.keeps(Time::from_millis(10_025)).is_some());
        for (ms, expected) in [(5, 0.04), (25, 1.0), (100, 1.0)] {
            assert!((prague.increase(Some(Span::from_millis(ms))) - expected).abs() < 1e-12);
            assert!((Scalable::new(false).increase(Some(Span::from_millis(ms))) - 1.0).abs() < 1e-12);
        }
    }
}
