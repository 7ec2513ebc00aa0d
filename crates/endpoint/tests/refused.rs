//! Impossible feedback: it is counted, and not passed to the controller.

use crate::common::{World, constant, delay, one_way};
use std::sync::Arc;
use tidegate_core::datagram::Attachment;
use tidegate_core::wire::rtcp::{
    Ccfb, EcnCounters, EcnFeedback, ExtendedReport, Metric, Packet as Rtcp, ReceiverReport, ReportBlock,
    ReportExtension, StreamMetrics, Twcc, TwccBuilder, encode,
};
use tidegate_core::{
    Body, Datagram, Ecn, FlowId, Kind, Node, Packet, Port, Rate, RemoteTime, RouteId, Span, Time,
};
use tidegate_endpoint::{Bounds, FeedbackFormat, SourceSettings, StreamSettings};

const NOW: Time = Time::from_secs(2);

/// A call of 2 s with this codepoint, of which all feedback is lost, and its first RTP sequence number.
fn call(format: FeedbackFormat, ecn: Ecn) -> (World, Arc<std::sync::Mutex<crate::common::Heard>>, u16) {
    let bounds = Bounds::new(Rate::ZERO, Rate::from_mbps(10));
    let video = StreamSettings::video(7, SourceSettings::Ideal { fps: 50.0, bounds });
    let (controller, heard) = constant(Rate::from_mbps(1));
    let (mut caller, callee) = one_way(vec![video], controller, format);
    caller.send.as_mut().unwrap().ecn = ecn;
    let path = Box::new(|now: Time, from, _: &Packet| (from == 0).then_some(now + Span::from_millis(20)));
    let mut world = World::new(caller, callee, path);
    world.run(NOW);
    let first = world
        .recorded
        .lock()
        .unwrap()
        .sent
        .iter()
        .find_map(|(_, packet)| packet.rtp().map(|rtp| rtp.sequence));
    (world, heard, first.expect("it sends"))
}

/// Delivers these bytes to the sender as RTCP.
fn deliver_bytes(world: &mut World, bytes: Vec<u8>) {
    let datagram = Datagram {
        size: bytes.len() as u32 + 28,
        body: Body::Rtcp,
        attachment: Some(Arc::new(Attachment::Rtcp(bytes))),
        ..Datagram::default()
    };
    let packet = Packet::new(NOW, FlowId(1), RouteId(1), 0, Kind::Rtcp, datagram);
    world.nodes[0].receive(NOW, Port::ZERO, Box::new(packet), &mut world.out);
    assert_eq!(world.out.failure, None);
}

fn deliver(world: &mut World, packets: &[Rtcp]) {
    let mut bytes = Vec::new();
    encode(packets, &mut bytes).expect("it can be encoded");
    deliver_bytes(world, bytes);
}

fn refused(world: &World) -> u32 {
    std::mem::take(&mut world.recorded.lock().unwrap().refused)
}

fn ccfb(ssrc: u32, begin: u16, metrics: Vec<Metric>) -> Rtcp {
    Rtcp::Ccfb(Ccfb {
        sender_ssrc: 9,
        streams: vec![StreamMetrics { ssrc, begin, metrics }],
        report_timestamp: 1 << 16,
    })
}

fn received(ecn: Ecn) -> Metric {
    Metric::Received { ecn, offset: 3 }
}

#[test]
fn streams_and_packets_that_were_never_sent() {
    let (mut world, heard, first) = call(FeedbackFormat::Ccfb, Ecn::Ect1);
    for (packet, count) in [
        // another flow's stream
        (ccfb(8, first, vec![received(Ecn::Ect1); 5]), 1),
        // before the first packet, and after the last one
        (ccfb(7, first.wrapping_sub(3), vec![received(Ecn::Ect1); 3]), 3),
        (ccfb(7, first.wrapping_add(30_000), vec![Metric::NotReceived; 4]), 4),
        // no blocks at all, and no streams: an empty report, and nothing wrong
        (ccfb(7, first, vec![]), 0),
        (Rtcp::Ccfb(Ccfb { sender_ssrc: 9, ..Ccfb::default() }), 0),
        (
            Rtcp::ReceiverReport(ReceiverReport {
                ssrc: 9,
                blocks: vec![ReportBlock { ssrc: 8, ..ReportBlock::default() }],
                extension: vec![],
            }),
            1,
        ),
        (Rtcp::EcnFeedback(EcnFeedback { media_ssrc: 8, ..EcnFeedback::default() }), 1),
        (
            Rtcp::ExtendedReport(ExtendedReport {
                ssrc: 9,
                blocks: vec![ReportExtension::EcnSummary(vec![(8, EcnCounters::default()); 3])],
            }),
            3,
        ),
    ] {
        deliver(&mut world, std::slice::from_ref(&packet));
        assert_eq!(refused(&world), count, "{packet:?}");
    }
    deliver_bytes(&mut world, vec![0x81, 201, 0]);
    deliver_bytes(&mut world, Vec::new());
    assert_eq!(refused(&world), 2);
    assert_eq!(heard.lock().unwrap().results(), []);
}

