//! Calls that go over TCP for a part of their path.

use serde_json::{Value, json};
use tidegate_core::{Kind, Time};
use tidegate_sim::record::columns::Column;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run, Scenario};

const SECOND: i64 = 1_000_000_000;
const MILLI: i64 = 1_000_000;
/// Headers of a segment: IP, TCP and timestamps; and of UDP.
const SEGMENT: f64 = 52.0;
const UDP: f64 = 28.0;

fn link(name: &str, ends: (&str, &str)) -> Value {
    json!({"name": name, "from": ends.0, "to": ends.1, "capacity": {"constant": 10_000_000},
           "settings": {"delay": 10 * MILLI, "queue": {"packets": 100}}, "via": via("client", 262_144)})
}

fn via(writer: &str, buffer: u64) -> Value {
    json!({"algorithm": "cubic", "buffer": buffer, "writer": writer, "framing": 4})
}

fn call(name: &str, ends: (&str, &str), rate: u64) -> Value {
    json!({"name": name, "from": ends.0, "to": ends.1, "kind": {"media": {
        "controller": {"name": "fixed"}, "min_rate": rate, "max_rate": rate, "start_rate": rate,
        "video": {"source": {"cbr": {"packet_size": 999, "schedule": [[0, rate]]}}, "min": rate, "max": rate, "fps": 25.0},
        "feedback": {"format": "twcc", "interval": 50 * MILLI},
        "playout": {"adaptive": {"min": 0, "max": SECOND}}, "payload": 1200, "overhead": 28}}})
}

