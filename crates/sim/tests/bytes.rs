//! A run whose packets are encoded to bytes and decoded gives the same results, with flows of every kind; and captures
//! hold every packet that was sent.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::datagram::Protocol;
use tidegate_core::wire::ip;
use tidegate_core::{Ecn, Time};
use tidegate_sim::record::capture::Side;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{Outcome, Run};

const SECOND: i64 = 1_000_000_000;

fn tcp(name: &str, algorithm: &str, start: i64) -> Value {
    json!({"name": name, "from": "a", "to": "b", "start": start, "kind": {"tcp": {
        "algorithm": algorithm, "workload": {"web": {"min": 50_000, "max": 200_000, "idle": SECOND / 5}},
        "initial_window": 10, "min_rto": SECOND / 5, "delayed_ack": true, "handshake": true,
        "receive_window": 300_000, "packet_size": 1000,
    }}})
}

fn media(name: &str, ends: (&str, &str), pair: Option<&str>, overhead: u32) -> Value {
    json!({"name": name, "from": ends.0, "to": ends.1, "kind": {"media": {
        "controller": {"name": "gcc"}, "min_rate": 30_000, "max_rate": 2_000_000, "start_rate": 500_000,
        "video": {"source": "ideal", "min": 30_000, "max": 2_000_000, "fps": 25.0},
        "audio": {"rate": 32_000, "interval": 20_000_000},
        "feedback": {"format": "ccfb", "interval": 50_000_000}, "ecn": "ect1", "pair": pair,
        "playout": {"adaptive": {"min": 0, "max": SECOND}}, "payload": 972, "overhead": overhead,
    }}})
}

/// Ten seconds of all kinds of flows over a lossy link.
fn scenario(udp_size: u32) -> Value {
    let link = |name: &str, from: &str, to: &str| {
        json!({"name": name, "from": from, "to": to, "capacity": {"constant": 6_000_000},
               "settings": {"delay": 10_000_000, "queue": {"packets": 30}, "loss": {"bernoulli": 0.02}}})
    };
    let member = |name: &str, node: &str| {
        json!({"name": name, "node": node, "profile": {"avpf": {"l": 0.5, "max_feedback_delay": SECOND, "rr_interval": 0}}, "reports_losses": true,
               "join": 0, "media": {"packets": {"packet_size": 500, "rate": 100_000}}})
    };
    json!({
        "name": "all", "duration": 10 * SECOND, "warmup": 0, "seed": 3,
        "record": {"level": "packets", "bin": SECOND / 10},
        "links": [link("there", "a", "b"), link("back", "b", "a")],
        "flows": [
            tcp("cubic", "cubic", 0), tcp("reno", "newreno", SECOND),
            {"name": "udp", "from": "a", "to": "b",
             "kind": {"udp": {"pattern": "poisson", "rate": 300_000, "packet_size": udp_size}}},
            media("call", ("a", "b"), Some("other"), 28), media("other", ("b", "a"), Some("call"), 28),
            media("bare", ("a", "b"), None, 0),
            {"name": "fed", "from": "b", "to": "a", "kind": "external"},
        ],
        "sessions": [{"name": "s", "bandwidth": 200_000, "overhead": 28, "members": [member("x", "a"), member("y", "b")]}],
    })
}

fn run(scenario: &Value, overrides: &[(&str, Value)]) -> Result<Outcome, String> {
    let mut scenario = scenario.clone();
    for (key, value) in overrides {
        match key.split_once('.') {
            Some((table, key)) => scenario[table][key] = value.clone(),
            None => scenario[key] = value.clone(),
        }
    }
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    let mut run = Run::new(&scenario, &[], &mut |spec| from_registry(spec)).unwrap();
    let fed = run.external().flows[0].source;
    for number in 0..200_u64 {
        let time = Time::from_millis(40 * number as i64);
        run.run_until(time).map_err(|stopped| stopped.reason)?;
        assert!(run.feed(fed, time, 29 + 5 * (number % 60) as u32, Ecn::NotEct, number));
        let tags = run.take_handed().into_iter().map(|handed| handed.packet.tag());
        assert!(tags.into_iter().all(|tag| tag.is_some_and(|tag| tag < number)));
    }
    run.run_until(Time::MAX).map_err(|stopped| stopped.reason)?;
    run.finish().map_err(|stopped| stopped.reason)
}

