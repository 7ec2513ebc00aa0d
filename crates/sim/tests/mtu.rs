//! Packets that are larger than a link takes.

use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_sim::record::columns::Column;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run, Scenario};

const SECOND: i64 = 1_000_000_000;
const MILLI: i64 = 1_000_000;

fn link(name: &str, ends: (&str, &str), settings: Value) -> Value {
    json!({"name": name, "from": ends.0, "to": ends.1, "capacity": {"constant": 10_000_000}, "settings": settings})
}

/// Packets of one size, a hundred a second, over 10 Mbit/s and 10 ms.
fn run(size: u32, seconds: i64, change: impl FnOnce(&mut Value)) -> Outcome {
    let mut scenario = json!({
        "name": "mtu", "duration": seconds * SECOND, "warmup": 0, "seed": 3, "sending_jitter": "off",
        "record": {"level": "packets", "bin": SECOND / 5},
        "links": [link("vpn", ("a", "b"), json!({"delay": 10 * MILLI}))],
        "flows": [{"name": "udp", "from": "a", "to": "b",
                   "kind": {"udp": {"pattern": "cbr", "rate": u64::from(size) * 800, "packet_size": size}}}],
    });
    change(&mut scenario);
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    let mut run = Run::new(&scenario, &[], &mut from_registry).unwrap();
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

fn times(outcome: &Outcome, name: &str) -> Vec<f64> {
    let table = outcome.recording.table("packets").unwrap();
    match table.columns.iter().find(|(column_name, _)| *column_name == name) {
        Some((_, Column::F64(values))) => values.clone(),
        other => panic!("column {name}: {other:?}"),
    }
}

/// Delay of each packet in milliseconds, `NaN` where it was lost.
fn delays(outcome: &Outcome) -> Vec<f64> {
    let (sent, arrived) = (times(outcome, "sent_s"), times(outcome, "arrived_s"));
    sent.iter().zip(arrived).map(|(sent, arrived)| (arrived - sent) * 1000.0).collect()
}

fn warnings(outcome: &Outcome) -> Vec<String> {
    outcome.summary.warnings.iter().map(|warning| format!("{}: {}", warning.key, warning.says)).collect()
}

fn mtu(bytes: u32, too_big: &str) -> Value {
    json!({"bytes": bytes, "too_big": too_big})
}

#[test]
fn fragments_bring_their_headers() {
    let delay = |bytes: u32| {
        let outcome = run(2000, 2, |data| data["links"][0]["settings"]["mtu"] = mtu(bytes, "fragment"));
        let all = delays(&outcome);
        assert!(all.iter().take(190).all(|delay| (delay - all[0]).abs() < 1e-6), "{all:?}");
        all[0]
    };
    let expected = |bytes: f64| 10.0 + bytes * 8.0 / 10_000.0;
    assert!((delay(2000) - expected(2000.0)).abs() < 1e-6);
    // 1980 bytes of data in fragments of 1480, and of 552
    assert!((delay(1500) - expected(2020.0)).abs() < 1e-6);
    assert!((delay(576) - expected(2060.0)).abs() < 1e-6);
}

/// The share that is lost of packets which go as so many fragments, each lost with probability 0.05, and four standard
/// deviations of it.
fn assert_share(lost: usize, all: usize, fragments: u32) {
    let expected = 1.0 - tidegate_core::math::pow(0.95, f64::from(fragments));
    let share = lost as f64 / all as f64;
    let deviation = (expected * (1.0 - expected) / all as f64).sqrt();
    assert!((share - expected).abs() < 4.0 * deviation, "{share} for {expected} of {fragments} fragments");
}

#[test]
fn a_packet_is_lost_with_any_of_its_fragments_on_this_link_and_later_ones() {
    for (bytes, fragments) in [(2000, 1), (1500, 2), (1020, 2), (1000, 3)] {
        let lossy = json!({"bernoulli": 0.05});
        let here = run(2000, 200, |data| {
            data["links"][0]["settings"]["mtu"] = mtu(bytes, "fragment");
            data["links"][0]["settings"]["loss"] = lossy.clone();
        });
        let later = run(2000, 200, |data| {
            data["links"][0]["settings"]["mtu"] = mtu(bytes, "fragment");
            data["links"][0]["to"] = json!("m");
            let last = link("last", ("m", "b"), json!({"loss": lossy}));
            data["links"].as_array_mut().unwrap().push(last);
        });
        let emulated = run(2000, 200, |data| {
            data["links"][0]["settings"]["mtu"] = mtu(bytes, "fragment");
            // 5 % of 2^32
            data["links"][0]["settings"]["netem"] = json!({"loss": {"random": {"probability": 214_748_365}}});
        });
        for outcome in [here, later, emulated] {
            let all = delays(&outcome);
            assert_share(all.iter().filter(|delay| delay.is_nan()).count(), all.len(), fragments);
        }
    }
}

#[test]
fn what_is_too_big_is_dropped_and_told_at_the_end() {
    let outcome = run(1501, 2, |data| data["links"][0]["settings"]["mtu"] = mtu(1500, "drop"));
    assert!(delays(&outcome).iter().all(|delay| delay.is_nan()));
    let told = warnings(&outcome);
    assert!(
        told.iter().any(|says| says.starts_with("links.vpn.mtu: 201 packets of up to 1501 bytes")),
        "{told:?}"
    );
    let fits = run(1500, 2, |data| data["links"][0]["settings"]["mtu"] = mtu(1500, "drop"));
    assert!(delays(&fits).iter().filter(|delay| delay.is_nan()).count() <= 2, "under way at the end");
    assert_eq!(warnings(&fits), Vec::<String>::new());
}

#[test]
fn a_sender_that_hears_of_it_sends_fragments_from_then_on() {
    // 30 ms to the link that is too small, so that the sender hears of the first packet at 60 ms
    let outcome = run(1501, 2, |data| {
        data["links"][0]["to"] = json!("m");
        data["links"][0]["settings"]["delay"] = json!(30 * MILLI);
        data["links"][0]["capacity"] = json!("infinite");
        let last = link("last", ("m", "b"), json!({"mtu": mtu(1500, "report"), "delay": 5 * MILLI}));
        data["links"].as_array_mut().unwrap().push(last);
    });
    let (sent, all) = (times(&outcome, "sent_s"), delays(&outcome));
    for (sent, delay) in sent.iter().zip(&all).filter(|(sent, _)| **sent < 1.9) {
        assert_eq!(delay.is_nan(), *sent < 0.06, "sent at {sent}");
    }
    let passes = all.iter().find(|delay| !delay.is_nan()).unwrap();
    assert!((passes - 35.0 - 1521.0 * 8.0 / 10_000.0).abs() < 1e-6, "{passes}");
}

#[test]
fn an_mtu_that_is_moved_holds_for_what_comes_then() {
    let outcome = run(1400, 4, |data| {
        data["moves"] = json!([
            {"time": SECOND, "link": "vpn", "change": {"mtu": mtu(1300, "drop")}},
            {"time": 2 * SECOND, "link": "vpn", "change": {"mtu": mtu(1400, "drop")}},
            {"time": 3 * SECOND, "link": "vpn", "change": {"mtu": mtu(1300, "fragment")}},
        ]);
    });
    for (sent, delay) in
        times(&outcome, "sent_s").into_iter().zip(delays(&outcome)).filter(|(sent, _)| *sent < 3.9)
    {
        let size = if sent < 3.0 { 1400.0 } else { 1420.0 };
        if (1.0..2.0).contains(&sent) {
            assert!(delay.is_nan(), "sent at {sent}");
        } else {
            assert!((delay - 10.0 - size * 8.0 / 10_000.0).abs() < 1e-6, "sent at {sent}: {delay}");
        }
    }
}

#[test]
fn large_datagrams_where_nothing_says_what_becomes_of_them_are_warned_of() {
    let told = warnings(&run(1501, 1, |_| ()));
    let [warning] = told.as_slice() else { panic!("{told:?}") };
    assert!(
        warning.starts_with("flows.udp.udp.packet_size: packets of up to 1501 bytes go whole"),
        "{warning}"
    );
    assert_eq!(warnings(&run(1500, 1, |_| ())), Vec::<String>::new());
}
