//! TFRC with both halves over a path: closed forms, bounds that hold whatever happens, and a table of what
//! it does.

use crate::support::halves::{Halves, said};
use crate::support::{golden, shared};
use serde_json::Value;
use std::fmt::Write as _;
use tidegate_controllers::registry;
use tidegate_controllers::tfrc::equation::{loss_event_rate, throughput};
use tidegate_controllers::tfrc::intervals::{Closed, mean};
use tidegate_core::control::Limits;
use tidegate_core::{Rate, Span, Stream, Time};

/// A session that leaves the rate to TFRC.
fn limits() -> Limits {
    Limits { min: Rate::from_bps(1), max: Rate::from_mbps(100), ..Limits::default() }
}

/// A pair of halves on the path.
fn halves(name: &str, preset: &str, seed: u64) -> Halves {
    let mut pair = Halves::new(name, preset, &Value::Null, &limits(), seed);
    pair.sender.notes.wanted = true;
    pair.receiver.notes.wanted = true;
    pair
}

fn near(a: f64, b: f64, what: &str) {
    assert!((a / b - 1.0).abs() < 1e-9, "{what}: {a} is not {b}");
}

#[test]
fn the_equation_and_its_inverse_are_those_of_the_vectors() {
    let Some(text) = shared("vectors/tfrc_equation.json") else { return };
    let vectors: Value = serde_json::from_str(&text).expect("JSON");
    for row in vectors["rows"].as_array().expect("rows") {
        let row: Vec<f64> = row.as_array().expect("a row").iter().filter_map(Value::as_f64).collect();
        let [segment, rtt, p, one, two] = row[..] else { panic!("{row:?}") };
        near(throughput(segment, rtt, p, 1.0, 4.0 * rtt), one, "b = 1");
        near(throughput(segment, rtt, p, 2.0, 4.0 * rtt), two, "b = 2");
        near(loss_event_rate(segment, rtt, one, 1.0, 4.0 * rtt), p, "inverse");
    }
}

#[test]
fn the_mean_interval_is_that_of_the_vectors() {
    let Some(text) = shared("vectors/tfrc_wali.json") else { return };
    let vectors: Value = serde_json::from_str(&text).expect("JSON");
    for case in vectors["cases"].as_array().expect("cases") {
        let lengths = case["intervals_newest_first_I0_open"].as_array().expect("intervals").iter();
        let lengths: Vec<f64> = lengths.filter_map(Value::as_f64).collect();
        let closed: Vec<Closed> = lengths[1..].iter().map(|&length| Closed::new(length)).collect();
        near(mean(Some(lengths[0]), &closed, 1.0), case["i_mean"].as_f64().expect("a mean"), "mean");
    }
}

#[test]
fn it_starts_as_the_rfc_says() {
    let mut pair = halves("tfrc", "rfc5348", 1);
    pair.capacity = Rate::from_mbps(1000);
    pair.size = 100;
    assert_eq!(pair.sender.decision().pacing, Rate::from_bps(1460 * 8), "a segment a second");
    assert_eq!(pair.sender.decision().alarm, Some(Time::from_secs(2)));
    // at 100 ms the first feedback, then one each round trip. X doubles with each until the infinite receive
    // rate is two round trips old; from then on it is twice what was received, which is what was sent two
    // round trips ago
    let initial = 4380.0 * 8.0 / 0.1;
    for (from, times) in [1.0, 2.0, 4.0, 4.0, 8.0, 8.0, 16.0, 16.0].into_iter().enumerate() {
        let middle = Time::from_millis(150 + 100 * from as i64);
        pair.run(middle - pair.now, &mut |_, _, _| {});
        let rate = pair.sender.decision().target.as_bps_f64() / initial;
        assert!(
            (rate / times - 1.0).abs() < 0.03,
            "{rate:.3} times the initial rate at {middle}, not {times}"
        );
    }
}

