//! The preset `ericsson-2026-07` beside recordings of the program that it follows.

use crate::support::{host, read, shared};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use tidegate_core::control::{Limits, NewFrame, PacketResult, Report, Sent};
use tidegate_core::{ControllerHost, Ecn, Rate, RemoteTime, Size, Span, Stream, Time};

/// Rows of a file of numbers, without the first line.
fn rows(text: &str) -> Vec<Vec<f64>> {
    let row = |line: &str| line.split(',').map(|cell| cell.parse().expect("a number")).collect();
    text.lines().skip(1).map(row).collect()
}

/// The files' seconds in ticks of the program's clock.
fn ticks(seconds: f64) -> i64 {
    (seconds * 65_536.0).round() as i64
}

/// The instant of a frame, of which the files have four digits, in ticks.
fn on_frame_grid(seconds: f64, fps: f64) -> i64 {
    let period = (65_536.0 / fps).round();
    ((seconds * 65_536.0 / period).round() * period) as i64
}

/// The limits of the recordings' loop.
fn limits() -> Limits {
    let [min, start, max] = [100_000, 1_000_000, 20_000_000].map(Rate::from_bps);
    Limits { min, max, start, ..Limits::default() }
}

struct Packet {
    size: u64,
    sent: Time,
    known: bool,
}

/// Contents of a report of the program's receiver: sequence number, arrival, mark. It has a block more
/// than it says (N + 1).
fn blocks(hex: &str) -> Vec<(u16, RemoteTime, Ecn)> {
    let byte = |i: usize| u64::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal");
    let word = |i: usize| byte(i) << 8 | byte(i + 1);
    let length = hex.len() / 2;
    let stamp = word(length - 4) << 16 | word(length - 2);
    let (begin, count) = (word(12), word(14) + 1);
    let mut said = vec![];
    for block in 0..count {
        let bits = word(16 + 2 * block as usize);
        if bits & 0x8000 == 0 {
            continue;
        }
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(bits >> 13 & 3) as usize];
        // both in units of 1/65536 s
        let arrival = stamp as i64 - ((bits & 0x1fff) << 6) as i64;
        let arrival = RemoteTime::from_nanos(arrival * 1_000_000_000 / 65_536);
        said.push(((begin + block) as u16, arrival, ecn));
    }
    said
}

/// The recording `name` fed to our controller as it was: what the program and ours say after each 50 ms.
struct Replay {
    host: ControllerHost,
    packets: Vec<Packet>,
}

impl Replay {
    fn report(&mut self, now: Time, hex: &str) {
        let mut packets = vec![];
        for (sequence, arrival, ecn) in blocks(hex) {
            let next = self.packets.len() as u64;
            let low = (next & !0xffff) | u64::from(sequence);
            let sequence = if low >= next { low.wrapping_sub(65_536) } else { low } as usize;
            let Some(packet) = self.packets.get_mut(sequence) else { continue };
            if !std::mem::replace(&mut packet.known, true) {
                let size = Size::from_bytes(packet.size);
                packets.push(PacketResult {
                    sequence: sequence as u64,
                    size,
                    sent: packet.sent,
                    arrival: Some(arrival),
                    ecn,
                    probe: None,
                });
            }
        }
        packets.sort_by_key(|packet| packet.sequence);
        let report = Report { packets, ..Report::default() };
        self.host.report(now, &report).expect("the contract is kept");
    }
}

/// Each row's time, then target, window and round trip as recorded and as ours. `file` reads one of a recording's files.
fn open_loop(name: &str, file: impl Fn(&str) -> Option<String>) -> Option<Vec<[f64; 7]>> {
    let ecn = if name == "l4s" { "l4s" } else { "off" };
    let subject = host("scream", "ericsson-2026-07", &json!({"ecn": ecn}), &limits());
    replayed(subject, 50.0, |what| file(&format!("scream_v2_{name}_10m_{what}.csv")))
}

/// A frame's bytes, and its packets: when they leave (in ticks), their bytes and numbers.
type Frame = (u64, Vec<(i64, u64, usize)>);

