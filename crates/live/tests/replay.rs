//! Replays of sessions with irregular wakeups and late reads: each packet has the same fate, to the nanosecond.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::net::Ipv4Addr;
use tidegate_core::{Ecn, Span, Stream, Time};
use tidegate_live::shell::arrival::{Arrival, FateRecord};
use tidegate_live::shell::frame::{Frame, Tuple};
use tidegate_live::shell::model::{Fate, Model, PacketExit};
use tidegate_live::shell::replay::{difference, replay};
use tidegate_live::shell::{Side, usual_names};
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Run, Scenario};

const SECOND: i64 = 1_000_000_000;

/// A narrow link with a queue discipline, losses and jitter, a link back, and a TCP flow. If it is `coarse`, events are
/// at multiples of half a millisecond, so that many are at the same instant.
fn build(discipline: &Value, service: &str, flows: usize, coarse: bool) -> Run {
    let jitter = if coarse { json!("none") } else { json!({"normal": 500_000}) };
    let link = |name: &str, from: &str, to: &str| {
        json!({"name": name, "from": from, "to": to, "capacity": {"constant": 4_000_000}, "service": service,
               "settings": {"delay": 20_000_000, "queue": {"packets": 40}, "discipline": discipline,
                            "loss": {"bernoulli": 0.01}, "jitter": jitter}})
    };
    let tcp = json!({"tcp": {
        "algorithm": "cubic", "workload": "long", "initial_window": 10, "min_rto": SECOND,
        "delayed_ack": false, "handshake": false, "receive_window": 100_000, "packet_size": 1000,
    }});
    let mut flow_specs =
        vec![json!({"name": "file", "from": "left", "to": "right", "start": SECOND / 2, "kind": tcp})];
    for number in 1..=flows {
        flow_specs
            .push(json!({"name": format!("A-{number}"), "from": "left", "to": "right", "kind": "external"}));
        flow_specs
            .push(json!({"name": format!("B-{number}"), "from": "right", "to": "left", "kind": "external"}));
    }
    let scenario: Scenario = serde_json::from_value(json!({
        "name": "live", "duration": 8 * SECOND, "warmup": 0, "seed": 11, "sending_jitter": if coarse { "off" } else { "auto" },
        "record": {"level": "packets", "bin": SECOND / 10},
        "links": [link("narrow", "left", "right"), link("narrow.back", "right", "left")],
        "flows": flow_specs,
    }))
    .unwrap();
    Run::new(&scenario, &[], &mut |spec| from_registry(spec)).unwrap()
}

#[test]
fn a_flood_fills_a_model_only_so_far() {
    for (size, most) in [(65_000, 250_000_000 / 65_000), (20, 700_000)] {
        let mut model = Model::new(build(&json!("drop_tail"), "fifo", 1, true), &usual_names()).unwrap();
        let mut entered = 0;
        while model.has_room(size) && entered <= most {
            let at = Time::from_nanos(i64::from(entered));
            model.enter(Side::A, 0, at, size, Ecn::NotEct, entered).expect("in time");
            entered += 1;
        }
        assert_eq!(entered, most, "packets of {size} bytes");
        assert!(model.has_room(19) == (size == 65_000), "the bytes are full, or the numbers");
        // the queue takes 40 packets and the others are dropped: there is room again
        let mut exits = 0;
        while !model.advance(Time::from_secs(1), 1 << 20, |_| exits += 1).unwrap() {}
        assert!(model.has_room(size) && exits > most - 60, "{exits} of {most}");
    }
}

/// A session of `build`: two sides send for 6 s, and the loop wakes and reads late. Returns arrivals, fates, digest and
/// end.
fn session(run: Run, luck: u64, coarse: bool) -> (Vec<Arrival>, Vec<FateRecord>, String, Time) {
    let mut model = Model::new(run, &usual_names()).unwrap();
    let mut luck = Stream::new(luck, "test", "wakeups");
    let grain = if coarse { 500_000 } else { 1 };
    let on_grain = |nanos: i64| (nanos / grain + 1) * grain;
    let (mut arrivals, mut fates) = (Vec::new(), Vec::new());
    let mut wall = 0;
    let mut next = [3_000_000, 5_000_000];
    while wall < 6 * SECOND {
        // wakes after up to 3 ms; the packets since then have their own time stamps, and are read device by device
        wall += on_grain(luck.below(3_000_000) as i64);
        // sometimes the model has got ahead of what is read only now
        let early = luck.chance(0.2);
        let mut advance = |model: &mut Model<u64>, until| {
            let mut on_exit = |exit: PacketExit<u64>| {
                assert_eq!(exit.number, exit.bytes);
                fates.push(FateRecord { number: exit.number, at: exit.at, fate: exit.fate, written: None });
            };
            // a few events at a time, as when there is much to do
            while !model.advance(Time::from_nanos(until), 7, &mut on_exit).unwrap() {}
        };
        if early {
            advance(&mut model, wall);
        }
        for side in Side::ALL {
            while next[side as usize] <= wall {
                let flow = luck.below(3) as usize;
                let frame = Frame {
                    size: if coarse { 500 } else { 100 + luck.below(1300) as u32 },
                    ecn: Ecn::from_bits(luck.below(4) as u8),
                    tuple: Tuple {
                        protocol: 17,
                        address_a: Ipv4Addr::new(10, 77, 0, 1),
                        port_a: flow as u16,
                        address_b: Ipv4Addr::new(10, 77, 0, 2),
                        port_b: 9,
                    },
                    rtp: None,
                };
                let stamp = Time::from_nanos(next[side as usize]);
                let number = arrivals.len() as u64;
                let entered = model.enter(side, flow, stamp, frame.size, frame.ecn, number).unwrap();
                assert_eq!(entered.number, number);
                assert!(entered.at >= stamp && entered.at - stamp == entered.clamped);
                arrivals.push(Arrival {
                    number,
                    at: entered.at,
                    clamped: entered.clamped,
                    from: side,
                    flow,
                    frame,
                });
                // several at one instant, too
                next[side as usize] +=
                    if luck.chance(0.1) { 0 } else { on_grain(luck.below(5_000_000) as i64) };
            }
        }
        advance(&mut model, wall);
    }
    let end = Time::from_nanos(7 * SECOND);
    model
        .advance(end, u64::MAX, |exit| {
            fates.push(FateRecord { number: exit.number, at: exit.at, fate: exit.fate, written: None });
        })
        .unwrap();
    let inside = model.inside();
    let outcome = model.finish(end).unwrap();
    assert_eq!(inside + fates.len(), arrivals.len());
    (arrivals, fates, outcome.summary.digest, end)
}

