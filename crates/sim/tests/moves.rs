//! Changes that a scenario makes while it runs, compared with the equivalent schedules and times.

use serde_json::{Value, json};
use tidegate_core::{Span, Time};
use tidegate_sim::link::LinkChange;
use tidegate_sim::link::loss::Loss;
use tidegate_sim::link::phases::Phases;
use tidegate_sim::record::columns::Column;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run, Scenario};

const SECOND: i64 = 1_000_000_000;

/// A constant stream and a download over a link of 3 Mbit/s without losses.
fn scenario(change: impl FnOnce(&mut Value)) -> Scenario {
    let mut scenario = json!({
        "name": "moves", "duration": 12 * SECOND, "seed": 3, "warmup": 2 * SECOND, "sending_jitter": "off",
        "record": {"level": "packets", "bin": SECOND / 5},
        "links": [
            {"name": "there", "from": "a", "to": "b", "capacity": {"constant": 3_000_000},
             "settings": {"delay": 20_000_000, "queue": {"packets": 50}, "loss": {"bernoulli": 0.0}}},
            {"name": "back", "from": "b", "to": "a", "capacity": {"constant": 50_000_000},
             "settings": {"delay": 20_000_000}},
        ],
        "flows": [
            {"name": "steady", "from": "a", "to": "b", "kind":
                {"udp": {"pattern": "cbr", "rate": 700_000, "packet_size": 1000}}},
            {"name": "file", "from": "a", "to": "b", "kind": {"tcp": {
                "algorithm": "cubic", "workload": "long", "initial_window": 10, "min_rto": SECOND,
                "delayed_ack": true, "handshake": true, "receive_window": 400_000, "packet_size": 1000}}},
        ],
    });
    change(&mut scenario);
    serde_json::from_value(scenario).unwrap()
}