#[test]
fn a_run_through_bytes_is_the_run() {
    let direct = run(&scenario(700), &[]).unwrap();
    let bytes = run(&scenario(700), &[("bytes", true.into())]).unwrap();
    assert_eq!(bytes.summary.digest, direct.summary.digest);
    assert_eq!(
        (bytes.draws.len(), bytes.events, bytes.hops),
        (direct.draws.len(), direct.events, direct.hops)
    );
    let table = |outcome: &Outcome| format!("{:?}", outcome.recording.table("packets").unwrap().columns);
    assert_eq!(table(&bytes), table(&direct));
    // the flows did have losses
    let lost =
        |flow: usize| direct.recording.stats()[flow].dropped.iter().map(|count| count.packets).sum::<u64>();
    assert!((0..6).all(|flow| lost(flow) > 0), "losses for SACK, RTCP and the rest to report");
}

/// The packets of a capture file that left an end, without its announcements.
fn sent(file: &[u8]) -> Vec<&[u8]> {
    let word = |offset: usize| u32::from_le_bytes(*file[offset..].first_chunk().unwrap());
    let (mut offset, mut packets) = (0, Vec::new());
    while offset < file.len() {
        let (kind, length) = (word(offset), word(offset + 4) as usize);
        // interface, two words of time, the length twice, and the packet; the flags are in the options after it
        if kind == 6 && word(offset + 8) > 0 {
            let packet = &file[offset + 28..offset + 28 + word(offset + 20) as usize];
            let flags = offset + 28 + packet.len().next_multiple_of(4) + 4;
            if word(flags) == 2 {
                packets.push(packet);
            }
        }
        offset += length;
    }
    packets
}

#[test]
fn captures_hold_the_sent_packets_and_each_flow_has_its_own_addresses() {
    let outcome = run(&scenario(700), &[("record.capture", true.into())]).unwrap();
    let (mut sizes, mut tuples) = (BTreeMap::<u8, u64>::new(), BTreeSet::new());
    let mut marked = 0;
    let files = [Side::Sender, Side::Receiver].map(|side| outcome.recording.pcapng(side).unwrap());
    for packet in files.iter().flat_map(|file| sent(file)) {
        let header = ip::Header::decode(packet).expect("an IPv4 header");
        let ([_, _, flow, _], _) = header.hosts.addresses();
        *sizes.entry(flow).or_default() += packet.len() as u64;
        assert_eq!(header.protocol, if flow < 2 { Protocol::Tcp } else { Protocol::Udp });
        marked += u32::from(header.ecn as u8 == 1);
        tuples.insert((flow, header.hosts, packet[20..24].to_vec()));
    }
    for (flow, stats) in outcome.recording.stats().iter().enumerate() {
        // feedback of a flow is counted apart; `bare` counts no headers, and here has 28 bytes of them
        let (sent, feedback) = (stats.sent, stats.feedback);
        let headers = if flow == 5 { 28 * (sent.packets + feedback.packets) } else { 0 };
        assert_eq!(sizes[&(flow as u8)], sent.bytes + feedback.bytes + headers, "flow {flow}");
    }
    let tuples_of = |flow: u8| tuples.iter().filter(|tuple| tuple.0 == flow).count();
    // TCP in both directions; UDP; a pair of calls, whose RTCP is feedback on the other one; a single call, whose RTCP
    // goes in both directions; fed; members: RTP and RTCP
    assert_eq!((0..9).map(tuples_of).collect::<Vec<_>>(), [2, 2, 1, 2, 2, 3, 1, 2, 2]);
    assert!(marked > 500, "media are sent with ECT(1)");
}

#[test]
fn a_packet_that_holds_no_headers_has_no_bytes() {
    let reason_end = "cannot write 27 as packet size in bytes: it must be from 28 to 65535";
    let captured = run(&scenario(27), &[("record.capture", true.into())]).unwrap();
    let reason = captured.recording.pcapng(Side::Sender).err().unwrap();
    assert!(reason.starts_with("a datagram packet at ") && reason.ends_with(reason_end), "{reason}");
    let reason = run(&scenario(27), &[("bytes", true.into())]).err().unwrap();
    assert_eq!(reason, format!("packet 0 of flow 2 (datagram) cannot be encoded and decoded: {reason_end}"));
}
