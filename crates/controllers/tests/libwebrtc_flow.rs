//! `gcc:libwebrtc` from outside: what its events lead to that no recording has.

use crate::support::{host, result};
use serde_json::{Value, json};
use tidegate_core::control::{Decision, Limits, LossReport, PacketResult, Report, Sent};
use tidegate_core::{ControllerHost, Rate, Size, Span, Time};

const SIZE: u64 = 1200;

fn begun(settings: &Value) -> ControllerHost {
    host("gcc", "libwebrtc", settings, &Limits::default())
}

fn at(ms: i64) -> Time {
    Time::from_millis(ms)
}

/// Lets time pass up to `until`.
fn pass(host: &mut ControllerHost, until: Time) {
    while let Some(due) = host.decision().alarm.filter(|&due| due <= until) {
        let _ = host.alarm(due).expect("contract");
    }
}

/// Sends a packet every 10 ms over half a second from `from` on and reports on them 50 ms later, with `loss` of them lost.
fn half_a_second(host: &mut ControllerHost, from: i64, lost: impl Fn(u64) -> bool) {
    let packets: Vec<PacketResult> = (0..50)
        .map(|i| {
            let sent = at(from + i * 10);
            let sequence = (from / 10 + i) as u64;
            pass(host, sent);
            let told =
                Sent { sequence, size: Size::from_bytes(SIZE), in_flight: Size::ZERO, backlog: Size::ZERO };
            let _ = host.sent(sent, &told).expect("contract");
            let arrival = (!lost(sequence)).then_some((sent + Span::from_millis(25)).as_nanos());
            result(sequence, SIZE, sent, arrival)
        })
        .collect();
    let now = at(from + 500 + 50);
    pass(host, now);
    let _ = host.report(now, &Report { packets, ..Report::default() }).expect("contract");
}

fn receiver_report(lost: i32, expected: u32, rtt: i64) -> Report {
    let loss = LossReport {
        fraction_lost: 0,
        cumulative_lost: lost,
        highest_sequence: 0,
        jitter: Span::ZERO,
        expected,
    };
    Report { loss: Some(loss), report_rtt: Some(Span::from_millis(rtt)), ..Report::default() }
}

fn noted(host: &ControllerHost, name: &str) -> Option<f64> {
    host.notes.values.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
}

fn rates(decision: &Decision) -> Vec<(u32, u64)> {
    decision.probes.iter().map(|probe| (probe.id, probe.rate.as_bps() / 1000)).collect()
}

#[test]
fn it_begins_with_two_probes_and_a_clock_of_25_ms() {
    let mut host = begun(&Value::Null);
    let first = host.decision();
    assert_eq!(rates(first), [(1, 900), (2, 1800)]);
    assert_eq!((first.target, first.pacing), (Rate::from_kbps(300), Rate::from_kbps(750)));
    assert_eq!(first.alarm, Some(at(25)));
    assert_eq!(host.alarm(at(25)).expect("contract").alarm, Some(at(50)));
    // an alarm that is overtaken by another event has been heard with that one
    let sent = Sent { sequence: 0, size: Size::from_bytes(SIZE), in_flight: Size::ZERO, backlog: Size::ZERO };
    assert_eq!(host.sent(at(60), &sent).expect("contract").alarm, Some(at(85)));
    // a call's: its pacing factor, and what its streams need at least
    let call = begun(&json!({"pacing_factor": 1.1, "least_allocated": 400_000}));
    assert_eq!(call.decision().target, Rate::from_kbps(400));
    assert_eq!(call.decision().pacing, Rate::from_kbps(440));
}

#[test]
fn a_receivers_limit_holds_until_it_is_lifted() {
    let mut host = begun(&Value::Null);
    let remb = |kbps| Report { remb: Some(Rate::from_kbps(kbps)), ..Report::default() };
    let _ = host.report(at(10), &remb(200)).expect("contract");
    pass(&mut host, at(25));
    assert_eq!(host.decision().target, Rate::from_kbps(200));
    let _ = host.report(at(30), &remb(0)).expect("contract");
    pass(&mut host, at(50));
    assert_eq!(host.decision().target, Rate::from_kbps(300));
}

#[test]
fn round_trips_are_those_of_receiver_reports() {
    let mut host = begun(&Value::Null);
    host.notes.wanted = true;
    half_a_second(&mut host, 0, |_| false);
    assert_eq!(noted(&host, "rtt_ms"), Some(0.0), "no packet's");
    let _ = host.report(at(560), &receiver_report(0, 40, 70)).expect("contract");
    half_a_second(&mut host, 600, |_| false);
    assert_eq!(noted(&host, "rtt_ms"), Some(70.0));
}

