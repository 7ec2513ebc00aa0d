//! Sequences of arbitrary operations on every registered controller and every preset.
//!
//! Whatever comes, the contract holds: the target is within the limits, alarms are in the future, the
//! controller does not fail. And when the faults cease, it finds its way back.

use crate::support::decisions::Decisions;
use crate::support::{Bottleneck, arrived, half, host, result};
use serde_json::Value;
use tidegate_controllers::{Entry, registry};
use tidegate_core::control::{
    Arrived, Decision, FeedbackKind, FeedbackRequest, Limits, LossReport, PacketResult, ReceiverHost, Report,
    Sent, Urgency,
};
use tidegate_core::wire::rtcp;
use tidegate_core::{ControllerHost, Rate, Size, Span, Stream, Time};

struct Fuzz {
    host: ControllerHost,
    limits: Limits,
    luck: Stream,
    now: Time,
    sequence: u64,
    /// Offset of the far clock; faults move it.
    far: i64,
    pending: Vec<PacketResult>,
    old: Vec<PacketResult>,
    decisions: Decisions,
}

impl Fuzz {
    fn new(name: &str, preset: &str, seed: u64) -> Self {
        let luck = Stream::new(seed, name, preset);
        let limits = Limits::default();
        let mut host = host(name, preset, &Value::Null, &limits);
        host.notes.wanted = seed.is_multiple_of(2);
        let (pending, old) = (vec![], vec![]);
        let mut fuzz = Self {
            host,
            limits,
            luck,
            now: Time::ZERO,
            sequence: 0,
            far: 0,
            pending,
            old,
            decisions: Decisions::default(),
        };
        fuzz.check(*fuzz.host.decision());
        fuzz
    }

    fn check(&mut self, decision: Decision) {
        let Limits { min, max, .. } = self.limits;
        let within = decision.target >= min && decision.target <= max.max(min);
        assert!(within, "target {:?} at {:?} with {:?}", decision.target, self.now, self.limits);
        assert!(decision.alarm.is_none_or(|at| at > self.now));
        for (name, value) in &self.host.notes.values {
            assert!(value.is_finite(), "{name} is {value}");
        }
        self.decisions.add(&decision);
    }

    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(at) = self.host.decision().alarm.filter(|&at| at <= until) {
            self.now = at;
            let decision = *self.host.alarm(at).expect("contract");
            self.check(decision);
        }
        self.now = until;
    }

    fn send(&mut self, size: u64) {
        let delay = Span::from_micros(20_000 + self.luck.below(30_000) as i64);
        let arrival = (self.now + delay).as_nanos().wrapping_add(self.far);
        let lost = self.luck.chance(0.1);
        self.pending.push(result(self.sequence, size, self.now, (!lost).then_some(arrival)));
        if self.host.needs_sent() {
            let size = Size::from_bytes(size);
            let sent = Sent { sequence: self.sequence, size, in_flight: size, backlog: Size::ZERO };
            let decision = *self.host.sent(self.now, &sent).expect("contract");
            self.check(decision);
        }
        self.sequence += 1;
    }

    fn report(&mut self, packets: Vec<PacketResult>) {
        let loss = self.luck.chance(0.2).then(|| LossReport {
            fraction_lost: self.luck.below(256) as u8,
            cumulative_lost: self.luck.next_u64() as i32,
            highest_sequence: self.luck.next_u64() as u32,
            jitter: Span::from_nanos(self.luck.next_u64() as i64),
            expected: self.luck.next_u64() as u32,
        });
        let report_rtt = self
            .luck
            .chance(0.3)
            .then(|| Span::from_nanos(self.luck.next_u64() as i64 >> self.luck.below(63)));
        let remb =
            self.luck.chance(0.02).then(|| Rate::from_bps(self.luck.next_u64() >> self.luck.below(64)));
        let report = Report { packets, report_rtt, loss, remb, ..Report::default() };
        let decision = *self.host.report(self.now, &report).expect("contract");
        self.check(decision);
    }

    fn operation(&mut self) {
        match self.luck.below(24) {
            0..=5 => {
                for _ in 0..=self.luck.below(20) {
                    let size = 40 + self.luck.below(1400);
                    self.send(size);
                    let gap = self.luck.below(8000) as i64;
                    self.pass(Span::from_micros(gap));
                }
            }
            6..=11 => {
                let packets = std::mem::take(&mut self.pending);
                self.old.clone_from(&packets);
                self.report(packets);
            }
            12 => self.report(vec![]),
            13 => {
                let again = self.old.clone();
                self.report(again);
            }
            14 => {
                // reordered, with some changing their mind
                let mut packets = std::mem::take(&mut self.pending);
                packets.reverse();
                for packet in &mut packets {
                    if self.luck.chance(0.3) {
                        packet.arrival = None;
                    }
                }
                self.report(packets);
            }
            15 => {
                let span = Span::from_millis(self.luck.below(1000) as i64);
                self.pass(span);
            }
            16 => {
                let span = Span::from_secs(self.luck.below(20) as i64);
                self.pass(span);
            }
            17 => self.far = self.luck.next_u64() as i64 >> self.luck.below(63),
            18 => self.sequence += self.luck.below(1 << 20),
            19 => {
                let size = self.luck.next_u64() >> self.luck.below(64);
                self.send(size);
            }
            20 => {
                let wild = |luck: &mut Stream| {
                    let sent = Time::from_nanos(luck.next_u64() as i64 >> luck.below(63));
                    let arrival = luck.chance(0.7).then(|| luck.next_u64() as i64 >> luck.below(63));
                    result(
                        luck.next_u64() >> luck.below(64),
                        luck.next_u64() >> luck.below(64),
                        sent,
                        arrival,
                    )
                };
                let packets = (0..self.luck.below(30)).map(|_| wild(&mut self.luck)).collect();
                self.report(packets);
            }
            21 => self.limit(false),
            22 => self.limit(true),
            _ => self.pass(Span::from_nanos(1)),
        }
    }

    fn limit(&mut self, route_changed: bool) {
        let rate = |luck: &mut Stream| Rate::from_bps(luck.below(20_000_000) >> luck.below(25));
        let min = rate(&mut self.luck);
        let max = min + rate(&mut self.luck);
        let start = rate(&mut self.luck);
        let wanted = self.luck.chance(0.5).then(|| rate(&mut self.luck));
        let app_limited = self.luck.chance(0.5);
        self.limits = Limits { min, max, start, wanted, app_limited, route_changed };
        let limits = self.limits;
        let decision = *self.host.limits(self.now, &limits).expect("contract");
        self.check(decision);
    }
}

