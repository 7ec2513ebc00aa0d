//! Delay in a sending host that varies from packet to packet.

use tidegate_core::rng::Draws;
use tidegate_core::{Span, Stream, Time};

/// What a sending host adds between "to be sent" and "on the wire": uniform in `[0, max)`, order kept.
///
/// It breaks the lockstep in which simulated senders otherwise fill a queue (Floyd and Jacobson, "On
/// Traffic Phase Effects in Packet-Switched Gateways", 1992), and is drawn before the departure is
/// written down, so that measured delays do not contain it.
#[derive(Clone, Debug)]
pub struct SendingJitter {
    max: Span,
    last: Time,
    luck: Stream,
}

impl SendingJitter {
    /// Up to `max`, drawn from `luck`; a negative `max` counts as zero.
    #[must_use]
    pub fn new(max: Span, luck: Stream) -> Self {
        Self { max: if max.is_negative() { Span::ZERO } else { max }, last: Time::from_nanos(i64::MIN), luck }
    }

    /// When a packet that is to be sent at `now` leaves: never before the one before it.
    pub fn depart(&mut self, now: Time) -> Time {
        if self.max > Span::ZERO {
            let delay = (self.luck.uniform() * self.max.as_nanos() as f64) as i64;
            self.last = self.last.max(now + Span::from_nanos(delay));
        } else {
            self.last = self.last.max(now);
        }
        self.last
    }

    /// What the substream gave out.
    #[must_use]
    pub fn draws(&self) -> Draws {
        self.luck.draws()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_jitter_keeps_order_and_bounds() {
        let max = Span::from_millis(10);
        let mut jitter = SendingJitter::new(max, Stream::new(1, "tcp", "sending jitter"));
        let mut last = Time::ZERO;
        let mut sum = Span::ZERO;
        for packet in 0..10_000 {
            let now = Time::from_millis(packet);
            let at = jitter.depart(now);
            assert!(at >= last && at >= now && at < now + max);
            last = at;
            sum += at - now;
        }
        assert!(sum > Span::from_secs(60), "order is kept by waiting: more than the mean of 5 ms each");
        let mut none = SendingJitter::new(Span::ZERO, Stream::new(1, "tcp", "sending jitter"));
        assert_eq!(none.depart(Time::from_millis(3)), Time::from_millis(3));
        assert_eq!(none.draws().count, 0);
    }
}
