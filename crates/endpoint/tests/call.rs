//! A WebRTC call under its controller's decisions: queues that are too long are drained.

use crate::common::*;
use tidegate_core::{Decision, Kind, Rate, Span, Time};
use tidegate_endpoint::repair::{Fec, Repair};
use tidegate_endpoint::{Bounds, FeedbackFormat, SourceSettings, StreamSettings};

fn ideal(min_kbps: u64, max_kbps: u64) -> StreamSettings {
    let bounds = Bounds::new(Rate::from_kbps(min_kbps), Rate::from_kbps(max_kbps));
    StreamSettings::video(0x11, SourceSettings::Ideal { fps: 25.0, bounds })
}

#[test]
fn a_queue_that_is_to_be_drained_is_out_in_time_and_no_frame_is_skipped() {
    // 1 Mbit/s comes and half of that may leave: packets leave at the rate at which they come, after two thirds of the
    // limit
    for (limit, wait) in [(2000, 4.0 / 3.0), (600, 0.4)] {
        let decision = Decision { drain_queue: true, ..Decision::rate(Rate::from_kbps(500)) };
        let (controller, _) = scripted(vec![(Time::ZERO, decision)]);
        let (mut caller, callee) = one_way(vec![ideal(1000, 2000)], controller, FeedbackFormat::Twcc);
        caller.send.as_mut().unwrap().queue_limit = Span::from_millis(limit);
        let mut world = World::new(caller, callee, delay(20));
        world.run(Time::from_secs(60));
        let recorded = world.finish();
        assert!(recorded.internal.iter().all(|(_, name, _)| name != "frames_skipped"));
        let late = Time::from_secs(50);
        let bytes: u32 =
            media(&recorded).iter().filter(|(time, _)| *time > late).map(|(_, p)| p.size - 28).sum();
        let rate = f64::from(bytes) * 8.0 / 10.0;
        // 25 frames of 5000 bytes a second, each in 5 packets with headers of 28 bytes
        assert!((rate - 1_028_000.0).abs() < 1e4, "{rate}");
        let waited =
            recorded.paced.iter().filter(|(time, _)| *time > late).map(|(_, span)| span.as_secs_f64());
        let longest = waited.fold(0.0, f64::max);
        // within the 40 ms of a frame
        assert!((longest - wait).abs() < 0.04, "{longest}, not {wait}");
    }
}

#[test]
fn pushback_leaves_pictures_out_before_they_are_encoded() {
    // 30 % of the target is pushed back from 20 s to 40 s: one picture of three is left out, at two thirds of the rate
    let target = Rate::from_kbps(1000);
    let full = Decision::rate(target);
    let pushed = Decision { pushback: Some(Rate::from_kbps(700)), ..full };
    let script = vec![(Time::ZERO, full), (Time::from_secs(20), pushed), (Time::from_secs(40), full)];
    let (caller, callee) = one_way(vec![ideal(100, 2000)], scripted(script).0, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(60));
    let recorded = world.finish();
    let frames = |from: i64, to: i64| {
        // the frame that is due when a decision comes goes before it
        let within = move |time: Time| time > Time::from_secs(from) && time <= Time::from_secs(to);
        let sent: Vec<u64> = recorded
            .frames_sent
            .iter()
            .filter(|(time, _)| within(*time))
            .map(|(_, f)| f.size.as_bytes())
            .collect();
        (sent.len(), sent.iter().sum::<u64>() / sent.len() as u64)
    };
    // five packets with headers of 28 bytes leave 4860 bytes of the 5000 of a frame
    assert_eq!([frames(0, 20), frames(20, 40), frames(40, 50)], [(500, 4860), (333, 3240), (250, 4860)]);
    assert_eq!(recorded.left_out, 167);
    // nothing is missing: the numbers of frames and packets go on, and every frame is shown
    assert!(recorded.frames_sent.windows(2).all(|pair| pair[1].1.frame == pair[0].1.frame + 1));
    let rendered = recorded.frames.iter().filter(|(_, frame)| frame.complete.is_some()).count();
    assert!(
        (0..3).contains(&(recorded.frames_sent.len() - rendered)),
        "{rendered} of {}",
        recorded.frames_sent.len()
    );
}

