//! Repair between two endpoints: requests, retransmission, parity, key frames, and their limits.

use crate::common::*;
use std::collections::BTreeMap;
use tidegate_core::datagram::RtpBody;
use tidegate_core::record::RtcpRecord;
use tidegate_core::rng::Stream;
use tidegate_core::wire::rtcp::{self, Contents};
use tidegate_core::{Body, Frame, Kind, Node, Packet, Port, Rate, Span, Time};
use tidegate_endpoint::repair::{Fec, Nack, Pli};
use tidegate_endpoint::{
    Bounds, EndpointSettings, FeedbackFormat, Playout, Repair, RtcpMode, SourceSettings, StreamSettings,
};

const VIDEO: u32 = 0x11;

fn body(packet: &Packet) -> RtpBody {
    match packet.body {
        Body::Rtp(body) => body,
        _ => panic!("not RTP: {packet:?}"),
    }
}

/// Video of 1 Mb/s in frames of 25 a second, with this repair and playout.
fn pair(repair: Repair, playout: Playout) -> (EndpointSettings, EndpointSettings) {
    let bounds = Bounds::new(Rate::from_kbps(150), Rate::from_mbps(5));
    let video = StreamSettings::video(VIDEO, SourceSettings::Ideal { fps: 25.0, bounds });
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, mut callee) = one_way(vec![video], controller, FeedbackFormat::Twcc);
    let send = caller.send.as_mut().unwrap();
    send.repair = repair;
    let receive = callee.receive.as_mut().unwrap();
    (receive.repair, receive.streams, receive.playout) = (repair, send.signalled(), playout);
    (caller, callee)
}

fn nack() -> Repair {
    Repair { nack: Some(Nack::default()), ..Repair::default() }
}

fn fec(packets: u8, parity: u8) -> Repair {
    Repair { fec: Some(Fec { packets, parity, by_frame: false }), ..Repair::default() }
}

fn fixed(millis: i64) -> Playout {
    Playout::Fixed { delay: Span::from_millis(millis) }
}

/// A path of `millis` each way that loses packets from the sender for which `lost` is true, given the packet and the
/// number of video packets before it.
fn losing(millis: i64, mut lost: impl FnMut(&Packet, u64) -> bool + 'static) -> Path {
    let mut count = 0;
    Box::new(move |now, from, packet| {
        let gone = from == 0 && packet.kind != Kind::Rtcp && lost(packet, count);
        count += u64::from(packet.kind == Kind::Video);
        (!gone).then(|| now + Span::from_millis(millis))
    })
}

fn sent_of_kind(recorded: &Recorded, kind: Kind) -> Vec<(Time, Packet)> {
    recorded.sent.iter().filter(|(_, packet)| packet.kind == kind).cloned().collect()
}

fn nacks(recorded: &Recorded) -> Vec<(Time, Vec<u16>)> {
    let decoded = rtcp_packets(recorded).into_iter();
    let nacks = decoded.flat_map(|(time, packets)| {
        packets.into_iter().filter_map(move |packet| match packet {
            rtcp::Packet::Nack(nack) => Some((time, nack.lost().collect())),
            _ => None,
        })
    });
    nacks.collect()
}

#[test]
fn a_lost_packet_is_requested_retransmitted_and_shown_in_time() {
    let (caller, callee) = pair(nack(), fixed(200));
    let mut world =
        World::new(caller, callee, losing(25, |packet, count| packet.kind == Kind::Video && count == 52));
    world.run(Time::from_secs(2));
    let recorded = world.finish();
    let video = sent_of_kind(&recorded, Kind::Video);
    let (sent, lost) = &video[52];
    let resent = sent_of_kind(&recorded, Kind::Retransmission);
    let [(time, packet)] = &resent[..] else { panic!("{resent:?}") };
    // RFC 4588 section 4: a separate stream, the original's number first in the payload, the rest unchanged
    let (original, copy) = (body(lost), body(packet));
    assert_eq!(packet.size, lost.size + 2);
    assert_eq!((copy.original, copy.payload_type), (original.sequence, 97));
    assert_eq!(
        (copy.timestamp, packet.frame, copy.marker),
        (original.timestamp, lost.frame, original.marker)
    );
    // the next packet shows the gap, and the request goes at once and arrives 25 ms after that
    let requests = nacks(&recorded);
    let next = video[53].0;
    assert_eq!(requests, [(next + Span::from_millis(25), vec![original.sequence])]);
    assert!(
        *time >= requests[0].0 + Span::from_millis(25) && *time < requests[0].0 + Span::from_millis(25 + 10)
    );
    assert_eq!(recorded.repaired.len(), 1);
    let (restored, repair) = recorded.repaired[0];
    assert_eq!(restored, *time + Span::from_millis(25));
    assert_eq!((repair.frame, repair.sequence, repair.in_time), (lost.frame.number, original.sequence, true));
    assert!(
        recorded
            .frames
            .iter()
            .filter(|(time, _)| *time > *sent)
            .all(|(time, frame)| frame.rendered.is_some() || *time == Time::from_secs(2))
    );
    assert_eq!(recorded.late, 0);
}

