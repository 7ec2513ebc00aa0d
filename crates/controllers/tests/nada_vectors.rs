//! NADA beside values of others: closed forms of RFC 8698, and ns3-rmcat's controller.

use crate::support::halves::said;
use crate::support::{host, read, result, shared};
use serde_json::Value;
use std::collections::VecDeque;
use tidegate_controllers::nada::congestion::{aggregate, warped};
use tidegate_controllers::nada::rate::{Mode, Reference, Update, gamma, gradual};
use tidegate_controllers::nada::settings::Settings;
use tidegate_controllers::nada::shaping;
use tidegate_core::control::{Limits, PacketResult, Report};
use tidegate_core::{Rate, Time};

fn settings() -> Settings {
    Settings::with("rfc8698", &Value::Null).expect("a preset")
}

fn near(what: &str, found: f64, expected: f64, relative: f64) {
    let off = (found - expected).abs();
    assert!(off <= relative * expected.abs().max(1e-12), "{what}: {found} instead of {expected}");
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn the_equations_are_those_of_the_rfc() {
    check_equations(&read("tests/data/nada/nada_equations.json"));
    if let Some(text) = shared("vectors/nada_equations.json") {
        check_equations(&text);
    }
}

fn check_equations(text: &str) {
    let all: Value = serde_json::from_str(text).expect("JSON");
    let set = settings();
    let (least, most) = (150e3, 1.5e6);
    let rows = |key: &str| all[key].as_array().expect("rows").clone();
    for row in rows("warp") {
        let [queueing, tilde] = [0, 1].map(|i| row[i].as_f64().expect("a number"));
        near("warp", warped(queueing, &set), tilde, 1e-9);
    }
    for row in rows("x_curr") {
        let [tilde, marks, loss, x] = ["d_tilde", "p_mark", "p_loss", "x_curr"].map(|key| number(&row, key));
        near("x_curr", aggregate(tilde, marks, loss, &set), x, 1e-9);
    }
    for row in rows("gradual") {
        let [r_ref, x, before, delta] =
            ["r_ref", "x_curr", "x_prev", "delta_ms"].map(|key| number(&row, key));
        near("gradual", gradual(r_ref, x, before, delta, most, &set), number(&row, "unclipped"), 1e-9);
        let mut reference = Reference { rate: r_ref, before };
        let by = Update { mode: Mode::Gradual, x, receive_rate: 0.0, rtt: 0.0, delta };
        reference.update(&by, least, most, &set);
        near("clipped", reference.rate, number(&row, "clipped"), 1e-9);
        assert_eq!(reference.before, x);
    }
    for row in rows("rampup") {
        let [r_ref, receive_rate, rtt] = ["r_ref", "r_recv", "rtt_ms"].map(|key| number(&row, key));
        near("gamma", gamma(rtt, &set), number(&row, "gamma"), 1e-9);
        let mut reference = Reference::new(r_ref);
        let by = Update { mode: Mode::RampUp, x: 1.0, receive_rate, rtt, delta: 100.0 };
        reference.update(&by, least, most, &set);
        near("ramp-up", reference.rate, number(&row, "clipped"), 1e-9);
        assert_eq!(reference.before, 1.0, "ramp-up remembers the signal, too");
    }
    for row in rows("buffer") {
        let (video, sending) =
            shaping::rates(number(&row, "r_ref"), number(&row, "buffer_len_bytes"), least, most, &set);
        near("r_vin", video, number(&row, "r_vin"), 1e-9);
        near("r_send", sending, number(&row, "r_send"), 1e-9);
    }
    for row in all["equilibrium"]["rows"].as_array().expect("rows") {
        let [rate, x] = [0, 1].map(|i| row[i].as_f64().expect("a number"));
        near("equilibrium", gradual(rate, x, x, 100.0, most, &set), rate, 1e-9);
    }
}

/// The limits of ns3-rmcat while the series were recorded.
const LIMITS: Limits = Limits {
    min: Rate::from_kbps(150),
    max: Rate::from_kbps(1500),
    start: Rate::from_kbps(150),
    wanted: None,
    app_limited: false,
    route_changed: false,
};

/// Lines of a CSV file as numbers; an empty cell is not a number.
fn numbers(text: &str) -> Vec<Vec<f64>> {
    let number = |cell: &str| cell.parse().unwrap_or(f64::NAN);
    text.lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
}

/// Hands in the recorded feedback and compares each update of the rate with the recorded one, from the beginning to the
/// end: nothing but packets is taken over from the recording. Says by how much gradual updates and ramp-ups are off at most,
/// and how many of the former there are.
fn replay(packets: &str, updates: &str) -> (f64, f64, usize) {
    let mut ours = host("nada", "ns3-rmcat", &Value::Null, &LIMITS);
    ours.notes.wanted = true;
    let (packets, updates) = (numbers(packets), numbers(updates));
    let mut left = packets.iter().peekable();
    let (mut worst, mut worst_ramp_up, mut steps) = (0.0_f64, 0.0_f64, 0);
    let mut told: Vec<PacketResult> = vec![];
    for row in updates {
        let now = row[0];
        // feedback leaves every 100 ms and is 25 ms on its way; what is lost is not in it
        while let Some(packet) = left.next_if(|packet| packet[3] <= now - 25_000.0 || packet[3].is_nan()) {
            if !packet[3].is_nan() {
                let sent = Time::from_micros(packet[1] as i64);
                told.push(result(packet[0] as u64, packet[2] as u64, sent, Some(packet[3] as i64 * 1000)));
            }
        }
        let report = Report { packets: std::mem::take(&mut told), ..Report::default() };
        let _ = ours.report(Time::from_micros(now as i64), &report).expect("contract");
        let note = |name| said(&ours.notes, name).unwrap_or_else(|| panic!("no {name} at {now}"));
        let off = (note("r_ref_bps") / row[1] - 1.0).abs();
        if note("rmode") == 1.0 {
            (worst, steps) = (worst.max(off), steps + 1);
        } else {
            worst_ramp_up = worst_ramp_up.max(off);
        }
        // two digits of the signal are recorded
        assert!((note("x_curr_ms") - row[7]).abs() <= 0.0051, "x_curr {} at {now}", note("x_curr_ms"));
    }
    (worst, worst_ramp_up, steps)
}

#[test]
fn ns3_rmcat_replayed_from_beginning_to_end() {
    let carried = |name: &str, what| read(&format!("tests/data/nada/nada_ns3rmcat_{name}_{what}.csv"));
    for name in ["const1m", "loss5"] {
        let (gradual, ramp_up, steps) = replay(&carried(name, "packets"), &carried(name, "updates"));
        assert!(
            gradual < 1e-6 && ramp_up < 1e-6 && steps > 10,
            "{name}: {steps} steps, {gradual:e}; {ramp_up:e}"
        );
    }
    // the whole recording; others of the kind are compared where there are any
    for name in ["const1m", "loss1", "loss5", "burst", "steps", "small", "outage"] {
        let [packets, updates] =
            ["packets", "updates"].map(|what| shared(&format!("vectors/nada_ns3rmcat_{name}_{what}.csv")));
        let (Some(packets), Some(updates)) = (packets, updates) else { continue };
        // its numbers have 24 bits: what they lose is off for good
        let (gradual, ramp_up, steps) = replay(&packets, &updates);
        println!("{name}: {steps} gradual updates off by at most {gradual:.1e}, ramp-up by {ramp_up:.1e}");
        assert!(gradual < 1e-6 && ramp_up < 1e-6 && steps > 200, "{name}: {gradual:e} and {ramp_up:e}");
    }
}

/// The loop in which ns3-rmcat was recorded: 1000 bytes at the target in ticks of 5 ms, a link of 1 Mb/s that drops at 300 ms,
/// 25 ms each way, feedback every 100 ms. Answers mean rate (bit/s) and queueing delay (ms) of the last 10 of 60 s.
fn in_the_loop(preset: &str) -> (f64, f64) {
    let mut ours = host("nada", preset, &Value::Null, &LIMITS);
    let (mut credit, mut free_at, mut next_report) = (0.0, 0_i64, 101_000_i64);
    let mut flying: VecDeque<PacketResult> = VecDeque::new();
    let mut returning: VecDeque<(i64, Report)> = VecDeque::new();
    let (mut rates, mut queues, mut sent) = (vec![], vec![], 0);
    for now in (1000..60_000_000).step_by(5000) {
        while next_report <= now {
            let mut packets = vec![];
            while flying
                .front()
                .is_some_and(|packet| packet.arrival.is_some_and(|at| at.as_nanos() <= next_report * 1000))
            {
                packets.extend(flying.pop_front());
            }
            returning.push_back((next_report + 25_000, Report { packets, ..Report::default() }));
            next_report += 100_000;
        }
        while returning.front().is_some_and(|&(at, _)| at <= now) {
            let (_, report) = returning.pop_front().expect("there is one");
            let _ = ours.report(Time::from_micros(now), &report).expect("contract");
        }
        let rate = ours.decision().target.as_bps_f64();
        credit += rate * 5e-3 / 8.0;
        while credit >= 1000.0 {
            credit -= 1000.0;
            let queued = (free_at - now).max(0);
            if now >= 50_000_000 {
                rates.push(rate);
                queues.push(queued as f64 / 1000.0);
            }
            if queued <= 300_000 {
                free_at = free_at.max(now) + 8000;
                flying.push_back(result(sent, 1000, Time::from_micros(now), Some((free_at + 25_000) * 1000)));
            }
            sent += 1;
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    (mean(&rates), mean(&queues))
}

#[test]
fn both_presets_come_to_rest_where_ns3_rmcat_did() {
    for preset in ["rfc8698", "ns3-rmcat"] {
        let (rate, queue) = in_the_loop(preset);
        println!("{preset}: {rate:.0} bit/s, {queue:.2} ms");
        // recorded: 999 770 bit/s and, as the mean of packets, 17.02 ms; by equation (5) the least of 15 is 15 ms at 1 Mb/s
        assert!((rate / 999_770.0 - 1.0).abs() < 0.001, "{preset}: {rate}");
        assert!((queue - 17.02).abs() < 0.5, "{preset}: {queue}");
    }
}
