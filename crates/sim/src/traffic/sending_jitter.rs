//! Sending jitter: delay in a sending host that varies from packet to packet.

use tidegate_core::rng::Draws;
use tidegate_core::{Span, Stream, Time};

/// The delay of a sending host before it puts a packet on the wire: uniform in `[0, max)`, in order.
///
/// It breaks the lockstep in which simulated senders otherwise fill a queue (Floyd and Jacobson, "On
/// Traffic Phase Effects in Packet-Switched Gateways", 1992). It comes before the recorded departure, so that
/// measured delays do not contain it.
#[derive(Clone, Debug)]
pub struct SendingJitter {
    max: Span,
    last: Time,
    luck: Stream,
}

impl SendingJitter {
    /// Jitter up to `max`, drawn from `luck`; a negative `max` counts as zero.
    #[must_use]
    pub fn new(max: Span, luck: Stream) -> Self {
        Self { max: if max.is_negative() { Span::ZERO } else { max }, last: Time::from_nanos(i64::MIN), luck }
    }

    /// The departure of a packet that is to be sent at `now`: never earlier than that of the previous packet.
    pub fn depart(&mut self, now: Time) -> Time {
        if self.max > Span::ZERO {
            let delay = (self.luck.uniform() * self.max.as_nanos() as f64) as i64;
            self.last = self.last.max(now + Span::from_nanos(delay));
        } else {
            self.last = self.last.max(now);
        }
        self.last
    }

    /// The draws of the substream.
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
            let departure = jitter.depart(now);
            assert!(departure >= last && departure >= now && departure < now + max);
            last = departure;
            sum += departure - now;
        }
        assert!(sum > Span::from_secs(60), "order is kept by waiting: more than the mean of 5 ms each");
        let mut no_jitter = SendingJitter::new(Span::ZERO, Stream::new(1, "tcp", "sending jitter"));
        assert_eq!(no_jitter.depart(Time::from_millis(3)), Time::from_millis(3));
        assert_eq!(no_jitter.draws().count, 0);
    }
}
