//! Links compared with closed forms, from both sides, one for each service, queue and medium.

mod statuses;

use std::any::Any;
use tidegate_core::NodeId;
use tidegate_core::record::Backlog;
use tidegate_core::{Cause, FlowId, Node, Packet, Port, Rate, Recorder, RouteId, Size, Span, Time};
use tidegate_sim::link::capacity::{BrownianSettings, OpportunityTrace, Server, Steps};
use tidegate_sim::link::jitter::Jitter;
use tidegate_sim::link::loss::{GilbertElliott, Loss};
use tidegate_sim::link::phases::Phases;
use tidegate_sim::link::queue::DropTail;
use tidegate_sim::traffic::udp::{Pattern, UdpSettings};
use tidegate_sim::{Link, LinkSettings, Sink, UdpSource, World};

/// A recorder of arrivals, drops by cause, and backlogs.
#[derive(Default)]
struct PacketLog {
    sent: u64,
    arrived: Vec<(Time, Packet)>,
    dropped: [u64; 4],
    lost: Vec<u32>,
    backlog: Vec<Backlog>,
}

impl Recorder for PacketLog {
    fn sent(&mut self, _: Time, _: &Packet) {
        self.sent += 1;
    }
    fn arrived(&mut self, now: Time, packet: &Packet) {
        self.arrived.push((now, packet.clone()));
    }
    fn dropped(&mut self, _: Time, packet: &Packet, node: NodeId, cause: Cause) {
        assert_eq!(node, NodeId(1), "nothing dies but in the link");
        self.dropped[cause as usize] += 1;
        if cause == Cause::Loss {
            self.lost.push(packet.sequence);
        }
    }
    fn backlog(&mut self, _: Time, _: NodeId, backlog: Backlog) {
        self.backlog.push(backlog);
    }
}

impl PacketLog {
    fn longest_wait(&self) -> Span {
        self.arrived.iter().map(|(_, packet)| packet.queued).max().unwrap()
    }
}

/// A recorder of the sum of waits, for long runs.
#[derive(Default)]
struct Waits {
    count: u64,
    sum: Span,
}

impl Recorder for Waits {
    fn arrived(&mut self, _: Time, packet: &Packet) {
        self.count += 1;
        self.sum += packet.queued;
    }
}

/// A pattern and its rate.
type Sending = (Pattern, Rate);

/// Runs a source through a link into a sink and checks conservation; returns the recorder, and the number of
/// packets still in the link.
fn record<R: Recorder + Default>(
    (pattern, rate): Sending,
    size: u32,
    link: LinkSettings,
    until: Time,
) -> (R, u64) {
    let settings = UdpSettings {
        flow: FlowId(0),
        route: RouteId(0),
        size,
        start: Time::ZERO,
        stop: until,
        pattern,
        rate,
        schedule: None,
        jitter: Span::ZERO,
    };
    let nodes: Vec<Box<dyn Node>> = vec![
        Box::new(UdpSource::new("source", 1, settings).unwrap()),
        Box::new(Link::new("link", 1, link).unwrap()),
        Box::new(Sink::new("sink")),
    ];
    let routes = vec![vec![(NodeId(1), Port::ZERO), (NodeId(2), Port::ZERO)]];
    let mut world = World::new(nodes, routes, Box::new(R::default()));
    world.sample_every(Span::from_millis(10));
    world.run_until(until).unwrap();
    let inside = world.nodes()[1].inside().packets;
    let record: Box<dyn Any> = world.finish().unwrap();
    (*record.downcast().unwrap(), inside)
}

fn run(sending: Sending, size: u32, link: LinkSettings, until: Time) -> PacketLog {
    let (log, inside) = record::<PacketLog>(sending, size, link, until);
    assert_eq!(log.sent, log.arrived.len() as u64 + log.dropped.iter().sum::<u64>() + inside);
    log
}

fn mbps(rate: u64) -> Sending {
    (Pattern::Cbr, Rate::from_mbps(rate))
}

fn at(millis: i64) -> Time {
    Time::from_millis(millis)
}

