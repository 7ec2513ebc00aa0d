//! ECN between two endpoints by RFC 6679: counters of receivers, reports at senders, and their effects.

use crate::common::{Heard, World, constant, one_way, rtcp_packets};
use std::sync::{Arc, Mutex};
use tidegate_core::control::EcnCounts;
use tidegate_core::record::Breaker;
use tidegate_core::wire::rtcp::{Packet as Rtcp, ReportExtension};
use tidegate_core::{Ecn, Kind, Packet, Rate, Span, Time};
use tidegate_endpoint::{
    Bounds, EndpointSettings, FeedbackFormat, RtcpMinimum, RtcpMode, SourceSettings, StreamSettings,
};

fn video() -> StreamSettings {
    let bounds = Bounds::new(Rate::ZERO, Rate::from_mbps(10));
    StreamSettings::video(7, SourceSettings::Ideal { fps: 50.0, bounds })
}

/// A call at 1 Mb/s with ECT(0) and RFC 6679's reports.
fn call(format: FeedbackFormat) -> (EndpointSettings, EndpointSettings, Arc<Mutex<Heard>>) {
    let (controller, heard) = constant(Rate::from_mbps(1));
    let (mut caller, mut callee) = one_way(vec![video()], controller, format);
    caller.send.as_mut().unwrap().ecn = Ecn::Ect0;
    callee.receive.as_mut().unwrap().feedback.ecn_reports = true;
    for end in [&mut caller, &mut callee] {
        end.rtcp.minimum = RtcpMinimum::Fixed(Span::from_millis(500));
    }
    (caller, callee, heard)
}

fn total(heard: &Mutex<Heard>) -> EcnCounts {
    let heard = heard.lock().unwrap();
    let counts = heard.reports.iter().filter_map(|(_, report)| report.ecn);
    counts.fold(EcnCounts::default(), |sum, counts| EcnCounts {
        not_ect: sum.not_ect + counts.not_ect,
        ect0: sum.ect0 + counts.ect0,
        ect1: sum.ect1 + counts.ect1,
        ce: sum.ce + counts.ce,
    })
}

/// One packet in seven is marked, one in eleven cleared.
fn mark(packet: &Packet) -> Ecn {
    match packet.sequence {
        _ if packet.kind == Kind::Rtcp => packet.ecn,
        n if n % 7 == 0 => Ecn::Ce,
        n if n % 11 == 0 => Ecn::NotEct,
        _ => packet.ecn,
    }
}

#[test]
fn marks_are_reported_with_any_feedback() {
    for format in [FeedbackFormat::Twcc, FeedbackFormat::None, FeedbackFormat::Ccfb] {
        for mode in [RtcpMode::Free, RtcpMode::Avp, RtcpMode::Avpf] {
            let (mut caller, mut callee, heard) = call(format);
            for end in [&mut caller, &mut callee] {
                end.rtcp.mode = mode;
                end.rtcp.session_bandwidth = Rate::from_mbps(10);
            }
            caller.send.as_mut().unwrap().stop = Some(Time::from_secs(5));
            let path = Box::new(|now: Time, _, _: &Packet| Some(now + Span::from_millis(20)));
            let mut world = World::new(caller, callee, path);
            world.mark = Box::new(mark);
            world.run(Time::from_millis(4_990));
            let recorded = world.finish();
            let mut sums = EcnCounts::default();
            let last = rtcp_packets(&recorded).iter().rev().find_map(|(time, packets)| {
                let summed = packets.iter().any(|packet| matches!(packet, Rtcp::ExtendedReport(_)));
                (summed && *time + Span::from_millis(20) <= Time::from_millis(4_990)).then_some(*time)
            });
            let last = last.expect("summaries");
            let arrived =
                recorded.arrived.iter().filter(|(time, packet)| *time <= last && packet.kind == Kind::Video);
            arrived.for_each(|(_, packet)| sums.add(packet.ecn));
            let heard = total(&heard);
            let tail = if format == FeedbackFormat::Ccfb { 100 } else { 0 };
            assert!(
                heard.ce >= sums.ce && heard.ce <= sums.ce + 10 + tail,
                "{format:?} {mode:?}: {heard:?} {sums:?}"
            );
            assert!(
                heard.ect0 >= sums.ect0 && heard.ect0 <= sums.ect0 + 50 + tail,
                "{format:?} {mode:?}: {heard:?} {sums:?}"
            );
            assert!(heard.not_ect >= sums.not_ect && sums.not_ect > 20 && sums.ce > 40, "{heard:?} {sums:?}");
            assert_eq!(heard.ect1, 0);
        }
    }
}

