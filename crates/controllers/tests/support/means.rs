//! What closed loops come to: means over some seconds, and tables of these for review.

use super::halves::Halves;
use super::{Bottleneck, golden};
use std::fmt::Write as _;
use tidegate_core::{Rate, Span};

/// Asserts that a value is in a range, ends included.
pub fn within(what: &str, value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{what}: {value:.4} is not in {low} to {high}");
}

/// Means over some time.
pub struct Means {
    /// Of the bottleneck at the end, and of what was to be sent and what arrived: bit/s.
    pub capacity: f64,
    pub target: f64,
    pub goodput: f64,
    pub queue_ms: f64,
}

impl Means {
    /// The part of the capacity that was used.
    pub fn used(&self) -> f64 {
        self.goodput / self.capacity
    }
}

impl Bottleneck {
    /// Runs for as long; target and queue are looked at after each report.
    pub fn means(&mut self, span: Span) -> Means {
        let steps = span.as_nanos() / super::REPORT.as_nanos();
        self.delivered = 0;
        let (mut target, mut queue) = (0.0, Span::ZERO);
        for _ in 0..steps {
            target += self.step(false).target.as_bps_f64();
            queue += self.queueing;
        }
        Means {
            capacity: self.capacity.as_bps_f64(),
            target: target / steps as f64,
            goodput: self.delivered as f64 * 8.0 / span.as_secs_f64(),
            queue_ms: queue.as_millis_f64() / steps as f64,
        }
    }
}

impl Halves {
    /// Runs for as long; target and queue are looked at every 10 ms.
    pub fn means(&mut self, span: Span) -> Means {
        let look = Span::from_millis(10);
        let steps = span.as_nanos() / look.as_nanos();
        self.delivered = 0;
        let (mut target, mut queue) = (0.0, Span::ZERO);
        for _ in 0..steps {
            self.run(look, &mut |_, _, _| {});
            target += self.sender.decision().target.as_bps_f64();
            queue += self.backlog();
        }
        Means {
            capacity: self.capacity.as_bps_f64(),
            target: target / steps as f64,
            goodput: self.delivered as f64 * 8.0 / span.as_secs_f64(),
            queue_ms: queue.as_millis_f64() / steps as f64,
        }
    }
}

/// Mean of what `of` says over rows of five seconds, from one second to another.
pub fn mean(rows: &[Means], from: usize, to: usize, of: impl Fn(&Means) -> f64) -> f64 {
    let rows = &rows[from / 5..to / 5];
    rows.iter().map(of).sum::<f64>() / rows.len() as f64
}

/// Each five seconds up to the end behind a bottleneck that changes; `phases`: from which second on, capacity in kbit/s, random loss.
/// They are compared with the golden table of the preset.
pub fn closed_loop(name: &str, preset: &str, phases: &[(u64, u64, f64)], end: u64) -> Vec<Means> {
    let mut link = Bottleneck::new(name, preset, Rate::from_kbps(1000));
    let mut rows = vec![];
    let mut text =
        format!("{name} {preset}\n from  capacity    target   goodput  queue   (kb/s, ms; means of 5 s)\n");
    for from in (0..end).step_by(5) {
        if let Some(&(_, capacity, loss)) = phases.iter().find(|phase| phase.0 == from) {
            (link.capacity, link.loss) = (Rate::from_kbps(capacity), loss);
        }
        let row = link.means(Span::from_secs(5));
        // what arrived is told within a second, whatever the reports do (draft 3 (b))
        assert!(link.longest_unsaid <= Span::from_secs(1), "{:?} unsaid", link.longest_unsaid);
        let [capacity, target, goodput] = [row.capacity, row.target, row.goodput].map(|rate| rate / 1e3);
        writeln!(text, "{from:5} {capacity:9.0} {target:9.0} {goodput:9.0} {:6.0}", row.queue_ms)
            .expect("a string");
        rows.push(row);
    }
    text += &link.decisions.line();
    golden(&format!("crates/controllers/tests/golden/{name}-{preset}.txt"), &text);
    rows
}