#[test]
fn an_idle_link_takes_size_over_rate_and_propagation() {
    let link = LinkSettings::constant(Rate::from_mbps(1), Span::from_millis(20));
    let log = run((Pattern::Cbr, Rate::from_kbps(100)), 1200, link, Time::from_secs(10));
    // 1200 B at 100 kbit/s: one packet every 96 ms; the 105th is sent at 9.984 s and still under way
    assert_eq!(log.arrived.len(), 104);
    for (time, packet) in &log.arrived {
        // 1200 B at 1 Mbit/s: 9.6 ms
        assert_eq!(*time - packet.sent, Span::from_micros(29_600));
        assert_eq!(packet.queued, Span::ZERO);
    }
    let infinite = LinkSettings::constant(Rate::MAX, Span::from_millis(7));
    let log = run(mbps(100), 1200, infinite, Time::from_secs(1));
    assert!(log.arrived.iter().all(|(arrival, packet)| *arrival - packet.sent == Span::from_millis(7)));
}

#[test]
fn a_saturated_link_carries_its_rate_to_the_packet() {
    let queue = DropTail::bytes(Size::from_bytes(30_000));
    let link = LinkSettings::constant(Rate::from_mbps(10), Span::from_millis(5)).with_queue(queue);
    let log = run(mbps(20), 1500, link, Time::from_secs(10));
    // a packet every 1.2 ms, the first at 6.2 ms
    assert_eq!(log.arrived.len(), (10_000_000 - 5_000) / 1_200);
    for (count, (arrival, _)) in log.arrived.iter().enumerate() {
        assert_eq!(arrival.as_nanos(), 5_000_000 + 1_200_000 * (count as i64 + 1));
    }
    assert!(log.dropped[Cause::Queue as usize] > 8_000);
    // an odd rate: 7 777 777 bit/s for 30 s are 19444.44 packets of 1500 B
    let link = LinkSettings::constant(Rate::from_bps(7_777_777), Span::ZERO).with_queue(queue);
    assert_eq!(run(mbps(20), 1500, link, Time::from_secs(30)).arrived.len(), 19_444);
}

/// 20 packets of 1500 B by any limit: 24 ms at 10 Mbit/s.
#[test]
fn the_largest_wait_is_buffer_over_rate() {
    let limits = [
        DropTail::packets(20),
        DropTail::bytes(Size::from_bytes(30_000)),
        DropTail::time(Span::from_millis(24)),
        DropTail {
            packets: Some(20),
            bytes: Some(Size::from_bytes(90_000)),
            ..DropTail::time(Span::from_secs(1))
        },
    ];
    for limit in limits {
        let link = |queue| LinkSettings::constant(Rate::from_mbps(10), Span::ZERO).with_queue(queue);
        // 19 Mbit/s: a packet every 631.6 us falls anywhere in the service of another
        let log = run(mbps(19), 1500, link(limit.of_waiting()), Time::from_secs(5));
        // the 20th waiting packet came while one was in service: it waits for 19 others and the rest of that one
        let longest = log.longest_wait();
        assert!(
            longest > Span::from_micros(23_950) && longest <= Span::from_millis(24),
            "{longest} {limit:?}"
        );
        assert_eq!(log.backlog.iter().map(|backlog| backlog.packets).max(), Some(21));
        // with the packet in service counted, as by default, there is one less
        let log = run(mbps(19), 1500, link(limit), Time::from_secs(5));
        let longest = log.longest_wait();
        assert!(
            longest > Span::from_micros(22_750) && longest <= Span::from_micros(22_800),
            "{longest} {limit:?}"
        );
        assert_eq!(log.backlog.iter().map(|backlog| backlog.packets).max(), Some(20));
    }
}

#[test]
fn a_queue_without_room_serves_packets_that_find_it_idle() {
    let link = |queue| LinkSettings::constant(Rate::from_mbps(12), Span::ZERO).with_queue(queue);
    // 1 ms of service, a packet every 0.4 ms: every third one, every 1.2 ms, finds the transmitter idle
    let one_byte_short = DropTail::bytes(Size::from_bytes(1499));
    for queue in [DropTail::packets(0), one_byte_short] {
        for queue in [queue, queue.of_waiting()] {
            let log = run(mbps(30), 1500, link(queue), at(1200));
            assert_eq!(log.arrived.len(), 1000, "{queue:?}");
            assert_eq!(log.longest_wait(), Span::ZERO, "{queue:?}");
        }
    }
}

/// Pollaczek and Khinchine for deterministic service: W = rho / (2 mu (1 - rho)).
#[test]
fn the_mean_wait_is_that_of_m_d_1() {
    // 10 000 services a second; the higher the load, the longer the memory of the queue
    for (rho, seconds) in [(0.5, 200), (0.8, 600), (0.9, 1500)] {
        let rate = Rate::from_mbps(100);
        let link = LinkSettings::constant(rate, Span::from_millis(1));
        let poisson = (Pattern::Poisson, rate.scaled(rho));
        let (waits, _) = record::<Waits>(poisson, 1250, link, Time::from_secs(seconds));
        let expected = rho / (2.0 * 10_000.0 * (1.0 - rho));
        let mean = waits.sum.as_secs_f64() / waits.count as f64;
        eprintln!("rho {rho}: {mean} s, {expected} s expected");
        assert!((mean / expected - 1.0).abs() < 0.02, "rho {rho}: {mean} s, {expected} s expected");
    }
}