#[test]
fn transport_wide_numbers_that_were_never_sent() {
    let (mut world, heard, _) = call(FeedbackFormat::Twcc, Ecn::NotEct);
    let sent = world.recorded.lock().unwrap().sent.iter().filter(|(_, packet)| packet.rtp().is_some()).count()
        as u64;
    let arrivals: Vec<_> =
        (sent - 2..sent + 3).map(|n| (n, RemoteTime::from_nanos(n as i64 * 1_000_000))).collect();
    let twcc: Vec<Twcc> = TwccBuilder::new(9, 7).build(sent - 2, &arrivals);
    deliver(&mut world, &twcc.into_iter().map(Rtcp::Twcc).collect::<Vec<_>>());
    assert_eq!((refused(&world), heard.lock().unwrap().results().len()), (3, 2));
}

#[test]
fn marks_on_packets_that_were_not_ecn_capable() {
    for (ecn, count) in [(Ecn::NotEct, 3), (Ecn::Ect0, 0)] {
        let (mut world, heard, first) = call(FeedbackFormat::Ccfb, ecn);
        let untimed = Metric::Received { ecn: Ecn::Ce, offset: Metric::UNAVAILABLE };
        deliver(
            &mut world,
            &[ccfb(7, first, vec![received(Ecn::Ce), received(Ecn::NotEct), received(Ecn::Ect1), untimed])],
        );
        assert_eq!(refused(&world), count);
        let heard = heard.lock().unwrap();
        let fields: Vec<Ecn> = heard.results().iter().map(|result| result.ecn).collect();
        let marks = heard.reports[0].1.ecn.unwrap();
        if ecn == Ecn::NotEct {
            assert_eq!(fields, [Ecn::NotEct; 3], "impossible marks do not reach the controller");
            assert_eq!((marks.not_ect, marks.ce, marks.ect1), (4, 0, 0));
        } else {
            assert_eq!(fields, [Ecn::Ce, Ecn::NotEct, Ecn::Ect1]);
            assert_eq!((marks.not_ect, marks.ce, marks.ect1), (1, 2, 1));
        }
    }
    let (mut world, heard, _) = call(FeedbackFormat::Twcc, Ecn::NotEct);
    let counters = EcnCounters { ce: 5, not_ect: 7, ..EcnCounters::default() };
    deliver(
        &mut world,
        &[Rtcp::EcnFeedback(EcnFeedback { sender_ssrc: 9, media_ssrc: 7, highest_sequence: 0, counters })],
    );
    assert_eq!(refused(&world), 1);
    assert!(heard.lock().unwrap().reports.iter().all(|(_, report)| report.ecn.is_none()));
}

#[test]
fn impossible_counts_stay_within_bounds() {
    let (mut world, heard, _) = call(FeedbackFormat::Twcc, Ecn::Ect0);
    // in one datagram, each as far ahead as a counter may be
    let far = |times: u32| times.wrapping_mul(i32::MAX.unsigned_abs());
    let packets = (1..4).map(|times| {
        let counters = EcnCounters { ect0: far(times), ect1: far(times), ..EcnCounters::default() };
        Rtcp::EcnFeedback(EcnFeedback { sender_ssrc: 9, media_ssrc: 7, highest_sequence: 0, counters })
    });
    deliver(&mut world, &packets.collect::<Vec<_>>());
    let heard = heard.lock().unwrap();
    let counts = heard.reports.iter().find_map(|(_, report)| report.ecn).expect("they are reported");
    assert_eq!((counts.ect0, counts.ect1), (u32::MAX, u32::MAX));
}

#[test]
fn ages_that_are_no_times_and_ranges_reported_twice_or_backwards() {
    let (mut world, heard, first) = call(FeedbackFormat::Ccfb, Ecn::Ect0);
    let no_time = |offset| Metric::Received { ecn: Ecn::Ce, offset };
    deliver(&mut world, &[ccfb(7, first, vec![no_time(Metric::OVER_RANGE), no_time(Metric::UNAVAILABLE)])]);
    // received, and marked, but without a time: no result for the controller
    assert!(heard.lock().unwrap().results().is_empty());
    assert_eq!(heard.lock().unwrap().reports[0].1.ecn.unwrap().ce, 2);
    let range = |from: u16| ccfb(7, first.wrapping_add(from), vec![received(Ecn::Ect0); 3]);
    // the later one first, and both once more
    deliver(&mut world, &[range(5), range(2), range(5), range(2)]);
    deliver(&mut world, &[range(2)]);
    assert_eq!(refused(&world), 0);
    let heard = heard.lock().unwrap();
    let sequences: Vec<u64> = heard.results().iter().map(|result| result.sequence).collect();
    assert_eq!(sequences, [2, 3, 4, 5, 6, 7], "each once, in order");
    let sum: u32 = heard.reports.iter().filter_map(|(_, report)| report.ecn).map(|counts| counts.ect0).sum();
    assert_eq!(sum, 6);
}

#[test]
fn a_sound_call_refuses_nothing() {
    for format in [FeedbackFormat::Ccfb, FeedbackFormat::Twcc] {
        let bounds = Bounds::new(Rate::ZERO, Rate::from_mbps(10));
        let video = StreamSettings::video(7, SourceSettings::Ideal { fps: 50.0, bounds });
        let (mut caller, callee) = one_way(vec![video], constant(Rate::from_mbps(1)).0, format);
        caller.send.as_mut().unwrap().ecn = Ecn::Ect0;
        let mut world = World::new(caller, callee, delay(20));
        world.run(Time::from_secs(30));
        assert_eq!(world.finish().refused, 0);
    }
}
