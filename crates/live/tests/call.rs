//! Calls between two threads over the loopback interface: short, in real time, and with bounds that hold on a busy
//! machine.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;
use tidegate_core::{Ecn, Rate, Span, Time};
use tidegate_live::call::socket::Socket;
use tidegate_live::call::{
    AnswererSettings, CallError, CallerSettings, EndReason, EndedCall, Fact, Offer, Phase, Progress,
    ProgressReply, answer, call, merge,
};
use tidegate_live::session::Ignored;
use tidegate_live::session::handshake::Caller;
use tidegate_live::session::keys::{NONCE, PresharedKey};
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

/// An address of the loopback interface with a free port.
fn free_address(address: &str) -> Option<SocketAddr> {
    Socket::bind(address.parse().expect("an address")).and_then(|socket| socket.address()).ok()
}

fn run_caller(
    peer: SocketAddr,
    byte: u8,
    scenario: &Scenario,
    progress: &mut Progress<'_>,
) -> Result<EndedCall, CallError> {
    let max_rate = Rate::from_mbps(20);
    let mut makers = Makers { controller: &mut from_registry, encoder: &mut no_encoder };
    let (endpoint, offer) = Offer::new(scenario, max_rate, &mut makers).expect("it goes over a socket");
    let settings = CallerSettings {
        peer,
        bind: None,
        key: key(byte),
        max_rate,
        about: "from the caller".to_owned(),
        capture: None,
    };
    call(settings, endpoint, offer, progress)
}

fn run_answerer(bind: SocketAddr, byte: u8, progress: &mut Progress<'_>) -> Result<EndedCall, CallError> {
    let max_rate = Rate::from_mbps(20);
    let settings = AnswererSettings {
        bind,
        key: key(byte),
        max_rate,
        about: "from the answerer".to_owned(),
        capture: None,
    };
    answer(settings, &mut from_registry, progress)
}

/// Both sides of a call, the answerer first.
fn both(address: SocketAddr, scenario: &Scenario) -> (EndedCall, EndedCall) {
    let answerer_thread =
        thread::spawn(move || run_answerer(address, 1, &mut |_, _| ProgressReply::Continue));
    let caller = run_caller(address, 1, scenario, &mut |_, _| ProgressReply::Continue).expect("a call");
    (answerer_thread.join().expect("no panic").expect("a call"), caller)
}

#[test]
fn both_sides_of_a_call_have_the_same_record() {
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let Some(address) = free_address(loopback) else { continue };
        let (answerer, caller) = both(address, &scenario(3, "gcc"));
        assert_eq!((&answerer.reason, &caller.reason), (&EndReason::Completed, &EndReason::Completed));
        let (answerer_record, caller_record) =
            (caller.remote.as_ref().expect("it came"), answerer.remote.as_ref().expect("it came"));
        assert_eq!(
            (&*answerer_record.about, &*caller_record.about),
            ("from the answerer", "from the caller")
        );
        let at_caller = merge(&caller.offer, Some(&caller.local), Some(answerer_record));
        let at_answerer = merge(&answerer.offer, Some(caller_record), Some(&answerer.local));
        assert_eq!(at_caller.outcome.summary.digest, at_answerer.outcome.summary.digest);
        assert!(at_caller.min_round_trip.expect("both") > Span::ZERO);
        let summary = serde_json::to_value(&at_caller.outcome.summary).expect("JSON");
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
        // the answerer read the codepoint that the scenario sets
        let ect1 = answerer
            .local
            .facts
            .iter()
            .filter(|(_, fact)| matches!(fact, Fact::Arrived(_, ecn) if *ecn == Ecn::Ect1 as u8));
        assert!(ect1.count() > 200);
        assert_eq!(summary["warnings"], serde_json::Value::Null);
        assert_eq!(caller.local.health.ignored.total(), 0);
        assert!(caller.local.health.wakeups > 100);
    }
}

#[test]
fn whoever_stops_ends_both_and_the_record_is_whole() {
    let address = free_address("127.0.0.1:0").expect("a port");
    // either the caller or the answerer stops
    for caller_stops in [true, false] {
        let stop = |phase: Phase, share: f64| phase == Phase::Media && share > 0.02;
        let answerer_thread = thread::spawn(move || {
            run_answerer(address, 1, &mut |phase, share| {
                if !caller_stops && stop(phase, share) {
                    ProgressReply::Stop
                } else {
                    ProgressReply::Continue
                }
            })
        });
        let caller = run_caller(address, 1, &scenario(50, "gcc"), &mut |phase, share| {
            if caller_stops && stop(phase, share) { ProgressReply::Stop } else { ProgressReply::Continue }
        })
        .expect("a call");
        let answerer = answerer_thread.join().expect("no panic").expect("a call");
        let (first, second) = if caller_stops { (&caller, &answerer) } else { (&answerer, &caller) };
        assert_eq!((&first.reason, &second.reason), (&EndReason::Stopped, &EndReason::Ended));
        assert!(caller.remote.is_some() && answerer.remote.is_some());
        assert!(caller.local.lasted < Span::from_secs(20), "{}", caller.local.lasted);
    }
}

