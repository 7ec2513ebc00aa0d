//! A run that is stepped, read and changed by hand, compared with the equivalent scenario.

use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_core::{Span, Stream, Time};
use tidegate_sim::link::LinkChange;
use tidegate_sim::link::trace::Trace;
use tidegate_sim::record::columns::Column;
use tidegate_sim::record::news::{NewsCursor, SECTIONS};
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run, Scenario};

const SECOND: i64 = 1_000_000_000;

/// An adaptive call and a download over two successive links with these disciplines.
fn scenario(near: &Value, far: &Value, moves: Value) -> Scenario {
    let link = |name: &str, from: &str, to: &str, rate: i64, discipline: &Value| {
        json!({"name": name, "from": from, "to": to, "capacity": {"constant": rate}, "service": "managed",
               "settings": {"delay": 15_000_000, "queue": {"packets": 60}, "discipline": discipline}})
    };
    let scenario = json!({
        "name": "stepped", "duration": 8 * SECOND, "seed": 5, "warmup": SECOND, "moves": moves,
        "record": {"level": "series", "bin": SECOND / 10},
        "links": [
            link("near", "a", "m", 3_000_000, near), link("far", "m", "b", 2_500_000, far),
            link("back", "b", "a", 20_000_000, &json!("drop_tail")),
        ],
        "flows": [
            {"name": "call", "from": "a", "to": "b", "kind": {"media": {
                "controller": {"name": "gcc"}, "min_rate": 30_000, "max_rate": 2_500_000, "start_rate": 500_000,
                "video": {"source": "ideal", "min": 150_000, "max": 2_500_000, "fps": 30.0},
                "audio": {"rate": 32_000, "interval": 20_000_000}, "feedback": {"format": "twcc", "interval": null},
                "playout": {"adaptive": {"min": 0, "max": SECOND}}, "payload": 1200, "overhead": 28}}},
            {"name": "file", "from": "a", "to": "b", "start": 3 * SECOND, "kind": {"tcp": {
                "algorithm": "cubic", "workload": "long", "initial_window": 10, "min_rto": SECOND, "ecn": true,
                "delayed_ack": true, "handshake": true, "receive_window": 400_000, "packet_size": 1000}}},
        ],
    });
    serde_json::from_value(scenario).unwrap()
}

fn new(scenario: &Scenario) -> Run {
    Run::new(scenario, &[], &mut from_registry).unwrap()
}

fn finished(mut run: Run) -> Outcome {
    run.run_until(Time::MAX).unwrap();
    run.finish().unwrap()
}

/// The summary and the tables.
fn results(outcome: &Outcome) -> (String, Vec<String>) {
    let tables = ["queues", "series", "truth", "internals", "decisions", "frames", "freezes"];
    let tables = tables.map(|name| format!("{:?}", outcome.recording.table(name).map(|table| table.columns)));
    (serde_json::to_string(&outcome.summary).unwrap(), tables.to_vec())
}

fn change(change: Value) -> LinkChange {
    serde_json::from_value(change).unwrap()
}

fn as_move(time: Time, link: &str, change: &Value) -> Value {
    json!({"time": time.as_nanos(), "link": link, "change": change})
}

fn disciplines() -> Vec<Value> {
    let codel = json!({"target": 5_000_000, "interval": 100_000_000, "maxpacket": 1500, "ecn": true});
    let mut fair = codel.clone();
    fair["quantum"] = json!(1514);
    fair["flows"] = json!(1024);
    let pie = json!({
        "qdelay_ref": 15_000_000, "t_update": 15_000_000, "max_burst": 150_000_000, "alpha": 0.125, "beta": 1.25,
        "mean_pktsize": 1000, "ecn": true, "mark_ecnth": 0.1, "derandomize": true, "cap_drop": true,
    });
    let dual = json!({
        "k": 2.0, "target": 15_000_000, "rtt_max": 100_000_000, "min_th": 800_000, "range": 400_000, "th_len": 1,
        "classic_weight": 0.0625,
    });
    let bucket = json!({"rate": 2_000_000, "burst": 30_000, "mtu": 1500, "discipline": "drop_tail"});
    vec![
        json!("drop_tail"),
        json!({"codel": codel}),
        json!({"fq_codel": fair}),
        json!({"pie": pie}),
        json!({"dualpi2": dual}),
        json!({"policer": bucket}),
        json!({"shaper": bucket}),
    ]
}

