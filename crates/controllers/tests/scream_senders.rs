//! What the sending halves of SCReAM do with silence, clocks, and reports that say nothing.

use crate::support::{host, result};
use serde_json::{Value, json};
use tidegate_core::control::{Limits, Report, Sent};
use tidegate_core::{ControllerHost, Ecn, Size, Span, Time};

const ALL: [(&str, &str); 4] =
    [("scream", "draft"), ("scream", "ericsson-2026-07"), ("scream", "libwebrtc"), ("scream-v1", "rfc8298")];

fn made(name: &str, preset: &str, overrides: &Value) -> ControllerHost {
    let mut host = host(name, preset, overrides, &Limits::default());
    host.notes.wanted = true;
    host
}

fn send(host: &mut ControllerHost, now: Time, sequence: u64) {
    let size = Size::from_bytes(1000);
    let sent = Sent { sequence, size, in_flight: size, backlog: Size::ZERO };
    host.sent(now, &sent).expect("the contract is kept");
}

fn note(host: &ControllerHost, name: &str) -> f64 {
    host.notes.values.iter().find(|(known, _)| known == name).expect("it is said").1
}

#[test]
fn what_is_in_flight_is_given_up_after_half_a_second_of_silence() {
    for (name, preset) in ALL {
        let mut host = made(name, preset, &Value::Null);
        for k in 0..3 {
            send(&mut host, Time::from_millis(10 * k), k as u64);
        }
        assert_eq!(host.in_flight(), Some(Size::from_bytes(3000)), "{name} {preset}");
        let mut cleared = None;
        while cleared.is_none() {
            let at = host.decision().alarm.expect("while anything is in flight");
            host.alarm(at).expect("the contract is kept");
            cleared = (host.in_flight() == Some(Size::ZERO)).then_some(at);
        }
        let at = cleared.expect("it is");
        // the alarm of the first packet may come before that of the last
        assert!((520..=1020).contains(&(at.as_nanos() / 1_000_000)), "{name} {preset}: {at}");
    }
}

#[test]
fn on_another_route_nothing_is_in_flight_for_nothing_of_it_is_reported() {
    for (name, preset) in ALL {
        let mut host = made(name, preset, &Value::Null);
        (0..3).for_each(|k| send(&mut host, Time::from_millis(10 * k), k as u64));
        let anew = Limits { route_changed: true, ..Limits::default() };
        host.limits(Time::from_millis(30), &anew).expect("the contract is kept");
        assert_eq!(host.in_flight(), Some(Size::ZERO), "{name} {preset}");
        send(&mut host, Time::from_millis(40), 3);
        assert_eq!(host.in_flight(), Some(Size::from_bytes(1000)), "{name} {preset}");
    }
}

/// The largest queueing delay that it sees in a minute, in ms, while the far clock gains 1 ms a second on a path of 20 ms.
fn seen(preset: &str, overrides: &Value) -> f64 {
    let mut host = made("scream", preset, overrides);
    let mut most: f64 = 0.0;
    for k in 0..1500 {
        let sent = Time::from_millis(40 * k);
        send(&mut host, sent, k as u64);
        let arrival = (sent + Span::from_millis(20) + Span::from_micros(40 * k)).as_nanos();
        let report =
            Report { packets: vec![result(k as u64, 1000, sent, Some(arrival))], ..Report::default() };
        host.report(sent + Span::from_millis(40), &report).expect("the contract is kept");
        most = most.max(note(&host, "qdelay_ms"));
    }
    most
}

#[test]
fn a_clock_that_gains_is_no_queue_for_long() {
    // a quarter of the target of 60 ms, and what is gained while an average over 256 round trips of 40 ms follows
    let drift = seen("draft", &Value::Null);
    assert!((20.0..35.0).contains(&drift), "{drift} ms");
    let without = seen("draft", &json!({"clock_drift": false}));
    assert!((59.0..61.0).contains(&without), "{without} ms");
}

/// The window after a series of reports without marks, and after one with marks.
fn marked(name: &str, preset: &str, overrides: &Value) -> [f64; 2] {
    [Ecn::NotEct, Ecn::Ce].map(|ecn| {
        let mut host = made(name, preset, overrides);
        for k in 0..200 {
            let sent = Time::from_millis(10 * k);
            send(&mut host, sent, k as u64);
            let arrival = (sent + Span::from_millis(20)).as_nanos();
            let mut packet = result(k as u64, 1000, sent, Some(arrival));
            packet.ecn = ecn;
            let report = Report { packets: vec![packet], ..Report::default() };
            host.report(sent + Span::from_millis(9), &report).expect("the contract is kept");
        }
        note(&host, if name == "scream" { "ref_wnd_bytes" } else { "cwnd_bytes" })
    })
}

#[test]
fn marks_count_where_packets_bear_a_codepoint() {
    for (name, preset) in ALL {
        let [clean, off] = marked(name, preset, &json!({"ecn": "off"}));
        assert_eq!(clean, off, "{name} {preset}: a mark on what was sent Not-ECT is no mark");
        let [clean, classic] = marked(name, preset, &json!({"ecn": "classic"}));
        assert!(classic <= clean, "{name} {preset}: {classic} {clean}");
    }
    let [clean, l4s] = marked("scream", "ericsson-2026-07", &Value::Null);
    assert!(l4s < 0.5 * clean, "{l4s} {clean}");
}

#[test]
fn reports_of_nothing_change_nothing() {
    for (name, preset) in ALL {
        let mut host = made(name, preset, &Value::Null);
        send(&mut host, Time::ZERO, 0);
        let before = *host.decision();
        let now = Time::from_millis(50);
        let after = *host.report(now, &Report::default()).expect("the contract is kept");
        assert_eq!((after.target, after.window), (before.target, before.window), "{name} {preset}");
        // of packets that were never sent, from the future, and of no size
        let far = result(u64::MAX, 0, Time::from_secs(9), Some(i64::MIN));
        let report =
            Report { packets: vec![result(7, u64::MAX, Time::ZERO, Some(0)), far], ..Report::default() };
        let after = *host.report(now, &report).expect("the contract is kept");
        let Limits { min, max, .. } = Limits::default();
        assert!((min..=max).contains(&after.target), "{name} {preset}: {:?}", after.target);
        assert!(host.notes.values.iter().all(|(_, value)| value.is_finite()), "{name} {preset}");
    }
}
