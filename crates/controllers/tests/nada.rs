//! NADA in closed loops: where it comes to rest by its equations, at both placements, and a table of what it does.

use crate::support::halves::{Halves, said};
use crate::support::means::within;
use crate::support::{Bottleneck, arrived, golden, half, host, result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tidegate_controllers::nada::wire::{Feedback, Stamp};
use tidegate_core::control::{
    Arrived, EcnCounts, EcnUse, FeedbackKind, Limits, PacketResult, Report, Urgency,
};
use tidegate_core::wire::rtcp;
use tidegate_core::{Ecn, Rate, Size, Span, Time};

fn limits(most: Rate) -> Limits {
    Limits { min: Rate::from_kbps(150), max: most, start: Rate::from_kbps(150), ..Limits::default() }
}

/// The sender's placement on a link: mean target (kb/s) and queueing delay (ms) of the last 20 of 60 s.
fn at_the_sender(preset: &str, settings: &Value, kbps: u64, loss: f64) -> (f64, f64) {
    let mut link = Bottleneck::with("nada", preset, settings, Rate::from_kbps(kbps));
    link.loss = loss;
    (0..800).for_each(|_| _ = link.step(false));
    let last = link.means(Span::from_secs(20));
    (last.target / 1e3, last.queue_ms)
}

/// The receiver's placement, the same.
fn at_the_receiver(settings: &Value, most: Rate, kbps: u64, spoil: impl Fn(&mut Halves)) -> (f64, f64) {
    let mut all = json!({ "placement": "receiver" });
    all.as_object_mut().expect("an object").extend(settings.as_object().cloned().unwrap_or_default());
    let mut pair = Halves::new("nada", "rfc8698", &all, &limits(most), 1);
    pair.capacity = Rate::from_kbps(kbps);
    spoil(&mut pair);
    pair.run(Span::from_secs(40), &mut |_, _, _| {});
    let last = pair.means(Span::from_secs(20));
    (last.target / 1e3, last.queue_ms)
}

#[test]
fn alone_it_holds_the_queue_that_equation_5_says() {
    // x = PRIO XREF RMAX / r: the limits of the bottleneck end at 10 Mb/s
    for (kbps, prio, queue) in [(1000, 1.0, 100.0), (2000, 1.0, 50.0), (2000, 2.0, 100.0), (4000, 0.5, 12.5)]
    {
        for preset in ["rfc8698", "ns3-rmcat"] {
            let (rate, found) = at_the_sender(preset, &json!({ "prio": prio }), kbps, 0.0);
            within(&format!("{preset} {kbps} {prio}: rate"), rate / kbps as f64, 0.98, 1.02);
            within(&format!("{preset} {kbps} {prio}: queue"), found, queue - 5.0, queue + 5.0);
        }
        let (rate, found) = at_the_receiver(&json!({ "prio": prio }), Rate::from_mbps(10), kbps, |_| {});
        within(&format!("receiver {kbps} {prio}: rate"), rate / kbps as f64, 0.98, 1.02);
        within(&format!("receiver {kbps} {prio}: queue"), found, queue - 6.0, queue + 6.0);
    }
}

#[test]
fn a_standing_queue_becomes_the_baseline_when_all_else_is_forgotten() {
    for (minutes, later) in [(1, 50.0), (20, 25.0)] {
        let settings = json!({ "base_history": minutes });
        let mut link = Bottleneck::with("nada", "rfc8698", &settings, Rate::from_kbps(4000));
        let mut queue = |seconds: u32| {
            (0..20 * (seconds - 5)).for_each(|_| _ = link.step(false));
            link.means(Span::from_secs(5)).queue_ms
        };
        within("before", queue(55), 23.0, 27.0);
        within("after a minute", queue(55), later - 3.0, later + 3.0);
    }
}

#[test]
fn losses_without_a_queue_hold_it_where_equation_2_says() {
    // 2 %: x = 5 ms * 2^2 = 20 ms, r = 10 ms * 10 Mb/s / 20 ms. The rate is high while the smoothed ratio is low, and the
    // other way round, and a window without a loss ramps up: the mean rate is only about that, but all of these ranges are apart
    let at = |dloss: f64| at_the_sender("rfc8698", &json!({ "dloss": dloss }), 8000, 0.02);
    let (rate, queue) = at(5.0);
    within("rate at the sender", rate / 5000.0, 0.8, 1.3);
    within("queue", queue, 0.0, 5.0);
    within("a penalty of two thirds more", at(10.0 / 1.2).0 / 3000.0, 0.8, 1.3);
    let receiver =
        at_the_receiver(&json!({ "dloss": 5.0 }), Rate::from_mbps(10), 8000, |pair| pair.loss = 0.02);
    within("rate at the receiver", receiver.0 / 5000.0, 0.8, 1.3);
    // of packets that a reference ratio of 4 % makes little of, a quarter counts
    let (rate, _) = at_the_sender("rfc8698", &json!({ "dloss": 20.0, "plrref": 0.02 }), 8000, 0.02);
    within("another reference ratio", rate / 5000.0, 0.8, 1.3);
}

#[test]
fn marks_without_a_queue_hold_it_where_equation_2_says() {
    // 5 %: x = 2 ms * 5^2 = 50 ms, r = 10 ms * 15 Mb/s / 50 ms
    let marked =
        |settings| at_the_receiver(&settings, Rate::from_mbps(15), 12_000, |pair| pair.marks = 0.05).0;
    within("rate", marked(json!({})) / 3000.0, 0.8, 1.3);
    within("a penalty of half", marked(json!({ "dmark": 1.0 })) / 6000.0, 0.8, 1.3);
    within("another reference ratio", marked(json!({ "dmark": 4.0, "pmrref": 0.02 })) / 6000.0, 0.8, 1.3);
    within("deaf to marks", marked(json!({ "ecn": false })) / 12_000.0, 0.98, 1.02);
}

#[test]
fn it_says_what_it_needs() {
    let needs = |preset, settings: Value| host("nada", preset, &settings, &Limits::default()).needs();
    let found = needs("rfc8698", json!({}));
    assert_eq!((found.feedback, found.ecn), (FeedbackKind::PerPacket, EcnUse::Ect0));
    let found = needs("rfc8698", json!({ "placement": "receiver", "ecn": false }));
    assert_eq!((found.feedback, found.ecn), (FeedbackKind::OwnMessages, EcnUse::Off));
    let found = needs("ns3-rmcat", json!({}));
    assert_eq!((found.feedback, found.ecn), (FeedbackKind::PerPacket, EcnUse::Off));
}

/// A report of ten packets, sent 10 ms apart from `from` ms on.
fn ten(first: u64, from: i64) -> Report {
    let packet = |i: u64| {
        let sent = Time::from_millis(from + 10 * i as i64);
        PacketResult { ecn: Ecn::Ect0, ..result(first + i, 1000, sent, Some(sent.as_nanos() + 40_000_000)) }
    };
    Report { packets: (0..10).map(packet).collect(), ..Report::default() }
}

#[test]
fn what_waits_in_the_pacer_parts_the_encoder_from_the_pacer() {
    let mut ours = host("nada", "rfc8698", &Value::Null, &limits(Rate::from_mbps(2)));
    for i in 0..10 {
        let _ = ours.report(Time::from_millis(200 + 100 * i), &ten(10 * i as u64, 100 * i)).expect("fine");
    }
    let rest = *ours.decision();
    assert_eq!(rest.target, rest.pacing);
    let waiting = Report { backlog: Size::from_bytes(1000), ..Report::default() };
    let decision = *ours.report(Time::from_millis(1101), &waiting).expect("fine");
    // 0.1 * 8 * 1000 * 30
    assert_eq!(decision.target, rest.target.saturating_sub(Rate::from_bps(24_000)));
    assert_eq!(decision.pacing, rest.pacing + Rate::from_bps(24_000));
    assert_eq!(*ours.report(Time::from_millis(1102), &Report::default()).expect("fine"), rest);
}

#[test]
fn reports_that_come_early_wait_for_the_next() {
    for (preset, interval) in [("rfc8698", 75), ("ns3-rmcat", 50)] {
        let mut ours = host("nada", preset, &Value::Null, &limits(Rate::from_mbps(2)));
        ours.notes.wanted = true;
        let mut updated = |at: i64, first: u64| {
            let mut report = ten(first, 10 * first as i64);
            report.packets.truncate(1);
            let _ = ours.report(Time::from_millis(at), &report).expect("fine");
            said(&ours.notes, "r_ref_bps").is_some()
        };
        assert!(updated(1000, 0));
        assert!(!updated(1000 + interval - 1, 1), "{preset}");
        assert!(updated(1000 + interval, 2), "{preset}");
        assert!(!updated(1000 + 2 * interval - 1, 3), "{preset}");
    }
}

#[test]
fn empty_reports_and_those_of_lost_packets_alone_change_nothing() {
    for preset in ["rfc8698", "ns3-rmcat"] {
        let mut ours = host("nada", preset, &Value::Null, &limits(Rate::from_mbps(2)));
        for i in 0..20 {
            let _ =
                ours.report(Time::from_millis(200 + 100 * i), &ten(10 * i as u64, 100 * i)).expect("fine");
        }
        let before = *ours.decision();
        let mut lost = ten(200, 2000);
        lost.packets.iter_mut().for_each(|packet| packet.arrival = None);
        for report in [Report::default(), lost, ten(0, 0), ten(190, 1900)] {
            let after = *ours.report(Time::from_secs(5), &report).expect("fine");
            assert_eq!(after, before, "{preset}");
        }
    }
}

#[test]
fn feedback_that_is_lost_is_no_loss_of_packets() {
    let loss = |preset, tell: bool| {
        let mut ours = host("nada", preset, &Value::Null, &limits(Rate::from_mbps(2)));
        ours.notes.wanted = true;
        for i in [0, 1, 2, 4] {
            let mut report = ten(10 * i as u64, 100 * i);
            if i == 4 && tell {
                // this one tells of the ten packets before it, too, of which five did not come; and twice
                let mut all = ten(30, 300).packets;
                all[..5].iter_mut().for_each(|packet| packet.arrival = None);
                let lost: Vec<PacketResult> = all[..5].to_vec();
                report.packets = [lost, all, report.packets].concat();
            }
            let _ = ours.report(Time::from_millis(200 + 100 * i), &report).expect("fine");
        }
        let _ = ours.report(Time::from_millis(700), &ten(50, 500)).expect("fine");
        (said(&ours.notes, "p_loss").expect("an update"), said(&ours.notes, "loss_int"))
    };
    assert_eq!(loss("rfc8698", false), (0.0, None));
    let (told, interval) = loss("rfc8698", true);
    // five of the 50 packets of the last 500 ms at the first update, and of 50 at the second one
    assert!((told - (0.1 * 0.1 + 0.9 * 0.1 * 0.1)).abs() < 1e-9, "{told}");
    assert_eq!(interval, Some(30.0));
    // ns3-rmcat cannot tell, and takes it for a loss of packets
    assert!(loss("ns3-rmcat", false).0 > 0.0);
}

#[test]
fn marks_that_are_only_counted_are_marks_of_the_next_packets() {
    let mut ours = host("nada", "rfc8698", &Value::Null, &limits(Rate::from_mbps(2)));
    ours.notes.wanted = true;
    let counts = |ce| Some(EcnCounts { ce, ..EcnCounts::default() });
    let counted = Report { ecn: counts(3), ..Report::default() };
    let _ = ours.report(Time::from_millis(150), &counted).expect("fine");
    // of the two that this one counts, one is known: with the three from before, five of ten packets
    let mut report = Report { ecn: counts(2), ..ten(0, 0) };
    report.packets[9].ecn = Ecn::Ce;
    let _ = ours.report(Time::from_millis(200), &report).expect("fine");
    let found = said(&ours.notes, "p_mark").expect("an update");
    assert!((found - 0.1 * 0.5).abs() < 1e-12, "{found}");
    // none is left
    let _ = ours.report(Time::from_millis(300), &ten(10, 100)).expect("fine");
    let found = said(&ours.notes, "p_mark").expect("an update");
    assert!((found - (0.1 * 0.25 + 0.9 * 0.05)).abs() < 1e-12, "{found}");
}

#[test]
fn a_clock_that_is_set_by_more_than_the_round_trip_is_noticed() {
    for preset in ["rfc8698", "ns3-rmcat"] {
        let mut ours = host("nada", preset, &Value::Null, &limits(Rate::from_mbps(2)));
        ours.notes.wanted = true;
        let mut queueing = |i: i64, far: i64| {
            let mut report = ten(10 * i as u64, 100 * i);
            for packet in &mut report.packets {
                packet.arrival = packet.arrival.map(|at| at + Span::from_millis(far));
            }
            let _ = ours.report(Time::from_millis(200 + 100 * i), &report).expect("fine");
            said(&ours.notes, "queueing_ms").expect("an update")
        };
        // 30 ms may be a queue; a second cannot: the packet was under way for 200 ms at most
        assert_eq!(queueing(0, 0), 0.0);
        assert_eq!((1..4).map(|i| queueing(i, 30)).fold(0.0, f64::max), 30.0, "{preset}");
        assert_eq!((4..9).map(|i| queueing(i, 1030)).fold(0.0, f64::max), 0.0, "{preset}");
        assert_eq!((9..14).map(|i| queueing(i, -5000)).fold(0.0, f64::max), 0.0, "{preset}");
    }
}

#[test]
fn a_new_route_begins_anew() {
    let mut ours = host("nada", "rfc8698", &Value::Null, &limits(Rate::from_mbps(2)));
    for i in 0..20 {
        let _ = ours.report(Time::from_millis(200 + 100 * i), &ten(10 * i as u64, 100 * i)).expect("fine");
    }
    assert!(ours.decision().target > Rate::from_kbps(500));
    let moved = Limits { route_changed: true, ..limits(Rate::from_mbps(2)) };
    assert_eq!(ours.limits(Time::from_secs(3), &moved).expect("fine").target, Rate::from_kbps(150));
}

#[test]
fn the_receiving_half_speaks_every_100_ms_while_packets_come() {
    let mut half = half("nada", "rfc8698", &json!({ "placement": "receiver" })).expect("it has one");
    let mut said = vec![];
    let mut hear = |now: i64, packet: Option<u64>| {
        let at = Time::from_millis(now);
        let urgency = match packet {
            Some(sequence) => {
                let stamp = Stamp::new(Time::from_millis(now - 40), sequence).write();
                let packet = Arrived { extension: Some(&stamp), ..arrived(sequence, 1000, 0) };
                half.packet(at, &packet).expect("contract")
            }
            None => half.alarm(at).expect("contract"),
        };
        if urgency != Urgency::None {
            assert_eq!(urgency, Urgency::Now);
            for packet in half.message(at).expect("contract") {
                let rtcp::Packet::App(app) = packet else { panic!("{packet:?}") };
                said.push((now, Feedback::parse(&app).expect("its own")));
            }
        }
        half.alarm_at.map(|at| at.as_nanos() / 1_000_000)
    };
    // the numbers wrap on the way
    for i in 0..50 {
        let alarm = hear(1000 + 10 * i, Some(65_500 + i as u64));
        if i == 0 {
            assert_eq!(alarm, Some(1100));
        }
    }
    assert_eq!(hear(1500, None), Some(1600));
    assert_eq!(hear(1600, None), None, "nothing has come since");
    assert_eq!(hear(5000, Some(65_550)), Some(5100));
    assert_eq!(hear(5100, None), Some(5200));
    let times: Vec<i64> = said.iter().map(|&(at, _)| at).collect();
    assert_eq!(times, [1100, 1200, 1300, 1400, 1500, 5100]);
    let (_, last) = said[4];
    // after 1000 ms, up to 1490 ms
    assert_eq!((last.x, last.receive_rate), (0.0, 49.0 * 16e3));
}

#[test]
fn the_receiving_half_is_silent_where_the_sender_computes() {
    let mut half = half("nada", "rfc8698", &Value::Null).expect("it has one");
    for i in 0..100 {
        let stamp = Stamp::new(Time::from_millis(i), i as u64).write();
        let packet = Arrived { extension: Some(&stamp), ..arrived(i as u64, 1000, 0) };
        let urgency = half.packet(Time::from_millis(20 * i), &packet).expect("contract");
        assert_eq!((urgency, half.alarm_at), (Urgency::None, None));
    }
    assert!(half.message(Time::from_secs(3)).expect("contract").is_empty());
}

/// From which second on, capacity in kbit/s, random loss, marks.
const PHASES: [(u64, u64, f64, f64); 5] = [
    (0, 1000, 0.0, 0.0),
    (40, 500, 0.0, 0.0),
    (70, 2000, 0.0, 0.0),
    (110, 2000, 0.02, 0.0),
    (140, 2000, 0.0, 0.05),
];

#[test]
fn what_it_does_from_the_receiver_on_a_changing_link() {
    let settings = json!({ "placement": "receiver" });
    let mut pair = Halves::new("nada", "rfc8698", &settings, &limits(Rate::from_mbps(4)), 1);
    let mut text = String::from(
        "nada rfc8698 at the receiver\n from  capacity  loss  marks    target   goodput  queue   (kb/s, ms; means of 5 s)\n",
    );
    for from in (0..170).step_by(5) {
        if let Some(&(_, capacity, loss, marks)) = PHASES.iter().find(|phase| phase.0 == from) {
            (pair.capacity, pair.loss, pair.marks) = (Rate::from_kbps(capacity), loss, marks);
        }
        let row = pair.means(Span::from_secs(5));
        let [capacity, target, goodput] = [row.capacity, row.target, row.goodput].map(|rate| rate / 1e3);
        writeln!(
            text,
            "{from:5} {capacity:9.0} {:5.2} {:6.2} {target:9.0} {goodput:9.0} {:6.0}",
            pair.loss, pair.marks, row.queue_ms
        )
        .expect("a string");
    }
    text += &pair.decisions.line();
    golden("crates/controllers/tests/golden/nada-receiver.txt", &text);
}
