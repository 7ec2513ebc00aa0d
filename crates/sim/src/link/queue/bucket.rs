//! Token buckets, which limit the bytes that pass in a time.
//!
//! A bucket holds `burst` bytes and is full at first; tokens come in at `rate`, and those that do not fit are lost (RFC
//! 2698 section 3). A packet passes if there are tokens for all of its bytes, and takes them. So in any time t at most
//! rate t + burst passes. A second bucket limits the rate of a burst: it is filled at the peak rate and holds one
//! packet of the largest size, so that at most `peak_rate` t + `mtu` passes. A packet passes if both buckets have
//! tokens for it, and takes them from both; a packet that does not pass takes none (`tcf_police_act` in Linux,
//! net/sched/act_police.c).
//!
//! Tokens are counted in nanoseconds times bit/s: whole numbers, so that there is no rounding error, however long a
//! run.

use super::{Discipline, QueueDiscipline, Room};
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::{Rate, Size, Span, Time};

/// The parameters of a token bucket, and the queue behind it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketSettings {
    /// Rate at which tokens come in.
    pub rate: Rate,
    /// Depth of the bucket, in bytes.
    pub burst: Size,
    /// Largest rate of a burst; `None`: no limit.
    #[serde(default)]
    pub peak_rate: Option<Rate>,
    /// Size of the largest packet; used with a peak rate.
    pub mtu: Size,
    /// Discipline of the queue behind the bucket.
    pub discipline: Box<Discipline>,
}

impl BucketSettings {
    /// The queue behind the bucket, empty and with `room`, for the link called `name` in the run with `seed`.
    pub(super) fn queue(
        self,
        room: Room,
        seed: u64,
        name: &str,
    ) -> Result<Box<dyn QueueDiscipline>, Refusal> {
        self.discipline.start(room, seed, name).map_err(|refusal| refusal.at("discipline"))
    }

    fn check(&self) -> Result<(), Refusal> {
        let expected = "more than zero";
        ensure(self.rate > Rate::ZERO, || Refusal::new("rate", self.rate, expected))?;
        ensure(self.burst > Size::ZERO, || Refusal::new("burst", self.burst, expected))?;
        ensure(self.mtu > Size::ZERO, || Refusal::new("mtu", self.mtu, expected))?;
        if let Some(peak) = self.peak_rate {
            let expected = || format!("at least the rate ({})", self.rate);
            ensure(peak >= self.rate, || Refusal::new("peak_rate", peak, expected()))?;
        }
        let discipline = &*self.discipline;
        ensure(!matches!(discipline, Discipline::Policer(_) | Discipline::Shaper(_)), || {
            Refusal::new("discipline", discipline.name(), "a discipline other than a token bucket")
        })
    }
}

/// A token bucket.
#[derive(Clone, Debug)]
struct Bucket {
    rate: u64,
    /// Depth and present tokens, in nanoseconds times bit/s.
    depth: u128,
    tokens: u128,
    /// Time up to which tokens have come in.
    filled: Time,
}

/// Tokens for a packet of `size`.
const fn price(size: u32) -> u128 {
    size as u128 * 8_000_000_000
}

impl Bucket {
    fn new(rate: Rate, holds: Size) -> Self {
        let depth = u128::from(holds.as_bytes()) * 8_000_000_000;
        Self { rate: rate.as_bps(), depth, tokens: depth, filled: Time::ZERO }
    }

    fn fill(&mut self, now: Time) {
        self.pour(now);
        self.tokens = self.tokens.min(self.depth);
    }

    /// Adds the tokens up to `now`, without limit.
    fn pour(&mut self, now: Time) {
        let nanos = (now - self.filled).as_nanos();
        assert!(nanos >= 0, "tokens of {now} after those of {}", self.filled);
        self.tokens += u128::from(nanos.unsigned_abs()) * u128::from(self.rate);
        self.filled = now;
    }

    /// Time until there are tokens for a packet of `size`, which must fit into the bucket.
    fn wait(&self, size: u32) -> Span {
        let missing = price(size).saturating_sub(self.tokens);
        let nanos = missing.div_ceil(u128::from(self.rate));
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

/// The bucket of the rate, and that of the peak rate if there is one.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    mean: Bucket,
    peak: Option<Bucket>,
    /// Size of the largest packet that did not fit into a bucket; 0: there was none.
    oversized: u32,
}

impl Tokens {
    /// Full buckets with these settings.
    pub(super) fn new(settings: &BucketSettings) -> Result<Self, Refusal> {
        settings.check()?;
        let peak = settings.peak_rate.map(|rate| Bucket::new(rate, settings.mtu));
        Ok(Self { mean: Bucket::new(settings.rate, settings.burst), peak, oversized: 0 })
    }

    /// Whether a packet of `size` can ever pass; remembers its size if not.
    pub(super) fn can_pass(&mut self, size: u32) -> bool {
        let fits = self.buckets().all(|bucket| price(size) <= bucket.depth);
        if !fits {
            self.oversized = self.oversized.max(size);
        }
        fits
    }

