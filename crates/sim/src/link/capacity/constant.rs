//! Service at one constant rate, without drift.

use super::{Served, WORK_PER_BYTE};
use tidegate_core::{Rate, Time};

/// A transmitter of constant rate.
///
/// The end of the last service is stored as whole nanoseconds and a fraction in units of 1/rate, so
/// that a million packets take exactly a million times `size * 8 / rate`.
#[derive(Clone, Debug)]
pub struct Constant {
    rate: u64,
    /// Whole nanoseconds of the exact end of the last service.
    done: i64,
    /// Fraction of that end: `part / rate` nanoseconds.
    part: u64,
    /// The size of the last packet and its service time (whole nanoseconds, fraction): most packets
    /// have the same size, and need no division then.
    size: u32,
    nanos: i64,
    rest: u64,
}

impl Constant {
    /// A transmitter of `rate` that is idle.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self::idle_until(rate, Time::from_nanos(i64::MIN))
    }

    /// A transmitter of `rate` that begins no service before `start`.
    #[must_use]
    pub const fn idle_until(rate: Rate, start: Time) -> Self {
        let rate = rate.as_bps();
        // at rate zero no service ever begins
        let done = if rate == 0 { i64::MAX } else { start.as_nanos() };
        Self { rate, done, part: 0, size: 0, nanos: 0, rest: 0 }
    }

    /// The rate of the transmitter.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// Serves a packet of `size` bytes that came at `now`, after all earlier packets.
    #[inline]
    pub fn serve(&mut self, now: Time, size: u32) -> Served {
        if size != self.size {
            self.measure(size);
        }
        if self.done < now.as_nanos() {
            self.done = now.as_nanos();
            self.part = 0;
        }
        let start = self.rounded();
        self.done = self.done.saturating_add(self.nanos);
        // part and rest are both below rate, so their sum exceeds it at most once
        let (part, overflow) = self.part.overflowing_add(self.rest);
        if overflow || part >= self.rate {
            self.part = part.wrapping_sub(self.rate);
            self.done = self.done.saturating_add(1);
        } else {
            self.part = part;
        }
        Served { start, finish: self.rounded() }
    }

    /// The time at which the service of a packet would begin that has waited since `from`.
    #[must_use]
    pub fn begins(&self, from: Time) -> Time {
        from.max(self.rounded())
    }

    /// The end of the last service, rounded up to a nanosecond.
    #[inline]
    const fn rounded(&self) -> Time {
        Time::from_nanos(self.done.saturating_add((self.part > 0) as i64))
    }

    fn measure(&mut self, size: u32) {
        self.size = size;
        let work = u128::from(size) * WORK_PER_BYTE;
        (self.nanos, self.rest) = match u128::from(self.rate) {
            0 => (i64::MAX, 0),
            rate => (i64::try_from(work / rate).unwrap_or(i64::MAX), (work % rate) as u64),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_do_not_drift() {
        for (rate, size) in [(7_000_000, 1499), (3, 1), (999_999_937, 1200), (u64::MAX, 1500)] {
            let mut service = Constant::new(Rate::from_bps(rate));
            let mut last = Time::ZERO;
            for count in 1..=1_000_000_u128 {
                let served = service.serve(Time::ZERO, size);
                assert_eq!(served.start, last, "each begins when the previous one ends");
                last = served.finish;
                if count % 99_991 == 0 || count == 1_000_000 {
                    let exact = (count * u128::from(size) * WORK_PER_BYTE).div_ceil(u128::from(rate));
                    assert_eq!(last.as_nanos() as u128, exact, "{rate} bit/s after {count} packets");
                }
            }
        }
    }

    #[test]
    fn idle_time_is_not_saved_up_and_sizes_may_change() {
        let mut service = Constant::new(Rate::from_mbps(8));
        let micros = Time::from_micros;
        assert_eq!(service.serve(micros(0), 1000), Served { start: micros(0), finish: micros(1000) });
        assert_eq!(service.serve(micros(500), 500), Served { start: micros(1000), finish: micros(1500) });
        assert_eq!(service.serve(micros(9000), 1000), Served { start: micros(9000), finish: micros(10_000) });
        assert_eq!(
            service.serve(micros(10_000), 1),
            Served { start: micros(10_000), finish: micros(10_001) }
        );
    }

    #[test]
    fn nothing_is_ever_served_at_rate_zero() {
        let mut service = Constant::new(Rate::ZERO);
        for size in [1, 0, 1500] {
            assert_eq!(service.serve(Time::ZERO, size), Served { start: Time::MAX, finish: Time::MAX });
        }
    }

    #[test]
    fn the_largest_packet_is_exact() {
        let mut service = Constant::new(Rate::from_bps(8_000_000_000));
        let size = u32::MAX;
        assert_eq!(service.serve(Time::ZERO, size).finish.as_nanos(), i64::from(size));
    }
}
