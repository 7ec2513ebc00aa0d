//! Marks of a queue discipline, recorded like drops; and drops at both ends of a queue.

use std::collections::VecDeque;
use tidegate_core::address::{Direction, Service};
use tidegate_core::node::Inside;
use tidegate_core::record::Backlog;
use tidegate_core::{
    Datagram, Ecn, FlowId, Kind, Level, Node, NodeId, Outbox, Packet, Port, Rate, RouteId, Size, Span, Time,
};
use tidegate_sim::link::queue::{DropTail, Moment, QueueDiscipline, Waiting};
use tidegate_sim::record::target::Sharing;
use tidegate_sim::record::{FlowInfo, LinkInfo, Recording};
use tidegate_sim::{LinkSettings, ManagedLink, Sink, World};

/// A discipline that marks every second packet as it leaves the queue, or drops it if it cannot be marked, and every
/// 10 ms drops the newest waiting packet.
#[derive(Default)]
struct EverySecond {
    waiting: VecDeque<Waiting>,
    dequeued: u64,
    timer: Time,
}

impl QueueDiscipline for EverySecond {
    fn enqueue(&mut self, _moment: &mut Moment<'_>, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        while let Some(mut first) = self.waiting.pop_front() {
            self.dequeued += 1;
            if self.dequeued % 2 == 1 || moment.mark(&mut first.packet) {
                return Some(first);
            }
            moment.drop(first.packet);
        }
        None
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.timer + Span::from_millis(10))
    }

    fn wake(&mut self, moment: &mut Moment<'_>) {
        self.timer = moment.now;
        if let Some(last) = self.waiting.pop_back() {
            moment.drop(last.packet);
        }
    }

    fn limit(&mut self, _moment: &mut Moment<'_>, _limits: &DropTail) {}

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.waiting.into()
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().map(|waiting| u64::from(waiting.packet.size)).sum();
        Backlog { packets: self.waiting.len() as u32, bytes: Size::from_bytes(bytes) }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.waiting.iter().for_each(visit);
    }
}

/// A source of 100 packets of 1000 bytes at once, with this ECN field.
struct Burst {
    ecn: Ecn,
    sent: bool,
}

impl Node for Burst {
    fn name(&self) -> &str {
        "source"
    }
    fn next_wakeup(&self) -> Option<Time> {
        (!self.sent).then_some(Time::ZERO)
    }
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if std::mem::replace(&mut self.sent, true) {
            return;
        }
        for sequence in 0..100 {
            let datagram = Datagram { size: 1000, ecn: self.ecn, ..Datagram::default() };
            let datagram = datagram.between(FlowId(0), Direction::Forward, Service::Discard);
            let packet = Packet::new(now, FlowId(0), RouteId(0), sequence, Kind::Datagram, datagram);
            out.originate(now, Port::ZERO, packet);
        }
    }
    fn receive(&mut self, _: Time, _: Port, _: Box<Packet>, _: &mut Outbox) {}
    fn inside(&self) -> Inside {
        Inside::default()
    }
}

/// The record of 100 packets through 8 Mbit/s, at which each takes a millisecond.
fn recorded(ecn: Ecn) -> Recording {
    let settings = LinkSettings::constant(Rate::from_mbps(8), Span::from_millis(5));
    let link = ManagedLink::with_queue("link", 1, settings, Box::new(EverySecond::default())).unwrap();
    let nodes: Vec<Box<dyn Node>> =
        vec![Box::new(Burst { ecn, sent: false }), Box::new(link), Box::new(Sink::new("sink"))];
    let flow = FlowInfo {
        name: "flow".into(),
        kind: "udp",
        controller: String::new(),
        start: Time::ZERO,
        stop: Time::from_secs(1),
        tightest: None,
        path: vec![NodeId(1)].into(),
        overhead: 28,
        sharing: Sharing::Fixed,
        pauses: vec![],
    };
    let links = vec![LinkInfo { node: NodeId(1), name: "link".into(), capacity: None }];
    let names = nodes.iter().map(|node| node.name().to_owned()).collect();
    let bin = Span::from_millis(100);
    let recording = Recording::new(Level::Packets, bin, Time::ZERO, vec![flow], links, names);
    let route = [1, 2].map(|node| (NodeId(node), Port::ZERO)).to_vec();
    let mut world = World::new(nodes, vec![route], Box::new(recording));
    world.run_until(Time::from_secs(1)).unwrap();
    let recording: Box<dyn std::any::Any> = world.finish().unwrap();
    *recording.downcast::<Recording>().unwrap()
}

#[test]
fn marks_are_in_metrics_tables_and_digest() {
    let marked = recorded(Ecn::Ect0);
    let summary = marked.summary(Span::from_secs(1), Span::ZERO);
    // n packets leave in n ms, and one is dropped at the end of the queue every 10 ms while any waits
    let (dropped, delivered) = (9, 91);
    let (flow, link) = (&summary.flows[0], &summary.links[0]);
    assert_eq!((flow.packets_sent, flow.packets_received, flow.lost_queue), (100, delivered, dropped));
    assert_eq!((flow.marked, link.marked, link.dropped_queue), (delivered / 2, delivered / 2, dropped));
    let table = format!("{:?}", marked.table("packets").unwrap().columns);
    assert!(table.contains("\"ce\"") && table.contains("\"ecn\""), "{table}");

    // a packet that cannot be marked dies at the head instead, where a marked one would have gone
    let dropped = recorded(Ecn::NotEct);
    let summary = dropped.summary(Span::from_secs(1), Span::ZERO);
    assert_eq!((summary.flows[0].marked, summary.links[0].marked), (0, 0));
    assert!((45..=55).contains(&summary.flows[0].packets_received));
    assert_eq!(summary.flows[0].packets_received + summary.flows[0].lost_queue, 100);
    assert_ne!(marked.digest(), dropped.digest());
}

#[test]
fn an_existing_mark_is_not_recorded_again() {
    let recording = recorded(Ecn::Ce);
    assert_eq!(recording.summary(Span::from_secs(1), Span::ZERO).flows[0].marked, 0);
}
