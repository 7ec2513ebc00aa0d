//! Calls between two threads over the loopback interface: short, by the wall clock, and with bounds that a busy machine
//! keeps.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::thread;
use tidegate_core::{Ecn, Rate, Span};
use tidegate_live::call::socket::Socket;
use tidegate_live::call::{
    Answering, Calling, Ended, Fact, NoCall, Offer, Phase, Pulse, Why, Wish, answer, call, merge,
};
use tidegate_live::session::keys::PresharedKey;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::assemble::{Makers, from_registry, no_encoder};

/// A call of `seconds` with audio and 30 pictures a second.
fn scenario(seconds: u64, controller: &str) -> Scenario {
    let text = format!(
        r#"{{"name": "call", "duration": {seconds}000000000, "seed": 1, "links": [],
        "flows": [{{"name": "call", "from": "here", "to": "there", "kind": {{"media": {{
            "controller": {{"name": "{controller}"}},
            "min_rate": 50000, "max_rate": 2000000, "start_rate": 300000,
            "video": {{"source": "ideal", "min": 50000, "max": 1900000, "fps": 30.0}},
            "audio": {{"rate": 32000, "interval": 20000000}},
            "feedback": {{"format": "twcc"}},
            "playout": {{"adaptive": {{"min": 0, "max": 10000000000}}}},
            "ecn": "ect1",
            "payload": 1200, "overhead": 52}}}}}}]}}"#
    );
    serde_json::from_str(&text).expect("a scenario")
}

fn key(byte: u8) -> PresharedKey {
    PresharedKey::new(&[byte; 16]).expect("long enough")
}

/// A port of the loopback interface that was free just now.
fn free(address: &str) -> Option<SocketAddr> {
    Socket::bind(address.parse().expect("an address")).and_then(|socket| socket.address()).ok()
}

fn calls(peer: SocketAddr, byte: u8, scenario: &Scenario, pulse: &mut Pulse<'_>) -> Result<Ended, NoCall> {
    let most = Rate::from_mbps(20);
    let mut makers = Makers { controller: &mut from_registry, encoder: &mut no_encoder };
    let (endpoint, offer) = Offer::new(scenario, most, &mut makers).expect("it goes over a socket");
    let calling = Calling {
        peer,
        bind: None,
        key: key(byte),
        most,
        about: "from the caller".to_owned(),
        capture: None,
    };
    call(calling, endpoint, offer, pulse)
}

fn answers(bind: SocketAddr, byte: u8, pulse: &mut Pulse<'_>) -> Result<Ended, NoCall> {
    let most = Rate::from_mbps(20);
    let answering =
        Answering { bind, key: key(byte), most, about: "from the answerer".to_owned(), capture: None };
    answer(answering, &mut from_registry, pulse)
}

/// Both sides of a call, the answerer first.
fn both(at: SocketAddr, scenario: &Scenario) -> (Ended, Ended) {
    let answering = thread::spawn(move || answers(at, 1, &mut |_, _| Wish::Go));
    let caller = calls(at, 1, scenario, &mut |_, _| Wish::Go).expect("a call");
    (answering.join().expect("no panic").expect("a call"), caller)
}

#[test]
fn both_sides_of_a_call_have_the_same_record() {
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let Some(at) = free(loopback) else { continue };
        let (answerer, caller) = both(at, &scenario(3, "gcc"));
        assert_eq!((&answerer.why, &caller.why), (&Why::Completed, &Why::Completed));
        let (theirs, ours) =
            (caller.other.as_ref().expect("it came"), answerer.other.as_ref().expect("it came"));
        assert_eq!((&*theirs.about, &*ours.about), ("from the answerer", "from the caller"));
        let here = merge(&caller.offer, Some(&caller.own), Some(theirs));
        let there = merge(&answerer.offer, Some(ours), Some(&answerer.own));
        assert_eq!(here.outcome.summary.digest, there.outcome.summary.digest);
        assert!(here.least_round_trip.expect("both") > Span::ZERO);
        let summary = serde_json::to_value(&here.outcome.summary).expect("JSON");
        let flow = &summary["flows"][0];
        let number = |name: &str| flow[name].as_f64().unwrap_or_else(|| panic!("{name} of {flow}"));
        assert_eq!(number("loss_fraction"), 0.0, "{flow}");
        assert!(number("packets_sent") > 200.0, "{flow}");
        assert!(number("one_way_delay_ms_p50") < 200.0, "{flow}");
        assert!(number("frames_sent") > 60.0, "{flow}");
        assert!(number("frames_rendered") > 50.0, "{flow}");
        // sound was played out, and rated: its frames have their numbers
        // 4.4 unless the machine was so busy that packets were late, which is rated, too
        let late = number("one_way_delay_ms_p99") > 50.0;
        assert!(number("mos") > if late { 2.0 } else { 4.0 }, "{flow}");
        // media bore the codepoint that it should, which was read at the other side
        let ect1 = answerer
            .own
            .facts
            .iter()
            .filter(|(_, fact)| matches!(fact, Fact::Arrived(_, ecn) if *ecn == Ecn::Ect1 as u8));
        assert!(ect1.count() > 200);
        assert_eq!(summary["warnings"], serde_json::Value::Null);
        assert_eq!(caller.own.health.ignored.total(), 0);
        assert!(caller.own.health.wakeups > 100);
    }
}

