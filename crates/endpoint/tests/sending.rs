//! The packets that an endpoint sends: sizes, marks, pacing, limits, padding.

use crate::common::*;
use tidegate_core::control::{Context, Counts, Limits, NewFrame, Outgoing, Probe, Probes, Report, Sent};
use tidegate_core::datagram::{Extension, RtpBody};
use tidegate_core::wire::rtp;
use tidegate_core::{Body, Controller, Decision, FlowId, Frame, Kind, Packet, Rate, Size, Span, Time};
use tidegate_endpoint::{
    ABS_SEND_TIME_ID, Bounds, Clock, FeedbackFormat, SourceSettings, StreamSettings, TRANSPORT_SEQUENCE_ID,
};

const VIDEO: u32 = 0x11;
const AUDIO: u32 = 0x22;

fn greedy() -> Vec<StreamSettings> {
    vec![StreamSettings::video(VIDEO, SourceSettings::Greedy(Bounds::default()))]
}

fn ideal(min_kbps: u64, max_kbps: u64) -> StreamSettings {
    let bounds = Bounds::new(Rate::from_kbps(min_kbps), Rate::from_kbps(max_kbps));
    StreamSettings::video(VIDEO, SourceSettings::Ideal { fps: 25.0, bounds })
}

fn body(packet: &Packet) -> RtpBody {
    match packet.body {
        Body::Rtp(body) => body,
        _ => panic!("not RTP: {packet:?}"),
    }
}

/// The rate of the packets' RTP bytes over the whole time.
fn rate(packets: &[(Time, Packet)], seconds: f64) -> f64 {
    packets.iter().map(|(_, p)| f64::from(p.size - 28) * 8.0).sum::<f64>() / seconds
}

#[test]
fn a_greedy_flow_sends_full_packets_at_the_target() {
    let (controller, heard) = constant(Rate::from_mbps(2));
    let (caller, callee) = one_way(greedy(), controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(30));
    let recorded = world.finish();
    let packets = media(&recorded);
    // 1200 payload + 12 + 4 + (4 + 3 padded to 8) + 28
    assert!(packets.iter().all(|(_, p)| p.size == 1252 && p.kind == Kind::Video));
    let measured = rate(&packets, 30.0);
    assert!((measured - 2e6).abs() < 2e3, "{measured}");
    // numbers: every packet of the flow in this direction counts, RTCP too
    let ours: Vec<u32> =
        recorded.sent.iter().filter(|(_, p)| p.route.0 == 0).map(|(_, p)| p.sequence).collect();
    assert!(ours.iter().copied().eq(0..ours.len() as u32));
    let first = body(&packets[0].1);
    for (k, (_, packet)) in packets.iter().enumerate() {
        let body = body(packet);
        assert_eq!(body.transport_sequence, Some(k as u16));
        assert_eq!(body.sequence, first.sequence.wrapping_add(k as u16));
        assert_eq!(packet.frame.flags, Frame::FIRST | Frame::LAST | Frame::KEY);
    }
    // each arrival is reported once, none is lost
    let results = heard.lock().unwrap().results();
    // except those of the last 90 ms: 20 ms each way and up to 50 ms of waiting
    assert!((1..=19).contains(&(packets.len() - results.len())), "{} of {}", results.len(), packets.len());
    assert!(results.iter().enumerate().all(|(k, r)| r.sequence == k as u64 && r.arrival.is_some()));
    assert!(results.iter().all(|r| r.size == Size::from_bytes(1224)));
    assert_eq!(
        recorded.goodput,
        1200 * (recorded.arrived.iter().filter(|(_, p)| p.kind == Kind::Video).count() as u64)
    );
    assert!(
        recorded.frames_sent.is_empty() && recorded.frames.is_empty(),
        "packets of a greedy source are no frames"
    );
}

