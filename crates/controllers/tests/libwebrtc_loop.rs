//! `gcc:libwebrtc` in a closed loop of the form in which libwebrtc's own recordings were made: steps of 1 ms, no
//! pacer, packets of 1200 bytes at the target, a drop-tail queue of 400 ms. What leaves, arrives and is allowed has to
//! come out as it was recorded.

mod support;

use serde_json::json;
use std::collections::VecDeque;
use support::{host, read, result, shared};
use tidegate_core::control::{Decision, Limits, LossReport, PacketResult, Probe, Report, Sent};
use tidegate_core::{ControllerHost, Rate, RemoteTime, Size, Span, Stream, Time};

const SIZE: Size = Size::from_bytes(1200);
const QUEUE: Span = Span::from_millis(400);
const STEP: Span = Span::from_millis(1);

/// How a recording was made. Rates are in kbit/s, from a second on.
struct Loop {
    name: &'static str,
    seconds: i64,
    start: u64,
    max: u64,
    one_way_ms: i64,
    alr_probing: bool,
    capacity: &'static [(f64, u64)],
    /// What the application has; zero for all that it may.
    application: &'static [(f64, u64)],
    /// Losses by number, from the recording.
    lossy: bool,
}

const PLAIN: Loop = Loop {
    name: "",
    seconds: 40,
    start: 300,
    max: 10_000,
    one_way_ms: 25,
    alr_probing: true,
    capacity: &[],
    application: &[(0.0, 0)],
    lossy: false,
};

const LOOPS: [Loop; 8] = [
    Loop { name: "const1m", capacity: &[(0.0, 1000)], ..PLAIN },
    Loop { name: "steps", seconds: 60, capacity: &[(0.0, 2000), (15.0, 500), (30.0, 2000)], ..PLAIN },
    Loop {
        name: "drop_recovery",
        seconds: 60,
        capacity: &[(0.0, 3000), (10.0, 300), (14.0, 3000)],
        application: &[(0.0, 0), (25.0, 300), (40.0, 0)],
        ..PLAIN
    },
    Loop { name: "alr", capacity: &[(0.0, 5000)], application: &[(0.0, 400)], ..PLAIN },
    Loop {
        name: "alr_drop",
        capacity: &[(0.0, 3000), (12.0, 400), (13.2, 3000)],
        application: &[(0.0, 1000)],
        ..PLAIN
    },
    Loop {
        name: "limited_noalr",
        alr_probing: false,
        capacity: &[(0.0, 5000)],
        application: &[(0.0, 400)],
        ..PLAIN
    },
    Loop { name: "bursty", capacity: &[(0.0, 2000)], lossy: true, ..PLAIN },
    Loop {
        name: "loss5",
        seconds: 30,
        start: 500,
        max: 5000,
        one_way_ms: 40,
        capacity: &[(0.0, 10_000)],
        lossy: true,
        ..PLAIN
    },
];

fn in_force(schedule: &[(f64, u64)], now: Time) -> Rate {
    let at = schedule.iter().rev().find(|&&(from, _)| now.as_secs_f64() >= from);
    Rate::from_kbps(at.expect("from the start").1)
}

/// A probe that is being sent, and since when it was asked for.
struct Pending {
    probe: Probe,
    asked: Time,
    sent: Size,
    packets: u32,
}

struct Run<'a> {
    of: &'a Loop,
    lost: &'a mut dyn FnMut(u64, Time) -> bool,
    host: ControllerHost,
    now: Time,
    pending: VecDeque<Pending>,
    credit: f64,
    free_at: Time,
    packets: Vec<PacketResult>,
    reported: usize,
    returning: VecDeque<(Time, Vec<PacketResult>)>,
    /// Packets lost and received as feedback has told since the last receiver report, lost in all, a round trip.
    told: (u32, u32),
    lost_in_all: i32,
    rtt: Option<Span>,
    /// When each target came into force.
    targets: Vec<(Time, Rate)>,
}

