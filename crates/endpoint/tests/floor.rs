//! A target below what the sources need at least: video that waits, is sent all the same, or is suspended.

use crate::common::*;
use tidegate_core::record::LeastRate;
use tidegate_core::{Decision, Kind, Rate, Span, Time};
use tidegate_endpoint::{BelowMin, Bounds, FeedbackFormat, SourceSettings, StreamSettings};

/// Video from `min` to 2 Mb/s, 25 frames a second.
fn video(min_kbps: u64, below_min: BelowMin) -> StreamSettings {
    let bounds = Bounds::new(Rate::from_kbps(min_kbps), Rate::from_kbps(2000));
    let source = SourceSettings::Ideal { fps: 25.0, bounds };
    StreamSettings { below_min, ..StreamSettings::video(0x11, source) }
}

/// A run of `seconds` under these targets, each with the time from which it holds and a factor of pacing.
fn run(streams: Vec<StreamSettings>, script: &[(i64, u64, u64)], seconds: i64) -> Recorded {
    let decide = |&(from, kbps, factor): &(i64, u64, u64)| {
        let pacing = Rate::from_kbps(kbps * factor);
        (Time::from_secs(from), Decision { pacing, ..Decision::rate(Rate::from_kbps(kbps)) })
    };
    let (controller, _) = scripted(script.iter().map(decide).collect());
    let (caller, callee) = one_way(streams, controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(seconds));
    world.finish()
}

/// Bits a second of RTP packets of this kind that were sent in these seconds.
fn rate(recorded: &Recorded, kind: Kind, from: i64, to: i64) -> f64 {
    let within = Time::from_secs(from)..Time::from_secs(to);
    let sent = recorded.sent.iter().filter(|(time, packet)| packet.kind == kind && within.contains(time));
    sent.map(|(_, packet)| f64::from(packet.size - 28) * 8.0).sum::<f64>() / (to - from) as f64
}

fn wait_max(recorded: &Recorded) -> Span {
    recorded.paced.iter().map(|&(_, waited)| waited).max().expect("packets")
}

#[test]
fn least_rates_are_sent_and_pacing_is_lifted_to_them() {
    let skipped = |recorded: &Recorded| recorded.internal.iter().any(|(_, name, _)| name == "frames_skipped");
    let waits = run(vec![video(1000, BelowMin::Wait)], &[(0, 500, 1)], 20);
    assert!(skipped(&waits) && wait_max(&waits) > Span::from_secs(1), "{}", wait_max(&waits));
    assert!((rate(&waits, Kind::Video, 5, 20) - 5e5).abs() < 1e4, "the pacer keeps to the target");
    assert!(waits.below_least.iter().all(|(_, least)| least.is_some_and(|least| least.held)));
    for target in [500, 10, 1] {
        let sent = run(vec![video(1000, BelowMin::Send)], &[(0, target, 1)], 20);
        // frames of 5000 bytes in 5 packets of 1000 and 28 bytes of header with marks
        let least = 25.0 * 8.0 * (5000.0 + 5.0 * 28.0);
        assert!((rate(&sent, Kind::Video, 5, 20) - least).abs() < 0.001 * least, "{target}");
        assert!(!skipped(&sent) && wait_max(&sent) <= Span::from_millis(40), "{}", wait_max(&sent));
        let least = LeastRate { rate: Rate::from_bps(least as u64), held: false };
        assert_eq!(sent.below_least, [(Time::ZERO, Some(least))]);
    }
    // with twice the pacing rate, frames leave in half of their interval, as under a target of the least rate
    let twice = run(vec![video(1000, BelowMin::Send)], &[(0, 500, 2)], 20);
    let same = run(vec![video(1000, BelowMin::Wait)], &[(0, 1028, 2)], 20);
    let times = |recorded: &Recorded| media(recorded).iter().map(|(time, _)| *time).collect::<Vec<_>>();
    assert_eq!(times(&twice), times(&same));
    assert!((16..=20).contains(&(wait_max(&twice).as_nanos() / 1_000_000)), "{}", wait_max(&twice));
    // above the least rate nothing is lifted
    let [sends, waits] = [BelowMin::Send, BelowMin::Wait]
        .map(|below| times(&run(vec![video(100, below)], &[(0, 900, 2), (5, 300, 1)], 10)));
    assert_eq!(sends, waits);
}

