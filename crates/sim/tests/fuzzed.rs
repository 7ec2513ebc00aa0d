//! The checks of the fuzz targets of recorded networks and of the engine's JSON, for their corpora and a thousand
//! mutations of each.

#[path = "../../../fuzz/src/json.rs"]
#[allow(unreachable_pub)]
mod json;
#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;
#[path = "../../../fuzz/src/scenario.rs"]
#[allow(unreachable_pub)]
mod scenario;
#[path = "../../../fuzz/src/traces.rs"]
#[allow(unreachable_pub)]
mod traces;

use mutations::{Rng, corpus, each};

#[test]
fn traces_of_numbers() {
    each("trace_text", &corpus("trace_text"), None, |input| traces::check(&traces::NUMBERS, input));
}

#[test]
fn traces_of_tables() {
    each("trace_csv", &corpus("trace_csv"), None, |input| traces::check(&traces::TABLES, input));
}

#[test]
fn traces_in_json() {
    each("trace_json", &corpus("trace_json"), Some(trace_in_json), |input| {
        traces::check(&traces::JSON, input)
    });
}

/// Changes the JSON behind the two bytes of options.
fn trace_in_json(input: &mut Vec<u8>, rng: &mut Rng) {
    let mut body = input.split_off(input.len().min(2));
    json::change(&mut body, rng);
    input.extend(body);
}

#[test]
fn scenarios() {
    let tally = each("scenario", &corpus("scenario"), Some(json::change), scenario::check);
    assert!(tally.accepted > tally.count / 16, "{tally:?}");
}
