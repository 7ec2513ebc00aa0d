//! GCC and NADA in a closed loop with a small bottleneck: what it does, as a table to review, and bounds on it.

use crate::support::means::{Means, closed_loop, mean, within};

/// From which second on, capacity in kbit/s, random loss.
const PHASES: [(u64, u64, f64); 4] = [(0, 1000, 0.0), (40, 500, 0.0), (70, 2000, 0.0), (130, 2000, 0.05)];
const END: u64 = 160;

/// Its rows of five seconds, which are compared with a golden table.
fn run(name: &str, preset: &str) -> Vec<Means> {
    closed_loop(name, preset, &PHASES, END)
}

fn check(name: &str, preset: &str) {
    let rows = run(name, preset);
    within("at the start", rows[0].target, 250e3, 600e3);
    within("use of 1 Mb/s", mean(&rows, 25, 40, Means::used), 0.75, 1.0);
    within("use of 0.5 Mb/s", mean(&rows, 50, 70, Means::used), 0.7, 1.0);
    within("use of 2 Mb/s", mean(&rows, 110, 130, Means::used), 0.7, 1.0);
    within("queue at 1 Mb/s", mean(&rows, 25, 40, |row| row.queue_ms), 0.0, 150.0);
    within("queue at 0.5 Mb/s", mean(&rows, 50, 70, |row| row.queue_ms), 0.0, 150.0);
    // random loss of 5 % is in the band where the estimate neither rises nor falls: the sent rate stays, and
    // 95 % of it arrives. A decrease for delay may still come before the first losses are known, to 0.85 of the
    // 95 %; then that stays
    let target = |from, to| mean(&rows, from, to, |row| row.target);
    within("target after the loss to that before", target(140, 160) / target(120, 130), 0.85 * 0.95, 1.1);
    within("goodput to target under loss", mean(&rows, 140, 160, |row| row.goodput / row.target), 0.93, 0.97);
    // whatever is sent beyond the capacity is not goodput
    assert!(rows.iter().all(|row| row.goodput <= row.capacity * 1.01));
}

#[test]
fn libwebrtc_v1_follows_the_capacity() {
    check("gcc", "libwebrtc-v1");
}

#[test]
fn libwebrtc_probes_to_the_capacity_and_follows_it() {
    let rows = run("gcc", "libwebrtc");
    within("at the start", rows[0].target, 700e3, 1000e3);
    within("use of 1 Mb/s", mean(&rows, 5, 40, Means::used), 0.9, 1.0);
    within("use of 0.5 Mb/s", mean(&rows, 50, 70, Means::used), 0.85, 1.0);
    within("use of 2 Mb/s", mean(&rows, 110, 130, Means::used), 0.9, 1.0);
    within("queue at 1 Mb/s", mean(&rows, 25, 40, |row| row.queue_ms), 0.0, 150.0);
}

#[test]
fn draft_02_follows_the_capacity() {
    check("gcc", "draft-02");
}

#[test]
fn aiortc_follows_the_capacity() {
    check("gcc", "aiortc");
}

#[test]
fn draft_02_follows_the_capacity_from_the_receiver() {
    check("gcc-remb", "draft-02");
}

#[test]
fn aiortc_follows_the_capacity_from_the_receiver() {
    check("gcc-remb", "aiortc");
}

#[test]
fn hoang2017_tables() {
    for name in ["gcc", "gcc-remb"] {
        let _rows = run(name, "hoang2017");
    }
}

#[test]
fn nada_tables() {
    for preset in ["rfc8698", "ns3-rmcat"] {
        let rows = run("nada", preset);
        // by equation (5) 10 ms of queue where the largest rate is held, which is 10 Mb/s here, and so 100, 200 and 50
        let queue = |from, to| mean(&rows, from, to, |row| row.queue_ms);
        within("queue at 1 Mb/s", queue(25, 40), 95.0, 105.0);
        if preset == "rfc8698" {
            within("queue at 0.5 Mb/s", queue(60, 70), 190.0, 210.0);
            within("queue at 2 Mb/s", queue(110, 130), 45.0, 55.0);
        }
        within("use of 1 Mb/s", mean(&rows, 25, 40, Means::used), 0.98, 1.01);
    }
}
