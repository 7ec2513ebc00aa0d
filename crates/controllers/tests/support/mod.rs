//! Shared by the tests of controllers: a host for a controller, files beside the checkout, and a
//! bottleneck to send through.
#![allow(unreachable_pub, reason = "a module of a test program")]

pub mod decisions;
pub mod halves;
pub mod libwebrtc;
pub mod means;

use decisions::Decisions;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use tidegate_controllers::find;
use tidegate_core::control::{
    Arrived, Decision, FeedbackKind, FeedbackRequest, Limits, LossReport, NewFrame, PacketResult, Probe,
    ReceiverHost, Report, Sent, Urgency,
};
use tidegate_core::wire::{rtcp, rtp};
use tidegate_core::{ControllerHost, Ecn, Rate, RemoteTime, Size, Span, Stream, Time};

/// A controller in its host at time zero.
pub fn host(name: &str, preset: &str, overrides: &Value, limits: &Limits) -> ControllerHost {
    let controller = (find(name).expect("registered").build)(preset, overrides).expect("valid");
    ControllerHost::new(name, controller, Stream::new(1, name, "controller"), Time::ZERO, limits)
        .expect("the contract is kept")
}

/// The receiving half of a controller in its host, if it has one.
pub fn half(name: &str, preset: &str, overrides: &Value) -> Option<ReceiverHost> {
    let build = find(name).expect("registered").receiver?;
    let half = build(preset, overrides).expect("valid");
    Some(ReceiverHost::new(name, half, Stream::new(1, name, "receiver")))
}

/// A data packet at a receiver half.
pub fn arrived(sequence: u64, size: u64, abs_send_time: u32) -> Arrived<'static> {
    Arrived {
        sequence: Some(sequence),
        size: Size::from_bytes(size),
        header: Size::from_bytes(20),
        padding: Size::ZERO,
        payload_type: 96,
        abs_send_time: Some(abs_send_time),
        ssrc: 7,
        rtp_sequence: sequence,
        timestamp: 0,
        marker: false,
        ecn: Ecn::default(),
        extension: None,
        true_delay: None,
    }
}

/// The rate that a half says in a REMB, if it says any.
pub fn remb_of(half: &mut ReceiverHost, now: Time) -> Option<Rate> {
    match &half.message(now).expect("contract")[..] {
        [] => None,
        [rtcp::Packet::Remb(remb)] => Some(remb.bitrate),
        other => panic!("{other:?}"),
    }
}

