//! Controllers that live on receiver reports, in a closed loop: a drop-tail queue, losses by chance, and
//! RFC 3550's reports once in a while.

use crate::support::decisions::Decisions;
use crate::support::{golden, halves::said, host, means::within};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Write as _;
use tidegate_core::control::{Decision, Limits, LossReport, Report};
use tidegate_core::{ControllerHost, Rate, Size, Span, Stream, Time};

const SIZE: Size = Size::from_bytes(1200);

/// A path of one bottleneck, and the receiver at its end.
struct Path {
    host: ControllerHost,
    now: Time,
    capacity: Rate,
    /// Longest allowed queue, as time.
    queue: Span,
    /// One way.
    delay: Span,
    loss: f64,
    interval: Span,
    /// The application's maximum rate, in bursts of so many packets.
    wanted: Rate,
    burst: u32,
    /// Time of the application's next burst, and the part of the last one that is not sent yet.
    made: Time,
    waiting: u32,
    free_at: Time,
    next_send: Time,
    report_at: Time,
    /// Arrival times of packets, and their one-way delays.
    arriving: VecDeque<(Time, Span)>,
    returning: VecDeque<(Time, Report)>,
    sent: u32,
    reported: u32,
    received: u32,
    transit: Option<Span>,
    /// In seconds, of RFC 3550 appendix A.8.
    jitter: f64,
    delivered: u64,
    /// Each report that was heard, and the answer.
    heard: Vec<(Report, Decision)>,
    luck: Stream,
}

impl Path {
    fn new(name: &str, preset: &str, settings: &Value, limits: &Limits) -> Self {
        Self {
            host: host(name, preset, settings, limits),
            now: Time::ZERO,
            capacity: Rate::from_mbps(1),
            queue: Span::from_millis(300),
            delay: Span::from_millis(50),
            loss: 0.0,
            interval: Span::from_secs(1),
            wanted: Rate::MAX,
            burst: 1,
            made: Time::ZERO,
            waiting: 0,
            free_at: Time::ZERO,
            next_send: Time::ZERO,
            report_at: Time::from_secs(1),
            arriving: VecDeque::new(),
            returning: VecDeque::new(),
            sent: 0,
            reported: 0,
            received: 0,
            transit: None,
            jitter: 0.0,
            delivered: 0,
            heard: vec![],
            luck: Stream::new(1, "reports", "loss"),
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let data = self.arriving.front().map_or(Time::MAX, |&(at, _)| at);
            let back = self.returning.front().map_or(Time::MAX, |&(at, _)| at);
            self.now = data.min(back).min(self.report_at).min(self.next_send);
            if self.now >= end {
                self.now = end;
                return;
            }
            if self.now == data {
                self.arrive();
            } else if self.now == back {
                let (at, mut report) = self.returning.pop_front().expect("there is one");
                // the sender's part: the trip of a probe that goes now, and the way back
                report.report_rtt = Some(self.free_at.saturating_since(at) + self.delay + self.delay);
                let decision = self.host.report(at, &report).expect("contract");
                self.heard.push((report, *decision));
            } else if self.now == self.report_at {
                self.report();
            } else {
                self.send();
            }
        }
    }

    fn send(&mut self) {
        let waits = self.free_at.saturating_since(self.now);
        self.sent += 1;
        if !self.luck.chance(self.loss) && waits <= self.queue {
            self.free_at = self.free_at.max(self.now) + self.capacity.time_for(SIZE);
            let at = self.free_at + self.delay;
            self.arriving.push_back((at, at - self.now));
        }
        let decision = self.host.decision();
        let rate = self.wanted.min(decision.target).min(decision.pacing);
        self.made = self.made.max(self.now - Span::from_secs(2));
        if self.waiting == 0 {
            self.waiting = self.burst;
            self.made += rate.time_for(SIZE * u64::from(self.burst));
        }
        self.waiting -= 1;
        let due = if self.waiting == 0 { self.made } else { self.now };
        self.next_send = due.max(self.now + decision.min_gap.unwrap_or_default());
    }

    fn arrive(&mut self) {
        let (_, transit) = self.arriving.pop_front().expect("there is one");
        let before = self.transit.replace(transit).unwrap_or(transit);
        self.jitter += ((transit - before).abs().as_secs_f64() - self.jitter) / 16.0;
        self.received += 1;
        self.delivered += SIZE.as_bytes();
    }

    fn report(&mut self) {
        self.report_at = self.now + self.interval;
        let under_way = u32::try_from(self.arriving.len()).expect("few");
        // what is not on its way any more and has not come is lost
        let expected = self.sent - under_way - self.reported;
        let lost = expected.saturating_sub(self.received);
        if expected == 0 {
            return;
        }
        let loss = LossReport {
            fraction_lost: (lost * 256 / expected).min(255) as u8,
            cumulative_lost: 0,
            highest_sequence: self.sent,
            jitter: Span::from_secs_f64(self.jitter),
            expected,
        };
        (self.reported, self.received) = (self.reported + expected, 0);
        self.returning.push_back((self.now + self.delay, Report { loss: Some(loss), ..Report::default() }));
    }

