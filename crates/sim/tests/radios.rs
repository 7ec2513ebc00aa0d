//! Several radio networks in one scenario: flows between their users, and the owners of rows in the record.

use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_sim::record::columns::Column;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run, Scenario};

const HANDOVER: i64 = 30_000_000;

/// A network called `name` behind the node `core` with users called `NAME-1` to `NAME-count`.
fn network(name: &str, core: &str, count: usize) -> Value {
    let users: Vec<Value> = (1..=count).map(|k| json!({"name": format!("{name}-{k}")})).collect();
    let settings = json!({
        "sites": 7, "wrap": true, "case": 1, "tilt": false, "bandwidth": "10MHz", "antennas": "1x2",
        "fading": "none", "speed": 0.0, "interferers": 0, "scheduler": "pf", "outer_loop": true, "window": 300,
        "queue": {"packets": 1000},
        "handover": {"hysteresis": 3.0, "trigger": 200_000_000, "interruption": HANDOVER},
    });
    json!({"name": name, "core": core, "users": users, "access": {"lte": settings}})
}

fn run(radios: &[Value], flows: &[(&str, &str)]) -> Outcome {
    let link = |name: &str, from: &str, to: &str| {
        let settings = json!({"delay": 5_000_000});
        json!({"name": name, "from": from, "to": to, "capacity": "infinite", "settings": settings})
    };
    let flow = |&(from, to): &(&str, &str)| {
        let udp = json!({"pattern": "cbr", "rate": 100_000, "packet_size": 1000});
        json!({"name": format!("{from} to {to}"), "from": from, "to": to, "kind": {"udp": udp}})
    };
    let scenario: Scenario = serde_json::from_value(json!({
        "name": "radios", "duration": 5_000_000_000_i64, "seed": 1, "sending_jitter": "off",
        "radios": radios,
        "links": [link("there", "west", "east"), link("back", "east", "west")],
        "flows": flows.iter().map(flow).collect::<Vec<_>>(),
    }))
    .expect("a scenario");
    let mut run = Run::new(&scenario, &[], &mut from_registry).expect("a world");
    run.run_until(Time::MAX).expect("no component fails");
    run.finish().expect("every packet is accounted for")
}

/// The words of a column, row by row.
fn words(outcome: &Outcome, table: &str, column: &str) -> Vec<String> {
    let table = outcome.recording.table(table).expect("a table");
    let found_column = table.columns.iter().find(|(name, _)| *name == column);
    let Some((_, Column::Words { words, codes })) = found_column else {
        panic!("no column {column} of words")
    };
    codes.iter().map(|&code| words[code as usize].clone()).collect()
}

#[test]
fn users_of_two_networks_reach_each_other_and_the_record_tells_them_apart() {
    let radios = [network("a", "west", 3), network("b", "east", 2)];
    let outcome = run(&radios, &[("a-3", "b-2"), ("b-1", "east")]);
    for flow in &outcome.summary.flows {
        // 100 kbit/s of 1000 bytes: a packet every 80 ms; a packet that is missing at the end is under way
        assert!(flow.packets_sent == 63 && flow.packets_received >= 62, "{}", flow.packets_received);
    }
    let rows = words(&outcome, "radio", "user").into_iter().zip(words(&outcome, "radio", "direction"));
    let mut user_directions: Vec<_> = rows.collect();
    user_directions.sort_unstable();
    user_directions.dedup();
    let expected = [("a-3", "up"), ("b-1", "up"), ("b-2", "down")];
    assert_eq!(user_directions, expected.map(|(user, direction)| (user.to_owned(), direction.to_owned())));
    let mut networks = words(&outcome, "cells", "network");
    networks.sort_unstable();
    networks.dedup();
    assert_eq!(networks, ["a", "b"]);
}

#[test]
fn a_network_beside_another_changes_nothing_of_it() {
    let alone = run(&[network("a", "west", 3)], &[("a-3", "east")]);
    let beside =
        run(&[network("b", "east", 2), network("a", "west", 3)], &[("a-3", "east"), ("b-1", "east")]);
    let mean_delay = |outcome: &Outcome| outcome.summary.flows[0].one_way_delay_ms_mean;
    assert!(mean_delay(&alone).is_some_and(|mean| mean > 4.0));
    assert_eq!(mean_delay(&alone), mean_delay(&beside));
}

#[test]
fn a_setting_out_of_range_is_refused_with_the_name_of_the_network() {
    let mut radio = network("a", "west", 1);
    radio["access"]["lte"]["speed"] = json!(1000.0);
    let scenario: Scenario = serde_json::from_value(json!({
        "name": "radios", "duration": 1_000_000_000, "seed": 1, "radios": [radio], "links": [], "flows": [],
    }))
    .expect("a scenario");
    let refusal = Run::new(&scenario, &[], &mut from_registry).err().expect("a refusal");
    assert_eq!((refusal.key.as_str(), refusal.value.as_str()), ("radios.a.speed", "1000 m/s"));
}

#[test]
fn a_user_of_one_network_has_no_name_of_another_networks() {
    let refusal = |names: [&str; 2]| {
        let radios: Vec<Value> = names.iter().map(|name| network(name, "core", 3)).collect();
        let scenario = json!({
            "name": "radios", "duration": 1_000_000_000_i64, "seed": 1, "sending_jitter": "off",
            "radios": radios, "links": [], "flows": [],
        });
        let scenario: Scenario = serde_json::from_value(scenario).expect("a scenario");
        Run::new(&scenario, &[], &mut from_registry).err().map(|refusal| (refusal.key, refusal.value))
    };
    assert_eq!(refusal(["a", "a"]), Some(("radios.a.users".to_owned(), "a-1".to_owned())));
    assert_eq!(refusal(["a", "b"]), None);
}