#[test]
fn losses_count_from_the_second_report_on_and_one_without_arrivals_does_not() {
    let mut host = begun(&Value::Null);
    host.notes.wanted = true;
    let fraction = |host: &mut ControllerHost, from| {
        half_a_second(host, from, |_| false);
        noted(host, "loss_fraction").expect("noted")
    };
    let _ = host.report(at(10), &receiver_report(30, 0, 50)).expect("contract");
    assert_eq!(fraction(&mut host, 100), 0.0);
    let _ = host.report(at(700), &receiver_report(55, 25, 50)).expect("contract");
    assert_eq!(fraction(&mut host, 800), 0.0, "25 lost of 25");
    let _ = host.report(at(1400), &receiver_report(65, 40, 50)).expect("contract");
    assert_eq!(fraction(&mut host, 1500), 0.25);
}

#[test]
fn without_a_receiver_report_the_target_stands_still_after_a_second() {
    let target = |rounds: i64, lossy: bool, reported: bool| {
        let mut host = begun(&Value::Null);
        for i in 0..rounds {
            half_a_second(&mut host, i * 600, |sequence| lossy && sequence % 2 == 0);
            if reported {
                let report = receiver_report(25 * i as i32, 50, 50);
                let _ = host.report(at(i * 600 + 560), &report).expect("contract");
            }
        }
        host.decision().target
    };
    // three observations are there, and the loss-based part waits for a report (libwebrtc's does, too)
    let still = target(3, false, false);
    assert!(still > Rate::from_kbps(300));
    assert_eq!((target(20, false, false), target(20, true, false)), (still, still));
    assert!(target(20, false, true).as_bps_f64() > 2.0 * still.as_bps_f64());
}

#[test]
fn another_route_begins_anew() {
    let mut host = begun(&Value::Null);
    for i in 0..5 {
        half_a_second(&mut host, i * 600, |_| false);
    }
    assert!(host.decision().target > Rate::from_kbps(300));
    let limits = Limits { start: Rate::from_kbps(500), route_changed: true, ..Limits::default() };
    let anew = host.limits(at(3000), &limits).expect("contract");
    assert_eq!(anew.target, Rate::from_kbps(500));
    assert_eq!(rates(anew), [(3, 1500), (4, 3000)]);
}

#[test]
fn limits_move_the_target_and_a_higher_maximum_is_probed_for() {
    let mut host = begun(&Value::Null);
    pass(&mut host, at(2000));
    let limit = |host: &mut ControllerHost, ms, min, max| {
        let limits = Limits { min: Rate::from_kbps(min), max: Rate::from_kbps(max), ..Limits::default() };
        *host.limits(at(ms), &limits).expect("contract")
    };
    assert_eq!(limit(&mut host, 2000, 30, 200).target, Rate::from_kbps(200));
    let raised = limit(&mut host, 2100, 30, 800);
    assert_eq!((raised.target, rates(&raised)), (Rate::from_kbps(200), vec![(3, 800)]));
    assert_eq!(limit(&mut host, 2200, 400, 800).target, Rate::from_kbps(400));
}

#[test]
fn a_full_window_lowers_the_target_only_where_that_is_asked_for() {
    let flood = |pushback: &str| {
        let mut host = begun(&json!({"pushback": pushback}));
        half_a_second(&mut host, 0, |_| false);
        let before = *host.decision();
        for sequence in 1000..1100 {
            let sent =
                Sent { sequence, size: Size::from_bytes(SIZE), in_flight: Size::ZERO, backlog: Size::ZERO };
            let _ = host.sent(at(570), &sent).expect("contract");
        }
        (before, *host.decision())
    };
    for pushback in ["off", "frames"] {
        let (before, after) = flood(pushback);
        assert_eq!((after.target, after.pacing), (before.target, before.pacing), "{pushback}");
    }
    // 120 kB where some 17 kB are right: nine tenths with each packet, down to 30 kbit/s
    let (before, after) = flood("rate");
    assert_eq!((after.target, after.pacing), (Rate::from_kbps(30), before.pacing));
}

#[test]
fn a_full_window_is_told_to_the_encoder_with_the_next_news() {
    let flood = |pushback: &str, news: bool| {
        let mut host = begun(&json!({"pushback": pushback}));
        half_a_second(&mut host, 0, |_| false);
        assert_eq!(host.decision().pushback, None);
        let sent = |host: &mut ControllerHost, sequence| {
            let told =
                Sent { sequence, size: Size::from_bytes(SIZE), in_flight: Size::ZERO, backlog: Size::ZERO };
            let _ = host.sent(at(560), &told).expect("contract");
        };
        (50..1000).for_each(|sequence| sent(&mut host, sequence));
        assert_eq!(host.decision().pushback, None, "the call does not pass on what has the same target");
        if news {
            // another round trip
            let _ = host.report(at(560), &receiver_report(0, 0, 80)).expect("contract");
            sent(&mut host, 1000);
        }
        *host.decision()
    };
    assert_eq!(flood("frames", false).pushback, None);
    let told = flood("frames", true);
    // each packet that finds the window more than half too full takes a tenth, down to 30 kbit/s
    assert_eq!(told.pushback, Some(Rate::from_kbps(30)));
    assert!(told.target > Rate::from_kbps(100), "{told:?}");
    for other in ["rate", "off"] {
        assert_eq!(flood(other, true).pushback, None, "{other}");
    }
}
