//! Reads the kernel's clocks, and converts its time stamps of packets to monotonic time.
//!
//! `SO_TIMESTAMPNS` stamps packets in CLOCK_REALTIME, which may be set while a session runs. A session uses
//! CLOCK_MONOTONIC. Both are slewed alike (clock_gettime(2): by adjtime(3) and NTP), so that their difference is
//! constant except for steps: `settimeofday`, `clock_settime`, a leap second. One good reading of the difference
//! therefore serves until another one contradicts it.

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
    /// Takes five readings and returns the one that took the least time, which was not interrupted.
    #[must_use]
    pub fn take() -> Self {
        let best = |best: Self, next: Self| if next.error() < best.error() { next } else { best };
        (0..4).map(|_| Self::once()).fold(Self::once(), best)
    }

    /// Takes one reading: three calls that do not enter the kernel (vdso(7)), cheap enough for each wakeup. An
    /// interrupted reading has a larger error bound.
    #[must_use]
    pub fn once() -> Self {
        Self { before: monotonic(), real: real(), after: monotonic() }
    }

    /// Real minus monotonic time.
    fn offset(&self) -> i64 {
        self.real - (self.before + (self.after - self.before) / 2)
    }

    /// Bound on the error of the offset.
    fn error(&self) -> i64 {
        (self.after - self.before + 1) / 2
    }
}

/// Converts time stamps from CLOCK_REALTIME to CLOCK_MONOTONIC, across steps of the former.
#[derive(Clone, Debug)]
pub struct Bridge {
    reading: Reading,
    /// The offset before the last step, for packets that were stamped before it and are read after.
    previous: Option<i64>,
    steps: u64,
    largest_step: i64,
}

impl Bridge {
    /// A bridge with a first reading.
    #[must_use]
    pub fn new(reading: Reading) -> Self {
        Self { reading, previous: None, steps: 0, largest_step: 0 }
    }

    /// Adds a reading. Returns by how many nanoseconds the real-time clock was set forward (negative: back) since the
    /// last reading, if it was.
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

    /// Converts a time stamp to monotonic time.
    ///
    /// At `earliest` there was no unread packet, and `now` is the present (both monotonic): a packet was stamped between
    /// them. If the present offset puts the stamp outside, it was made before a step, or between a step and its
    /// detection. If the offset before the step puts it outside, too, the nearer limit is returned, and false as the
    /// second value.
    #[must_use]
    pub fn monotonic(&self, stamp: i64, earliest: i64, now: i64) -> (i64, bool) {
        let error = self.reading.error();
        let is_possible = |time: &i64| (earliest - error..=now + error).contains(time);
        let by_present_offset = stamp - self.reading.offset();
        let time = Some(by_present_offset)
            .filter(is_possible)
            .or_else(|| Some(stamp - self.previous?).filter(is_possible));
        (time.unwrap_or(by_present_offset).clamp(earliest, now), time.is_some())
    }

    /// The real time at a monotonic one.
    #[must_use]
    pub fn real(&self, monotonic: i64) -> i64 {
        monotonic + self.reading.offset()
    }

    /// Number of steps, and the largest one in nanoseconds (positive: forward).
    #[must_use]
    pub fn steps(&self) -> (u64, i64) {
        (self.steps, self.largest_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// A reading at the monotonic time `time` that took `2 * error` while real time was ahead by `offset`.
    fn reading(time: i64, offset: i64, error: i64) -> Reading {
        Reading { before: time - error, real: time + offset, after: time + error }
    }

    #[test]
    fn a_stamp_is_its_real_time_less_the_offset() {
        let bridge = Bridge::new(reading(5 * S, 1_700_000_000 * S, 40));
        assert_eq!(bridge.monotonic(1_700_000_006 * S + 7, 5 * S, 7 * S), (6 * S + 7, true));
    }

    #[test]
    fn the_best_reading_stays_and_noise_is_no_step() {
        let mut bridge = Bridge::new(reading(S, 100, 50));
        assert_eq!(bridge.update(reading(2 * S, 900, 1000)), None, "within the error of the reading");
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
    fn a_stamp_that_no_offset_explains_is_clamped_and_reported() {
        let bridge = Bridge::new(reading(S, 0, 10));
        assert_eq!(bridge.monotonic(9 * S, 2 * S, 3 * S), (3 * S, false));
        assert_eq!(bridge.monotonic(-9 * S, 2 * S, 3 * S), (2 * S, false));
    }

    #[test]
    fn the_kernel_is_read_within_a_microsecond_or_so_and_its_stamps_are_monotonic() {
        let bridge = Bridge::new(Reading::take());
        let (before, real, after) = (monotonic(), nanos(ClockId::Realtime), monotonic());
        let (time, is_exact) = bridge.monotonic(real, before, after);
        assert!(is_exact && (before..=after).contains(&time));
    }
}