    /// Share of the capacity that arrives in the next `seconds`.
    fn use_of(&mut self, seconds: i64) -> f64 {
        self.delivered = 0;
        self.run(Span::from_secs(seconds));
        self.delivered as f64 * 8.0 / seconds as f64 / self.capacity.as_bps_f64()
    }
}

const LIMITS: Limits = Limits {
    min: Rate::from_kbps(30),
    max: Rate::from_mbps(10),
    start: Rate::from_kbps(300),
    wanted: None,
    app_limited: false,
    route_changed: false,
};

/// The contents of each report and the target after it, once a second.
fn table(name: &str, preset: &str, mut path: Path) -> String {
    let mut text = format!(
        "{name} {preset}\nfrom  capacity    sent  goodput  lost  jitter  round trip    gap  target  (kb/s, %, ms, us)\n"
    );
    for (capacity, loss, seconds) in [(1000, 0.0, 30), (500, 0.0, 30), (2000, 0.0, 30), (2000, 0.05, 30)] {
        (path.capacity, path.loss) = (Rate::from_kbps(capacity), loss);
        for _ in 0..seconds / 5 {
            let (from, before) = (path.now.as_secs_f64(), path.sent);
            let used = path.use_of(5);
            let (report, decision) = path.heard.last().expect("one a second");
            let heard = report.loss.expect("a receiver report");
            let sent = f64::from(path.sent - before) * SIZE.as_bits() as f64 / 5e3;
            let gap = decision.min_gap.unwrap_or_default().as_millis_f64() * 1e3;
            writeln!(
                text,
                "{from:4.0} {capacity:9} {sent:7.0} {:8.0} {:5.1} {:7.2} {:11.1} {gap:6.0} {:7.0}",
                used * capacity as f64,
                f64::from(heard.fraction_lost) / 2.56,
                heard.jitter.as_millis_f64(),
                report.rtt().unwrap_or_default().as_millis_f64(),
                decision.target.as_bps_f64() / 1e3,
            )
            .expect("a string");
        }
    }
    let mut decisions = Decisions::default();
    path.heard.iter().for_each(|(_, decision)| decisions.add(decision));
    text + &decisions.line()
}

#[test]
fn what_they_do_is_pinned() {
    for (name, preset) in [
        ("lookup_table", "table"),
        ("lookup_table", "equation"),
        ("lookup_table", "none"),
        ("rrb-simd", "default"),
    ] {
        let mut path = Path::new(name, preset, &Value::Null, &LIMITS);
        if name == "lookup_table" {
            (path.wanted, path.burst) = (Rate::from_mbps(2), 10);
        }
        let file = format!("crates/controllers/tests/golden/{name}-{preset}.txt");
        golden(&file, &table(name, preset, path));
    }
}

#[test]
fn every_answer_is_the_first_one_for_its_fraction() {
    for (preset, remembers) in [("table", true), ("equation", false)] {
        let mut path = Path::new("lookup_table", preset, &Value::Null, &LIMITS);
        (path.wanted, path.burst) = (Rate::from_mbps(2), 10);
        path.loss = 0.02;
        path.run(Span::from_secs(300));
        let mut first = [None; 256];
        let (mut again, mut other) = (0, 0);
        for (report, decision) in &path.heard {
            let loss = report.loss.expect("a receiver report");
            // equation (1) in whole numbers, rounded to the nearest nanosecond
            let delay = i128::from(report.rtt().expect("a round trip").scaled(0.5).as_nanos());
            let product = delay * i128::from(loss.jitter.as_nanos()) * i128::from(loss.fraction_lost);
            let own = Span::from_nanos(((product + 5_000_000_000) / 10_000_000_000) as i64);
            let slot = &mut first[usize::from(loss.fraction_lost)];
            let expected = if remembers { *slot.get_or_insert(own) } else { own };
            again += i32::from(slot.is_some_and(|slot| slot != own));
            let expected = expected.min(LIMITS.min.time_for(SIZE));
            let found = decision.min_gap.unwrap_or_default();
            // f64 loses less than a nanosecond of a product below 2^63
            assert!((found - expected).abs() <= Span::from_nanos(1), "{preset}: {found} {expected}");
            other += i32::from(expected > Span::ZERO);
        }
        assert!(other > 250, "{preset}: {other} reports of loss");
        assert_eq!(again > 50, remembers, "{preset}: {again} answers that the equation would not give now");
    }
}