#[test]
fn a_scheduled_link_carries_the_integral_of_its_rate() {
    let steps = [
        (at(0), Rate::from_mbps(1)),
        (at(400), Rate::from_kbps(2500)),
        (at(600), Rate::ZERO),
        (at(800), Rate::from_kbps(600)),
    ];
    let steps = Steps::new(&steps, Some(Span::from_secs(1))).unwrap();
    let settings = LinkSettings::new(Server::schedule(steps), Span::from_millis(10));
    let settings = settings.with_queue(DropTail::time(Span::from_millis(300)));
    // 0.4 + 0.5 + 0.12 Mbit in each second; 1.02 Mbit/s over 300 ms are 38250 B, thus 25 packets
    let mut link = Link::new("link", 1, settings.clone()).unwrap();
    assert_eq!(link.nominal_rate(), Rate::from_kbps(1020));
    assert_eq!(link.capacity(at(0), at(3000)), Some(Rate::from_kbps(1020)));
    assert_eq!(link.capacity(at(600), at(1000)), Some(Rate::from_kbps(300)));
    assert_eq!(
        link.capacity_series(at(200), at(900), Span::from_millis(300)),
        [
            (at(200), Rate::from_kbps(1500)),
            (at(500), Rate::from_bps(833_333)),
            (at(800), Rate::from_kbps(600))
        ]
    );
    let log = run(mbps(5), 1500, settings, at(100_010));
    assert_eq!(log.arrived.len(), 100 * 1_020_000 / 12_000);
    assert_eq!(log.backlog.iter().map(|backlog| backlog.packets).max(), Some(25));
    // an idle link with an outage: packets that come in it wait for its end, which counts as waiting
    let steps = Steps::new(&[(at(0), Rate::ZERO), (at(50), Rate::from_mbps(12))], None).unwrap();
    let settings = LinkSettings::new(Server::schedule(steps), Span::from_millis(10));
    let log = run((Pattern::Cbr, Rate::from_kbps(600)), 1500, settings, at(71));
    let log: Vec<_> = log.arrived.iter().map(|(arrival, packet)| (*arrival, packet.queued)).collect();
    // sent at 0, 20, 40 and 60 ms
    let ms = Span::from_millis;
    assert_eq!(log, [(at(61), ms(50)), (at(62), ms(31)), (at(63), ms(12)), (at(71), ms(0))]);
}

#[test]
fn a_recorded_link_carries_its_opportunities_to_the_packet() {
    // 15 opportunities in 100 ms, in bunches and with gaps
    let millis = [0, 1, 1, 1, 7, 8, 30, 30, 31, 64, 65, 66, 90, 90, 100];
    let list = OpportunityTrace::new(millis, 1504).unwrap();
    let settings = LinkSettings::new(Server::opportunities(list), Span::from_millis(10));
    let mut link = Link::new("link", 1, settings.clone()).unwrap();
    assert_eq!(link.nominal_rate(), Rate::from_bps(15 * 1504 * 8 * 10));
    let series = link.capacity_series(at(0), at(200), Span::from_millis(50));
    // the opportunity of 100 ms falls in the third bin, with that of 0 ms of the next round
    let counts: Vec<_> = series.iter().map(|(_, rate)| rate.as_bps() / (1504 * 8 * 20)).collect();
    assert_eq!(counts, [9, 5, 10, 5]);
    // packets of one opportunity each; the first comes at 0 ms, too late for the opportunity of 0 ms
    let log = run(mbps(30), 1504, settings.clone(), at(10_010) - Span::from_nanos(1));
    assert_eq!(log.arrived.len(), 100 * 15 - 2);
    // packets that span and share: the bytes count (if enough have come for the first three, at 1 ms)
    for size in [100, 999, 1500, 4000] {
        let log = run(mbps(100), size, settings.clone(), at(10_010) - Span::from_nanos(1));
        let carried = (100 * 15 - 2) * 1504;
        assert_eq!(log.arrived.len() as u64, carried / u64::from(size), "{size}");
    }
    // a limit in packets counts those that wait for their opportunity
    let log = run(mbps(30), 1504, settings.with_queue(DropTail::packets(5)), at(1000));
    assert!(log.backlog.iter().all(|backlog| backlog.packets <= 5));
    assert!(log.backlog.iter().any(|backlog| backlog.packets == 5));
}

