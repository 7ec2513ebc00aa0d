//! The radio network as a node: it sleeps, wakes, carries packets, and conserves them.

use tidegate_core::node::Inside;
use tidegate_core::packet::Kind;
use tidegate_core::record::NullRecorder;
use tidegate_core::rng::Stream;
use tidegate_core::{Datagram, FlowId, Node, Outbox, Packet, RouteId, Span, Time};
use tidegate_sim::radio::lte::fading::Profile;
use tidegate_sim::radio::lte::{Antennas, Bandwidth, Handover, Network, Scheduler, Settings};
use tidegate_sim::radio::{Point, User, port};

fn outbox() -> Outbox {
    Outbox::new(1, Box::new(NullRecorder))
}

fn packet(flow: u32, sequence: u32, size: u32) -> Box<Packet> {
    Box::new(Packet::new(
        Time::ZERO,
        FlowId(flow),
        RouteId(0),
        sequence,
        Kind::Datagram,
        Datagram { size, ..Datagram::default() },
    ))
}

/// Runs a network until `until` and calls `each` for every packet that leaves, with its time.
fn run(network: &mut Network, until: Time, out: &mut Outbox, mut each: impl FnMut(Time, &Packet)) {
    while let Some(time) = network.next_wakeup().filter(|&time| time <= until) {
        network.advance(time, out);
        for (_, packet) in out.packets.drain(..) {
            each(time, &packet);
        }
    }
}

fn user_at(user: &str, x: f64, y: f64) -> User {
    User { place: Some(Point { x, y }), ..User::new(user) }
}

/// A network of sitting users, whose throughput does not depend on their movement.
fn still() -> Settings {
    Settings { speed: 0.0, ..Settings::default() }
}

#[test]
fn an_idle_network_never_wakes_and_a_busy_one_falls_asleep() {
    let users = (0..50).map(|k| User::new(format!("user {k}"))).collect();
    let mut network = Network::new("lte", 1, Settings::default(), users).unwrap();
    assert_eq!(network.next_wakeup(), None);
    let mut out = outbox();
    let now = Time::from_micros(7_400);
    network.receive(now, port(3, false), packet(0, 0, 1200), &mut out);
    assert_eq!(network.next_wakeup(), Some(Time::from_millis(8)), "the next TTI");
    let mut delivered = Vec::new();
    run(&mut network, Time::from_secs(5), &mut out, |time, packet| delivered.push((time, packet.sequence)));
    assert_eq!(delivered.len(), 1);
    assert_eq!(network.next_wakeup(), None);
    assert_eq!(network.inside(), Inside::default());
}

/// A single user beside a site gets the largest block in every TTI, which arrives four TTIs later.
#[test]
fn a_lonely_user_beside_a_site_gets_all_there_is() {
    for (bandwidth, antennas, blocks) in [
        (Bandwidth::Ten, Antennas::Simo, 50.0),
        (Bandwidth::Five, Antennas::Simo, 25.0),
        (Bandwidth::Ten, Antennas::Diversity, 50.0),
    ] {
        let settings = Settings { bandwidth, antennas, fading: Profile::Flat, ..still() };
        // flat fading of a sitting user is one draw: 30 m away it does not matter
        let users = vec![User { full: true, ..user_at("sitting", 26.0, 15.0) }];
        let mut network = Network::new("lte", 1, settings, users).unwrap();
        run(&mut network, Time::from_millis(999), &mut outbox(), |_, _| {});
        let before = network.served(0);
        run(&mut network, Time::from_millis(1999), &mut outbox(), |_, _| {});
        let elements = if antennas == Antennas::Diversity { 120.0 } else { 126.0 };
        let block = (5.5547 * elements * blocks / 8.0) as u64 - 5;
        assert_eq!(network.served(0) - before, 1000 * block);
    }
}