#[test]
fn whoever_stops_ends_both_and_the_record_is_whole() {
    let at = free("127.0.0.1:0").expect("a port");
    // both ways: the caller stops, the answerer stops
    for caller_stops in [true, false] {
        let stop = |phase: Phase, share: f64| phase == Phase::Media && share > 0.02;
        let answering = thread::spawn(move || {
            answers(at, 1, &mut |phase, share| {
                if !caller_stops && stop(phase, share) { Wish::Stop } else { Wish::Go }
            })
        });
        let caller = calls(at, 1, &scenario(50, "gcc"), &mut |phase, share| {
            if caller_stops && stop(phase, share) { Wish::Stop } else { Wish::Go }
        })
        .expect("a call");
        let answerer = answering.join().expect("no panic").expect("a call");
        let (first, second) = if caller_stops { (&caller, &answerer) } else { (&answerer, &caller) };
        assert_eq!((&first.why, &second.why), (&Why::Stopped, &Why::Ended));
        assert!(caller.other.is_some() && answerer.other.is_some());
        assert!(caller.own.lasted < Span::from_secs(20), "{}", caller.own.lasted);
    }
}

#[test]
fn silence_ends_a_call_after_two_seconds() {
    let at = free("127.0.0.1:0").expect("a port");
    // the answerer's thread is held for longer than that: as good as a machine that is gone
    let answering = thread::spawn(move || {
        let mut held = false;
        answers(at, 1, &mut |phase, share| {
            if phase == Phase::Media && share > 0.01 && !std::mem::replace(&mut held, true) {
                let nobody = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a socket");
                nobody.wait(Span::from_secs(6)).expect("it works");
            }
            Wish::Go
        })
    });
    let caller = calls(at, 1, &scenario(60, "gcc"), &mut |_, _| Wish::Go).expect("a call");
    assert_eq!(caller.why, Why::Silent);
    assert!(caller.own.lasted < Span::from_secs(6), "{}", caller.own.lasted);
    assert!(caller.other.is_none());
    let alone = merge(&caller.offer, Some(&caller.own), None);
    assert_eq!(alone.outcome.summary.warnings.len(), 1);
    let answerer = answering.join().expect("no panic").expect("a call");
    assert!(answerer.other.is_none());
    let alone = merge(&answerer.offer, None, Some(&answerer.own));
    assert_eq!(alone.outcome.summary.warnings.len(), 1);
    assert!(alone.outcome.hops > 10);
}

#[test]
fn nobody_there_another_key_and_a_taken_port_are_told() {
    let at = free("127.0.0.1:0").expect("a port");
    let short = scenario(1, "gcc");
    let Err(NoCall::Failed(reason)) = calls(at, 1, &short, &mut |_, _| Wish::Go) else {
        panic!("nobody is there")
    };
    assert!(reason.contains("nobody listens there; expected"), "{reason}");
    let mut asked = 0;
    let answering = thread::spawn(move || {
        answers(at, 2, &mut |_, _| {
            asked += 1;
            if asked > 130 { Wish::Stop } else { Wish::Go }
        })
    });
    let Err(NoCall::Failed(reason)) = calls(at, 1, &short, &mut |_, _| Wish::Go) else {
        panic!("another key")
    };
    assert!(reason.contains("another key"), "{reason}");
    let Err(NoCall::Stopped(ignored)) = answering.join().expect("no panic") else { panic!("nobody called") };
    assert!(ignored.forged > 5, "{ignored:?}");
    let taken = Socket::bind(at).expect("free again");
    let Err(NoCall::Wrong(reason)) = answers(at, 1, &mut |_, _| Wish::Go) else { panic!("it is taken") };
    assert!(reason.contains("in use"), "{reason}");
    drop(taken);
}
