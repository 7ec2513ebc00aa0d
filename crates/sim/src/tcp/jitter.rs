//! The moment that a busy host takes for each packet.

use tidegate_core::rng::Draws;
use tidegate_core::{Span, Stream, Time};

/// Delays departures by a time uniform in [0, `most`), in order.
#[derive(Debug)]
pub(super) struct SendingJitter {
    most: f64,
    previous: Time,
    luck: Stream,
}

impl SendingJitter {
    pub(super) fn new(seed: u64, name: &str, most: Span) -> Self {
        let luck = Stream::new(seed, name, "jitter");
        Self { most: most.as_nanos() as f64, previous: Time::from_nanos(i64::MIN), luck }
    }

    /// When a packet that is ready at `now` leaves.
    pub(super) fn depart(&mut self, now: Time) -> Time {
        let delay = Span::from_nanos((self.luck.uniform() * self.most) as i64);
        self.previous = self.previous.max(now + delay);
        self.previous
    }

    pub(super) fn draws(&self) -> Draws {
        self.luck.draws()
    }
}