#[test]
fn a_packet_takes_its_blocks_and_the_decoding() {
    let mut network = Network::new("lte", 1, still(), vec![user_at("sitting", 26.0, 15.0)]).unwrap();
    let mut out = outbox();
    network.receive(Time::from_micros(500), port(0, false), packet(0, 0, 1200), &mut out);
    let mut delivered = Vec::new();
    run(&mut network, Time::from_secs(1), &mut out, |time, packet| delivered.push((time, packet.queued)));
    // sent in the TTI that begins at 1 ms
    assert_eq!(delivered, [(Time::from_millis(5), Span::from_micros(500))]);
    // uplink: a request in TTI 10 (user 0 asks in every tenth), a grant eight later
    network.receive(Time::from_micros(1_000_500), port(0, true), packet(0, 0, 300), &mut out);
    let mut delivered = Vec::new();
    run(&mut network, Time::from_secs(3), &mut out, |time, packet| delivered.push((time, packet.queued)));
    assert_eq!(delivered, [(Time::from_millis(1012), Span::from_micros(7_500))]);
}

/// Datagrams in both directions to walking users, some of whom leave: every packet is accounted for at each instant,
/// and packets leave in order.
#[test]
fn every_packet_is_conserved_through_errors_and_handovers() {
    for seed in 1..4 {
        let settings = Settings { speed: 50.0, bandwidth: Bandwidth::Five, ..Settings::default() };
        let users: Vec<User> = (0..12)
            .map(|k| {
                let mut user = User::new(format!("user {k}"));
                if k % 4 == 3 {
                    user.stop = Some(Time::from_millis(3000 + 500 * k));
                }
                user
            })
            .collect();
        let mut network = Network::new("lte", seed, settings, users).unwrap();
        let mut out = outbox();
        let mut luck = Stream::new(seed, "test", "packets");
        let (mut pushed, mut next) = (vec![0_u32; 24], vec![0_u32; 24]);
        let (mut entered, mut delivered) = (0_u64, 0_u64);
        let mut cells = std::collections::BTreeSet::new();
        for step in 0..20_000_i64 {
            let now = Time::from_micros(500 * step);
            run(&mut network, now, &mut out, |_, packet| {
                let flow = packet.flow.0 as usize;
                assert!(packet.sequence >= next[flow], "in order");
                next[flow] = packet.sequence + 1;
                delivered += 1;
            });
            // bursts, so that queues fill and empty
            if step / 2000 % 2 == 0 && luck.chance(0.7) {
                let flow = luck.below(24) as usize;
                let size = 40 + luck.below(1460) as u32;
                network.receive(
                    now,
                    tidegate_core::Port(flow as u16),
                    packet(flow as u32, pushed[flow], size),
                    &mut out,
                );
                pushed[flow] += 1;
                entered += 1;
            }
            assert_eq!(entered, delivered + out.accounts[0].dropped + network.inside().packets);
            if step % 200 == 0 {
                cells.extend(network.serving(0));
            }
        }
        assert!(cells.len() > 1, "user 0 has changed its cell: {cells:?}");
        run(&mut network, Time::from_secs(60), &mut out, |_, _| delivered += 1);
        assert_eq!(network.inside(), Inside::default());
        assert_eq!(entered, delivered + out.accounts[0].dropped);
        assert!(delivered > 5000, "{delivered}");
    }
}

#[test]
fn more_users_do_not_change_the_walk_shadowing_or_fading_of_the_others() {
    let make = |count: usize| {
        let users = (0..count).map(|k| User::new(format!("user {k}"))).collect();
        Network::new("lte", 4, Settings::default(), users).unwrap()
    };
    let (mut few, mut many) = (make(3), make(30));
    for tick in [0, 10, 600] {
        assert_eq!(few.survey(tick)[..], many.survey(tick)[..3]);
    }
    let alone = |network: &mut Network| {
        let mut out = outbox();
        (0..400)
            .for_each(|k| network.receive(Time::from_secs(70), port(1, false), packet(0, k, 1500), &mut out));
        let mut delivered = Vec::new();
        run(network, Time::from_secs(100), &mut out, |time, packet| delivered.push((time, packet.sequence)));
        assert_eq!(delivered.len(), 400);
        delivered
    };
    assert_eq!(alone(&mut few), alone(&mut many));
}

