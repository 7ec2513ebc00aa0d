//! The grid of instants at which per-packet feedback is due.

use tidegate_core::{Rate, Size, Span, Time};

/// Size of a report on the wire: 20 bytes of IPv4, 8 of UDP, 10 of SRTP, and 30, the mean of 24 bytes at 50 ms and 36
/// at 250 ms. This constant and the next ones are those of libwebrtc's
/// `transport_sequence_number_feedback_generator.cc` (`OnSendBandwidthEstimateChanged`).
const TWCC_REPORT_SIZE: Size = Size::from_bytes(20 + 8 + 10 + 30);
/// Ratio of the rate that an end may send to that of its reports, which take 5 %.
const SEND_TO_REPORT_RATIO: u64 = 20;
const MIN_INTERVAL: Span = Span::from_millis(50);
const MAX_INTERVAL: Span = Span::from_millis(250);

/// libwebrtc's time between two reports of an end that may send `rate` itself: 50 ms from 217.6 kbit/s on.
pub(crate) fn interval(rate: Rate) -> Span {
    Rate::from_bps(rate.as_bps() / SEND_TO_REPORT_RATIO)
        .time_for(TWCC_REPORT_SIZE)
        .clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// The instants at which reports are due while packets arrive: a grid that begins with the first packet and goes on
/// where nothing arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    /// Time between two of them; `None`: by the rate that this end may send.
    fixed: Option<Span>,
    /// The rate that this end may send. An end that sends nothing has libwebrtc's start rate there, and its reports
    /// come every 50 ms.
    send_rate: Option<Rate>,
    /// The last instant, which may still be in the future.
    last: Option<Time>,
}

impl Ticks {
    pub(crate) fn new(fixed: Option<Span>) -> Self {
        Self { fixed, send_rate: None, last: None }
    }

    /// Sets the rate that this end may send from now on.
    pub(crate) fn set_send_rate(&mut self, rate: Rate) {
        self.send_rate = Some(rate);
    }

    /// The first instant of the grid that is later than `now`.
    pub(crate) fn next(&mut self, now: Time) -> Time {
        let last = *self.last.get_or_insert(now);
        let step = self.fixed.unwrap_or_else(|| self.send_rate.map_or(MIN_INTERVAL, interval));
        // after a report that went early, the last instant is in the future
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
            let nanos = interval(Rate::from_bps(bps)).as_nanos();
            assert!((nanos - micros * 1000).abs() < 1000, "{bps} bit/s: {nanos} ns");
        }
    }

    #[test]
    fn the_grid_follows_the_rate_from_its_last_instant_on() {
        let mut ticks = Ticks::new(None);
        assert_eq!(
            [103, 153, 260].map(|millis| ticks.next(ms(millis))),
            [ms(153), ms(203), ms(303)],
            "sends nothing"
        );
        ticks.set_send_rate(Rate::from_bps(108_800));
        assert_eq!(
            [303, 404, 1000].map(|millis| ticks.next(ms(millis))),
            [ms(403), ms(503), ms(1003)],
            "every 100 ms"
        );
        ticks.set_send_rate(Rate::ZERO);
        assert_eq!(ticks.next(ms(1003)), ms(1253));
        ticks.set_send_rate(Rate::from_mbps(1));
        assert_eq!(ticks.next(ms(1300)), ms(1303));
    }

    #[test]
    fn a_fixed_grid_stays_where_it_is() {
        let mut ticks = Ticks::new(Some(Span::from_millis(50)));
        ticks.set_send_rate(Rate::ZERO);
        assert_eq!([103, 153, 1000].map(|millis| ticks.next(ms(millis))), [ms(153), ms(203), ms(1003)]);
        // that report went early: the next one is due at the instant that it would have had
        assert_eq!(ticks.next(ms(1001)), ms(1003));
    }
}
