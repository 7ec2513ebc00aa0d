//! A simple application: a fixed number of large packets, one in each interval, then goodbye (Hoang's thesis, 2017,
//! section 3.3).

use crate::common::*;
use std::sync::{Arc, Mutex};
use tidegate_core::control::{Context, Limits, Outgoing, Report};
use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp;
use tidegate_core::{Controller, Decision, FlowId, Node as _, Outbox, Packet, Rate, RouteId, Span, Time};
use tidegate_endpoint::{
    Bounds, Endpoint, EndpointSettings, FeedbackFormat, ReceiveSettings, RtcpMinimum, SendSettings,
    SourceSettings, StreamSettings,
};

/// Bytes of an RTP packet, and of its header with both extensions.
const SIZE: u16 = 24_000;
const HEADER: u16 = 24;

fn greedy(ssrc: u32) -> StreamSettings {
    StreamSettings::video(ssrc, SourceSettings::Greedy(Bounds::default()))
}

/// A one-way call of `packets` RTP packets of [`SIZE`] bytes, with feedback every `interval`.
fn application(
    controller: Box<dyn Controller>,
    format: FeedbackFormat,
    packets: u64,
    interval: Span,
) -> (EndpointSettings, EndpointSettings) {
    let (mut caller, mut callee) = one_way(vec![greedy(1)], controller, format);
    let send = caller.send.as_mut().unwrap();
    (send.payload, send.packets) = (SIZE - HEADER, Some(packets));
    callee.receive.as_mut().unwrap().feedback.interval = Some(interval);
    (caller, callee)
}

fn times(recorded: &Recorded) -> Vec<Time> {
    media(recorded).iter().map(|(time, _)| *time).collect()
}

fn goodbyes(recorded: &Recorded) -> Vec<Time> {
    let bye = |packets: &[rtcp::Packet]| packets.iter().any(|p| matches!(p, rtcp::Packet::Bye(_)));
    rtcp_packets(recorded).into_iter().filter(|(_, packets)| bye(packets)).map(|(time, _)| time).collect()
}

/// Whether a packet was sent by the peer with this route, 0 or 1.
fn sent_by(route: u32) -> impl Fn(&&(Time, Packet)) -> bool {
    move |(_, packet)| packet.route == RouteId(route)
}

#[test]
fn packets_larger_than_a_burst_leave_one_every_interval() {
    for (bps, factor) in [(7_200_000, 1.0), (3_000_000, 1.0), (9_999_999, 1.0), (7_200_000, 2.5)] {
        let rate = Rate::from_bps(bps);
        let pacing = Rate::from_bps_f64(bps as f64 * factor);
        let (controller, heard) = scripted(vec![(Time::ZERO, Decision { pacing, ..Decision::rate(rate) })]);
        let (caller, callee) = application(controller, FeedbackFormat::Twcc, 1000, Span::from_secs(3));
        let mut world = World::new(caller, callee, delay(10));
        world.run(Time::from_secs(100));
        let recorded = world.finish();
        assert!(media(&recorded).iter().all(|(_, p)| p.size == u32::from(SIZE) + 28));
        let times = times(&recorded);
        assert_eq!(times.len(), 1000);
        for (k, time) in times.iter().enumerate() {
            let ideal = k as f64 * f64::from(SIZE) * 8.0 / bps as f64;
            // the encoder's rate is in whole bit/s and its gap in whole ns, which sums up over the packets
            let error = (time.as_secs_f64() - ideal).abs();
            assert!(error <= ideal / bps as f64 + k as f64 * 1e-9 + 1e-9, "{error} s at packet {k}, {bps}");
        }
        assert!(heard.lock().unwrap().limits.iter().all(|(_, limits)| !limits.app_limited));
    }
}