#[test]
fn retransmissions_leave_no_gap_in_numbers_and_reported_losses_stay() {
    let (caller, callee) = pair(nack(), fixed(200));
    let mut world =
        World::new(caller, callee, losing(25, |packet, count| packet.kind == Kind::Video && count % 10 == 9));
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    let numbers: Vec<u16> = sent_of_kind(&recorded, Kind::Retransmission)
        .iter()
        .map(|(_, packet)| body(packet).sequence)
        .collect();
    assert!(numbers.len() > 150 && numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)));
    let blocks: Vec<_> = rtcp_packets(&recorded)
        .into_iter()
        .flat_map(|(_, packets)| packets)
        .filter_map(|packet| match packet {
            rtcp::Packet::ReceiverReport(report) => Some(report.blocks),
            _ => None,
        })
        .flatten()
        .filter(|block| block.ssrc == VIDEO)
        .collect();
    let last = blocks.last().unwrap();
    let share = f64::from(last.cumulative_lost) / sent_of_kind(&recorded, Kind::Video).len() as f64;
    assert!((share - 0.1).abs() < 0.005, "{share}");
    // all that is sent is still the target, repair included
    let rate = rate(&recorded, 20.0);
    assert!((0.98e6..1.02e6).contains(&rate), "{rate}");
}

/// Bit/s of the sender's RTP over `secs` seconds, repair included.
fn rate(recorded: &Recorded, secs: f64) -> f64 {
    let sent = recorded.sent.iter().filter(|(_, p)| p.route.0 == 0 && p.kind != Kind::Rtcp);
    f64::from(sent.map(|(_, p)| p.size - 28).sum::<u32>()) * 8.0 / secs
}

/// The part of video packets that neither arrived nor was restored in time, with a loss of `p` on all packets.
fn residual(repair: Repair, playout: Playout, p: f64, secs: i64) -> f64 {
    let (caller, callee) = pair(repair, playout);
    let mut rng = Stream::new(3, "loss", "test");
    let mut world = World::new(caller, callee, losing(25, move |_, _| rng.uniform() < p));
    world.run(Time::from_secs(secs));
    let recorded = world.finish();
    let in_time = recorded.repaired.iter().filter(|(_, repair)| repair.in_time).count();
    let sent = sent_of_kind(&recorded, Kind::Video).len();
    let arrived = recorded.arrived.iter().filter(|(_, packet)| packet.kind == Kind::Video).count();
    (sent - arrived - in_time) as f64 / sent as f64
}

#[test]
fn with_one_retransmission_the_residual_loss_is_the_square_of_the_loss() {
    let times = |requests| Repair { nack: Some(Nack { requests, ..Nack::default() }), ..Repair::default() };
    let (p, secs) = (0.1, 300);
    // 30 000 packets, of which 300 stay lost: four standard deviations are 0.0023
    let lost = residual(times(1), fixed(1_000), p, secs);
    assert!((lost - p * p).abs() < 0.0023, "{lost}");
    let lost = residual(times(2), fixed(1_000), p, secs);
    assert!((lost - p * p * p).abs() < 0.0008, "{lost}");
    // and without time for a retransmission, no packet is repaired
    let lost = residual(times(10), fixed(10), p, secs);
    assert!((lost - p).abs() < 0.007, "{lost}");
}

#[test]
fn with_parity_the_residual_loss_is_as_in_the_closed_form() {
    for (packets, parity) in [(5, 1), (10, 2)] {
        let (p, secs, n) = (0.05f64, 300, 5);
        let lost = residual(fec(packets, parity), fixed(400), p, secs);
        let expected = p * (1.0 - (0..n).fold(1.0, |all, _| all * (1.0 - p)));
        // 420 of 37 000 packets, which come in groups of up to five: four standard deviations are 0.0030 at most
        assert!((lost - expected).abs() < 0.0030, "{lost}, expected {expected}");
    }
}

