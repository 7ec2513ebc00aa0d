//! The radio network as a node: it sleeps, wakes, carries, and loses nothing.

use tidegate_core::record::Nothing;
use tidegate_core::{Node, Outbox, Time};
use tidegate_sim::lte::{Network, Settings, User};

/// Runs a network until `until`, whatever comes out of it being thrown away.
fn run(network: &mut Network, until: Time, out: &mut Outbox) {
    while let Some(at) = network.next_wakeup().filter(|&at| at <= until) {
        network.advance(at, out);
        out.packets.clear();
    }
}

#[test]
#[ignore = "prints"]
fn full_buffers() {
    for seed in 1..4 {
        let settings = Settings::default();
        let count = 210;
        let users: Vec<User> = (0..count)
            .map(|k| User { full: true, ..User::new(format!("user {k}")) })
            .collect();
        let mut network = Network::new("lte", seed, settings, users).unwrap();
        let mut out = Outbox::new(1, Box::new(Nothing));
        let start = std::time::Instant::now();
        run(&mut network, Time::from_secs(1), &mut out);
        let before: Vec<u64> = (0..count).map(|k| network.served(k)).collect();
        run(&mut network, Time::from_secs(6), &mut out);
        let wall = start.elapsed().as_secs_f64();
        let mut rates: Vec<f64> =
            (0..count).map(|k| (network.served(k) - before[k]) as f64 * 8.0 / 5.0 / 10e6).collect();
        rates.sort_by(f64::total_cmp);
        let mut geometry: Vec<f64> = network.survey(60).iter().map(|row| row.1).collect();
        geometry.sort_by(f64::total_cmp);
        let total: f64 = rates.iter().sum();
        println!(
            "seed {seed}: {:.3} bit/s/Hz/cell, edge {:.4}, median {:.4}; geometry 5% {:.1} 50% {:.1} 95% {:.1}; {:.1}x real time",
            total / 21.0, rates[count / 20], rates[count / 2],
            geometry[count / 20], geometry[count / 2], geometry[count * 19 / 20], 6.0 / wall,
        );
    }
}