#[test]
fn it_sends_what_the_equation_gives_under_random_loss() {
    for (name, preset) in [("tfrc", "rfc5348"), ("tfrc", "rfc3448"), ("tfrc-sp", "rfc5348")] {
        for (loss, marks) in [(0.01, 0.0), (0.05, 0.0), (0.0, 0.01)] {
            let mut pair = halves(name, preset, 7);
            (pair.capacity, pair.loss, pair.marks) = (Rate::from_mbps(10), loss, marks);
            pair.run(Span::from_secs(30), &mut |_, _, _| {});
            (pair.sent, pair.heard) = (0, 0);
            let (mut p, mut rtt, mut count) = (0.0, 0.0, 0.0);
            pair.run(Span::from_secs(300), &mut |_, _, notes| {
                if let (Some(now), Some(time)) = (said(notes, "p"), said(notes, "rtt_ms")) {
                    (p, rtt, count) = (p + now, rtt + time / 1000.0, count + 1.0);
                }
            });
            let (p, rtt) = (p / count, rtt / count);
            let segment = if name == "tfrc" { 1200.0 } else { 1460.0 * 1200.0 / 1240.0 };
            let allowed = throughput(segment, rtt, p, 1.0, 4.0 * rtt);
            // no more than a packet each 10 ms
            let allowed = if name == "tfrc" { allowed } else { allowed.min(120_000.0) };
            let ratio = pair.sent as f64 * 1200.0 / 300.0 / allowed;
            assert!(
                (0.85..1.15).contains(&ratio),
                "{name}:{preset} at {loss}, {marks}: {ratio:.3} of the equation"
            );
            // what is lost is what was made to be lost: several losses in one round trip are one event
            assert!(
                (0.5..1.3).contains(&(p / (loss + marks))),
                "{name}:{preset} at {loss}, {marks}: p = {p}"
            );
            // feedback once a round trip, and once more for some loss events
            let each = 300.0 / rtt / pair.heard as f64;
            assert!((0.4..1.05).contains(&each), "{name}:{preset}: a feedback every {each} round trips");
        }
    }
}

#[test]
fn silence_halves_the_rate_and_an_idle_sender_starts_where_it_began() {
    let mut pair = halves("tfrc", "rfc5348", 3);
    pair.capacity = Rate::from_mbps(100);
    pair.queue = Span::from_secs(10);
    pair.run(Span::from_millis(1700), &mut |_, _, _| {});
    let before = pair.sender.decision().target;
    let initial = 4380.0 * 8.0 / 0.1;
    assert!(before.as_bps_f64() > 60.0 * initial);
    // nothing more to send: no feedback comes, and the rate is halved down to the initial one
    pair.want(Rate::ZERO, true, &limits());
    pair.run(Span::from_secs(60), &mut |_, _, _| {});
    let idle = pair.sender.decision().target.as_bps_f64();
    assert!((0.95..2.0).contains(&(idle / initial)), "{idle} after an idle minute, began with {initial}");
    // busy without feedback: down to a packet in 64 s
    pair.want(Rate::from_bps(u64::MAX), false, &limits());
    pair.feedback_loss = 1.0;
    let mut sent = Vec::new();
    pair.run(Span::from_secs(1200), &mut |now, decision, _| sent.push((now, decision.pacing)));
    let least = 1200.0 * 8.0 / 64.0;
    let last = sent.last().expect("decisions").1.as_bps_f64();
    assert!((1.0..1.01).contains(&(last / least)), "{last} for {least}");
    pair.sent = 0;
    pair.run(Span::from_secs(640), &mut |_, _, _| {});
    assert!((9..=11).contains(&pair.sent), "{} packets in 640 s", pair.sent);
    // and back once feedback comes again
    pair.feedback_loss = 0.0;
    pair.run(Span::from_secs(130), &mut |_, _, _| {});
    assert!(pair.sender.decision().target.as_bps_f64() >= initial);
}

/// RFC 5348 section 4.3: what arrives of a sender that could not send as much as it may is no limit for it, from the
/// first packet on; of one that could, it is.
#[test]
fn little_to_send_lowers_the_rate_of_a_sender_that_could_use_it_only() {
    let least = |wanted: Option<Rate>, max: Rate| {
        let mut pair = halves("tfrc", "rfc5348", 4);
        pair.capacity = Rate::from_mbps(20);
        pair.want(Rate::from_mbps(1), false, &Limits { wanted, max, ..limits() });
        pair.run(Span::from_secs(5), &mut |_, _, _| {});
        // it makes a tenth of that, and no feedback has reported it yet
        pair.wanted = Rate::from_kbps(100);
        let mut least = f64::INFINITY;
        let mut look = |_, _: &_, notes: &_| least = least.min(said(notes, "x_bps").unwrap_or(f64::INFINITY));
        pair.run(Span::from_secs(2), &mut look);
        least / 1e6
    };
    let mega = Rate::from_mbps;
    assert!(least(Some(mega(1)), mega(100)) > 1.9);
    assert!(least(None, mega(1)) > 1.9);
    // the initial rate, 4380 bytes in 0.1 s
    let busy = least(Some(mega(100)), mega(100));
    assert!((0.34..0.36).contains(&busy), "{busy}");
}

/// Limits the rate to twice the reported receive rate: the reported rates with their times.
struct Bound {
    /// Time of the first feedback.
    begun: Option<Time>,
    reports: Vec<(Time, f64)>,
    rtt: f64,
    ever: f64,
}

