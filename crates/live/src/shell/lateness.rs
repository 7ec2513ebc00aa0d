//! Lateness of a session: the time from which a packet was due until it was written.

use tidegate_core::Span;
use tidegate_sim::record::histogram::Histogram;

/// Histogram of spans that ideally are 0.
#[derive(Default)]
pub struct Lateness {
    histogram: Histogram,
    worst: Span,
}

/// Quantiles of lateness in milliseconds; `None` if there are no samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatenessSummary {
    /// Number of samples.
    pub count: u64,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Maximum.
    pub worst_ms: Option<f64>,
}

impl Lateness {
    /// Adds a sample.
    pub fn add(&mut self, span: Span) {
        self.histogram.add(span.max(Span::ZERO));
        self.worst = self.worst.max(span);
    }

    /// The quantiles.
    #[must_use]
    pub fn summary(&self) -> LatenessSummary {
        let quantile = |q| self.histogram.quantile_ms(q);
        let count = self.histogram.count();
        let worst_ms = (count > 0).then(|| self.worst.as_millis_f64());
        LatenessSummary { count, p50_ms: quantile(0.5), p99_ms: quantile(0.99), worst_ms }
    }
}