/// A result of a packet that was sent and has arrived at these times.
pub fn result(sequence: u64, size: u64, sent: Time, arrival: Option<i64>) -> PacketResult {
    PacketResult {
        sequence,
        size: Size::from_bytes(size),
        sent,
        arrival: arrival.map(RemoteTime::from_nanos),
        ecn: Ecn::default(),
        probe: None,
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the repository.
#[expect(clippy::disallowed_methods, reason = "a test reads its data")]
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A file of the material that lies beside the checkout; says so and answers none where it is absent.
#[expect(clippy::disallowed_methods, reason = "a test reads its data")]
pub fn shared(path: &str) -> Option<String> {
    let beside = root().join("../shared");
    let folder = std::env::var("TIDEGATE_SHARED").map_or(beside, PathBuf::from);
    let text = std::fs::read_to_string(folder.join(path)).ok();
    if text.is_none() {
        println!("skipped: no {path} in {}", folder.display());
    }
    text
}

/// Compares `text` with a golden file, or writes it with `TIDEGATE_BLESS=1`.
#[expect(clippy::disallowed_methods, reason = "golden files are blessed by hand")]
pub fn golden(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var("TIDEGATE_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&file, text).expect("writable");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == text, "{path} differs (TIDEGATE_BLESS=1 accepts it); now:\n{text}");
}

/// Compares `text` with what a page has between `<!-- table: NAME -->` and `<!-- end -->`, or writes it there with
/// `TIDEGATE_BLESS=1`.
#[expect(clippy::disallowed_methods, reason = "pages are blessed by hand")]
pub fn table_of_page(path: &str, name: &str, text: &str) {
    let page = read(path);
    let begin = format!("<!-- table: {name} -->\n\n");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{path} has no table {name}"));
    let (now, after) = rest.split_once("\n<!-- end -->").expect("the end of a table is marked");
    if std::env::var("TIDEGATE_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(root().join(path), format!("{before}{begin}{text}\n<!-- end -->{after}"))
            .expect("writable");
    } else {
        assert!(
            now == text,
            "the table {name} of {path} is an old one (TIDEGATE_BLESS=1 writes it); now:\n{text}"
        );
    }
}

/// The other end of a scheme with a receiver half.
struct Far {
    half: ReceiverHost,
    /// When they arrive, and they.
    arriving: VecDeque<(Time, Arrived<'static>)>,
    /// Reports on their way back, with their arrival times.
    returning: VecDeque<(Time, Report)>,
    said_at: Time,
    report_at: Time,
    /// Highest sequence number, and packets received, so far and at the last receiver report.
    highest: u64,
    received: u64,
    reported: u64,
}

/// A probe that is being sent: bytes and packets that are left of it.
struct Probing {
    probe: Probe,
    bytes: u64,
    packets: u32,
}

/// A bottleneck of one rate at a time: a drop-tail queue of 300 ms, 50 ms each way, and a source that
/// always sends what it may, and the probes that it is asked for. Per-packet reports every 50 ms; or, where there is
/// a receiver half, what it says, and receiver reports every second.
pub struct Bottleneck {
    pub host: ControllerHost,
    probes: VecDeque<Probing>,
    /// Whether there are receiver reports every second beside per-packet ones, and how many packets were lost and
    /// reported on since the last one, and lost in all.
    pub receiver_reports: bool,
    lost: u32,
    expected: u32,
    lost_in_all: i32,
    far_end: Option<Far>,
    /// The longest that anything was heard and nothing was said.
    pub longest_unsaid: Span,
    /// All that the controller has decided, and what the receiver half has asked for.
    pub decisions: Decisions,
    pub capacity: Rate,
    pub loss: f64,
    /// Offset of the far clock from ours.
    pub far: Span,
    pub now: Time,
    /// Sizes that came out since this was last set to zero, bytes.
    pub delivered: u64,
    /// Queueing delay of the last packet.
    pub queueing: Span,
    next_send: Time,
    /// Backlog of a source that follows the target, for a scheme that limits the bytes in flight:
    /// bytes, the time until which they are made, and the time of the next frame.
    backlog: f64,
    made_until: Time,
    frame_at: Time,
    free_at: Time,
    sequence: u64,
    in_flight: Vec<PacketResult>,
    luck: Stream,
}

const SIZE: u64 = 1200;
const DELAY: Span = Span::from_millis(50);
const QUEUE: Span = Span::from_millis(300);
const REPORT: Span = Span::from_millis(50);

impl Bottleneck {
    pub fn new(name: &str, preset: &str, capacity: Rate) -> Self {
        Self::with(name, preset, &Value::Null, capacity)
    }

    pub fn with(name: &str, preset: &str, overrides: &Value, capacity: Rate) -> Self {
        let host = host(name, preset, overrides, &Limits::default());
        // a half may be there and silent, where the sender computes from per-packet feedback
        let heard = host.needs().feedback != FeedbackKind::PerPacket;
        let far_end = half(name, preset, overrides).filter(|_| heard).map(|half| Far {
            half,
            arriving: VecDeque::new(),
            returning: VecDeque::new(),
            said_at: Time::MAX,
            report_at: Time::from_secs(1),
            highest: 0,
            received: 0,
            reported: 0,
        });
        let mut link = Self {
            host,
            probes: VecDeque::new(),
            receiver_reports: preset == "libwebrtc",
            lost: 0,
            expected: 0,
            lost_in_all: 0,
            far_end,
            longest_unsaid: Span::ZERO,
            decisions: Decisions::default(),
            capacity,
            loss: 0.0,
            far: Span::ZERO,
            now: Time::ZERO,
            delivered: 0,
            queueing: Span::ZERO,
            next_send: Time::ZERO,
            backlog: 0.0,
            made_until: Time::ZERO,
            frame_at: Time::ZERO,
            free_at: Time::ZERO,
            sequence: 0,
            in_flight: Vec::new(),
            luck: Stream::new(1, "bottleneck", "loss"),
        };
        let first = *link.host.decision();
        link.ask(&first);
        link
    }

    /// Runs until the next report and hands it in, unless feedback is `cut`.
    pub fn step(&mut self, cut: bool) -> Decision {
        let until = self.now + REPORT;
        while self.next_send < until {
            self.receive(self.next_send, cut);
            self.send(self.next_send);
        }
        self.receive(until, cut);
        while let Some(at) = self.host.decision().alarm.filter(|&at| at <= until) {
            let decision = *self.host.alarm(at).expect("contract");
            self.heed(&decision);
        }
        self.now = until;
        if self.far_end.is_some() {
            // what lies on the link still counts as sent
            self.in_flight.clear();
            return *self.host.decision();
        }
        if cut {
            return *self.host.decision();
        }
        let report = self.report();
        let decision = *self.host.report(until, &report).expect("contract");
        self.heed(&decision);
        if self.receiver_reports && until.as_nanos() % 1_000_000_000 == 0 {
            let report = self.receiver_report();
            let decision = *self.host.report(until, &report).expect("contract");
            self.heed(&decision);
        }
        *self.host.decision()
    }

    fn heed(&mut self, decision: &Decision) {
        self.decisions.add(decision);
        self.ask(decision);
    }

    fn ask(&mut self, decision: &Decision) {
        self.probes.extend(decision.probes.iter().map(|&probe| Probing {
            probe,
            bytes: probe.rate.bytes_in(probe.length).as_bytes(),
            packets: probe.min_packets,
        }));
    }

    fn send(&mut self, at: Time) {
        while let Some(due) = self.host.decision().alarm.filter(|&due| due <= at) {
            let decision = *self.host.alarm(due).expect("contract");
            self.heed(&decision);
        }
        let size = Size::from_bytes(SIZE);
        if self.waits(at) {
            return;
        }
        self.queueing = self.free_at.saturating_since(at);
        let lost = self.luck.chance(self.loss) || self.queueing > QUEUE;
        let mut arrival = None;
        if !lost {
            self.free_at = self.free_at.max(at) + self.capacity.time_for(size);
            arrival = Some((self.free_at + DELAY).as_nanos());
        }
        if let (Some(far), Some(arrival)) = (&mut self.far_end, arrival) {
            let packet = arrived(self.sequence, SIZE, rtp::abs_send_time(at + self.far));
            far.arriving.push_back((Time::from_nanos(arrival), packet));
        }
        let probe = self.probes.front().map(|probing| probing.probe);
        let packet = result(self.sequence, SIZE, at, arrival);
        self.in_flight.push(PacketResult { probe: probe.map(|probe| probe.id), ..packet });
        if self.host.needs_sent() {
            let backlog = Size::from_bytes(self.backlog as u64);
            let sent = Sent { sequence: self.sequence, size, in_flight: size, backlog };
            let decision = *self.host.sent(at, &sent).expect("contract");
            self.heed(&decision);
        }
        self.sequence += 1;
        let decision = self.host.decision();
        let usual = if self.host.in_flight().is_some() { decision.pacing } else { decision.target };
        let rate = probe.map_or(usual, |probe| probe.rate);
        self.next_send = at + rate.time_for(size);
        if let Some(probing) = self.probes.front_mut().filter(|_| probe.is_some()) {
            probing.bytes = probing.bytes.saturating_sub(SIZE);
            probing.packets = probing.packets.saturating_sub(1);
            if (probing.bytes, probing.packets) == (0, 0) {
                self.probes.pop_front();
            }
        }
    }

    /// Whether a scheme that counts what is in flight has nothing to send, or no room for it; then it looks again. Its source
    /// makes a frame each 20 ms, and nothing while two seconds of it wait.
    fn waits(&mut self, at: Time) -> bool {
        let Some(flying) = self.host.in_flight() else { return false };
        let Decision { target, window, .. } = *self.host.decision();
        let made = target.bytes_in(at - self.made_until).as_bytes() as f64;
        self.made_until = at;
        self.backlog = (self.backlog + made).min(target.as_bps_f64() / 4.0);
        if at >= self.frame_at {
            self.frame_at = at + Span::from_millis(20);
            let size = target.bytes_in(Span::from_millis(20));
            let backlog = Size::from_bytes(self.backlog as u64);
            let frame = NewFrame { video: true, size, backlog, pacer_delay: target.time_for(backlog) };
            let decision = *self.host.frame(at, &frame).expect("contract");
            self.heed(&decision);
        }
        let least = Span::from_millis(1);
        let size = Size::from_bytes(SIZE);
        let lacks = size.saturating_sub(Size::from_bytes(self.backlog as u64));
        let shut = flying > Size::ZERO && window.is_some_and(|window| flying + size > window);
        if lacks > Size::ZERO || shut {
            self.next_send = at + target.time_for(lacks).max(least);
            return true;
        }
        self.backlog -= SIZE as f64;
        false
    }

    /// Lets the receiver half hear and speak until `until`, and the sender hear it, unless feedback is `cut`.
    fn receive(&mut self, until: Time, cut: bool) {
        let Some(far) = &mut self.far_end else { return };
        loop {
            let packet = far.arriving.front().map_or(Time::MAX, |&(at, _)| at);
            let alarm = far.half.alarm_at.unwrap_or(Time::MAX);
            let now = packet.min(alarm).min(far.report_at);
            if now > until {
                break;
            }
            let urgency = if now == packet {
                let (_, packet) = far.arriving.pop_front().expect("there is one");
                self.delivered += SIZE;
                far.received += 1;
                far.highest = packet.sequence.unwrap_or(far.highest);
                far.half.packet(now, &packet).expect("contract")
            } else if now == alarm {
                far.half.alarm(now).expect("contract")
            } else {
                far.report_at = now + Span::from_secs(1);
                let expected = (far.highest + 1).saturating_sub(far.reported);
                let lost = far.highest + 1 - far.received;
                far.reported = far.highest + 1;
                let loss = LossReport {
                    fraction_lost: 0,
                    cumulative_lost: lost as i32,
                    highest_sequence: far.highest as u32,
                    jitter: Span::ZERO,
                    expected: expected as u32,
                };
                far.returning.push_back((now + DELAY, Report { loss: Some(loss), ..Report::default() }));
                Urgency::None
            };
            self.decisions.add_ask(FeedbackRequest { urgency, alarm: far.half.alarm_at });
            if urgency == Urgency::Now
                && let Some(remb) = remb_of(&mut far.half, now)
            {
                self.longest_unsaid = self.longest_unsaid.max(now.saturating_since(far.said_at));
                far.said_at = now;
                far.returning.push_back((now + DELAY, Report { remb: Some(remb), ..Report::default() }));
            }
        }
        while far.returning.front().is_some_and(|&(at, _)| at <= until) {
            let (at, report) = far.returning.pop_front().expect("there is one");
            if !cut {
                let decision = *self.host.report(at, &report).expect("contract");
                self.decisions.add(&decision);
            }
        }
    }

    /// The receiver's report at this time: everything up to the newest packet that had arrived one
    /// delay ago.
    fn report(&mut self) -> Report {
        let said = (self.now - DELAY).as_nanos();
        let arrived = |packet: &PacketResult| packet.arrival.is_some_and(|at| at.as_nanos() <= said);
        let count = self.in_flight.iter().rposition(arrived).map_or(0, |last| last + 1);
        let mut packets: Vec<_> = self.in_flight.drain(..count).collect();
        for packet in &mut packets {
            packet.arrival = packet.arrival.map(|at| at + self.far);
        }
        let received = packets.iter().filter(|packet| packet.arrival.is_some()).count();
        self.delivered += received as u64 * SIZE;
        self.expected += packets.len() as u32;
        self.lost += (packets.len() - received) as u32;
        let in_flight = Size::from_bytes(SIZE) * self.in_flight.len() as u64;
        let backlog = Size::from_bytes(self.backlog as u64);
        Report { packets, in_flight, backlog, ..Report::default() }
    }

    /// The receiver's report of losses, once a second.
    fn receiver_report(&mut self) -> Report {
        self.lost_in_all += self.lost as i32;
        let loss = LossReport {
            fraction_lost: (self.lost * 256 / self.expected.max(1)).min(255) as u8,
            cumulative_lost: self.lost_in_all,
            highest_sequence: self.sequence as u32,
            jitter: Span::ZERO,
            expected: self.expected,
        };
        (self.lost, self.expected) = (0, 0);
        let report_rtt = Some(DELAY + DELAY + self.queueing);
        Report { loss: Some(loss), report_rtt, ..Report::default() }
    }
}