#[test]
fn silence_ends_a_call_after_two_seconds() {
    let address = free_address("127.0.0.1:0").expect("a port");
    // the answerer's thread blocks for longer than that, as if its machine were gone
    let answerer_thread = thread::spawn(move || {
        let mut blocked = false;
        run_answerer(address, 1, &mut |phase, share| {
            if phase == Phase::Media && share > 0.01 && !std::mem::replace(&mut blocked, true) {
                let idle = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a socket");
                idle.wait(Span::from_secs(6)).expect("it works");
            }
            ProgressReply::Continue
        })
    });
    let caller =
        run_caller(address, 1, &scenario(60, "gcc"), &mut |_, _| ProgressReply::Continue).expect("a call");
    assert_eq!(caller.reason, EndReason::Silent);
    assert!(caller.local.lasted < Span::from_secs(6), "{}", caller.local.lasted);
    assert!(caller.remote.is_none());
    let alone = merge(&caller.offer, Some(&caller.local), None);
    assert_eq!(alone.outcome.summary.warnings.len(), 1);
    let answerer = answerer_thread.join().expect("no panic").expect("a call");
    assert!(answerer.remote.is_none());
    let alone = merge(&answerer.offer, None, Some(&answerer.local));
    assert_eq!(alone.outcome.summary.warnings.len(), 1);
    assert!(alone.outcome.hops > 10);
}

#[test]
fn datagrams_of_strangers_that_wait_when_a_call_begins_are_counted() {
    const STRANGERS: u64 = 100;
    let address = free_address("127.0.0.1:0").expect("a port");
    let ((pause, pauses), (paused, is_paused), (go_on, goes_on)) = (channel(), channel(), channel());
    let answerer_thread = thread::spawn(move || {
        run_answerer(address, 1, &mut |phase, _| {
            if phase == Phase::Waiting && pauses.try_recv().is_ok() {
                paused.send(()).expect("the test waits");
                goes_on.recv().expect("the test goes on");
            }
            ProgressReply::Continue
        })
    });
    let any = "127.0.0.1:0".parse().expect("an address");
    let (mut socket, mut stranger) = (Socket::bind(any).expect("bound"), Socket::bind(any).expect("bound"));
    socket.connect(address).expect("a way");
    let mut makers = Makers { controller: &mut from_registry, encoder: &mut no_encoder };
    let (_, offer) = Offer::new(&scenario(5, "gcc"), Rate::from_mbps(20), &mut makers).expect("a call");
    let mut caller = Caller::new(key(1), [7; NONCE], offer.to_bytes().expect("short")).expect("short");
    let (mut ignored, mut buffer) = (Ignored::default(), [0; 2000]);
    let offer = (0..100)
        .find_map(|tenths| {
            let now = Time::from_millis(tenths * 300);
            let message = caller.advance(now).expect("due");
            socket.send(&message, Ecn::NotEct, 0, None).expect("sent");
            // at once, if the answerer has not begun; then it gets some time
            socket.wait(Span::from_millis(300)).expect("it works");
            stranger.wait(Span::from_millis(20)).expect("it works");
            let received = socket.receive(&mut buffer).expect("it works")?;
            let keys = caller.receive(now, &buffer[..received.length], &mut ignored).expect("a retry");
            assert!(keys.is_none());
            caller.advance(now)
        })
        .expect("an answer");
    // the answerer stands still, and its queue has the offer before the datagrams of a stranger
    pause.send(()).expect("it runs");
    is_paused.recv().expect("it waits");
    socket.send(&offer, Ecn::NotEct, 0, None).expect("sent");
    for number in 0..STRANGERS {
        stranger.send(&number.to_be_bytes().repeat(8), Ecn::NotEct, 0, Some(address)).expect("sent");
    }
    go_on.send(()).expect("it waits");
    let answerer = answerer_thread.join().expect("no panic").expect("a call");
    assert_eq!(answerer.reason, EndReason::Silent, "the caller has sent nothing else");
    assert_eq!(answerer.local.health.ignored, Ignored { strangers: STRANGERS, ..Ignored::default() });
}

#[test]
fn a_missing_answerer_another_key_and_a_port_in_use_are_errors() {
    let address = free_address("127.0.0.1:0").expect("a port");
    let short = scenario(1, "gcc");
    let Err(CallError::Failed(reason)) = run_caller(address, 1, &short, &mut |_, _| ProgressReply::Continue)
    else {
        panic!("no answerer is there")
    };
    assert!(reason.contains("no program listens there; start"), "{reason}");
    let mut progress_calls = 0;
    let answerer_thread = thread::spawn(move || {
        run_answerer(address, 2, &mut |_, _| {
            progress_calls += 1;
            if progress_calls > 130 { ProgressReply::Stop } else { ProgressReply::Continue }
        })
    });
    let Err(CallError::Failed(reason)) = run_caller(address, 1, &short, &mut |_, _| ProgressReply::Continue)
    else {
        panic!("another key")
    };
    assert!(reason.contains("another key"), "{reason}");
    let Err(CallError::Stopped(ignored)) = answerer_thread.join().expect("no panic") else {
        panic!("there was no call")
    };
    assert!(ignored.forged > 5, "{ignored:?}");
    let in_use = Socket::bind(address).expect("free again");
    let Err(CallError::Invalid(reason)) = run_answerer(address, 1, &mut |_, _| ProgressReply::Continue)
    else {
        panic!("it is taken")
    };
    assert!(reason.contains("in use"), "{reason}");
    drop(in_use);
}
