//! Service at a rate that the driver may change at any time, also in the middle of a packet.

use super::{Served, WORK_PER_BYTE};
use tidegate_core::{Rate, Time};

/// A transmitter whose rate can be changed. The remaining bits of a packet go at the new rate.
///
/// It is exact, as [`super::Constant`]: whole nanoseconds, and the work done in the one that has begun.
#[derive(Clone, Debug)]
pub struct Variable {
    rate: u64,
    /// Whole nanoseconds of the exact end of the last service; `i64::MAX` for never.
    done: i64,
    /// Work done in the nanosecond after `done`: less than the rate.
    spent: u128,
    /// Remaining work of the packet in service when the rate became zero.
    stuck: u128,
    /// All rates, each with the time from which it held.
    history: Vec<(Time, Rate)>,
}

impl Variable {
    /// A transmitter of `rate` that is idle; [`Rate::MAX`] takes no time.
    pub(crate) fn new(rate: Rate) -> Self {
        let history = vec![(Time::from_nanos(i64::MIN), rate)];
        Self { rate: rate.as_bps(), done: i64::MIN, spent: 0, stuck: 0, history }
    }

    /// A transmitter of `rate` that is idle from `now` on.
    pub(super) fn since(now: Time, rate: Rate) -> Self {
        Self { done: now.as_nanos(), ..Self::new(rate) }
    }

    /// The present rate.
    pub(super) const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// Takes over the remaining `work` of a packet from the previous transmitter; returns its end.
    pub(super) fn resume(&mut self, work: u128) -> Time {
        self.take(work);
        self.rounded()
    }

    /// The time at which the service of a packet would begin that has waited since `from`.
    pub(crate) fn begins(&self, from: Time) -> Time {
        if self.rate == 0 { Time::MAX } else { from.max(self.rounded()) }
    }

    /// Serves a packet of `size` bytes that has waited since `from`, after all earlier packets. The rate must not
    /// be zero.
    pub(crate) fn serve(&mut self, from: Time, size: u32) -> Served {
        if self.done < from.as_nanos() {
            (self.done, self.spent) = (from.as_nanos(), 0);
        }
        let start = self.rounded();
        self.take(u128::from(size) * WORK_PER_BYTE + self.spent);
        Served { start, finish: self.rounded() }
    }

    /// Sets the rate from `now` on. Returns the new end of the service under way, if there is one (`serving`); it must
    /// not end before `now`.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Rate, serving: bool) -> Option<Time> {
        let old_rate = std::mem::replace(&mut self.rate, rate.as_bps());
        self.history.push((now, rate));
        let finish = serving.then(|| {
            let remaining = match old_rate {
                0 => self.stuck,
                _ => u128::from(old_rate) * (self.done - now.as_nanos()) as u128 + self.spent,
            };
            (self.done, self.spent) = (now.as_nanos(), 0);
            self.take(remaining);
            self.rounded()
        });
        if !serving {
            // no service begins in the past, and the used part of a nanosecond is not available again
            (self.done, self.spent) = (self.rounded().max(now).as_nanos(), 0);
        }
        finish
    }

    /// The mean rate over `[from, to)`, as it was, or as it will be if the driver does not change it.
    pub(crate) fn mean_rate(&self, from: Time, to: Time) -> Rate {
        if to <= from {
            return Rate::ZERO;
        }
        let mut work = 0;
        for (index, &(begin, rate)) in self.history.iter().enumerate() {
            let until = self.history.get(index + 1).map_or(to, |&(next, _)| next.min(to));
            let since = begin.max(from);
            if since < until {
                if rate == Rate::MAX {
                    return Rate::MAX;
                }
                work += u128::from(rate.as_bps()) * (until - since).as_nanos() as u128;
            }
        }
        Rate::from_bps(u64::try_from(work / (to - from).as_nanos() as u128).unwrap_or(u64::MAX))
    }

    /// Does `work` from `done` on.
    fn take(&mut self, work: u128) {
        match u128::from(self.rate) {
            _ if self.rate == u64::MAX => self.spent = 0,
            0 => (self.done, self.spent, self.stuck) = (i64::MAX, 0, work),
            rate => {
                let nanos = i64::try_from(work / rate).unwrap_or(i64::MAX);
                (self.done, self.spent) = (self.done.saturating_add(nanos), work % rate);
            }
        }
    }

    /// The end of the last service, rounded up to a nanosecond.
    fn rounded(&self) -> Time {
        Time::from_nanos(self.done.saturating_add(i64::from(self.spent > 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Constant;
    use super::*;
    use tidegate_core::Stream;

    #[test]
    fn at_one_rate_it_is_the_constant_transmitter() {
        let mut luck = Stream::new(1, "variable", "test");
        for rate in [7_000_000, 3_333_333, 999_999_937] {
            let mut constant = Constant::new(Rate::from_bps(rate));
            let mut variable = Variable::new(Rate::from_bps(rate));
            let mut now = Time::ZERO;
            for _ in 0..100_000 {
                now += tidegate_core::Span::from_nanos(luck.below(8_000_000_000_000 / rate * 2) as i64);
                let size = luck.below(2000) as u32;
                assert_eq!(variable.serve(now, size), constant.serve(now, size));
            }
        }
    }

    #[test]
    fn the_remaining_bits_go_at_the_new_rate() {
        let micros = Time::from_micros;
        let mut service = Variable::new(Rate::from_mbps(8));
        // 1000 bytes: 1 ms; after 400 us 600 bytes are left, 2400 us at a quarter of the rate
        assert_eq!(service.serve(micros(0), 1000), Served { start: micros(0), finish: micros(1000) });
        assert_eq!(service.set_rate(micros(400), Rate::from_mbps(2), true), Some(micros(2800)));
        assert_eq!(service.begins(micros(500)), micros(2800));
        // after 100 more bytes the rate is zero for a while
        assert_eq!(service.set_rate(micros(800), Rate::ZERO, true), Some(Time::MAX));
        assert_eq!(service.begins(micros(900)), Time::MAX);
        assert_eq!(service.set_rate(micros(5000), Rate::from_mbps(4), true), Some(micros(6000)));
        assert_eq!(service.serve(micros(1000), 1000), Served { start: micros(6000), finish: micros(8000) });
        // 8 for 400, 2 for 400, 0 for 4200, 4 for 5000 us, of 10 ms
        assert_eq!(service.mean_rate(micros(0), micros(10_000)), Rate::from_bps(2_400_000));
        assert_eq!(service.mean_rate(micros(400), micros(800)), Rate::from_mbps(2));
    }
}
