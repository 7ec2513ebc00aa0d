//! Circuit breakers of a real sender with a real receiver (RFC 8083): the conditions and times at which they trip.

use crate::common::{World, constant, media, one_way, rtcp_packets};
use tidegate_core::record::Breaker;
use tidegate_core::wire::rtcp::Packet as Rtcp;
use tidegate_core::{Kind, Packet, Rate, Span, Time};
use tidegate_endpoint::{CircuitBreakerUse, FeedbackFormat, RtcpMinimum, SourceSettings, StreamSettings};

/// Packets of 1000 bytes of RTP, header included, 100 a second.
fn hundred_a_second() -> StreamSettings {
    let rates = vec![(Span::ZERO, Rate::from_bps(8 * 1000 * 100))];
    let settings = tidegate_endpoint::media::packets::Settings { size: 1000, overhead: 0, rates };
    StreamSettings::video(7, SourceSettings::Packets(settings))
}

/// A call of 60 s over a path of 50 ms each way, which loses the packets for which `lose` is true: its arguments are
/// the sender, the time, the packet, and the number of media packets so far.
fn call(
    breaker: CircuitBreakerUse,
    format: FeedbackFormat,
    mut lose: impl FnMut(usize, Time, &Packet, u64) -> bool + 'static,
) -> crate::common::Recorded {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, mut callee) = one_way(vec![hundred_a_second()], controller, format);
    caller.send.as_mut().unwrap().circuit_breaker = breaker;
    for end in [&mut caller, &mut callee] {
        end.rtcp.minimum = RtcpMinimum::Fixed(Span::from_secs(1));
        end.rtcp.session_bandwidth = Rate::from_mbps(1);
    }
    let mut count = 0;
    let path = move |now: Time, from, packet: &Packet| {
        count += u64::from(packet.kind == Kind::Video);
        (!lose(from, now, packet, count)).then_some(now + Span::from_millis(50))
    };
    let mut world = World::new(caller, callee, Box::new(path));
    world.run(Time::from_secs(60));
    world.finish()
}

fn tripped(lose: impl FnMut(usize, Time, &Packet, u64) -> bool + 'static) -> Vec<(Time, Breaker)> {
    call(CircuitBreakerUse::Watch, FeedbackFormat::None, lose).tripped
}

#[test]
fn a_sound_path_trips_nothing() {
    assert_eq!(tripped(|_, _, _, _| false), []);
}

#[test]
fn congestion_trips_by_the_equation() {
    // 10 X = 10 * 1000 / (Tr sqrt(2p/3)) bytes/s against 100000: it trips above sqrt(2p/3) = 0.1 / Tr = 1 at the round trip
    // of 100 ms, which no loss reaches; with 400 ms more on the way back at 0.2, p = 0.06
    for (one_in, trips) in [(15, true), (18, false)] {
        let mut last = None;
        let recorded = {
            let (controller, _) = constant(Rate::from_mbps(1));
            let (mut caller, mut callee) =
                one_way(vec![hundred_a_second()], controller, FeedbackFormat::None);
            for end in [&mut caller, &mut callee] {
                end.rtcp.minimum = RtcpMinimum::Fixed(Span::from_secs(1));
            }
            let mut count = 0u64;
            let path = move |now: Time, from, packet: &Packet| {
                count += u64::from(packet.kind == Kind::Video);
                let lost = packet.kind == Kind::Video && count.is_multiple_of(one_in);
                (!lost).then_some(now + Span::from_millis(if from == 0 { 50 } else { 450 }))
            };
            let mut world = World::new(caller, callee, Box::new(path));
            world.run(Time::from_secs(60));
            world.finish()
        };
        // the report that trips it is the one with which CB_INTERVAL intervals are full: of 5 s, ten round trips
        let reports: Vec<Time> = rtcp_packets(&recorded)
            .iter()
            .filter(|(_, packets)| {
                packets.iter().any(|p| matches!(p, Rtcp::ReceiverReport(r) if !r.blocks.is_empty()))
            })
            .map(|&(time, _)| time + Span::from_millis(450))
            .collect();
        if let [(time, breaker)] = recorded.tripped[..] {
            assert_eq!(breaker, Breaker::Congestion);
            last = reports.iter().position(|&report| report == time);
        }
        assert_eq!(last.is_some(), trips, "one in {one_in}: {:?}", recorded.tripped);
        // five intervals end with the sixth block; the round trip is known from the second or third on
        if trips {
            assert!((5..=8).contains(&last.unwrap()), "report {last:?}");
        }
    }
}

