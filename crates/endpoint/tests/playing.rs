//! Calls as the viewer sees them: frames, delay, freezes, recorded encoders.

use crate::common::*;
use std::path::PathBuf;
use std::sync::Arc;
use tidegate_core::{Kind, Node, Packet, Rate, Span, Time};
use tidegate_endpoint::media::ladder::{Ladder, Rung};
use tidegate_endpoint::media::live::{Encoded, Encoder, EncoderFactory};
use tidegate_endpoint::media::statistical;
use tidegate_endpoint::{Bounds, FeedbackFormat, Playout, SourceSettings, StreamSettings};

fn video(source: SourceSettings) -> Vec<StreamSettings> {
    vec![StreamSettings::video(1, source)]
}

fn ideal() -> Vec<StreamSettings> {
    let bounds = Bounds::new(Rate::from_kbps(150), Rate::from_kbps(1500));
    video(SourceSettings::Ideal { fps: 25.0, bounds })
}

#[test]
fn frames_on_an_even_path_are_shown_when_their_last_packet_arrives() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (caller, callee) = one_way(ideal(), controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(30));
    world.run(Time::from_secs(10));
    let recorded = world.finish();
    // the 250th is still on its way at 10 s
    assert_eq!(recorded.frames.len(), 250);
    for (k, (_, frame)) in recorded.frames.iter().take(249).enumerate() {
        // 39.36 ms in the pacer (see the test of pacing) and 30 ms on the way
        let captured = Time::from_millis(40 * k as i64);
        assert_eq!((frame.frame, frame.complete), (k as u32, Some(captured + Span::from_micros(69_360))));
        // the timestamp's clock ticks every 11.1 us: that much may be in the delay
        let wait = frame.rendered.unwrap() - frame.complete.unwrap();
        assert!((0..11_112).contains(&wait.as_nanos()), "{wait}");
    }
    assert_eq!(
        recorded.goodput,
        recorded
            .arrived
            .iter()
            .filter(|(_, p)| p.kind == Kind::Video)
            .map(|(_, p)| u64::from(payload(p)))
            .sum::<u64>()
    );
    assert_eq!((recorded.late, recorded.freezes.len()), (0, 0));
}

#[test]
fn without_marks_playout_learns_frames_from_the_driver_and_packets_are_smaller() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, callee) = one_way(ideal(), controller, FeedbackFormat::Twcc);
    caller.send.as_mut().unwrap().extensions.marks = false;
    let mut world = World::new(caller, callee, delay(30));
    world.run(Time::from_secs(10));
    let recorded = world.finish();
    assert_eq!(recorded.frames.len(), 250);
    for (k, (_, frame)) in recorded.frames.iter().take(249).enumerate() {
        // 4 packets of 1224 bytes at 1 Mb/s are 39.168 ms
        let complete = Time::from_millis(40 * k as i64) + Span::from_micros(69_168);
        assert_eq!((frame.frame, frame.complete), (k as u32, Some(complete)));
    }
    assert!(media(&recorded).iter().all(|(_, packet)| packet.rtp().is_some_and(|body| body.marks.is_none())));
}

/// A path that loses video packets sent from `from` up to `to` ms.
fn outage(from: i64, to: i64) -> Path {
    Box::new(move |now, _, packet: &Packet| {
        let lost =
            packet.kind == Kind::Video && now >= Time::from_millis(from) && now < Time::from_millis(to);
        (!lost).then(|| now + Span::from_millis(30))
    })
}

#[test]
fn an_outage_without_repair_takes_all_later_frames_with_it() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (caller, callee) = one_way(ideal(), controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, outage(4000, 4400));
    world.run(Time::from_secs(10));
    let recorded = world.finish();
    // frames 100 to 109 are gone, and no key frame follows
    let gone: Vec<u32> =
        recorded.frames.iter().filter(|(_, f)| f.complete.is_none()).map(|(_, f)| f.frame).collect();
    assert_eq!(gone[..10], (100..110).collect::<Vec<u32>>()[..]);
    assert_eq!(gone.len(), 11, "and the last one, which is still on its way");
    let shown: Vec<u32> =
        recorded.frames.iter().filter(|(_, f)| f.rendered.is_some()).map(|(_, f)| f.frame).collect();
    assert_eq!(shown, (0..100).collect::<Vec<u32>>());
    assert_eq!(recorded.freezes, [], "libwebrtc counts none that a later frame does not end");
}