fn jitters() -> [Value; 3] {
    [json!("none"), json!({"uniform": 8_000_000}), json!({"rfc8868": {"std": 5_000_000, "n_std": 3.0}})]
}

/// Capacities that a link may have until it is changed.
fn capacities() -> [Value; 4] {
    [
        json!({"constant": 3_000_000}),
        json!({"schedule": {"steps": [[0, 3_000_000], [2 * SECOND, 800_000], [5 * SECOND, 4_000_000]]}}),
        json!({"brownian": {"start": 2_000_000, "max": 4_000_000, "sigma": 1_000_000, "outage_escape": 1.0}}),
        json!({"trace": {"index": 0}}),
    ]
}

/// Opportunities of some 2 Mbit/s.
fn recorded() -> Arc<Trace> {
    let millis = (0..200).map(|index| index * 6 + index % 5).collect();
    Arc::new(Trace::of_opportunities("recorded".to_owned(), millis, 1504).unwrap())
}

#[test]
fn whatever_is_changed_by_hand_packets_are_conserved_and_moves_say_the_same() {
    let disciplines = disciplines();
    for seed in 0..60_u64 {
        let mut luck = Stream::new(seed, "stepped", "changes");
        let pick = |luck: &mut Stream| disciplines[luck.below(disciplines.len() as u64) as usize].clone();
        let (near, far) = (pick(&mut luck), pick(&mut luck));
        let capacity = capacities()[luck.below(4) as usize].clone();
        let of_moves = |moves: Value| {
            let mut changed = scenario(&near, &far, moves);
            changed.links[0].capacity = serde_json::from_value(capacity.clone()).unwrap();
            Run::new(&changed, &[recorded()], &mut from_registry).unwrap()
        };
        let mut run = of_moves(json!([]));
        let mut moves = Vec::new();
        while run.reached() < Time::from_secs(8) {
            // anywhere, to the nanosecond; now and then several changes at one time
            let next = run.reached() + Span::from_nanos(1 + luck.below(600_000_000) as i64);
            run.run_before(next, u64::MAX).unwrap();
            for _ in 0..luck.below(3) {
                let link = ["near", "far", "back"][luck.below(3) as usize];
                // at once, or ahead of time
                let time = run.reached() + Span::from_nanos((luck.below(2) * luck.below(900_000_000)) as i64);
                if time > Time::from_secs(8) {
                    continue;
                }
                let drawn = match luck.below(10) {
                    0 => json!({"delay": luck.below(90_000_000)}),
                    1 => json!({"loss": {"bernoulli": luck.below(30) as f64 / 100.0}}),
                    2 => json!({"loss": {"gilbert_elliott": {
                        "to_bad": 0.02, "to_good": 0.3, "loss_good": 0.0, "loss_bad": 1.0,
                    }}}),
                    3 => json!({"jitter": jitters()[luck.below(3) as usize]}),
                    4 => json!({"byte_error": luck.below(3) as f64 * 1e-5}),
                    5 => {
                        json!({"ecn": ([json!("pass"), json!("bleach"), json!("drop")][luck.below(3) as usize])})
                    }
                    6 => json!({"queue": {"packets": 1 + luck.below(40)}}),
                    7 => {
                        json!({"discipline": pick(&mut luck), "queue": {"time": 1 + luck.below(300_000_000)}})
                    }
                    // an outage, too
                    _ => json!({"capacity": luck.below(40) * 100_000}),
                };
                run.plan(link, time, change(drawn.clone())).unwrap();
                moves.push(as_move(time, link, &drawn));
            }
            run.check().unwrap();
            // observing changes nothing
            let so_far = run.summary_so_far();
            assert!(so_far.flows[0].packets_sent <= run.recording().stats()[0].sent.packets);
        }
        let by_hand = results(&finished(run));
        let planned = results(&finished(of_moves(json!(moves))));
        assert_eq!(by_hand.0, planned.0, "seed {seed}: {capacity}, {near} and {far}, {moves:?}");
        assert!(by_hand.1 == planned.1, "seed {seed}: tables differ: {near} and {far}, {moves:?}");
    }
}