#[test]
fn parity_is_sent_for_each_group_and_counted_in_the_target() {
    let (caller, callee) = pair(fec(10, 2), fixed(400));
    let mut world = World::new(caller, callee, delay(25));
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    let (video, parity) =
        (sent_of_kind(&recorded, Kind::Video).len(), sent_of_kind(&recorded, Kind::Repair).len());
    assert!((video / 10 * 2 - 2..=video / 10 * 2).contains(&parity), "{parity} for {video}");
    let rate = rate(&recorded, 20.0);
    // parity is somewhat longer than the packets it protects, which the plan for the first second leaves out
    assert!((0.98e6..1.03e6).contains(&rate), "{rate}");
    assert!(recorded.repaired.is_empty(), "nothing was lost");
    assert_eq!(
        recorded.frames.iter().filter(|(_, frame)| frame.rendered.is_some()).count(),
        489,
        "the last 464 ms are not shown"
    );
}

#[test]
fn an_adaptive_delay_waits_for_repair_and_not_for_what_is_lost_for_good() {
    let adaptive = Playout::Adaptive { min: Span::ZERO, max: Span::from_secs(1), shrink: 0.02 };
    let lost = |_: &Packet, count: u64| count == 52;
    let run = |repair: Repair, again: bool| {
        let (caller, callee) = pair(repair, adaptive);
        let path = losing(25, move |packet, count| {
            lost(packet, count) && packet.kind == Kind::Video || again && packet.kind == Kind::Retransmission
        });
        let mut world = World::new(caller, callee, path);
        world.run(Time::from_secs(4));
        world.finish()
    };
    let (without, repaired, given_up) =
        (run(Repair::default(), false), run(nack(), false), run(nack(), true));
    let unseen = |recorded: &Recorded| -> Vec<u32> {
        let before = recorded
            .frames
            .iter()
            .filter(|(time, frame)| *time < Time::from_secs(4) && frame.rendered.is_none());
        before.map(|(_, frame)| frame.frame).collect()
    };
    assert_eq!((unseen(&without), unseen(&repaired)), ((10..=98).collect::<Vec<u32>>(), vec![]));
    let order: Vec<u32> = repaired.frames.iter().map(|(_, frame)| frame.frame).collect();
    assert!(order.is_sorted(), "frames are recorded in order");
    // without any retransmission requests go on, and all later frames wait
    assert_eq!(unseen(&given_up), Vec::<u32>::new());
    assert_eq!(given_up.frames.iter().filter(|(_, frame)| frame.rendered.is_some()).count(), 10);
    let requests = nacks(&given_up);
    assert!((34..=36).contains(&requests.len()), "at once, and each 100 ms of 3.5 s: {requests:?}");
}

#[test]
fn a_late_packet_does_not_count_after_its_retransmission() {
    // packet 52 is 100 ms late, and its retransmission comes before it
    let (caller, callee) = pair(nack(), fixed(300));
    let mut count = 0;
    let path: Path = Box::new(move |now, _, packet| {
        let slow = packet.kind == Kind::Video && count == 52;
        count += u64::from(packet.kind == Kind::Video);
        Some(now + Span::from_millis(if slow { 125 } else { 25 }))
    });
    let mut world = World::new(caller, callee, path);
    world.run(Time::from_secs(2));
    let recorded = world.finish();
    assert_eq!(recorded.repaired.len(), 1);
    let arrived: u64 = recorded
        .arrived
        .iter()
        .filter(|(_, p)| p.kind == Kind::Video)
        .map(|(_, p)| u64::from(payload(p)))
        .sum();
    assert_eq!(recorded.goodput, arrived);
    assert!(
        recorded.frames.iter().all(|(time, frame)| frame.rendered.is_some() || *time == Time::from_secs(2))
    );
}

