//! Link model of Sprout-EWMA: a moving average, which is expected to stay the same (NSDI 2013 section 5.3).

use super::forecast::Forecast;

/// Moving average of the packets in a tick (`_ewma_rate_estimate`).
#[derive(Clone, Copy, Debug)]
pub struct Average {
    weight: f64,
    packets: f64,
}

impl Average {
    /// Creates an average of zero; `weight` is that of a new tick.
    #[must_use]
    pub fn new(weight: f64) -> Self {
        Self { weight, packets: 0.0 }
    }

    /// Average number of packets in a tick.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.packets
    }

    /// Takes the number of packets in a tick; fractions count.
    pub fn observe(&mut self, packets: f64) {
        self.packets = (1.0 - self.weight) * self.packets + self.weight * packets;
    }

    /// Takes a lower bound of the number of packets that the link could have delivered.
    pub fn observe_at_least(&mut self, packets: f64) {
        if packets > self.packets {
            self.observe(packets);
        }
    }

    /// Packets expected by the end of each tick at the average rate, cumulative and rounded down: no cautious percentile.
    #[must_use]
    pub fn forecast(&self) -> Forecast {
        // `as` truncates
        std::array::from_fn(|tick| (self.packets * (tick + 1) as f64) as u32)
            .map(|count| count.min(MAX_COUNT))
    }
}

/// Largest count that a field of the forecast's message holds.
const MAX_COUNT: u32 = u16::MAX as u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_expects_what_it_has_seen() {
        let mut average = Average::new(0.125);
        assert_eq!(average.forecast(), [0; 8]);
        for _ in 0..200 {
            average.observe(8.5);
        }
        assert_eq!(average.forecast(), [8, 16, 25, 33, 42, 50, 59, 67], "fractions of packets are dropped");
        average.observe(0.0);
        assert!((average.packets() - 8.5 * 0.875).abs() < 1e-6);
    }

    #[test]
    fn a_lower_bound_only_raises_it() {
        let mut average = Average::new(0.125);
        average.observe_at_least(8.0);
        assert_eq!(average.packets(), 1.0);
        average.observe_at_least(0.5);
        assert_eq!(average.packets(), 1.0);
    }

    #[test]
    fn a_flood_stays_within_the_field() {
        let mut average = Average::new(1.0);
        average.observe(1e12);
        assert_eq!(average.forecast(), [65_535; 8]);
    }
}
