//! A driver that carries packets over external links and feeds external flows leaves the same story behind as
//! the links and sources of the engine, down to the order of what happens at one nanosecond.

use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tidegate_core::{Cause, Ecn, Kind, Span, Stream, Time};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run};

const DELAY: Span = Span::from_millis(5);
const SECOND: i64 = 1_000_000_000;

fn link(name: &str, ends: (&str, &str), capacity: &Value, delay: i64) -> Value {
    json!({"name": name, "from": ends.0, "to": ends.1, "capacity": capacity,
           "settings": {"delay": delay, "queue": {"packets": 20}}})
}

/// Senders - narrow - middle - far - receivers, and back; `far` is what the tests are about. All times are
/// multiples of each other, so that much happens at the same nanosecond.
fn scenario(far: &Value, delay: i64, flows: &Value) -> Scenario {
    let narrow = json!({"constant": 8_000_000});
    serde_json::from_value(json!({
        "name": "external", "duration": 6 * SECOND, "warmup": SECOND, "seed": 3, "sending_jitter": "off",
        "record": {"level": "packets", "bin": SECOND / 10},
        "links": [
            link("narrow", ("a", "b"), &narrow, 1_000_000),
            link("far", ("b", "c"), far, delay),
            link("far.back", ("c", "b"), far, delay),
            link("narrow.back", ("b", "a"), &narrow, 1_000_000),
        ],
        "flows": flows,
    }))
    .unwrap()
}

fn udp(name: &str, ends: (&str, &str), rate: u64) -> Value {
    // 1000 bytes: at 8 Mbit/s one millisecond each
    let kind = json!({"udp": {"pattern": "cbr", "rate": rate, "packet_size": 1000}});
    json!({"name": name, "from": ends.0, "to": ends.1, "kind": kind})
}

fn all_kinds() -> Value {
    let media = json!({"media": {
        "controller": {"name": "gcc"}, "min_rate": 30_000, "max_rate": 3_000_000, "start_rate": 1_000_000,
        "video": {"source": "ideal", "min": 30_000, "max": 3_000_000, "fps": 25.0},
        "feedback": {"format": "twcc", "interval": 50_000_000},
        "playout": {"adaptive": {"min": 0, "max": SECOND}}, "payload": 972, "overhead": 16,
    }});
    let tcp = json!({"tcp": {
        "algorithm": "cubic", "workload": "long", "initial_window": 10, "min_rto": SECOND,
        "delayed_ack": false, "handshake": false,
        "receive_window": 100_000, "packet_size": 1000,
    }});
    json!([
        udp("steady", ("a", "c"), 1_600_000),
        udp("also", ("a", "c"), 1_600_000),
        udp("across", ("c", "a"), 1_600_000),
        udp("short", ("b", "c"), 8_000_000),
        {"name": "call", "from": "a", "to": "c", "kind": media},
        {"name": "file", "from": "a", "to": "c", "start": SECOND / 2, "kind": tcp},
    ])
}

fn build(scenario: &Scenario) -> Run {
    Run::new(scenario, &[], &mut |spec| from_registry(spec)).unwrap()
}

