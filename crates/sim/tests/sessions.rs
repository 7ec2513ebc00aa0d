//! Sessions of many members: trees, shares of bandwidth, suppression, repair, joining and leaving.

use serde_json::{Value, json};
use tidegate_core::Level;
use tidegate_sim::Refusal;
use tidegate_sim::record::columns::Column;
use tidegate_sim::record::member::MemberSummary;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run};

const SECOND: i64 = 1_000_000_000;
const MILLI: i64 = 1_000_000;

/// Both directions of a link of 10 Mb/s.
fn link(from: &str, to: &str, delay_ms: i64) -> [Value; 2] {
    let link_to = |name: String, from: &str, to: &str| {
        json!({"name": name, "from": from, "to": to, "capacity": {"constant": 10_000_000},
               "settings": {"delay": delay_ms * MILLI}})
    };
    [link_to(format!("{from}-{to}"), from, to), link_to(format!("{to}-{from}"), to, from)]
}

fn avpf() -> Value {
    json!({"avpf": {"l": 0.5, "max_feedback_delay": SECOND, "rr_interval": 0}})
}

fn member(name: &str) -> Value {
    json!({"name": name, "node": name, "profile": avpf()})
}

fn sender(name: &str, size: u32, rate: u64) -> Value {
    let mut member = member(name);
    member["media"] = json!({"packets": {"packet_size": size, "rate": rate}});
    member
}

fn scenario(seconds: i64, bandwidth: u64, links: Vec<Value>, members: Vec<Value>) -> Scenario {
    let value = json!({
        "name": "group", "duration": seconds * SECOND, "seed": 3,
        "record": {"level": "packets", "bin": SECOND}, "links": links, "flows": [],
        "sessions": [{"name": "s", "bandwidth": bandwidth, "overhead": 28, "members": members}],
    });
    serde_json::from_value(value).expect("a scenario")
}

fn build(scenario: &Scenario) -> Result<Run, Refusal> {
    Run::new(scenario, &[], &mut from_registry)
}

fn run(scenario: &Scenario) -> Outcome {
    let mut run = build(scenario).expect("valid");
    let end = tidegate_core::Time::ZERO + scenario.duration;
    run.run_until(end).expect("no component fails");
    run.finish().expect("every packet is accounted for")
}

fn members(outcome: &Outcome) -> &[MemberSummary] {
    &outcome.summary.members
}

fn share(outcome: &Outcome) -> f64 {
    members(outcome).iter().filter_map(|member| member.rtcp_share).sum()
}

/// The document's T-8: A1 to A2, A3, A4; A2 to A5, A6; A3 to A7; A4 to A8.
fn t8() -> Vec<Value> {
    let branches =
        [("A1", "A2"), ("A1", "A3"), ("A1", "A4"), ("A2", "A5"), ("A2", "A6"), ("A3", "A7"), ("A4", "A8")];
    branches.iter().flat_map(|&(from, to)| link(from, to, 10)).collect()
}

fn all8(mut first: Value) -> Vec<Value> {
    first["name"] = "A1".into();
    std::iter::once(first).chain((2..=8).map(|n| member(&format!("A{n}")))).collect()
}

#[test]
fn a_tree_carries_each_packet_once_over_each_link_to_all_members() {
    let scenario = scenario(10, 200_000, t8(), all8(sender("A1", 500, 200_000)));
    let outcome = run(&scenario);
    let flow = &outcome.summary.flows[0];
    assert_eq!((flow.flow.as_str(), flow.kind, flow.controller.as_str()), ("s.A1", "member", "avpf"));
    // a packet at the start and one each 20 ms; the last one is still under way, and for four members the one before it
    assert_eq!(flow.packets_sent, 501);
    assert_eq!(flow.packets_received, 500 * 7 - 4);
    // A1 to A5: twice 10 ms and twice 0.4 ms
    let far = flow.one_way_delay_ms_max.expect("packets arrived");
    assert!((far - 20.8).abs() < 0.15, "{far}");
    let near = flow.one_way_delay_ms_min.expect("packets arrived");
    assert!((near - 10.4).abs() < 0.05, "{near}");
    // RTP over each link away from A1: 501 packets of 500 bytes in 10 s, and RTCP on top
    for name in ["A1-A2", "A2-A5", "A3-A7"] {
        let link = outcome.summary.links.iter().find(|link| link.link == name).expect("a link");
        assert!((200_000.0..=212_000.0).contains(&link.carried_bps), "{name}: {}", link.carried_bps);
    }
    let back = outcome.summary.links.iter().find(|link| link.link == "A5-A2").expect("a link");
    assert!((100.0..=2_000.0).contains(&back.carried_bps), "only A5's own RTCP: {}", back.carried_bps);
}

