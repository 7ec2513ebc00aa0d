//! Key frames: at an interval, on requests from outside, and no more of these than a sender makes.

use crate::common::*;
use tidegate_core::rng::Stream;
use tidegate_core::{Kind, Rate, Span, Time};
use tidegate_endpoint::media::statistical;
use tidegate_endpoint::repair::Pli;
use tidegate_endpoint::{Bounds, FeedbackFormat, Repair, SourceSettings, StreamSettings};

/// Video of 100 kb/s, 25 frames a second.
fn video() -> StreamSettings {
    let bounds = Bounds::new(Rate::from_kbps(50), Rate::from_kbps(100));
    StreamSettings::video(0x11, SourceSettings::Ideal { fps: 25.0, bounds })
}

/// The times of key frames of a stream in `seconds` under a target of 1 Mb/s, sent by a path that loses what `lost` says.
fn keys(
    stream: StreamSettings,
    repair: Repair,
    seconds: i64,
    lost: impl Fn(Time) -> bool + 'static,
) -> Vec<Time> {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, mut callee) = one_way(vec![stream], controller, FeedbackFormat::Twcc);
    caller.send.as_mut().unwrap().repair = repair;
    callee.receive.as_mut().unwrap().repair = repair;
    let gone = move |packet: &tidegate_core::Packet| packet.kind == Kind::Video && lost(packet.sent);
    let path: Path = Box::new(move |now, _, packet| (!gone(packet)).then(|| now + Span::from_millis(20)));
    let mut world = World::new(caller, callee, path);
    world.run(Time::from_secs(seconds));
    let recorded = world.finish();
    recorded.frames_sent.iter().filter(|(_, frame)| frame.key).map(|(time, _)| *time).collect()
}

/// The times of the requests that a sender heeds, drawn as it draws them.
fn heeded(rate: f64, seconds: i64, interval: Span) -> Vec<Time> {
    let mut rng = Stream::new(SEED, "caller/video", "requests of key frames");
    let (mut times, mut next) = (Vec::<Time>::new(), Time::ZERO);
    loop {
        next += Span::from_secs_f64(rng.exponential(1.0 / rate));
        if next >= Time::from_secs(seconds) {
            return times;
        }
        if times.last().is_none_or(|last| next - *last >= interval) {
            times.push(next);
        }
    }
}

/// The first frame at or after each of these times, of 25 frames a second.
fn frames_after(times: &[Time]) -> Vec<Time> {
    let frame = |time: &Time| Time::from_millis(40 * (time.as_nanos() + 39_999_999).div_euclid(40_000_000));
    times.iter().map(frame).collect()
}

#[test]
fn requests_from_outside_make_one_key_frame_in_300_ms_each() {
    for rate in [2.0, 20.0] {
        let stream = StreamSettings { requests: Some(rate), ..video() };
        let seconds = 2_000;
        let keys = keys(stream, Repair::default(), seconds, |_| false);
        let expected = frames_after(&heeded(rate, seconds, Span::from_millis(300)));
        assert_eq!(keys[0], Time::ZERO, "the first frame is a key frame");
        assert_eq!(keys[1..], expected[..]);
        // of a Poisson process with a dead time of 0.3 s: a mean of 0.3 s + 1 / rate from one to the next, with the
        // deviation of the exponential part
        let mean = 0.3 + 1.0 / rate;
        let count = seconds as f64 / mean;
        let deviation = (seconds as f64 / rate / rate / (mean * mean * mean)).sqrt();
        assert!((expected.len() as f64 - count).abs() < 3.0 * deviation, "{} {count}", expected.len());
    }
}

#[test]
fn requests_from_outside_and_of_the_receiver_share_their_limit() {
    let stream = StreamSettings { requests: Some(2.0), ..video() };
    let repair = Repair { pli: Some(Pli { interval: Span::from_secs(2) }), ..Repair::default() };
    // a packet in five seconds is lost, and the receiver asks for a key frame
    let lost = |sent: Time| sent.as_nanos() / 1_000_000 % 5000 < 10;
    let keys = keys(stream, repair, 200, move |sent| sent > Time::from_secs(1) && lost(sent));
    assert!(keys[1..].windows(2).all(|pair| pair[1] - pair[0] > Span::from_millis(1960)), "{keys:?}");
    assert!((75..100).contains(&keys.len()), "{}", keys.len());
    let outside = frames_after(&heeded(2.0, 200, Span::from_secs(2)));
    assert_ne!(keys[1..], outside[..], "some are the receiver's");
}

