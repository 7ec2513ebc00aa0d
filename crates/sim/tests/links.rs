//! Links against closed forms, two-sided.

use std::any::Any;
use tidegate_core::node::NodeId;
use tidegate_core::{FlowId, Node, Packet, Port, Rate, Recorder, RouteId, Size, Span, Time};
use tidegate_sim::cross::{CrossSettings, Pattern};
use tidegate_sim::queue::DropTail;
use tidegate_sim::{Cross, Link, LinkSettings, Sink, World};

/// Keeps when each packet arrived and what it had waited.
#[derive(Default)]
struct Arrivals {
    arrived: Vec<(Time, Packet)>,
    dropped: u64,
}

impl Recorder for Arrivals {
    fn arrived(&mut self, now: Time, packet: &Packet) {
        self.arrived.push((now, packet.clone()));
    }
    fn dropped(&mut self, _: Time, _: &Packet, _: NodeId, _: tidegate_core::Cause) {
        self.dropped += 1;
    }
}

/// Runs a source through a link into a sink.
fn run(pattern: Pattern, size: u32, link: LinkSettings, until: Time) -> Arrivals {
    let settings = CrossSettings {
        flow: FlowId(0),
        route: RouteId(0),
        size,
        start: Time::ZERO,
        stop: until,
        pattern,
        jitter: Span::ZERO,
    };
    let nodes: Vec<Box<dyn Node>> = vec![
        Box::new(Cross::new("source", 1, settings).unwrap()),
        Box::new(Link::new("link", 1, link).unwrap()),
        Box::new(Sink::new("sink")),
    ];
    let routes = vec![vec![(NodeId(1), Port::ZERO), (NodeId(2), Port::ZERO)]];
    let mut world = World::new(nodes, routes, Box::new(Arrivals::default()));
    world.run_until(until).unwrap();
    let record: Box<dyn Any> = world.finish().unwrap();
    *record.downcast().unwrap()
}

#[test]
fn an_idle_link_takes_size_over_rate_and_propagation() {
    let link = LinkSettings::constant(Rate::from_mbps(1), Span::from_millis(20));
    let seen = run(Pattern::Constant(Rate::from_kbps(100)), 1200, link, Time::from_secs(10));
    // 1200 B at 100 kbit/s: one packet every 96 ms; the 105th is sent at 9.984 s and still under way
    assert_eq!(seen.arrived.len(), 104);
    for (at, packet) in &seen.arrived {
        // 1200 B at 1 Mbit/s: 9.6 ms
        assert_eq!(*at - packet.sent, Span::from_micros(29_600));
        assert_eq!(packet.queued, Span::ZERO);
    }
}

#[test]
fn a_saturated_link_carries_its_rate_and_fills_its_buffer() {
    let queue = DropTail::bytes(Size::from_bytes(30_000));
    let link = LinkSettings::constant(Rate::from_mbps(10), Span::from_millis(5)).with_queue(queue);
    let seen = run(Pattern::Constant(Rate::from_mbps(20)), 1500, link, Time::from_secs(10));
    // a packet every 1.2 ms, the first at 6.2 ms
    assert_eq!(seen.arrived.len(), (10_000_000 - 5_000) / 1_200);
    // the queue holds 20 packets; the last one in waits for those before it and the rest of the one in service
    let longest = seen.arrived.iter().map(|(_, packet)| packet.queued).max().unwrap();
    assert!(longest > Span::from_millis(23) && longest <= Span::from_millis(24), "{longest}");
    assert!(seen.dropped > 8_000, "{}", seen.dropped);
}
