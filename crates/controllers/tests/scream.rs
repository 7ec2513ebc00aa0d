//! SCReAM in a closed loop with a small bottleneck, and its window by itself.

use crate::support::means::{Means, closed_loop, mean, within};

/// From which second on, capacity in kbit/s, random loss.
const PHASES: [(u64, u64, f64); 4] = [(0, 1000, 0.0), (20, 500, 0.0), (40, 2000, 0.0), (60, 2000, 0.05)];
const END: u64 = 80;

#[test]
fn it_follows_the_capacity_with_a_short_queue() {
    for preset in ["draft", "ericsson-2026-07", "libwebrtc"] {
        let rows = closed_loop("scream", preset, &PHASES, END);
        for (capacity, from, to) in [(1e6, 10, 20), (0.5e6, 30, 40), (2e6, 50, 60)] {
            within(&format!("{preset} on {capacity}"), mean(&rows, from, to, Means::used), 0.7, 1.0);
            within(
                &format!("{preset}'s queue on {capacity}"),
                mean(&rows, from, to, |row| row.queue_ms),
                0.0,
                60.0,
            );
        }
        // a loss in twenty packets, and each round trip of four or more with one keeps 0.7 of the window
        within(
            "under loss",
            mean(&rows, 65, 80, |row| row.target),
            30e3,
            0.6 * mean(&rows, 50, 60, |row| row.target),
        );
    }
}

#[test]
fn version_1_follows_the_capacity_by_its_delay() {
    let rows = closed_loop("scream-v1", "rfc8298", &PHASES, END);
    for (capacity, from, to) in [(1e6, 10, 20), (0.5e6, 30, 40), (2e6, 55, 60)] {
        within(&format!("on {capacity}"), mean(&rows, from, to, Means::used), 0.7, 1.01);
        within(&format!("its queue on {capacity}"), mean(&rows, from, to, |row| row.queue_ms), 0.0, 260.0);
    }
    within(
        "under loss",
        mean(&rows, 65, 80, |row| row.target),
        30e3,
        0.6 * mean(&rows, 55, 60, |row| row.target),
    );
}
