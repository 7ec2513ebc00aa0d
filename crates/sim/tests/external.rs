//! A driver that carries packets over external links and feeds external flows leaves the same record as
//! the links and sources of the engine, down to the order of events at one nanosecond.

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

/// Senders - narrow - middle - far - receivers, and back; the tests vary `far`. All times are
/// multiples of each other, so that many events are at the same nanosecond.
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

/// An action of a driver at a time: decides about a packet of a link, or sends on a flow.
type Act = Box<dyn FnMut(&mut Run, Time)>;

/// A driver like SimPy: at an instant the events of its own calendar come first, then those of the world, until
/// the world hands over a packet.
#[derive(Default)]
struct Calendar {
    heap: BinaryHeap<Reverse<(Time, usize)>>,
    acts: Vec<Act>,
}

impl Calendar {
    fn schedule(&mut self, time: Time, act: Act) {
        self.heap.push(Reverse((time, self.acts.len())));
        self.acts.push(act);
    }

    fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((time, _))| *time)
    }

    /// Runs to the end; `carry` decides about a packet handed over: its delay, and the cause of its death.
    fn drive(mut self, mut run: Run, mut carry: impl FnMut(Kind) -> (Span, Option<Cause>)) -> Outcome {
        let end = Time::ZERO + run.duration();
        loop {
            let own_time = self.next().filter(|&time| time <= end);
            if let Some(time) = own_time
                && run.peek().is_none_or(|world_time| time <= world_time)
            {
                let Some(Reverse((_, number))) = self.heap.pop() else { unreachable!() };
                self.acts[number](&mut run, time);
                continue;
            }
            let until = own_time.map_or(end, |time| time - Span::from_nanos(1));
            let done = run.run_driven(until, u64::MAX).unwrap();
            for handed in run.take_handed() {
                let (delay, cause) = carry(handed.packet.kind);
                let (node, number) = (handed.node, handed.number);
                self.schedule(
                    run.now() + delay,
                    Box::new(move |run, time| assert!(run.decide(node, number, time, cause))),
                );
            }
            if done && own_time.is_none() && run.peek().is_none() {
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
        let native_outcome = native(&scenario(&json!("infinite"), DELAY.as_nanos(), &flows));
        let driven = build(&scenario(&json!("external"), 0, &flows));
        let driven = Calendar::default().drive(driven, |_| (DELAY, None));
        assert_eq!(packets(&driven), packets(&native_outcome));
        assert_eq!(driven.summary.digest, native_outcome.summary.digest);
        assert_eq!(driven.hops, native_outcome.hops);
        for (a, b) in driven.summary.flows.iter().zip(&native_outcome.summary.flows) {
            let [driven, mut native] = [a, b].map(|flow| serde_json::to_value(flow).unwrap());
            // the capacity of a link in the driver's hands is unknown
            for (key, value) in native.as_object_mut().unwrap() {
                if key != "target_rate_bps" && (key.starts_with("target_") || key.starts_with("available_")) {
                    *value = serde_json::Value::Null;
                }
            }
            assert_eq!(driven, native);
        }
    }
}

/// A driver that acts after the world at each instant swaps arriving and leaving packets: this shows that there are
/// events at the same time, without which the test above would be void.
#[test]
fn the_order_at_one_instant_shows() {
    let flows = json!([udp("alone", ("b", "c"), 8_000_000)]);
    let exact = native(&scenario(&json!("infinite"), DELAY.as_nanos(), &flows));
    let mut late = build(&scenario(&json!("external"), 0, &flows));
    let mut waiting: Vec<(Time, tidegate_core::outbox::Handed)> = Vec::new();
    let end = Time::ZERO + late.duration();
    // the world first, then the driver, as in any driver that lets the world run up to the present
    let mut now = Time::ZERO;
    while now <= end {
        while !late.run_driven(now, u64::MAX).unwrap() {
            let time = late.now() + DELAY;
            waiting.extend(late.take_handed().into_iter().map(|handed| (time, handed)));
        }
        let (due, rest): (Vec<_>, _) = waiting.into_iter().partition(|&(time, _)| time <= now);
        waiting = rest;
        for (_, handed) in due {
            assert!(late.decide(handed.node, handed.number, now, None));
        }
        if late.peek().is_none_or(|time| time > now) {
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
    let mut native_scenario = scenario(&json!("infinite"), 0, &all_kinds());
    let spec = json!({"bernoulli": 0.1});
    native_scenario.links[1].settings.loss = serde_json::from_value(spec).unwrap();
    native_scenario.links[1].settings.delay = tidegate_sim::link::phases::Phases::constant(DELAY);
    let mut driven_scenario = scenario(&json!("infinite"), 0, &all_kinds());
    driven_scenario.links[1].capacity = serde_json::from_value(json!("external")).unwrap();
    let mut luck = Stream::new(3, "far", "loss");
    let driven = Calendar::default()
        .drive(build(&driven_scenario), |_| (DELAY, luck.chance(0.1).then_some(Cause::Loss)));
    let native_outcome = native(&native_scenario);
    assert!(native_outcome.summary.links[1].dropped_wire > 100);
    assert_eq!(packets(&driven), packets(&native_outcome));
    assert_eq!(driven.summary.digest, native_outcome.summary.digest);
}

#[test]
fn a_flow_that_the_driver_feeds_equals_one_of_the_engine() {
    let flows = |kind: Value| {
        let mut flows = all_kinds();
        flows[0]["kind"] = kind;
        flows
    };
    let native_outcome = native(&scenario(&json!("infinite"), DELAY.as_nanos(), &all_kinds()));
    let mut run = build(&scenario(&json!("infinite"), DELAY.as_nanos(), &flows(json!("external"))));
    let [flow] = &run.external().flows[..] else { panic!("one flow") };
    let source = flow.source;
    assert_eq!(run.external().first().as_deref(), Some("flows.steady"));
    let mut calendar = Calendar::default();
    for packet in 0..=1200 {
        // 1000 bytes at 1.6 Mbit/s
        let time = Time::from_millis(5 * packet);
        let feed = move |world: &mut Run, time| {
            assert!(world.feed(source, time, 1000, Ecn::NotEct, packet as u64 ^ u64::MAX))
        };
        calendar.schedule(time, Box::new(feed));
    }
    // packets that arrive at the sink need no decision
    let mut received = 0;
    let end = Time::ZERO + run.duration();
    while let Some(Reverse((time, number))) = calendar.heap.pop() {
        while !run.run_driven(time - Span::from_nanos(1), u64::MAX).unwrap() {
            for handed in run.take_handed() {
                assert_eq!(handed.packet.tag(), Some(u64::from(handed.packet.sequence) ^ u64::MAX));
                assert_eq!(handed.number, received);
                received += 1;
            }
        }
        calendar.acts[number](&mut run, time);
    }
    run.run_until(end).unwrap();
    received += run.take_handed().len() as u64;
    let driven = run.finish().unwrap();
    assert_eq!(packets(&driven), packets(&native_outcome));
    assert_eq!(driven.summary.digest, native_outcome.summary.digest);
    assert_eq!(driven.summary.flows[0].kind, "external");
    // one second in six is the warm-up
    let counted = driven.summary.flows[0].packets_received;
    assert!(received > counted && counted.abs_diff(received * 5 / 6) < 50, "{received} {counted}");
}

#[test]
fn the_fate_of_a_packet_is_decided_once_and_undecided_packets_are_inside() {
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
