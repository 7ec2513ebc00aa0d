//! Interarrival jitter (RFC 3550 section 6.4.1).

/// The jitter J of one stream, and its mean and maximum over packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    present: f64,
    sum: f64,
    max: f64,
    count: u64,
}

impl Jitter {
    /// Updates J with |D| of a packet: the difference between its relative transit time and that of the packet that
    /// arrived before it.
    #[inline]
    pub fn add(&mut self, difference: f64) {
        self.present += (difference - self.present) / 16.0;
        self.sum += self.present;
        self.max = self.max.max(self.present);
        self.count += 1;
    }

    /// Mean and largest J over all streams, in the unit of the differences; `None` where no stream has two
    /// packets.
    #[must_use]
    pub fn of(streams: &[Self]) -> (Option<f64>, Option<f64>) {
        let count: u64 = streams.iter().map(|stream| stream.count).sum();
        let sum: f64 = streams.iter().map(|stream| stream.sum).sum();
        let max = streams.iter().map(|stream| stream.max).fold(0.0, f64::max);
        if count == 0 { (None, None) } else { (Some(sum / count as f64), Some(max)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j_moves_by_a_sixteenth_of_the_difference() {
        assert_eq!(Jitter::of(&[Jitter::default()]), (None, None));
        let mut jitter = Jitter::default();
        for difference in [16.0, 0.0, 32.0] {
            jitter.add(difference);
        }
        // 1, 15/16, 15/16 + (32 - 15/16) / 16
        let last = 0.9375 + 31.0625 / 16.0;
        assert_eq!(Jitter::of(&[jitter]), (Some((1.0 + 0.9375 + last) / 3.0), Some(last)));
        assert_eq!(Jitter::of(&[jitter, Jitter::default()]).1, Some(last));
    }

    #[test]
    fn a_constant_difference_is_approached_as_a_geometric_series() {
        let mut jitter = Jitter::default();
        (0..16).for_each(|_| jitter.add(10.0));
        let exact = 10.0 * (1.0 - tidegate_core::math::pow(0.9375, 16.0));
        assert!((Jitter::of(&[jitter]).1.unwrap() - exact).abs() < 1e-12);
    }
}