#[test]
fn a_brownian_link_has_the_same_capacity_for_any_traffic() {
    let settings =
        LinkSettings::new(Server::brownian(BrownianSettings::default(), 5, "cell").unwrap(), Span::ZERO);
    let until = Time::from_secs(100);
    let series = |(pattern, rate): Sending| {
        let mut link = Link::new("cell", 5, settings.clone()).unwrap();
        let mut source = UdpSource::new(
            "source",
            1,
            UdpSettings {
                flow: FlowId(0),
                route: RouteId(0),
                size: 1500,
                start: Time::ZERO,
                stop: until,
                pattern,
                rate,
                schedule: None,
                jitter: Span::ZERO,
            },
        )
        .unwrap();
        let mut out = tidegate_core::Outbox::new(1, Box::new(tidegate_core::record::NullRecorder));
        let mut departures = Vec::new();
        loop {
            let next = [source.next_wakeup(), link.next_wakeup()].into_iter().flatten().min();
            let Some(now) = next.filter(|&now| now < until) else { break };
            if link.next_wakeup() == Some(now) {
                link.advance(now, &mut out);
                departures.extend(out.packets.drain(..).map(|_| now));
            } else {
                source.advance(now, &mut out);
                for (port, packet) in std::mem::take(&mut out.packets) {
                    link.receive(now, port, packet, &mut out);
                }
            }
        }
        (link.capacity_series(Time::ZERO, until, Span::from_secs(1)), departures)
    };
    let (busy, departures) = series(mbps(40));
    let (idle, rare) = series((Pattern::Cbr, Rate::from_kbps(100)));
    assert_eq!(busy, idle);
    assert!(busy.iter().any(|(_, rate)| *rate > Rate::from_mbps(2)));
    // saturated, a packet leaves at each opportunity: the capacity is the carried rate, second by second
    let mut carried = vec![0; 100];
    departures.iter().for_each(|time| carried[time.as_secs_f64() as usize] += 12_000);
    let truth: Vec<_> = busy.iter().map(|(_, rate)| rate.as_bps()).collect();
    assert_eq!(carried, truth);
    // and with little traffic packets leave at some of the same instants
    assert!(!rare.is_empty() && rare.iter().all(|time| departures.binary_search(time).is_ok()));
}

#[test]
fn losses_use_the_link_and_have_their_statistics() {
    let link = |loss| LinkSettings::constant(Rate::from_mbps(12), Span::from_millis(1)).with_loss(loss);
    let n = 600_000.0;
    let until = Time::from_secs(600);
    // sent at the link's rate: lost packets do not make the others faster
    let log = run(mbps(12), 1500, link(Loss::Bernoulli(0.1)), until);
    let lost = log.dropped[Cause::Loss as usize] as f64;
    assert!((lost / n - 0.1).abs() < 0.002, "{lost}");
    assert!(log.arrived.iter().all(|(arrival, packet)| *arrival - packet.sent == Span::from_millis(2)));

    let model = GilbertElliott::from_bursts(0.05, 3.0).unwrap();
    let log = run(mbps(12), 1500, link(Loss::GilbertElliott(model)), until);
    let lost = log.lost.len() as f64;
    let bursts = log.lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count() as f64 + 1.0;
    assert!((lost / n / 0.05 - 1.0).abs() < 0.02, "{}", lost / n);
    assert!((lost / bursts / 3.0 - 1.0).abs() < 0.02, "{}", lost / bursts);

    let lossless = LinkSettings::constant(Rate::from_mbps(12), Span::from_millis(1));
    let log = run(mbps(12), 1500, LinkSettings { byte_error: 1e-4, ..lossless.clone() }, until);
    // 1 - 0.9999^1500
    let hit = log.dropped[Cause::Corrupt as usize] as f64 / n;
    assert!((hit / 0.139_298 - 1.0).abs() < 0.02, "{hit}");

    let phases = [(Span::from_secs(10), Loss::None), (Span::from_secs(5), Loss::Bernoulli(1.0))];
    let loss = Phases::repeating(&phases).unwrap();
    let log = run(mbps(12), 1500, LinkSettings { loss, ..lossless }, Time::from_secs(30));
    // by the time of leaving the transmitter, 1 ms after it was sent: packets 9999 to 14998 of each round
    assert_eq!((log.lost.len(), log.lost[0], log.lost[4999]), (10_000, 9999, 14_998));
}