#[test]
fn a_fixed_playout_discards_frames_after_a_step_in_delay_and_an_adaptive_one_waits() {
    let step = || -> Path {
        Box::new(|now, _, _| Some(now + Span::from_millis(if now < Time::from_secs(5) { 30 } else { 130 })))
    };
    let run = |playout| {
        let (controller, _) = constant(Rate::from_mbps(1));
        let (caller, mut callee) = one_way(ideal(), controller, FeedbackFormat::Twcc);
        callee.receive.as_mut().unwrap().playout = playout;
        let mut world = World::new(caller, callee, step());
        world.run(Time::from_secs(10));
        world.finish()
    };
    let rendered = |recorded: &Recorded| recorded.frames.iter().filter(|(_, f)| f.rendered.is_some()).count();
    let fixed = run(Playout::Fixed { delay: Span::from_millis(60) });
    // 125 frames before the step; all later ones are 40 ms late
    assert_eq!(rendered(&fixed), 125);
    assert!(fixed.frames.iter().skip(125).all(|(_, f)| f.rendered.is_none()));
    // of each late frame the last packets came after its deadline
    assert!(fixed.late > 200, "{}", fixed.late);
    assert_eq!(rendered(&run(Playout::Fixed { delay: Span::from_millis(101) })), 246, "enough for the step");
    let adaptive = run(Playout::default());
    assert_eq!(rendered(&adaptive), 246);
    assert_eq!(adaptive.late, 0);
    // it waits no longer than its maximum, and shows what comes later at once
    let limited = run(Playout::Adaptive { min: Span::ZERO, max: Span::from_millis(60), shrink: 0.02 });
    assert_eq!(rendered(&limited), 246);
    assert!(limited.late > 200, "{}", limited.late);
    assert!(limited.frames.iter().skip(125).all(|(_, f)| f.rendered == f.complete));
}

#[test]
fn the_statistical_source_keeps_its_mean_rate_through_the_pacer() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let source = SourceSettings::Statistical(statistical::Settings::default());
    let (caller, callee) = one_way(video(source), controller, FeedbackFormat::Twcc);
    let mut world = World::new(caller, callee, delay(30));
    world.run(Time::from_secs(600));
    let recorded = world.finish();
    let rtp: f64 = media(&recorded).iter().map(|(_, p)| f64::from(p.size - 28) * 8.0).sum::<f64>() / 600.0;
    // headers are computed for frames of equal size, an error of less than 1 %
    assert!((rtp - 1e6).abs() < 2e4, "{rtp}");
    let rate = recorded.frames_sent.iter().map(|(_, f)| f.size.as_bits() as f64).sum::<f64>() / 600.0;
    assert!((0.96e6..0.985e6).contains(&rate), "{rate}: less the headers");
    let fps = recorded.frames_sent.len() as f64 / 600.0;
    assert!((fps - 30.0).abs() < 0.2, "{fps}");
    assert!(recorded.frames_sent[0].1.key && !recorded.frames_sent[1].1.key);
}

fn shared() -> Option<PathBuf> {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let configured = std::env::var_os("TIDEGATE_SHARED").map(PathBuf::from);
    [configured, Some(manifest.join("../../../shared"))]
        .into_iter()
        .flatten()
        .find(|path| path.join("traces").is_dir())
}

/// The rungs in the files of a folder that are named by `prefix` and a rate in kb/s.
#[allow(clippy::disallowed_methods)] // the crate is without files, its tests are not
fn rungs(folder: &PathBuf, prefix: &str) -> Vec<Rung> {
    let mut rungs = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of traces") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if let Some(kbps) = name.strip_prefix(prefix) {
            let text = std::fs::read(&path).map(|bytes| String::from_utf8(bytes).unwrap()).expect("a trace");
            let rate = Rate::from_kbps(kbps.parse().expect("kb/s"));
            rungs.push(Rung::parse(&name, &text, rate).expect("a well-formed trace"));
        }
    }
    rungs
}