#[test]
fn the_share_is_five_percent_for_every_size_and_profile() {
    for (bandwidth, size) in [(20_000, 100), (200_000, 500), (2_000_000, 1000)] {
        let mut scenario = scenario(600, bandwidth, t8(), all8(sender("A1", size, bandwidth)));
        let all_avpf = share(&run(&scenario));
        // one sender of eight has a quarter of the bandwidth for itself, and uses it
        assert!((0.0485..=0.0510).contains(&all_avpf), "{bandwidth}: {all_avpf}");
        for half in scenario.sessions[0].members.iter_mut().skip(4) {
            half.profile =
                serde_json::from_value(json!({"avp": {"minimum": 5 * SECOND}})).expect("a profile");
        }
        let mixed = run(&scenario);
        assert!(share(&mixed) <= 0.0510, "{bandwidth}: {}", share(&mixed));
        for (index, member) in members(&mixed).iter().enumerate() {
            let minimum = if index < 4 { 0.0 } else { 5.0 };
            let interval = 600.0 / member.rtcp_packets as f64;
            assert!(interval > 0.93 * minimum, "{}: every {interval} s", member.flow);
        }
    }
}

#[test]
fn a_loss_that_all_share_is_reported_by_few_and_known_to_all() {
    let mut links = t8();
    links[0]["settings"]["loss"] = json!({"bernoulli": 0.01});
    let outcome = run(&scenario(2000, 200_000, links, all8(sender("A1", 500, 200_000))));
    let behind: Vec<&MemberSummary> = members(&outcome)
        .iter()
        .filter(|member| ["A2", "A5", "A6"].contains(&member.member.as_str()))
        .collect();
    let losses = behind[0].losses;
    // 50 packets a second, 1 % of them
    assert!((850..=1150).contains(&losses), "{losses}");
    for member in &behind {
        assert!(member.losses.abs_diff(losses) <= 2, "{}: {} of {losses}", member.flow, member.losses);
        let reports =
            member.reported_early + member.reported_regular + member.suppressed + member.not_allowed;
        assert_eq!(reports, member.losses);
    }
    let suppressed: u64 = behind.iter().map(|member| member.suppressed).sum();
    let total: u64 = behind.iter().map(|member| member.losses).sum();
    let part = suppressed as f64 / total as f64;
    assert!((0.35..=0.67).contains(&part), "of three, at most two can be silent: {part}");
    // the sender hears of nearly every one, once
    let heard = members(&outcome)[0].losses_heard;
    assert!(heard <= losses + 2 && heard * 100 >= losses * 93, "{heard} of {losses}");
    for other in
        members(&outcome).iter().filter(|member| ["A3", "A4", "A7", "A8"].contains(&member.member.as_str()))
    {
        assert_eq!(other.losses, 0, "{}", other.flow);
    }
    let table = outcome.recording.table("losses").expect("a table");
    assert_eq!(table.rows() as u64, total);
    let Some((_, Column::F64(waited))) = table.columns.last() else { panic!("waited_ms") };
    assert!(waited.iter().all(|&ms| (0.0..=20_000.0).contains(&ms)));
}

#[test]
fn a_member_that_knows_the_round_trip_waits_less() {
    let run_with = |declared: bool| {
        let mut links = t8();
        links[0]["settings"]["loss"] = json!({"bernoulli": 0.01});
        let mut members = all8(sender("A1", 500, 50_000));
        for member in &mut members {
            member["profile"]["avpf"]["k"] = 1.0.into();
            let name = member["name"].as_str().expect("a name").to_owned();
            member["declared_sender"] = (declared && ["A2", "A5", "A6"].contains(&name.as_str())).into();
        }
        run(&scenario(4000, 50_000, links, members))
    };
    let waiting = |outcome: &Outcome| members(outcome)[1].waiting_ms_mean.expect("losses were reported");
    let (without, with) = (run_with(false), run_with(true));
    // 20 ms and a queue each way: k RTT/2 times 8 is about 84 ms, half an interval about a second
    assert!(waiting(&with) < 0.5 * waiting(&without), "{} {}", waiting(&with), waiting(&without));
    assert!(waiting(&with) > 20.0, "it waits for others all the same: {}", waiting(&with));
    assert!(share(&with) <= 0.051, "{}", share(&with));
}