#[test]
fn frames_are_cut_marked_and_paced() {
    // 1 Mb/s of packets at 25 fps: 5000 bytes a frame, of which 5 x 24 are headers
    let (controller, _) = constant(Rate::from_mbps(1));
    let (caller, callee) = one_way(vec![ideal(150, 5000)], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_nanos(1_999_999_999));
    let recorded = world.finish();
    let packets = media(&recorded);
    assert_eq!(recorded.frames_sent.len(), 50);
    for (k, (time, frame)) in recorded.frames_sent.iter().enumerate() {
        assert_eq!((*time, frame.frame, frame.key), (Time::from_millis(40 * k as i64), k as u32, k == 0));
        assert_eq!(frame.size, Size::from_bytes(4860));
        let parts: Vec<&(Time, Packet)> =
            packets.iter().filter(|(_, p)| p.frame.number == k as u32).collect();
        let sizes: Vec<u32> = parts.iter().map(|(_, p)| payload(p)).collect();
        assert_eq!(sizes, [1200, 1200, 1200, 1200, 60], "frame {k}");
        // marks take 4 bytes, and 12 on the first packet of the key frame
        let first = if k == 0 { 64 } else { 56 };
        let headers: Vec<u32> = parts.iter().map(|(_, p)| p.size - payload(p)).collect();
        assert_eq!(headers, [first, 56, 56, 56, 56]);
        let marked = |p: &Packet| body(p).marks.expect("video is marked").frame(k as u32);
        assert!(parts.iter().all(|(_, p)| marked(p) == p.frame));
        let flags: Vec<u8> = parts.iter().map(|(_, p)| p.frame.flags & !Frame::KEY).collect();
        assert_eq!(flags, [Frame::FIRST, 0, 0, 0, Frame::LAST]);
        assert!(
            parts.iter().all(
                |(_, p)| body(p).timestamp == body(&packets[0].1).timestamp.wrapping_add(3600 * k as u32)
            )
        );
        // paced at the rate at which it is made: 1228 bytes take 9.824 ms, the 8 more of the key frame 64 us
        let times: Vec<i64> = parts.iter().map(|(sent, _)| (*sent - *time).as_nanos()).collect();
        let even = [0, 9_824_000, 19_648_000, 29_472_000, 39_296_000];
        let late = |time: i64| if time == 0 { 0 } else { time + 64_000 };
        assert_eq!(times, even.map(late), "frame {k}");
    }
    let measured = rate(&packets, 2.0);
    // 8 bytes in 2 s
    assert!((measured - 1e6 - 32.0).abs() < 1.0, "{measured}");
}

#[test]
fn where_ip_counts_the_wire_carries_the_target() {
    let decision = Decision { padding: Rate::from_kbps(1500), ..Decision::rate(Rate::from_mbps(1)) };
    let paused = Decision { target: Rate::ZERO, pacing: Rate::from_mbps(2), ..decision };
    let script = vec![(Time::ZERO, Decision::rate(Rate::from_mbps(1))), (Time::from_secs(10), paused)];
    let (controller, heard) = counting(Counts::Ip, script);
    let streams = vec![ideal(150, 5000), StreamSettings::audio(AUDIO, SourceSettings::AUDIO)];
    let (caller, callee) = one_way(streams, controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_millis(19_999));
    let recorded = world.finish();
    let heard = heard.lock().unwrap();
    // each of the five packets of a frame has 28 bytes of IP and UDP and as many of RTP with marks, one of audio 28 and 24
    assert_eq!(heard.limits[0].1.wanted, Some(Rate::from_bps(5_000_000 + 25 * 21 * 56 * 8 + 50 * 102 * 8)));
    let wire = |from: i64, to: i64| -> f64 {
        let within = |time: Time| time >= Time::from_secs(from) && time < Time::from_secs(to);
        let packets = recorded.sent.iter().filter(|(time, packet)| within(*time) && packet.rtcp().is_none());
        packets.map(|(_, packet)| f64::from(packet.size) * 8.0).sum::<f64>() / (to - from) as f64
    };
    // the packets of a frame wait for each other for less than 40 ms
    assert!((wire(1, 10) - 1e6).abs() < 1e6 * 0.04 / 9.0, "{}", wire(1, 10));
    // padding, too, fills its rate with all bytes that the wire carries
    assert!((wire(11, 19) - 1.5e6).abs() < 1.5e6 * 0.01, "{}", wire(11, 19));
    // sizes in the controller's reports are those of the wire
    let reported: u64 = heard.reports.iter().flat_map(|(_, r)| &r.packets).map(|p| p.size.as_bytes()).sum();
    let packets: usize = heard.reports.iter().map(|(_, r)| r.packets.len()).sum();
    let rtp = recorded.sent.iter().filter(|(_, packet)| packet.rtcp().is_none());
    let sent: u64 = rtp.take(packets).map(|(_, packet)| u64::from(packet.size)).sum();
    assert_eq!(reported, sent);
}

