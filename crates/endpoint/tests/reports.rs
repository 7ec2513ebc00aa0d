//! Reports of real endpoints at the times of libwebrtc's rule: which end sends which, how often, and its circuit breaker.

use crate::common::{Recorded, World, constant, delay, one_way, rtcp_packets};
use tidegate_core::record::Breaker;
use tidegate_core::wire::rtcp::Packet as Rtcp;
use tidegate_core::{FlowId, Kind, Packet, Rate, Span, Time};
use tidegate_endpoint::{
    Bounds, Endpoint, EndpointSettings, FeedbackFormat, ReceiveSettings, RtcpMinimum, RtcpMode, SendSettings,
    SourceSettings, StreamSettings,
};

fn video() -> StreamSettings {
    let bounds = Bounds::new(Rate::from_kbps(150), Rate::from_mbps(5));
    StreamSettings::video(0x11, SourceSettings::Ideal { fps: 25.0, bounds })
}

fn audio() -> StreamSettings {
    let interval = Span::from_millis(20);
    StreamSettings::audio(0x12, SourceSettings::Cbr { rate: Rate::from_kbps(32), interval, spurts: None })
}

/// A call of 1.8 Mb/s in one direction, whose ends report by libwebrtc's rule.
fn call(streams: Vec<StreamSettings>) -> (EndpointSettings, EndpointSettings) {
    let (controller, _) = constant(Rate::from_kbps(1800));
    let (mut caller, mut callee) = one_way(streams, controller, FeedbackFormat::Twcc);
    for end in [&mut caller, &mut callee] {
        end.rtcp.minimum = RtcpMinimum::Libwebrtc;
    }
    (caller, callee)
}

/// Times at which the end on `route` sent sender reports, of one stream or several, and a receiver report, with the
/// number of blocks.
fn reports(recorded: &Recorded, route: u32) -> [Vec<(Time, usize)>; 2] {
    let mut reports = [Vec::new(), Vec::new()];
    let compounds = recorded.sent.iter().filter(|(_, p)| p.kind == Kind::Rtcp && p.route.0 == route);
    for (time, packet) in compounds {
        let packets = tidegate_core::wire::rtcp::decode(packet.rtcp().expect("RTCP")).expect("our own");
        for packet in packets {
            match packet {
                Rtcp::SenderReport(_) if reports[0].last().is_some_and(|&(last, _)| last == *time) => {}
                Rtcp::SenderReport(report) => reports[0].push((*time, report.blocks.len())),
                Rtcp::ReceiverReport(report) => reports[1].push((*time, report.blocks.len())),
                _ => {}
            }
        }
    }
    reports
}

/// The mean time between two reports in seconds, with the shortest and the longest.
fn spread(reports: &[(Time, usize)]) -> [f64; 3] {
    let gaps: Vec<f64> = reports.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    [mean, gaps.iter().copied().fold(f64::MAX, f64::min), gaps.iter().copied().fold(0.0, f64::max)]
}

#[test]
fn a_sender_of_video_reports_by_its_rate_and_its_receiver_each_second() {
    let (caller, callee) = call(vec![video(), audio()]);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(1000));
    let recorded = world.finish();
    let [sent, none] = reports(&recorded, 0);
    assert!(none.is_empty());
    // headers count: 1.8 Mb/s of video and audio together
    let [mean, least, most] = spread(&sent[1..]);
    assert!((mean - 0.2).abs() < 0.004, "{mean}");
    assert!(least >= 0.098 && most <= 0.306, "{least} {most}");
    // half a second after the call has begun, at its sender and, with the first packet, at its receiver; the report
    // covers streams of audio, too
    assert_eq!((sent[0].0, sent.len() > 4900), (Time::from_millis(500), true));
    let [none, received] = reports(&recorded, 1);
    assert!(none.is_empty());
    assert!((0.52..0.53).contains(&(received[0].0 - Time::ZERO).as_secs_f64()), "{}", received[0].0);
    let [mean, least, most] = spread(&received);
    assert!(
        (mean - 1.0).abs() < 0.04 && (0.5..=1.5).contains(&least) && most <= 1.5,
        "{mean} {least} {most}"
    );
    assert!(received.iter().all(|&(_, blocks)| blocks == 2));
}