#[test]
fn a_queue_that_takes_all_is_left_alone_and_one_that_does_not_is_relieved() {
    // 800 kb/s fit: no loss, no gap, and all arrives
    let mut path = Path::new("lookup_table", "table", &Value::Null, &LIMITS);
    path.wanted = Rate::from_kbps(800);
    path.run(Span::from_secs(10));
    within("use", path.use_of(60), 0.8 * 0.999, 0.8 * 1.001);
    assert!(path.heard.iter().all(|(_, decision)| decision.min_gap.is_none()));
    // with a gap of 15 ms from the start: 9600 bits each 15 ms are 640 kb/s
    let mut path = Path::new("lookup_table", "table", &json!({ "default_gap": 15_000 }), &LIMITS);
    path.wanted = Rate::from_kbps(800);
    path.run(Span::from_secs(10));
    within("use with a default gap", path.use_of(60), 0.64 * 0.999, 0.64 * 1.001);
}

#[test]
fn the_gap_is_as_good_as_the_jitter() {
    let lost = |preset, burst| {
        let mut path = Path::new("lookup_table", preset, &Value::Null, &LIMITS);
        (path.wanted, path.burst) = (Rate::from_mbps(2), burst);
        path.run(Span::from_secs(10));
        let (before, delivered) = (path.sent, path.use_of(120) * 120e6 / SIZE.as_bits() as f64);
        1.0 - delivered / f64::from(path.sent - before)
    };
    // twice the capacity: half is lost
    within("lost without control", lost("none", 1), 0.499, 0.501);
    within("lost without control, in frames", lost("none", 10), 0.495, 0.505);
    // packet by packet a full queue has no jitter, and of a product with nothing comes no gap
    within("lost with the table", lost("table", 1), 0.499, 0.501);
    within("lost with the equation", lost("equation", 1), 0.499, 0.501);
    // frames of ten packets have some
    within("lost with the table, in frames", lost("table", 10), 0.01, 0.45);
    within("lost with the equation, in frames", lost("equation", 10), 0.01, 0.45);
}

#[test]
fn rrb_simd_finds_the_capacity_before_it_loses() {
    let mut path = Path::new("rrb-simd", "default", &Value::Null, &LIMITS);
    path.run(Span::from_secs(60));
    within("use of 1 Mb/s", path.use_of(300), 0.6, 1.0);
    // 2 s of queue take longer to fill than a report to come: congestion shows in jitter and delay before it
    // shows in loss, to those who look
    let lossy = |factor: f64| {
        let mut path = Path::new("rrb-simd", "default", &json!({ "delay_factor": factor }), &LIMITS);
        path.queue = Span::from_secs(2);
        path.run(Span::from_secs(600));
        let lossy =
            |(report, _): &&(Report, Decision)| report.loss.is_some_and(|loss| loss.fraction_lost > 0);
        path.heard.iter().filter(lossy).count()
    };
    assert_eq!(lossy(0.5), 0);
    within("reports of loss without the delay factor", lossy(1.0) as f64, 10.0, 100.0);
    // four times the capacity: found within a minute, a quarter of it: kept
    path.capacity = Rate::from_mbps(4);
    path.run(Span::from_secs(60));
    within("use of 4 Mb/s", path.use_of(120), 0.6, 1.0);
    path.capacity = Rate::from_kbps(250);
    path.run(Span::from_secs(60));
    within("use of 250 kb/s", path.use_of(120), 0.5, 1.0);
    within("target", path.host.decision().target.as_bps_f64(), 60e3, 500e3);
}

#[test]
fn after_trouble_they_find_back() {
    type Trouble = (&'static str, fn(&mut Path));
    let troubles: [Trouble; 3] = [
        ("half the packets lost", |path| path.loss = 0.5),
        ("a tenth of the capacity", |path| path.capacity = Rate::from_kbps(100)),
        ("no reports", |path| path.report_at = path.now + Span::from_secs(20)),
    ];
    for (what, trouble) in troubles {
        for (name, preset) in
            [("lookup_table", "table"), ("lookup_table", "equation"), ("rrb-simd", "default")]
        {
            let mut path = Path::new(name, preset, &Value::Null, &LIMITS);
            // what fits, or as much as there is
            path.wanted = if name == "rrb-simd" { Rate::MAX } else { Rate::from_kbps(900) };
            path.run(Span::from_secs(30));
            let before = path.use_of(30);
            trouble(&mut path);
            path.run(Span::from_secs(20));
            (path.loss, path.capacity) = (0.0, Rate::from_mbps(1));
            path.run(Span::from_secs(60));
            within(&format!("{name} {preset} after {what}"), path.use_of(60) / before, 0.75, 1.3);
        }
    }
}

#[test]
fn internals_are_said() {
    let mut path = Path::new("lookup_table", "table", &Value::Null, &LIMITS);
    path.host.notes.wanted = true;
    path.wanted = Rate::from_mbps(2);
    path.run(Span::from_secs(20));
    for name in ["fraction_lost", "jitter_ms", "gap_us", "table_size"] {
        assert!(said(&path.host.notes, name).is_some_and(f64::is_finite), "{name}");
    }
}
