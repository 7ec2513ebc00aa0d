//! Service at a rate that changes at given times, also in the middle of a packet.

use super::{Served, WORK_PER_BYTE};
use crate::refusal::{Refusal, ensure};
use std::sync::Arc;
use tidegate_core::{Rate, Span, Time};

/// A rate for each stretch of time; zero is an outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    steps: Arc<[Step]>,
    period: Option<i64>,
    /// Work done in one period; zero without a period.
    per_period: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Nanoseconds since the beginning of the period.
    begin: i64,
    rate: u64,
    /// Work done from the beginning of the period until `begin`.
    before: u128,
}

impl Steps {
    /// Rates that hold from their times on. After `period` they begin again; without one the last rate stays.
    ///
    /// # Errors
    /// Unless the times begin at zero and increase, and the period ends later than the last begins.
    pub fn new(rates: &[(Time, Rate)], period: Option<Span>) -> Result<Self, Refusal> {
        ensure(rates.first().is_some_and(|&(time, _)| time == Time::ZERO), || {
            Refusal::new("capacity.schedule", "no rate at 0 s", "a first rate at 0 s")
        })?;
        let mut steps: Vec<Step> = Vec::with_capacity(rates.len());
        for &(time, rate) in rates {
            let begin = time.as_nanos();
            let before = match steps.last() {
                None => 0,
                Some(last) => {
                    ensure(begin > last.begin, || {
                        format!(
                            "the rate at {time} comes after the rate at {}; times must increase",
                            Time::from_nanos(last.begin)
                        )
                    })?;
                    last.before + u128::from(last.rate) * (begin - last.begin) as u128
                }
            };
            steps.push(Step { begin, rate: rate.as_bps(), before });
        }
        let last = steps[steps.len() - 1];
        let period = period.map(Span::as_nanos);
        ensure(period.is_none_or(|period| period > last.begin), || {
            "the period of the rate schedule ends before its last rate begins".to_owned()
        })?;
        let per_period =
            period.map_or(0, |period| last.before + u128::from(last.rate) * (period - last.begin) as u128);
        Ok(Self { steps: steps.into(), period, per_period })
    }

    /// The rates, each with the time from which it holds.
    pub fn rates(&self) -> impl ExactSizeIterator<Item = (Time, Rate)> + '_ {
        self.steps.iter().map(|step| (Time::from_nanos(step.begin), Rate::from_bps(step.rate)))
    }

    /// Time after which they repeat.
    #[must_use]
    pub fn period(&self) -> Option<Span> {
        self.period.map(Span::from_nanos)
    }

    /// The rate at `now`.
    #[must_use]
    pub fn rate_at(&self, now: Time) -> Rate {
        let (_, within) = self.split(now.as_nanos());
        Rate::from_bps(self.step_at(within).rate)
    }

    /// The mean rate over `[from, to)`; zero for an empty stretch.
    #[must_use]
    pub fn mean_rate(&self, from: Time, to: Time) -> Rate {
        if to <= from {
            return Rate::ZERO;
        }
        let work = self.work_until(to.as_nanos()) - self.work_until(from.as_nanos());
        let mean = work / (to - from).as_nanos() as u128;
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The mean rate over a period; without a period the first rate above zero.
    #[must_use]
    pub fn nominal_rate(&self) -> Rate {
        match self.period {
            Some(period) => self.mean_rate(Time::ZERO, Time::from_nanos(period)),
            None => {
                Rate::from_bps(self.steps.iter().map(|step| step.rate).find(|&rate| rate > 0).unwrap_or(0))
            }
        }
    }

    /// Number of past periods, and the time within the present one.
    const fn split(&self, now: i64) -> (i64, i64) {
        match self.period {
            Some(period) => (now.div_euclid(period), now.rem_euclid(period)),
            None => (0, now),
        }
    }

    fn step_at(&self, within: i64) -> &Step {
        let steps_begun = self.steps.partition_point(|step| step.begin <= within);
        &self.steps[steps_begun.saturating_sub(1)]
    }

    /// Work that can be done in `[from, to)`.
    pub(super) fn work_between(&self, from: Time, to: Time) -> u128 {
        self.work_until(to.as_nanos()).saturating_sub(self.work_until(from.as_nanos()))
    }

    /// Work that could be done from time zero until `now`.
    fn work_until(&self, now: i64) -> u128 {
        let (periods, within) = self.split(now.max(0));
        let step = self.step_at(within);
        let inside = step.before + u128::from(step.rate) * (within - step.begin) as u128;
        (self.per_period * periods as u128).saturating_add(inside)
    }
}