/// A recording fed to `subject`, with as many frames a second as it has.
fn replayed(
    subject: ControllerHost,
    fps: f64,
    file: impl Fn(&str) -> Option<String>,
) -> Option<Vec<[f64; 7]>> {
    let [packets, series, feedback] = ["packets", "series", "feedback"].map(file);
    let row = |line: &str| line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect::<Vec<f64>>();
    let packets: Vec<Vec<f64>> = packets?.lines().skip(1).map(row).collect();
    let (series, feedback) = (rows(&series?), feedback?);
    let mut replay = Replay { host: subject, packets: vec![] };
    replay.host.notes.wanted = true;
    // what happens when, in ticks, and in which order: a frame, what leaves with it, a report, what leaves after it, a row
    let mut events: BTreeMap<(i64, u8), Vec<usize>> = BTreeMap::new();
    let mut frames: BTreeMap<i64, Frame> = BTreeMap::new();
    for (k, row) in packets.iter().enumerate() {
        let frame = frames.entry(on_frame_grid(row[1], fps)).or_default();
        frame.0 += row[3] as u64;
        frame.1.push((ticks(row[2]), row[3] as u64, k));
        let kind = if ticks(row[2]) == on_frame_grid(row[1], fps) { 2 } else { 4 };
        events.entry((ticks(row[2]), kind)).or_default().push(k);
    }
    for &frame in frames.keys() {
        events.entry((frame, 1)).or_default();
    }
    let reports: Vec<(i64, &str)> = feedback
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').expect("two cells"))
        .map(|(time, hex)| (ticks(time.parse().expect("a time")), hex))
        .collect();
    for (k, &(time, _)) in reports.iter().enumerate() {
        events.entry((time, 3)).or_default().push(k);
    }
    for (k, row) in series.iter().enumerate() {
        events.entry(((row[0] * 65_536.0).ceil() as i64, 5)).or_default().push(k);
    }
    let mut found = vec![];
    let mut notes: BTreeMap<String, f64> = BTreeMap::new();
    for ((tick, kind), which) in events {
        let now = Time::from_nanos((tick * 1_000_000_000 + 32_768) / 65_536);
        match kind {
            1 => {
                let size = Size::from_bytes(frames[&tick].0);
                // the oldest frame that still waits, and what waits of all
                let old = |frame: &Frame| {
                    frame.1.iter().filter(|(left, ..)| *left >= tick).map(|(_, bytes, _)| bytes).sum::<u64>()
                };
                let waiting = frames.range(tick - 65_536..tick).map(|(at, frame)| (at, old(frame)));
                let waiting = waiting.filter(|(_, bytes)| *bytes > 0);
                let oldest = waiting.clone().next().map_or(tick, |(&at, _)| at);
                let backlog = size + Size::from_bytes(waiting.map(|(_, bytes)| bytes).sum());
                let pacer_delay = Span::from_nanos((tick - oldest) * 1_000_000_000 / 65_536);
                let frame = NewFrame { video: true, size, backlog, pacer_delay };
                replay.host.frame(now, &frame).expect("the contract is kept");
            }
            2 | 4 => {
                for k in which {
                    let size = packets[k][3] as u64;
                    replay.packets.push(Packet { size, sent: now, known: false });
                    let size = Size::from_bytes(size);
                    // packets leave in the order of their frames: what waits of those that have come by now
                    let waiting = frames.range(..=tick).rev().take(100);
                    let waiting = waiting.flat_map(|(_, frame)| &frame.1).filter(|(_, _, later)| *later > k);
                    let backlog = Size::from_bytes(waiting.map(|(_, bytes, _)| bytes).sum());
                    let sent = Sent { sequence: k as u64, size, in_flight: size, backlog };
                    replay.host.sent(now, &sent).expect("the contract is kept");
                }
            }
            3 => {
                for k in which {
                    replay.report(now, reports[k].1);
                    notes.extend(replay.host.notes.values.iter().map(|(n, v)| (n.to_string(), *v)));
                }
            }
            _ => {
                let row = &series[which[0]];
                let target = replay.host.decision().target.as_bps_f64();
                let note = |name: &str| notes.get(name).copied().unwrap_or(0.0);
                found.push([
                    row[0],
                    row[1],
                    target,
                    row[2],
                    note("ref_wnd_bytes"),
                    row[3],
                    note("s_rtt_ms") / 1e3,
                ]);
            }
        }
    }
    Some(found)
}