impl Run<'_> {
    /// Takes up the last decision.
    fn heed(&mut self) {
        let decision: Decision = *self.host.decision();
        let asked = self.now;
        let pending = |&probe| Pending { probe, asked, sent: Size::ZERO, packets: 0 };
        self.pending.extend(decision.probes.iter().map(pending));
        if self.targets.last().is_none_or(|&(_, target)| target != decision.target) {
            self.targets.push((self.now, decision.target));
        }
    }

    fn send(&mut self, probe: Option<u32>) {
        let sequence = self.packets.len() as u64;
        let wait = self.free_at.saturating_since(self.now);
        let lost = (self.lost)(sequence, self.now) || wait > QUEUE;
        let mut arrival = None;
        if !lost {
            self.free_at = self.free_at.max(self.now) + in_force(self.of.capacity, self.now).time_for(SIZE);
            arrival = Some((self.free_at + Span::from_millis(self.of.one_way_ms)).as_nanos());
        }
        self.packets.push(PacketResult { probe, ..result(sequence, SIZE.as_bytes(), self.now, arrival) });
        let sent = Sent { sequence, size: SIZE, in_flight: SIZE, backlog: Size::ZERO };
        let _ = self.host.sent(self.now, &sent).expect("contract");
        self.heed();
    }

    /// A burst of the present probe if one is due; whether there is a probe.
    fn probe(&mut self) -> bool {
        let Some(pending) = self.pending.front() else { return false };
        let probe = pending.probe;
        if self.now < pending.asked + probe.rate.time_for(pending.sent) {
            return true;
        }
        let burst = probe.rate.bytes_in(probe.spacing);
        // a burst is whole, also the last one
        let mut bytes = Size::ZERO;
        while bytes < burst.max(Size::from_bytes(1)) {
            self.send(Some(probe.id));
            bytes += SIZE;
            if let Some(pending) = self.pending.front_mut() {
                pending.sent += SIZE;
                pending.packets += 1;
            }
        }
        let done = |pending: &Pending| {
            pending.sent >= probe.rate.bytes_in(probe.length) && pending.packets >= probe.min_packets
        };
        if self.pending.front().is_some_and(done) {
            self.pending.pop_front();
        }
        true
    }

    fn step(&mut self) {
        while self.host.decision().alarm.is_some_and(|at| at <= self.now) {
            let _ = self.host.alarm(self.now).expect("contract");
            self.heed();
        }
        let one_way = Span::from_millis(self.of.one_way_ms);
        let every = |ms: i64| self.now > Time::ZERO && self.now.as_nanos() % (ms * 1_000_000) == 0;
        if every(50) {
            let closing = RemoteTime::from_nanos(self.now.as_nanos());
            let open = &self.packets[self.reported..];
            let arrived = |packet: &PacketResult| packet.arrival.is_some_and(|at| at <= closing);
            let count = open.iter().rposition(arrived).map_or(0, |last| last + 1);
            if count > 0 {
                self.returning.push_back((self.now + one_way, open[..count].to_vec()));
                self.reported += count;
            }
        }
        if every(1000) {
            let (lost, received) = std::mem::take(&mut self.told);
            self.lost_in_all += lost as i32;
            let loss = LossReport {
                fraction_lost: 0,
                cumulative_lost: self.lost_in_all,
                highest_sequence: 0,
                jitter: Span::ZERO,
                expected: lost + received,
            };
            let report = Report { loss: Some(loss), report_rtt: self.rtt, ..Report::default() };
            let _ = self.host.report(self.now, &report).expect("contract");
            self.heed();
        }
        while self.returning.front().is_some_and(|&(at, _)| at <= self.now) {
            let (_, packets) = self.returning.pop_front().expect("there is one");
            let lost = packets.iter().filter(|packet| packet.arrival.is_none()).count() as u32;
            self.told = (self.told.0 + lost, self.told.1 + packets.len() as u32 - lost);
            if let Some(newest) = packets.last()
                && let Some(arrival) = newest.arrival
            {
                self.rtt = Some(Span::from_nanos(arrival.as_nanos() - newest.sent.as_nanos()) + one_way);
            }
            let report = Report { packets, ..Report::default() };
            let _ = self.host.report(self.now, &report).expect("contract");
            self.heed();
        }
        if self.probe() {
            return;
        }
        let limit = in_force(self.of.application, self.now);
        let target = self.host.decision().target;
        let rate = if limit == Rate::ZERO { target } else { target.min(limit) };
        self.credit += rate.as_bps_f64() * 1e-3 / 8.0;
        while self.credit >= SIZE.as_bytes() as f64 {
            self.credit -= SIZE.as_bytes() as f64;
            self.send(None);
        }
    }
}

fn run<'a>(of: &'a Loop, lost: &'a mut dyn FnMut(u64, Time) -> bool) -> Run<'a> {
    let limits =
        Limits { start: Rate::from_kbps(of.start), max: Rate::from_kbps(of.max), ..Limits::default() };
    let mut run = Run {
        of,
        lost,
        host: host("gcc", "libwebrtc", &json!({"alr_probing": of.alr_probing}), &limits),
        now: Time::ZERO,
        pending: VecDeque::new(),
        credit: 0.0,
        free_at: Time::ZERO,
        packets: vec![],
        reported: 0,
        returning: VecDeque::new(),
        told: (0, 0),
        lost_in_all: 0,
        rtt: None,
        targets: vec![],
    };
    run.heed();
    while run.now < Time::from_secs(of.seconds) {
        run.step();
        run.now += STEP;
    }
    run
}