#[test]
fn newpred_repairs_a_lost_segment_in_the_next_picture_after_the_report() {
    // 10 pictures a second of 3 segments, one each 33.3 ms; the picture sent from 5.0 s on is lost
    let mut links: Vec<Value> = link("A1", "A2", 50).into();
    links[0]["settings"]["loss"] = json!([
        [0, "none"],
        [5 * SECOND, {"bernoulli": 1.0}],
        [5 * SECOND + 90 * MILLI, "none"]
    ]);
    let mut first = member("A1");
    first["media"] = json!({"segments": {"fps": 10.0, "segments": 3, "rate": 64_000}});
    let outcome = run(&scenario(20, 64_000, links, vec![first, member("A2")]));
    let receiver = &members(&outcome)[1];
    // one loss of three segments, reported in one message: at once, or after the early packet before it
    assert_eq!(receiver.losses, 3);
    assert_eq!(receiver.reported_early + receiver.reported_regular, 3);
    assert_eq!((receiver.recovered, members(&outcome)[0].losses_heard), (3, 3));
    let table = outcome.recording.table("losses").expect("a table");
    let Some((_, Column::F64(detected))) = table.columns.iter().find(|(name, _)| *name == "detected_s")
    else {
        panic!("detected_s")
    };
    // the first segment of the next picture, sent at 5.1 s, shows the loss 50 ms and 267 bytes later
    let detection = 5.15 + 267.0 * 8.0 / 10e6;
    assert!(detected.iter().all(|time| (time - detection).abs() < 1e-9), "{detected:?} {detection}");
    let waited = receiver.waiting_ms_mean.expect("reported") / 1e3;
    // the report arrives 50 ms later; the next segment of each position that is coded after that repairs its loss
    let reported = detection + waited + 0.05 + 1e-4;
    let repaired: f64 = [0.0, 1.0, 2.0]
        .map(|slot| slot / 30.0)
        .map(|slot| ((reported - slot) * 10.0).ceil() / 10.0 + slot)
        .iter()
        .sum();
    let expected = repaired / 3.0 + 0.05 + 267.0 * 8.0 / 10e6 - detection;
    let recovery = receiver.recovery_ms_mean.expect("repaired") / 1e3;
    assert!((recovery - expected).abs() < 1e-3, "{recovery} {expected}");
}