/// Checks the window and the target of each row within a tolerance: the program computes in 32-bit floats, and a
/// report that arrives in the instant of a row may be on either side of it, which moves the round trip by up to an
/// eighth of its change.
#[test]
fn recorded_feedback_gives_the_recorded_windows_and_targets() {
    for name in ["noecn", "l4s"] {
        let whole = |file: &str| shared(&format!("vectors/{file}"));
        let Some(found) = open_loop(name, whole) else { continue };
        assert_eq!(found.len(), 400);
        // before the first report ours has said nothing
        let found = &found[1..];
        for (what, column, usual) in [("target", 1, 0.0005), ("window", 3, 0.0005), ("round trip", 5, 0.002)]
        {
            let off = |row: &[f64; 7]| (row[column + 1] / row[column] - 1.0).abs();
            let worst = found.iter().map(off).fold(0.0, f64::max);
            let far = found.iter().filter(|row| off(row) > usual).count();
            let mean = found.iter().map(off).sum::<f64>() / found.len() as f64;
            println!("{name} {what}: mean {mean:.6}, worst {worst:.4}, {far} rows above {usual}");
            assert!(worst < if column == 5 { 0.04 } else { 0.01 }, "{name} {what}: {worst}");
            assert!(far <= found.len() / 100, "{name} {what}: {far} rows");
        }
    }
}

#[test]
fn the_first_reports_give_the_recorded_windows_and_targets() {
    let found =
        open_loop("l4s", |file| Some(read(&format!("tests/data/scream/{file}")))).expect("they are here");
    assert_eq!(found.len(), 12);
    // the window has grown from 10000 bytes to 19530
    for row in &found[1..] {
        for column in [1, 3, 5] {
            let off = (row[column + 1] / row[column] - 1.0).abs();
            assert!(off < 0.002, "{row:?}");
        }
    }
}

/// The same loop with 5 % of packets lost, which the program was told without time stamps of frames.
#[test]
fn losses_give_the_windows_and_targets_of_the_program() {
    let run = |stamps: bool| {
        let settings = json!({"ecn": "off", "frame_stamps": stamps});
        let subject = host("scream", "ericsson-2026-07", &settings, &limits());
        replayed(subject, 50.0, |what| Some(read(&format!("tests/data/scream/loss5_{what}.csv"))))
            .expect("here")
    };
    let off = |row: &[f64; 7], column: usize| (row[column + 1] / row[column] - 1.0).abs();
    let found = run(false);
    assert_eq!(found.len(), 15);
    for row in &found[1..] {
        assert!(off(row, 1) < 0.001 && off(row, 3) < 0.001 && off(row, 5) < 0.003, "{row:?}");
    }
    // with the time stamps of frames no loss would be found by then, and the window not be reduced
    let found = run(true);
    assert!(off(&found[14], 3) > 0.5, "{:?}", found[14]);
}

/// Ten packets in the first half of each frame period, of which every twentieth is lost: 30 ms late beside a packet of a later
/// frame is not late beside the frames, and then it is found only 512 packets behind.
#[test]
fn the_time_stamps_of_frames_hide_losses_for_512_packets() {
    let loss_rate = |stamps: bool, frames: u64| {
        let settings = json!({"ecn": "off", "frame_stamps": stamps});
        let mut host = host("scream", "ericsson-2026-07", &settings, &limits());
        host.notes.wanted = true;
        let size = Size::from_bytes(1000);
        for frame in 0..frames {
            let now = Time::from_millis(20 * frame as i64);
            let size_of_all = Size::from_bytes(10_000);
            let told =
                NewFrame { video: true, size: size_of_all, backlog: size_of_all, pacer_delay: Span::ZERO };
            host.frame(now, &told).expect("the contract is kept");
            let mut packets = vec![];
            for k in 0..10 {
                let (sequence, sent) = (10 * frame + k, now + Span::from_millis(k as i64));
                let backlog = Size::from_bytes(1000 * (9 - k));
                host.sent(sent, &Sent { sequence, size, in_flight: size, backlog })
                    .expect("the contract is kept");
                let arrival = Some(RemoteTime::from_nanos((sent + DELAY).as_nanos()));
                if sequence % 20 != 5 {
                    packets.push(PacketResult {
                        sequence,
                        size,
                        sent,
                        arrival,
                        ecn: Ecn::NotEct,
                        probe: None,
                    });
                }
            }
            let report = Report { packets, ..Report::default() };
            host.report(now + Span::from_millis(18), &report).expect("the contract is kept");
        }
        host.notes.values.iter().find(|(name, _)| *name == "loss_rate").expect("it notes that").1
    };
    // 0.0025 of each loss
    assert!((0.01..0.02).contains(&loss_rate(false, 20)), "{}", loss_rate(false, 20));
    assert_eq!(loss_rate(true, 50), 0.0);
    assert!((0.01..0.02).contains(&loss_rate(true, 65)), "{}", loss_rate(true, 65));
}

