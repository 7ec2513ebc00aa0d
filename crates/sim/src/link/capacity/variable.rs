//! Service at a rate that whoever drives the world may change at any time, also in the middle of a packet.

use super::{Served, WORK_PER_BYTE};
use tidegate_core::{Rate, Time};

/// A transmitter whose rate can be changed. The bits that a packet has left go at the new rate.
///
/// Exact, as [`super::Constant`] is: whole nanoseconds and the work of the one that has begun.
#[derive(Clone, Debug)]
pub struct Variable {
    rate: u64,
    /// Whole nanoseconds of the exact end of the last service; `i64::MAX` for never.
    done: i64,
    /// Work done in the nanosecond that follows: less than the rate.
    spent: u128,
    /// Work that was left of the packet in service when the rate became zero.
    stuck: u128,
    /// Since when it has had which rate.
    history: Vec<(Time, Rate)>,
}

impl Variable {
    /// A transmitter of `rate` that is idle; [`Rate::MAX`] takes no time.
    pub(crate) fn new(rate: Rate) -> Self {
        let history = vec![(Time::from_nanos(i64::MIN), rate)];
        Self { rate: rate.as_bps(), done: i64::MIN, spent: 0, stuck: 0, history }
    }

    /// A transmitter that has had `rate` since `now`, when nothing of its own was going on.
    pub(super) fn since(now: Time, rate: Rate) -> Self {
        Self { done: now.as_nanos(), ..Self::new(rate) }
    }

    /// The present rate.
    pub(super) const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// Takes over `work` that is left of a packet from the transmitter before; says when it is done.
    pub(super) fn resume(&mut self, work: u128) -> Time {
        self.take(work);
        self.rounded()
    }

    /// When the service of a packet would begin that has been there since `from`.
    pub(crate) fn begins(&self, from: Time) -> Time {
        if self.rate == 0 { Time::MAX } else { from.max(self.rounded()) }
    }

    /// Serves `size` bytes that have been there since `from`, after all that came before. The rate must not
    /// be zero.
    pub(crate) fn serve(&mut self, from: Time, size: u32) -> Served {
        if self.done < from.as_nanos() {
            (self.done, self.spent) = (from.as_nanos(), 0);
        }
        let start = self.rounded();
        self.take(u128::from(size) * WORK_PER_BYTE + self.spent);
        Served { start, finish: self.rounded() }
    }

    /// From `now` on it has `rate`. The new end of the service that is going on and does not end before `now`, if
    /// `serving` says that there is one.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Rate, serving: bool) -> Option<Time> {
        let old = std::mem::replace(&mut self.rate, rate.as_bps());
        self.history.push((now, rate));
        let finish = serving.then(|| {
            let left = match old {
                0 => self.stuck,
                _ => u128::from(old) * (self.done - now.as_nanos()) as u128 + self.spent,
            };
            (self.done, self.spent) = (now.as_nanos(), 0);
            self.take(left);
            self.rounded()
        });
        if !serving {
            // nothing begins in the past, and what has been used of a nanosecond is used
            (self.done, self.spent) = (self.rounded().max(now).as_nanos(), 0);
        }
        finish
    }

    /// The mean rate over `[from, to)`, as it was and, as long as nobody changes it, will be.
    pub(crate) fn mean_rate(&self, from: Time, to: Time) -> Rate {
        if to <= from {
            return Rate::ZERO;
        }
        let mut work = 0;
        for (place, &(at, rate)) in self.history.iter().enumerate() {
            let until = self.history.get(place + 1).map_or(to, |&(next, _)| next.min(to));
            let since = at.max(from);
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
                let whole = i64::try_from(work / rate).unwrap_or(i64::MAX);
                (self.done, self.spent) = (self.done.saturating_add(whole), work % rate);
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
    fn the_bits_that_are_left_go_at_the_new_rate() {
        let at = Time::from_micros;
        let mut service = Variable::new(Rate::from_mbps(8));
        // 1000 bytes: 1 ms; after 400 us 600 bytes are left, 2400 us at a quarter of the rate
        assert_eq!(service.serve(at(0), 1000), Served { start: at(0), finish: at(1000) });
        assert_eq!(service.set_rate(at(400), Rate::from_mbps(2), true), Some(at(2800)));
        assert_eq!(service.begins(at(500)), at(2800));
        // 100 bytes later nothing goes for a while
        assert_eq!(service.set_rate(at(800), Rate::ZERO, true), Some(Time::MAX));
        assert_eq!(service.begins(at(900)), Time::MAX);
        assert_eq!(service.set_rate(at(5000), Rate::from_mbps(4), true), Some(at(6000)));
        assert_eq!(service.serve(at(1000), 1000), Served { start: at(6000), finish: at(8000) });
        // 8 for 400, 2 for 400, 0 for 4200, 4 for 5000 us, of 10 ms
        assert_eq!(service.mean_rate(at(0), at(10_000)), Rate::from_bps(2_400_000));
        assert_eq!(service.mean_rate(at(400), at(800)), Rate::from_mbps(2));
    }
}