#[test]
fn a_new_target_changes_the_distance_at_once() {
    let ms = Time::from_millis;
    let script = vec![
        (Time::ZERO, Decision::rate(Rate::from_bps(4_800_000))),
        // a packet every 40 ms until then; halfway between two of them it becomes one every 64 ms
        (ms(100), Decision::rate(Rate::from_mbps(3))),
        (ms(1000), Decision::rate(Rate::from_mbps(6))),
    ];
    let (controller, _) = scripted(script);
    let (caller, callee) = application(controller, FeedbackFormat::Twcc, 1000, Span::from_secs(3));
    let mut world = World::new(caller, callee, delay(10));
    world.run(ms(1100));
    let times: Vec<i64> = times(&world.finish()).iter().map(|time| time.as_nanos()).collect();
    // half a packet was paid for at 100 ms, the rest takes 32 ms; at 1 s 36/64 are paid for, and 14 ms of 32 remain
    let slow = (0..14).map(|k| 132 + 64 * k);
    let expected: Vec<i64> = [0, 40, 80].into_iter().chain(slow).chain([1014, 1046, 1078]).collect();
    assert_eq!(times.len(), expected.len(), "{times:?}");
    for (time, ms) in times.iter().zip(expected) {
        assert!((time - ms * 1_000_000).abs() <= 20, "{time} ns for {ms} ms");
    }
}

#[test]
fn the_largest_packet_is_that_of_ip() {
    let endpoint = |payload: u16, overhead: u32| {
        let (controller, _) = constant(Rate::from_mbps(10));
        let (mut caller, callee) = application(controller, FeedbackFormat::Twcc, 3, Span::from_secs(3));
        caller.send.as_mut().unwrap().payload = payload;
        caller.overhead = overhead;
        Endpoint::new(caller).map(|_| callee).map_err(|error| error.to_string())
    };
    // 28 bytes of IP and UDP, also where less is counted: a capture has them
    for (overhead, largest) in [(28, 65_483), (0, 65_483), (100, 65_411)] {
        assert!(endpoint(largest, overhead).is_ok());
        let refused = endpoint(largest + 1, overhead).err().unwrap();
        assert!(refused.contains(&format!("at most {largest} bytes fit")), "{refused}");
    }

    let (controller, heard) = constant(Rate::from_mbps(10));
    let (mut caller, callee) = application(controller, FeedbackFormat::Twcc, 3, Span::from_millis(50));
    caller.send.as_mut().unwrap().payload = 65_483;
    let mut world = World::with_bytes(caller, callee, delay(10), true);
    world.run(Time::from_secs(2));
    let recorded = world.finish();
    assert_eq!(media(&recorded).iter().map(|(_, p)| p.size).collect::<Vec<_>>(), [65_535; 3]);
    let lengths = recorded.bytes.iter().filter(|(p, _)| p.rtcp().is_none()).map(|(_, bytes)| bytes.len());
    assert_eq!(lengths.collect::<Vec<_>>(), [65_507; 3]);
    assert!(!heard.lock().unwrap().results().is_empty());
}

#[test]
fn a_stamp_that_does_not_fit_is_refused() {
    struct Stamping;
    impl Controller for Stamping {
        fn on_report(&mut self, _: Time, _: &Report, cx: &mut Context<'_>) -> Decision {
            cx.unchanged()
        }
        fn on_limits(&mut self, _: Time, _: &Limits, _: &mut Context<'_>) -> Decision {
            Decision::rate(Rate::from_mbps(10))
        }
        fn stamp(&mut self, _: Time, _: &Outgoing) -> Option<Extension> {
            Some(Extension { id: 9, data: vec![7; 16] })
        }
    }
    // 16 bytes and one of its header make 24 with the rest of the extensions
    for (payload, failure) in
        [(65_467, None), (65_468, Some("an RTP packet with the stamp has 65508 bytes; at most 65507"))]
    {
        let (mut caller, _) = application(Box::new(Stamping), FeedbackFormat::Twcc, 3, Span::from_secs(3));
        caller.send.as_mut().unwrap().payload = payload;
        let mut out = Outbox::new(1, Box::new(tidegate_core::record::NullRecorder));
        host(caller, 0).advance(Time::ZERO, &mut out);
        match failure {
            None => assert_eq!(out.failure, None),
            Some(words) => {
                assert!(
                    out.failure.as_ref().is_some_and(|reason| reason.contains(words)),
                    "{:?}",
                    out.failure
                )
            }
        }
    }
}