#[test]
fn a_change_comes_before_events_at_its_time_and_a_step_before_that_time_does_not_handle_them() {
    let unchanged = scenario(&json!("drop_tail"), &json!("drop_tail"), json!([]));
    // a time at which there is an event
    let mut run = new(&unchanged);
    run.run_until(Time::from_secs(2)).unwrap();
    let busy = run.peek().unwrap();
    let mut run = new(&unchanged);
    run.run_before(busy, u64::MAX).unwrap();
    assert_eq!((run.reached(), run.peek()), (busy, Some(busy)));
    run.plan("near", busy, change(json!({"capacity": 300_000}))).unwrap();
    let moves = json!([{"time": busy.as_nanos(), "link": "near", "change": {"capacity": 300_000}}]);
    let planned = results(&finished(new(&scenario(&json!("drop_tail"), &json!("drop_tail"), moves))));
    assert!(results(&finished(run)) == planned);
    // at the very beginning, too
    let mut run = new(&unchanged);
    assert_eq!(run.reached(), Time::ZERO);
    run.plan("near", Time::ZERO, change(json!({"delay": 50_000_000}))).unwrap();
    let moves = json!([{"time": 0, "link": "near", "change": {"delay": 50_000_000}}]);
    let planned = results(&finished(new(&scenario(&json!("drop_tail"), &json!("drop_tail"), moves))));
    assert!(results(&finished(run)) == planned);
}

#[test]
fn cancelled_changes_are_not_made() {
    let tail = json!("drop_tail");
    let mut run = new(&scenario(
        &tail,
        &tail,
        json!([{"time": 6 * SECOND, "link": "near", "change": {"loss": {"bernoulli": 0.1}}}]),
    ));
    run.run_before(Time::from_secs(2), u64::MAX).unwrap();
    run.plan("near", Time::from_secs(3), change(json!({"capacity": 900_000}))).unwrap();
    run.plan("far", Time::from_secs(4), change(json!({"capacity": 800_000}))).unwrap();
    run.plan("near", Time::from_secs(5), change(json!({"capacity": 700_000}))).unwrap();
    run.forget("near", Time::from_secs(5)).unwrap();
    let moves = json!([
        {"time": 3 * SECOND, "link": "near", "change": {"capacity": 900_000}},
        {"time": 4 * SECOND, "link": "far", "change": {"capacity": 800_000}},
    ]);
    assert!(results(&finished(run)) == results(&finished(new(&scenario(&tail, &tail, moves)))));
}

#[test]
fn impossible_plans_are_refused() {
    let tail = json!("drop_tail");
    let mut run = new(&scenario(&tail, &tail, json!([])));
    run.run_before(Time::from_secs(2), u64::MAX).unwrap();
    let mut refused =
        |link: &str, at: i64, change| run.plan(link, Time::from_nanos(at), change).unwrap_err().to_string();
    let slower = change(json!({"capacity": 1}));
    assert!(
        refused("near", 2 * SECOND - 1, slower.clone())
            .starts_with("time: found 1.999999999s; expected a time from 2.000000000s, ")
    );
    assert!(refused("near", 8 * SECOND + 1, slower.clone()).contains("to 8.000000000s"));
    assert!(refused("near", 3 * SECOND, change(json!({}))).starts_with("links.near: found no change"));
    assert!(refused("nowhere", 3 * SECOND, slower).starts_with("links.nowhere: found no managed link"));
    assert!(
        refused("near", 3 * SECOND, change(json!({"loss": {"bernoulli": 1.5}})))
            .starts_with("links.near.loss: found 1.5")
    );
    assert!(run.forget("nowhere", Time::ZERO).is_err());
}

