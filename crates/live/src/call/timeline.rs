//! The time of a call, and the kernel's stamps in it.

use crate::clock::{Bridge, Reading, monotonic};
use tidegate_core::Time;

/// Time since a call began, and kernel stamps in it.
#[derive(Debug)]
pub(super) struct Timeline {
    begin: i64,
    bridge: Bridge,
    /// When the socket was last known to be empty, monotonic.
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

    /// The time of a stamp, or the present; and whether it is that of the stamp.
    pub(super) fn stamped(&self, stamp: Option<i64>) -> (Time, bool) {
        let now = monotonic();
        let (at, known) = stamp.map_or((now, false), |stamp| self.bridge.monotonic(stamp, self.empty, now));
        (Time::from_nanos(at - self.begin), known)
    }

    /// Notices whether somebody has set the real time: at each wakeup, before what came is read.
    pub(super) fn compare(&mut self) {
        self.bridge.update(Reading::once());
    }
}