#[test]
fn an_interval_counts_from_the_last_key_frame() {
    let interval = Some(Span::from_secs(2));
    let none = |_: Time| false;
    let regular = keys(StreamSettings { key_interval: interval, ..video() }, Repair::default(), 21, none);
    let expected: Vec<Time> = (0..11).map(|k| Time::from_secs(2 * k)).collect();
    assert_eq!(regular, expected);
    // with requests: the next one is requested, or follows two seconds later
    let stream = StreamSettings { key_interval: interval, requests: Some(0.4), ..video() };
    let keys = keys(stream, Repair::default(), 100, none);
    let requested = frames_after(&heeded(0.4, 100, Span::from_millis(300)));
    assert!(requested.len() > 20 && requested.iter().all(|time| keys.contains(time)));
    for pair in keys.windows(2) {
        let regular = pair[1] == pair[0] + Span::from_secs(2);
        assert!(
            regular || pair[1] < pair[0] + Span::from_secs(2) && requested.contains(&pair[1]),
            "{pair:?}"
        );
    }
    let paused = StreamSettings {
        key_interval: interval,
        pauses: vec![(Time::from_secs(3), Time::from_secs(10))],
        ..video()
    };
    let times = [0, 2, 10, 12, 14].map(Time::from_secs);
    assert_eq!(self::keys(paused, Repair::default(), 15, none), times);
}

#[test]
fn the_mean_rate_holds_under_requests() {
    let bounds = Bounds::new(Rate::from_kbps(50), Rate::from_kbps(1000));
    let sent = |key_factor: f64, requests| {
        let settings = statistical::Settings { key_factor, bounds, ..statistical::Settings::default() };
        let source = SourceSettings::Statistical(settings);
        let stream = StreamSettings { requests, ..StreamSettings::video(0x11, source) };
        let (controller, _) = constant(Rate::from_mbps(5));
        let (caller, callee) = one_way(vec![stream], controller, FeedbackFormat::Twcc);
        let mut world = World::new(caller, callee, delay(20));
        world.run(Time::from_secs(300));
        let recorded = world.finish();
        let bytes: u64 = recorded.frames_sent.iter().map(|(_, frame)| frame.size.as_bytes()).sum();
        let keys = recorded.frames_sent.iter().filter(|(_, frame)| frame.key);
        let sizes: Vec<u64> = keys.map(|(_, frame)| frame.size.as_bytes()).collect();
        (bytes as f64 * 8.0 / 300.0 / 1e6, sizes)
    };
    let (alone, first) = sent(1.0, None);
    assert_eq!(first, [13_500]);
    for key_factor in [3.0, 9.0] {
        let (rate, sizes) = sent(key_factor, Some(2.0));
        assert_eq!(sizes[0], (1e6 / 240.0 * f64::max(key_factor, 3.24)) as u64);
        assert!(sizes.len() > 300 && sizes.iter().all(|size| (13_500..=37_500).contains(size)));
        // the same random numbers: deviations apply to smaller frames, and the last key frame is not paid for
        assert!((rate / alone - 1.0).abs() < 0.003, "{key_factor}: {rate} {alone}");
    }
}

#[test]
fn settings_without_sense_are_refused() {
    for (stream, words) in [
        (StreamSettings { key_interval: Some(Span::ZERO), ..video() }, "a key frame each 0.000000ms"),
        (StreamSettings { requests: Some(0.0), ..video() }, "gets 0 requests of key frames a second"),
        (StreamSettings { requests: Some(f64::NAN), ..video() }, "gets NaN requests"),
        (StreamSettings { requests: Some(1001.0), ..video() }, "at most 1000"),
    ] {
        let (controller, _) = constant(Rate::from_mbps(1));
        let (caller, _) = one_way(vec![stream], controller, FeedbackFormat::Twcc);
        let error = tidegate_endpoint::Endpoint::new(caller).err().expect("no sense").to_string();
        assert!(error.contains(words), "{error}");
    }
}
