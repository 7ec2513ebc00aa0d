//! Streaming distribution of spans, with exact moments and quantiles accurate to 0.2 %.

use tidegate_core::{Span, math};

/// Binary logarithm of the number of buckets per octave. The relative width of a bucket is at most 1/256, so its midpoint
/// is within 1/512 of any value in it.
const SUB_BITS: u32 = 8;
const SUB: u64 = 1 << SUB_BITS;

/// Buckets in a page. Pages save memory: a flow has several histograms, and its values lie close together.
const PAGE: usize = 64;

/// Count, moments and a log-linear histogram of durations; negative ones count as zero. A page of 256 bytes covers a
/// quarter of an octave, and is allocated with its first sample.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    count: u64,
    sum: f64,
    sum_squares: f64,
    min: i64,
    max: i64,
    /// For each stretch of buckets the number of its page, counted from 1; 0 for none.
    page_of: Vec<u16>,
    pages: Vec<[u32; PAGE]>,
    /// The stretch of the last span, and its page; the next span mostly falls into the same one.
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
            let page = match self.page_of.get(stretch) {
                Some(&page_number) if page_number > 0 => page_number - 1,
                _ => self.new_page(stretch),
            };
            self.last = (stretch as u16, page);
        }
        self.pages[usize::from(self.last.1)][bucket % PAGE] += 1;
    }

    /// Adds a page for the buckets of `stretch`; there are fewer than 1000 stretches.
    #[cold]
    fn new_page(&mut self, stretch: usize) -> u16 {
        if stretch >= self.page_of.len() {
            self.page_of.resize(stretch + 1, 0);
        }
        // one by one: most histograms have only a few
        self.pages.reserve_exact(1);
        self.pages.push([0; PAGE]);
        self.page_of[stretch] = self.pages.len() as u16;
        self.page_of[stretch] - 1
    }

    /// The buckets that are not empty, in order, with their counts.
    fn filled(&self) -> impl Iterator<Item = (usize, u32)> {
        let pages = self.page_of.iter().enumerate().filter(|&(_, &page_number)| page_number > 0);
        let buckets = pages.flat_map(|(stretch, &page_number)| {
            let page = self.pages[usize::from(page_number) - 1].iter().enumerate();
            page.map(move |(bucket, &count)| (stretch * PAGE + bucket, count))
        });
        buckets.filter(|&(_, count)| count > 0)
    }

    /// Number of spans added.
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

    /// The smallest value that at least the share `q` of all values does not exceed, in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.quantiles_ms(&[q]).pop()
    }

    /// The quantiles of several ascending shares, in milliseconds; empty without values.
    #[must_use]
    pub fn quantiles_ms(&self, shares: &[f64]) -> Vec<f64> {
        let rank = |q: f64| (math::ceil(q * self.count as f64) as u64).max(1);
        let mut quantiles = Vec::with_capacity(shares.len());
        let mut cumulated = 0;
        for (bucket, count) in self.filled() {
            cumulated += u64::from(count);
            while shares.get(quantiles.len()).is_some_and(|&q| cumulated >= rank(q)) {
                // the extremes are known exactly
                quantiles.push(middle_of(bucket).clamp(self.min as f64, self.max as f64) / 1e6);
            }
        }
        quantiles
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
            let quantile = h.quantile_ms(q).unwrap();
            assert!((quantile / ms - 1.0).abs() < 0.002, "{q}: {quantile}");
        }
    }

    /// Compares it with a sorted list, over all octaves and in any order; and checks its memory.
    #[test]
    fn it_agrees_with_a_sorted_list_and_takes_memory_for_filled_pages_only() {
        let mut luck = tidegate_core::Stream::new(1, "histogram", "test");
        let (mut h, mut sorted) = (Histogram::default(), Vec::new());
        for _ in 0..20_000 {
            let nanos = (luck.below(1 << 30) >> luck.below(31)) as i64;
            h.add(Span::from_nanos(nanos));
            sorted.push(nanos);
        }
        sorted.sort_unstable();
        for (rank, &nanos) in sorted.iter().enumerate().step_by(37) {
            let quantile = h.quantile_ms((rank as f64 + 0.5) / sorted.len() as f64).unwrap() * 1e6;
            assert!((quantile - nanos as f64).abs() <= nanos as f64 * 0.00196 + 1e-6, "{quantile} {nanos}");
        }
        // a flow on an empty path: no packet waits, and the path takes 20 to 24 ms
        let mut h = Histogram::default();
        for micros in 0..4000 {
            h.add(Span::ZERO);
            h.add(Span::from_micros(20_000 + micros));
        }
        let bytes = |h: &Histogram| size_of_val(&h.pages[..]) + size_of_val(&h.page_of[..]);
        assert_eq!(h.pages.len(), 1 + 2, "{} bytes", bytes(&h));
        assert_eq!(h.pages.capacity(), h.pages.len());
        assert!(bytes(&h) < 1024, "{} bytes", bytes(&h));
        assert_eq!(bytes(&Histogram::default()), 0);
    }
}