impl Bound {
    /// Twice the largest receive rate that still counts, in bit/s.
    fn most(&self, now: Time, preset: &str, limited: bool) -> f64 {
        let last = self.reports.last().map_or(0.0, |report| report.1);
        let since = now - Span::from_secs_f64(2.0 * self.rtt) - Span::from_micros(5);
        match preset {
            "rfc3448" => 2.0 * last,
            _ if limited => 2.0 * self.ever,
            _ => 2.0 * self.reports.iter().filter(|(at, _)| *at >= since).map(|r| r.1).fold(0.0, f64::max),
        }
    }
}

/// Twenty seconds each of a random kind of path and of sending; all that has to hold, holds.
fn fuzz(name: &str, preset: &str, seed: u64) {
    let mut luck = Stream::new(seed, name, preset);
    let mut pair = halves(name, preset, seed);
    pair.size = 100 + luck.below(1300);
    let limited = luck.chance(0.3);
    let small = name == "tfrc-sp";
    let mut bound = Bound { begun: None, reports: vec![], rtt: 0.0, ever: 0.0 };
    for round in 0..12 {
        pair.capacity = Rate::from_kbps(if luck.chance(0.1) { 0 } else { 10 + luck.below(5000) });
        pair.delay = Span::from_millis(1 + luck.below(300) as i64);
        pair.loss = if luck.chance(0.5) { 0.0 } else { luck.below(60) as f64 / 100.0 };
        pair.marks = if luck.chance(0.7) { 0.0 } else { luck.below(20) as f64 / 100.0 };
        pair.feedback_loss = if luck.chance(0.7) { 0.0 } else { luck.below(101) as f64 / 100.0 };
        let wanted = if luck.chance(0.2) { Rate::ZERO } else { Rate::from_kbps(1 + luck.below(4000)) };
        if limited {
            pair.want(wanted, true, &limits());
        }
        let size = pair.size as f64;
        let segment = if small { 1460.0 } else { size };
        let share = if small { size / (size + 40.0) } else { 1.0 };
        pair.run(Span::from_secs(20), &mut |now, decision, notes| {
            let who = format!("{name}:{preset} seed {seed} round {round} at {now}");
            assert!(decision.target <= Rate::from_mbps(100) && decision.target <= decision.pacing, "{who}");
            // a segment in 64 s, from when the first packet has told what a segment is
            let least = segment * 8.0 / 64.0 * share;
            assert!(decision.pacing.as_bps_f64() >= 0.99 * least, "{who}: {:?}, {least}", decision.pacing);
            assert!(notes.values.iter().all(|(_, value)| value.is_finite()), "{who}");
            let Some(x) = said(notes, "x_bps") else { return };
            let Some(received) = said(notes, "x_recv_bps") else {
                // the nofeedback timer puts half of its limit into the set
                bound.reports.push((now, x / 2.0));
                bound.ever = bound.ever.max(x / 2.0);
                return;
            };
            let p = said(notes, "p").expect("said together");
            // the first feedback is answered with the initial rate, whatever it says
            let first = bound.begun.is_none();
            let begun = *bound.begun.get_or_insert(now);
            bound.rtt = said(notes, "rtt_ms").expect("said together") / 1000.0;
            bound.reports.push((now, received));
            bound.ever = bound.ever.max(received);
            let two_round_trips = now - begun > Span::from_secs_f64(2.0 * bound.rtt);
            let floor = if p > 0.0 {
                segment * 8.0 / 64.0
            } else if preset == "rfc3448" {
                segment * 8.0 / bound.rtt
            } else {
                4380.0 * 8.0 / bound.rtt
            };
            let equation = throughput(segment, bound.rtt, p, 1.0, 4.0 * bound.rtt) * 8.0;
            assert!(
                x <= equation.max(floor) * 1.000_001 || p == 0.0 || first,
                "{who}: {x} above the equation's {equation}"
            );
            // while nothing is lost, the rate changes once in a round trip only, so that the limit of the last
            // one may still stand
            if p > 0.0 && two_round_trips {
                let most = bound.most(now, preset, limited).max(floor);
                assert!(x <= most * 1.000_001, "{who}: {x} with {received}, p {p}, at most {most}");
            }
        });
    }
    // peace: it finds its way back to most of the link, be it from a packet a minute, of which it takes some
    // dozens without loss to forget that nearly all were lost
    (pair.capacity, pair.delay) = (Rate::from_mbps(1), Span::from_millis(50));
    (pair.loss, pair.marks, pair.feedback_loss) = (0.0, 0.0, 0.0);
    pair.want(Rate::from_bps(u64::MAX), false, &limits());
    pair.run(Span::from_secs(1500), &mut |_, _, _| {});
    pair.delivered = 0;
    pair.run(Span::from_secs(60), &mut |_, _, _| {});
    let rate = pair.delivered as f64 * 8.0 / 60.0;
    let most = if small { (pair.size as f64 * 800.0).min(1e6) } else { 1e6 };
    assert!((0.75 * most..=1.001e6).contains(&rate), "{name}:{preset} seed {seed}: {rate} of {most}");
}