#[test]
fn the_metrics_so_far_are_those_of_a_run_that_ends_there_and_asking_changes_nothing() {
    let moved = scenario(
        &disciplines()[1],
        &json!("drop_tail"),
        json!([{"time": 4 * SECOND, "link": "near", "change": {"capacity": 900_000}}]),
    );
    let reference = results(&finished(new(&moved)));
    let mut observed = new(&moved);
    for millis in [400, 999, 1001, 1700, 3900, 4000, 5500, 7900] {
        // just after it, when there is no event, which `finish_at` would handle
        let time = Time::from_millis(millis) + Span::from_nanos(123);
        observed.run_before(time, u64::MAX).unwrap();
        let so_far = serde_json::to_value(observed.summary_so_far()).unwrap();
        let mut ended = new(&moved);
        ended.run_before(time, u64::MAX).unwrap();
        let ended = serde_json::to_value(ended.finish_at(observed.reached()).unwrap().summary).unwrap();
        for part in ["links", "fairness", "duration_s", "warmup_s"] {
            assert_eq!(so_far[part], ended[part], "{part} at {time}");
        }
        for (so_far, ended) in
            so_far["flows"].as_array().unwrap().iter().zip(ended["flows"].as_array().unwrap())
        {
            for (key, value) in ended.as_object().unwrap() {
                // known only at the end
                if !["freezes", "freeze_time_s", "mos", "mos_without_plc", "r_factor", "quality"]
                    .contains(&key.as_str())
                {
                    assert_eq!(so_far[key], *value, "{key} of {} at {time}", ended["flow"]);
                }
            }
        }
    }
    assert!(results(&finished(observed)) == reference);
}

/// Rows of each section.
fn read_news(run: &Run, cursor: &mut NewsCursor) -> Vec<Vec<Vec<f64>>> {
    let mut out = Vec::new();
    run.recording().news(run.reached(), cursor, &mut out);
    let mut rest = &out[..];
    let sections = SECTIONS.map(|(_, columns)| {
        let (rows, after) = (rest[0] as usize, &rest[1..]);
        let (these, after) = after.split_at(rows * columns.len());
        rest = after;
        these.chunks(columns.len()).map(<[f64]>::to_vec).collect::<Vec<_>>()
    });
    assert!(rest.is_empty());
    sections.to_vec()
}

#[test]
fn news_come_once_and_together_are_the_tables() {
    let moves = json!([{"time": 4 * SECOND, "link": "near", "change": {"capacity": 900_000, "loss": {"bernoulli": 0.02}}}]);
    let mut run = new(&scenario(&disciplines()[1], &json!("drop_tail"), moves));
    let mut cursor = NewsCursor::default();
    let mut section_rows = vec![Vec::new(); SECTIONS.len()];
    for step in 1..=53 {
        run.run_before(Time::from_millis(step * 151), u64::MAX).unwrap();
        for (section_rows, new) in section_rows.iter_mut().zip(read_news(&run, &mut cursor)) {
            section_rows.extend(new);
        }
        assert!(read_news(&run, &mut cursor).iter().all(Vec::is_empty));
    }
    // without repair the picture stands still until the end, which is not reached
    assert!(
        section_rows
            .iter()
            .zip(SECTIONS)
            .all(|(rows, (name, _))| rows.is_empty() == (name == "without_picture")),
        "{:?}",
        section_rows.iter().map(Vec::len).collect::<Vec<_>>()
    );
    let marks: f64 = section_rows[0].iter().map(|row| row[11]).sum();
    assert_eq!(marks, run.summary_so_far().flows.iter().map(|flow| flow.marked as f64).sum::<f64>());
    assert!(marks > 0.0, "codel marks");
    let run = run;
    for ((name, columns), mut rows) in SECTIONS.into_iter().zip(section_rows) {
        let table = run.recording().table(name).unwrap();
        // in the order of tables: by flow or link
        match name {
            "series" => rows.sort_by(|a, b| (a[1], a[0]).partial_cmp(&(b[1], b[0])).unwrap()),
            "truth" => rows.sort_by(|a, b| (a[1], a[0]).partial_cmp(&(b[1], b[0])).unwrap()),
            _ => {}
        }
        if name == "series" {
            // tables have the present bin, too
            let ended = run.reached().as_nanos() / (SECOND / 10);
            assert_eq!(rows.len() as i64, 2 * ended);
        } else {
            assert_eq!(rows.len(), table.rows(), "{name}");
        }
        let ended = |row: usize| name != "series" || number(&table.columns[0].1, row) < 7.95;
        let expected_rows: Vec<usize> = (0..table.rows()).filter(|&row| ended(row)).collect();
        for (index, column) in columns.iter().enumerate() {
            let (name_in_table, values) = &table.columns[index];
            assert_eq!(name_in_table, column, "{name}");
            for (values_of_row, &row) in rows.iter().zip(&expected_rows) {
                let (actual, expected) = (values_of_row[index], number(values, row));
                assert_eq!(actual.to_bits(), expected.to_bits(), "{name}.{column}, row {row}");
            }
        }
    }
}

