//! The round-trip estimate and the retransmission timeout (RFC 6298).

use tidegate_core::Span;

/// Smoothed round trip and the timeout that follows from it, with its backoff.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    smoothed: Option<(Span, Span)>,
    least: Option<Span>,
    base: Span,
    backoff: u32,
    min: Span,
    max: Span,
    granularity: Span,
}

impl RoundTrip {
    /// The timeout before any measurement (RFC 6298 section 2.1).
    pub(super) const INITIAL_RTO: Span = Span::from_secs(1);
    /// The timeout after a SYN had to be repeated (RFC 6298 section 5.7).
    pub(super) const AFTER_LOST_SYN: Span = Span::from_secs(3);

    /// An estimator without measurements; `min`, `max` and clock `granularity` as in RFC 6298 section 2.
    pub(super) fn new(min: Span, max: Span, granularity: Span) -> Self {
        let mut estimator =
            Self { smoothed: None, least: None, base: Span::ZERO, backoff: 0, min, max, granularity };
        estimator.base = estimator.bounded(Self::INITIAL_RTO);
        estimator
    }

    /// Takes in one measurement (RFC 6298 sections 2.2 and 2.3) and ends the backoff.
    pub(super) fn sample(&mut self, rtt: Span) {
        let (srtt, variation) = match self.smoothed {
            None => (rtt, rtt / 2),
            // alpha = 1/8, beta = 1/4; the variation uses the old smoothed value
            Some((srtt, variation)) => {
                (srtt + (rtt - srtt) / 8, variation + ((srtt - rtt).abs() - variation) / 4)
            }
        };
        self.smoothed = Some((srtt, variation));
        self.least = self.least.min(Some(rtt)).or(Some(rtt));
        self.backoff = 0;
        let margin = variation * 4;
        let margin = if margin < self.granularity { self.granularity } else { margin };
        self.base = self.bounded(srtt + margin);
    }

    fn bounded(&self, span: Span) -> Span {
        if span < self.min {
            self.min
        } else if span > self.max {
            self.max
        } else {
            span
        }
    }

    /// The smoothed round trip.
    pub(super) fn srtt(&self) -> Option<Span> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// The smallest round trip.
    pub(super) fn least(&self) -> Option<Span> {
        self.least
    }

    /// The present timeout, backoff included.
    pub(super) fn timeout(&self) -> Span {
        // 2^40 nanoseconds are 18 minutes, more than any sensible maximum, and there is no overflow
        self.bounded(self.base * (1 << self.backoff.min(40)))
    }

    /// Doubles the next timeout after the timer went off (RFC 6298 section 5.5). The backoff lasts until
    /// the next measurement, which by Karn's rule is of data sent only once.
    pub(super) fn back_off(&mut self) {
        if self.timeout() < self.max {
            self.backoff += 1;
        }
    }

    /// Sets the timeout after a repeated SYN, whose round trip does not count (RFC 6298 section 5.7).
    pub(super) fn lost_syn(&mut self) {
        self.backoff = 0;
        self.base = self.bounded(Self::AFTER_LOST_SYN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Span {
        Span::from_millis(millis)
    }

    fn estimator(min: i64) -> RoundTrip {
        RoundTrip::new(ms(min), Span::from_secs(60), ms(1))
    }

    #[test]
    fn the_first_sample_gives_three_round_trips() {
        let mut rtt = estimator(1);
        assert_eq!(rtt.timeout(), Span::from_secs(1));
        rtt.sample(ms(100));
        assert_eq!(rtt.srtt(), Some(ms(100)));
        assert_eq!(rtt.timeout(), ms(300), "R + 4 * R/2");
    }

    /// RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110.
    #[test]
    fn the_second_sample_is_smoothed() {
        let mut rtt = estimator(1);
        rtt.sample(ms(100));
        rtt.sample(ms(180));
        assert_eq!(rtt.srtt(), Some(ms(110)));
        assert_eq!(rtt.timeout(), ms(110 + 230));
    }

    #[test]
    fn the_timeout_keeps_its_bounds_and_the_clock_its_granularity() {
        let mut rtt = estimator(1000);
        (0..200).for_each(|_| rtt.sample(ms(100)));
        assert_eq!(rtt.timeout(), ms(1000));
        let mut rtt = estimator(1);
        (0..200).for_each(|_| rtt.sample(ms(100)));
        assert_eq!(rtt.timeout(), ms(101), "SRTT + G once the variation is gone");
        rtt.sample(Span::from_secs(400));
        assert_eq!(rtt.timeout(), Span::from_secs(60));
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = estimator(1000);
        rtt.sample(ms(100));
        let mut waits = Vec::new();
        for _ in 0..9 {
            waits.push(rtt.timeout().as_nanos() / 1_000_000_000);
            rtt.back_off();
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        rtt.sample(ms(100));
        assert_eq!(rtt.timeout(), Span::from_secs(1));
    }
}