#[test]
fn audio_alone_is_reported_each_five_seconds_by_both_ends() {
    let (caller, callee) = call(vec![audio()]);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(5000));
    let recorded = world.finish();
    for reports in [&reports(&recorded, 0)[0], &reports(&recorded, 1)[1]] {
        let [mean, least, most] = spread(&reports[1..]);
        assert!((mean - 5.0).abs() < 0.2 && least >= 2.5 && most <= 7.5, "{mean} {least} {most}");
    }
}

#[test]
fn an_end_that_sends_and_receives_reports_on_each_by_itself() {
    let (mut caller, mut callee) = call(vec![video()]);
    let (controller, _) = constant(Rate::from_kbps(1800));
    let mut send = SendSettings::new(FlowId(2), controller);
    send.streams = vec![video()];
    caller.receive = Some(ReceiveSettings::new(&send));
    callee.send = Some(send);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(500));
    let recorded = world.finish();
    assert_eq!(recorded.tripped, [], "sender reports without blocks do not say that nothing arrives");
    for route in [0, 1] {
        let [sending, receiving] = reports(&recorded, route);
        assert!(sending.iter().all(|&(_, blocks)| blocks == 0), "{route}");
        assert!(receiving[1..].iter().all(|&(_, blocks)| blocks == 1), "{route}");
        let ([sending, ..], [receiving, ..]) = (spread(&sending[1..]), spread(&receiving));
        assert!((sending - 0.2).abs() < 0.006 && (receiving - 1.0).abs() < 0.06, "{sending} {receiving}");
    }
    // round trips are known at both ends: blocks echo the other end's sender reports
    let packets = rtcp_packets(&recorded).into_iter().flat_map(|(_, packets)| packets);
    let echoed = packets.filter_map(|packet| match packet {
        Rtcp::ReceiverReport(report) => report.blocks.first().map(|block| block.last_sr),
        _ => None,
    });
    assert!(echoed.skip(2).all(|last| last != 0));
}

/// RFC 8083 section 4.2: five reports of the receiver in a row, each second in the mean, say that nothing arrives.
#[test]
fn a_media_timeout_takes_five_reports_of_the_receiver() {
    let (caller, callee) = call(vec![video()]);
    let dies = Time::from_secs(20);
    let lossy = move |now: Time, from: usize, packet: &Packet| {
        let lost = from == 0 && packet.kind != Kind::Rtcp && now >= dies;
        (!lost).then_some(now + Span::from_millis(20))
    };
    let mut world = World::new(caller, callee, Box::new(lossy));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let [(time, Breaker::MediaTimeout)] = recorded.tripped[..] else { panic!("{:?}", recorded.tripped) };
    // the report after the loss has news of before; those after it have none, and the fifth of them trips
    let [_, received] = reports(&recorded, 1);
    let late: Vec<Time> =
        received.iter().map(|&(time, _)| time + Span::from_millis(20)).filter(|&time| time > dies).collect();
    assert_eq!(time, late[5]);
    assert!((2.5..=9.0).contains(&(time - dies).as_secs_f64()), "{time}");
}

#[test]
fn a_goodbye_ends_the_reports() {
    let (mut caller, callee) = call(vec![video()]);
    caller.send.as_mut().unwrap().stop = Some(Time::from_secs(10));
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let last = rtcp_packets(&recorded).last().unwrap().0;
    assert!(last <= Time::from_millis(10_020), "{last}");
}

#[test]
fn other_profiles_have_times_of_their_own() {
    for mode in [RtcpMode::Avp, RtcpMode::Avpf] {
        let (mut caller, _) = call(vec![video()]);
        caller.rtcp.mode = mode;
        let error = Endpoint::new(caller).err().expect("refused").to_string();
        assert!(error.contains("reports at libwebrtc's times in the mode Avp"), "{error}");
    }
}
