//! DCTCP's response to marks (RFC 8257 section 3.3), and Prague's changes of it (RFC 9331 section 4.3; Linux's
//! `net/ipv4/tcp_prague.c` of the L4S team).
//!
//! Prague here meets these requirements of RFC 9331 section 4.3: 1 (another algorithm may be chosen), 2 (a loss halves
//! the window), 4 (below 25 ms it grows like a flow with that round trip; Linux waits 500 rounds before that) and 7
//! (it paces). It does not meet 3 (it does not detect queues that mark by RFC 3168), 5 (its window is at least two
//! segments) and 6 (losses are detected by RFC 6675, not by RACK).

use super::window::{CongestionControl, Window};
use tidegate_core::{Span, Time};

/// The estimation gain g (RFC 8257 section 4.2; `PRAGUE_SHIFT_G` in Linux).
const G: f64 = 1.0 / 16.0;
/// The round trip for which Prague behaves if its own is shorter (`prague_rtt_target` in Linux).
const PRAGUE_RTT_TARGET: Span = Span::from_millis(25);

/// The estimate of the share of marks.
#[derive(Clone, Debug)]
pub(super) struct Scalable {
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.BytesAcked, DCTCP.BytesMarked and DCTCP.WindowEnd of this window of data.
    bytes_acked: u64,
    bytes_marked: u64,
    window_end: u64,
    /// For Prague: whether there was any mark, and the last updates of alpha and reductions of the window.
    prague: bool,
    has_marks: bool,
    alpha_updated: Option<Time>,
    window_reduced: Option<Time>,
}

impl Scalable {
    pub(super) fn new(prague: bool) -> Self {
        // RFC 8257 section 3.3: the first mark halves the window
        Self {
            alpha: 1.0,
            bytes_acked: 0,
            bytes_marked: 0,
            window_end: 0,
            prague,
            has_marks: false,
            alpha_updated: None,
            window_reduced: None,
        }
    }

    /// Updates alpha with `bytes` that were acknowledged, `marked` or not, with bytes up to `una` acknowledged and
    /// bytes up to `max` sent.
    fn update_alpha(&mut self, now: Time, bytes: u64, una: u64, max: u64, marked: bool) {
        self.bytes_acked += bytes;
        if marked {
            self.bytes_marked += bytes;
            self.has_marks = true;
        }
        if una <= self.window_end || self.is_early(now, self.alpha_updated) {
            return;
        }
        // before the first mark there is no sign of a queue that marks, and it is to halve Prague's window, too
        if self.bytes_acked > 0 && (self.has_marks || !self.prague) {
            let fraction = self.bytes_marked as f64 / self.bytes_acked as f64;
            self.alpha += G * (fraction - self.alpha);
        }
        (self.bytes_acked, self.bytes_marked, self.window_end) = (0, 0, max);
        self.alpha_updated = Some(now);
    }

    /// The factor of the window for a mark, or `None` if Prague responded to one within its reference round trip.
    fn reduction(&mut self, now: Time) -> Option<f64> {
        if self.is_early(now, self.window_reduced) {
            return None;
        }
        self.window_reduced = Some(now);
        Some(1.0 - self.alpha / 2.0)
    }

    fn is_early(&self, now: Time, last: Option<Time>) -> bool {
        self.prague && last.is_some_and(|last| now - last < PRAGUE_RTT_TARGET)
    }

    /// Growth of the window in segments per round trip.
    fn increase(&self, srtt: Option<Span>) -> f64 {
        match srtt {
            Some(srtt) if self.prague && srtt < PRAGUE_RTT_TARGET => {
                let ratio = srtt.as_secs_f64() / PRAGUE_RTT_TARGET.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        }
    }
}

impl CongestionControl for Scalable {
    fn avoid(&mut self, window: &mut Window, _now: Time, acked: f64, srtt: Option<Span>) {
        // a segment for each window of bytes, with or without delayed acknowledgements
        window.cwnd += self.increase(srtt) * window.segment * acked / window.cwnd;
    }

    fn echoed(&mut self, now: Time, bytes: u64, una: u64, max: u64, marked: bool) {
        self.update_alpha(now, bytes, una, max, marked);
    }

    /// Reduces the window by the share of marks (RFC 8257 section 3.3).
    fn marked(&mut self, window: &mut Window, now: Time, _flight: u64) -> bool {
        let Some(reduction) = self.reduction(now) else { return false };
        window.cwnd = (window.cwnd * reduction).max(2.0 * window.segment);
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

    /// Feeds windows of ten segments, `marked` of them marked, one each round trip of 40 ms.
    fn windows(scalable: &mut Scalable, marked: u64, rounds: u64, from: u64) {
        for round in from..from + rounds {
            for segment in 1..=10 {
                let una = (10 * round + segment) * 1000;
                let now = Time::from_millis(40 * round as i64);
                scalable.update_alpha(now, 1000, una, (10 * round + 10) * 1000, segment <= marked);
            }
        }
    }

    /// RFC 8257 section 3.3: alpha follows the fraction of marked bytes by 1/16 of the difference for each window.
    #[test]
    fn alpha_is_the_fraction_of_marked_bytes() {
        let mut dctcp = Scalable::new(false);
        assert_eq!(dctcp.reduction(Time::ZERO), Some(0.5));
        windows(&mut dctcp, 2, 33, 0);
        // the first acknowledgement ends a window with just itself, which was marked; 32 whole ones follow
        let expected = 0.2 + (1.0 - 0.2) * math::pow(15.0 / 16.0, 32.0);
        assert!((dctcp.alpha - expected).abs() < 1e-9, "{} {expected}", dctcp.alpha);
        assert!((dctcp.reduction(Time::from_secs(9)).unwrap() - (1.0 - expected / 2.0)).abs() < 1e-9);
    }

    #[test]
    fn prague_waits_for_a_mark_and_is_no_faster_than_its_reference() {
        let mut prague = Scalable::new(true);
        windows(&mut prague, 0, 50, 0);
        assert_eq!(
            prague.reduction(Time::from_secs(10)),
            Some(0.5),
            "no marks, no reason to trust them less"
        );
        assert_eq!(prague.reduction(Time::from_millis(10_024)), None);
        assert!(prague.reduction(Time::from_millis(10_025)).is_some());
        for (ms, expected) in [(5, 0.04), (25, 1.0), (100, 1.0)] {
            assert!((prague.increase(Some(Span::from_millis(ms))) - expected).abs() < 1e-12);
            assert!((Scalable::new(false).increase(Some(Span::from_millis(ms))) - 1.0).abs() < 1e-12);
        }
    }
}
