//! When a discipline that computes something again and again does so.

use crate::refusal::{Refusal, ensure};
use tidegate_core::{Span, Time};

/// The shortest period: with ticks in each nanosecond a second would never end.
const LEAST: Span = Span::from_micros(10);

/// Whether `value`, which makes `parts` periods, is not too short; its key is `key`.
pub(super) fn ensure_period(key: &'static str, value: Span, parts: i64) -> Result<(), Refusal> {
    let least = LEAST * parts;
    ensure(value >= least, || Refusal::new(key, value, format!("at least {least}")))
}

/// Ticks at the multiples of a period, which pause while they would change nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    period: Span,
    next: Option<Time>,
}

impl Ticks {
    /// They pause at first.
    pub(super) const fn new(period: Span) -> Self {
        Self { period, next: None }
    }

    /// The next one, unless they pause.
    pub(super) const fn next(&self) -> Option<Time> {
        self.next
    }

    /// There is something to do from now on.
    pub(super) fn go_on(&mut self, now: Time) {
        if self.next.is_none() {
            self.next = Some(self.after(now));
        }
    }

    /// The one that is due at `now` is done; whether the next one would change something.
    pub(super) fn done(&mut self, now: Time, goes_on: bool) {
        self.next = goes_on.then(|| self.after(now));
    }

    fn after(&self, now: Time) -> Time {
        let (now, period) = (now.as_nanos(), self.period.as_nanos());
        Time::from_nanos((now / period + 1).saturating_mul(period))
    }
}
