//! Events at one nanosecond: their order does not depend on when a wakeup was set or on nodes woken in
//! vain, and prefers no flow.

use serde_json::{Value, json};
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{FlowId, Node, Outbox, Packet, Port, Rate, Recorder, RouteId, Size, Span, Stream, Time};
use tidegate_sim::link::queue::DropTail;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run};
use tidegate_sim::traffic::udp::{Pattern, UdpSettings};
use tidegate_sim::{Link, LinkSettings, Sink, UdpSource, World};

/// A wrapper that wakes its node at random times, too.
struct Restless {
    node: Box<dyn Node>,
    luck: Stream,
    /// Shares of the wakeups that are at a whole millisecond, and again at the same instant.
    round: f64,
    twice: f64,
    next: Time,
}

impl Restless {
    fn new(node: Box<dyn Node>, seed: u64) -> Self {
        let luck = Stream::new(seed, node.name(), "restless");
        Self { node, luck, round: 0.7, twice: 0.3, next: Time::ZERO }
    }
}

impl Node for Restless {
    fn name(&self) -> &str {
        self.node.name()
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.node.next_wakeup().map_or(self.next, |time| time.min(self.next)))
    }

    fn advance(&mut self, now: Time, out: &mut Outbox) {
        self.node.advance(now, out);
        if self.next <= now && !self.luck.chance(self.twice) {
            let ahead = now + Span::from_nanos(1 + self.luck.below(3_000_000) as i64);
            let millis = ahead.as_nanos() / 1_000_000;
            // at times of many events, and often when the node itself will be due
            self.next = if self.luck.chance(self.round) { Time::from_millis(millis + 1) } else { ahead };
            if self.luck.chance(0.3) {
                self.next = self.node.next_wakeup().filter(|&time| time > now).unwrap_or(self.next);
            }
        }
    }

    fn receive(&mut self, now: Time, port: Port, packet: Box<Packet>, out: &mut Outbox) {
        self.node.receive(now, port, packet, out);
        if self.luck.chance(0.2) {
            self.next = now;
        }
    }

    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.node.contents(visit);
    }

    fn backlog(&self, now: Time) -> Option<Backlog> {
        self.node.backlog(now)
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.node.draws(visit);
    }

    fn finish(&mut self, now: Time, out: &mut Outbox) {
        self.node.finish(now, out);
    }
}

fn link(name: &str, ends: (&str, &str), capacity: &Value, delay: i64, packets: u32) -> Value {
    json!({
        "name": name, "from": ends.0, "to": ends.1, "capacity": capacity,
        "settings": {"delay": delay, "queue": {"packets": packets}},
    })
}

/// Times that are multiples of each other, links that take no time, and no sending jitter: most events coincide
/// with others at the same nanosecond.
fn coinciding() -> Scenario {
    const SECOND: i64 = 1_000_000_000;
    let udp = |name: &str, from: &str, to: &str, rate: u64| {
        let kind = json!({"udp": {"pattern": "cbr", "rate": rate, "packet_size": 1000}});
        json!({"name": name, "from": from, "to": to, "kind": kind})
    };
    let tcp = json!({"tcp": {
        "algorithm": "reno", "workload": "long", "initial_window": 10, "min_rto": SECOND,
        "delayed_ack": true, "handshake": true, "receive_window": 100_000, "packet_size": 1000,
    }});
    let media = json!({"media": {
        "controller": {"name": "gcc"}, "min_rate": 30_000, "max_rate": 3_000_000, "start_rate": 1_000_000,
        "video": {"source": "ideal", "min": 30_000, "max": 3_000_000, "fps": 25.0},
        "feedback": {"format": "twcc", "interval": 50_000_000},
        "playout": {"adaptive": {"min": 0, "max": SECOND}}, "payload": 972, "overhead": 16,
    }});
    let narrow = json!({"constant": 8_000_000});
    serde_json::from_value(json!({
        "name": "coinciding", "duration": 10 * SECOND, "warmup": SECOND, "seed": 3, "sending_jitter": "off",
        "record": {"level": "packets", "bin": SECOND / 10},
        "links": [
            link("in", ("a", "b"), &json!("infinite"), 0, 1000),
            link("narrow", ("b", "c"), &narrow, 5_000_000, 20),
            link("out", ("c", "d"), &json!("infinite"), 0, 1000),
            link("out.back", ("d", "c"), &json!("infinite"), 0, 1000),
            link("narrow.back", ("c", "b"), &narrow, 5_000_000, 20),
            link("in.back", ("b", "a"), &json!("infinite"), 0, 1000),
        ],
        "flows": [
            udp("left", "a", "d", 1_600_000),
            udp("right", "b", "d", 1_600_000),
            udp("back", "d", "a", 1_600_000),
            udp("last", "c", "d", 800_000),
            {"name": "call", "from": "a", "to": "d", "kind": media},
            {"name": "file", "from": "a", "to": "d", "start": SECOND / 2, "kind": tcp},
        ],
    }))
    .unwrap()
}

