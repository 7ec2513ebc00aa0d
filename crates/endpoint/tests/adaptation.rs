//! A sender whose video has steps of resolution and frame rate: shares and rates with the headers of each frame rate.

use crate::common::*;
use tidegate_core::{Decision, Rate, Span, Time};
use tidegate_endpoint::media::adaptation::{Settings, Step};
use tidegate_endpoint::{Bounds, FeedbackFormat, SourceSettings, StreamSettings};

/// Bytes of an RTP header with its extensions and marks.
const HEADER: u64 = 28;

/// Ideal video from 50 kbit/s to 1 Mbit/s: 180 lines at 5 frames a second, and from 200 kbit/s on 360 at 50.
fn video() -> StreamSettings {
    let bounds = Bounds::new(Rate::from_kbps(50), Rate::from_mbps(1));
    let step = |kbps, height, fps| Step { rate: Rate::from_kbps(kbps), height, fps };
    let settings = Settings {
        steps: vec![step(0, 180, 5.0), step(200, 360, 50.0)],
        hysteresis: 1.2,
        up_after: Span::from_secs(1),
        down_after: Span::from_secs(1),
    };
    let source = Box::new(SourceSettings::Ideal { fps: 30.0, bounds });
    StreamSettings::video(0x11, SourceSettings::Adapted { source, settings })
}

/// The record of 10 s and the inputs of the controller, under targets in kbit/s from these seconds on.
fn run(stream: StreamSettings, targets: &[(i64, u64)]) -> (Recorded, Heard) {
    let script = targets
        .iter()
        .map(|&(s, kbps)| (Time::from_secs(s), Decision::rate(Rate::from_kbps(kbps))))
        .collect();
    let (controller, heard) = scripted(script);
    let (caller, callee) = one_way(vec![stream], controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_millis(9_999));
    let recorded = world.finish();
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    (recorded, heard)
}

#[test]
fn the_share_of_media_goes_by_the_headers_of_the_frame_rate() {
    let (recorded, _) = run(video(), &[(0, 150), (2, 400)]);
    let of = |name: &str| -> Vec<(Time, f64)> {
        let values = recorded.internal.iter().filter(|(_, internal, _)| internal == name);
        values.map(|(time, _, value)| (*time, *value)).collect()
    };
    let times = [0, 3].map(Time::from_secs);
    assert_eq!(of("video_height"), [(times[0], 180.0), (times[1], 360.0)]);
    assert_eq!(of("video_fps"), [(times[0], 5.0), (times[1], 50.0)]);
    // 400 kbit/s: 10 000 bytes a frame in 9 packets, and then 1000 bytes in one; the first frame of a step has the
    // share of before
    let sizes = |from: i64, to: i64| -> Vec<u64> {
        let inside = |time: Time| Time::from_millis(from) <= time && time < Time::from_millis(to);
        let frames = recorded.frames_sent.iter().filter(|(time, _)| inside(*time));
        frames.map(|(_, frame)| frame.size.as_bytes()).collect()
    };
    let (few, many) = (sizes(2001, 3000), sizes(3001, 9_999));
    assert_eq!((few.len(), many.len()), (4, 349));
    assert!(few.iter().all(|&size| size.abs_diff(10_000 - 9 * HEADER) <= 1), "{few:?}");
    assert!(many.iter().all(|&size| size.abs_diff(1000 - HEADER) <= 1), "{many:?}");
}

#[test]
fn wanted_and_least_rates_go_by_the_frame_rates_that_they_have() {
    // one in each of the steps
    let pauses =
        [(1000, 2000), (6000, 6500)].map(|(from, to)| (Time::from_millis(from), Time::from_millis(to)));
    let pauses = pauses.to_vec();
    let (recorded, heard) = run(StreamSettings { pauses, ..video() }, &[(0, 150), (4, 1000), (7, 20)]);
    // 1 Mbit/s: 50 frames a second of 2500 bytes in 3 packets, at whatever step it is
    let wanted = Rate::from_bps(1_000_000 + 50 * 3 * 8 * HEADER);
    let told: Vec<_> = heard.limits.iter().map(|(_, limits)| limits.wanted.unwrap()).collect();
    assert!(told.contains(&Rate::ZERO) && told.contains(&wanted), "{told:?}");
    assert!(told.iter().all(|&rate| rate == Rate::ZERO || rate == wanted), "{told:?}");
    // 50 kbit/s: 5 frames a second of 1250 bytes in 2 packets, though there still are 50 when the target falls
    let least: Vec<_> = recorded.below_least.iter().filter_map(|(_, least)| *least).collect();
    assert!(!least.is_empty());
    assert!(least.iter().all(|least| least.rate == Rate::from_bps(50_000 + 5 * 2 * 8 * HEADER)), "{least:?}");
}