fn finished(mut run: Run) -> Outcome {
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

fn run(scenario: &Scenario) -> Outcome {
    finished(Run::new(scenario, &[], &mut from_registry).unwrap())
}

/// Digest, summary, and the tables of packets, queues, series and capacities.
fn results(outcome: &Outcome) -> (String, String, Vec<String>) {
    let tables = ["packets", "queues", "series", "truth"];
    let tables = tables.map(|name| format!("{:?}", outcome.recording.table(name).map(|table| table.columns)));
    let summary = serde_json::to_string(&outcome.summary).unwrap();
    (outcome.summary.digest.clone(), summary, tables.to_vec())
}

fn refused(moves: Value) -> String {
    let scenario = scenario(|data| data["moves"] = moves);
    match Run::new(&scenario, &[], &mut from_registry) {
        Ok(_) => "nothing".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn a_changed_capacity_is_the_equivalent_schedule() {
    let steps = [(0, 3_000_000), (3 * SECOND, 400_000), (5 * SECOND, 0), (11 * SECOND / 2, 5_000_000)];
    let schedule = scenario(|data| data["links"][0]["capacity"] = json!({"schedule": {"steps": steps}}));
    let moves: Vec<Value> = steps[1..]
        .iter()
        .map(|(time, rate)| json!({"time": time, "link": "there", "change": {"capacity": rate}}))
        .collect();
    let moved = scenario(|data| data["moves"] = json!(moves));
    let (schedule, moved) = (results(&run(&schedule)), results(&run(&moved)));
    assert_eq!(schedule.0, moved.0);
    assert_eq!(schedule.1, moved.1);
    assert!(schedule.2 == moved.2);
    assert_ne!(moved.0, run(&scenario(|_| ())).summary.digest);
}

#[test]
fn changed_losses_and_a_changed_delay_hold_from_their_time_on() {
    let later = 4 * SECOND;
    let schedule = scenario(|data| {
        data["links"][0]["settings"]["loss"] = json!([[0, {"bernoulli": 0.0}], [later, {"bernoulli": 0.25}]]);
    });
    let moved = scenario(|data| {
        data["moves"] = json!([{"time": later, "link": "there", "change": {"loss": {"bernoulli": 0.25}}}])
    });
    assert_eq!(run(&schedule).summary.digest, run(&moved).summary.digest);
    let slower = scenario(|data| {
        data["flows"].as_array_mut().unwrap().truncate(1);
        data["moves"] = json!([{"time": later, "link": "there", "change": {"delay": 90_000_000}}]);
    });
    let outcome = run(&slower);
    let table = outcome.recording.table("packets").unwrap();
    let column = |name: &str| match table.columns.iter().find(|(column_name, _)| *column_name == name) {
        Some((_, Column::F64(values))) => values.clone(),
        _ => panic!("no column {name}"),
    };
    let min_delay = |from: f64, to: f64| {
        let both = column("sent_s").into_iter().zip(column("arrived_s"));
        let delays = both.filter(|(sent, _)| (from..to).contains(sent)).map(|(sent, arrived)| arrived - sent);
        delays.fold(f64::INFINITY, f64::min)
    };
    // 1000 bytes and 28 of headers at 3 Mbit/s take 2.7 ms
    assert!((0.0226..0.0228).contains(&min_delay(0.0, 3.9)), "{}", min_delay(0.0, 3.9));
    assert!((0.0926..0.0928).contains(&min_delay(4.0, 11.9)), "{}", min_delay(4.0, 11.9));
}

#[test]
fn a_change_at_the_beginning_is_a_setting() {
    let still = run(&scenario(|_| ())).summary.digest;
    let codel =
        json!({"codel": {"target": 5_000_000, "interval": 100_000_000, "maxpacket": 1500, "ecn": true}});
    for (key, value) in [
        ("delay", json!(35_000_000)),
        ("loss", json!({"bernoulli": 0.02})),
        ("loss", json!([[0, {"bernoulli": 0.0}], [4 * SECOND, {"bernoulli": 0.1}]])),
        ("jitter", json!({"uniform": 9_000_000})),
        ("jitter", json!({"rfc8868": {"std": 5_000_000, "n_std": 3.0}})),
        ("byte_error", json!(1e-5)),
        ("queue", json!({"packets": 7})),
        ("queue", json!({"time": 40_000_000})),
        ("discipline", codel),
    ] {
        let setting = scenario(|data| data["links"][0]["settings"][key] = value.clone());
        let moved = scenario(|data| {
            // a link whose loss may change draws for each packet, and so does the setting
            data["moves"] = json!([{"time": 0, "link": "there", "change": {key: value.clone()}}]);
        });
        let (setting, moved) = (results(&run(&setting)), results(&run(&moved)));
        assert_eq!(setting, moved, "{key}: {value}");
        assert_ne!(setting.0, still, "{key}: {value}");
    }
    // capacity and a limit in time together: the limit is at the new capacity
    let setting = scenario(|data| {
        data["links"][0]["capacity"] = json!({"constant": 1_000_000});
        data["links"][0]["settings"]["queue"] = json!({"time": 80_000_000});
    });
    let moved = scenario(|data| {
        let change = json!({"queue": {"time": 80_000_000}, "capacity": 1_000_000});
        data["moves"] = json!([{"time": 0, "link": "there", "change": change}]);
    });
    assert_eq!(run(&setting).summary.digest, run(&moved).summary.digest);
}

#[test]
fn marks_are_bleached_from_the_time_of_the_change_on() {
    let digest = |setting: &str, moves: Value| {
        let changed = scenario(|data| {
            data["links"][0]["settings"]["discipline"] = json!({"codel": {"target": 5_000_000, "interval": 100_000_000, "maxpacket": 1500, "ecn": true}});
            data["links"][0]["settings"]["ecn"] = json!(setting);
            data["flows"][1]["kind"]["tcp"]["ecn"] = json!(true);
            data["moves"] = moves;
        });
        run(&changed).summary.digest
    };
    let moved = |time: i64, ecn: &str| json!([{"time": time, "link": "there", "change": {"ecn": ecn}}]);
    let (passed, bleached) = (digest("pass", json!([])), digest("bleach", json!([])));
    assert_ne!(passed, bleached);
    assert_eq!(digest("pass", moved(0, "bleach")), bleached);
    assert_eq!(digest("bleach", moved(0, "pass")), passed);
    assert!(![passed, bleached].contains(&digest("pass", moved(6 * SECOND, "bleach"))));
}

#[test]
fn a_flow_that_is_started_and_stopped_is_one_with_these_times() {
    let times = scenario(|data| {
        data["flows"][1]["start"] = json!(3 * SECOND);
        data["flows"][1]["stop"] = json!(7 * SECOND);
    });
    let moved = scenario(|data| {
        data["moves"] = json!([
            {"time": 7 * SECOND, "flow": "file", "running": false},
            {"time": 3 * SECOND, "flow": "file", "running": true},
        ]);
    });
    assert_eq!(results(&run(&times)), results(&run(&moved)));
}

#[test]
fn however_a_run_is_cut_its_changes_are_made_at_their_times() {
    let moved = scenario(|data| {
        data["moves"] = json!([
            {"time": 8 * SECOND, "link": "there", "change": {"capacity": 2_500_000}},
            {"time": 2 * SECOND, "link": "there", "change": {"capacity": 700_000, "loss": {"bernoulli": 0.01}}},
            {"time": 2 * SECOND, "link": "there", "change": {"capacity": 900_000}},
            {"time": 0, "link": "back", "change": {"delay": 40_000_000}},
        ]);
    });
    let reference = results(&run(&moved));
    let new_run = || Run::new(&moved, &[], &mut from_registry).unwrap();
    let mut few = new_run();
    while !few.run_events(Time::MAX, 37).unwrap() {}
    assert_eq!(results(&finished(few)), reference);
    let mut cut = new_run();
    for step in 1..=123 {
        cut.run_until(Time::ZERO + Span::from_millis(100) * step).unwrap();
    }
    assert_eq!(results(&finished(cut)), reference);
    let mut driven = new_run();
    while !driven.run_driven(Time::MAX, 11).unwrap() {}
    assert_eq!(results(&finished(driven)), reference);
    // by hand, at the same times
    let mut by_hand = scenario(|data| {
        data["moves"] = json!([{"time": 0, "link": "back", "change": {"delay": 40_000_000}}]);
    });
    by_hand.links[0].service = tidegate_sim::scenario::LinkService::Managed;
    let mut run = Run::new(&by_hand, &[], &mut from_registry).unwrap();
    for (seconds, capacity, loss) in [(2, 700_000, Some(0.01)), (2, 900_000, None), (8, 2_500_000, None)] {
        let time = Time::from_secs(seconds);
        run.run_until(time - Span::from_nanos(1)).unwrap();
        let change = LinkChange {
            capacity: Some(tidegate_core::Rate::from_bps(capacity)),
            loss: loss.map(|loss| Phases::constant(Loss::Bernoulli(loss))),
            ..LinkChange::default()
        };
        run.change("there", time, &change).unwrap();
    }
    assert_eq!(finished(run).summary.digest, reference.0);
}

#[test]
fn impossible_changes_are_refused_before_the_run() {
    for (moves, expected) in [
        (
            json!([{"time": 13 * SECOND, "link": "there", "change": {"loss": {"bernoulli": 0.1}}}]),
            "moves[1].time: found 13",
        ),
        (
            json!([{"time": SECOND, "link": "nowhere", "change": {"loss": {"bernoulli": 0.1}}}]),
            "moves[1]: links.nowhere: ",
        ),
        (
            json!([{"time": SECOND, "link": "there", "change": {"loss": {"bernoulli": 1.5}}}]),
            "moves[1]: links.there.loss: found 1.5",
        ),
        (
            json!([{"time": SECOND, "link": "there", "change": {"delay": -1}}]),
            "moves[1]: links.there.delay: ",
        ),
        (json!([{"time": SECOND, "link": "there"}]), "moves[1]: found a link without a change"),
        (
            json!([{"time": SECOND, "link": "there", "running": true}]),
            "moves[1]: found a link without a change",
        ),
        (json!([{"time": SECOND}]), "moves[1]: found neither"),
        (json!([{"time": SECOND, "flow": "absent", "running": true}]), "moves[1].flow: found absent"),
        (json!([{"time": SECOND, "flow": "file"}]), "moves[1]: found a flow without"),
        (
            json!([{"time": SECOND, "flow": "file", "running": true, "change": {"loss": {"bernoulli": 0.1}}}]),
            "moves[1]: found a flow without",
        ),
        (
            json!([
                {"time": SECOND, "flow": "file", "running": false},
                {"time": 2 * SECOND, "flow": "file", "running": false},
            ]),
            "moves[2].running: found a second stop of file",
        ),
        (
            json!([
                {"time": 2 * SECOND, "flow": "file", "running": true},
                {"time": SECOND, "flow": "file", "running": false},
            ]),
            "flows.file.stop: ",
        ),
    ] {
        let refusal = refused(moves);
        assert!(refusal.starts_with(expected), "{refusal}, and not {expected}");
    }
}
