//! Pacing of segments: they are spaced by their transmission time at the pacing rate, and idle time is not made up for
//! (as in Linux's `tcp_update_skb_after_send` and `sch_fq`).

use tidegate_core::{Span, Time};

/// The pacing state of one sender.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    next: Time,
    /// Whether a segment waits for `next`.
    is_waiting: bool,
}

impl Pacer {
    /// Whether a segment has to wait; if so, until [`Pacer::next_wakeup`].
    #[inline]
    pub(super) fn holds(&mut self, now: Time) -> bool {
        self.is_waiting = now < self.next;
        self.is_waiting
    }

    /// Takes note of `bytes` of data that leave at `now`, at a pacing rate in bytes a second.
    pub(super) fn sent(&mut self, now: Time, bytes: u32, rate: f64) {
        // at less than a byte a second there would be years between two segments
        self.next = self.next.max(now) + Span::from_secs_f64(f64::from(bytes) / rate.max(1.0));
    }

    /// The time from which a segment may leave.
    pub(super) fn free_from(&self) -> Time {
        self.next
    }

    #[inline]
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.is_waiting.then_some(self.next)
    }

    /// Whether the waiting segment may leave. It is true only once: afterwards perhaps no segment waits.
    pub(super) fn releases(&mut self, now: Time) -> bool {
        let releases = self.is_waiting && self.next <= now;
        self.is_waiting &= !releases;
        releases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_keep_their_distance_and_pauses_are_not_made_up_for() {
        let mut pacer = Pacer::default();
        let ms = Time::from_millis;
        assert!(!pacer.holds(ms(5)));
        pacer.sent(ms(5), 1000, 1e6);
        assert!(pacer.holds(ms(5)));
        assert_eq!((pacer.next_wakeup(), pacer.releases(ms(5))), (Some(ms(6)), false));
        assert!(pacer.releases(ms(6)));
        assert_eq!(
            pacer.next_wakeup(),
            None,
            "also if `holds` is not called, because all data has been acknowledged"
        );
        assert!(!pacer.releases(ms(6)) && !pacer.holds(ms(6)));
        pacer.sent(ms(6), 1000, 0.5e6);
        assert!(!pacer.holds(ms(100)));
        pacer.sent(ms(100), 1000, 1e6);
        assert!(pacer.holds(ms(100)), "one segment, not one for each that was not sent before");
        assert_eq!(pacer.next_wakeup(), Some(ms(101)));
    }
}