#[test]
fn a_target_that_rises_again_ends_the_lift() {
    let sent = run(vec![video(1000, BelowMin::Send)], &[(0, 500, 1), (5, 1500, 1), (10, 800, 1)], 15);
    let least = Some(LeastRate { rate: Rate::from_kbps(1028), held: false });
    let times = [0, 5, 10].map(Time::from_secs);
    assert_eq!(sent.below_least, [(times[0], least), (times[1], None), (times[2], least)]);
    for (from, to, expected) in [(1, 5, 1.028e6), (6, 10, 1.5e6), (11, 15, 1.028e6)] {
        let rate = rate(&sent, Kind::Video, from, to);
        assert!((rate - expected).abs() < 0.01 * expected, "{from}: {rate}");
    }
}

#[test]
fn suspended_video_is_not_sent_and_comes_back_with_a_key_frame() {
    // 500 bytes and 28 of header, 25 times a second: 105.6 kb/s; it goes on at 20 kb/s more
    let script = [(0, 1000, 1), (10, 100, 1), (20, 120, 1), (30, 126, 1), (40, 106, 1), (50, 105, 1)];
    let recorded = run(vec![video(100, BelowMin::Suspend)], &script, 60);
    let seconds: Vec<bool> = (0..60).map(|s| rate(&recorded, Kind::Video, s, s + 1) > 0.0).collect();
    let expected: Vec<bool> = (0..60).map(|s| s < 10 || (30..50).contains(&s)).collect();
    // what waited at the pacer at 10 and 50 s leaves after it
    let differing: Vec<usize> = (0..60).filter(|&s| seconds[s] != expected[s]).collect();
    assert!(differing.iter().all(|s| [10, 50].contains(s)), "{differing:?}");
    let keys: Vec<Time> =
        recorded.frames_sent.iter().filter(|(_, frame)| frame.key).map(|(time, _)| *time).collect();
    assert_eq!(keys, [Time::ZERO, Time::from_secs(30)]);
    let captured = |from, to| {
        let within = Time::from_secs(from)..Time::from_secs(to);
        recorded.frames_sent.iter().filter(|(time, _)| within.contains(time)).count()
    };
    // the frames of 10 s and 50 s come before the targets of that instant
    assert_eq!([captured(0, 10), captured(10, 30), captured(30, 50), captured(50, 60)], [250, 1, 500, 1]);
    // padding takes the place of video, up to the target: the controller can find out when there is room again
    for (from, to, padding) in [(1, 10, 0.0), (11, 20, 1e5), (21, 30, 1.2e5), (31, 50, 0.0), (51, 60, 1.05e5)]
    {
        let rate = rate(&recorded, Kind::Padding, from, to);
        assert!((rate - padding).abs() <= 0.03 * padding, "{from}: {rate} {padding}");
    }
    assert_eq!(recorded.below_least.len(), 3, "{:?}", recorded.below_least);
}

#[test]
fn audio_goes_on_while_video_is_suspended_and_pauses_are_no_suspension() {
    let streams = || {
        let paused = vec![(Time::from_secs(25), Time::from_secs(35))];
        let video = StreamSettings { pauses: paused, ..video(100, BelowMin::Suspend) };
        vec![video, StreamSettings::audio(0x22, SourceSettings::AUDIO)]
    };
    // audio takes 29.6 kb/s: 130 kb/s leave less than 105.6 for video, and 150 less than 125.6
    let recorded =
        run(streams(), &[(0, 1000, 1), (10, 130, 1), (20, 150, 1), (30, 160, 1), (45, 300, 1)], 50);
    let audio = rate(&recorded, Kind::Audio, 0, 50);
    assert!((audio - rate(&recorded, Kind::Audio, 11, 20)).abs() < 100.0, "audio goes on: {audio}");
    let videos: Vec<i64> = (0..50).filter(|&s| rate(&recorded, Kind::Video, s, s + 1) > 0.0).collect();
    let expected: Vec<i64> = (0..10).chain(35..50).collect();
    assert!(videos.iter().copied().filter(|s| *s != 10).eq(expected), "{videos:?}");
    // in the pause nothing is missing: no padding, and no target that is too low
    assert!(rate(&recorded, Kind::Padding, 26, 35) < 1.0);
    assert!(rate(&recorded, Kind::Padding, 21, 25) > 1e5);
    let below: Vec<(i64, bool)> = recorded
        .below_least
        .iter()
        .map(|(time, least)| (time.as_nanos() / 1_000_000_000, least.is_some()))
        .collect();
    assert_eq!(below, [(10, true), (20, false)]);
}
