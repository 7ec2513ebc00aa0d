//! The rate of a trace over time: in bins, and its median where a mean says nothing.

use super::{Capacity, Trace};
use tidegate_core::{Rate, Size, Span, Time};

/// A mean of more than so many medians is that of an outlier (OpenNetLab's `4G_3mbps.json`: 200 ms at 8 Gbit/s lift the
/// mean to eleven medians).
const OUTLYING: u64 = 10;

/// Bins in which the rate of opportunities is measured.
const BIN: Span = Span::from_secs(1);

impl Trace {
    /// The mean rate in each `bin`, from the beginning to the end; the last bin may be shorter, but a rest of less than a
    /// hundredth belongs to the bin before it. An opportunity at the very end is in the last bin.
    #[must_use]
    pub fn binned(&self, bin: Span) -> Vec<(Time, Rate)> {
        let end = Time::ZERO + self.duration();
        let (mut begin, mut rates) = (Time::ZERO, Vec::new());
        while begin < end && bin > Span::ZERO {
            let until = if end - begin < bin + bin / 100 { end } else { begin + bin };
            let rate = match &self.capacity {
                Capacity::Rates(steps) => steps.mean_rate(begin, until),
                Capacity::Opportunities(list) => {
                    // instants are moved by 1 ns, so that the one at the very end counts in the last bin
                    let tick = Span::from_nanos(1);
                    let first = if begin == Time::ZERO { begin } else { begin + tick };
                    let count = list.count_before(until + tick) - list.count_before(first);
                    Size::from_bytes(count * u64::from(list.bytes())).per(until - begin)
                }
            };
            rates.push((begin, rate));
            begin = until;
        }
        rates
    }

    /// The median rate by time, if the mean is more than ten times as large: then the mean is that of an outlier. Where
    /// there is no rate for half of the time, the median is that of the other half.
    #[must_use]
    pub fn outlying(&self) -> Option<Rate> {
        let mut rates: Vec<_> = match &self.capacity {
            Capacity::Rates(steps) => steps.rates().collect(),
            Capacity::Opportunities(_) => self.binned(BIN),
        };
        rates.push((Time::ZERO + self.duration(), Rate::ZERO));
        let lengths = rates.windows(2).map(|pair| (pair[0].1, (pair[1].0 - pair[0].0).as_nanos()));
        let mut lengths: Vec<_> = lengths.collect();
        let below = |rate: Rate| self.mean_rate().as_bps() / OUTLYING > rate.as_bps();
        let low: i64 = lengths.iter().filter(|(rate, _)| below(*rate)).map(|(_, length)| length).sum();
        if low < self.duration().as_nanos() - low {
            return None; // without sorting, because every run asks
        }
        lengths.sort_unstable();
        let mut median = median_of(&lengths);
        if median == Some(Rate::ZERO) {
            lengths.retain(|(rate, _)| *rate > Rate::ZERO);
            median = median_of(&lengths);
        }
        median.filter(|&rate| below(rate))
    }
}

/// The median by length of rates in ascending order.
fn median_of(lengths: &[(Rate, i64)]) -> Option<Rate> {
    let total: i64 = lengths.iter().map(|(_, length)| length).sum();
    let mut before = 0;
    let median = lengths.iter().find(|(_, length)| {
        before += length;
        before >= total - before
    });
    median.map(|&(rate, _)| rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::trace::ReadOptions;

    fn parse(text: &str) -> Trace {
        Trace::read("f", text.as_bytes(), &ReadOptions::default()).unwrap().1
    }

    #[test]
    fn the_last_opportunity_is_in_the_last_bin() {
        let bins = |text: &str, millis| {
            let rates = parse(text).binned(Span::from_millis(millis));
            rates.iter().map(|(_, rate)| rate.as_bps()).collect::<Vec<_>>()
        };
        assert_eq!(bins("1\n", 1), [12_032_000]);
        assert_eq!(bins("1\n2\n3\n", 1), [12_032_000; 3]);
        assert_eq!(bins("2\n3\n", 2), [6_016_000, 12_032_000]);
        assert_eq!(bins("0 5\n1 3\n", 1500), [4_333_333, 3_000_000]);
        // a rest of a few ns is no bin of its own
        let steady = (1..=700).map(|at| format!("{at}\n")).collect::<String>();
        let rates = parse(&steady).binned(Span::from_nanos(9_999_999));
        assert!(rates.iter().all(|(_, rate)| rate.as_bps().abs_diff(12_032_000) < 1_300_000), "{rates:?}");
    }

    #[test]
    fn an_outlier_is_a_mean_of_ten_medians() {
        let outlying = |text: &str| parse(text).outlying().map(Rate::as_bps);
        // 4 s at 2 Mbit/s, 3 s at 3 and 1 s at 500: the mean is 65 Mbit/s
        assert_eq!(outlying("0 2\n4 3\n7 500\n8 2\n9 3\n"), Some(3_000_000));
        assert_eq!(outlying("0 2\n4 3\n7 100\n8 2\n9 3\n"), None);
        // outages are no low rates: 1 s in 20
        assert_eq!(outlying("0 20\n1 0\n2 0\n20 0\n"), None);
        assert_eq!(outlying("0 0\n1 0\n"), None);
        // some outages count as low rates: 2 s without, 2 s at 2 Mbit/s, 1 s at 200
        assert_eq!(outlying("0 0\n2 2\n4 200\n5 0\n5.5 0\n"), Some(2_000_000));
        // 20 s of 1 opportunity, then 1 of 1000: mean 49 opportunities a second
        let bursty: String =
            (1..=20).map(|second| second * 1000).chain([21_000; 1000]).map(|ms| format!("{ms}\n")).collect();
        assert_eq!(
            Trace::read_as(
                crate::link::trace::Format::Mahimahi,
                "f",
                bursty.as_bytes(),
                &ReadOptions::default()
            )
            .unwrap()
            .outlying()
            .map(Rate::as_bps),
            Some(12_032)
        );
    }
}
