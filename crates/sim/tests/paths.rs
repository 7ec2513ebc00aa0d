//! Calls that go over to other links while they run.

use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_sim::record::columns::Column;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run, Scenario};

const SECOND: i64 = 1_000_000_000;
const MILLI: i64 = 1_000_000;

fn link(name: &str, ends: (&str, &str), rate: i64, delay: i64) -> Value {
    json!({"name": name, "from": ends.0, "to": ends.1, "capacity": {"constant": rate},
           "settings": {"delay": delay, "queue": {"packets": 100}}})
}

fn call(name: &str, ends: (&str, &str), pair: Option<&str>) -> Value {
    json!({"name": name, "from": ends.0, "to": ends.1, "kind": {"media": {
        "controller": {"name": "gcc"}, "min_rate": 30_000, "max_rate": 2_000_000, "start_rate": 500_000,
        "video": {"source": "ideal", "min": 30_000, "max": 2_000_000, "fps": 25.0},
        "feedback": {"format": "twcc", "interval": 50 * MILLI}, "pair": pair,
        "playout": {"adaptive": {"min": 0, "max": SECOND}}, "payload": 1200, "overhead": 28}}})
}

fn to_lte(flow: &str) -> Value {
    json!({"time": 4 * SECOND, "flow": flow, "path": ["lte"], "back": ["lte.back"]})
}

/// A call over 20 Mbit/s and 10 ms, beside which there are 4 Mbit/s and 40 ms.
fn scenario(change: impl FnOnce(&mut Value)) -> Scenario {
    let mut scenario = json!({
        "name": "paths", "duration": 8 * SECOND, "warmup": 0, "seed": 7,
        "record": {"level": "packets", "bin": SECOND / 5},
        "links": [
            link("wifi", ("a", "b"), 20_000_000, 10 * MILLI), link("wifi.back", ("b", "a"), 20_000_000, 10 * MILLI),
            link("lte", ("a", "b"), 4_000_000, 40 * MILLI), link("lte.back", ("b", "a"), 4_000_000, 40 * MILLI),
        ],
        "flows": [call("call", ("a", "b"), None)],
        "moves": [to_lte("call")],
    });
    change(&mut scenario);
    serde_json::from_value(scenario).unwrap()
}

fn run(change: impl FnOnce(&mut Value)) -> Outcome {
    let mut run = Run::new(&scenario(change), &[], &mut from_registry).unwrap();
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let built = Run::new(&scenario(change), &[], &mut from_registry);
    built.err().map_or_else(|| "nothing".to_owned(), |refusal| refusal.to_string())
}

fn column(outcome: &Outcome, table: &str, name: &str) -> Vec<f64> {
    let table = outcome.recording.table(table).unwrap();
    match table.columns.iter().find(|(column_name, _)| *column_name == name) {
        Some((_, Column::F64(values))) => values.clone(),
        Some((_, Column::U32(values))) => values.iter().map(|&value| f64::from(value)).collect(),
        other => panic!("column {name}: {other:?}"),
    }
}

/// Departure and delay of the packets that arrived.
fn delays(outcome: &Outcome) -> Vec<(f64, f64)> {
    let (sent, arrived) = (column(outcome, "packets", "sent_s"), column(outcome, "packets", "arrived_s"));
    let both = sent.into_iter().zip(arrived).filter(|(_, arrived)| arrived.is_finite());
    both.map(|(sent, arrived)| (sent, arrived - sent)).collect()
}

/// The target from a time on.
fn target(outcome: &Outcome, from: f64) -> f64 {
    let times = column(outcome, "decisions", "t_s");
    let first = times.iter().position(|&time| time >= from).unwrap();
    column(outcome, "decisions", "target_bps")[first]
}

fn assert_moved(delays: &[(f64, f64)]) {
    assert!(delays.iter().filter(|(sent, _)| *sent < 4.0).all(|(_, delay)| (0.01..0.03).contains(delay)));
    assert!(delays.iter().filter(|(sent, _)| *sent >= 4.0).all(|(_, delay)| *delay > 0.04));
    assert!(delays.iter().filter(|(sent, _)| *sent >= 4.0).count() > 300);
}

#[test]
fn packets_of_both_ways_take_the_path_of_their_departure() {
    assert_moved(&delays(&run(|_| ())));
    // back again: what left for LTE is overtaken
    let back = run(|data| {
        let home = json!({"time": 6 * SECOND, "flow": "call", "path": ["wifi"], "back": ["wifi.back"]});
        data["moves"].as_array_mut().unwrap().insert(0, home);
    });
    let mut arrivals: Vec<(f64, f64)> =
        delays(&back).into_iter().map(|(sent, delay)| (sent + delay, sent)).collect();
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let overtaken = arrivals.windows(2).any(|pair| pair[1].1 < 6.0 && pair[0].1 >= 6.0);
    assert!(overtaken, "no packet of LTE arrived behind one of Wi-Fi");
    assert!(delays(&back).iter().filter(|(sent, _)| *sent >= 6.0).all(|(_, delay)| *delay < 0.03));
}