fn run(name: &str, preset: &str, seed: u64) -> u64 {
    let mut fuzz = Fuzz::new(name, preset, seed);
    for _ in 0..400 {
        fuzz.operation();
    }
    fuzz.decisions.hash()
}

#[test]
fn no_sequence_of_operations_breaks_the_contract_and_the_bits_are_pinned() {
    let mut text = String::new();
    for entry in registry() {
        for preset in entry.presets {
            let hash = (0..200).fold(0, |sum: u64, seed| sum.rotate_left(1) ^ run(entry.name, preset, seed));
            assert_eq!(run(entry.name, preset, 7), run(entry.name, preset, 7));
            text += &format!("{} {preset} {hash:016x}\n", entry.name);
        }
    }
    // the same file for debug and release, and for every platform
    crate::support::golden("crates/controllers/tests/golden/decisions.txt", &text);
}

/// A receiver half under arbitrary packets, alarms and calls to speak.
struct FuzzHalf {
    half: ReceiverHost,
    luck: Stream,
    now: Time,
    sequence: u64,
    hash: u64,
    asks: Decisions,
}

impl FuzzHalf {
    fn asked(&mut self, urgency: Urgency) {
        assert!(self.half.alarm_at.is_none_or(|at| at > self.now));
        for (name, value) in &self.half.notes.values {
            assert!(value.is_finite(), "{name} is {value}");
        }
        self.asks.add_ask(FeedbackRequest { urgency, alarm: self.half.alarm_at });
        if urgency == Urgency::Now || (urgency == Urgency::Regular && self.luck.chance(0.5)) {
            self.speak();
        }
    }