/// A transmitter whose rate follows a schedule.
///
/// Its state is exact, as libwebrtc's `bits_left`: the remaining work of a packet is carried
/// over each change of rate as an integer.
#[derive(Clone, Debug)]
pub struct Schedule {
    steps: Steps,
    /// Beginning of the present period, and index of the step in which `done` lies or will lie.
    origin: i64,
    index: usize,
    /// Whole nanoseconds of the exact end of the last service; `i64::MAX` for never.
    done: i64,
    /// Work done in the nanosecond after `done`: less than the rate.
    spent: u128,
}

impl Schedule {
    /// A transmitter that follows `steps` and is idle.
    #[must_use]
    pub const fn new(steps: Steps) -> Self {
        Self { steps, origin: 0, index: 0, done: 0, spent: 0 }
    }

    /// The schedule of rates.
    #[must_use]
    pub const fn steps(&self) -> &Steps {
        &self.steps
    }

    /// The time at which the service of a packet would begin that has waited since `from`; [`Time::MAX`] for never.
    pub fn begins(&mut self, from: Time) -> Time {
        if self.done < from.as_nanos() {
            self.done = from.as_nanos();
            self.spent = 0;
        }
        if self.seek_capacity() { self.rounded() } else { Time::MAX }
    }

    /// Serves a packet of `size` bytes that came at `now`, after all earlier packets.
    pub fn serve(&mut self, now: Time, size: u32) -> Served {
        let start = self.begins(now);
        if start == Time::MAX {
            return Served { start, finish: start };
        }
        let mut work = u128::from(size) * WORK_PER_BYTE + self.spent;
        loop {
            let rate = u128::from(self.steps.steps[self.index].rate);
            let end = self.end_of_step();
            let room = rate * (end - self.done) as u128;
            if rate > 0 && work <= room {
                self.done += (work / rate) as i64;
                self.spent = work % rate;
                break;
            }
            if end == i64::MAX {
                self.done = i64::MAX;
                break;
            }
            work -= room;
            self.enter_next_step(end);
            if self.index == 0 && self.steps.per_period > 0 {
                // keeps some work: the service ends where the last bit is served, not at the period's end
                let periods = (work - 1) / self.steps.per_period;
                self.skip_periods(periods);
                work -= periods * self.steps.per_period;
            }
        }
        Served { start, finish: self.rounded() }
    }

    /// The end of the last service, rounded up to a nanosecond.
    fn rounded(&self) -> Time {
        Time::from_nanos(self.done.saturating_add(i64::from(self.spent > 0)))
    }

    /// Moves to the first time at or after `done` with a rate above zero; false if there is no such time.
    fn seek_capacity(&mut self) -> bool {
        if self.done == i64::MAX {
            return false;
        }
        if let Some(period) = self.steps.period {
            if self.steps.per_period == 0 {
                self.done = i64::MAX;
                return false;
            }
            if self.done.saturating_sub(self.origin) >= period {
                self.origin += (self.done - self.origin) / period * period;
                self.index = 0;
            }
        }
        loop {
            let end = self.end_of_step();
            if self.done >= end && end != i64::MAX {
                let done = self.done;
                self.enter_next_step(end);
                self.done = done;
            } else if self.steps.steps[self.index].rate > 0 {
                return true;
            } else if end == i64::MAX {
                self.done = i64::MAX;
                return false;
            } else {
                self.enter_next_step(end);
            }
        }
    }

    /// The end of the present step; `i64::MAX` for never.
    fn end_of_step(&self) -> i64 {
        match self.steps.steps.get(self.index + 1) {
            Some(next) => self.origin.saturating_add(next.begin),
            None => self.steps.period.map_or(i64::MAX, |period| self.origin.saturating_add(period)),
        }
    }

    fn enter_next_step(&mut self, now: i64) {
        self.done = now;
        self.spent = 0;
        self.index += 1;
        if self.index == self.steps.steps.len() {
            self.index = 0;
            self.origin = now;
        }
    }

