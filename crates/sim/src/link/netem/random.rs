//! Random numbers of 32 bits, each correlated with the one before.

use super::Part;
use tidegate_core::Stream;

/// A number of 32 bits (`prandom_u32_state`).
pub(super) fn number(luck: &mut Stream) -> u32 {
    (luck.next_u64() >> 32) as u32
}

/// Correlated numbers (`get_crandom`): each is the mean of a new one and the one before, weighted by the correlation. So
/// they are no longer uniform, and small probabilities become much smaller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correlated {
    last: u32,
    weight: Part,
}

impl Correlated {
    pub(super) fn new(weight: Part, luck: &mut Stream) -> Self {
        Self { last: number(luck), weight }
    }

    /// The next number.
    pub(super) fn next(&mut self, luck: &mut Stream) -> u32 {
        let new = number(luck);
        if self.weight == 0 {
            return new;
        }
        let weight = u64::from(self.weight) + 1;
        // the sum may exceed 64 bits, as in Linux: `unsigned long`
        let sum = u64::from(new)
            .wrapping_mul((1 << 32) - weight)
            .wrapping_add(u64::from(self.last).wrapping_mul(weight));
        self.last = (sum >> 32) as u32;
        self.last
    }

    /// Whether an event of this probability happens; without a probability no number is drawn.
    pub(super) fn happens(&mut self, probability: Part, luck: &mut Stream) -> bool {
        probability > 0 && probability >= self.next(luck)
    }
}

/// The share of events in the long run.
pub(super) fn share(probability: Part, correlation: Part) -> f64 {
    const COUNT: u32 = 500_000;
    let mut luck = Stream::new(0, "netem", "share");
    let mut numbers = Correlated::new(correlation, &mut luck);
    let events = (0..COUNT).filter(|_| numbers.happens(probability, &mut luck)).count();
    events as f64 / f64::from(COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERCENT: f64 = 42_949_672.95;

    fn part(percent: f64) -> Part {
        (percent * PERCENT).round_ties_even() as u32
    }

    fn events(probability: f64, correlation: f64) -> Vec<bool> {
        let mut luck = Stream::new(5, "netem", "test");
        let mut numbers = Correlated::new(part(correlation), &mut luck);
        (0..1_000_000).map(|_| numbers.happens(part(probability), &mut luck)).collect()
    }

    fn share(events: &[bool]) -> f64 {
        events.iter().filter(|&&event| event).count() as f64 / events.len() as f64
    }

    /// With weight w a number is (1 - w) u + w last. It is at most p only if both are small: the last one is at least
    /// (1 - w) times its own new number, and so on back. In Linux 1 % with 25 % never happens, 5 % with 25 % 0.20 % of the
    /// time, 10 % with 25 % 1.7 %.
    #[test]
    fn correlation_makes_rare_events_rarer() {
        assert!(share(&events(1.0, 25.0)) < 1e-5);
        for (probability, correlation, expected, tolerance) in [
            (5.0, 25.0, 0.0020, 0.0003),
            (10.0, 25.0, 0.017, 0.001),
            (5.0, 0.0, 0.05, 0.001),
            (50.0, 25.0, 0.5, 0.002),
        ] {
            let actual = share(&events(probability, correlation));
            assert!((actual - expected).abs() < tolerance, "{probability} % with {correlation} %: {actual}");
        }
        assert_eq!(share(&events(100.0, 0.0)), 1.0);
        assert_eq!(share(&events(0.0, 50.0)), 0.0);
    }

    /// The mean of a new number and the one before has lag-1 correlation w, and variance (1 - w)^2 / (1 - w^2) of that of
    /// a uniform one.
    #[test]
    fn numbers_have_the_correlation() {
        for percent in [10.0, 25.0, 50.0, 90.0] {
            let mut luck = Stream::new(6, "netem", "test");
            let mut numbers = Correlated::new(part(percent), &mut luck);
            let values: Vec<f64> = (0..400_000)
                .map(|_| f64::from(numbers.next(&mut luck)) / 4_294_967_296.0)
                .skip(1000)
                .collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / values.len() as f64;
            let lag = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
            let correlation = lag / values.len() as f64 / variance;
            let weight = percent / 100.0;
            assert!((mean - 0.5).abs() < 0.005, "{mean}");
            assert!((correlation - weight).abs() < 0.01, "{percent} %: {correlation}");
            let expected = (1.0 - weight) / (1.0 + weight) / 12.0;
            assert!((variance / expected - 1.0).abs() < 0.03, "{percent} %: {variance}");
        }
    }

    /// The arithmetic of `get_crandom`, by hand: 2^31 new after 2^30 with a weight of 2^31 (50 %) is 3 2^29.
    #[test]
    fn the_mean_is_in_integers() {
        let mut luck = Stream::new(7, "netem", "test");
        let mut next = luck.clone();
        let new = u64::from(number(&mut next));
        let mut numbers = Correlated { last: 1 << 30, weight: (1 << 31) - 1 };
        assert_eq!(u64::from(numbers.next(&mut luck)), (new + (1 << 30)) / 2);
        // the largest values do not overflow
        let mut numbers = Correlated { last: u32::MAX, weight: u32::MAX };
        assert_eq!(numbers.next(&mut luck), u32::MAX);
    }
}
