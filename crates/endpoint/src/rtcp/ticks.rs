//! When per-packet feedback is due.

use tidegate_core::{Rate, Size, Span, Time};

/// What a report takes on the wire: 20 bytes of IPv4, 8 of UDP, 10 of SRTP, and 30, the mean of 24 bytes at 50 ms and 36 at
/// 250 ms (libwebrtc `transport_sequence_number_feedback_generator.cc`, `OnSendBandwidthEstimateChanged`; what follows, too).
const REPORT: Size = Size::from_bytes(20 + 8 + 10 + 30);
/// Reports may take this part of what their sender may send: 5 %.
const SHARE: u64 = 20;
/// `kMinInterval`.
const LEAST: Span = Span::from_millis(50);
/// `kMaxInterval`.
const MOST: Span = Span::from_millis(250);

/// libwebrtc's time between two reports of an end that may send `rate` itself: 50 ms from 217.6 kbit/s on.
pub(crate) fn interval(rate: Rate) -> Span {
    Rate::from_bps(rate.as_bps() / SHARE).time_for(REPORT).clamp(LEAST, MOST)
}

/// The instants at which reports are due while packets arrive: a grid that begins with the first packet and goes on
/// where nothing arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    /// Time between two of them; `None`: by what this end may send.
    fixed: Option<Span>,
    /// What this end may send; an end that sends nothing has libwebrtc's start rate there, and its reports come every 50 ms.
    own: Option<Rate>,
    /// The last instant, which may be still to come.
    last: Option<Time>,
}

impl Ticks {
    pub(crate) fn new(fixed: Option<Span>) -> Self {
        Self { fixed, own: None, last: None }
    }

    /// What this end may send from now on.
    pub(crate) fn set_own(&mut self, rate: Rate) {
        self.own = Some(rate);
    }

    /// The first instant of the grid that is later than `now`.
    pub(crate) fn next(&mut self, now: Time) -> Time {
        let last = *self.last.get_or_insert(now);
        let step = self.fixed.unwrap_or_else(|| self.own.map_or(LEAST, interval));
        // a report that went before it was due has left its instant in the future
        let ticks = (now - last).as_nanos().div_euclid(step.as_nanos()) + 1;
        let next = last + Span::from_nanos(ticks * step.as_nanos());
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// 68 bytes are 544 bits, and these are 5 % of 108.8 kbit/s in 100 ms.
    #[test]
    fn reports_take_five_percent_within_50_and_250_ms() {
        for (bps, micros) in [
            (0, 250_000),
            (1, 250_000),
            (43_520, 250_000),
            (43_540, 249_885),
            (54_400, 200_000),
            (108_800, 100_000),
            (200_000, 54_400),
            (217_600, 50_000),
            (217_620, 50_000),
            (300_000, 50_000),
            (u64::MAX, 50_000),
        ] {
            let found = interval(Rate::from_bps(bps)).as_nanos();
            assert!((found - micros * 1000).abs() < 1000, "{bps} bit/s: {found} ns");
        }
    }

    #[test]
    fn the_grid_follows_the_rate_from_its_last_instant_on() {
        let mut ticks = Ticks::new(None);
        assert_eq!(
            [103, 153, 260].map(|at| ticks.next(ms(at))),
            [ms(153), ms(203), ms(303)],
            "sends nothing"
        );
        ticks.set_own(Rate::from_bps(108_800));
        assert_eq!(
            [303, 404, 1000].map(|at| ticks.next(ms(at))),
            [ms(403), ms(503), ms(1003)],
            "every 100 ms"
        );
        ticks.set_own(Rate::ZERO);
        assert_eq!(ticks.next(ms(1003)), ms(1253));
        ticks.set_own(Rate::from_mbps(1));
        assert_eq!(ticks.next(ms(1300)), ms(1303));
    }

    #[test]
    fn a_fixed_grid_stays_where_it_is() {
        let mut ticks = Ticks::new(Some(Span::from_millis(50)));
        ticks.set_own(Rate::ZERO);
        assert_eq!([103, 153, 1000].map(|at| ticks.next(ms(at))), [ms(153), ms(203), ms(1003)]);
        // that report went early: the next one is due when it would have been
        assert_eq!(ticks.next(ms(1001)), ms(1003));
    }
}
