//! Converts the monotonic clock and the kernel's time stamps to the time of a call.

use crate::clock::{Bridge, Reading, monotonic};
use tidegate_core::Time;

/// Clock of a call, which begins at 0.
#[derive(Debug)]
pub(super) struct Timeline {
    begin: i64,
    bridge: Bridge,
    /// Monotonic time at which the socket was last known to be empty.
    pub(super) empty: i64,
}

impl Timeline {
    pub(super) fn new() -> Self {
        let begin = monotonic();
        Self { begin, bridge: Bridge::new(Reading::take()), empty: begin }
    }

    pub(super) fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.begin)
    }

    /// Time of a kernel time stamp, or the present if there is none; and whether the time is that of the stamp.
    pub(super) fn stamped(&self, stamp: Option<i64>) -> (Time, bool) {
        let now = monotonic();
        let (time, is_exact) =
            stamp.map_or((now, false), |stamp| self.bridge.monotonic(stamp, self.empty, now));
        (Time::from_nanos(time - self.begin), is_exact)
    }

    /// Checks whether the real-time clock was set; called at each wakeup, before datagrams are read.
    pub(super) fn compare(&mut self) {
        self.bridge.update(Reading::once());
    }
}