fn native(scenario: &Scenario) -> Outcome {
    let mut run = build(scenario);
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

/// What a driver does at a time: let packet `number` of a link go, or send on a flow.
type Act = Box<dyn FnMut(&mut Run, Time)>;

/// A driver as SimPy is one: what is due at an instant by its own calendar comes first, then the world, until
/// it hands something over.
#[derive(Default)]
struct Calendar {
    heap: BinaryHeap<Reverse<(Time, usize)>>,
    acts: Vec<Act>,
}

impl Calendar {
    fn at(&mut self, at: Time, act: Act) {
        self.heap.push(Reverse((at, self.acts.len())));
        self.acts.push(act);
    }

    fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// `carry`: what happens to a packet handed over: its delay, and what it dies of.
    fn drive(mut self, mut run: Run, mut carry: impl FnMut(Kind) -> (Span, Option<Cause>)) -> Outcome {
        let end = Time::ZERO + run.duration();
        loop {
            let ours = self.next().filter(|&at| at <= end);
            if let Some(at) = ours
                && run.peek().is_none_or(|theirs| at <= theirs)
            {
                let Some(Reverse((_, number))) = self.heap.pop() else { unreachable!() };
                self.acts[number](&mut run, at);
                continue;
            }
            let until = ours.map_or(end, |at| at - Span::from_nanos(1));
            let done = run.run_driven(until, u64::MAX).unwrap();
            for handed in run.take_handed() {
                let (delay, cause) = carry(handed.packet.kind);
                let (node, number) = (handed.node, handed.number);
                self.at(
                    run.now() + delay,
                    Box::new(move |run, at| assert!(run.decide(node, number, at, cause))),
                );
            }
            if done && ours.is_none() && run.peek().is_none() {
                return run.finish().unwrap();
            }
        }
    }
}

fn packets(outcome: &Outcome) -> String {
    format!("{:?}", outcome.recording.table("packets").unwrap().columns)
}

#[test]
fn a_link_in_the_drivers_hands_equals_one_of_the_engine() {
    for flows in [all_kinds(), json!([udp("alone", ("b", "c"), 8_000_000)])] {
        let ours = native(&scenario(&json!("infinite"), DELAY.as_nanos(), &flows));
        let theirs = build(&scenario(&json!("external"), 0, &flows));
        let theirs = Calendar::default().drive(theirs, |_| (DELAY, None));
        assert_eq!(packets(&theirs), packets(&ours));
        assert_eq!(theirs.summary.digest, ours.summary.digest);
        assert_eq!(theirs.hops, ours.hops);
        for (a, b) in theirs.summary.flows.iter().zip(&ours.summary.flows) {
            assert_eq!(serde_json::to_value(a).unwrap(), serde_json::to_value(b).unwrap());
        }
    }
}

/// A driver that acts after the world at each instant makes packets that arrive and packets that leave change places:
/// the test above would not be one if nothing happened at the same time.
#[test]
fn the_order_at_one_instant_shows() {
    let flows = json!([udp("alone", ("b", "c"), 8_000_000)]);
    let exact = native(&scenario(&json!("infinite"), DELAY.as_nanos(), &flows));
    let mut late = build(&scenario(&json!("external"), 0, &flows));
    let mut waiting: Vec<(Time, tidegate_core::outbox::Handed)> = Vec::new();
    let end = Time::ZERO + late.duration();
    // the world first, then the driver: what any driver does that lets the world run up to the present
    let mut now = Time::ZERO;
    while now <= end {
        while !late.run_driven(now, u64::MAX).unwrap() {
            let at = late.now() + DELAY;
            waiting.extend(late.take_handed().into_iter().map(|handed| (at, handed)));
        }
        let (due, rest): (Vec<_>, _) = waiting.into_iter().partition(|&(at, _)| at <= now);
        waiting = rest;
        for (_, handed) in due {
            assert!(late.decide(handed.node, handed.number, now, None));
        }
        if late.peek().is_none_or(|at| at > now) {
            now += Span::from_millis(1);
        }
    }
    let late = late.finish().unwrap();
    assert_eq!(late.summary.flows[0].packets_received, exact.summary.flows[0].packets_received);
    assert_ne!(late.summary.digest, exact.summary.digest);
}

#[test]
fn loss_and_jitter_in_the_drivers_hands_equal_those_of_the_engine() {
    // draws from the link's own substreams, in the order in which its packets come in
    let mut ours = scenario(&json!("infinite"), 0, &all_kinds());
    let spec = json!({"bernoulli": 0.1});
    ours.links[1].settings.loss = serde_json::from_value(spec).unwrap();
    ours.links[1].settings.delay = tidegate_sim::link::phases::Phases::constant(DELAY);
    let mut theirs = scenario(&json!("infinite"), 0, &all_kinds());
    theirs.links[1].capacity = serde_json::from_value(json!("external")).unwrap();
    let mut luck = Stream::new(3, "far", "loss");
    let theirs =
        Calendar::default().drive(build(&theirs), |_| (DELAY, luck.chance(0.1).then_some(Cause::Loss)));
    let ours = native(&ours);
    assert!(ours.summary.links[1].dropped_wire > 100);
    assert_eq!(packets(&theirs), packets(&ours));
    assert_eq!(theirs.summary.digest, ours.summary.digest);
}

#[test]
fn a_flow_that_the_driver_feeds_equals_one_of_the_engine() {
    let flows = |kind: Value| {
        let mut flows = all_kinds();
        flows[0]["kind"] = kind;
        flows
    };
    let ours = native(&scenario(&json!("infinite"), DELAY.as_nanos(), &all_kinds()));
    let theirs = build(&scenario(&json!("infinite"), DELAY.as_nanos(), &flows(json!("external"))));
    let [flow] = &theirs.external().flows[..] else { panic!("one flow") };
    let source = flow.source;
    assert_eq!(theirs.external().first().as_deref(), Some("flows.steady"));
    let mut calendar = Calendar::default();
    for packet in 0..=1200 {
        // 1000 bytes at 1.6 Mbit/s
        let at = Time::from_millis(5 * packet);
        let feed = move |world: &mut Run, at| {
            assert!(world.feed(source, at, 1000, Ecn::NotEct, packet as u64 ^ u64::MAX))
        };
        calendar.at(at, Box::new(feed));
    }
    // what arrives at the sink is nobody's to carry
    let mut heard = 0;
    let mut run = theirs;
    let end = Time::ZERO + run.duration();
    while let Some(Reverse((at, number))) = calendar.heap.pop() {
        while !run.run_driven(at - Span::from_nanos(1), u64::MAX).unwrap() {
            for handed in run.take_handed() {
                assert_eq!(handed.packet.tag(), Some(u64::from(handed.packet.sequence) ^ u64::MAX));
                assert_eq!(handed.number, heard);
                heard += 1;
            }
        }
        calendar.acts[number](&mut run, at);
    }
    run.run_until(end).unwrap();
    heard += run.take_handed().len() as u64;
    let theirs = run.finish().unwrap();
    assert_eq!(packets(&theirs), packets(&ours));
    assert_eq!(theirs.summary.digest, ours.summary.digest);
    assert_eq!(theirs.summary.flows[0].kind, "external");
    // one second in six is the warm-up
    let counted = theirs.summary.flows[0].packets_received;
    assert!(heard > counted && counted.abs_diff(heard * 5 / 6) < 50, "{heard} {counted}");
}

#[test]
fn the_fate_of_a_packet_is_decided_once_and_what_is_kept_is_inside() {
    let flows = json!([udp("alone", ("b", "c"), 8_000_000)]);
    let mut world = build(&scenario(&json!("external"), 0, &flows));
    let (link, back) = (world.external().links[0].1, world.external().links[1].1);
    assert_eq!(world.external().first().as_deref(), Some("links.far"));
    let mut numbers = Vec::new();
    while numbers.len() < 100 {
        assert!(!world.run_driven(Time::from_secs(9), u64::MAX).unwrap());
        numbers.extend(world.take_handed().iter().map(|handed| handed.number));
    }
    let now = world.now();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    // in any order
    assert!(world.decide(link, 70, now, None) && world.decide(link, 3, now, Some(Cause::Outage)));
    assert!(world.decide(link, 0, now, None));
    for (node, number) in [(link, 70), (link, 3), (link, 0), (link, 100), (link, u64::MAX), (back, 1)] {
        assert!(!world.decide(node, number, now, None), "{number}");
    }
    assert!(!world.feed(link, now, 100, Ecn::NotEct, 0), "a link is no flow");
    // 97 stay with the driver: finishing checks that none went missing
    let outcome = world.finish_at(now + Span::from_millis(10)).unwrap();
    assert_eq!(outcome.summary.duration_s, now.as_secs_f64() + 0.01);
    let flow = &outcome.summary.flows[0];
    assert_eq!(flow.stop_s, outcome.summary.duration_s);
    let rows = packets(&outcome);
    assert!(rows.contains("outage"), "{rows}");
}
