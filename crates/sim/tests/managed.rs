//! The link that serves packet by packet, compared with the one that computes a packet's departure and arrival at once.

use serde_json::{Value, json};
use std::any::Any;
use tidegate_core::{
    FlowId, Node, NodeId, Outbox, Packet, Port, Rate, Recorder, RouteId, Span, Stream, Time,
};
use tidegate_sim::link::LinkChange;
use tidegate_sim::link::capacity::{OpportunityTrace, Server, Steps};
use tidegate_sim::link::loss::Loss;
use tidegate_sim::link::phases::Phases;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{LinkService, Scenario};
use tidegate_sim::scenario::{Outcome, Run};
use tidegate_sim::traffic::udp::{Pattern, UdpSettings};
use tidegate_sim::{LinkSettings, ManagedLink, Refusal, Sink, UdpSource, World};

const SECOND: i64 = 1_000_000_000;

fn run(scenario: &Scenario, service: LinkService) -> Outcome {
    let mut scenario = scenario.clone();
    scenario.links.iter_mut().for_each(|link| link.service = service);
    let mut run = Run::new(&scenario, &[], &mut from_registry).unwrap();
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

/// Asserts that both services give the same digests, tables and metrics.
fn assert_same(scenario: &Scenario) -> Outcome {
    let [fifo, managed] = [LinkService::Fifo, LinkService::Managed].map(|service| run(scenario, service));
    let name = &scenario.name;
    assert_eq!(managed.summary.digest, fifo.summary.digest, "{name}");
    for table in ["packets", "queues", "series", "truth"] {
        let [managed_text, fifo_text] = [&managed, &fifo].map(|outcome| {
            outcome.recording.table(table).map(|table| format!("{:?}", table.columns)).unwrap_or_default()
        });
        assert!(managed_text == fifo_text, "{name}: {table}");
    }
    let [managed_text, fifo_text] =
        [&managed, &fifo].map(|outcome| serde_json::to_string(&outcome.summary).unwrap());
    assert_eq!(managed_text, fifo_text, "{name}");
    assert_eq!(managed.hops, fifo.hops, "{name}");
    managed
}

#[test]
fn drop_tail_is_the_same_packet_by_packet() {
    for text in [
        include_str!("digest/brownian.json"),
        include_str!("digest/lossy.json"),
        include_str!("digest/both-ways.json"),
    ] {
        assert_same(&serde_json::from_str(text).unwrap());
    }
}

/// Every kind of capacity, limit, jitter and loss, with packets that come at the instants at which others leave.
#[test]
fn drop_tail_is_the_same_for_every_kind_of_link() {
    let statuses = json!({"statuses": {
        "interval": SECOND / 4, "rate_window": 0,
        "statuses": [
            {"name": "much", "capacity": 4_000_000, "probability": 0.5},
            {"name": "little", "capacity": 500_000, "probability": 0.5},
        ],
    }});
    let capacities = [
        json!("infinite"),
        json!({"constant": 2_000_000}),
        json!({"constant": 2_333_333}),
        json!({"constant": 0}),
        json!({"schedule": {"steps": [[0, 0], [SECOND, 3_000_000], [2 * SECOND, 777_777]], "period": 3 * SECOND}}),
        json!({"schedule": {"steps": [[0, 3_000_000], [2 * SECOND, 0]]}}),
        json!({"brownian": {"start": 2_000_000, "max": 4_000_000, "sigma": 1_000_000, "outage_escape": 1.0}}),
        statuses.clone(),
    ];
    let queues = [
        json!({}),
        json!({"packets": 1}),
        json!({"packets": 1, "counts_in_service": false}),
        json!({"packets": 7, "counts_in_service": false}),
        json!({"bytes": 2500, "counts_in_service": true}),
        json!({"time": SECOND / 20, "counts_in_service": false}),
    ];
    let jitters = [
        json!("none"),
        json!({"rfc8868": {"std": 5_000_000, "n_std": 3.0}}),
        json!({"uniform": 8_000_000}),
        json!({"normal": 3_000_000}),
    ];
    let losses = [
        json!("none"),
        json!({"bernoulli": 0.1}),
        json!([[0, {"bernoulli": 0.0}], [SECOND, {"bernoulli": 0.3}]]),
    ];
    let mut luck = Stream::new(1, "managed", "test");
    let mut pick = |from: &[Value]| from[luck.below(from.len() as u64) as usize].clone();
    let mut carried = 0;
    for turn in 0..150 {
        let capacity = pick(&capacities);
        let fixed = capacity == statuses;
        let (queue, loss) = (pick(&queues), pick(&losses));
        let link = |name: &str, from: &str, to: &str, jitter: Value| {
            json!({
                "name": name, "from": from, "to": to, "capacity": capacity,
                "settings": {
                    "delay": 5_000_000, "jitter": jitter, "byte_error": 1e-5,
                    "queue": if fixed { json!({}) } else { queue.clone() },
                    "loss": if fixed { json!("none") } else { loss.clone() },
                },
            })
        };
        let udp = |name: &str, pattern: Value, rate: u64| {
            let kind = json!({"udp": {"pattern": pattern, "rate": rate, "packet_size": 1000}});
            json!({"name": name, "from": "a", "to": "c", "kind": kind})
        };
        let tcp = json!({"tcp": {
            "algorithm": "cubic", "workload": "long", "initial_window": 10, "min_rto": SECOND,
            "delayed_ack": true, "handshake": true, "receive_window": 100_000, "packet_size": 1000,
        }});
        let scenario = json!({
            "name": format!("turn {turn}"), "duration": 5 * SECOND, "seed": turn, "sending_jitter": "off",
            "record": {"level": "packets", "bin": SECOND / 10},
            "links": [
                link("one", "a", "b", pick(&jitters)),
                link("two", "b", "c", pick(&jitters)),
                link("back", "c", "a", json!("none")),
            ],
            "flows": [
                udp("steady", json!("cbr"), 1_000_000),
                udp("random", json!("poisson"), 700_000),
                {"name": "file", "from": "a", "to": "c", "start": SECOND / 2, "kind": tcp},
            ],
        });
        carried += assert_same(&serde_json::from_value(scenario).unwrap()).hops;
    }
    assert!(carried > 100_000, "{carried} packets");
}

/// A recorder of the arrivals of packets and their waits.
#[derive(Default)]
struct Arrivals(Vec<(Time, Span)>);

impl Recorder for Arrivals {
    fn arrived(&mut self, now: Time, packet: &Packet) {
        if packet.duplicate {
            return;
        }
        self.0.push((now, packet.queued));
    }
}

/// A world of packets of 1000 bytes every millisecond from 0 on, 20 of them, through a managed link.
fn through(settings: LinkSettings) -> World {
    let source = UdpSettings {
        flow: FlowId(0),
        route: RouteId(0),
        size: 1000,
        start: Time::ZERO,
        stop: Time::from_millis(20),
        pattern: Pattern::Cbr,
        rate: Rate::from_mbps(8),
        schedule: None,
        jitter: Span::ZERO,
    };
    let nodes: Vec<Box<dyn Node>> = vec![
        Box::new(UdpSource::new("source", 1, source).unwrap()),
        Box::new(ManagedLink::new("link", 1, settings).unwrap()),
        Box::new(Sink::new("sink")),
    ];
    let route = [1, 2].map(|node| (NodeId(node), Port::ZERO)).to_vec();
    World::new(nodes, vec![route], Box::<Arrivals>::default())
}

fn with_link<R>(world: &mut World, tell: impl FnOnce(&mut ManagedLink) -> R) -> R {
    world.tell(NodeId(1), tell).unwrap()
}

/// Runs the world until just before `time`, and makes a change of its link then.
fn change(world: &mut World, time: Time, change: LinkChange) -> Result<(), Refusal> {
    world.run_until(time - Span::from_nanos(1)).unwrap();
    let mut result = Ok(());
    let change = |link: &mut dyn Any, out: &mut Outbox| {
        result = link.downcast_mut::<ManagedLink>().unwrap().change(time, &change, out);
    };
    world.tell_at(time, NodeId(1), change).unwrap();
    result
}

fn capacity(mbps: u64) -> LinkChange {
    LinkChange { capacity: Some(Rate::from_mbps(mbps)), ..LinkChange::default() }
}

fn arrivals(world: World) -> Vec<(Time, Span)> {
    let recorder: Box<dyn std::any::Any> = world.finish().unwrap();
    recorder.downcast::<Arrivals>().unwrap().0
}

/// At 4 Mbit/s a packet takes 2 ms, and one comes every millisecond: the k-th, from 0 on, would leave at
/// 2 (k + 1) ms. At 21 ms the eleventh is half served and nine wait; at 1 Mbit/s its second half takes 4 ms and each
/// of the others 8.
#[test]
fn a_rate_that_is_quartered_under_a_full_queue_holds_for_the_remaining_bits() {
    let ms = Time::from_millis;
    let mut world = through(LinkSettings::constant(Rate::from_mbps(4), Span::from_millis(5)));
    world.run_until(ms(21)).unwrap();
    change(&mut world, ms(21), capacity(1)).unwrap();
    world.run_until(ms(200)).unwrap();
    assert_eq!(with_link(&mut world, |link| link.capacity(ms(0), ms(42))), Some(Rate::from_kbps(2500)));
    let packets = arrivals(world);
    assert_eq!(packets.len(), 20);
    for (k, &(arrival, queued)) in (0_i64..).zip(&packets) {
        let (start, end) = match k {
            0..=9 => (2 * k, 2 * (k + 1)),
            10 => (20, 25),
            _ => (25 + 8 * (k - 11), 25 + 8 * (k - 10)),
        };
        assert_eq!((arrival, queued), (ms(end + 5), ms(start) - ms(k)), "packet {k}");
    }
}

#[test]
fn a_link_that_is_switched_off_and_on_goes_on_where_it_stopped() {
    let ms = Time::from_millis;
    let mut world = through(LinkSettings::constant(Rate::from_mbps(8), Span::ZERO));
    world.run_until(Time::from_micros(4500)).unwrap();
    change(&mut world, Time::from_micros(4500), capacity(0)).unwrap();
    world.run_until(ms(30)).unwrap();
    assert_eq!(world.peek(), None, "no packet leaves any more");
    change(&mut world, ms(30), capacity(16)).unwrap();
    world.run_until(ms(100)).unwrap();
    let packets = arrivals(world);
    let micros: Vec<i64> = packets.iter().map(|(arrival, _)| arrival.as_nanos() / 1000).collect();
    // four packets take a millisecond each; the rest of the fifth takes a quarter of one, and the others half of one
    let later = (0..16).map(|k| 30_250 + 500 * k);
    assert_eq!(micros, [1000, 2000, 3000, 4000].into_iter().chain(later).collect::<Vec<_>>());
}

#[test]
fn delay_and_loss_change_for_packets_served_from_then_on() {
    let ms = Time::from_millis;
    let mut world = through(LinkSettings::constant(Rate::from_mbps(8), Span::from_millis(10)));
    let delay = |ms| LinkChange { delay: Some(Span::from_millis(ms)), ..LinkChange::default() };
    let loss = |loss| LinkChange { loss: Some(Phases::constant(loss)), ..LinkChange::default() };
    change(&mut world, Time::from_micros(5500), delay(2)).unwrap();
    change(&mut world, Time::from_micros(9500), loss(Loss::Bernoulli(1.0))).unwrap();
    change(&mut world, Time::from_micros(14_500), loss(Loss::None)).unwrap();
    assert!(change(&mut world, Time::from_micros(14_500), delay(-1)).is_err());
    assert!(change(&mut world, Time::from_micros(14_500), loss(Loss::Bernoulli(2.0))).is_err());
    world.run_until(ms(100)).unwrap();
    let millis: Vec<i64> =
        arrivals(world).iter().map(|(arrival, _)| arrival.as_nanos() / 1_000_000).collect();
    // served at 1 to 20 ms: five with 10 ms; packets that would overtake the fifth arrive with it; 10 to 14 die
    let expected = [11, 12, 13, 14, 15, 15, 15, 15, 15, 17, 18, 19, 20, 21, 22];
    assert_eq!(millis, expected);
}

fn settings(table: Value) -> LinkSettings {
    let settings: LinkSettings = serde_json::from_value(table).unwrap();
    LinkSettings { server: Server::constant(Rate::from_mbps(4)), ..settings }
}

fn queue_change(change: Value) -> LinkChange {
    serde_json::from_value(change).unwrap()
}

/// Milliseconds of arrival of each packet.
fn arrival_millis(world: World) -> Vec<i64> {
    arrivals(world).iter().map(|(arrival, _)| arrival.as_nanos() / 1_000_000).collect()
}

/// At 4 Mbit/s a packet takes 2 ms, and one comes every millisecond: at 21 ms ten have arrived, the eleventh is in service
/// and nine wait.
#[test]
fn packets_that_wait_come_into_the_other_queue_in_order_and_the_last_ones_do_not_fit() {
    let ms = Time::from_millis;
    let codel =
        json!({"codel": {"target": 900_000_000, "interval": 900_000_000, "maxpacket": 1500, "ecn": true}});
    for (change_json, expected) in [
        (json!({"queue": {"packets": 4}}), 14),
        (json!({"queue": {"packets": 4, "counts_in_service": false}}), 15),
        (json!({"queue": {"bytes": 3500}}), 13),
        // 9 ms at 4 Mbit/s are 4500 bytes, packets have 1000
        (json!({"queue": {"time": 9_000_000}}), 14),
        (json!({"discipline": codel, "queue": {"packets": 4}}), 14),
        (json!({"discipline": codel}), 20),
        // tokens of four packets
        (
            json!({"discipline": {"policer": {
                "rate": 1, "burst": 4100, "mtu": 1500, "discipline": "drop_tail",
            }}}),
            15,
        ),
    ] {
        let mut world = through(settings(json!({})));
        change(&mut world, ms(21), queue_change(change_json.clone())).unwrap();
        world.run_until(ms(200)).unwrap();
        let millis: Vec<i64> = (1..=expected).map(|number| 2 * number).collect();
        assert_eq!(arrival_millis(world), millis, "{change_json}");
    }
}

/// Flows and times of sending of what arrives.
#[derive(Default)]
struct Order(Vec<(u32, Time)>);

impl Recorder for Order {
    fn arrived(&mut self, _now: Time, packet: &Packet) {
        self.0.push((packet.flow.0, packet.sent));
    }
}

/// Two flows in queues of their own come into one as they came to the link, and not queue by queue.
#[test]
fn packets_of_several_queues_come_into_one_in_the_order_of_time() {
    let source = |flow: u32, start_us: i64| UdpSettings {
        flow: FlowId(flow),
        route: RouteId(0),
        size: 1000,
        start: Time::from_micros(start_us),
        stop: Time::from_millis(20),
        pattern: Pattern::Cbr,
        rate: Rate::from_mbps(8),
        schedule: None,
        jitter: Span::ZERO,
    };
    let fair = json!({"fq_codel": {
        "target": 900_000_000, "interval": 900_000_000, "maxpacket": 1500, "ecn": true, "quantum": 1514, "flows": 1024,
    }});
    let nodes: Vec<Box<dyn Node>> = vec![
        Box::new(UdpSource::new("one", 1, source(0, 0)).unwrap()),
        Box::new(ManagedLink::new("link", 1, settings(json!({"discipline": fair}))).unwrap()),
        Box::new(Sink::new("sink")),
        Box::new(UdpSource::new("other", 1, source(1, 500)).unwrap()),
    ];
    let route = [1, 2].map(|node| (NodeId(node), Port::ZERO)).to_vec();
    let mut world = World::new(nodes, vec![route], Box::<Order>::default());
    change(&mut world, Time::from_millis(25), queue_change(json!({"discipline": "drop_tail"}))).unwrap();
    world.run_until(Time::from_secs(1)).unwrap();
    let recorder: Box<dyn Any> = world.finish().unwrap();
    let order = recorder.downcast::<Order>().unwrap().0;
    // thirteen have left by turns; the others go by their times
    assert_eq!(order.len(), 40);
    let later: Vec<Time> = order[13..].iter().map(|&(_, sent)| sent).collect();
    assert!(later.is_sorted(), "{order:?}");
    assert!(order[13..].iter().filter(|&&(flow, _)| flow == 1).count() > 10);
}

/// A bucket of one packet that is filled in 50 ms: the first packet arrives at 2 ms, the second one at 52 ms.
#[test]
fn a_packet_that_waits_for_tokens_goes_when_the_shaper_does() {
    let ms = Time::from_millis;
    let bucket = json!({"rate": 160_000, "burst": 1000, "mtu": 1500, "discipline": "drop_tail"});
    let mut world = through(settings(json!({"discipline": {"shaper": bucket}})));
    change(&mut world, ms(21), queue_change(json!({"discipline": "drop_tail"}))).unwrap();
    assert_eq!(with_link(&mut world, |link| link.capacity(ms(21), ms(22))), Some(Rate::from_mbps(4)));
    world.run_until(ms(200)).unwrap();
    let expected: Vec<i64> = [2].into_iter().chain((0..19).map(|number| 23 + 2 * number)).collect();
    assert_eq!(arrival_millis(world), expected);
}

/// Without jitter a packet arrives 10 ms after its service. Packets on their way keep their times, and those that come
/// after jitter that reorders do not overtake them.
#[test]
fn jitter_comes_and_goes() {
    let ms = Time::from_millis;
    let mut world =
        through(LinkSettings { delay: Phases::constant(Span::from_millis(10)), ..settings(json!({})) });
    change(&mut world, ms(11), queue_change(json!({"jitter": {"uniform": 30_000_000}}))).unwrap();
    change(&mut world, ms(31), queue_change(json!({"jitter": "none"}))).unwrap();
    world.run_until(ms(200)).unwrap();
    let millis = arrival_millis(world);
    assert_eq!(millis.len(), 20);
    assert_eq!(millis[..5], [12, 14, 16, 18, 20]);
    assert!(millis[5..].is_sorted(), "in order of arrival");
    let last = millis[14];
    let expected: Vec<i64> = (16..=20).map(|number| (2 * number + 10).max(last)).collect();
    assert_eq!(millis[15..], expected, "{millis:?}");
}

const MAX: u32 = u32::MAX;

/// Packets of 1000 bytes each millisecond from 0 on, through the emulator and a link that takes no time.
fn emulated(netem: Value, then: Option<(i64, Value)>) -> World {
    let settings: LinkSettings = serde_json::from_value(json!({"netem": netem})).unwrap();
    let mut world = through(LinkSettings { server: Server::constant(Rate::MAX), ..settings });
    if let Some((time, netem)) = then {
        change(&mut world, Time::from_millis(time), queue_change(json!({"netem": netem}))).unwrap();
    }
    world.run_until(Time::from_secs(2)).unwrap();
    world
}

fn emulated_millis(netem: Value) -> Vec<i64> {
    arrival_millis(emulated(netem, None))
}

#[test]
fn the_emulator_delays_and_sends_ahead() {
    assert_eq!(emulated_millis(json!({})), (0..20).collect::<Vec<_>>());
    assert_eq!(emulated_millis(json!({"delay": 5_000_000})), (5..25).collect::<Vec<_>>());
    // every fifth packet goes at once, ahead of those that wait: packets 4, 9, 14, 19
    let ahead = json!({"delay": 5_000_000, "reorder": {"probability": MAX}, "gap": 5});
    let mut expected: Vec<i64> = (0..20).map(|k| if k % 5 == 4 { k } else { k + 5 }).collect();
    expected.sort_unstable();
    assert_eq!(emulated_millis(ahead), expected);
    // those in it keep their times
    let world = emulated(json!({"delay": 9_000_000}), Some((10, json!({"delay": 1_000_000}))));
    let mut expected: Vec<i64> = (0..10).map(|k| k + 9).chain((10..20).map(|k| k + 1)).collect();
    expected.sort_unstable();
    assert_eq!(arrival_millis(world), expected);
}

/// 4 Mbit/s are 2 ms a packet. The delay is that of the packet before, as far as that still waits: behind it packets
/// come each 2 ms.
#[test]
fn the_emulator_has_a_rate() {
    let rate = json!({"bytes_per_s": 500_000});
    assert_eq!(emulated_millis(json!({"rate": rate})), (1..=20).map(|k| 2 * k).collect::<Vec<_>>());
    let delayed = emulated_millis(json!({"rate": rate, "delay": 10_000_000}));
    assert_eq!(delayed, (0..20).map(|k| 12 + 2 * k).collect::<Vec<_>>());
    // 1000 bytes are 21 cells of 48 bytes, each with 5 more: 1113 bytes, 2.226 ms
    let cells = json!({"rate": {"bytes_per_s": 500_000, "cell": 48, "cell_overhead": 5}});
    let micros: Vec<i64> =
        arrivals(emulated(cells, None)).iter().map(|(arrival, _)| arrival.as_nanos() / 1000).collect();
    assert_eq!(micros, (1..=20).map(|k| 2226 * k).collect::<Vec<_>>());
    // five in it at a time, those that were sent not among them: as a queue of five
    let limited = emulated_millis(json!({"rate": rate, "limit": 5}));
    assert_eq!(limited.len(), 14, "{limited:?}");
    let mut world = emulated(json!({"rate": rate}), None);
    assert_eq!(
        with_link(&mut world, |link| link.capacity(Time::ZERO, Time::from_secs(1))),
        Some(Rate::from_mbps(4))
    );
}

#[test]
fn the_emulator_doubles_loses_and_damages() {
    let always = json!({"probability": MAX});
    // a copy is none of the packets that arrive
    let mut world = emulated(json!({"duplicate": always, "delay": 3_000_000}), None);
    assert_eq!(world.accounts()[1].copied, 20);
    assert_eq!(world.accounts()[2].consumed, 40);
    world.run_until(Time::from_secs(3)).unwrap();
    assert_eq!(arrival_millis(world), (3..23).collect::<Vec<_>>());
    for netem in [
        json!({"loss": {"random": always}}),
        json!({"corrupt": always}),
        json!({"loss": {"gemodel": {"p": MAX, "r": 0, "h": 0, "k1": MAX}}}),
        json!({"loss": {"state": {"p13": 0, "p31": 0, "p32": 0, "p23": 0, "p14": MAX}}}),
    ] {
        let millis = emulated_millis(netem.clone());
        // a loss in a gap is followed by what arrives
        let expected: Vec<i64> =
            if netem.to_string().contains("state") { (1..20).step_by(2).collect() } else { Vec::new() };
        assert_eq!(millis, expected, "{netem}");
    }
    // a packet and its copy go ahead together
    let ahead = json!({"duplicate": always, "delay": 3_000_000, "reorder": always, "gap": 1});
    assert_eq!(emulated(ahead, None).accounts()[2].consumed, 40);
    // what is lost and doubled arrives once
    let both = emulated(json!({"loss": {"random": always}, "duplicate": always}), None);
    assert_eq!((both.accounts()[1].copied, both.accounts()[2].consumed), (0, 20));
}

#[test]
fn jitter_of_the_emulator_reorders() {
    let netem = json!({"delay": 10_000_000, "jitter": 8_000_000});
    let settings: LinkSettings = serde_json::from_value(json!({"netem": netem})).unwrap();
    let mut world = through(LinkSettings { server: Server::constant(Rate::MAX), ..settings });
    world.run_until(Time::from_secs(2)).unwrap();
    let millis = arrival_millis(world);
    // from 2 to 18 ms, in order of arrival
    assert!(millis.is_sorted() && millis.len() == 20 && (2..37).contains(&millis[0]), "{millis:?}");
    assert_ne!(millis, (10..30).collect::<Vec<_>>());
}

#[test]
fn a_capacity_that_changes_by_itself_ends_where_the_driver_sets_one() {
    let (micros, ms) = (Time::from_micros, Time::from_millis);
    // 1000 bytes a packet: 8 Mbit/s until 3 ms, then an outage, which the driver ends at 20 ms
    let steps = Steps::new(&[(Time::ZERO, Rate::from_mbps(8)), (ms(3), Rate::ZERO)], None).unwrap();
    let schedule = Server::schedule(steps);
    // a packet of 1504 bytes every millisecond: 12.032 Mbit/s
    let every_millisecond: Vec<u32> = (1..=1000).collect();
    let trace = Server::opportunities(OpportunityTrace::new(every_millisecond, 1504).unwrap());
    for (service, time, expected, mean) in [
        // three packets, then from 20 ms on one each 4 ms, and the fifth from 26 ms on in 1 ms
        (schedule.clone(), micros(20_000), [1_000, 2_000, 3_000, 24_000, 27_000], 1_000_000),
        // in the middle of the second packet: its rest takes 2 ms at a quarter of the rate
        (schedule, micros(1_500), [1_000, 3_500, 7_500, 11_500, 15_500], 5_000_000),
        // the second packet has to wait for the opportunity at 2 ms: from 1.5 ms on it is sent from its first bit
        (trace, micros(1_500), [1_000, 5_500, 9_500, 13_500, 17_500], 7_016_000),
    ] {
        let before = ManagedLink::new("link", 1, LinkSettings::new(service.clone(), Span::ZERO));
        let expected_before = before.unwrap().capacity(Time::ZERO, time).unwrap();
        let mut world = through(LinkSettings::new(service, Span::ZERO));
        world.run_until(time).unwrap();
        change(&mut world, time, capacity(2)).unwrap();
        if time == micros(20_000) {
            world.run_until(micros(26_000)).unwrap();
            change(&mut world, micros(26_000), capacity(4)).unwrap();
        }
        world.run_until(ms(100)).unwrap();
        let millisecond = Span::from_millis(1);
        let mean_before = with_link(&mut world, |link| link.capacity(Time::ZERO, time));
        let mean_around = with_link(&mut world, |link| link.capacity(time - millisecond, time + millisecond));
        assert_eq!(mean_before, Some(expected_before), "the mean before the change is unchanged");
        assert_eq!(mean_around, Some(Rate::from_bps(mean)), "a millisecond of either");
        let arrival_micros: Vec<i64> =
            arrivals(world).iter().map(|(arrival, _)| arrival.as_nanos() / 1_000).collect();
        assert_eq!(arrival_micros[..5], expected);
    }
}

#[test]
fn a_wait_is_what_the_queue_makes_of_it() {
    // 8 Mbit/s and 1000 bytes: a millisecond each; a burst of two every 5 ms waits 0 and 1 ms
    let udp = |name: &str| json!({"name": name, "from": "a", "to": "b", "kind": {"udp": {"pattern": "cbr", "rate": 1_600_000, "packet_size": 1000}}});
    let scenario = json!({
        "name": "bursts", "duration": SECOND, "seed": 1, "sending_jitter": "off",
        "record": {"level": "packets", "bin": SECOND / 10},
        "links": [{
            "name": "link", "from": "a", "to": "b", "capacity": {"constant": 8_000_000},
            "settings": {"delay": 2_000_000}, "service": "managed",
        }],
        "flows": [udp("one"), udp("other")],
    });
    let outcome = run(&serde_json::from_value(scenario).unwrap(), LinkService::Managed);
    for flow in &outcome.summary.flows {
        assert_eq!((flow.one_way_delay_ms_min, flow.one_way_delay_ms_max), (Some(3.0), Some(4.0)));
    }
}