#[test]
fn jitter_of_rfc_8868_keeps_order_and_bound_behind_a_queue() {
    let link =
        LinkSettings::constant(Rate::from_mbps(12), Span::from_millis(50)).with_jitter(Jitter::RFC_8868);
    let log = run((Pattern::Poisson, Rate::from_mbps(9)), 1500, link, Time::from_secs(200));
    assert!(log.arrived.len() > 140_000);
    assert!(log.arrived.windows(2).all(|pair| pair[1].1.sequence == pair[0].1.sequence + 1));
    // at least the serialisation of a packet, 1 ms, between two arrivals
    assert!(log.arrived.windows(2).all(|pair| pair[1].0 - pair[0].0 >= Span::from_millis(1)));
    let extra =
        |(arrival, packet): &(Time, Packet)| *arrival - packet.sent - packet.queued - Span::from_millis(51);
    let (smallest, largest) =
        log.arrived.iter().map(extra).fold((Span::MAX, Span::ZERO), |(smallest, largest), extra| {
            (smallest.min(extra), largest.max(extra))
        });
    assert!(
        !smallest.is_negative() && largest <= Span::from_millis(16) && largest > Span::from_millis(14),
        "{smallest} {largest}"
    );
}

#[test]
fn jitter_that_reorders_delivers_each_packet_at_its_time() {
    let jitter = Jitter::Uniform(Span::from_millis(10));
    let link = LinkSettings::constant(Rate::from_mbps(12), Span::from_millis(50))
        .with_jitter(jitter)
        .with_queue(DropTail::packets(10));
    let log = run(mbps(18), 1500, link, Time::from_secs(10));
    // the queue does not depend on the medium: a packet every 1 ms, all within 60 ms
    assert!(log.arrived.len() >= 9_940 && log.arrived.len() <= 9_950, "{}", log.arrived.len());
    assert!(log.arrived.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    let overtaken = log.arrived.windows(2).filter(|pair| pair[0].1.sequence > pair[1].1.sequence).count();
    assert!(overtaken > 3_000, "{overtaken}");
    for (arrival, packet) in &log.arrived {
        let extra = *arrival - packet.sent - packet.queued - Span::from_millis(51);
        assert!(!extra.is_negative() && extra <= Span::from_millis(10), "{extra}");
    }
    assert_eq!(log.backlog.iter().map(|backlog| backlog.packets).max(), Some(10));
}

#[test]
fn a_delay_that_shrinks_keeps_order() {
    let delay = Phases::new(vec![(at(0), Span::from_millis(100)), (at(500), Span::from_millis(20))], None);
    let link =
        LinkSettings { delay: delay.unwrap(), ..LinkSettings::constant(Rate::from_mbps(12), Span::ZERO) };
    let log = run(mbps(12), 1500, link, Time::from_secs(1));
    assert!(
        log.arrived.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1.sequence < pair[1].1.sequence)
    );
    let delay = |sequence: usize| log.arrived[sequence].0 - log.arrived[sequence].1.sent;
    assert_eq!(
        (delay(10), delay(498), delay(700)),
        (Span::from_millis(101), Span::from_millis(101), Span::from_millis(21))
    );
    // left at 500 ms, behind one that arrives at 599 ms
    assert_eq!(log.arrived[499].0, at(599));
}

#[test]
fn packets_that_are_never_served_stay_inside() {
    let dead = LinkSettings::constant(Rate::ZERO, Span::ZERO);
    let log = run(mbps(12), 1500, dead.clone(), at(100));
    assert_eq!((log.sent, log.arrived.len()), (100, 0));
    let log = run(mbps(12), 1500, dead.with_queue(DropTail::packets(7)), at(100));
    assert_eq!(log.dropped[Cause::Queue as usize], 93);
}

#[test]
fn settings_out_of_range_are_refused_with_the_name_of_the_link() {
    let good = LinkSettings::constant(Rate::from_mbps(1), Span::ZERO);
    for bad in [
        LinkSettings { delay: Phases::constant(Span::from_millis(-1)), ..good.clone() },
        LinkSettings { byte_error: 1.5, ..good.clone() },
        good.clone().with_loss(Loss::Bernoulli(-0.1)),
        good.with_jitter(Jitter::Uniform(Span::from_millis(-1))),
    ] {
        let error = Link::new("uplink", 1, bad).unwrap_err();
        assert!(error.key.starts_with("uplink."), "{error}");
    }
}