/// The target in force at an instant, of those that came into force one after the other.
fn at(targets: &[(Time, Rate)], now: Time) -> Rate {
    targets[..targets.partition_point(|&(since, _)| since <= now)]
        .last()
        .map_or(Rate::ZERO, |&(_, rate)| rate)
}

/// Compares a run with what was recorded: every packet by when it left and arrived, and every target.
fn compare(of: &Loop, packets: &str, targets: &str) -> usize {
    let cells =
        |line: &str| -> Vec<i64> { line.split(',').map(|cell| cell.parse().unwrap_or_default()).collect() };
    let recorded: Vec<Vec<i64>> = packets.lines().skip(1).map(cells).collect();
    let lost: Vec<bool> = recorded.iter().map(|row| of.lossy && row[3] < 0).collect();
    let mut is_lost = |sequence: u64, _: Time| lost.get(sequence as usize).copied().unwrap_or(false);
    let run = run(of, &mut is_lost);
    for (packet, row) in run.packets.iter().zip(&recorded) {
        let arrival = packet.arrival.map_or(-1, |at| at.as_nanos() / 1000);
        let here = (packet.sent.as_nanos() / 1000, arrival, packet.probe.map_or(-1, i64::from));
        assert_eq!(here, (row[1], row[3], row[4]), "{}: packet {}", of.name, packet.sequence);
    }
    assert_eq!(run.packets.len(), recorded.len(), "{}", of.name);
    let recorded: Vec<(Time, Rate)> = targets
        .lines()
        .skip(1)
        .map(cells)
        .map(|row| (Time::from_micros(row[1]), Rate::from_bps(row[2] as u64)))
        .collect();
    for ms in 0..of.seconds * 1000 {
        let now = Time::from_millis(ms);
        assert_eq!(at(&run.targets, now), at(&recorded, now), "{} at {now}", of.name);
    }
    run.packets.len()
}

#[test]
fn a_loop_of_its_own_goes_as_it_was_recorded() {
    let carried = |what| read(&format!("tests/data/gcc/goog_cc_bursty_{what}.csv"));
    let bursty = LOOPS.iter().find(|of| of.name == "bursty").expect("it is there");
    let short = Loop { seconds: 6, ..*bursty };
    assert_eq!(compare(&short, &carried("packets"), &carried("targets")), 1162);
    let mut packets = 0;
    for of in &LOOPS {
        let file = |what: &str| shared(&format!("vectors/goog_cc_{}_{what}.csv", of.name));
        let (Some(sent), Some(targets)) = (file("packets"), file("targets")) else { continue };
        packets += compare(of, &sent, &targets);
    }
    assert!(packets == 0 || packets == 51_415, "{packets}");
}

/// The targets, bit/s, of twenty seeds of ours in the end of each of these seconds, sorted.
fn seeds(loss: f64, seconds: &[i64]) -> Vec<Vec<u64>> {
    let of = Loop { start: 500, max: 5000, one_way_ms: 40, capacity: &[(0.0, 10_000)], ..PLAIN };
    let runs: Vec<Vec<(Time, Rate)>> = (1..=20)
        .map(|seed| {
            let mut luck = Stream::new(seed, "link", "loss");
            run(&of, &mut |_, now| now >= Time::from_secs(10) && luck.chance(loss)).targets
        })
        .collect();
    let sorted = |&second: &i64| {
        let mut targets: Vec<u64> =
            runs.iter().map(|run| at(run, Time::from_secs(second)).as_bps()).collect();
        targets.sort_unstable();
        targets
    };
    seconds.iter().map(sorted).collect()
}

#[test]
fn under_random_loss_the_median_is_within_libwebrtcs_seeds() {
    let seconds = [15, 20, 30, 39];
    for (loss, name) in [(0.2, "loss20"), (0.1, "loss10")] {
        let Some(text) = shared(&format!("vectors/goog_cc_{name}_seeds.csv")) else { continue };
        let ours = seeds(loss, &seconds);
        for (second, ours) in seconds.iter().zip(ours) {
            let there = text.lines().skip(1).filter_map(|line| {
                let (_, row) = line.split_once(',')?;
                row.strip_prefix(&format!("{},", second * 1_000_000))?.parse::<u64>().ok()
            });
            let theirs: Vec<u64> = there.collect();
            assert_eq!(theirs.len(), 10);
            let (least, most) = (theirs.iter().min().expect("ten"), theirs.iter().max().expect("ten"));
            let median = (ours[9] + ours[10]) / 2;
            println!("{name} at {second} s: {median}, libwebrtc {least} to {most}");
            assert!((*least..=*most).contains(&median), "{name} at {second} s: {median}, {least} to {most}");
        }
    }
}