/// A call of packets of 999 bytes, 125 a second, over a connection of 10 Mbit/s and 10 ms.
fn run(seconds: i64, change: impl FnOnce(&mut Value)) -> Outcome {
    let mut scenario = json!({
        "name": "legs", "duration": seconds * SECOND, "warmup": 0, "seed": 3, "sending_jitter": "off",
        "record": {"level": "packets", "bin": SECOND / 5},
        "links": [link("relay", ("a", "b")), link("relay.back", ("b", "a"))],
        "flows": [call("call", ("a", "b"), 1_000_000)],
    });
    change(&mut scenario);
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    let mut run = Run::new(&scenario, &[], &mut from_registry).unwrap();
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

fn numbers(outcome: &Outcome, name: &str) -> Vec<f64> {
    let table = outcome.recording.table("packets").unwrap();
    match table.columns.iter().find(|(column_name, _)| *column_name == name) {
        Some((_, Column::F64(values))) => values.clone(),
        Some((_, Column::U32(values))) => values.iter().map(|&value| f64::from(value)).collect(),
        Some((_, Column::Words { codes, .. })) => codes.iter().map(|&value| f64::from(value)).collect(),
        other => panic!("column {name}: {other:?}"),
    }
}

/// Departure, delay in milliseconds and size of the media of a flow that was sent before a time; the delay of a lost
/// packet is `NaN`.
fn packets(outcome: &Outcome, flow: f64, before: f64) -> Vec<(f64, f64, f64)> {
    let [flows, kinds, sent, arrived, sizes] =
        ["flow", "kind", "sent_s", "arrived_s", "size"].map(|name| numbers(outcome, name));
    (0..sent.len())
        .filter(|&row| flows[row] == flow && kinds[row] < f64::from(Kind::Rtcp as u8) && sent[row] < before)
        .map(|row| (sent[row], (arrived[row] - sent[row]) * 1000.0, sizes[row]))
        .collect()
}

/// Bytes of the segment with a packet of this size.
fn segment(size: f64) -> f64 {
    SEGMENT + ((size - UDP + 4.0) / 4.0).ceil() * 4.0
}

#[test]
fn without_losses_a_datagram_takes_the_time_of_its_segment() {
    let outcome = run(4, |_| ());
    let media = packets(&outcome, 0.0, 3.9);
    assert!(media.len() > 480, "{} packets", media.len());
    for (sent, delay, size) in media {
        let expected = 10.0 + segment(size) * 8.0 / 10_000.0;
        assert!((delay - expected).abs() < 1e-6, "sent at {sent}: {delay} for {expected}");
    }
    // the connection is a flow of its own
    let flow = outcome.summary.flows.iter().find(|flow| flow.flow == "call.relay").unwrap();
    assert_eq!((flow.kind, flow.controller.as_str()), ("leg", "cubic"));
}

/// Everything is lost from 2 s on for 20 ms, which is two or three packets.
fn outage(data: &mut Value) {
    data["links"][0]["settings"]["loss"] =
        json!([[0, "none"], [2 * SECOND, {"bernoulli": 1.0}], [2 * SECOND + 20 * MILLI, "none"]]);
}

#[test]
fn a_loss_delays_all_that_comes_behind_it_by_a_round_trip_at_least() {
    let outcome = run(4, outage);
    let media = packets(&outcome, 0.0, 3.9);
    assert!(media.iter().all(|(_, delay, _)| delay.is_finite()), "the connection repairs all");
    let usual = 10.0 + segment(999.0) * 8.0 / 10_000.0;
    // what was lost arrives a round trip after the segment behind it showed the loss, and holds up all until then
    let held: Vec<_> = media.iter().filter(|(_, delay, _)| *delay > usual + 0.01).collect();
    let (first, last) = (held[0].0, held[held.len() - 1].0);
    assert!((1.98..2.02).contains(&first), "the first one left at {first}");
    assert!(held[0].1 >= usual + 20.0 && held[0].1 < usual + 120.0, "{} ms", held[0].1);
    assert!(last - first >= 0.02, "they hold up what comes for {} s", last - first);
    // they come out at one time, in order
    let release = held[0].0 + held[0].1 / 1000.0;
    for (sent, delay, _) in &held {
        assert!(sent + delay / 1000.0 >= release - 1e-9, "sent at {sent}");
    }
    let datagrams = run(4, |data| {
        outage(data);
        data["links"][0]["via"] = Value::Null;
    });
    assert!(
        packets(&datagrams, 0.0, 3.9).iter().any(|(_, delay, _)| delay.is_nan()),
        "without it they are lost"
    );
}

/// The capacity is nothing from 2 s on for a second.
fn standstill(data: &mut Value, writer: &str) {
    data["links"][0]["capacity"] =
        json!({"schedule": {"steps": [[0, 10_000_000], [2 * SECOND, 0], [3 * SECOND, 10_000_000]]}});
    data["links"][0]["via"] = via(writer, 40_000);
}

/// When the media that are lost left, the number of those taken since the standstill until the first loss, and when the
/// first one after it is taken.
fn losses(rate: u64, writer: &str) -> (Vec<f64>, usize, f64) {
    let outcome = run(5, |data| {
        standstill(data, writer);
        data["flows"][0] = call("call", ("a", "b"), rate);
    });
    let media = packets(&outcome, 0.0, 4.9);
    let lost: Vec<f64> =
        media.iter().filter(|(_, delay, _)| delay.is_nan()).map(|(sent, ..)| *sent).collect();
    let taken = media.iter().filter(|(sent, ..)| *sent >= 2.0 - 0.02 && *sent < lost[0]).count();
    let again = media.iter().find(|(sent, delay, _)| *sent > lost[0] && delay.is_finite()).unwrap().0;
    (lost, taken, again)
}

#[test]
fn a_client_drops_what_comes_while_its_socket_is_full() {
    // 976 bytes each, the one that goes beyond 40 000 included
    let (lost, taken, again) = losses(1_000_000, "client");
    assert!((41..=44).contains(&taken), "{taken} were taken");
    assert!(again > 3.0 && lost.iter().all(|sent| *sent < again), "all in a row until {again}");
}

#[test]
fn a_relay_drops_what_does_not_fit() {
    let (_, taken, _) = losses(1_000_000, "relay");
    assert!((40..=43).contains(&taken), "{taken} were taken");
}

#[test]
fn a_client_waits_until_a_third_of_its_socket_is_free_and_a_relay_for_room() {
    // a packet each 2 ms; a third are 13.7 of them, each of which takes 0.8 ms of the link
    let [(.., client), (.., relay)] = ["client", "relay"].map(|writer| losses(4_000_000, writer));
    assert!(relay > 3.02 && relay < 3.026, "{relay}");
    assert!(client > relay + 0.006 && client < relay + 0.02, "{client} for {relay}");
}

#[test]
fn the_goodput_of_a_full_connection_is_its_share_of_the_segments() {
    let outcome = run(20, |data| data["flows"][0] = call("call", ("a", "b"), 12_000_000));
    let media = packets(&outcome, 0.0, 20.0);
    let arrived: f64 = media
        .iter()
        .filter(|(sent, delay, _)| sent + delay / 1000.0 > 10.0)
        .map(|(_, _, size)| size - UDP)
        .sum();
    let goodput = arrived * 8.0 / 10.0;
    // 971 bytes in 976 of the stream, of which a segment of 1500 has 1448
    let expected = 1e7 * 971.0 / 976.0 * 1448.0 / 1500.0;
    assert!((goodput / expected - 1.0).abs() < 0.01, "{goodput} for {expected}");
}

#[test]
fn both_ways_of_a_call_have_a_connection_each_and_bytes_change_nothing() {
    let both = |data: &mut Value| {
        let (mut there, mut here) = (call("there", ("a", "b"), 500_000), call("here", ("b", "a"), 500_000));
        there["kind"]["media"]["pair"] = json!("here");
        here["kind"]["media"]["pair"] = json!("there");
        data["flows"] = json!([there, here]);
        outage(data);
    };
    let outcome = run(4, both);
    let names: Vec<&str> = outcome.summary.flows.iter().map(|flow| flow.flow.as_str()).collect();
    assert_eq!(names, ["there", "here", "there.relay", "there.relay.back"]);
    for flow in [0.0, 1.0] {
        assert!(packets(&outcome, flow, 3.9).iter().all(|(_, delay, _)| delay.is_finite()));
    }
    let in_bytes = run(4, |data| {
        both(data);
        data["bytes"] = json!(true);
    });
    assert_eq!(in_bytes.summary.digest, outcome.summary.digest);
}

#[test]
fn a_call_goes_over_to_a_connection_where_datagrams_no_longer_pass() {
    let outcome = run(6, |data| {
        let links = data["links"].as_array_mut().unwrap();
        for (name, ends) in [("direct", ("a", "b")), ("direct.back", ("b", "a"))] {
            let mut direct = link(name, ends);
            direct["via"] = Value::Null;
            links.insert(0, direct);
        }
        data["moves"] =
            json!([{"time": 3 * SECOND, "flow": "call", "path": ["relay"], "back": ["relay.back"]}]);
    });
    for (sent, delay, size) in packets(&outcome, 0.0, 5.9) {
        let bytes = if sent < 3.0 { size } else { segment(size) };
        let expected = 10.0 + bytes * 8.0 / 10_000.0;
        assert!((delay - expected).abs() < 1e-6, "sent at {sent}: {delay} for {expected}");
    }
}

#[test]
fn a_link_without_a_way_back_is_refused() {
    let mut scenario = json!({
        "name": "legs", "duration": SECOND, "warmup": 0, "seed": 3,
        "links": [link("up", ("a", "b")), link("down", ("b", "a"))],
        "flows": [call("call", ("a", "b"), 1_000_000)],
    });
    scenario["links"][1]["via"] = Value::Null;
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    let refusal = Run::new(&scenario, &[], &mut from_registry).err().unwrap().to_string();
    assert!(
        refusal.starts_with("links.up.via: found a connection; expected a link with another direction"),
        "{refusal}"
    );
}
