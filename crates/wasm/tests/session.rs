//! A play by hand equals the scenario with the same moves, and has the same digest as in a browser (`.ci/wasm` runs the
//! same play there).

use serde_json::{Value, json};
use tidegate_wasm::session::Session;

const PLAY: &str = include_str!("play.json");
const CHANGES: &str = include_str!("changes.json");
const DIGEST: &str = include_str!("play.digest");

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn new(scenario: &str) -> Session {
    Session::new(scenario, "[]").unwrap()
}

fn refused(scenario: &Value, traces: &str) -> String {
    Session::new(&scenario.to_string(), traces).unwrap_err()
}

#[test]
fn a_play_by_hand_is_the_scenario_with_its_moves_and_has_its_digest() {
    let mut played = new(PLAY);
    let changes = value(CHANGES);
    let mut rows = 0.0;
    for change in changes.as_array().unwrap() {
        let time = change["time_s"].as_f64().unwrap();
        while !played.step(time, 500.0).unwrap() {}
        assert_eq!(played.now(), time);
        let link = change["link"].as_str().unwrap();
        played.change(link, time, &change["change"].to_string()).unwrap();
        rows += played.read().unwrap()[0];
    }
    assert!(rows >= 2.0 * 128.0, "{rows} bins were read");
    let by_hand = value(&played.finish().unwrap());

    let mut planned = value(PLAY);
    let nanos = |seconds: &Value| (seconds.as_f64().unwrap() * 1e9).round() as i64;
    let moves = changes.as_array().unwrap().iter().map(|change| {
        json!({"time": nanos(&change["time_s"]), "link": change["link"], "change": change["change"]})
    });
    planned["moves"] = moves.collect();
    let planned = value(&new(&planned.to_string()).finish().unwrap());
    assert_eq!(by_hand, planned);
    assert_eq!(
        by_hand["digest"],
        DIGEST.trim(),
        "the play has another digest: write it into tests/play.digest"
    );
}

#[test]
fn values_read_have_the_listed_sections() {
    let mut session = new(PLAY);
    session.step(9.0, 1e9).unwrap();
    let sections = value(&Session::sections());
    let values = session.read().unwrap();
    let (mut offset, mut counts) = (0, Vec::new());
    for section in sections.as_array().unwrap() {
        counts.push((section["name"].as_str().unwrap(), values[offset]));
        offset += 1 + values[offset] as usize * section["columns"].as_array().unwrap().len();
    }
    assert_eq!(offset, values.len());
    for (name, rows) in counts {
        assert!(rows > 0.0 || name == "without_picture", "nothing of {name}");
    }
    let names = value(&session.names());
    assert_eq!(names["flows"][0]["kind"], "media");
    assert_eq!(names["flows"][0]["links"], json!([0]));
    assert_eq!(names["links"][0]["managed"], true);
    assert!(!names["internals"].as_array().unwrap().is_empty());
    assert!(value(&session.metrics().unwrap())["flows"][0]["packets_sent"].as_u64().unwrap() > 100);
}

#[test]
fn errors_are_sentences() {
    assert!(Session::new("{", "[]").unwrap_err().starts_with("the scenario cannot be read: "));
    assert!(Session::new(PLAY, "{}").unwrap_err().starts_with("the traces cannot be read: "));
    assert!(refused(&value(PLAY), "[{\"name\": \"x\"}]").starts_with("trace: "));
    let mut python = value(PLAY);
    python["flows"][0]["kind"]["media"]["controller"]["python"] = json!(true);
    assert!(refused(&python, "[]").contains("written in Python"));
    let mut external = value(PLAY);
    external["links"][0]["capacity"] = json!("external");
    assert!(refused(&external, "[]").contains("an external link or flow needs a driver"));

    let mut session = new(PLAY);
    session.step(1.0, 1e9).unwrap();
    let link = value(PLAY)["links"][0]["name"].as_str().unwrap().to_owned();
    for wrong in [f64::NAN, -1.0, 1e300] {
        assert!(session.change(&link, wrong, r#"{"delay": 1}"#).unwrap_err().starts_with("time: "));
        assert!(session.step(wrong, 1.0).unwrap_err().starts_with("until: "));
    }
    for (wrong, said) in [
        ("{", "EOF"),
        ("{}", "no change"),
        (r#"{"capacity": -1}"#, "-1"),
        (r#"{"capacity": null, "delay": -1}"#, "delay"),
        (r#"{"loss": {"bernoulli": 2}}"#, "loss"),
        (r#"{"colour": 2}"#, "colour"),
    ] {
        let refusal = session.change(&link, 2.0, wrong).unwrap_err();
        assert!(refusal.starts_with(&format!("links.{link}")) && refusal.contains(said), "{refusal}");
    }
    assert!(session.change("nowhere", 2.0, r#"{"delay": 1}"#).unwrap_err().contains("nowhere"));
    assert!(session.change(&link, 0.5, r#"{"delay": 1}"#).unwrap_err().starts_with("time: "));
    session.finish().unwrap();
    for over in [session.step(3.0, 1.0).map(drop), session.read().map(drop), session.finish().map(drop)] {
        assert_eq!(over, Err("this run is over".to_owned()));
    }
    assert_eq!((session.now(), session.names()), (20.0, "{}".to_owned()));
}
