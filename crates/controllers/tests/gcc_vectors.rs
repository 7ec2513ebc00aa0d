//! GCC against traces that aiortc 1.16.0 wrote.

use crate::support::{arrived, half, host, read, remb_of, result, shared};
use serde_json::{Value, json};
use tidegate_controllers::gcc::detector::{Detector, Usage};
use tidegate_controllers::gcc::kalman::Kalman;
use tidegate_controllers::gcc::presets::aiortc;
use tidegate_core::control::{Limits, Report, Urgency};
use tidegate_core::{ControllerHost, Rate, Span, Time};

/// As close as an independent implementation should come.
const TOLERANCE: f64 = 1e-9;

fn near(what: &str, row: usize, value: f64, expected: f64) {
    assert!((value - expected).abs() <= TOLERANCE, "row {row}: {what} is {value}, not {expected}");
}

fn usage(name: &str) -> Usage {
    match name {
        "NORMAL" => Usage::Normal,
        "OVERUSING" => Usage::Over,
        "UNDERUSING" => Usage::Under,
        other => panic!("no hypothesis {other}"),
    }
}

struct Row {
    arrival: f64,
    send: f64,
    size: f64,
    now: f64,
    /// offset, slope, var_noise, num_deltas, threshold
    state: [f64; 5],
    usage: Usage,
}

fn rows(text: &str) -> Vec<Row> {
    let file: Value = serde_json::from_str(text).expect("JSON");
    let columns =
        "t_delta_ms ts_delta_ms size_delta now_ms offset slope var_noise num_deltas threshold hypothesis";
    assert_eq!(file["columns"], json!(columns.split(' ').collect::<Vec<_>>()));
    let row = |row: &Value| {
        let x = |i: usize| row[i].as_f64().expect("a number");
        Row {
            arrival: x(0),
            send: x(1),
            size: x(2),
            now: x(3),
            state: [x(4), x(5), x(6), x(7), x(8)],
            usage: usage(row[9].as_str().expect("a word")),
        }
    };
    file["rows"].as_array().expect("rows").iter().map(row).collect()
}

fn replay_on_the_parts(rows: &[Row]) {
    let mut filter = Kalman::new(aiortc::KALMAN);
    let mut detector = Detector::new(aiortc::Settings::default().detector());
    for (i, row) in rows.iter().enumerate() {
        filter.update(row.arrival, row.send, row.size, detector.usage);
        detector.detect(filter.offset, row.send, row.now);
        near("offset", i, filter.offset, row.state[0]);
        near("slope", i, filter.slope, row.state[1]);
        near("var_noise", i, filter.var_noise, row.state[2]);
        near("num_deltas", i, detector.num_deltas as f64, row.state[3]);
        near("threshold", i, detector.threshold.value, row.state[4]);
        assert_eq!(detector.usage, row.usage, "row {i}");
    }
}

fn noted(host: &ControllerHost, name: &str) -> Option<f64> {
    host.notes.values.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
}

/// One packet a group and one report a packet. The difference to a group shows when the packet after it
/// arrives, so one packet more than there are rows goes in before the first row and one after the last.
fn replay_on_the_controller(rows: &[Row]) {
    let mut host = host("gcc", "aiortc", &Value::Null, &Limits::default());
    host.notes.wanted = true;
    let lowest = rows
        .iter()
        .scan(0.0, |sum, row| {
            *sum += row.size;
            Some(*sum)
        })
        .fold(0.0, f64::min);
    let nanos = |ms: f64| (ms * 1e6).round() as i64;
    let (mut sent, mut arrival, mut size) = (0, 0, 100.0 - lowest);
    let mut feed = |sequence: u64, sent: i64, arrival: i64, size: f64| {
        let packet = result(sequence, size as u64, Time::from_nanos(sent), Some(arrival));
        let now = Time::from_nanos(arrival) + Span::from_millis(50);
        let report = Report { packets: vec![packet], ..Report::default() };
        let _ = host.report(now, &report).expect("contract");
        let names = ["offset", "slope", "var_noise", "num_deltas", "threshold", "state"];
        names.map(|name| noted(&host, name))
    };
    assert_eq!(feed(0, 0, 0, size), [None; 6]);
    for i in 0..=rows.len() {
        let (more_sent, more_arrival, more_size) =
            rows.get(i).map_or((20.0, 20.0, 0.0), |row| (row.send, row.arrival, row.size));
        sent += nanos(more_sent);
        arrival += nanos(more_arrival);
        size += more_size;
        let notes = feed(i as u64 + 1, sent, arrival, size);
        let Some(done) = i.checked_sub(1) else {
            assert_eq!(notes, [None; 6]);
            continue;
        };
        let notes = notes.map(|note| note.expect("a group was completed"));
        for (name, (note, expected)) in ["offset", "slope", "var_noise", "num_deltas", "threshold"]
            .iter()
            .zip(notes.iter().zip(rows[done].state))
        {
            near(name, done, *note, expected);
        }
        assert_eq!(notes[5], rows[done].usage.code(), "row {done}");
    }
}

