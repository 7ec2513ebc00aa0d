//! A link with statuses: closed forms, and the same network for any traffic.

use super::*;
use tidegate_core::rng::Draws;
use tidegate_core::{Datagram, Kind, Outbox};
use tidegate_sim::link::capacity::{Status, Statuses};

/// A link of statuses (capacity in Mbit/s, probability) with a new one every 2 s.
fn statuses(capacities: &[(u64, f64)], rate_window: Span, delay: Span) -> LinkSettings {
    let statuses = capacities.iter().map(|&(mbps, probability)| Status {
        name: format!("{mbps}Mbps"),
        capacity: Rate::from_mbps(mbps),
        probability,
    });
    let statuses = Statuses { interval: Span::from_secs(2), rate_window, statuses: statuses.collect() };
    LinkSettings::new(Server::statuses(statuses, 1, "link").unwrap(), delay)
}

/// Four standard errors of the share of `n` packets, each lost with probability `p`.
fn four_errors(p: f64, n: f64) -> f64 {
    4.0 * (p * (1.0 - p) / n).sqrt()
}

#[test]
fn a_status_loses_what_it_cannot_carry() {
    for window in [0, 96] {
        for (capacity, expected) in [(0, 1.0), (1, 0.9), (6, 0.4), (9, 0.1), (10, 0.0), (20, 0.0)] {
            let link = statuses(&[(capacity, 1.0)], Span::from_millis(window), Span::from_millis(7));
            let log = run(mbps(10), 1200, link, Time::from_secs(60));
            let lost = log.dropped[Cause::Loss as usize] as f64;
            let decided = lost + log.arrived.len() as f64;
            assert!(decided > 62_490.0, "1200 B at 10 Mbit/s: one every 0.96 ms");
            // all packets meet the same probability, except the first, for which the rate is unknown
            let (share, error) = (lost / decided, four_errors(expected, decided));
            assert!((share - expected).abs() <= error, "{share} at {capacity} Mbit/s, window {window} ms");
            assert!(log.arrived.iter().all(|(arrival, p)| *arrival - p.sent == Span::from_millis(7)));
            assert!(log.arrived.iter().all(|(_, p)| p.queued == Span::ZERO), "no packet ever waits");
        }
    }
}

#[test]
fn packets_meet_the_statuses_that_the_record_shows() {
    let capacities = [(6, 0.5), (3, 0.25), (0, 0.25)];
    let settings = statuses(&capacities, Span::ZERO, Span::ZERO);
    let series = Link::new("link", 1, settings.clone()).unwrap().capacity_series(
        Time::ZERO,
        Time::from_secs(600),
        Span::from_secs(2),
    );
    let log = run(mbps(8), 1000, settings, Time::from_secs(600));
    assert_eq!(log.sent, 600_000, "one a millisecond");
    let mut arrived = [0_u32; 300];
    for (_, packet) in &log.arrived {
        arrived[(packet.sent.as_nanos() / 2_000_000_000) as usize] += 1;
    }
    let mut met = [0; 3];
    for (&(begin, rate), &arrived) in series.iter().zip(&arrived) {
        let index = capacities.iter().position(|&(mbps, _)| Rate::from_mbps(mbps) == rate).expect("a status");
        met[index] += 1;
        let expected = rate.as_bps_f64() / 8e6;
        let share = f64::from(arrived) / 2000.0;
        assert!((share - expected).abs() <= four_errors(expected, 2000.0) * 1.25, "{share} from {begin} on");
    }
    assert!(met.iter().all(|&count| count > 50), "{met:?}");
    // the same, to the packet, where a status carries everything or nothing
    let settings = statuses(&[(1000, 0.5), (0, 0.5)], Span::ZERO, Span::ZERO);
    let mut link = Link::new("link", 1, settings.clone()).unwrap();
    let series = link.capacity_series(Time::ZERO, Time::from_secs(60), Span::from_millis(1));
    let log = run(mbps(8), 1000, settings, Time::from_secs(60));
    let open: Vec<u32> =
        (0..).zip(&series).filter(|(_, (_, rate))| *rate > Rate::ZERO).map(|(k, _)| k).collect();
    let through: Vec<u32> = log.arrived.iter().map(|(_, packet)| packet.sequence).collect();
    assert_eq!(through, open);
    assert!(!open.is_empty() && open.len() < 60_000);
}