#[test]
fn requests_keep_the_profile() {
    for (mode, reduced_size) in [(RtcpMode::Avp, false), (RtcpMode::Avpf, false), (RtcpMode::Avpf, true)] {
        let (mut caller, mut callee) = pair(nack(), fixed(200));
        for end in [&mut caller, &mut callee] {
            (end.rtcp.mode, end.rtcp.reduced_size) = (mode, reduced_size);
        }
        let mut world = World::new(
            caller,
            callee,
            losing(25, |packet, count| packet.kind == Kind::Video && count == 520),
        );
        world.run(Time::from_secs(10));
        let recorded = world.finish();
        // packets that may be padded go last (RFC 3550 section 6.4.1): feedback behind requests, before a goodbye
        for (time, packets) in rtcp_packets(&recorded) {
            let order = |packet: &rtcp::Packet| match packet {
                rtcp::Packet::Bye(_) => 2,
                rtcp::Packet::Twcc(_) => 1,
                _ => 0,
            };
            assert!(packets.is_sorted_by_key(order), "{time}: {packets:?}");
        }
        let gap = sent_of_kind(&recorded, Kind::Video)[521].0 + Span::from_millis(30);
        let requests = nacks(&recorded);
        let reports: Vec<Time> = rtcp_packets(&recorded)
            .into_iter()
            .filter(|(_, packets)| rtcp::is_compound(packets))
            .map(|(time, _)| time)
            .collect();
        let regular = |time: Time| reports.contains(&time);
        match mode {
            RtcpMode::Avp => {
                assert!(requests.iter().all(|(time, _)| regular(*time) && *time >= gap), "{requests:?}")
            }
            // an early packet may go at once, or not before the next regular one has gone
            _ => assert!(
                requests[0].0 >= gap && requests[0].0 < gap + Span::from_secs(1),
                "{requests:?} {gap}"
            ),
        }
    }
}

#[test]
fn key_frames_are_requested_when_a_frame_is_missing_for_good_and_not_too_often() {
    let pli = Repair { pli: Some(Pli::default()), ..Repair::default() };
    // a packet is lost at 3 s, and until then all key frames but the first
    let run = |repair: Repair, until: i64| {
        let (caller, callee) = pair(repair, fixed(100));
        let gone = move |packet: &Packet, _| {
            let within = |from, to| (Time::from_millis(from)..Time::from_millis(to)).contains(&packet.sent);
            let key = packet.frame.flags & Frame::KEY != 0;
            packet.kind == Kind::Video && (within(3_005, 3_010) || key && within(3_005, until))
        };
        let mut world = World::new(caller, callee, losing(25, gone));
        world.run(Time::from_secs(10));
        let recorded = world.finish();
        let pli = |record: &RtcpRecord| record.contents.has(Contents::PLI);
        let requests: Vec<Time> =
            recorded.rtcp.iter().filter(|(_, record)| pli(record)).map(|(time, _)| *time).collect();
        let keys = recorded.frames_sent.iter().filter(|(_, frame)| frame.key);
        (requests, keys.map(|(time, _)| *time).collect::<Vec<Time>>())
    };
    let (requests, keys) = run(pli, 3_010);
    // the frame of 3000 ms is given up 164.36 ms later, 100 ms after the transit time of the first frame; the request
    // arrives after 25 ms more
    assert_eq!(requests, [Time::from_nanos(3_164_360_001)]);
    assert_eq!(keys, [Time::ZERO, Time::from_millis(3_200)]);
    // a request each 300 ms as long as no key frame comes, and one key frame for each
    let (requests, keys) = run(pli, 5_000);
    let times: Vec<i64> = requests.iter().map(|time| time.as_nanos() / 1_000_000).collect();
    assert_eq!(times, [3164, 3464, 3764, 4064, 4364, 4664, 4964]);
    assert_eq!(keys.len(), 8, "{keys:?}");
    assert_eq!(run(Repair::default(), 5_000), (vec![], vec![Time::ZERO]));
}