/// The recordings' loop: 50 frames a second of equal size, 10 Mbit/s, 12.5 ms each way; without `marks` a queue of 500 ms, else marks of
/// a share that rises from 2 to 10 ms of queue.
struct Loop {
    path: Path,
    host: ControllerHost,
    marks: bool,
    luck: Stream,
    now: Time,
    /// Frames that wait: when they came, and what is left of them.
    waiting: VecDeque<(Time, u64)>,
    next_send: Time,
    free_at: Time,
    sent: Vec<(u64, Time)>,
    in_flight: u64,
    /// Packets on their way to the receiver: number, arrival, mark, and whether it ends a frame.
    arriving: VecDeque<(usize, Time, bool, bool)>,
    unreported: Vec<(usize, Time, bool)>,
    reported_at: Time,
    returning: VecDeque<(Time, Report, usize)>,
    /// Packets that arrived after 5 s: bytes, delay in the network, marks.
    bytes: u64,
    delay: f64,
    packets: u64,
    marked: u64,
}

const DELAY: Span = Span::from_micros(12_500);

/// Differences from the recordings' loop.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// In Mbit/s, and from 7 to 13 s.
    capacity: f64,
    meanwhile: f64,
    loss: f64,
    /// A queue, in ms, above which each packet is marked.
    threshold: Option<f64>,
    delay: Span,
    frames: u64,
}

impl Default for Path {
    fn default() -> Self {
        Self { capacity: 10.0, meanwhile: 10.0, loss: 0.0, threshold: None, delay: DELAY, frames: 50 }
    }
}

impl Loop {
    fn new(host: ControllerHost, marks: bool) -> Self {
        Self {
            path: Path::default(),
            host,
            marks,
            luck: Stream::new(1, "loop", "marks"),
            now: Time::ZERO,
            waiting: VecDeque::new(),
            next_send: Time::ZERO,
            free_at: Time::ZERO,
            sent: vec![],
            in_flight: 0,
            arriving: VecDeque::new(),
            unreported: vec![],
            reported_at: Time::ZERO,
            returning: VecDeque::new(),
            bytes: 0,
            delay: 0.0,
            packets: 0,
            marked: 0,
        }
    }

    fn frame(&mut self) {
        let payload = self.host.decision().target.as_bps() / 8 / self.path.frames;
        let size = payload + 12 * payload.div_ceil(1000);
        self.waiting.push_back((self.now, size));
        let backlog = Size::from_bytes(self.waiting.iter().map(|(_, bytes)| bytes).sum());
        let pacer_delay = self.now - self.waiting[0].0;
        let frame = NewFrame { video: true, size: Size::from_bytes(size), backlog, pacer_delay };
        self.host.frame(self.now, &frame).expect("the contract is kept");
    }