#[test]
fn the_controller_begins_anew_where_the_ends_hear_of_it() {
    let (heard, unheard) = (run(|_| ()), run(|data| data["moves"][0]["signalled"] = json!(false)));
    assert_eq!(target(&heard, 4.0), 500_000.0);
    assert!(target(&unheard, 4.0) > 1_000_000.0, "{}", target(&unheard, 4.0));
    assert_moved(&delays(&unheard));
}

#[test]
fn a_move_between_equal_paths_of_which_nobody_hears_changes_nothing() {
    let twin = |data: &mut Value| {
        let links = data["links"].as_array_mut().unwrap();
        links[2] = link("lte", ("a", "b"), 20_000_000, 10 * MILLI);
        links[3] = link("lte.back", ("b", "a"), 20_000_000, 10 * MILLI);
        data["moves"][0]["signalled"] = json!(false);
        // at a time at which nothing is in a queue
        data["moves"][0]["time"] = json!(4 * SECOND + 17 * MILLI);
    };
    let stays = run(|data| {
        twin(data);
        data["moves"] = json!([]);
    });
    assert_eq!(delays(&run(twin)), delays(&stays));
}

#[test]
fn both_flows_of_a_pair_go_over_and_a_coupled_one_alone() {
    let pair = |data: &mut Value| {
        data["flows"] =
            json!([call("there", ("a", "b"), Some("here")), call("here", ("b", "a"), Some("there"))]);
        data["moves"] = json!([
            {"time": 4 * SECOND, "flow": "here", "path": ["lte.back"], "back": ["lte"]}
        ]);
    };
    let moved = run(pair);
    assert_moved(&delays(&moved));
    assert_eq!(target(&moved, 4.0), 500_000.0);

    let coupled = run(|data| {
        data["flows"] = json!([call("stays", ("a", "b"), None), call("goes", ("a", "b"), None)]);
        data["moves"] = json!([to_lte("goes")]);
        data["couplings"] = json!([{"flows": [["stays", 1.0], ["goes", 1.0]], "algorithm": "active"}]);
    });
    let of_flow = |flow: f64| -> Vec<(f64, f64)> {
        let table = coupled.recording.table("packets").unwrap();
        let (_, Column::Words { codes, .. }) =
            table.columns.iter().find(|(name, _)| *name == "flow").unwrap().clone()
        else {
            panic!("flows are words")
        };
        let (sent, arrived) =
            (column(&coupled, "packets", "sent_s"), column(&coupled, "packets", "arrived_s"));
        let rows = codes.into_iter().zip(sent.into_iter().zip(arrived));
        let rows = rows.filter(|&(code, (_, arrived))| f64::from(code) == flow && arrived.is_finite());
        rows.map(|(_, (sent, arrived))| (sent, arrived - sent)).collect()
    };
    assert!(of_flow(0.0).iter().all(|(_, delay)| *delay < 0.03));
    assert_moved(&of_flow(1.0));
}

#[test]
fn what_is_encoded_to_bytes_goes_over_too() {
    let (plain, bytes) = (run(|_| ()), run(|data| data["bytes"] = json!(true)));
    assert_eq!(plain.summary.digest, bytes.summary.digest);
}

#[test]
fn what_is_available_follows_the_path() {
    let flow = run(|data| data["flows"][0]["kind"]["media"]["max_rate"] = json!(30_000_000)).summary.flows;
    // 4 s of 20 Mbit/s and 4 s of 4 Mbit/s
    assert!((flow[0].available_rate_bps.unwrap() / 12e6 - 1.0).abs() < 1e-12);
    let utilisation = flow[0].receive_rate_bps.unwrap() / 12e6;
    assert!((flow[0].utilisation.unwrap() - utilisation).abs() < 1e-9);
}

#[test]
fn paths_that_cannot_be_are_refused() {
    let wrong = |key: &str, value: Value| refused(|data| data["moves"][0][key] = value);
    for (reason, says) in [
        (wrong("path", json!(["lte", "lte"])), "found lte; expected a link from b (it leads from a to b)"),
        (wrong("path", json!(["5g"])), "found 5g; expected the name of a link"),
        (wrong("path", json!([])), "found a path that ends at a; expected links from a to b"),
        (wrong("back", json!(["lte"])), "found lte; expected a link from b"),
        (wrong("back", json!([])), "expected links from b to a"),
        (wrong("running", json!(true)), "found a flow without one change"),
        (wrong("link", json!("lte")), "found a flow without one change"),
        (wrong("flow", json!("other")), "found other; expected a flow of the scenario"),
        (wrong("time", json!(9 * SECOND)), "expected a time within the run"),
    ] {
        assert!(reason.starts_with("moves[1]") && reason.contains(says), "{reason}");
    }
    let external = refused(|data| {
        data["flows"] = json!([{"name": "call", "from": "a", "to": "b", "kind": "external"}]);
        data["moves"][0]["path"] = json!(["5g"]);
    });
    assert!(external.starts_with("moves[1]: path: found 5g"), "{external}");
    let udp = refused(|data| {
        data["flows"] = json!([{"name": "call", "from": "a", "to": "b", "kind":
            {"udp": {"pattern": "cbr", "rate": 700_000, "packet_size": 1000}}}]);
    });
    assert!(udp.contains("a media flow: others keep their path"), "{udp}");
}
