//! How late a session was: each packet's writing after it was due.

use tidegate_core::Span;
use tidegate_sim::record::histogram::Histogram;

/// Spans that should be nothing, as quantiles.
#[derive(Default)]
pub struct Lateness {
    histogram: Histogram,
    worst: Span,
}

/// What there is to say of them, in milliseconds; `None` where there was none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 99 of 100 are less.
    pub p99_ms: Option<f64>,
    /// The worst.
    pub worst_ms: Option<f64>,
}

impl Lateness {
    /// Takes one in.
    pub fn add(&mut self, span: Span) {
        self.histogram.add(span.max(Span::ZERO));
        self.worst = self.worst.max(span);
    }

    /// What there is to say.
    #[must_use]
    pub fn summary(&self) -> Late {
        let quantile = |q| self.histogram.quantile_ms(q);
        let count = self.histogram.count();
        let worst_ms = (count > 0).then(|| self.worst.as_millis_f64());
        Late { count, p50_ms: quantile(0.5), p99_ms: quantile(0.99), worst_ms }
    }
}
