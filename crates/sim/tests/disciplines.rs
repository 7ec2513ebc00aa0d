//! Every queue discipline in a link: the link never pauses while packets wait, and each packet leaves or dies.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_core::{Cause, Ecn, NodeId, Packet, Recorder, Time};
use tidegate_sim::link::queue::{CodelSettings, Discipline, DualPi2Settings, FqCodelSettings, PieSettings};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run};
use tidegate_sim::traffic::udp::{Pattern, UdpSettings};
use tidegate_sim::{LinkSettings, ManagedLink, Sink, UdpSource, World};

use tidegate_core::{FlowId, Node, Port, Rate, RouteId, Span};

const SECOND: i64 = 1_000_000_000;

fn disciplines() -> [Discipline; 5] {
    [
        Discipline::DropTail,
        Discipline::Codel(CodelSettings::RFC_8289),
        Discipline::FqCodel(FqCodelSettings::RFC_8290),
        Discipline::Pie(PieSettings::RFC_8033),
        Discipline::Dualpi2(DualPi2Settings::RFC_9332),
    ]
}

/// Arrival times of packets, and the number of dropped ones.
#[derive(Default)]
struct Counts {
    arrived: Vec<Time>,
    died: usize,
}

impl Recorder for Counts {
    fn arrived(&mut self, now: Time, packet: &Packet) {
        assert_eq!(packet.ecn, Ecn::NotEct);
        self.arrived.push(now);
    }

    fn dropped(&mut self, _now: Time, _packet: &Packet, _node: NodeId, cause: Cause) {
        assert_eq!(cause, Cause::Queue);
        self.died += 1;
    }
}

/// Two flows send at twice the rate for a second, and then nothing: 1000 bytes at 8 Mbit/s are a millisecond each.
#[test]
fn a_link_never_pauses_while_packets_wait_and_keeps_none() {
    for discipline in disciplines() {
        let name = discipline.name();
        let source = |flow: u32, start: i64| {
            let settings = UdpSettings {
                flow: FlowId(flow),
                route: RouteId(flow),
                size: 1000,
                start: Time::from_micros(start),
                stop: Time::from_secs(1),
                pattern: Pattern::Cbr,
                rate: Rate::from_mbps(8),
                schedule: None,
                jitter: Span::ZERO,
            };
            UdpSource::new(format!("source {flow}"), 1, settings).unwrap()
        };
        let settings = LinkSettings::constant(Rate::from_mbps(8), Span::ZERO).with_discipline(discipline);
        let nodes: Vec<Box<dyn Node>> = vec![
            Box::new(source(0, 0)),
            Box::new(source(1, 300)),
            Box::new(ManagedLink::new("link", 1, settings).unwrap()),
            Box::new(Sink::new("sink")),
        ];
        let route = [2, 3].map(|node| (NodeId(node), Port::ZERO)).to_vec();
        let mut world = World::new(nodes, vec![route.clone(), route], Box::<Counts>::default());
        world.run_until(Time::from_secs(20)).unwrap();
        assert_eq!(world.peek(), None, "{name}: an event is left");
        let recorder: Box<dyn std::any::Any> = world.finish().unwrap();
        let Counts { arrived, died } = *recorder.downcast::<Counts>().unwrap();
        assert_eq!(arrived.len() + died, 2000, "{name}");
        for (millis, &arrival) in (1..).zip(&arrived) {
            assert_eq!(arrival, Time::from_millis(millis), "{name}: the packets leave one after the other");
        }
        assert!(arrived.len() >= 1000, "{name}: {}", arrived.len());
        // without limits drop-tail drops no packet, and all others must have begun by then
        assert_eq!(died == 0, name == "drop-tail", "{name}: {died}");
    }
}

fn run(scenario: Value) -> Outcome {
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    let mut run = Run::new(&scenario, &[], &mut from_registry).unwrap();
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

/// The digest of a run of UDP, TCP and its acknowledgements over the link, with `discipline`, in the run with `seed`.
fn digest(discipline: &Value, seed: u64, service: &str) -> String {
    let link = |name: &str, from: &str, to: &str| {
        json!({
            "name": name, "from": from, "to": to, "capacity": {"constant": 3_000_000}, "service": service,
            "settings": {"delay": 10_000_000, "queue": {"packets": 200}, "discipline": discipline},
        })
    };
    let tcp = json!({"tcp": {
        "algorithm": "cubic", "workload": "long", "initial_window": 10, "min_rto": SECOND,
        "delayed_ack": true, "handshake": true, "receive_window": 1_000_000, "packet_size": 1500,
    }});
    let udp = json!({"udp": {"pattern": "poisson", "rate": 1_500_000, "packet_size": 700}});
    let outcome = run(json!({
        "name": "digest", "duration": 5 * SECOND, "seed": seed, "sending_jitter": "off",
        "record": {"level": "packets", "bin": SECOND / 10},
        "links": [link("there", "a", "b"), link("back", "b", "a")],
        "flows": [
            {"name": "file", "from": "a", "to": "b", "kind": tcp},
            {"name": "other", "from": "a", "to": "b", "kind": udp},
        ],
    }));
    format!("{:?}", outcome.summary.digest)
}

#[test]
fn each_differs_from_all_others_and_repeats_itself_whatever_the_service() {
    let codel = json!({"target": 5_000_000, "interval": 100_000_000, "maxpacket": 1500, "ecn": true});
    let mut fair = codel.clone();
    fair["quantum"] = json!(1514);
    fair["flows"] = json!(1024);
    let pie = json!({
        "qdelay_ref": 15_000_000, "t_update": 15_000_000, "max_burst": 150_000_000, "alpha": 0.125, "beta": 1.25,
        "mean_pktsize": 1000, "ecn": true, "mark_ecnth": 0.1, "derandomize": true, "cap_drop": true,
    });
    let dual = json!({
        "k": 2.0, "target": 15_000_000, "rtt_max": 100_000_000, "min_th": 800_000, "range": 400_000, "th_len": 1,
        "classic_weight": 0.0625,
    });
    let disciplines = [
        json!("drop_tail"),
        json!({"codel": codel}),
        json!({"fq_codel": fair}),
        json!({"pie": pie}),
        json!({"dualpi2": dual}),
    ];
    let mut digests = BTreeSet::new();
    for discipline in &disciplines {
        let fifo_digest = digest(discipline, 1, "fifo");
        assert_eq!(fifo_digest, digest(discipline, 1, "managed"), "{discipline}");
        assert!(digests.insert(fifo_digest), "{discipline}");
    }
}