fn number(column: &Column, row: usize) -> f64 {
    match column {
        Column::F64(values) => values[row],
        Column::U64(values) => values[row] as f64,
        Column::U32(values) => f64::from(values[row]),
        Column::Bool(values) => f64::from(u8::from(values[row])),
        Column::Words { codes, .. } => f64::from(codes[row]),
    }
}

#[test]
fn waiting_packets_are_those_of_the_queue_in_its_order() {
    let tail = json!("drop_tail");
    let mut run = new(&scenario(&tail, &tail, json!([])));
    run.run_before(Time::from_secs(5), u64::MAX).unwrap();
    run.plan("far", Time::from_secs(5), change(json!({"capacity": 200_000}))).unwrap();
    run.run_before(Time::from_millis(5_600), u64::MAX).unwrap();
    let mut queued = Vec::new();
    run.waiting(usize::MAX, &mut |packet| queued.push(packet));
    let far: Vec<_> = queued.iter().filter(|packet| packet.link == 1).collect();
    assert!(far.len() > 20, "{} wait", far.len());
    assert_eq!(far[0].since, None);
    let since: Vec<_> = far[1..].iter().map(|packet| packet.since.unwrap()).collect();
    assert!(since.is_sorted() && since.iter().all(|&since| since < run.reached()));
    // agrees with the table, which has a sample of nearly the same instant
    let table = run.recording().table("queues").unwrap();
    let column = |name: &str| &table.columns.iter().find(|(column_name, _)| *column_name == name).unwrap().1;
    let last = (0..table.rows()).rfind(|&row| number(column("link"), row) == 1.0).unwrap();
    assert_eq!(number(column("t_s"), last), 5.5);
    let mut count = 0;
    run.waiting(3, &mut |packet| count += u32::from(packet.link == 1));
    assert_eq!(count, 3);
    assert_eq!(run.managed_links(), [true, true, true]);
}

#[test]
fn a_trace_goes_through_json() {
    for (name, text) in [
        ("opportunities", "1\n5\n5\n90\n"),
        ("rates.csv", "time_s,rate_bps,loss,delay_ms\n0,1000000,0.1,20\n1.5,0,0,30.5\n3,250000,0.02,0\n"),
    ] {
        let (_, trace) = Trace::read(name, text.as_bytes(), &Default::default()).unwrap();
        assert_eq!(Trace::from_json(&trace.to_json().unwrap()).unwrap(), trace, "{name}");
    }
    for wrong in [
        "[]",
        "{\"name\": \"x\"}",
        r#"{"name": "x", "rates": [[0, 1]], "period_ns": 0}"#,
        r#"{"name": "x", "opportunities_ms": [2, 1], "bytes": 1504}"#,
        r#"{"name": "x", "rates": [[0, 1]], "period_ns": 5, "loss": [[0, 2.0]]}"#,
    ] {
        assert!(Trace::from_json(wrong).is_err(), "{wrong}");
    }
}