#[test]
fn whatever_happens_the_bounds_hold_and_it_comes_back() {
    for entry in registry().iter().filter(|entry| entry.name.starts_with("tfrc")) {
        for preset in entry.presets {
            (0..40).for_each(|seed| fuzz(entry.name, preset, seed));
        }
    }
}

/// From which second on: capacity in kb/s, random loss, and what the application wants in kb/s.
const PHASES: [(u64, u64, f64, u64); 6] = [
    (0, 1000, 0.0, 100_000),
    (40, 500, 0.0, 100_000),
    (70, 2000, 0.0, 100_000),
    (110, 2000, 0.05, 100_000),
    (140, 2000, 0.0, 64),
    (170, 2000, 0.0, 100_000),
];

#[test]
fn what_it_does_on_a_changing_link() {
    for (name, preset) in [("tfrc", "rfc5348"), ("tfrc", "rfc3448"), ("tfrc-sp", "rfc5348")] {
        let mut pair = halves(name, preset, 1);
        let mut text = format!(
            "{name} {preset}\n from  capacity  wanted    target   goodput   rtt        p   (kb/s, ms; means of 5 s)\n"
        );
        for from in (0..200).step_by(5) {
            if let Some(&(_, capacity, loss, wanted)) = PHASES.iter().find(|phase| phase.0 == from) {
                (pair.capacity, pair.loss) = (Rate::from_kbps(capacity), loss);
                pair.want(Rate::from_kbps(wanted), wanted < 1000, &limits());
            }
            pair.delivered = 0;
            let (mut target, mut rtt, mut p, mut count) = (0.0, 0.0, 0.0, 0.0);
            pair.run(Span::from_secs(5), &mut |_, decision, notes| {
                if let Some(now) = said(notes, "rtt_ms") {
                    target += decision.target.as_bps_f64() / 1000.0;
                    rtt += now;
                    p += said(notes, "p").expect("said together");
                    count += 1.0;
                }
            });
            let goodput = pair.delivered as f64 * 8.0 / 5.0 / 1000.0;
            let (capacity, wanted) = (pair.capacity.as_bps() / 1000, pair.wanted.as_bps() / 1000);
            let [target, rtt, p] = [target, rtt, p].map(|sum| sum / count);
            writeln!(text, "{from:5} {capacity:9} {wanted:7} {target:9.0} {goodput:9.0} {rtt:5.0} {p:8.5}")
                .expect("a string");
            // what was in the queue when the capacity changed comes out as it went in
            let left = if PHASES.iter().any(|phase| phase.0 == from) { 1.5 } else { 1.01 };
            assert!(goodput <= capacity as f64 * left, "{name}:{preset} at {from}: {goodput}");
        }
        text += &pair.decisions.line();
        golden(&format!("crates/controllers/tests/golden/{name}-{preset}.txt"), &text);
    }
}

#[test]
fn what_is_not_ours_or_cannot_be_true_changes_nothing() {
    use tidegate_controllers::tfrc::wire::Feedback;
    use tidegate_core::control::Report;
    use tidegate_core::wire::rtcp::{App, Packet};
    let mut pair = halves("tfrc", "rfc5348", 1);
    pair.run(Span::from_secs(3), &mut |_, _, _| {});
    let before = *pair.sender.decision();
    let ours = |timestamp: u32, delay: u32| {
        let said = Feedback { timestamp, delay, receive_rate: 1.0, loss_event_rate: 1.0 };
        let Packet::App(app) = said.write() else { panic!("an APP packet") };
        app
    };
    let foreign = App { subtype: 0, ssrc: 1, name: *b"QoEX", data: vec![1; 16] };
    let short = App { data: vec![1; 12], ..ours(0, 0) };
    for message in [
        foreign,
        short,
        ours(1_000_000, 0),      // older than what was told
        ours(4_000_000, 0),      // of a packet not sent yet
        ours(2_990_000, 20_000), // which waited longer than it is old
        ours(u32::MAX, u32::MAX),
    ] {
        let report = Report { messages: vec![message.clone()], ..Report::default() };
        assert_eq!(pair.sender.report(Time::from_secs(3), &report), Ok(&before), "{message:?}");
    }
}