    /// Time until a packet of `size` can pass; zero: now.
    pub(super) fn wait(&mut self, now: Time, size: u32) -> Span {
        self.buckets_mut()
            .map(|bucket| {
                bucket.fill(now);
                bucket.wait(size)
            })
            .max()
            .unwrap_or(Span::ZERO)
    }

    /// Takes the tokens of a packet of `size`, which must be there.
    pub(super) fn take(&mut self, size: u32) {
        for bucket in self.buckets_mut() {
            assert!(bucket.tokens >= price(size), "a packet of {size} passes without tokens");
            bucket.tokens -= price(size);
        }
    }

    /// Takes the tokens of a packet of `size` that has waited for them until `now`, the first nanosecond at which they
    /// are there. It takes them at the instant within that nanosecond at which they came, and the tokens of the rest
    /// of the nanosecond are not lost. Otherwise a bucket that holds one packet would be too slow by half a nanosecond
    /// a packet.
    pub(super) fn take_awaited(&mut self, now: Time, size: u32) {
        for bucket in self.buckets_mut() {
            bucket.pour(now);
            if bucket.tokens >= price(size) + u128::from(bucket.rate) {
                // the packet did not wait for this bucket
                bucket.tokens = bucket.tokens.min(bucket.depth);
            }
        }
        self.take(size);
    }

    /// Warns about packets that can never pass.
    pub(super) fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        let size = self.oversized;
        let Some(bucket) = self.buckets().find(|bucket| price(size) > bucket.depth) else { return };
        let bytes = bucket.depth / 8_000_000_000;
        let key = if std::ptr::eq(bucket, &self.mean) { "discipline.burst" } else { "discipline.mtu" };
        tell(
            key,
            format!(
                "{bytes} bytes are too few for a packet of {size} bytes: each packet of that size is dropped"
            ),
        );
    }

    fn buckets(&self) -> impl Iterator<Item = &Bucket> {
        std::iter::once(&self.mean).chain(&self.peak)
    }