#[test]
fn audio_has_its_rate_and_video_the_rest() {
    let (controller, heard) = constant(Rate::from_mbps(1));
    let streams = vec![ideal(150, 5000), StreamSettings::audio(AUDIO, SourceSettings::AUDIO)];
    let (caller, callee) = one_way(streams, controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_millis(9_999));
    let recorded = world.finish();
    let sent_of_kind = |kind: Kind| -> Vec<(Time, Packet)> {
        media(&recorded).into_iter().filter(|(_, p)| p.kind == kind).collect()
    };
    let (audio, video) = (sent_of_kind(Kind::Audio), sent_of_kind(Kind::Video));
    // 50 bytes every 20 ms, at once although video waits
    assert_eq!(audio.len(), 500);
    for (k, (time, packet)) in audio.iter().enumerate() {
        assert_eq!((*time, packet.size), (Time::from_millis(20 * k as i64), 50 + 24 + 28));
        assert_eq!(body(packet).timestamp, body(&audio[0].1).timestamp.wrapping_add(960 * k as u32));
    }
    let (audio, video) = (rate(&audio, 10.0), rate(&video, 10.0));
    assert!((audio - 29_600.0).abs() < 1.0, "{audio}");
    assert!((audio + video - 1e6).abs() < 2_000.0, "{audio} {video}");
    // 5 Mb/s of video need 21 packets a frame of 25000 bytes
    let wanted = heard.lock().unwrap().limits[0].1.wanted;
    assert_eq!(wanted, Some(Rate::from_bps(5_000_000 + 25 * 21 * 28 * 8 + 29_600)));
}

#[test]
fn encoded_packets_have_the_fields_of_the_model() {
    struct Stamping;
    impl Controller for Stamping {
        fn on_report(&mut self, _: Time, _: &Report, cx: &mut Context<'_>) -> Decision {
            cx.unchanged()
        }
        fn on_limits(&mut self, _: Time, limits: &Limits, _: &mut Context<'_>) -> Decision {
            Decision { padding: limits.start, ..Decision::rate(limits.start) }
        }
        fn stamp(&mut self, _: Time, packet: &Outgoing) -> Option<Extension> {
            packet
                .sequence
                .is_multiple_of(2)
                .then(|| Extension { id: 9, data: vec![7; packet.sequence as usize % 15 + 2] })
        }
    }
    let (caller, callee) = one_way(vec![ideal(150, 250)], Box::new(Stamping), FeedbackFormat::Twcc);
    let mut world = World::with_bytes(caller, callee, delay(20), true);
    world.run(Time::from_secs(5));
    let recorded = world.finish();
    let offset = Clock::new(SEED, "caller").offset;
    assert!(recorded.bytes.len() > 100);
    let (mut paddings, mut stamps) = (0, 0);
    for (packet, bytes) in &recorded.bytes {
        assert_eq!(bytes.len() as u32, packet.size - 28, "{packet:?}");
        if packet.kind == Kind::Rtcp {
            assert_eq!(packet.rtcp(), Some(&bytes[..]));
            continue;
        }
        let body = body(packet);
        let (header, payload) = rtp::Header::decode(bytes).expect("a well-formed packet");
        assert_eq!((header.sequence, header.timestamp), (body.sequence, body.timestamp));
        assert_eq!(header.payload_type, body.payload_type);
        let transport = header.extension(TRANSPORT_SEQUENCE_ID).and_then(rtp::read_transport_sequence);
        assert_eq!(transport, body.transport_sequence);
        let sent = header.extension(ABS_SEND_TIME_ID).and_then(rtp::read_abs_send_time);
        assert_eq!(sent, Some(rtp::abs_send_time(packet.sent + offset)));
        if packet.kind == Kind::Padding {
            paddings += 1;
            assert_eq!((header.padding, payload.len()), (224, 0));
            assert_eq!(header.ssrc, 0x7064_0001);
        } else {
            assert_eq!(header.ssrc, VIDEO);
            assert_eq!(header.marker, packet.frame.is_last());
        }
        let stamp = packet.extension();
        assert_eq!(header.extension(9), stamp.map(|stamp| &stamp.data[..]));
        stamps += usize::from(stamp.is_some());
    }
    assert!(paddings > 10 && stamps > 50, "{paddings} {stamps}");
}