fn run(run: Run) -> Outcome {
    let mut run = run;
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

fn packets(outcome: &Outcome) -> String {
    outcome.recording.table("packets").map(|table| format!("{:?}", table.columns)).unwrap_or_default()
}

#[test]
fn waking_nodes_in_vain_moves_nothing() {
    let shipped = [
        include_str!("digest/brownian.json"),
        include_str!("digest/lossy.json"),
        include_str!("digest/both-ways.json"),
    ];
    let mut scenarios: Vec<Scenario> = shipped.map(|text| serde_json::from_str(text).unwrap()).into();
    scenarios.push(coinciding());
    for scenario in &scenarios {
        let build = || Run::new(scenario, &[], &mut from_registry).unwrap();
        let calm = run(build());
        for seed in 0..5 {
            // all nodes, or one in two
            let mut choice = Stream::new(seed, "restless", "choice");
            let restless = run(build().around(|node| {
                let woken = seed < 2 || choice.chance(0.5);
                if woken { Box::new(Restless::new(node, seed)) } else { node }
            }));
            let name = &scenario.name;
            assert!(
                restless.events > calm.events + calm.events / 20,
                "{name}, {seed}: {} events, {} in calm",
                restless.events,
                calm.events
            );
            assert_eq!(packets(&restless), packets(&calm), "{name}, {seed}");
            assert_eq!(restless.summary.digest, calm.summary.digest, "{name}, {seed}");
            assert_eq!(restless.draws, calm.draws, "{name}, {seed}");
        }
    }
}

/// Flows of the packets that arrived, in order.
#[derive(Default)]
struct Arrivals(Vec<(Time, FlowId)>);

impl Recorder for Arrivals {
    fn arrived(&mut self, now: Time, packet: &Packet) {
        self.0.push((now, packet.flow));
    }
}

/// Two equal sources that always send at the same nanosecond, into one queue.
fn two_of_a_kind(names: [&str; 2], pitch: Span, queue: DropTail) -> Vec<(Time, FlowId)> {
    let size = 1000;
    let rate = Size::from_bytes(size).per(pitch);
    let source = |flow: u32| {
        let settings = UdpSettings {
            flow: FlowId(flow),
            route: RouteId(0),
            size: size as u32,
            start: Time::ZERO,
            stop: Time::ZERO + pitch.scaled(10_000.0),
            pattern: Pattern::Cbr,
            rate,
            schedule: None,
            jitter: Span::ZERO,
        };
        Box::new(UdpSource::new(names[flow as usize], 1, settings).unwrap())
    };
    // it serves one and a quarter packets in a pitch
    let capacity = Rate::from_bps(rate.as_bps() * 5 / 4);
    let settings = LinkSettings::constant(capacity, Span::ZERO).with_queue(queue);
    let nodes: Vec<Box<dyn Node>> = vec![
        source(0),
        source(1),
        Box::new(Link::new("link", 1, settings).unwrap()),
        Box::new(Sink::new("sink")),
    ];
    let route = [2, 3].map(|node| (tidegate_core::NodeId(node), Port::ZERO)).to_vec();
    let mut world = World::new(nodes, vec![route], Box::<Arrivals>::default());
    world.run_until(Time::MAX - Span::from_secs(1)).unwrap();
    let arrivals: Box<dyn std::any::Any> = world.finish().unwrap();
    arrivals.downcast::<Arrivals>().unwrap().0
}

#[test]
fn two_flows_whose_packets_always_coincide_share_the_first_place() {
    for names in [["one", "other"], ["other", "one"], ["call-1", "call-2"]] {
        for pitch in [1, 10, 16].map(Span::from_millis) {
            let arrivals = two_of_a_kind(names, pitch, DropTail::UNLIMITED);
            assert_eq!(arrivals.len(), 20_000);
            let first = arrivals.iter().step_by(2).filter(|(_, flow)| *flow == FlowId(0)).count() as i64;
            // 10000 fair coins: 5 standard deviations are 250
            assert!((first - 5000).abs() < 250, "{names:?}, {pitch}: {first} of 10000");
            // where the second packet of a pair finds no room, each flow has half of the losses
            let arrivals = two_of_a_kind(names, pitch, DropTail::packets(1));
            let first_flow = arrivals.iter().filter(|(_, flow)| *flow == FlowId(0)).count() as i64;
            let total = arrivals.len() as i64;
            assert!((9_900..10_200).contains(&total), "{total}");
            assert!((first_flow - total / 2).abs() < 250, "{names:?}, {pitch}: {first_flow} of {total}");
        }
    }
}