#[test]
fn members_come_and_go() {
    let star =
        |count: usize| -> Vec<Value> { (1..=count).flat_map(|n| link("hub", &format!("A{n}"), 5)).collect() };
    // 60 members of which all but two leave at 300 s: with a BYE, without, or not at all
    let with = |how: Option<bool>| {
        let mut members: Vec<Value> = (1..=60).map(|n| member(&format!("A{n}"))).collect();
        members[0] = sender("A1", 500, 100_000);
        for leaver in members.iter_mut().skip(2) {
            if let Some(crashes) = how {
                leaver["leave"] = (300 * SECOND).into();
                leaver["crashes"] = crashes.into();
            }
        }
        run(&scenario(600, 100_000, star(60), members))
    };
    let late = |outcome: &Outcome| {
        // RTCP packets of A2 from 500 s on
        let table = outcome.recording.table("rtcp").expect("a table");
        let column = |name: &str| {
            table.columns.iter().find(|(column_name, _)| *column_name == name).map(|(_, column)| column)
        };
        let (Some(Column::F64(times)), Some(Column::Words { words, codes })) =
            (column("t_s"), column("flow"))
        else {
            panic!("t_s and flow")
        };
        let mine = |code: u32| words[code as usize] == "s.A2";
        times.iter().zip(codes).filter(|&(&times, &code)| times > 500.0 && mine(code)).count() as f64
    };
    let (stay, bye, crash) = (with(None), with(Some(false)), with(Some(true)));
    // 58 receivers and a sender share 468.75 bytes a second in packets of 76; two share 625
    let (of_sixty, of_two) = (100.0 * 468.75 / (59.0 * 76.0), 100.0 * 625.0 / (2.0 * 76.0));
    assert!((late(&stay) - of_sixty).abs() < 0.25 * of_sixty, "{} of {of_sixty}", late(&stay));
    for (outcome, how) in [(&bye, "goodbye"), (&crash, "crash")] {
        assert!((late(outcome) - of_two).abs() < 0.06 * of_two, "{how}: {} of {of_two}", late(outcome));
        let packets = outcome.recording.table("rtcp").expect("a table");
        let Some((_, Column::U64(size))) = packets.columns.iter().find(|(name, _)| *name == "size") else {
            panic!("size")
        };
        let used = size.iter().sum::<u64>() as f64 * 8.0 / 600.0 / 100_000.0;
        assert!((0.035..=0.051).contains(&used), "{how}: {used}");
    }
    // 58 goodbyes at once would be a flood: the first ten seconds after it stay within bounds
    let table = bye.recording.table("rtcp").expect("a table");
    let column = |name: &str| {
        table.columns.iter().find(|(column_name, _)| *column_name == name).map(|(_, column)| column)
    };
    let (Some(Column::F64(times)), Some(Column::U64(size))) = (column("t_s"), column("size")) else {
        panic!("t_s and size")
    };
    let flood: u64 = times
        .iter()
        .zip(size)
        .filter(|(times, _)| (300.0..302.0).contains(*times))
        .map(|(_, size)| size)
        .sum();
    assert!(flood < 2 * 2 * 625, "{flood} bytes in 2 s; 1250 are the share, and 58 goodbyes are 4900");
    assert_eq!(bye.summary.flows[5].stop_s, 300.0);
}

#[test]
fn the_same_bits_at_every_level_and_in_steps() {
    let mut links = t8();
    links[0]["settings"]["byte_error"] = json!(1e-4);
    let mut scenario = scenario(60, 50_000, links, all8(sender("A1", 300, 50_000)));
    let digest = run(&scenario).summary.digest;
    for level in [Level::Summary, Level::Series] {
        scenario.record.level =
            serde_json::from_value(json!(format!("{level:?}").to_lowercase())).expect("a level");
        assert_eq!(run(&scenario).summary.digest, digest, "{level:?}");
    }
    let mut slowly = build(&scenario).expect("valid");
    for step in 1..=6000 {
        slowly.run_until(tidegate_core::Time::from_millis(10 * step)).expect("no component fails");
    }
    assert_eq!(slowly.finish().expect("conserved").summary.digest, digest);
    scenario.seed += 1;
    assert_ne!(run(&scenario).summary.digest, digest);
}

#[test]
fn invalid_sessions_are_refused_by_name() {
    let problem = |links: Vec<Value>, members: Vec<Value>| {
        build(&scenario(10, 100_000, links, members)).err().expect("refused").to_string()
    };
    let two = || vec![member("A1"), member("A2")];
    let pair: Vec<Value> = link("A1", "A2", 5).into();
    assert_eq!(
        problem(pair.clone(), vec![member("A1")]),
        "sessions.s.members: found 1; expected at least 2 members"
    );
    let stray = vec![member("A1"), member("B9")];
    assert_eq!(problem(pair.clone(), stray), "sessions.s: member B9: no link begins or ends at node B9");
    assert_eq!(problem(pair[..1].to_vec(), two()), "sessions.s: there is no path from A2 to A1");
    let mut late = two();
    late[1]["join"] = (9 * SECOND).into();
    late[1]["leave"] = (8 * SECOND).into();
    assert_eq!(
        problem(pair.clone(), late),
        "sessions.s: endpoint s.A2: the time of leaving is not after the time of joining"
    );
    let small = vec![sender("A1", 40, 10_000), member("A2")];
    let message = problem(pair.clone(), small);
    assert!(message.contains("40 bytes; expected more than the 40 bytes of headers"), "{message}");
    let mut heavy = scenario(10, 100_000, pair, vec![sender("A1", 40, 10_000), member("A2")]);
    heavy.sessions[0].overhead = u32::MAX;
    let message = build(&heavy).err().expect("refused").to_string();
    assert!(message.contains("40 bytes; expected more than the 4294967295 bytes of headers"), "{message}");
}