#[test]
fn padding_fills_up_to_its_rate_and_has_its_own_numbers() {
    let padded = Decision { padding: Rate::from_kbps(500), ..Decision::rate(Rate::from_mbps(1)) };
    let (controller, _) = scripted(vec![(Time::ZERO, padded)]);
    let (caller, callee) = one_way(vec![ideal(100, 200)], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    let all: Vec<(Time, Packet)> = recorded.sent.iter().filter(|(_, p)| p.kind.is_rtp()).cloned().collect();
    let measured = rate(&all, 20.0);
    assert!((measured - 500e3).abs() < 5e3, "{measured}");
    let padding: Vec<RtpBody> =
        all.iter().filter(|(_, p)| p.kind == Kind::Padding).map(|(_, p)| body(p)).collect();
    assert!(padding.windows(2).all(|pair| pair[1].sequence == pair[0].sequence.wrapping_add(1)));
    assert!(padding.iter().all(|body| body.payload_type == 127));
    let media: u64 = recorded.frames_sent.iter().map(|(_, frame)| frame.size.as_bytes()).sum();
    assert!(recorded.goodput <= media && recorded.goodput + 2000 > media, "padding is no goodput");
}

#[test]
fn a_probe_is_a_burst_that_the_results_name() {
    let probe = Probe {
        id: 3,
        rate: Rate::from_mbps(3),
        length: Span::from_millis(15),
        min_packets: 5,
        spacing: Span::ZERO,
    };
    let time = Time::from_secs(2);
    let decision = Decision::rate(Rate::from_mbps(1));
    let (controller, heard) =
        scripted(vec![(Time::ZERO, decision), (time, Decision { probes: probe.into(), ..decision })]);
    let (caller, callee) = one_way(vec![ideal(100, 5000)], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(3));
    let heard = heard.lock().unwrap();
    let cluster: Vec<_> = heard.results().into_iter().filter(|r| r.probe == Some(3)).collect();
    let bytes: u64 = cluster.iter().map(|r| r.size.as_bytes()).sum();
    assert!((5625..5625 + 1224).contains(&bytes), "{bytes} bytes of 15 ms at 3 Mb/s");
    assert!(cluster.len() >= 5);
    let (first, last) = (cluster[0], cluster[cluster.len() - 1]);
    // it begins with the next frame, and with padding
    assert_eq!((first.sent, first.size), (time + Span::from_millis(40), Size::from_bytes(248)));
    let sent = Size::from_bytes(bytes - last.size.as_bytes()).per(last.sent - first.sent);
    assert!((sent.as_bps_f64() - 3e6).abs() < 3e3, "{sent:?}");
    assert!(heard.results().iter().filter(|r| r.sent < time).all(|r| r.probe.is_none()));
}

#[test]
fn two_probes_of_one_decision_leave_as_they_were_requested() {
    // as libwebrtc begins: three and six times the rate, 15 ms, 5 packets, 2 ms apart
    let probe = |id, rate| Probe {
        id,
        rate: Rate::from_kbps(rate),
        length: Span::from_millis(15),
        min_packets: 5,
        spacing: Span::from_millis(2),
    };
    let (slow, fast) = (probe(1, 900), probe(2, 18_000));
    let time = Time::from_secs(2);
    let decision = Decision::rate(Rate::from_kbps(300));
    let both = Probes::try_from(&[slow, fast][..]).expect("two fit");
    let (controller, heard) =
        scripted(vec![(Time::ZERO, decision), (time, Decision { probes: both, ..decision })]);
    // a frame of 500 bytes every 40 ms begins them; padding is 248 bytes a packet: 224 and a header of 12 + 12
    let (caller, callee) = one_way(vec![ideal(100, 100)], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(3));
    let results = heard.lock().unwrap().results();
    let sent_for = |probe: Probe| -> Vec<(Time, u64)> {
        let sent_for = results.iter().filter(|r| r.probe == Some(probe.id));
        sent_for.map(|r| (r.sent, r.size.as_bytes())).collect()
    };
    // 15 ms of 900 kb/s are 1687 bytes: padding, the frame of 528 with its marks, and four more of padding, each when
    // the rate has carried the bytes before it, which takes more than 2 ms; rounded up by less than a nanosecond
    let begin = time + Span::from_millis(40);
    let departures = sent_for(slow);
    assert_eq!(departures.iter().map(|&(_, size)| size).collect::<Vec<_>>(), [248, 528, 248, 248, 248, 248]);
    let before = |index| departures[..index].iter().map(|&(_, size)| size).sum();
    for (index, &(sent, _)) in departures.iter().enumerate() {
        assert_eq!(
            sent,
            begin + Rate::from_kbps(900).time_for(Size::from_bytes(before(index))),
            "packet {index}"
        );
    }
    // once its 1768 bytes are carried: 15 ms of 18 Mb/s are 33750 bytes. 2 ms are 4500 bytes: groups of 19 packets, 4712 bytes; the
    // eighth makes them full, and goes out whole
    let begin = begin + Rate::from_kbps(900).time_for(Size::from_bytes(1768));
    let departures = sent_for(fast);
    assert_eq!(departures.len(), 8 * 19);
    assert!(departures.iter().all(|&(_, size)| size == 248));
    for (index, &(sent, _)) in departures.iter().enumerate() {
        let group = Size::from_bytes(4712 * (index as u64 / 19));
        assert_eq!(sent, begin + Rate::from_mbps(18).time_for(group), "packet {index}");
    }
}

#[test]
fn an_alarm_at_the_present_instant_comes_at_it_and_a_second_one_ends_the_run() {
    /// A controller that sets an alarm at the present instant `times` times in a row, once a second.
    struct Hasty {
        times: u32,
        remaining: u32,
        called: std::sync::Arc<std::sync::Mutex<Vec<Time>>>,
    }
    impl Controller for Hasty {
        fn on_report(&mut self, _: Time, _: &Report, cx: &mut Context<'_>) -> Decision {
            cx.unchanged()
        }
        fn on_alarm(&mut self, now: Time, _: &mut Context<'_>) -> Decision {
            self.called.lock().unwrap().push(now);
            let again = self.remaining > 0;
            self.remaining = if again { self.remaining - 1 } else { self.times };
            let time = if again { now } else { now + Span::from_secs(1) };
            Decision::rate(Rate::from_mbps(1)).with_alarm(time)
        }
        fn on_limits(&mut self, now: Time, _: &Limits, _: &mut Context<'_>) -> Decision {
            Decision::rate(Rate::from_mbps(1)).with_alarm(now + Span::from_secs(1))
        }
    }
    let run = |times| {
        let called = std::sync::Arc::default();
        let controller = Hasty { times, remaining: times, called: std::sync::Arc::clone(&called) };
        let (caller, callee) = one_way(greedy(), Box::new(controller), FeedbackFormat::Twcc);
        (World::new(caller, callee, delay(20)), called)
    };
    let (mut world, called) = run(1);
    world.run(Time::from_millis(3500));
    let twice = [1, 1, 2, 2, 3, 3].map(Time::from_secs);
    assert_eq!(*called.lock().unwrap(), twice);
    let (mut world, called) = run(2);
    world.fails = true;
    world.run(Time::from_millis(3500));
    let reason = world.out.failure.expect("the second time");
    assert!(reason.contains("asked for a second alarm at the present instant (1.000000000s)"), "{reason}");
    assert_eq!(called.lock().unwrap().len(), 2);
}

#[test]
fn the_window_bounds_the_bytes_in_flight() {
    struct Windowed(std::sync::Arc<std::sync::Mutex<Vec<(Time, Sent)>>>);
    impl Controller for Windowed {
        fn on_report(&mut self, _: Time, _: &Report, cx: &mut Context<'_>) -> Decision {
            cx.unchanged()
        }
        fn on_limits(&mut self, _: Time, _: &Limits, _: &mut Context<'_>) -> Decision {
            Decision { window: Some(Size::from_bytes(20_000)), ..Decision::rate(Rate::from_mbps(20)) }
        }
        fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
            self.0.lock().unwrap().push((now, *packet));
            cx.unchanged()
        }
        fn needs_sent(&self) -> bool {
            true
        }
    }
    let sent = std::sync::Arc::default();
    let (caller, mut callee) =
        one_way(greedy(), Box::new(Windowed(std::sync::Arc::clone(&sent))), FeedbackFormat::Twcc);
    callee.receive.as_mut().unwrap().feedback.interval = Some(Span::from_millis(10));
    let mut world = World::new(caller, callee, delay(50));
    world.run(Time::from_secs(20));
    let sent = sent.lock().unwrap();
    let max = sent.iter().map(|(_, s)| s.in_flight.as_bytes()).max().unwrap();
    assert_eq!(max, 16 * 1224, "as many as fit into 20000 bytes");
    // a window of 16 packets a round trip of 100 ms and the wait for feedback of up to 10 ms
    let rate = sent.len() as f64 * 1224.0 * 8.0 / 20.0;
    let (min, max) = (16.0 * 1224.0 * 8.0 / 0.111, 16.0 * 1224.0 * 8.0 / 0.1);
    assert!((min..=max).contains(&rate), "{min} {rate} {max}");
    assert!(sent.last().unwrap().1.backlog.as_bytes() > 0);
}

