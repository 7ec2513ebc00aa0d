//! SCReAM in a closed loop with a small bottleneck, and its window by itself.

mod support;

use std::fmt::Write as _;
use support::{Bottleneck, golden};
use tidegate_core::{Rate, Span};

/// From which second on, capacity in kbit/s, random loss.
const PHASES: [(u64, u64, f64); 4] = [(0, 1000, 0.0), (20, 500, 0.0), (40, 2000, 0.0), (60, 2000, 0.05)];
const END: u64 = 80;

/// Target, goodput and queue of each five seconds (bit/s, bit/s, ms), which are compared with a golden table.
fn closed_loop(name: &str, preset: &str) -> Vec<[f64; 3]> {
    let mut link = Bottleneck::new(name, preset, Rate::from_kbps(1000));
    let mut rows = vec![];
    let mut text =
        format!("{name} {preset}\n from  capacity    target   goodput  queue   (kb/s, ms; means of 5 s)\n");
    for from in (0..END).step_by(5) {
        if let Some(&(_, capacity, loss)) = PHASES.iter().find(|phase| phase.0 == from) {
            (link.capacity, link.loss) = (Rate::from_kbps(capacity), loss);
        }
        link.delivered = 0;
        let (mut target, mut queue) = (0.0, Span::ZERO);
        for _ in 0..100 {
            target += link.step(false).target.as_bps_f64() / 100.0;
            queue += link.queueing;
        }
        let row = [target, link.delivered as f64 * 8.0 / 5.0, queue.as_millis_f64() / 100.0];
        let capacity = link.capacity.as_bps_f64() / 1e3;
        writeln!(text, "{from:5} {capacity:9.0} {:9.0} {:9.0} {:6.0}", row[0] / 1e3, row[1] / 1e3, row[2])
            .expect("a string");
        rows.push(row);
    }
    text += &link.decisions.line();
    golden(&format!("crates/controllers/tests/golden/{name}-{preset}.txt"), &text);
    rows
}

/// Mean of a column from one second to another.
fn mean(rows: &[[f64; 3]], column: usize, from: usize, to: usize) -> f64 {
    let rows = &rows[from / 5..to / 5];
    rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64
}

fn within(what: &str, value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{what}: {value:.3} is not in {low} to {high}");
}

#[test]
fn it_follows_the_capacity_with_a_short_queue() {
    for preset in ["draft", "ericsson-2026-07", "libwebrtc"] {
        let rows = closed_loop("scream", preset);
        for (capacity, from, to) in [(1e6, 10, 20), (0.5e6, 30, 40), (2e6, 50, 60)] {
            within(&format!("{preset} on {capacity}"), mean(&rows, 1, from, to) / capacity, 0.7, 1.0);
            within(&format!("{preset}'s queue on {capacity}"), mean(&rows, 2, from, to), 0.0, 60.0);
        }
        // a loss in twenty packets, and each round trip of four or more with one keeps 0.7 of the window
        within("under loss", mean(&rows, 0, 65, 80), 30e3, 0.6 * mean(&rows, 0, 50, 60));
    }
}

#[test]
fn version_1_follows_the_capacity_by_its_delay() {
    let rows = closed_loop("scream-v1", "rfc8298");
    for (capacity, from, to) in [(1e6, 10, 20), (0.5e6, 30, 40), (2e6, 55, 60)] {
        within(&format!("on {capacity}"), mean(&rows, 1, from, to) / capacity, 0.7, 1.01);
        within(&format!("its queue on {capacity}"), mean(&rows, 2, from, to), 0.0, 260.0);
    }
    within("under loss", mean(&rows, 0, 65, 80), 30e3, 0.6 * mean(&rows, 0, 55, 60));
}