    fn send(&mut self) {
        while let Some(&mut (_, ref mut left)) = self.waiting.front_mut() {
            let size = (*left).min(1012);
            let window = self.host.decision().window.expect("it has one").as_bytes();
            if self.next_send > self.now || self.in_flight + size > window {
                return;
            }
            *left -= size;
            let ends = *left == 0;
            if ends {
                self.waiting.pop_front();
            }
            let sequence = self.sent.len();
            self.sent.push((size, self.now));
            self.in_flight += size;
            let queue = self.free_at.saturating_since(self.now);
            let path = self.path;
            if queue < Span::from_millis(500) && (path.loss == 0.0 || self.luck.uniform() >= path.loss) {
                let queue = queue.as_millis_f64();
                let share = match path.threshold {
                    Some(threshold) => f64::from(queue > threshold),
                    None => (queue - 2.0) / 8.0,
                };
                let marked = self.marks && self.luck.uniform() < share;
                let meanwhile = (Time::from_secs(7)..Time::from_secs(13)).contains(&self.now);
                let capacity = if meanwhile { path.meanwhile } else { path.capacity };
                let takes = Rate::from_bps_f64(capacity * 1e6).time_for(Size::from_bytes(size));
                self.free_at = self.free_at.max(self.now) + takes;
                self.arriving.push_back((sequence, self.free_at + path.delay, marked, ends));
            }
            let size = Size::from_bytes(size);
            let sent = Sent {
                sequence: sequence as u64,
                size,
                in_flight: Size::from_bytes(self.in_flight),
                backlog: Size::from_bytes(self.waiting.iter().map(|(_, bytes)| bytes).sum()),
            };
            self.host.sent(self.now, &sent).expect("the contract is kept");
            self.next_send = self.now + self.host.decision().pacing.time_for(size);
        }
    }

    fn arrive(&mut self) {
        while let Some(&(sequence, at, marked, ends)) = self.arriving.front() {
            if at > self.now {
                break;
            }
            self.arriving.pop_front();
            let (size, sent) = self.sent[sequence];
            if at >= Time::from_secs(5) {
                self.bytes += size;
                self.packets += 1;
                self.marked += u64::from(marked);
                self.delay += (at - sent).as_secs_f64();
            }
            self.unreported.push((sequence, at, marked));
            if self.unreported.len() >= 16 || ends || at - self.reported_at > Span::from_millis(40) {
                self.report(at);
            }
        }
    }

    fn report(&mut self, at: Time) {
        self.reported_at = at;
        let last = self.unreported.last().map_or(0, |last| last.0);
        let packets = self.unreported.drain(..).map(|(sequence, arrival, marked)| {
            let (size, sent) = self.sent[sequence];
            // RFC 8888: an age in 1/1024 s, rounded down, before a stamp in 1/65536 s
            let age = (at - arrival).as_nanos() * 1024 / 1_000_000_000;
            let stamp = at.as_nanos() * 65_536 / 1_000_000_000;
            let arrival = (stamp - age * 64) * 1_000_000_000 / 65_536;
            PacketResult {
                sequence: sequence as u64,
                size: Size::from_bytes(size),
                sent,
                arrival: Some(RemoteTime::from_nanos(arrival)),
                ecn: if marked { Ecn::Ce } else { Ecn::NotEct },
                probe: None,
            }
        });
        let report = Report { packets: packets.collect(), ..Report::default() };
        self.returning.push_back((at + self.path.delay, report, last));
    }

    fn run(&mut self, until: Time) {
        // a grid finer than the shortest pacing interval
        let tick = Span::from_micros(20);
        let mut frame_at = Time::ZERO;
        while self.now < until {
            self.arrive();
            while self.returning.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, report, last)) = self.returning.pop_front() else { break };
                self.in_flight = self.sent[last + 1..].iter().map(|(size, _)| size).sum();
                self.host.report(self.now, &report).expect("the contract is kept");
            }
            if self.now >= frame_at {
                self.frame();
                frame_at += Span::from_millis(1000 / self.path.frames as i64);
            }
            self.send();
            self.now += tick;
        }
    }
}

/// Means of a recording from 5 to 20 s: bit/s, seconds on the way, share of marks.
fn recorded(name: &str) -> Option<[f64; 3]> {
    let text = shared(&format!("vectors/scream_v2_{name}_10m_packets.csv"))?;
    let rows: Vec<Vec<f64>> = rows(&text).into_iter().filter(|row| row[4] >= 5.0 && row[4] < 20.0).collect();
    let count = rows.len() as f64;
    let sum = |of: &dyn Fn(&Vec<f64>) -> f64| rows.iter().map(of).sum::<f64>();
    Some([sum(&|row| row[3]) * 8.0 / 15.0, sum(&|row| row[4] - row[2]) / count, sum(&|row| row[5]) / count])
}

