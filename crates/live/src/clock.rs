//! The kernel's clocks, and how its stamps of packets are brought to monotonic time.
//!
//! `SO_TIMESTAMPNS` stamps in CLOCK_REALTIME, which somebody may set while a session runs. A session lives in
//! CLOCK_MONOTONIC. Both are disciplined alike (clock_gettime(2): adjtime(3) and NTP slew both), so that their
//! difference is constant but for steps: `settimeofday`, `clock_settime`, a leap second. So one good reading of the
//! difference serves until another one contradicts it.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC.
#[must_use]
pub fn monotonic() -> i64 {
    nanos(ClockId::Monotonic)
}

/// Nanoseconds of CLOCK_REALTIME.
#[must_use]
pub fn real() -> i64 {
    nanos(ClockId::Realtime)
}

fn nanos(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// CLOCK_REALTIME, read between two readings of CLOCK_MONOTONIC; all in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Monotonic time before.
    pub before: i64,
    /// Real time.
    pub real: i64,
    /// Monotonic time after.
    pub after: i64,
}

impl Reading {
    /// Asks the kernel a few times and keeps the reading that took least: one in which nothing came between.
    #[must_use]
    pub fn take() -> Self {
        let best = |best: Self, one: Self| if one.error() < best.error() { one } else { best };
        (0..4).map(|_| Self::once()).fold(Self::once(), best)
    }

    /// Asks the kernel once: three calls that do not enter it (vdso(7)), cheap enough for each wakeup. Where something
    /// came between, it is known to be the less exact.
    #[must_use]
    pub fn once() -> Self {
        Self { before: monotonic(), real: real(), after: monotonic() }
    }

    /// Real minus monotonic time.
    fn offset(&self) -> i64 {
        self.real - (self.before + (self.after - self.before) / 2)
    }

    /// How far off the offset may be.
    fn error(&self) -> i64 {
        (self.after - self.before + 1) / 2
    }
}

/// From stamps in CLOCK_REALTIME to CLOCK_MONOTONIC, across steps of the former.
#[derive(Clone, Debug)]
pub struct Bridge {
    reading: Reading,
    /// The difference before the last step, for packets that were stamped before it and are read after.
    previous: Option<i64>,
    steps: u64,
    largest_step: i64,
}

impl Bridge {
    /// A bridge by a first reading.
    #[must_use]
    pub fn new(reading: Reading) -> Self {
        Self { reading, previous: None, steps: 0, largest_step: 0 }
    }

    /// Takes another reading in, and says by how many nanoseconds the real time has been set forward (negative:
    /// back) since the one before, if it has been.
    pub fn update(&mut self, reading: Reading) -> Option<i64> {
        let step = reading.offset() - self.reading.offset();
        if step.abs() > reading.error() + self.reading.error() {
            self.previous = Some(self.reading.offset());
            self.reading = reading;
            self.steps += 1;
            if step.abs() > self.largest_step.abs() {
                self.largest_step = step;
            }
            return Some(step);
        }
        if reading.error() < self.reading.error() {
            self.reading = reading;
        }
        None
    }

    /// The monotonic time of a stamp.
    ///
    /// `earliest` is when there was no unread packet, `now` the present, both monotonic: no stamp is from outside.
    /// One that is by the present difference was stamped before a step, or between a step and its detection;
    /// where the difference before the step does not explain it either, the nearer end is taken. The second value is
    /// false then.
    #[must_use]
    pub fn monotonic(&self, stamp: i64, earliest: i64, now: i64) -> (i64, bool) {
        let error = self.reading.error();
        let fits = |at: &i64| (earliest - error..=now + error).contains(at);
        let by_now = stamp - self.reading.offset();
        let found = Some(by_now).filter(fits).or_else(|| Some(stamp - self.previous?).filter(fits));
        (found.unwrap_or(by_now).clamp(earliest, now), found.is_some())
    }

    /// The real time at a monotonic one.
    #[must_use]
    pub fn real(&self, monotonic: i64) -> i64 {
        monotonic + self.reading.offset()
    }

    /// How many steps there were, and the largest one in nanoseconds, forward positive.
    #[must_use]
    pub fn steps(&self) -> (u64, i64) {
        (self.steps, self.largest_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// A reading at monotonic `at` that took `2 * error` while real time was ahead by `offset`.
    fn reading(at: i64, offset: i64, error: i64) -> Reading {
        Reading { before: at - error, real: at + offset, after: at + error }
    }

    #[test]
    fn a_stamp_is_its_real_time_less_the_offset() {
        let bridge = Bridge::new(reading(5 * S, 1_700_000_000 * S, 40));
        assert_eq!(bridge.monotonic(1_700_000_006 * S + 7, 5 * S, 7 * S), (6 * S + 7, true));
    }

    #[test]
    fn the_best_reading_stays_and_noise_is_no_step() {
        let mut bridge = Bridge::new(reading(S, 100, 50));
        assert_eq!(bridge.update(reading(2 * S, 900, 1000)), None, "within what the reading may be off");
        assert_eq!(bridge.monotonic(3 * S + 100, 2 * S, 4 * S), (3 * S, true), "the better one is kept");
        assert_eq!(bridge.update(reading(3 * S, 120, 20)), None);
        assert_eq!(bridge.monotonic(3 * S + 120, 2 * S, 4 * S), (3 * S, true), "a better one replaces it");
        assert_eq!(bridge.steps(), (0, 0));
    }

    #[test]
    fn a_step_is_detected_and_both_sides_of_it_are_read_rightly() {
        for step in [-3600 * S, -2000, 2000, 3600 * S] {
            let mut bridge = Bridge::new(reading(S, 50 * S, 30));
            assert_eq!(bridge.update(reading(2 * S, 50 * S + step, 30)), Some(step));
            assert_eq!(bridge.steps(), (1, step));
            // empty at 2 s; one packet stamped before the clock was set, one after it
            let (empty, now) = (2 * S - 1000, 2 * S + 500);
            let after = bridge.monotonic(2 * S + 400 + 50 * S + step, empty, now);
            assert_eq!(after, (2 * S + 400, true));
            if step.abs() > 3600 {
                let before = bridge.monotonic(2 * S - 900 + 50 * S, empty, now);
                assert_eq!(before, (2 * S - 900, true));
            }
        }
    }

    #[test]
    fn a_stamp_that_nothing_explains_is_put_inside_and_told() {
        let bridge = Bridge::new(reading(S, 0, 10));
        assert_eq!(bridge.monotonic(9 * S, 2 * S, 3 * S), (3 * S, false));
        assert_eq!(bridge.monotonic(-9 * S, 2 * S, 3 * S), (2 * S, false));
    }

    #[test]
    fn the_kernel_is_read_within_a_microsecond_or_so_and_its_stamps_are_monotonic() {
        let bridge = Bridge::new(Reading::take());
        let (before, real, after) = (monotonic(), nanos(ClockId::Realtime), monotonic());
        let (at, known) = bridge.monotonic(real, before, after);
        assert!(known && (before..=after).contains(&at));
    }
}
