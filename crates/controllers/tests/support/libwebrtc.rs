//! A closed loop of the form in which libwebrtc's own recordings were made: steps of 1 ms, no pacer, packets of 1200
//! bytes at the target, a drop-tail queue of 400 ms.

use super::{host, result};
use serde_json::json;
use std::collections::VecDeque;
use tidegate_core::control::{Decision, Limits, LossReport, PacketResult, Probe, Report, Sent};
use tidegate_core::{ControllerHost, Rate, RemoteTime, Size, Span, Time};

const SIZE: Size = Size::from_bytes(1200);
const QUEUE: Span = Span::from_millis(400);
const STEP: Span = Span::from_millis(1);

/// The settings of a recording. Rates are in kbit/s, from a second on.
pub struct Loop {
    pub name: &'static str,
    pub seconds: i64,
    pub start: u64,
    pub max: u64,
    pub one_way_ms: i64,
    pub alr_probing: bool,
    pub capacity: &'static [(f64, u64)],
    /// The application's rate; zero: as much as the target allows.
    pub application: &'static [(f64, u64)],
    /// Losses by number, from the recording.
    pub lossy: bool,
    /// Whether a probe's time begins with its first packet, as in libwebrtc's own pacer, and not when it was asked for.
    pub own_time: bool,
    /// Offset of the receiver reports from each full second.
    pub report_phase_ms: i64,
}

/// The usual one, without a link.
pub const PLAIN: Loop = Loop {
    name: "",
    seconds: 40,
    start: 300,
    max: 10_000,
    one_way_ms: 25,
    alr_probing: true,
    capacity: &[],
    application: &[(0.0, 0)],
    lossy: false,
    own_time: false,
    report_phase_ms: 0,
};

/// Faults of the path; the default methods have none.
pub trait Path {
    /// Whether a packet is lost before the queue.
    fn lost(&mut self, _sequence: u64, _now: Time, _probe: bool) -> bool {
        false
    }

    /// The copies of a feedback that arrive: extra delay and contents of each.
    fn feedback(&mut self, _now: Time, packets: Vec<PacketResult>) -> Vec<(Span, Vec<PacketResult>)> {
        vec![(Span::ZERO, packets)]
    }

    /// The receiver report that arrives, if any.
    fn receiver_report(&mut self, _now: Time, report: Report) -> Option<Report> {
        Some(report)
    }

    /// The far end's clock, in nanoseconds.
    fn clock(&self, at: Time) -> i64 {
        at.as_nanos()
    }

    /// Beyond the propagation delay of the loop.
    fn longer(&self, _now: Time) -> Span {
        Span::ZERO
    }

    /// Called in each step, before all else.
    fn step(&mut self, _now: Time, _host: &mut ControllerHost) {}

    /// Sees each decision.
    fn decided(&mut self, _now: Time, _decision: &Decision) {}
}

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

pub struct Run<'a> {
    of: &'a Loop,
    path: &'a mut dyn Path,
    host: ControllerHost,
    now: Time,
    pending: VecDeque<Pending>,
    credit: f64,
    free_at: Time,
    /// All that was sent; arrivals are by the true time.
    pub packets: Vec<PacketResult>,
    reported: usize,
    returning: VecDeque<(Time, Vec<PacketResult>)>,
    /// Packets lost and received as feedback has told since the last receiver report, lost in all, a round trip.
    told: (u32, u32),
    lost_in_all: i32,
    rtt: Option<Span>,
    /// When each target came into force.
    pub targets: Vec<(Time, Rate)>,
}

impl Run<'_> {
    /// Takes up the last decision.
    fn heed(&mut self) {
        let decision: Decision = *self.host.decision();
        self.path.decided(self.now, &decision);
        let asked = self.now;
        let pending = |&probe| Pending { probe, asked, sent: Size::ZERO, packets: 0 };
        self.pending.extend(decision.probes.iter().map(pending));
        if self.targets.last().is_none_or(|&(_, target)| target != decision.target) {
            self.targets.push((self.now, decision.target));
        }
    }

    fn one_way(&self) -> Span {
        Span::from_millis(self.of.one_way_ms) + self.path.longer(self.now)
    }

    fn send(&mut self, probe: Option<u32>) {
        let sequence = self.packets.len() as u64;
        let wait = self.free_at.saturating_since(self.now);
        let lost = self.path.lost(sequence, self.now, probe.is_some()) || wait > QUEUE;
        let mut arrival = None;
        if !lost {
            self.free_at = self.free_at.max(self.now) + in_force(self.of.capacity, self.now).time_for(SIZE);
            arrival = Some((self.free_at + self.one_way()).as_nanos());
        }
        self.packets.push(PacketResult { probe, ..result(sequence, SIZE.as_bytes(), self.now, arrival) });
        let sent = Sent { sequence, size: SIZE, in_flight: SIZE, backlog: Size::ZERO };
        let _ = self.host.sent(self.now, &sent).expect("contract");
        self.heed();
    }

    /// A burst of the present probe if one is due; whether there is a probe.
    fn probe(&mut self) -> bool {
        let Some(pending) = self.pending.front_mut() else { return false };
        if self.of.own_time && pending.packets == 0 {
            pending.asked = self.now;
        }
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
        let before = *self.host.decision();
        self.path.step(self.now, &mut self.host);
        if *self.host.decision() != before {
            self.heed();
        }
        while self.host.decision().alarm.is_some_and(|at| at <= self.now) {
            let _ = self.host.alarm(self.now).expect("contract");
            self.heed();
        }
        let one_way = self.one_way();
        let every = |ms: i64| self.now > Time::ZERO && self.now.as_nanos() % (ms * 1_000_000) == 0;
        if every(50) {
            let closing = RemoteTime::from_nanos(self.now.as_nanos());
            let open = &self.packets[self.reported..];
            let arrived = |packet: &PacketResult| packet.arrival.is_some_and(|at| at <= closing);
            let count = open.iter().rposition(arrived).map_or(0, |last| last + 1);
            if count > 0 {
                let packets = open[..count].to_vec();
                self.reported += count;
                for (late, packets) in self.path.feedback(self.now, packets) {
                    let comes = self.now + one_way + late;
                    let place = self.returning.partition_point(|&(at, _)| at <= comes);
                    self.returning.insert(place, (comes, packets));
                }
            }
        }
        let phase = Time::from_millis(self.of.report_phase_ms);
        if self.now > phase && (self.now - phase).as_nanos() % 1_000_000_000 == 0 {
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
            if let Some(report) = self.path.receiver_report(self.now, report) {
                let _ = self.host.report(self.now, &report).expect("contract");
                self.heed();
            }
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
            let path = &self.path;
            let by_their_clock = packets.into_iter().map(|packet| {
                let arrival = packet.arrival.map(|at| path.clock(Time::from_nanos(at.as_nanos())));
                PacketResult { arrival: arrival.map(RemoteTime::from_nanos), ..packet }
            });
            let report = Report { packets: by_their_clock.collect(), ..Report::default() };
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

/// Runs it to its end.
pub fn run<'a>(of: &'a Loop, path: &'a mut dyn Path) -> Run<'a> {
    let limits =
        Limits { start: Rate::from_kbps(of.start), max: Rate::from_kbps(of.max), ..Limits::default() };
    let mut run = Run {
        of,
        path,
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
pub fn at(targets: &[(Time, Rate)], now: Time) -> Rate {
    targets[..targets.partition_point(|&(since, _)| since <= now)]
        .last()
        .map_or(Rate::ZERO, |&(_, rate)| rate)
}