/// Without fading there is no better time to choose: proportional fair is equal time, like round robin.
#[test]
fn without_fading_proportional_fair_is_equal_time() {
    let served = |scheduler| {
        let settings = Settings { scheduler, fading: Profile::None, ..still() };
        let users = (0..120).map(|k| User { full: true, ..User::new(format!("user {k}")) }).collect();
        let mut network = Network::new("lte", 2, settings, users).unwrap();
        run(&mut network, Time::from_secs(2), &mut outbox(), |_, _| {});
        let before: Vec<u64> = (0..120).map(|user| network.served(user)).collect();
        run(&mut network, Time::from_secs(12), &mut outbox(), |_, _| {});
        (0..120).map(|user| (network.served(user) - before[user]) as f64).collect::<Vec<_>>()
    };
    let (fair, turns) = (served(Scheduler::ProportionalFair), served(Scheduler::RoundRobin));
    for (user, (fair, turns)) in fair.iter().zip(&turns).enumerate() {
        // some 1500 blocks each, of which a tenth are sent twice: 2.5 % from chance and the outer loop's steps
        assert!((fair / turns - 1.0).abs() < 0.1, "user {user}: {fair} {turns}");
    }
    let total = |served: &[f64]| served.iter().sum::<f64>();
    assert!((total(&fair) / total(&turns) - 1.0).abs() < 0.02);
}

/// With fading it is better for nearly all users: the gain of choosing a user when and where its channel is strong.
#[test]
fn proportional_fair_gains_on_round_robin_and_starves_no_user() {
    let served = |scheduler| {
        let settings = Settings { scheduler, ..Settings::default() };
        let users = (0..210).map(|k| User { full: true, ..User::new(format!("user {k}")) }).collect();
        let mut network = Network::new("lte", 1, settings, users).unwrap();
        run(&mut network, Time::from_secs(5), &mut outbox(), |_, _| {});
        (0..210).map(|user| network.served(user) as f64).collect::<Vec<_>>()
    };
    let (fair, turns) = (served(Scheduler::ProportionalFair), served(Scheduler::RoundRobin));
    let gain = fair.iter().sum::<f64>() / turns.iter().sum::<f64>();
    // about 1.4 to 1.5 with ten users a cell and two antennas
    assert!((1.3..1.7).contains(&gain), "{gain}");
    let better = fair.iter().zip(&turns).filter(|(fair, turns)| fair > turns).count();
    assert!(better > 195, "{better} of 210");
}

#[test]
fn an_absent_user_gets_no_packets() {
    let mut late = User::new("late");
    late.start = Time::from_secs(1);
    late.stop = Some(Time::from_secs(2));
    let mut network = Network::new("lte", 1, Settings::default(), vec![late]).unwrap();
    let mut out = outbox();
    for (number, second) in [(0, 0), (1, 1), (2, 2)] {
        network.receive(Time::from_secs(second), port(0, false), packet(0, number, 100), &mut out);
        let until = Time::from_secs(second) + Span::from_millis(900);
        let mut delivered = Vec::new();
        run(&mut network, until, &mut out, |_, packet| delivered.push(packet.sequence));
        assert_eq!(delivered.len(), usize::from(second == 1), "at {second} s");
    }
    assert_eq!(out.accounts[0].dropped, 2);
}

#[test]
fn settings_out_of_range_are_refused() {
    let refused = |settings: Settings| Network::new("lte", 1, settings, Vec::new()).is_err();
    assert!(!refused(Settings::default()));
    assert!(refused(Settings { speed: f64::NAN, ..Settings::default() }));
    assert!(refused(Settings { window: 0, ..Settings::default() }));
    assert!(refused(Settings { interferers: 7, ..Settings::default() }));
    assert!(refused({
        let handover = Handover { interruption: Span::from_secs(61), ..Settings::default().handover };
        Settings { handover, ..Settings::default() }
    }));
    let mut user = User::new("gone");
    user.stop = Some(Time::ZERO);
    assert!(Network::new("lte", 1, Settings::default(), vec![user]).is_err());
}