#[test]
fn media_times_out_at_the_fifth_report_without_reception() {
    let recorded = call(CircuitBreakerUse::Watch, FeedbackFormat::None, |from, now, packet, _| {
        from == 0 && now >= Time::from_secs(10) && packet.kind == Kind::Video
    });
    let [(time, Breaker::MediaTimeout)] = recorded.tripped[..] else { panic!("{:?}", recorded.tripped) };
    let empty: Vec<Time> = rtcp_packets(&recorded)
        .iter()
        .filter(|(_, packets)| {
            packets.iter().any(|p| matches!(p, Rtcp::ReceiverReport(r) if r.blocks.is_empty()))
        })
        .map(|&(sent, _)| sent + Span::from_millis(50))
        .collect();
    assert_eq!(empty.iter().position(|&report| report == time), Some(4), "{empty:?}");
}

#[test]
fn rtcp_times_out_15_s_after_it_was_heard_last() {
    let recorded = call(CircuitBreakerUse::Watch, FeedbackFormat::None, |from, now, _, _| {
        from == 1 && now >= Time::from_secs(10)
    });
    let reports = rtcp_packets(&recorded);
    let is_heard = |packets: &[Rtcp]| packets.iter().any(|p| matches!(p, Rtcp::ReceiverReport(_)));
    let heard = reports.iter().rfind(|(time, packets)| *time < Time::from_secs(10) && is_heard(packets));
    let heard = heard.expect("a report in 10 s").0 + Span::from_millis(50);
    assert_eq!(recorded.tripped, [(heard + Span::from_secs(15), Breaker::RtcpTimeout)]);
}

#[test]
fn feedback_without_a_report_keeps_rtcp_from_timing_out_and_trips_nothing_else() {
    // after 10 s only transport-wide feedback comes back, which is no report
    let recorded = call(CircuitBreakerUse::Watch, FeedbackFormat::Twcc, |from, now, packet, _| {
        let compound = packet.rtcp().is_some_and(|bytes| bytes[1] == 201);
        from == 1 && now >= Time::from_secs(10) && compound
    });
    assert_eq!(recorded.tripped, []);
}

#[test]
fn a_sender_that_obeys_stops_at_once_and_says_goodbye() {
    let lose = |from: usize, _: Time, packet: &Packet, _: u64| from == 1 && packet.kind == Kind::Rtcp;
    let recorded = call(CircuitBreakerUse::Act, FeedbackFormat::None, lose);
    assert_eq!(recorded.tripped, [(Time::from_secs(15), Breaker::RtcpTimeout)]);
    let last = media(&recorded).last().expect("media").0;
    assert!(last >= Time::from_millis(14_980) && last < Time::from_secs(15), "{last}");
    let byes: Vec<Time> = rtcp_packets(&recorded)
        .iter()
        .filter(|(_, packets)| packets.iter().any(|packet| matches!(packet, Rtcp::Bye(_))))
        .map(|&(time, _)| time)
        .collect();
    assert_eq!(byes, [Time::from_secs(15)]);
    // and where a report trips it
    let recorded = call(CircuitBreakerUse::Act, FeedbackFormat::None, |from, now, packet, _| {
        from == 0 && now >= Time::from_secs(10) && packet.kind == Kind::Video
    });
    let [(time, Breaker::MediaTimeout)] = recorded.tripped[..] else { panic!("{:?}", recorded.tripped) };
    let last = media(&recorded).last().expect("media").0;
    assert!(last <= time && time - last <= Span::from_millis(10), "{last} {time}");
}

#[test]
fn watch_changes_nothing_and_off_records_nothing() {
    let lose = |from: usize, _: Time, packet: &Packet, _: u64| from == 1 && packet.kind == Kind::Rtcp;
    let watched = call(CircuitBreakerUse::Watch, FeedbackFormat::None, lose);
    let off = call(CircuitBreakerUse::Off, FeedbackFormat::None, lose);
    assert_eq!(watched.tripped, [(Time::from_secs(15), Breaker::RtcpTimeout)]);
    assert_eq!(off.tripped, []);
    assert_eq!(media(&watched), media(&off));
}
