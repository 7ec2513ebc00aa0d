//! Reports that no network makes, through every controller and every preset: whatever they say, the contract holds, the
//! target is within the limits, and what is told of the inside is finite.

use crate::support::host;
use serde_json::{Value, json};
use tidegate_controllers::registry;
use tidegate_core::control::{Decision, EcnCounts, Limits, LossReport, PacketResult, Report, Sent};
use tidegate_core::wire::rtcp::App;
use tidegate_core::{ControllerHost, Ecn, Rate, RemoteTime, Size, Span, Stream, Time};

/// Names of the messages that receiving halves send.
const NAMES: [[u8; 4]; 4] = [*b"TFRC", *b"SPRT", *b"NADA", *b"????"];

struct Fuzz {
    host: ControllerHost,
    limits: Limits,
    luck: Stream,
    now: Time,
    sequence: u64,
}

impl Fuzz {
    fn new(name: &str, preset: &str, settings: &Value, seed: u64) -> Self {
        let limits = Limits::default();
        let mut host = host(name, preset, settings, &limits);
        host.notes.wanted = seed.is_multiple_of(2);
        Self { host, limits, luck: Stream::new(seed, name, preset), now: Time::ZERO, sequence: 0 }
    }

    /// Any number, small ones as likely as large ones.
    fn any(&mut self) -> u64 {
        self.luck.next_u64() >> self.luck.below(64)
    }

    /// Any time, before and after the beginning.
    fn any_nanos(&mut self) -> i64 {
        self.luck.next_u64() as i64 >> self.luck.below(63)
    }

    fn packet(&mut self, wild: bool) -> PacketResult {
        self.sequence += if self.luck.chance(0.02) { self.luck.below(1000) } else { 1 };
        let delay = 20_000_000 + self.luck.below(300_000_000) as i64;
        let sent = Time::from_nanos(self.now.as_nanos() - delay);
        let usual = sent.as_nanos() + self.luck.below(delay as u64) as i64;
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][self.luck.below(4) as usize];
        let size = Size::from_bytes(40 + self.luck.below(1400));
        let arrival = self.luck.chance(0.9).then(|| RemoteTime::from_nanos(usual));
        let sequence = self.sequence;
        if !wild {
            return PacketResult { sequence, size, sent, arrival, ecn, probe: None };
        }
        PacketResult {
            sequence: self.any(),
            size: Size::from_bytes(self.any()),
            sent: Time::from_nanos(self.any_nanos()),
            arrival: self.luck.chance(0.8).then_some(()).map(|()| RemoteTime::from_nanos(self.any_nanos())),
            ecn,
            probe: self.luck.chance(0.1).then_some(7),
        }
    }

    fn message(&mut self) -> App {
        let length = 4 * self.luck.below(8) as usize;
        App {
            subtype: u8::from(self.luck.chance(0.1)),
            ssrc: self.luck.next_u64() as u32,
            name: NAMES[self.luck.below(4) as usize],
            data: (0..length).map(|_| self.luck.next_u64() as u8).collect(),
        }
    }

    fn report(&mut self) {
        let wild = self.luck.chance(0.05);
        let count = if self.luck.chance(0.1) { 0 } else { self.luck.below(12) };
        let mut report = Report {
            packets: (0..count).map(|_| self.packet(wild)).collect(),
            in_flight: Size::from_bytes(self.any()),
            backlog: Size::from_bytes(self.any()),
            pacer_delay: Span::from_nanos(self.any_nanos().max(0)),
            ..Report::default()
        };
        let mut maybe = |chance: f64| self.luck.chance(chance);
        let (rtt, packet_rtt, ecn, loss, remb, message) =
            (maybe(0.2), maybe(0.5), maybe(0.5), maybe(0.2), maybe(0.02), maybe(0.3));
        report.report_rtt = rtt.then(|| Span::from_nanos(self.any_nanos()));
        report.packet_rtt = packet_rtt.then(|| Span::from_nanos(self.any_nanos()));
        report.ecn = ecn.then(|| EcnCounts { ce: self.any() as u32, ..EcnCounts::default() });
        report.loss = loss.then(|| LossReport {
            fraction_lost: self.luck.below(256) as u8,
            cumulative_lost: self.luck.next_u64() as i32,
            highest_sequence: self.luck.next_u64() as u32,
            jitter: Span::from_nanos(self.any_nanos()),
            expected: self.any() as u32,
        });
        report.remb = remb.then(|| Rate::from_bps(self.any()));
        report.messages = if message { vec![self.message()] } else { vec![] };
        if maybe_reversed(&mut self.luck) {
            report.packets.reverse();
        }
        let decision = *self.host.report(self.now, &report).expect("contract");
        self.check(&decision);
    }

    fn step(&mut self) {
        // often at the same instant as before, sometimes after a silence
        let span = match self.luck.below(20) {
            0..=3 => Span::ZERO,
            4 => Span::from_millis(self.luck.below(5000) as i64),
            _ => Span::from_micros(self.luck.below(120_000) as i64),
        };
        let until = self.now + span;
        while let Some(at) = self.host.decision().alarm.filter(|&at| at <= until) {
            self.now = at;
            let decision = *self.host.alarm(at).expect("contract");
            self.check(&decision);
        }
        self.now = until;
        if self.host.needs_sent() {
            let size = Size::from_bytes(1200);
            let sent = Sent { sequence: self.sequence, size, in_flight: size, backlog: Size::ZERO };
            let decision = *self.host.sent(self.now, &sent).expect("contract");
            self.check(&decision);
        }
        if self.luck.chance(0.01) {
            let mut rate = || Rate::from_bps(self.luck.below(20_000_000) >> self.luck.below(25));
            let [min, more, start] = [rate(), rate(), rate()];
            self.limits = Limits {
                min,
                max: min + more,
                start,
                route_changed: self.luck.chance(0.1),
                ..Limits::default()
            };
            let limits = self.limits;
            let decision = *self.host.limits(self.now, &limits).expect("contract");
            self.check(&decision);
        }
        self.report();
    }

    fn check(&self, decision: &Decision) {
        let Limits { min, max, .. } = self.limits;
        let within = decision.target >= min && decision.target <= max.max(min);
        assert!(within, "target {} at {} with {:?}", decision.target, self.now, self.limits);
        for (name, value) in &self.host.notes.values {
            assert!(value.is_finite(), "{name} is {value} at {}", self.now);
        }
    }
}

fn maybe_reversed(luck: &mut Stream) -> bool {
    luck.chance(0.02)
}

fn reports(each: u64) {
    for entry in registry() {
        for preset in entry.presets {
            let mut kinds = vec![json!({})];
            if (entry.settings)(preset).iter().any(|setting| setting.name == "placement")
                && *preset == "rfc8698"
            {
                kinds.push(json!({ "placement": "receiver" }));
            }
            for settings in kinds {
                // one that has been spoiled for good would not be tested any more
                for seed in 0..each.div_ceil(2000) {
                    let mut fuzz = Fuzz::new(entry.name, preset, &settings, seed);
                    (0..2000).for_each(|_| fuzz.step());
                }
                println!("{} {preset} {settings}: {each} reports", entry.name);
            }
        }
    }
}

#[test]
fn no_report_breaks_a_controller() {
    reports(4000);
}

#[test]
#[ignore = "a million for each preset: minutes"]
fn no_report_of_a_million_breaks_a_controller() {
    reports(1_000_000);
}