#[test]
fn a_controller_learns_of_each_frame_and_of_the_backlog_before_it() {
    struct Framed(std::sync::Arc<std::sync::Mutex<Vec<(Time, NewFrame)>>>, Rate);
    impl Controller for Framed {
        fn on_report(&mut self, _: Time, _: &Report, cx: &mut Context<'_>) -> Decision {
            cx.unchanged()
        }
        fn on_limits(&mut self, _: Time, _: &Limits, _: &mut Context<'_>) -> Decision {
            Decision { pacing: self.1, ..Decision::rate(Rate::from_kbps(600)) }
        }
        fn on_frame(&mut self, now: Time, frame: &NewFrame, cx: &mut Context<'_>) -> Decision {
            self.0.lock().unwrap().push((now, *frame));
            cx.unchanged()
        }
        fn needs_frames(&self) -> bool {
            true
        }
    }
    let frames_of = |pacing: u64| {
        let frames = std::sync::Arc::default();
        let framed = Framed(std::sync::Arc::clone(&frames), Rate::from_kbps(pacing));
        let (caller, callee) = one_way(vec![ideal(100, 2000)], Box::new(framed), FeedbackFormat::Twcc);
        World::new(caller, callee, delay(50)).run(Time::from_millis(1990));
        std::mem::take(&mut *frames.lock().unwrap())
    };
    // 25 frames a second of 600 kb/s: 3000 bytes, which leave in 20 ms, before the next one
    let frames = frames_of(1200);
    assert_eq!(frames.len(), 50);
    for (_, frame) in &frames {
        assert!(frame.video && (2900..3100).contains(&frame.size.as_bytes()), "{frame:?}");
        assert_eq!((frame.backlog, frame.pacer_delay), (frame.size, Span::ZERO));
    }
    // at half the rate the queue grows by half of the bytes that come: after a second it has half a second's worth
    let frames = frames_of(300);
    let (time, frame) = frames[25];
    assert_eq!(time, Time::from_secs(1));
    assert!((37_000..41_500).contains(&frame.backlog.as_bytes()), "{frame:?}");
    assert!((450..550).contains(&(frame.pacer_delay.as_nanos() / 1_000_000)), "{frame:?}");
}