    fn skip_periods(&mut self, count: u128) {
        let span = count.saturating_mul(self.steps.period.unwrap_or(0) as u128);
        self.origin = self.origin.saturating_add(i64::try_from(span).unwrap_or(i64::MAX));
        self.done = self.origin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn schedule(rates: &[(i64, u64)], period: Option<i64>) -> Schedule {
        let rates: Vec<_> = rates.iter().map(|&(millis, kbps)| (ms(millis), Rate::from_kbps(kbps))).collect();
        Schedule::new(Steps::new(&rates, period.map(Span::from_millis)).unwrap())
    }

    #[test]
    fn a_change_in_mid_packet_is_exact() {
        // 1500 B = 12 kbit: 10 ms at 600 kbit/s are 6 kbit, the other 6 kbit take 6/1300 s at 1.3 Mbit/s
        let mut link = schedule(&[(0, 600), (10, 1300)], None);
        let served = link.serve(ms(0), 1500);
        assert_eq!(served, Served { start: ms(0), finish: Time::from_nanos(10_000_000 + 4_615_385) });
        // the next one ends at 10 ms + (6 + 12) kbit / 1.3 Mbit/s = 23.846153846... ms
        assert_eq!(link.serve(ms(0), 1500).finish, Time::from_nanos(23_846_154));
    }

    #[test]
    fn an_outage_in_mid_packet_and_before_one() {
        let mut link = schedule(&[(0, 1200), (5, 0), (100, 1200), (200, 0), (300, 2400)], None);
        assert_eq!(link.serve(ms(0), 1500), Served { start: ms(0), finish: ms(105) });
        assert_eq!(link.serve(ms(250), 1500), Served { start: ms(300), finish: ms(305) });
    }

    #[test]
    fn it_repeats_and_skips_whole_periods() {
        // 12 kbit in each 100 ms, all of them in the first 10 ms
        let mut link = schedule(&[(0, 1200), (10, 0)], Some(100));
        assert_eq!(link.serve(ms(0), 1500).finish, ms(10));
        assert_eq!(link.serve(ms(0), 1500), Served { start: ms(100), finish: ms(110) });
        // a thousand periods and half of one
        assert_eq!(link.serve(ms(0), 1_500_750), Served { start: ms(200), finish: ms(100_205) });
        assert_eq!(link.serve(ms(1_000_095), 750), Served { start: ms(1_000_100), finish: ms(1_000_105) });
        assert_eq!(link.steps().nominal_rate(), Rate::from_kbps(120));
        assert_eq!(link.steps().mean_rate(ms(1005), ms(1105)), Rate::from_kbps(120));
        assert_eq!(link.steps().mean_rate(ms(1005), ms(1010)), Rate::from_kbps(1200));
        assert_eq!(link.steps().rate_at(ms(1009)), Rate::from_kbps(1200));
        assert_eq!(link.steps().rate_at(ms(1010)), Rate::ZERO);
    }

    #[test]
    fn nothing_is_served_where_the_rate_stays_zero() {
        let never = Served { start: Time::MAX, finish: Time::MAX };
        for mut link in [schedule(&[(0, 0)], None), schedule(&[(0, 0), (5, 0)], Some(10))] {
            assert_eq!(link.serve(ms(3), 1), never);
            assert_eq!(link.serve(ms(4), 1), never);
        }
        let mut link = schedule(&[(0, 8), (10, 0)], None);
        assert_eq!(link.serve(ms(0), 9), Served { start: ms(0), finish: ms(9) });
        assert_eq!(link.serve(ms(0), 9), Served { start: ms(9), finish: Time::MAX });
        assert_eq!(link.serve(ms(0), 9), never);
    }

    #[test]
    fn a_schedule_of_one_rate_is_a_constant_rate() {
        let rate = Rate::from_bps(7_654_321);
        let mut steps = Schedule::new(Steps::new(&[(Time::ZERO, rate)], None).unwrap());
        let mut split =
            Schedule::new(Steps::new(&[(Time::ZERO, rate)], Some(Span::from_nanos(999_983))).unwrap());
        let mut constant = super::super::Constant::new(rate);
        for packet in 0..100_000_i64 {
            let now = Time::from_nanos(packet * 1_571_003);
            let size = 1000 + (packet * 7919 % 501) as u32;
            let served = constant.serve(now, size);
            assert_eq!(steps.serve(now, size), served, "packet {packet}");
            assert_eq!(split.serve(now, size), served, "packet {packet}");
        }
    }

    #[test]
    fn unusable_schedules_are_refused() {
        let rate = Rate::from_mbps(1);
        assert!(Steps::new(&[], None).is_err());
        assert!(Steps::new(&[(ms(1), rate)], None).is_err());
        assert!(Steps::new(&[(ms(0), rate), (ms(2), rate), (ms(2), rate)], None).is_err());
        assert!(Steps::new(&[(ms(0), rate), (ms(2), rate)], Some(Span::from_millis(2))).is_err());
    }
}
