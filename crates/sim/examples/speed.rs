//! Quick engine timing: CBR flows over a dumbbell. `cargo run --release --example speed -- FLOWS MBPS SECS`
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
use tidegate_core::*;
use tidegate_sim::cross::{Cross, CrossSettings, Pattern};
use tidegate_sim::queue::DropTail;
use tidegate_sim::record::{FlowInfo, Recording};
use tidegate_sim::{Link, LinkSettings, Sink, World};
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (nf, mbps, secs) = (args[0], args[1], args[2]);
    let pairs = 10u64;
    let mut nodes: Vec<Box<dyn Node>> = Vec::new();
    let ms = Span::from_millis;
    nodes.push(Box::new(
        Link::new(
            "b",
            1,
            LinkSettings::constant(Rate::from_mbps(mbps), ms(20)).with_queue(DropTail::packets(100)),
        )
        .unwrap(),
    ));
    for i in 0..pairs {
        nodes.push(Box::new(
            Link::new(
                format!("u{i}"),
                1,
                LinkSettings::constant(Rate::from_mbps(1000), ms(1)).with_queue(DropTail::packets(1000)),
            )
            .unwrap(),
        ));
    }
    for i in 0..pairs {
        nodes.push(Box::new(
            Link::new(
                format!("d{i}"),
                1,
                LinkSettings::constant(Rate::from_mbps(1000), ms(1)).with_queue(DropTail::packets(1000)),
            )
            .unwrap(),
        ));
    }
    let sink = nodes.len() as u32;
    nodes.push(Box::new(Sink::new("sink")));
    let mut routes = Vec::new();
    let mut infos = Vec::new();
    for i in 0..nf {
        let h = (i % pairs) as u32;
        routes.push(vec![
            (NodeId(1 + h), Port::ZERO),
            (NodeId(0), Port::ZERO),
            (NodeId(1 + pairs as u32 + h), Port::ZERO),
            (NodeId(sink), Port::ZERO),
        ]);
        infos.push(FlowInfo {
            name: format!("f{i}"),
            kind: "udp",
            controller: String::new(),
            start: Time::ZERO,
            stop: Time::MAX,
            links: vec![],
        });
        nodes.push(Box::new(
            Cross::new(
                format!("c{i}"),
                1,
                CrossSettings {
                    flow: FlowId(i as u32),
                    route: RouteId(i as u32),
                    size: 1200,
                    start: Time::from_nanos((9_600_000 * i / nf) as i64),
                    stop: Time::MAX,
                    pattern: Pattern::Constant(Rate::from_mbps(1)),
                },
            )
            .unwrap(),
        ));
    }
    let names = nodes.iter().map(|n| n.name().to_owned()).collect();
    let rec = Recording::new(Level::Summary, ms(200), Time::ZERO, infos, vec![], names);
    let mut world = World::new(nodes, routes, Box::new(rec));
    let t = std::time::Instant::now();
    world.run_until(Time::from_secs(secs as i64)).unwrap();
    let w = t.elapsed().as_secs_f64();
    let left = world.census()[0].left;
    println!(
        "packets {left} events {} in {w:.3} s: {:.2} M packets/s, {:.1} ns/event",
        world.events(),
        left as f64 / w / 1e6,
        w * 1e9 / world.events() as f64
    );
    world.finish().unwrap();
}
