//! The same bits everywhere: whole scenarios compared with recorded hashes.
//!
//! `cargo test` and `cargo test --release`, on every platform, must give the contents of `digest/golden.txt`. A
//! change of behaviour changes it, too: then `TIDEGATE_BLESS=1 cargo test -p tidegate-sim --test digest`
//! writes it again, and the commit says why.

use std::fmt::Write as _;
use std::path::Path;
use tidegate_core::{Level, Span, Time};
use tidegate_sim::record::digest::Digest;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run, Scenario};

/// A call over a generated cellular link with a CUBIC download; a lossy link with jitter, steps of
/// capacity, RFC 8888 and web traffic; a call in both directions over unequal paths.
const SCENARIOS: [&str; 3] = [
    include_str!("digest/brownian.json"),
    include_str!("digest/lossy.json"),
    include_str!("digest/both-ways.json"),
];

fn parsed(text: &str) -> Scenario {
    serde_json::from_str(text).expect("a scenario")
}

/// Runs to the end in steps of `step`.
fn run(scenario: &Scenario, step: Span) -> Outcome {
    let mut run = Run::new(scenario, &[], &mut from_registry).expect("valid");
    let mut time = Time::ZERO;
    while time < Time::ZERO + scenario.duration {
        time += step;
        run.run_until(time).expect("no component fails");
    }
    run.finish().expect("every packet is accounted for")
}

fn hash(text: &str) -> u64 {
    let mut digest = Digest::default();
    text.bytes().for_each(|byte| digest.add(u64::from(byte)));
    digest.value()
}

/// The pinned results: the digest (every packet's times, every decision, frame and report), the metrics to the
/// last bit, and the draws of each component; the counts are for human readers.
fn pinned(outcome: &Outcome) -> String {
    let metrics = serde_json::to_string(&outcome.summary).expect("plain data");
    let mut text = format!("digest {}, metrics {:016x}\n", outcome.summary.digest, hash(&metrics));
    for flow in &outcome.summary.flows {
        let (sent, received, late) = (flow.packets_sent, flow.packets_received, flow.discarded_late);
        let _ = writeln!(text, "  {}: {sent} sent, {received} received, {late} late", flow.flow);
    }
    for draws in &outcome.draws {
        let last = draws.checkpoints.last().map_or(0, |&(_, hash)| hash);
        let _ = writeln!(text, "  {}: {} draws, {last:016x}", draws.name, draws.count);
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "golden files are blessed by hand")]
fn the_same_bits_in_debug_and_release_and_everywhere() {
    let mut text = String::new();
    for scenario in SCENARIOS.map(parsed) {
        let _ = write!(text, "{}: {}", scenario.name, pinned(&run(&scenario, scenario.duration)));
    }
    let path = "tests/digest/golden.txt";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var("TIDEGATE_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&file, &text).expect("writable");
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(golden == text, "{path} differs (TIDEGATE_BLESS=1 accepts it); now:\n{text}");
}

#[test]
fn steps_and_levels_change_nothing() {
    for scenario in SCENARIOS.map(parsed) {
        let reference = pinned(&run(&scenario, scenario.duration));
        assert_eq!(
            pinned(&run(&scenario, Span::from_micros(12_345))),
            reference,
            "{} in steps",
            scenario.name
        );
        for level in [Level::Summary, Level::Series, Level::Packets] {
            let mut changed = scenario.clone();
            changed.record.level = level;
            changed.record.capture = level == Level::Packets;
            assert_eq!(
                pinned(&run(&changed, scenario.duration)),
                reference,
                "{} at {level:?}",
                scenario.name
            );
        }
        let mut changed = scenario.clone();
        changed.seed += 1;
        assert_ne!(
            pinned(&run(&changed, scenario.duration)),
            reference,
            "{}: another seed, another run",
            scenario.name
        );
    }
}
