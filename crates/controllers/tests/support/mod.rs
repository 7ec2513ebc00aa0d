//! What the tests of controllers share: a seat for a controller, files beside the checkout, and a
//! bottleneck to send through.
#![allow(dead_code, reason = "each test uses its own part")]
#![allow(unreachable_pub, reason = "a module of each test crate")]

pub mod halves;

use serde_json::Value;
use std::path::PathBuf;
use tidegate_controllers::find;
use tidegate_core::control::{Decision, Limits, PacketResult, Report, Sent};
use tidegate_core::{Ecn, Rate, RemoteTime, Seat, Size, Span, Stream, Time};

/// A controller in its seat at time zero.
pub fn seat(name: &str, preset: &str, overrides: &Value, limits: &Limits) -> Seat {
    let controller = (find(name).expect("registered").build)(preset, overrides).expect("valid");
    Seat::new(name, controller, Stream::new(1, name, "controller"), Time::ZERO, limits).expect("seated")
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

/// A bottleneck of one rate at a time: a drop-tail queue of 300 ms, 50 ms each way, per-packet reports
/// every 50 ms, and a source that always sends what it may.
pub struct Bottleneck {
    pub seat: Seat,
    pub capacity: Rate,
    pub loss: f64,
    /// How much the far clock is ahead of ours.
    pub far: Span,
    pub now: Time,
    /// Sizes that came out since this was last set to zero, bytes.
    pub delivered: u64,
    /// Queueing delay of the last packet.
    pub queueing: Span,
    next_send: Time,
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
    pub fn new(seat: Seat, capacity: Rate) -> Self {
        Self {
            seat,
            capacity,
            loss: 0.0,
            far: Span::ZERO,
            now: Time::ZERO,
            delivered: 0,
            queueing: Span::ZERO,
            next_send: Time::ZERO,
            free_at: Time::ZERO,
            sequence: 0,
            in_flight: Vec::new(),
            luck: Stream::new(1, "bottleneck", "loss"),
        }
    }

    /// Runs until the next report and hands it in, unless feedback is `cut`.
    pub fn step(&mut self, cut: bool) -> Decision {
        let until = self.now + REPORT;
        while self.next_send < until {
            self.send(self.next_send);
        }
        while let Some(at) = self.seat.decision().alarm.filter(|&at| at <= until) {
            let _ = self.seat.alarm(at).expect("contract");
        }
        self.now = until;
        if cut {
            return self.seat.decision();
        }
        let report = self.report();
        self.seat.report(until, &report).expect("contract")
    }

    fn send(&mut self, at: Time) {
        while let Some(due) = self.seat.decision().alarm.filter(|&due| due <= at) {
            let _ = self.seat.alarm(due).expect("contract");
        }
        let size = Size::from_bytes(SIZE);
        self.queueing = self.free_at.saturating_since(at);
        let lost = self.luck.chance(self.loss) || self.queueing > QUEUE;
        let mut arrival = None;
        if !lost {
            self.free_at = self.free_at.max(at) + self.capacity.time_for(size);
            arrival = Some((self.free_at + DELAY).as_nanos());
        }
        self.in_flight.push(result(self.sequence, SIZE, at, arrival));
        if self.seat.needs_sent() {
            let sent = Sent { sequence: self.sequence, size, in_flight: size, backlog: Size::ZERO };
            let _ = self.seat.sent(at, &sent).expect("contract");
        }
        self.sequence += 1;
        self.next_send = at + self.seat.decision().target.time_for(size);
    }

    /// What the receiver has said by now: everything up to the newest packet that had arrived one
    /// delay ago.
    fn report(&mut self) -> Report {
        let said = (self.now - DELAY).as_nanos();
        let arrived = |packet: &PacketResult| packet.arrival.is_some_and(|at| at.as_nanos() <= said);
        let count = self.in_flight.iter().rposition(arrived).map_or(0, |last| last + 1);
        let mut packets: Vec<_> = self.in_flight.drain(..count).collect();
        for packet in &mut packets {
            packet.arrival = packet.arrival.map(|at| at + self.far);
        }
        self.delivered += packets.iter().filter(|packet| packet.arrival.is_some()).count() as u64 * SIZE;
        let in_flight = Size::from_bytes(SIZE) * self.in_flight.len() as u64;
        Report { packets, in_flight, ..Report::default() }
    }
}