#[test]
fn the_controller_learns_of_pauses_and_of_an_application_that_does_not_fill_its_target() {
    let (controller, heard) = constant(Rate::from_mbps(2));
    let mut video = ideal(100, 5000);
    video.pauses = vec![(Time::from_secs(10), Time::from_secs(20))];
    let (caller, callee) = one_way(
        vec![video, StreamSettings::audio(AUDIO, SourceSettings::AUDIO)],
        controller,
        FeedbackFormat::Twcc,
    );
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(30));
    let recorded = world.finish();
    let limits: Vec<(f64, Option<u64>, bool)> = heard
        .lock()
        .unwrap()
        .limits
        .iter()
        .map(|(time, l)| (time.as_secs_f64(), l.wanted.map(Rate::as_bps), l.app_limited))
        .collect();
    let (everything, audio) = (Some(5_147_200), Some(29_600));
    assert_eq!(limits.len(), 5, "{limits:?}");
    assert_eq!(limits[0], (0.0, everything, false));
    assert_eq!(limits[1], (10.0, audio, false));
    // the budget fills at 1.6 Mb/s less 29.6 kb/s from about its minimum, -800 kbit, to 320 kbit: 0.71 s
    assert!((10.6..10.8).contains(&limits[2].0) && limits[2].1 == audio && limits[2].2, "{limits:?}");
    assert_eq!(limits[3], (20.0, everything, true));
    // and empties from 800 to -480 kbit at 0.4 Mb/s: 3.2 s
    assert!((23.1..23.3).contains(&limits[4].0) && !limits[4].2, "{limits:?}");
    assert!(
        recorded
            .frames_sent
            .iter()
            .all(|(time, f)| !f.video || *time < Time::from_secs(10) || *time >= Time::from_secs(20))
    );
    assert!(recorded.frames_sent.iter().any(|(time, f)| f.video && *time == Time::from_secs(20) && f.key));
    assert_eq!(recorded.freezes, [], "a pause is no freeze");
}