#[test]
fn an_encoder_pauses_while_the_queue_takes_more_than_two_seconds() {
    // the pacer sends at 2 Mbit/s, and at 100 kbit/s from 10 s on; the encoder makes 1 Mbit/s whatever its target. It
    // pauses while more than 25 kB wait, 2 s at 100 kbit/s
    let rate = |pacing| Decision {
        drain_queue: true,
        pacing: Rate::from_kbps(pacing),
        ..Decision::rate(Rate::from_mbps(1))
    };
    let left_out = |limit: Span, decision: fn(Decision) -> Decision| {
        let script = vec![(Time::ZERO, decision(rate(2000))), (Time::from_secs(10), decision(rate(100)))];
        let (mut caller, callee) = one_way(vec![ideal(1000, 1000)], scripted(script).0, FeedbackFormat::Twcc);
        caller.send.as_mut().unwrap().queue_limit = limit;
        let mut world = World::new(caller, callee, delay(20));
        world.run(Time::from_millis(12_000));
        let recorded = world.finish();
        let first =
            recorded.internal.iter().find(|(_, name, _)| name == "frames_left_out").map(|(time, ..)| *time);
        (recorded.left_out, first.map(|time| time.as_secs_f64()))
    };
    let (count, first) = left_out(Span::from_secs(100), |decision| decision);
    // the queue stays at 25 kB, and as much leaves in the two seconds: of 50 frames of 5140 bytes some 9.7 are made
    assert!((39..=41).contains(&count), "{count} of 50");
    assert!(first.is_some_and(|time| (10.2..10.3).contains(&time)), "{first:?}");
    // no queue takes as long where it is drained within two seconds
    assert_eq!(left_out(Span::from_secs(2), |decision| decision), (0, None));
    let skips = |decision| Decision { drain_queue: false, ..decision };
    assert_eq!(
        left_out(Span::from_secs(100), skips),
        (0, None),
        "without draining, the encoder does not pause"
    );
}

#[test]
fn the_encoder_gets_the_target_less_parity_audio_and_headers() {
    let (target, from, secs) = (1e6, Time::from_secs(10), 20.0);
    let audio = StreamSettings::audio(0x22, SourceSettings::AUDIO);
    let (controller, _) = constant(Rate::from_bps_f64(target));
    let (mut caller, mut callee) = one_way(vec![ideal(100, 2000), audio], controller, FeedbackFormat::Twcc);
    let send = caller.send.as_mut().unwrap();
    send.extensions.marks = true;
    send.repair = Repair { fec: Some(Fec { packets: 10, parity: 2, by_frame: false }), ..Repair::default() };
    let receive = callee.receive.as_mut().unwrap();
    (receive.repair, receive.streams) = (send.repair, send.signalled());
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(30));
    let recorded = world.finish();
    let rtp = |kind: Kind| -> f64 {
        let sent = recorded.sent.iter().filter(|(time, packet)| *time >= from && packet.kind == kind);
        sent.map(|(_, packet)| f64::from(packet.size - 28) * 8.0).sum::<f64>() / secs
    };
    let [video, audio, parity] = [Kind::Video, Kind::Audio, Kind::Repair].map(rtp);
    // 50 packets a second of 50 bytes and 24 of RTP header and extensions
    assert!((audio - 29_600.0).abs() < 50.0, "{audio}");
    // parity takes the same share of the rate without audio as of the bytes of parity and video
    let share = parity / (parity + video);
    assert!((0.16..0.22).contains(&share), "2 of 12, each as long as the longest that it protects: {share}");
    assert!((video / ((target - audio) * (1.0 - share)) - 1.0).abs() < 0.005, "{video} with {share}");
    // so that all together is the target
    assert!(((video + audio + parity) / target - 1.0).abs() < 0.002, "{video} {audio} {parity}");
}