#[test]
fn each_regular_report_has_a_summary_and_marks_are_reported_between_them() {
    let (caller, callee, _) = call(FeedbackFormat::None);
    let path = Box::new(|now: Time, _, _: &Packet| Some(now + Span::from_millis(20)));
    let mut world = World::new(caller, callee, path);
    // one mark
    world.mark = Box::new(|packet| if packet.sequence == 300 { Ecn::Ce } else { packet.ecn });
    world.run(Time::from_secs(10));
    let recorded = world.finish();
    let (mut feedback, mut reports) = (Vec::new(), 0);
    for (time, packets) in rtcp_packets(&recorded) {
        let mut summaries = 0;
        for packet in &packets {
            match packet {
                Rtcp::EcnFeedback(ecn) => feedback.push((time, ecn.counters)),
                Rtcp::ExtendedReport(report) => {
                    let [ReportExtension::EcnSummary(summary)] = &report.blocks[..] else {
                        panic!("{report:?}")
                    };
                    assert!(summary.iter().all(|&(ssrc, _)| ssrc == 7 || ssrc & 0xffff_0000 == 0x7064_0000));
                    summaries += 1;
                }
                _ => {}
            }
        }
        let receiver = packets.iter().any(|packet| matches!(packet, Rtcp::ReceiverReport(_)));
        assert_eq!(summaries, usize::from(receiver), "{packets:?}");
        reports += summaries;
    }
    assert!(reports > 10);
    // the first packet with ECT, and the mark, each at the next tick of 50 ms
    let [(first, ref before_mark), (second, ref after_mark)] = feedback[..] else { panic!("{feedback:?}") };
    assert!(before_mark.ect0 > 0 && before_mark.ce == 0 && after_mark.ce == 1);
    let arrival = recorded.arrived.iter().find(|(_, packet)| packet.ecn == Ecn::Ce).unwrap().0;
    assert!(second > arrival && second - arrival <= Span::from_millis(50));
    assert!(first <= Time::from_millis(80));
}

#[test]
fn losses_and_duplicates_are_reported() {
    let (caller, callee, _) = call(FeedbackFormat::Twcc);
    let path = Box::new(|now: Time, _, packet: &Packet| {
        let lost = packet.kind == Kind::Video && packet.sequence % 10 == 3;
        (!lost).then_some(now + Span::from_millis(20))
    });
    let mut world = World::new(caller, callee, path);
    world.run(Time::from_secs(5));
    let recorded = world.finish();
    let last = rtcp_packets(&recorded).into_iter().rev().find_map(|(time, packets)| {
        packets.iter().find_map(|packet| match packet {
            Rtcp::ExtendedReport(report) => {
                report.ecn().find(|&(ssrc, _)| ssrc == 7).map(|(_, recorded)| (time, recorded))
            }
            _ => None,
        })
    });
    let (time, counters) = last.expect("a summary");
    let arrived =
        recorded.arrived.iter().filter(|(when, packet)| *when <= time && packet.kind == Kind::Video);
    let highest = arrived.clone().map(|(_, packet)| packet.rtp().unwrap().sequence).next_back().unwrap();
    let first = arrived.clone().map(|(_, packet)| packet.rtp().unwrap().sequence).next().unwrap();
    let count = arrived.count() as u32;
    assert_eq!(counters.ect0, count);
    assert_eq!(u32::from(counters.lost), u32::from(highest.wrapping_sub(first)) + 1 - count);
    assert!(counters.lost > 20 && counters.duplicated == 0);
}

#[test]
fn marks_on_ect0_count_as_lost_for_the_circuit_breaker_and_those_on_ect1_do_not() {
    for (codepoint, trips) in [(Ecn::Ect0, true), (Ecn::Ect1, false)] {
        let (mut caller, callee, _) = call(FeedbackFormat::None);
        caller.send.as_mut().unwrap().ecn = codepoint;
        let path = Box::new(|now: Time, from, _: &Packet| {
            Some(now + Span::from_millis(if from == 0 { 50 } else { 450 }))
        });
        let mut world = World::new(caller, callee, path);
        // half are marked, none lost: 10 X = 80 kb / (0.5 s sqrt(2/6)) = 277 kb/s at least, and 1 Mb/s is sent
        world.mark = Box::new(|packet| {
            if packet.kind == Kind::Video && packet.sequence % 2 == 0 { Ecn::Ce } else { packet.ecn }
        });
        world.run(Time::from_secs(30));
        let tripped = world.finish().tripped;
        assert_eq!(tripped.first().map(|&(_, breaker)| breaker), trips.then_some(Breaker::Congestion));
    }
}