#[test]
fn recorded_encoders_play_at_their_rates() {
    let Some(shared) = shared() else {
        println!("skipped: ../shared with its traces is not there");
        return;
    };
    let frames = shared.join("traces/syncodecs-frames");
    let chat = rungs(&frames.join("chat_firefox_h264"), "chat_360p_");
    assert!(chat.len() >= 9, "{}", chat.len());
    let foreman = rungs(&frames.join("other/Foreman_lookahead_1"), "Foreman_ProRes_360p_");
    assert!(foreman.len() >= 4, "{}", foreman.len());
    for rungs in [chat, foreman] {
        let ladder = Arc::new(Ladder::new(rungs.clone()).expect("a ladder"));
        let rate = Rate::from_kbps(600);
        let rung = rungs.iter().find(|rung| rung.rate == rate).expect("a rung at 600 kb/s");
        let source = SourceSettings::Frames {
            ladder: ladder.clone(),
            fps: 30.0,
            skip: 20,
            group: None,
            bounds: Bounds::default(),
        };
        let mut source = source.build(1, "caller/video", 1200).expect("a source");
        source.start(Time::ZERO);
        source.set_target(Time::ZERO, rate);
        let length = ladder.length();
        for k in 0..2 * length {
            let index = if k < length { k } else { 20 + (k - length) % (length - 20) };
            let frame = source.frame(source.due());
            assert_eq!((frame.bytes, frame.key), (rung.sizes[index].max(10), index == 0), "frame {k}");
        }
    }
}

/// An encoder of slices of 1000 and 300 bytes, and of one that does not fit in a packet; it breaks at a picture.
struct Slicing {
    breaks_at: u64,
}

impl Encoder for Slicing {
    fn encode(&mut self, picture: u64, _target: Rate, key: bool) -> Result<Option<Encoded>, String> {
        if picture == self.breaks_at {
            return Err("out of film".to_owned());
        }
        Ok(picture.is_multiple_of(2).then(|| Encoded { key, slices: vec![1000, 300, 1500] }))
    }
}

fn sliced(breaks_at: u64) -> World {
    let encoder = EncoderFactory::new(move || Ok(Box::new(Slicing { breaks_at })));
    let bounds = Bounds::new(Rate::from_kbps(150), Rate::from_kbps(1500));
    let (controller, _) = constant(Rate::from_mbps(1));
    let source = SourceSettings::Live { encoder, fps: 25.0, bounds };
    let (caller, callee) = one_way(video(source), controller, FeedbackFormat::Twcc);
    World::new(caller, callee, delay(30))
}

#[test]
fn no_packet_carries_bytes_of_two_slices() {
    let mut world = sliced(u64::MAX);
    world.run(Time::from_secs(2));
    let recorded = world.finish();
    // every other picture of 51 is left out; the fate of the last is not known yet
    assert_eq!(recorded.frames.len(), 25);
    assert!(recorded.frames.iter().all(|(_, frame)| frame.rendered.is_some()));
    let payloads: Vec<u32> = media(&recorded).iter().map(|(_, packet)| payload(packet)).collect();
    for frame in payloads.chunks_exact(4) {
        assert_eq!(frame, [1000, 300, 1200, 300]);
    }
    assert!(payloads.len() >= 100);
}

#[test]
fn an_encoders_error_ends_the_run() {
    let mut world = sliced(10);
    world.run(Time::from_millis(399));
    // by hand, because a world wants no failure
    let (caller, now) = (&mut world.nodes[0], Time::from_millis(400));
    assert!(caller.next_wakeup().is_some_and(|time| time <= now));
    caller.advance(now, &mut world.out);
    assert_eq!(world.out.failure.as_deref(), Some("out of film"));
}