#[test]
fn frames_that_the_pacer_cannot_send_in_two_seconds_are_skipped() {
    // the source cannot go below 1 Mb/s, the pacer not above 500 kb/s
    let (controller, _) = constant(Rate::from_kbps(500));
    let (caller, callee) = one_way(vec![ideal(1000, 2000)], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let backlog = |(_, name, value): &(Time, String, f64)| (name == "pacer_backlog").then_some(*value);
    let max = recorded.internal.iter().filter_map(backlog).fold(0.0, f64::max);
    assert!((125_000.0..125_000.0 + 5200.0).contains(&max), "{max}");
    let skipped = recorded.internal.iter().rev().find(|(_, name, _)| name == "frames_skipped").unwrap().2;
    assert_eq!(recorded.frames_sent.len(), 1501);
    // half of the frames of 5120 bytes, less the 2 s that wait
    let sent = 60.0 * 62_500.0 / 5120.0 + 24.4;
    assert!((1501.0 - skipped - sent).abs() < 2.0, "{skipped} {sent}");
    // packets that were never sent leave no gap in the numbers, frames do
    let packets = media(&recorded);
    assert!(packets.windows(2).all(|p| body(&p[1].1).sequence == body(&p[0].1).sequence.wrapping_add(1)));
    assert!(recorded.frames.iter().any(|(_, f)| f.complete.is_none()));
}

#[test]
fn start_and_stop_are_kept() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, callee) = one_way(greedy(), controller, FeedbackFormat::Twcc);
    let send = caller.send.as_mut().unwrap();
    (send.start, send.stop) = (Time::from_secs(3), Some(Time::from_secs(7)));
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let packets = media(&recorded);
    assert_eq!(packets[0].0, Time::from_secs(3));
    let last = packets.last().unwrap().0;
    assert!(last < Time::from_secs(7) && last > Time::from_millis(6980), "{last}");
    let (time, goodbye) = rtcp_packets(&recorded)
        .into_iter()
        .rfind(|(_, p)| p.iter().any(|p| matches!(p, tidegate_core::wire::rtcp::Packet::Bye(_))))
        .expect("a goodbye");
    assert_eq!(time, Time::from_secs(7));
    assert!(tidegate_core::wire::rtcp::is_compound(&goodbye));
    // afterwards the callee has its last feedback to send, and then there is silence
    assert!(recorded.sent.iter().all(|(time, _)| *time < Time::from_millis(7_100)));
    assert_eq!(recorded.sent.iter().filter(|(_, p)| p.flow != FlowId(1)).count(), 0);
}