#[test]
fn the_kalman_filter_and_the_detector_follow_aiortc() {
    let carried = rows(&read("tests/data/gcc/aiortc_kalman_detector.json"));
    assert_eq!(carried.len(), 60);
    replay_on_the_parts(&carried);
    replay_on_the_controller(&carried);
    if let Some(text) = shared("vectors/aiortc_kalman_detector.json") {
        let rows = rows(&text);
        assert_eq!(rows.len(), 600);
        replay_on_the_parts(&rows);
        replay_on_the_controller(&rows);
    }
}

/// A trace of aiortc's whole receive-side estimator: filter, detector, received rate, AIMD.
fn replay_the_estimator(text: &str) -> usize {
    let limits = Limits { min: Rate::from_kbps(5), max: Rate::from_mbps(1000), ..Limits::default() };
    let clocks = json!({"send_clock": "abs-send-time", "adapt_clock": "packet"});
    let mut host = host("gcc", "aiortc", &clocks, &limits);
    host.notes.wanted = true;
    let mut lines = text.lines();
    let header = "arrival_ms,abs_send_time_24,size,offset_ms,num_deltas,threshold,hypothesis,rate_state,incoming_bps,remb_bps";
    assert_eq!(lines.next(), Some(header));
    let (mut wraps, mut before, mut rates) = (0_i64, 0_i64, 0);
    for (i, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().ok();
        let arrival = cells[0].parse::<i64>().expect("ms");
        let ticks = cells[1].parse::<i64>().expect("ticks");
        wraps += i64::from(ticks < before);
        before = ticks;
        let seconds = (ticks + (wraps << 24)) as f64 / 262_144.0;
        let packet = result(
            i as u64,
            cells[2].parse().expect("bytes"),
            Time::from_nanos((seconds * 1e9).round() as i64),
            Some(arrival * 1_000_000),
        );
        let report = Report { packets: vec![packet], ..Report::default() };
        let _ = host.report(Time::from_millis(arrival), &report).expect("contract");
        let note = |name| noted(&host, name);
        if let Some(offset) = note("offset") {
            near("offset", i, offset, number(3).expect("offset"));
            assert_eq!(note("num_deltas"), number(4), "row {i}");
            near("threshold", i, note("threshold").expect("noted"), number(5).expect("threshold"));
            assert_eq!(note("state"), Some(usage(cells[6]).code()), "row {i}");
        } else {
            assert_eq!(number(4), Some(0.0), "row {i}");
        }
        let state = ["HOLD", "INCREASE", "DECREASE"].iter().position(|name| *name == cells[7]);
        assert_eq!(note("rate_state"), state.map(|code| code as f64), "row {i}");
        assert_eq!(note("received_rate"), number(8), "row {i}");
        if let Some(rate) = number(9) {
            assert_eq!(note("delay_based"), Some(rate), "row {i}");
            rates += 1;
        }
    }
    rates
}

/// The same trace through the receiver half of `gcc-remb`, which speaks when aiortc does.
fn replay_the_receiver(text: &str) -> usize {
    let mut half = half("gcc-remb", "aiortc", &Value::Null).expect("it has one");
    half.notes.wanted = true;
    let mut said = 0;
    for (i, line) in text.lines().skip(1).enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().ok();
        let now = Time::from_millis(cells[0].parse().expect("ms"));
        let packet = arrived(i as u64, cells[2].parse().expect("bytes"), cells[1].parse().expect("ticks"));
        let urgency = half.packet(now, &packet).expect("contract");
        let note = |name: &str| {
            half.notes.values.iter().rev().find(|(known, _)| known == name).map(|&(_, value)| value)
        };
        if let Some(offset) = note("offset") {
            near("offset", i, offset, number(3).expect("offset"));
            assert_eq!(note("num_deltas"), number(4), "row {i}");
            near("threshold", i, note("threshold").expect("noted"), number(5).expect("threshold"));
            assert_eq!(note("state"), Some(usage(cells[6]).code()), "row {i}");
        }
        let state = ["HOLD", "INCREASE", "DECREASE"].iter().position(|name| *name == cells[7]);
        assert_eq!(note("rate_state"), state.map(|code| code as f64), "row {i}");
        assert_eq!(note("received_rate"), number(8), "row {i}");
        let remb = cells[9].parse().ok().map(Rate::from_bps);
        assert_eq!(urgency == Urgency::Now, remb.is_some(), "row {i}");
        assert_eq!(half.alarm_at, None, "row {i}");
        if remb.is_some() {
            assert_eq!(remb_of(&mut half, now), remb, "row {i}");
            said += 1;
        }
    }
    said
}

#[test]
fn the_whole_estimator_follows_aiortc_to_the_bit() {
    let carried = read("tests/data/gcc/aiortc_rbe_overload.csv");
    assert!(replay_the_estimator(&carried) >= 2);
    assert!(replay_the_receiver(&carried) >= 2);
    for (file, rates) in [("aiortc_rbe_ramp.csv", 100), ("aiortc_rbe_overload.csv", 100)] {
        if let Some(text) = shared(&format!("vectors/{file}")) {
            let checked = replay_the_estimator(&text);
            assert!(checked >= rates, "{file}: {checked} rates");
            assert_eq!(replay_the_receiver(&text), checked, "{file}");
        }
    }
}
