//! `gcc:libwebrtc` against recordings of libwebrtc's whole `GoogCcNetworkController` (June 2025, default field
//! trials), replayed open loop: what was sent, what arrived and what receiver reports said goes in as it was
//! recorded, and each answer is compared. One recording, shortened, is in `tests/data/gcc`; the others lie beside
//! the checkout.

use crate::support::{host, read, result, shared};
use serde_json::json;
use std::collections::VecDeque;
use tidegate_core::control::{Decision, Limits, LossReport, PacketResult, Probe, Report, Sent};
use tidegate_core::{ControllerHost, Rate, Size, Span, Time};

/// A recording and the settings it was made with.
struct Recording {
    name: &'static str,
    start: Rate,
    max: Rate,
    one_way: Span,
    /// Whether the call asked for probes in the application-limited region.
    alr_probing: bool,
    /// Number of targets and of probes in it.
    rows: usize,
    probes: usize,
}

const fn recording(name: &'static str, rows: usize, probes: usize) -> Recording {
    Recording {
        name,
        start: Rate::from_kbps(300),
        max: Rate::from_mbps(10),
        one_way: Span::from_millis(25),
        alr_probing: true,
        rows,
        probes,
    }
}

const RECORDINGS: [Recording; 8] = [
    recording("const1m", 2391, 2),
    recording("steps", 3556, 3),
    recording("drop_recovery", 3036, 8),
    recording("alr", 1457, 10),
    recording("alr_drop", 2375, 6),
    recording("bursty", 2359, 3),
    Recording { alr_probing: false, ..recording("limited_noalr", 2395, 3) },
    Recording {
        start: Rate::from_kbps(500),
        max: Rate::from_mbps(5),
        one_way: Span::from_millis(40),
        ..recording("loss5", 1820, 3)
    },
];

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

fn number(cell: &str) -> i64 {
    cell.parse().unwrap_or_else(|_| panic!("{cell} is no number"))
}

/// By which part of the recorded ones rates are off at most, and how many answers and probes there were.
#[derive(Default, PartialEq, Debug)]
struct Errors {
    target: f64,
    stable: f64,
    pacing: f64,
    padding: f64,
    rows: usize,
    probes: usize,
}

/// The part of `expected` by which a rate is off.
fn off(rate: Rate, expected: i64) -> f64 {
    if expected == 0 {
        return if rate == Rate::ZERO { 0.0 } else { f64::INFINITY };
    }
    (rate.as_bps_f64() - expected as f64).abs() / expected as f64
}

struct Replay {
    host: ControllerHost,
    stable: Rate,
    errors: Errors,
    expected: VecDeque<Vec<String>>,
    probes: VecDeque<Vec<String>>,
    what: String,
}

impl Replay {
    /// Compares an answer with what was recorded of the same event, if anything was.
    fn check(&mut self, event: &str, now: Time, decision: Decision) {
        for (name, value) in &self.host.notes.values {
            if name == "stable_target" {
                self.stable = Rate::from_bps_f64(*value);
            }
        }
        for &probe in decision.probes.iter() {
            self.check_probe(now, probe);
        }
        let recorded = |row: &Vec<String>| row[0] == event && number(&row[1]) * 1000 == now.as_nanos();
        while self.expected.front().is_some_and(recorded) {
            let row = self.expected.pop_front().expect("there is one");
            let cells: Vec<i64> = row[2..6].iter().map(|cell| number(cell)).collect();
            let here = [decision.target, self.stable, decision.pacing, decision.padding];
            let errors: Vec<f64> = here.iter().zip(&cells).map(|(&rate, &cell)| off(rate, cell)).collect();
            if errors.iter().any(|&error| error > 0.0) {
                println!("{}: {event} at {now}: {here:?}, recorded {cells:?}", self.what);
            }
            let worst = &mut self.errors;
            worst.target = worst.target.max(errors[0]);
            worst.stable = worst.stable.max(errors[1]);
            worst.pacing = worst.pacing.max(errors[2]);
            worst.padding = worst.padding.max(errors[3]);
            worst.rows += 1;
        }
    }

    fn check_probe(&mut self, now: Time, probe: Probe) {
        let Some(row) = self.probes.pop_front() else { panic!("{}: {probe:?} at {now}", self.what) };
        let cells: Vec<i64> = row.iter().map(|cell| number(cell)).collect();
        let expected = Probe {
            id: cells[1] as u32,
            rate: Rate::from_bps(cells[2] as u64),
            length: Span::from_micros(cells[3]),
            spacing: Span::from_micros(cells[4]),
            min_packets: cells[5] as u32,
        };
        assert_eq!((probe, now), (expected, Time::from_micros(cells[0])), "{}", self.what);
        self.errors.probes += 1;
    }
}