#[test]
fn after_the_set_number_of_packets_of_all_streams_comes_the_goodbye() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let streams = vec![greedy(1), StreamSettings::audio(2, SourceSettings::AUDIO)];
    let (mut caller, callee) = one_way(streams, controller, FeedbackFormat::Twcc);
    caller.send.as_mut().unwrap().packets = Some(100);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let packets = media(&recorded);
    assert_eq!(packets.len(), 100);
    assert!(packets.iter().any(|(_, p)| p.kind == tidegate_core::Kind::Audio), "audio counts, too");
    let last = packets[99].0;
    assert_eq!(goodbyes(&recorded), [last], "with the last packet");
    assert!(recorded.sent.iter().filter(sent_by(0)).all(|(time, _)| *time <= last), "and nothing after it");

    // a stop that comes first, and a pause that delays the end
    for (stop, pauses, count) in [(Some(400), vec![], 11), (None, vec![(100, 5_000)], 50)] {
        let (controller, _) = constant(Rate::from_bps(4_800_000));
        let (mut caller, callee) = application(controller, FeedbackFormat::Twcc, 50, Span::from_millis(50));
        let send = caller.send.as_mut().unwrap();
        send.stop = stop.map(Time::from_millis);
        send.streams[0].pauses =
            pauses.into_iter().map(|(from, to)| (Time::from_millis(from), Time::from_millis(to))).collect();
        // one every 40 ms: the eleventh would leave at 400 ms, when it stops
        let count = if stop.is_some() { count - 1 } else { count };
        let mut world = World::new(caller, callee, delay(20));
        world.run(Time::from_secs(60));
        let recorded = world.finish();
        assert_eq!(times(&recorded).len(), count);
        let end = stop.map_or(*times(&recorded).last().unwrap(), Time::from_millis);
        assert_eq!(goodbyes(&recorded), [end]);
    }
}

#[test]
fn feedback_every_3_s_covers_each_packet_up_to_the_last_report() {
    for format in [FeedbackFormat::Twcc, FeedbackFormat::Ccfb] {
        for packets in [100, 1000] {
            let (controller, heard) = constant(Rate::from_bps(7_200_000));
            let (caller, callee) = application(controller, format, packets, Span::from_secs(3));
            // every seventh is lost
            let mut count = 0;
            let path = move |now: Time, from: usize, packet: &Packet| {
                count += u32::from(from == 0 && packet.rtcp().is_none());
                let lost = from == 0 && packet.rtcp().is_none() && count % 7 == 0;
                (!lost).then(|| now + Span::from_millis(10))
            };
            let mut world = World::new(caller, callee, Box::new(path));
            world.run(Time::from_secs(100));
            let recorded = world.finish();
            let times = times(&recorded);
            assert_eq!(times.len() as u64, packets);
            let end = *times.last().unwrap();

            let with_packets = |(time, report): &(Time, Report)| {
                (!report.packets.is_empty()).then(|| (*time, report.packets.clone()))
            };
            let reports: Vec<_> = heard.lock().unwrap().reports.iter().filter_map(with_packets).collect();
            // the first packet arrives at 10 ms, and each report takes as long: 3.02 s, 6.02 s ...
            let ticks = (end.as_nanos() - 20_000_000) / 3_000_000_000;
            assert_eq!(reports.len() as i64, ticks);
            let mut next = 0;
            for (k, (time, results)) in reports.iter().enumerate() {
                assert_eq!(*time, Time::from_millis(3_020 + 3_000 * k as i64));
                for result in results {
                    assert_eq!(result.sequence, next, "each once, in order, from the first packet on");
                    assert_eq!(result.arrival.is_some(), (next + 1) % 7 != 0);
                    assert_eq!(result.sent, times[next as usize]);
                    next += 1;
                }
            }
            // arrivals after the last report before the goodbye are reported, but not received: the sender has left
            // (RFC 3550 section 6.3.7), and its controller with it
            let after: Vec<Time> =
                rtcp_packets(&recorded).iter().map(|(time, _)| *time).filter(|time| *time > end).collect();
            assert_eq!(after, [Time::from_millis(10 + 3_000 * (ticks + 1))], "{format:?}, {packets}");
            assert!(next < packets);
        }
    }
}

