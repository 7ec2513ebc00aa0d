//! When the next segment may leave a sender that paces: segments are spaced by their own time at the pacing rate, and time in
//! which nothing was sent is not made up for (as Linux's `tcp_update_skb_after_send` and `sch_fq`).

use tidegate_core::{Span, Time};

/// The state of one sender.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    next: Time,
    /// Something waits for `next`.
    waits: bool,
}

impl Pacer {
    /// Whether a segment has to wait; if so, [`Pacer::next_wakeup`] says until when.
    #[inline]
    pub(super) fn holds(&mut self, now: Time) -> bool {
        self.waits = now < self.next;
        self.waits
    }

    /// `bytes` of data leave at `now`, at a pacing rate in bytes a second.
    pub(super) fn sent(&mut self, now: Time, bytes: u32, rate: f64) {
        // at less than a byte a second there would be years between two segments
        self.next = self.next.max(now) + Span::from_secs_f64(f64::from(bytes) / rate.max(1.0));
    }

    #[inline]
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.waits.then_some(self.next)
    }

    /// Whether what waited may leave. It is said once: by then nothing may be left that waits.
    pub(super) fn releases(&mut self, now: Time) -> bool {
        let releases = self.waits && self.next <= now;
        self.waits &= !releases;
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
            "also where nobody asks whether to hold, because all has been acknowledged"
        );
        assert!(!pacer.releases(ms(6)) && !pacer.holds(ms(6)));
        pacer.sent(ms(6), 1000, 0.5e6);
        assert!(!pacer.holds(ms(100)));
        pacer.sent(ms(100), 1000, 1e6);
        assert!(pacer.holds(ms(100)), "one segment, not one for each that was not sent before");
        assert_eq!(pacer.next_wakeup(), Some(ms(101)));
    }
}
