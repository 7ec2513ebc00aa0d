//! The average age of queued packets, and the rate that sends them in time: libwebrtc's rule for long queues
//! (`MaybeUpdateMediaRateDueToLongQueue` of `modules/pacing/pacing_controller.cc`).

use crate::packetizer::Queued;
use tidegate_core::{Rate, Size, Span, Time};

/// Minimum time left for queued packets, however long they have waited.
const AVG_TIME_LEFT_MIN: Span = Span::from_millis(1);

/// Number and age of the queued packets.
#[derive(Debug, Default)]
pub(super) struct QueueAges {
    packets: i128,
    /// The sum of the instants at which they were queued, in nanoseconds.
    since: i128,
}

impl QueueAges {
    pub(super) fn enqueued(&mut self, packet: &Queued) {
        self.packets += 1;
        self.since += i128::from(packet.since.as_nanos());
    }

    pub(super) fn dequeued(&mut self, packet: &Queued) {
        self.packets -= 1;
        self.since -= i128::from(packet.since.as_nanos());
        debug_assert!(
            self.packets > 0 || (self.packets, self.since) == (0, 0),
            "{} packets since {}",
            self.packets,
            self.since
        );
    }

    /// Average time that they have waited by `now`.
    fn average_queue_time(&self, now: Time) -> Span {
        if self.packets == 0 {
            return Span::ZERO;
        }
        let sum = self.packets * i128::from(now.as_nanos()) - self.since;
        // the sum fits 64 bits nearly always, which spares a division of 128
        let average = match (i64::try_from(sum), i64::try_from(self.packets)) {
            (Ok(sum), Ok(packets)) => sum / packets,
            _ => i64::try_from(sum / self.packets).unwrap_or(i64::MAX),
        };
        Span::from_nanos(average)
    }

    /// The lowest rate that sends `backlog`, the bytes of the queued packets, before they have waited for `limit` on
    /// average. Where packets come and go at one rate, the oldest has then waited for two thirds of that.
    pub(super) fn rate(&self, now: Time, backlog: Size, limit: Span) -> Rate {
        let time_left =
            Span::from_nanos(limit.as_nanos().saturating_sub(self.average_queue_time(now).as_nanos()));
        backlog.per(time_left.max(AVG_TIME_LEFT_MIN))
    }
}