/// Replays a recording up to where its packets end; in each millisecond the order in which it was made: time passes,
/// the receiver reports losses and a round trip, feedback comes, packets leave.
fn replay(of: &Recording, file: impl Fn(&str) -> String) -> Errors {
    let [packets, reports, targets, probes] = ["packets", "rr", "targets", "probes"].map(file);
    let owned = |text: &str| -> VecDeque<Vec<String>> {
        rows(text).map(|row| row.into_iter().map(str::to_owned).collect()).collect()
    };
    let limits = Limits { start: of.start, max: of.max, ..Limits::default() };
    let settings = json!({"alr_probing": of.alr_probing});
    let mut replay = Replay {
        host: host("gcc", "libwebrtc", &settings, &limits),
        stable: of.start,
        errors: Errors::default(),
        expected: owned(&targets),
        probes: owned(&probes),
        what: of.name.to_owned(),
    };
    replay.host.notes.wanted = true;
    replay.expected.retain(|row| row[0] != "available" && !row[0].starts_with("rr_"));
    replay.check("process", Time::ZERO, *replay.host.decision());
    let mut unsent: VecDeque<PacketResult> = rows(&packets)
        .map(|row| {
            let arrival = Some(number(row[3])).filter(|&at| at >= 0).map(|at| at * 1000);
            let sent = Time::from_micros(number(row[1]));
            let probe = Some(number(row[4])).filter(|&id| id > 0).map(|id| id as u32);
            PacketResult { probe, ..result(number(row[0]) as u64, number(row[2]) as u64, sent, arrival) }
        })
        .collect();
    let mut reports: VecDeque<[i64; 4]> =
        rows(&reports).map(|row| [0, 1, 2, 3].map(|at| number(row[at]))).collect();
    let end = unsent.back().map_or(Time::ZERO, |packet| packet.sent);
    let mut in_flight: VecDeque<PacketResult> = VecDeque::new();
    let mut returning: VecDeque<(Time, Vec<PacketResult>)> = VecDeque::new();
    let mut lost = 0;
    let mut now = Time::ZERO;
    while now <= end {
        while let Some(at) = replay.host.decision().alarm.filter(|&at| at <= now) {
            let decision = *replay.host.alarm(at).expect("contract");
            replay.check("process", at, decision);
        }
        if now > Time::ZERO && now.as_nanos() % 50_000_000 == 0 {
            let arrived =
                |packet: &PacketResult| packet.arrival.is_some_and(|at| at.as_nanos() <= now.as_nanos());
            let count = in_flight.iter().rposition(arrived).map_or(0, |last| last + 1);
            if count > 0 {
                returning.push_back((now + of.one_way, in_flight.drain(..count).collect()));
            }
        }
        while let Some(&[_, more, received, rtt]) =
            reports.front().filter(|row| row[0] * 1000 <= now.as_nanos())
        {
            reports.pop_front();
            lost += more;
            let loss = LossReport {
                fraction_lost: 0,
                cumulative_lost: lost as i32,
                highest_sequence: 0,
                jitter: Span::ZERO,
                expected: (more + received) as u32,
            };
            let report_rtt = Some(Span::from_micros(rtt));
            let report = Report { loss: Some(loss), report_rtt, ..Report::default() };
            let decision = *replay.host.report(now, &report).expect("contract");
            replay.check("rr", now, decision);
        }
        while returning.front().is_some_and(|&(at, _)| at <= now) {
            let (_, packets) = returning.pop_front().expect("there is one");
            let report = Report { packets, ..Report::default() };
            let decision = *replay.host.report(now, &report).expect("contract");
            replay.check("feedback", now, decision);
        }
        while let Some(packet) = unsent.front().filter(|packet| packet.sent <= now).copied() {
            unsent.pop_front();
            let (sequence, size) = (packet.sequence, packet.size);
            in_flight.push_back(packet);
            let sent = Sent { sequence, size, in_flight: Size::ZERO, backlog: Size::ZERO };
            let decision = *replay.host.sent(packet.sent, &sent).expect("contract");
            replay.check("sent", packet.sent, decision);
        }
        now += Span::from_millis(1);
    }
    let left = replay.expected.iter().filter(|row| number(&row[1]) * 1000 <= end.as_nanos()).count();
    assert_eq!(left, 0, "{}: answers that were not given, from {:?} on", of.name, replay.expected.front());
    replay.errors
}

#[test]
fn every_answer_is_the_recorded_one() {
    let bursty = RECORDINGS.iter().find(|recording| recording.name == "bursty").expect("it is there");
    let errors = replay(bursty, |what| read(&format!("tests/data/gcc/goog_cc_bursty_{what}.csv")));
    assert_eq!(errors, Errors { rows: 358, probes: 3, ..Errors::default() });
    for recording in &RECORDINGS {
        let file = |what: &str| shared(&format!("vectors/goog_cc_{}_{what}.csv", recording.name));
        if file("targets").is_none() {
            continue;
        }
        let errors = replay(recording, |what| file(what).expect("its other files are there, too"));
        let Errors { rows, probes, .. } = errors;
        let (most, least) = (recording.rows, recording.probes);
        assert_eq!(errors, Errors { rows, probes, ..Errors::default() }, "{}", recording.name);
        assert_eq!((rows, probes), (most, least), "{}", recording.name);
    }
}
