//! Periodic updates of disciplines.

use crate::refusal::{Refusal, ensure};
use tidegate_core::{Span, Time};

/// The shortest period; with a tick in each nanosecond a second would take too long.
const MIN_PERIOD: Span = Span::from_micros(10);

/// Checks that the setting `key` has a `value` of at least `periods` minimum periods.
pub(super) fn ensure_periods(key: &'static str, value: Span, periods: i64) -> Result<(), Refusal> {
    let minimum = MIN_PERIOD * periods;
    ensure(value >= minimum, || Refusal::new(key, value, format!("at least {minimum}")))
}

/// Ticks at the multiples of a period, which pause while they would change nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    period: Span,
    next: Option<Time>,
}

impl Ticks {
    /// Ticks that pause at first.
    pub(super) const fn new(period: Span) -> Self {
        Self { period, next: None }
    }

    /// The next tick, unless they pause.
    pub(super) const fn next(&self) -> Option<Time> {
        self.next
    }

    /// Resumes the ticks after a pause, because there is something to update.
    pub(super) fn resume(&mut self, now: Time) {
        if self.next.is_none() {
            self.next = Some(self.after(now));
        }
    }

    /// Ends the tick that is due at `now`; `goes_on` is false if the next one would change nothing.
    pub(super) fn done(&mut self, now: Time, goes_on: bool) {
        self.next = goes_on.then(|| self.after(now));
    }

    fn after(&self, now: Time) -> Time {
        let (now, period) = (now.as_nanos(), self.period.as_nanos());
        Time::from_nanos((now / period + 1).saturating_mul(period))
    }
}