#[test]
fn what_comes_after_the_end_is_not_in_the_session() {
    let mut model: Model<()> =
        Model::new(build(&json!("drop_tail"), "fifo", 32, false), &usual_names()).unwrap();
    let over = Time::from_nanos(8 * SECOND);
    assert_eq!(model.enter(Side::A, 0, over + Span::from_nanos(1), 500, Ecn::NotEct, ()), None);
    let last = model.enter(Side::A, 0, over, 500, Ecn::NotEct, ()).unwrap();
    assert_eq!((last.number, last.at), (0, over));
    while !model.advance(over, 1000, |_| {}).unwrap() {}
    // stamped in time, but read when all has happened
    assert_eq!(model.enter(Side::B, 0, over, 500, Ecn::NotEct, ()), None);
}

#[test]
fn each_due_time_and_each_drop_of_a_session_comes_again() {
    let disciplines = [
        (json!("drop_tail"), "fifo"),
        (json!("drop_tail"), "managed"),
        (
            json!({"codel": {"target": 5_000_000, "interval": 100_000_000, "maxpacket": 1500, "ecn": true}}),
            "managed",
        ),
        (
            json!({"fq_codel": {"target": 5_000_000, "interval": 100_000_000, "quantum": 1514, "flows": 1024, "maxpacket": 1500, "ecn": true}}),
            "managed",
        ),
    ];
    let kinds = disciplines.iter().flat_map(|kind| [(kind, false), (kind, true)]);
    for (number, ((discipline, service), coarse)) in kinds.enumerate() {
        let (arrivals, fates, digest, end) =
            session(build(discipline, service, 32, coarse), number as u64, coarse);
        let count = |wanted: fn(&Fate) -> bool| fates.iter().filter(|record| wanted(&record.fate)).count();
        let (arrived, died) =
            (count(|fate| matches!(fate, Fate::Arrives { .. })), count(|fate| matches!(fate, Fate::Dies(_))));
        assert!(arrived > 1000 && died > 20, "{arrived} {died}");
        assert!(arrivals.iter().filter(|arrival| arrival.clamped > Span::ZERO).count() > 50);
        // with only the flows that there were
        let replayed = replay(build(discipline, service, 3, coarse), &usual_names(), &arrivals, end).unwrap();
        assert_eq!(difference(&fates, &replayed.fates), None);
        assert_eq!(replayed.fates.len(), fates.len());
        // and with all of them: the whole recording
        let replayed =
            replay(build(discipline, service, 32, coarse), &usual_names(), &arrivals, end).unwrap();
        assert_eq!(replayed.outcome.summary.digest, digest);
    }
}

#[test]
fn one_nanosecond_or_one_drop_is_a_difference() {
    let ending = |number, at, fate| FateRecord { number, at: Time::from_nanos(at), fate, written: None };
    let arrives = Fate::Arrives { marked: false };
    let live = [ending(0, 5, arrives), ending(2, 9, arrives), ending(1, 7, arrives)];
    let mut replayed = live;
    replayed.reverse();
    assert_eq!(difference(&live, &replayed), None);
    replayed[0].at = Time::from_nanos(8);
    assert_eq!(difference(&live, &replayed), Some((1, Some(live[2]), Some(replayed[0]))));
    assert_eq!(difference(&live[1..], &live), Some((0, None, Some(live[0]))));
    let dead = [live[0], live[1], ending(1, 7, Fate::Dies(tidegate_core::Cause::Queue))];
    assert_eq!(difference(&live, &dead).unwrap().0, 1);
}

#[test]
fn arrivals_that_do_not_fit_are_refused() {
    let (arrivals, _, _, end) = session(build(&json!("drop_tail"), "fifo", 32, false), 1, false);
    let refused = |flows, arrivals: &[Arrival], end| {
        replay(build(&json!("drop_tail"), "fifo", flows, false), &usual_names(), arrivals, end)
            .map(drop)
            .unwrap_err()
    };
    assert!(refused(2, &arrivals, end).contains("belongs to flow 3; the scenario has 2 flows"));
    assert!(refused(3, &arrivals, Time::from_nanos(SECOND)).contains("after the session's end"));
    assert!(refused(3, &arrivals, Time::from_nanos(9 * SECOND)).contains("the scenario lasts"));
    assert!(refused(0, &arrivals, end).contains("needs external flows A-1 and B-1"));
}