    fn speak(&mut self) {
        for packet in self.half.message(self.now).expect("contract") {
            let rtcp::Packet::Remb(remb) = &packet else { panic!("{packet:?}") };
            // a rate of zero would lift the sender's limit
            assert!(remb.bitrate > Rate::ZERO && remb.ssrcs.len() <= 255, "{remb:?}");
            let mut bytes = vec![];
            rtcp::encode(std::slice::from_ref(&packet), &mut bytes).expect("valid");
            for byte in bytes {
                self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }

    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(at) = self.half.alarm_at.filter(|&at| at <= until) {
            self.now = at;
            let urgency = self.half.alarm(at).expect("contract");
            self.asked(urgency);
        }
        self.now = until;
    }

    fn packet(&mut self, size: u64, abs_send_time: u32) {
        self.sequence += 1;
        let ssrc = if self.luck.chance(0.01) { self.luck.next_u64() as u32 } else { 7 };
        let packet = Arrived { ssrc, ..arrived(self.sequence, size, abs_send_time) };
        let urgency = self.half.packet(self.now, &packet).expect("contract");
        self.asked(urgency);
    }

    fn operation(&mut self) {
        match self.luck.below(10) {
            0..=5 => {
                for _ in 0..=self.luck.below(40) {
                    let sent = (self.now.as_nanos() as u128 * 262_144 / 1_000_000_000) as u32;
                    let delay = self.luck.below(5000) as u32;
                    let size = 40 + self.luck.below(1400);
                    self.packet(size, sent.wrapping_sub(delay));
                    let gap = self.luck.below(15_000) as i64;
                    self.pass(Span::from_micros(gap));
                }
            }
            6 => {
                let (size, sent) = (self.luck.next_u64() >> self.luck.below(64), self.luck.next_u64() as u32);
                self.packet(size, sent);
            }
            7 => {
                let span = Span::from_millis(self.luck.below(3000) as i64);
                self.pass(span);
            }
            8 => {
                let span = Span::from_secs(self.luck.below(200) as i64);
                self.pass(span);
            }
            _ => self.speak(),
        }
    }
}

#[test]
fn no_sequence_of_operations_breaks_a_receiver_half_and_its_bytes_are_pinned() {
    let mut text = String::new();
    for entry in registry().iter().filter(|entry| entry.receiver.is_some() && !needs_stamps(entry)) {
        for preset in entry.presets {
            let (mut sum, mut asks) = (0_u64, 0_u64);
            for seed in 0..200 {
                let mut half = half(entry.name, preset, &Value::Null).expect("it has one");
                half.notes.wanted = seed % 2 == 0;
                let luck = Stream::new(seed, entry.name, preset);
                let hash = 0xcbf2_9ce4_8422_2325;
                let mut fuzz =
                    FuzzHalf { half, luck, now: Time::ZERO, sequence: 0, hash, asks: Decisions::default() };
                (0..100).for_each(|_| fuzz.operation());
                sum = sum.rotate_left(1) ^ fuzz.hash;
                asks = asks.rotate_left(1) ^ fuzz.asks.hash();
            }
            text += &format!("{} {preset} {sum:016x} {asks:016x}\n", entry.name);
        }
    }
    crate::support::golden("crates/controllers/tests/golden/messages.txt", &text);
}

/// Whether its halves speak only of what the other has stamped: `tests/tfrc.rs` and `tests/sprout.rs` have loops for
/// those.
fn needs_stamps(entry: &Entry) -> bool {
    ["tfrc", "sprout"].iter().any(|scheme| entry.name.starts_with(scheme))
}

/// Outcome of a disturbance: target at its end (bit/s), seconds until the target was 75 % of the capacity
/// again, and mean target of the last ten seconds.
struct Recovery {
    worst: f64,
    seconds: f64,
    regained: f64,
}

/// Twenty seconds of trouble on a link of 1 Mb/s, then five minutes of peace.
fn after_trouble(name: &str, preset: &str, trouble: impl Fn(&mut Bottleneck, u64)) -> Recovery {
    let mut link = Bottleneck::new(name, preset, Rate::from_kbps(1000));
    (0..400).for_each(|_| _ = link.step(false));
    (0..400).for_each(|i| trouble(&mut link, i));
    (link.capacity, link.loss) = (Rate::from_kbps(1000), 0.0);
    let worst = link.host.decision().target.as_bps_f64();
    let targets: Vec<f64> = (0..6000).map(|_| link.step(false).target.as_bps_f64()).collect();
    let seconds =
        targets.iter().position(|&target| target >= 0.75e6).map_or(f64::INFINITY, |i| i as f64 * 0.05);
    let regained = targets[5800..].iter().sum::<f64>() / 200.0;
    Recovery { worst, seconds, regained }
}

#[test]
fn they_find_their_way_back_when_faults_cease() {
    type Trouble = fn(&mut Bottleneck, u64);
    let troubles: [(&str, f64, Trouble); 6] = [
        ("no feedback", 150.0, |link, _| _ = link.step(true)),
        ("feedback in spurts of 3 s", 150.0, |link, i| _ = link.step(i % 60 != 0)),
        ("a far clock that jumps by an hour", 150.0, |link, i| {
            link.far = Span::from_secs([0, 3600, -3600][i as usize / 50 % 3]);
            let _ = link.step(false);
        }),
        ("a far clock that jumps by a second", 300.0, |link, i| {
            link.far = Span::from_secs([0, 1, -1][i as usize / 50 % 3]);
            let _ = link.step(false);
        }),
        ("half the packets lost", 150.0, |link, _| {
            link.loss = 0.5;
            let _ = link.step(false);
        }),
        ("a tenth of the capacity every other second", 150.0, |link, i| {
            link.capacity = Rate::from_kbps(if i / 20 % 2 == 0 { 100 } else { 1000 });
            let _ = link.step(false);
        }),
    ];
    let mut text = String::from(
        "20 s of trouble on 1 Mb/s: target at the end (kb/s), seconds to 75 %, target in the end (kb/s)\n",
    );
    // the bottleneck below has no losses in its receiver reports: `tests/reports.rs` has one that does
    let hears = |entry: &&Entry| {
        let needs = (entry.build)(entry.default_preset(), &Value::Null).expect("valid").needs();
        !matches!(needs.feedback, FeedbackKind::None | FeedbackKind::ReceiverReports)
    };
    for entry in registry().iter().filter(hears).filter(|entry| !needs_stamps(entry)) {
        for preset in entry.presets {
            for (what, allowed, trouble) in troubles {
                let Recovery { worst, seconds, regained } = after_trouble(entry.name, preset, trouble);
                let [worst, regained] = [worst, regained].map(|rate| rate / 1000.0);
                text += &format!("{} {preset}, {what}: {worst:.0} {seconds:.1} {regained:.0}\n", entry.name);
                // from the least rate of 30 kb/s, 8 % a second take 42 s and 5 % take 66 s; the draft's
                // filter, fed a few packets a second, needs as long again to see that a queue is gone,
                // and longer after a second's jump, which looks like a queue and is no reason to start anew
                // the thesis's threshold has no bounds: it falls to the size of the estimate, and single delays
                // are over-use for a while; and no clock of its can jump
                // ns3-rmcat warps delays for good once anything was lost, so that this queue is filled until it overflows
                // the authors' program grows by a tenth where delays differ, and fills 72 to 80 % of this link, trouble or none
                let (allowed, least) = match *preset {
                    "hoang2017" => (300.0, 300.0),
                    "ns3-rmcat" | "ericsson-2026-07" => (allowed, 700.0),
                    _ => (allowed, 750.0),
                };
                let fine = seconds <= allowed && (least..=1050.0).contains(&regained);
                assert!(fine, "{} {preset} after {what}: {worst}, {seconds} s, {regained}", entry.name);
            }
        }
    }
    crate::support::golden("crates/controllers/tests/golden/recovery.txt", &text);
}

#[test]
fn silence_lowers_the_rate_once_a_second_where_it_is_told_to() {
    let worst = |preset| after_trouble("gcc", preset, |link, _| _ = link.step(true)).worst;
    // more than 2.9 s of silence, then a fifth less every second of the 20: 16 to 18 times, to the
    // session's minimum of 30 kb/s
    assert_eq!(worst("libwebrtc-v1"), 30_000.0);
    assert_eq!(worst("draft-02"), 30_000.0);
    assert!(worst("aiortc") > 700_000.0);
}