#[test]
fn hostile_requests_make_no_storm() {
    let repair = Repair { pli: Some(Pli::default()), ..nack() };
    let (caller, callee) = pair(repair, fixed(200));
    let mut world = World::new(caller, callee, delay(25));
    world.run(Time::from_secs(2));
    // each millisecond all 65536 numbers are requested, and a key frame
    let pairs: Vec<rtcp::NackPair> =
        (0..65_536u32 / 17 + 1).map(|k| rtcp::NackPair { pid: (17 * k) as u16, blp: 0xffff }).collect();
    let packets = [
        rtcp::Packet::Nack(rtcp::Nack { sender_ssrc: 1, media_ssrc: VIDEO, pairs }),
        rtcp::Packet::Pli(rtcp::Pli { sender_ssrc: 1, media_ssrc: VIDEO }),
    ];
    let mut bytes = Vec::new();
    rtcp::encode(&packets, &mut bytes).unwrap();
    for millis in 2_001..6_000 {
        world.run(Time::from_millis(millis));
        let mut packet = world.recorded.lock().unwrap().sent[0].1.clone();
        packet.kind = Kind::Rtcp;
        packet.body = Body::Rtcp;
        packet.attachment =
            Some(std::sync::Arc::new(tidegate_core::datagram::Attachment::Rtcp(bytes.clone())));
        world.nodes[0].receive(world.now, Port::ZERO, Box::new(packet), &mut world.out);
        let flying: Vec<_> = world.out.packets.drain(..).collect();
        assert!(flying.len() < 20, "{} at once", flying.len());
    }
    let recorded = world.finish();
    let late = recorded
        .sent
        .iter()
        .filter(|(time, p)| p.route.0 == 0 && p.kind != Kind::Rtcp && *time > Time::from_secs(2));
    let rate = late.map(|(_, p)| f64::from(p.size - 28) * 8.0).sum::<f64>() / 4.0;
    assert!(rate < 1.05e6, "{rate}: retransmission is paced");
    let mut times = BTreeMap::<u16, Vec<Time>>::new();
    for (time, packet) in sent_of_kind(&recorded, Kind::Retransmission) {
        times.entry(body(&packet).original).or_default().push(time);
    }
    let closest = times.values().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0])).min();
    assert!(closest.is_none_or(|closest| closest >= Span::from_millis(50)), "once a round trip: {closest:?}");
    let keys = recorded.frames_sent.iter().filter(|(_, frame)| frame.key).count();
    assert!((10..=15).contains(&keys), "{keys} in 4 s, one each 300 ms");
}

#[test]
fn settings_without_sense_are_refused() {
    for (repair, words) in [
        (fec(3, 4), "4 parity packets for 3 media packets"),
        (fec(3, 0), "0 parity packets"),
        (
            Repair { nack: Some(Nack { requests: 0, ..Nack::default() }), ..Repair::default() },
            "requests is 0",
        ),
        (
            Repair { pli: Some(Pli { interval: Span::from_micros(999) }), ..Repair::default() },
            "the interval must be at least 1.000000ms",
        ),
    ] {
        let (caller, _) = pair(repair, fixed(200));
        let error = tidegate_endpoint::Endpoint::new(caller).err().expect(words).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn retransmissions_and_parity_are_real_bytes() {
    let (caller, callee) = pair(Repair { fec: fec(4, 2).fec, ..nack() }, fixed(400));
    let lost = losing(25, |packet, count| packet.kind == Kind::Video && count == 52);
    let mut world = World::with_bytes(caller, callee, lost, true);
    world.run(Time::from_secs(2));
    let recorded = world.finish();
    let mut kinds = (0, 0);
    let video: BTreeMap<u16, RtpBody> = sent_of_kind(&recorded, Kind::Video)
        .iter()
        .map(|(_, packet)| (body(packet).sequence, body(packet)))
        .collect();
    for (packet, bytes) in recorded.bytes.iter().filter(|(packet, _)| packet.kind != Kind::Rtcp) {
        assert_eq!(bytes.len() as u32, packet.size - 28);
        let payload = &bytes[bytes.len() - payload(packet) as usize..];
        match packet.kind {
            Kind::Retransmission => {
                assert_eq!(payload[..2], body(packet).original.to_be_bytes());
                kinds.0 += 1;
            }
            Kind::Repair => {
                let base = u16::from_be_bytes([payload[0], payload[1]]);
                let protected: Vec<&RtpBody> =
                    [base, base.wrapping_add(2)].iter().map(|k| &video[k]).collect();
                let timestamp = protected.iter().fold(0, |all, body| all ^ body.timestamp);
                assert_eq!(payload[8..12], timestamp.to_be_bytes());
                // E and the payload types, which cancel out; columns, two apart, two of them
                assert_eq!((payload[4], &payload[12..16]), (0x80, &[0, 2, 2, 0][..]));
                kinds.1 += 1;
            }
            _ => {}
        }
    }
    // parity is queued behind the rest of the frame, so that the packet has been requested by then; the last parity may
    // still be queued
    let groups = video.len() / 4;
    assert!(kinds.0 == 1 && (2 * groups - 2..=2 * groups).contains(&kinds.1), "{kinds:?} of {}", video.len());
}