#[test]
fn a_window_opens_again_when_feedback_stays_away() {
    let decision =
        Decision { window: Some(Size::from_bytes(5 * 1224)), ..Decision::rate(Rate::from_mbps(1)) };
    let (controller, _) = scripted(vec![(Time::ZERO, decision)]);
    let (caller, callee) = one_way(greedy(), controller, FeedbackFormat::Twcc);
    // nothing comes back between 5 s and 40 s
    let path = |now: Time, from: usize, _: &Packet| {
        let lost = from == 1 && now > Time::from_secs(5) && now < Time::from_secs(40);
        (!lost).then(|| now + Span::from_millis(20))
    };
    let mut world = World::new(caller, callee, Box::new(path));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let count = |from: i64, to: i64| {
        let within = |time: &Time| *time >= Time::from_secs(from) && *time < Time::from_secs(to);
        media(&recorded).iter().filter(|(time, _)| within(time)).count()
    };
    // five packets each 10 s, which is when they are forgotten
    assert_eq!((count(6, 14), count(14, 16), count(16, 24), count(24, 26)), (0, 5, 0, 5));
    assert!(count(50, 60) > 400, "{}", count(50, 60));
}

#[test]
fn a_new_route_reaches_the_controller() {
    let (controller, heard) = constant(Rate::from_mbps(1));
    let (caller, callee) = one_way(greedy(), controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(1));
    let now = world.now;
    world.nodes[0].change_route(now, tidegate_core::RouteId(5), true, &mut world.out);
    world.run(Time::from_secs(2));
    let limits: Vec<bool> = heard.lock().unwrap().limits.iter().map(|(_, l)| l.route_changed).collect();
    assert_eq!(limits, [false, true]);
    let late = |(time, report): &(Time, _)| {
        let report: &tidegate_core::control::Report = report;
        *time > now && report.packets.iter().any(|packet| packet.sent <= now)
    };
    assert!(!heard.lock().unwrap().reports.iter().any(late), "a packet of the other route is reported");
    assert!(
        heard.lock().unwrap().reports.iter().any(|(time, report)| *time > now && !report.packets.is_empty())
    );
    let recorded = world.finish();
    assert!(media(&recorded).iter().all(|(time, p)| (p.route.0 == 5) == (*time > Time::from_secs(1))));
}

#[test]
fn senseless_settings_are_named() {
    let problem = |change: &dyn Fn(&mut tidegate_endpoint::EndpointSettings)| {
        let (controller, _) = constant(Rate::from_mbps(1));
        let (mut caller, _) = one_way(greedy(), controller, FeedbackFormat::Twcc);
        change(&mut caller);
        tidegate_endpoint::Endpoint::new(caller).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(problem(&|_| ()), "");
    for (change, word) in [
        (&|s: &mut tidegate_endpoint::EndpointSettings| s.send.as_mut().unwrap().payload = 0, "payload"),
        (&|s| s.send.as_mut().unwrap().stop = Some(Time::ZERO), "the stop at"),
        (&|s| s.send.as_mut().unwrap().streams[0].pauses = vec![(Time::MAX, Time::ZERO)], "pauses"),
        (&|s| s.send.as_mut().unwrap().streams[0].payload_type = 127, "payload type 127"),
        (&|s| s.send.as_mut().unwrap().streams[0].payload_type = 200, "200"),
        (&|s| s.send.as_mut().unwrap().streams[0].clock_rate = 0, "clock rate"),
        (&|s| s.send.as_mut().unwrap().streams.push(ideal(1, 2)), "2 streams of Video"),
        (&|s| s.send.as_mut().unwrap().extensions.transport_sequence = false, "TWCC"),
        (&|s| s.rtcp.session_bandwidth = Rate::ZERO, "bandwidth"),
        (&|s| s.name = "x".repeat(256), "name"),
    ] as [(&dyn Fn(&mut tidegate_endpoint::EndpointSettings), &str); 10]
    {
        let message = problem(change);
        assert!(message.contains(word), "{word:?}: {message:?}");
    }
}
