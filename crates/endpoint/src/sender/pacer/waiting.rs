//! How long what waits has waited, and the rate that has it out in time: libwebrtc's rule for long queues
//! (`MaybeUpdateMediaRateDueToLongQueue` of `modules/pacing/pacing_controller.cc`).

use crate::packetizer::Queued;
use tidegate_core::{Rate, Size, Span, Time};

/// So much time is left at least for what waits, however long it has waited.
const LEAST_LEFT: Span = Span::from_millis(1);

/// The packets that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    packets: i128,
    /// The sum of the instants since which they wait, in nanoseconds.
    since: i128,
}

impl Waiting {
    pub(super) fn came(&mut self, packet: &Queued) {
        self.packets += 1;
        self.since += i128::from(packet.since.as_nanos());
    }

    pub(super) fn left(&mut self, packet: &Queued) {
        self.packets -= 1;
        self.since -= i128::from(packet.since.as_nanos());
        debug_assert!(
            self.packets > 0 || (self.packets, self.since) == (0, 0),
            "{} packets since {}",
            self.packets,
            self.since
        );
    }

    /// For how long they have waited by `now`, on average (`AverageQueueTime`).
    fn mean(&self, now: Time) -> Span {
        if self.packets == 0 {
            return Span::ZERO;
        }
        let sum = self.packets * i128::from(now.as_nanos()) - self.since;
        // the sum fits 64 bits nearly always, which spares a division of 128
        let mean = match (i64::try_from(sum), i64::try_from(self.packets)) {
            (Ok(sum), Ok(packets)) => sum / packets,
            _ => i64::try_from(sum / self.packets).unwrap_or(i64::MAX),
        };
        Span::from_nanos(mean)
    }

    /// The least rate at which `backlog`, which is what they weigh, is out when they have waited for `limit` on
    /// average. Where packets come and go at one rate, the oldest has then waited for two thirds of that.
    pub(super) fn rate(&self, now: Time, backlog: Size, limit: Span) -> Rate {
        let left = Span::from_nanos(limit.as_nanos().saturating_sub(self.mean(now).as_nanos()));
        backlog.per(left.max(LEAST_LEFT))
    }
}