/// The recordings' means, so that the test says something where the files are absent.
const MEANS: [(&str, [f64; 3]); 2] =
    [("noecn", [9_741_271.0, 0.028_768, 0.0]), ("l4s", [8_496_419.0, 0.015_090, 0.043_087])];

#[test]
fn in_the_recordings_loop_it_comes_to_the_same() {
    for (name, kept) in MEANS {
        let [rate, delay, marks] = recorded(name).unwrap_or(kept);
        let ecn = if name == "l4s" { "l4s" } else { "off" };
        let host = host("scream", "ericsson-2026-07", &json!({"ecn": ecn}), &limits());
        let mut ours = Loop::new(host, name == "l4s");
        ours.run(Time::from_secs(20));
        let count = ours.packets as f64;
        let found = [ours.bytes as f64 * 8.0 / 15.0, ours.delay / count, ours.marked as f64 / count];
        println!("{name}: {found:?}, recorded {rate} {delay} {marks}");
        assert!((found[0] / rate - 1.0).abs() < 0.05, "{name}: {} bit/s, recorded {rate}", found[0]);
        assert!((found[1] - delay).abs() < 0.003, "{name}: {} s on the way, recorded {delay}", found[1]);
        assert!((found[2] - marks).abs() <= 0.2 * marks, "{name}: {} marks, recorded {marks}", found[2]);
    }
}

/// More paths: the program's means from 5 to 20 s in Mbit/s, ms on the way and share of marks, of eight runs where there is loss.
#[test]
fn beside_losses_steps_and_marks_it_comes_to_the_same() {
    let base = Path::default();
    let far = Path { delay: Span::from_millis(50), ..base };
    let low = Path { capacity: 0.5, meanwhile: 0.5, ..base };
    let lossy = |loss| Path { loss, ..base };
    let marking = |threshold| Path { threshold: Some(threshold), ..base };
    for (path, ecn, stamps, [rate, delay, marks]) in [
        (lossy(0.01), "off", false, [4.953, 16.07, 0.0]),
        (lossy(0.01), "off", true, [5.991, 16.60, 0.0]),
        (lossy(0.05), "off", false, [1.624, 13.22, 0.0]),
        (lossy(0.05), "off", true, [1.643, 13.23, 0.0]),
        (lossy(0.01), "l4s", false, [5.698, 14.13, 0.0171]),
        (lossy(0.01), "l4s", true, [6.786, 14.56, 0.0279]),
        (Path { meanwhile: 2.0, ..base }, "off", true, [5.539, 27.04, 0.0]),
        (Path { meanwhile: 2.0, ..base }, "l4s", true, [5.377, 16.48, 0.0551]),
        (low, "off", true, [0.428, 37.79, 0.0]),
        (marking(5.0), "classic", true, [8.006, 14.82, 0.0041]),
        (marking(2.0), "l4s", true, [7.715, 14.33, 0.0530]),
        (far, "off", true, [8.945, 55.77, 0.0]),
        (far, "l4s", true, [7.704, 51.98, 0.0121]),
        (Path { frames: 25, ..base }, "off", true, [9.660, 28.81, 0.0]),
        (Path { frames: 25, ..base }, "l4s", true, [7.441, 14.97, 0.0419]),
    ] {
        let runs = if path.loss > 0.0 { 8 } else { 1 };
        let mut found = [0.0; 3];
        for seed in 1..=runs {
            let settings = json!({"ecn": ecn, "frame_stamps": stamps});
            let mut ours = Loop::new(host("scream", "ericsson-2026-07", &settings, &limits()), ecn != "off");
            (ours.path, ours.luck) = (path, Stream::new(seed, "loop", "marks"));
            ours.run(Time::from_secs(20));
            let count = ours.packets as f64;
            let means =
                [ours.bytes as f64 * 8.0 / 15e6, ours.delay / count * 1e3, ours.marked as f64 / count];
            found.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean / runs as f64);
        }
        let what = format!("{path:?}, {ecn}, {stamps}: {found:?} beside {rate} {delay} {marks}");
        println!("{what}");
        assert!((found[0] / rate - 1.0).abs() < 0.05, "{what}");
        assert!((found[1] - delay).abs() < 3.0, "{what}");
        assert!((found[2] - marks).abs() <= 0.2 * marks, "{what}");
    }
}
