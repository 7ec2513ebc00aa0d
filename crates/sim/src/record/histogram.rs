//! Streaming distribution of spans: moments exactly, quantiles to 0.2 %.

use tidegate_core::{Span, math};

/// Buckets in each octave: a bucket is at most 1/256 of its value wide, its middle off by half of that.
const SUB_BITS: u32 = 8;
const SUB: u64 = 1 << SUB_BITS;

/// Buckets are kept in pages of so many: a flow has several histograms, and what it sees lies close together.
const PAGE: usize = 64;

/// Count, moments and a log-linear histogram of non-negative spans (negative ones count as zero). It takes a quarter of
/// a kilobyte for each quarter of an octave that something falls into.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    count: u64,
    sum: f64,
    sum_squares: f64,
    min: i64,
    max: i64,
    /// For each stretch of buckets where its page is, counted from 1; 0 for none.
    places: Vec<u16>,
    pages: Vec<[u32; PAGE]>,
    /// The stretch that the last span fell into, and its page: mostly that of the next one.
    last: (u16, u16),
}

fn bucket_of(nanos: u64) -> usize {
    if nanos < SUB {
        return nanos as usize;
    }
    let octave = nanos.ilog2() - SUB_BITS;
    ((u64::from(octave) << SUB_BITS) + (nanos >> octave)) as usize
}

/// The middle of a bucket, in nanoseconds.
fn middle_of(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB {
        return bucket as f64;
    }
    let octave = (bucket >> SUB_BITS) - 1;
    let low = (bucket - (octave << SUB_BITS)) << octave;
    low as f64 + ((1u64 << octave) - 1) as f64 / 2.0
}

impl Histogram {
    /// Adds one span.
    #[inline]
    pub fn add(&mut self, span: Span) {
        let nanos = span.as_nanos().max(0);
        if self.count == 0 {
            self.min = nanos;
            self.max = nanos;
        }
        self.count += 1;
        self.sum += nanos as f64;
        self.sum_squares += nanos as f64 * nanos as f64;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        let bucket = bucket_of(nanos as u64);
        let stretch = bucket / PAGE;
        if usize::from(self.last.0) != stretch || self.pages.is_empty() {
            let page = match self.places.get(stretch) {
                Some(&place) if place > 0 => place - 1,
                _ => self.new_page(stretch),
            };
            self.last = (stretch as u16, page);
        }
        self.pages[usize::from(self.last.1)][bucket % PAGE] += 1;
    }

    /// A page for the buckets of `stretch`, of which there are fewer than 1000.
    #[cold]
    fn new_page(&mut self, stretch: usize) -> u16 {
        if stretch >= self.places.len() {
            self.places.resize(stretch + 1, 0);
        }
        // one by one: most histograms stay with a few
        self.pages.reserve_exact(1);
        self.pages.push([0; PAGE]);
        self.places[stretch] = self.pages.len() as u16;
        self.places[stretch] - 1
    }

    /// The buckets that are not empty, in order, with their counts.
    fn filled(&self) -> impl Iterator<Item = (usize, u32)> {
        let pages = self.places.iter().enumerate().filter(|&(_, &place)| place > 0);
        let buckets = pages.flat_map(|(stretch, &place)| {
            let page = self.pages[usize::from(place) - 1].iter().enumerate();
            page.map(move |(bucket, &count)| (stretch * PAGE + bucket, count))
        });
        buckets.filter(|&(_, count)| count > 0)
    }

    /// How many spans were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64 / 1e6)
    }

    /// Standard deviation (of the population) in milliseconds.
    #[must_use]
    pub fn std_ms(&self) -> Option<f64> {
        let mean = self.sum / self.count as f64;
        (self.count > 0)
            .then(|| math::sqrt((self.sum_squares / self.count as f64 - mean * mean).max(0.0)) / 1e6)
    }

    /// Smallest in milliseconds.
    #[must_use]
    pub fn min_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.min as f64 / 1e6)
    }

    /// Largest in milliseconds.
    #[must_use]
    pub fn max_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max as f64 / 1e6)
    }

    /// The least value that at least the share `q` of all values does not exceed, in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.quantiles_ms(&[q]).pop()
    }

    /// The same for several shares, which ascend; empty where there is no value.
    #[must_use]
    pub fn quantiles_ms(&self, shares: &[f64]) -> Vec<f64> {
        let rank = |q: f64| (math::ceil(q * self.count as f64) as u64).max(1);
        let mut found = Vec::with_capacity(shares.len());
        let mut seen = 0;
        for (bucket, count) in self.filled() {
            seen += u64::from(count);
            while shares.get(found.len()).is_some_and(|&q| seen >= rank(q)) {
                // the extremes are known exactly
                found.push(middle_of(bucket).clamp(self.min as f64, self.max as f64) / 1e6);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        let mut last = 0;
        for nanos in
            (0..100_000u64).chain((17..62).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + (1 << (e - 3))]))
        {
            let bucket = bucket_of(nanos);
            assert!(bucket >= last, "{nanos}");
            if nanos < 100_000 {
                assert!(bucket - last <= 1, "{nanos}");
                last = bucket;
            }
            let off = (middle_of(bucket) - nanos as f64).abs();
            assert!(off <= nanos as f64 * 0.00196, "{nanos} is {off} from the middle of its bucket");
        }
    }

    #[test]
    fn moments_are_exact_and_quantiles_close() {
        let mut h = Histogram::default();
        assert_eq!((h.mean_ms(), h.quantile_ms(0.5)), (None, None));
        for ms in 1..=1000 {
            h.add(Span::from_millis(ms));
        }
        assert_eq!(h.count(), 1000);
        assert!((h.mean_ms().unwrap() - 500.5).abs() < 1e-9);
        assert!((h.std_ms().unwrap() - 288.675).abs() < 1e-3);
        assert_eq!((h.min_ms(), h.max_ms()), (Some(1.0), Some(1000.0)));
        for (q, ms) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = h.quantile_ms(q).unwrap();
            assert!((got / ms - 1.0).abs() < 0.002, "{q}: {got}");
        }
    }

    /// Against a sorted list, over all octaves and in any order; and the room that it takes.
    #[test]
    fn it_counts_what_a_sorted_list_has_and_takes_room_for_what_there_is() {
        let mut luck = tidegate_core::Stream::new(1, "histogram", "test");
        let (mut h, mut all) = (Histogram::default(), Vec::new());
        for _ in 0..20_000 {
            let nanos = (luck.below(1 << 30) >> luck.below(31)) as i64;
            h.add(Span::from_nanos(nanos));
            all.push(nanos);
        }
        all.sort_unstable();
        for (place, &nanos) in all.iter().enumerate().step_by(37) {
            let got = h.quantile_ms((place as f64 + 0.5) / all.len() as f64).unwrap() * 1e6;
            assert!((got - nanos as f64).abs() <= nanos as f64 * 0.00196 + 1e-6, "{got} {nanos}");
        }
        // a flow on an empty path: nothing waits, and the way takes 20 to 24 ms
        let mut h = Histogram::default();
        for micros in 0..4000 {
            h.add(Span::ZERO);
            h.add(Span::from_micros(20_000 + micros));
        }
        let bytes = |h: &Histogram| size_of_val(&h.pages[..]) + size_of_val(&h.places[..]);
        assert_eq!(h.pages.len(), 1 + 2, "{} bytes", bytes(&h));
        assert_eq!(h.pages.capacity(), h.pages.len());
        assert!(bytes(&h) < 1024, "{} bytes", bytes(&h));
        assert_eq!(bytes(&Histogram::default()), 0);
    }
}