    fn buckets_mut(&mut self) -> impl Iterator<Item = &mut Bucket> {
        std::iter::once(&mut self.mean).chain(&mut self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::super::desk::Desk;
    use super::super::drop_tail::Tail;
    use super::super::policer::Policer;
    use super::super::shaper::Shaper;
    use super::super::{Discipline, DropTail, QueueDiscipline};
    use super::*;
    use tidegate_core::{Ecn, Stream};

    /// Tokens of a byte, in nanoseconds times bit/s.
    const BYTE: i128 = 8_000_000_000;

    fn settings(rate: u64, burst: u64, peak: Option<(u64, u64)>) -> BucketSettings {
        BucketSettings {
            rate: Rate::from_bps(rate),
            burst: Size::from_bytes(burst),
            peak_rate: peak.map(|(rate, _)| Rate::from_bps(rate)),
            mtu: Size::from_bytes(peak.map_or(1500, |(_, mtu)| mtu)),
            discipline: Box::new(Discipline::DropTail),
        }
    }

    fn tail() -> Box<dyn QueueDiscipline> {
        Box::new(Tail::new(DropTail::UNLIMITED.resolve(Rate::MAX)))
    }

    fn policer(settings: &BucketSettings) -> Desk<Policer> {
        Desk::new(Policer::new(Tokens::new(settings).unwrap(), tail()))
    }

    fn shaper(settings: &BucketSettings) -> Desk<Shaper> {
        Desk::new(Shaper::new(Tokens::new(settings).unwrap(), tail()))
    }

    /// Whether `next` (time in ns, bytes) exceeds a bucket together with any number of the packets that passed last.
    fn exceeds(passed: &[(i64, u32)], next: (i64, u32), rate: u64, depth: u64) -> bool {
        let mut bytes = i128::from(next.1);
        let allowed = |since: i64| i128::from(rate) * i128::from(next.0 - since) + i128::from(depth) * BYTE;
        if bytes > i128::from(depth) {
            return true;
        }
        passed.iter().rev().any(|&(time, size)| {
            bytes += i128::from(size);
            bytes * BYTE > allowed(time)
        })
    }

    #[test]
    fn a_policer_drops_packets_beyond_rate_times_time_plus_burst_and_no_others() {
        let mut luck = Stream::new(1, "test", "policer");
        for peak in [None, Some((1_777_777, 1500))] {
            let (rate, burst) = (777_777, 9_000);
            let mut desk = policer(&settings(rate, burst, peak));
            let (mut passed, mut dropped, mut now) = (Vec::new(), [0, 0], 0);
            for _ in 0..4000 {
                // bursts and pauses around the rate, and packets at the same instant
                now += if luck.chance(0.005) { 200_000_000 } else { luck.below(11_000_000) as i64 };
                let size = 40 + luck.below(1461) as u32;
                desk.put(Time::from_nanos(now), Span::ZERO, 0, size, Ecn::NotEct);
                let died = !desk.take_events().is_empty();
                let mean_exceeded = exceeds(&passed, (now, size), rate, burst);
                let peak_exceeded = peak.is_some_and(|(rate, mtu)| exceeds(&passed, (now, size), rate, mtu));
                assert_eq!(died, mean_exceeded || peak_exceeded, "{size} bytes at {now} ns");
                if died {
                    dropped[usize::from(peak_exceeded && !mean_exceeded)] += 1;
                } else {
                    passed.push((now, size));
                    assert!(desk.take(Time::from_nanos(now)).is_some(), "nothing waits");
                }
            }
            assert!(passed.len() > 1000 && dropped[0] > 500, "{dropped:?}");
            assert!(peak.is_none() || dropped[1] > 150, "{dropped:?}");
        }
    }

    /// Calls `visit` with the time at which each of `count` packets of `size` goes, if all wait from the beginning.
    fn greedy(settings: &BucketSettings, size: u32, count: i128, mut visit: impl FnMut(i128, Time)) {
        let mut desk = shaper(settings);
        let mut now = Time::ZERO;
        for number in 1..=count {
            desk.put(now, Span::ZERO, 0, size, Ecn::NotEct);
            while desk.take(now).is_none() {
                now = desk.queue.next_wakeup().unwrap();
                desk.with(now, |queue, moment| queue.wake(moment));
                assert_eq!(desk.queue.next_wakeup(), None, "it does not wake again");
            }
            visit(number, now);
        }
    }

    #[test]
    fn a_shaper_lets_a_packet_go_in_the_nanosecond_in_which_its_tokens_are_there() {
        // time for the bytes beyond those that the bucket held, at the rate, rounded up
        let due = |bytes: i128, held: i128, rate: i128| {
            let missing = ((bytes - held) * BYTE).max(0);
            (missing + rate - 1) / rate
        };
        greedy(&settings(777_777, 9_000, None), 1400, 5000, |number, time| {
            assert_eq!(i128::from(time.as_nanos()), due(number * 1400, 9000, 777_777));
        });
        greedy(&settings(777_777, 9_000, Some((3_000_001, 1400))), 1400, 5000, |number, time| {
            let mean = due(number * 1400, 9000, 777_777);
            assert_eq!(i128::from(time.as_nanos()), mean.max(due(number * 1400, 1400, 3_000_001)));
        });
    }

    #[test]
    fn nothing_is_rounded_over_a_day() {
        // a rate that no number of nanoseconds divides; 1 000 bytes take 8/0.333333 ms
        let mut last = Time::ZERO;
        greedy(&settings(333_333, 1_000, None), 1000, 3_600_001, |_, time| last = time);
        let exact = 3_600_000 * 1000 * BYTE;
        assert_eq!(i128::from(last.as_nanos()), (exact + 333_332) / 333_333);
        assert!(last > Time::from_secs(86_400));
    }

    #[test]
    fn a_packet_larger_than_a_bucket_is_dropped_with_a_warning() {
        fn check<Q: QueueDiscipline>(mut desk: Desk<Q>, key: &'static str) {
            desk.put(Time::ZERO, Span::ZERO, 0, 1201, Ecn::NotEct);
            assert_eq!(desk.take_events(), [(Time::ZERO, 0, true)]);
            desk.put(Time::ZERO, Span::ZERO, 0, 1200, Ecn::NotEct);
            assert_eq!(desk.take(Time::ZERO), Some((0, 1, 1200)));
            let mut warnings = Vec::new();
            desk.queue.warnings(&mut |key, warning| warnings.push((key, warning)));
            let warning =
                "1200 bytes are too few for a packet of 1201 bytes: each packet of that size is dropped";
            assert_eq!(warnings, [(key, warning.to_owned())]);
        }
        for (burst, peak, key) in
            [(1200, None, "discipline.burst"), (9000, Some((2_000_000, 1200)), "discipline.mtu")]
        {
            let settings = settings(1_000_000, burst, peak);
            check(policer(&settings), key);
            check(shaper(&settings), key);
        }
    }

    #[test]
    fn invalid_settings_are_refused() {
        let wrong = |change: fn(&mut BucketSettings)| {
            let mut settings = settings(1_000_000, 3000, Some((2_000_000, 1500)));
            change(&mut settings);
            Tokens::new(&settings).unwrap_err().key
        };
        assert_eq!(wrong(|settings| settings.rate = Rate::ZERO), "rate");
        assert_eq!(wrong(|settings| settings.burst = Size::ZERO), "burst");
        assert_eq!(wrong(|settings| settings.mtu = Size::ZERO), "mtu");
        assert_eq!(wrong(|settings| settings.peak_rate = Some(Rate::from_bps(999_999))), "peak_rate");
        let inner = |settings: &mut BucketSettings| {
            *settings.discipline = Discipline::Shaper(settings.clone());
        };
        assert_eq!(wrong(inner), "discipline");
    }
}