#[test]
fn reports_have_the_set_interval() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, mut callee) = application(controller, FeedbackFormat::None, 30_000, Span::from_secs(3));
    for end in [&mut caller, &mut callee] {
        end.rtcp.minimum = RtcpMinimum::Fixed(Span::from_secs(3));
    }
    let mut world = World::new(caller, callee, delay(10));
    world.run(Time::from_secs(6_000));
    let recorded = world.finish();
    for route in [0, 1] {
        let times: Vec<f64> = recorded
            .sent
            .iter()
            .filter(sent_by(route))
            .filter(|(_, p)| p.rtcp().is_some())
            .map(|(time, _)| time.as_secs_f64())
            .collect();
        // half of it before the first one, and RFC 3550 section 6.3.1 makes 0.5 to 1.5 of it over e - 1.5
        assert!((0.5 * 0.5 * 3.0 / 1.2183..1.5 * 0.5 * 3.0 / 1.2182).contains(&times[0]), "{}", times[0]);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (0.5 * 3.0 / 1.2183..1.5 * 3.0 / 1.2182).contains(gap)));
        // timer reconsideration makes the mean 3 s and the deviation at most 1.5 / sqrt(3) / 1.218 * 3 s = 2.1 s
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!(gaps.len() > 1_900 && (mean - 3.0).abs() < 4.0 * 2.1 / (gaps.len() as f64).sqrt(), "{mean}");
    }
}

/// Two endpoints that send these numbers of packets of [`SIZE`] bytes, and the inputs of their controllers.
fn full_duplex(packets: [u64; 2], format: FeedbackFormat) -> (World, [Arc<Mutex<Heard>>; 2]) {
    let side = |name: &str, flow: u32| {
        let (controller, heard) = constant(Rate::from_bps(4_800_000));
        let mut send = SendSettings::new(FlowId(flow), controller);
        send.streams = vec![greedy(0x100 * (flow + 1))];
        (send.payload, send.packets) = (SIZE - HEADER, Some(packets[flow as usize]));
        send.feedback = format;
        let mut settings = EndpointSettings::new(name, SEED);
        settings.rtcp.minimum = RtcpMinimum::Fixed(Span::from_millis(200));
        (settings, send, heard)
    };
    let (mut first, first_send, first_heard) = side("alice", 0);
    let (mut second, second_send, second_heard) = side("bob", 1);
    first.receive = Some(ReceiveSettings::new(&second_send));
    second.receive = Some(ReceiveSettings::new(&first_send));
    (first.send, second.send) = (Some(first_send), Some(second_send));
    (World::new(first, second, delay(10)), [first_heard, second_heard])
}

#[test]
fn the_goodbye_of_one_direction_ends_only_its_own_reports() {
    // one packet every 40 ms: alice is done at 3.96 s, bob at 11.96 s
    // without per-packet feedback the one that leaves last receives nothing, and has to fall silent by itself
    let cases = [([100, 300], FeedbackFormat::Twcc), ([300, 100], FeedbackFormat::None)];
    for (packets, format) in cases {
        let (mut world, heard) = full_duplex(packets, format);
        world.run(Time::from_secs(100));
        let recorded = world.finish();
        let (short, long) = if packets[0] < packets[1] { (0, 1) } else { (1, 0) };
        let near = |ms: i64| move |time: Time| (time - Time::from_millis(ms)).abs() < Span::from_micros(1);
        let (early, late) = (goodbyes(&recorded)[0], goodbyes(&recorded)[1]);
        assert_eq!(goodbyes(&recorded).len(), 2);
        assert!(near(3_960)(early) && near(11_960)(late), "{early}, {late}");

        // times of the reports of `side` with blocks on its peer's media
        let blocks = |side: usize| -> Vec<Time> {
            let sent = recorded.sent.iter().filter(sent_by(side as u32));
            sent.filter(|(_, p)| {
                let packets = p.rtcp().map(|bytes| rtcp::decode(bytes).unwrap()).unwrap_or_default();
                packets.iter().any(|packet| match packet {
                    rtcp::Packet::SenderReport(report) => !report.blocks.is_empty(),
                    rtcp::Packet::ReceiverReport(report) => !report.blocks.is_empty(),
                    _ => false,
                })
            })
            .map(|(time, _)| *time)
            .collect()
        };
        // the remaining sender is reported on to the end; one more report may cover the one that has left
        let second = Span::from_secs(1);
        assert!(
            blocks(short).iter().any(|time| *time > late - second),
            "the one that left goes on receiving"
        );
        let late_reports = blocks(long).into_iter().filter(|time| *time > early).count();
        assert!(late_reports <= 1, "{late_reports} reports on a stream that has gone");
        let last = |side: usize| heard[side].lock().unwrap().reports.last().unwrap().0;
        assert!(last(short) <= early && last(long) > late - second);
        // and when both have left, there is silence
        let silence = late + Span::from_millis(100);
        assert!(recorded.sent.iter().all(|(time, _)| *time <= silence), "RTCP in a session that is over");
    }
}