#[test]
fn a_status_delays_by_a_normal_variate() {
    let link = statuses(&[(6, 1.0)], Span::ZERO, Span::from_millis(10));
    let link = link.with_jitter(Jitter::Normal(Span::from_millis(1)));
    let log = run(mbps(8), 1000, link, Time::from_secs(100));
    let delays: Vec<f64> =
        log.arrived.iter().map(|(arrival, p)| (*arrival - p.sent).as_secs_f64() * 1e3).collect();
    let n = delays.len() as f64;
    assert!(n > 70_000.0);
    let mean = delays.iter().sum::<f64>() / n;
    let std = (delays.iter().map(|delay| (delay - mean) * (delay - mean)).sum::<f64>() / n).sqrt();
    // standard errors of a normal sample: s / sqrt(n) and s / sqrt(2 n)
    assert!((mean - 10.0).abs() < 4.0 / n.sqrt(), "{mean}");
    assert!((std - 1.0).abs() < 4.0 / (2.0 * n).sqrt(), "{std}");
    // a deviation as long as the delay: packets that would arrive before they were sent arrive at once
    let link = statuses(&[(8, 1.0)], Span::ZERO, Span::from_millis(1));
    let link = link.with_jitter(Jitter::Normal(Span::from_millis(1)));
    let log = run(mbps(8), 1000, link, Time::from_secs(100));
    let at_once = log.arrived.iter().filter(|(arrival, p)| *arrival == p.sent).count() as f64;
    let n = log.arrived.len() as f64;
    // P(N(0, 1) <= -1)
    let expected = 0.158_655_253_931_457;
    assert!((at_once / n - expected).abs() < four_errors(expected, n), "{at_once} of {n}");
}

fn packet(sent: Time, size: u32) -> Packet {
    Packet::new(sent, FlowId(0), RouteId(0), 0, Kind::Datagram, Datagram { size, ..Datagram::default() })
}

#[test]
fn the_luck_of_a_network_does_not_depend_on_its_traffic() {
    let draws = |rate: u64, size: u32| {
        let settings = statuses(&[(6, 0.5), (0, 0.5)], Span::ZERO, Span::ZERO);
        let mut link = Link::new("link", 1, settings).unwrap();
        let mut out = Outbox::new(1, Box::new(PacketLog::default()));
        let gap = Rate::from_mbps(rate).time_for(Size::from_bytes(u64::from(size)));
        let mut now = Time::ZERO;
        while now < Time::from_secs(64) {
            link.receive(now, Port::ZERO, Box::new(packet(now, size)), &mut out);
            now += gap;
        }
        let mut all_draws = Vec::new();
        link.draws(&mut |drawn| all_draws.push(drawn));
        all_draws
    };
    let (few_draws, many_draws) = (draws(1, 1000), draws(8, 500));
    let find = |draws: &[Draws], name: &str| {
        draws.iter().find(|drawn| &*drawn.name == name).cloned().expect("drawn from")
    };
    assert_eq!(find(&few_draws, "link/status"), find(&many_draws, "link/status"));
    assert_eq!(find(&few_draws, "link/status").count, 32, "one an interval");
    let (few_draws, many_draws) = (find(&few_draws, "link/loss"), find(&many_draws, "link/loss"));
    assert_eq!((few_draws.count, many_draws.count), (8_000, 128_000), "one a packet");
    assert_eq!(few_draws.checkpoints[..], many_draws.checkpoints[..few_draws.checkpoints.len()]);
}

#[test]
fn statuses_stand_alone() {
    let link = || statuses(&[(6, 1.0)], Span::ZERO, Span::ZERO);
    let refused = |settings: LinkSettings| Link::new("link", 1, settings).unwrap_err().to_string();
    assert!(refused(link().with_queue(DropTail::packets(9))).starts_with("link.queue: found a setting"));
    assert!(refused(link().with_loss(Loss::Bernoulli(0.1))).starts_with("link.loss: found a setting"));
}
