use super::*;
use std::sync::{Arc, Mutex};
use tidegate_core::record::Recorder;
use tidegate_core::{Datagram, DatagramInfo};

/// (frame, complete, rendered) in ms, and frames of late packets.
#[derive(Default)]
struct Recorded {
    frames: Vec<(u32, Option<i64>, Option<i64>)>,
    /// When each of them was to be shown, in ms.
    due: Vec<Option<i64>>,
    late: Vec<u32>,
    freezes: Vec<i64>,
}

struct Log(Arc<Mutex<Recorded>>);

impl Recorder for Log {
    fn frame(&mut self, _now: Time, frame: &FrameRecord) {
        let millis = |time: Option<Time>| time.map(|time| time.as_nanos() / 1_000_000);
        let mut recorded = self.0.lock().expect("the log");
        recorded.frames.push((frame.frame, millis(frame.complete), millis(frame.rendered)));
        recorded.due.push(millis(frame.due));
    }
    fn freeze(&mut self, _now: Time, _flow: FlowId, length: Span) {
        self.0.lock().expect("the log").freezes.push(length.as_nanos() / 1_000_000);
    }
}

/// The driver of a playout buffer, which sends nothing; late packets belong to the frame with this number.
struct Listener(Log, u32);

impl Driver for Listener {
    fn record(&mut self) -> &mut dyn Recorder {
        &mut self.0
    }
    fn send(&mut self, _now: Time, datagram: Datagram, _info: DatagramInfo) {
        panic!("sent {datagram:?}");
    }
    fn late(&mut self, _now: Time, _flow: FlowId) {
        self.0.0.lock().expect("the log").late.push(self.1);
    }
    fn true_delay(&self, _now: Time) -> Span {
        Span::ZERO
    }
    fn true_frame(&self) -> Frame {
        Frame::default()
    }
    fn fail(&mut self, reason: String) {
        panic!("{reason}");
    }
    fn has_failed(&self) -> bool {
        false
    }
}

struct Bench {
    buffer: PlayoutBuffer,
    out: Listener,
    recorded: Arc<Mutex<Recorded>>,
    /// Numbers of the key frames.
    keys: Vec<u32>,
    /// Number of frames between a frame and the one to which it refers.
    between: fn(u32) -> u8,
}

impl Bench {
    fn new(mode: Playout) -> Self {
        Self::of(mode, true)
    }

    fn of(mode: Playout, video: bool) -> Self {
        let recorded = Arc::new(Mutex::new(Recorded::default()));
        Self {
            buffer: PlayoutBuffer::new(FlowId(1), video, mode, 1000),
            out: Listener(Log(recorded.clone()), 0),
            recorded,
            keys: vec![0],
            between: |_| 0,
        }
    }

    /// A key frame at these numbers, beside the first frame.
    fn with_keys(mut self, keys: &[u32]) -> Self {
        self.keys.extend(keys);
        self
    }

    /// Delivers a packet of `frame`, which was captured `40 * frame` ms after the start, at `millis` ms; `part`: 0, 1
    /// or 2, of the frame's three packets.
    fn part(&mut self, millis: i64, frame: u32, part: u16) -> &mut Self {
        let now = Time::from_millis(millis);
        while self.buffer.due() < now {
            self.buffer.run(self.buffer.due(), &mut self.out);
        }
        let key = if self.keys.contains(&frame) { Frame::KEY } else { 0 };
        let between = Frame::flags_between((self.between)(frame));
        let flags = [Frame::FIRST, 0, Frame::LAST][usize::from(part)] | key | between;
        let sequence = 3 * frame as i64 + i64::from(part);
        self.out.1 = frame;
        let timestamp = (40 * frame).wrapping_add(u32::MAX - 100);
        let position = Frame { number: frame, flags };
        self.buffer.packet(now, position, timestamp, sequence, &mut self.out);
        self
    }

    fn complete_frame(&mut self, millis: i64, frame: u32) -> &mut Self {
        self.part(millis, frame, 0).part(millis, frame, 1).part(millis, frame, 2)
    }

    fn until(&mut self, millis: i64) -> Vec<(u32, Option<i64>, Option<i64>)> {
        while self.buffer.due() <= Time::from_millis(millis) {
            self.buffer.run(self.buffer.due(), &mut self.out);
        }
        self.recorded.lock().expect("the log").frames.clone()
    }
}

#[test]
fn a_fixed_delay_shows_in_step_and_gives_up_late_frames() {
    let mut bench = Bench::new(Playout::Fixed { delay: Span::from_millis(50) });
    // frame 0 is complete at 100 ms, so that frame k is shown at 150 + 40 k
    bench
        .complete_frame(100, 0)
        .complete_frame(140, 1)
        .complete_frame(230, 2)
        .part(220, 3, 0)
        .complete_frame(265, 4)
        .part(290, 3, 1);
    bench.part(300, 3, 2);
    let frames = bench.until(400);
    assert_eq!(
        frames,
        [
            (0, Some(100), Some(150)),
            (1, Some(140), Some(190)),
            (2, Some(230), Some(230)), // just in time
            (3, None, None),           // its deadline was 270 ms
            (4, Some(265), None),      // cannot be decoded without frame 3
        ]
    );
    assert_eq!(bench.recorded.lock().expect("the log").late, [3, 3]);
    assert!(bench.buffer.wants_key());
}

#[test]
fn an_adaptive_delay_grows_at_once_and_shrinks_slowly() {
    let mut bench = Bench::new(Playout::Adaptive { min: Span::ZERO, max: Span::from_secs(10), shrink: 0.1 });
    bench.complete_frame(100, 0).complete_frame(140, 1);
    // 60 ms late: shown at once, and the delay is 60 ms from now on
    bench.complete_frame(240, 2).complete_frame(220 + 21, 3);
    let frames = bench.until(5000);
    assert_eq!(
        frames[..3],
        [(0, Some(100), Some(100)), (1, Some(140), Some(140)), (2, Some(240), Some(240))]
    );
    assert_eq!(frames[3], (3, Some(241), Some(280)), "100 + 3 x 40 + 60");
    // the slow frame is among the 100 recent ones up to frame 101; from 102 on 4 ms less a frame
    for k in 4..=120u32 {
        bench.complete_frame(100 + 40 * i64::from(k), k);
    }
    let frames = bench.until(10_000);
    let delay = |k: usize| frames[k].2.expect("shown") - frames[k].1.expect("whole");
    assert_eq!((delay(50), delay(100)), (60, 60));
    // a frame waits longer than 40 ms: the next one, on its arrival, has already taken 4 ms off
    assert_eq!([101, 102, 103, 104].map(delay), [56, 52, 48, 44]);
    assert_eq!([107, 108, 115, 116, 120].map(delay), [36, 32, 4, 0, 0]);
}

#[test]
fn the_adaptive_delay_has_a_margin_and_a_maximum() {
    let mode = Playout::Adaptive { min: Span::from_millis(10), max: Span::from_millis(100), shrink: 0.1 };
    // video that comes after its deadline is shown at once, audio is not
    for (video, late) in [(true, [Some(330), Some(331)]), (false, [None, None])] {
        let mut bench = Bench::of(mode, video);
        // frame 1 comes 80 ms late, frame 2 150 ms late
        bench.complete_frame(100, 0).complete_frame(220, 1).complete_frame(330, 2).complete_frame(331, 3);
        assert_eq!(
            bench.until(2000),
            [
                (0, Some(100), Some(110)),
                (1, Some(220), Some(230)),
                (2, Some(330), late[0]), // its deadline was 100 + 80 + 100
                (3, Some(331), late[1]), // and this one's 100 + 120 + 100
            ]
        );
        assert_eq!(bench.recorded.lock().expect("the log").late, [2, 2, 2, 3, 3, 3]);
        // a frame that comes in time again is shown with the maximal delay
        bench.complete_frame(300, 4);
        assert_eq!(bench.until(2000)[4], (4, Some(300), Some(360)));
    }
}

#[test]
fn a_late_frame_that_cannot_be_decoded_is_due_when_it_is_whole() {
    let due = |video: bool| {
        let mut bench = Bench::of(ADAPTIVE, video);
        // frame 1 never comes, and the deadline of frame 3 is 100 + 120 + 1000
        bench.complete_frame(100, 0).complete_frame(180, 2).complete_frame(1400, 3);
        bench.until(2000);
        bench.recorded.lock().expect("the log").due.clone()
    };
    assert_eq!(due(true), [Some(100), None, Some(180), Some(1400)]);
    // audio needs no other frame, and one that is late is not shown
    assert_eq!(due(false), [Some(100), None, Some(180), None]);
}

const ADAPTIVE: Playout = Playout::Adaptive { min: Span::ZERO, max: Span::from_secs(1), shrink: 0.0 };

/// In coding order I, P, B, B, P, B, B, P, ...: each refers to the last I or P.
const IBBP: fn(u32) -> u8 = |frame| (frame.max(2) - 2) as u8 % 3;

#[test]
fn a_b_frame_takes_no_other_with_it_and_its_reference_all() {
    for mode in [Playout::Fixed { delay: Span::from_millis(50) }, ADAPTIVE] {
        let shown = |lost: u32| {
            let mut bench = Bench::new(mode);
            bench.between = IBBP;
            for frame in (0..11).filter(|&frame| frame != lost) {
                bench.complete_frame(100 + 40 * i64::from(frame), frame);
            }
            let frames = bench.until(5000);
            assert_eq!(bench.buffer.wants_key(), lost == 4, "{lost}");
            frames.iter().filter(|frame| frame.2.is_some()).map(|frame| frame.0).collect::<Vec<_>>()
        };
        let all_but = |lost: &[u32]| (0..11).filter(|frame| !lost.contains(frame)).collect::<Vec<_>>();
        // 0 I, 1 P, 2 and 3 B, 4 P, 5 and 6 B, 7 P
        assert_eq!(shown(2), all_but(&[2]));
        assert_eq!(shown(6), all_but(&[6]));
        assert_eq!(shown(4), [0, 1, 2, 3]);
    }
}

#[test]
fn a_missing_frame_holds_up_the_later_ones_until_it_comes() {
    let mut bench = Bench::new(ADAPTIVE);
    bench.complete_frame(100, 0).part(140, 1, 0).part(141, 1, 2);
    assert!(!bench.buffer.wants_key());
    bench.complete_frame(180, 2);
    assert!(bench.buffer.wants_key(), "frame 2 is due");
    bench.part(221, 1, 1);
    assert!(!bench.buffer.wants_key(), "frame 1 has come");
    // frame 1 came 81 ms late, and so is each frame from then on
    assert_eq!(
        bench.until(2000),
        [(0, Some(100), Some(100)), (1, Some(221), Some(221)), (2, Some(180), Some(261))]
    );
    assert_eq!(bench.recorded.lock().expect("the log").late, []);
}

#[test]
fn a_frame_that_never_comes_takes_with_it_all_up_to_the_next_key_frame() {
    // frame 1 lacks a packet, and frame 2 has none; frame k is complete at 100 + 40 k
    let frames = |key: u32| {
        let mut bench = Bench::new(ADAPTIVE).with_keys(&[key]);
        bench.complete_frame(100, 0).part(140, 1, 0).part(141, 1, 2);
        (3..60).for_each(|k| _ = bench.complete_frame(100 + 40 * i64::from(k), k));
        let frames = bench.until(10_000);
        let shown = frames.iter().filter(|frame| frame.2.is_some()).map(|frame| frame.0).collect::<Vec<_>>();
        assert_eq!(shown, [0].into_iter().chain(key..60).collect::<Vec<_>>());
        assert_eq!(frames[1..4], [(1, None, None), (2, None, None), (3, Some(220), None)]);
        assert!(
            frames.iter().all(|frame| frame.2.is_none_or(|shown| shown == 100 + 40 * i64::from(frame.0)))
        );
        let freezes = bench.recorded.lock().expect("the log").freezes.clone();
        (bench.buffer.wants_key(), freezes)
    };
    // one that comes before the deadline of frame 1, at 1140 ms, and one after it
    assert_eq!([20, 40].map(frames), [(false, vec![]), (false, vec![])]);
    let mut bench = Bench::new(ADAPTIVE);
    (0..60).filter(|&k| k != 30).for_each(|k| _ = bench.complete_frame(100 + 40 * i64::from(k), k));
    assert_eq!(bench.until(10_000).iter().filter(|frame| frame.2.is_some()).count(), 30);
    assert!(bench.buffer.wants_key(), "a key frame is missing for good");
    bench.buffer.finish(Time::from_secs(20), &mut bench.out);
    assert_eq!(bench.recorded.lock().expect("the log").freezes, [], "libwebrtc counts none at the end");
}

#[test]
fn a_key_frame_ends_a_freeze_and_a_damaged_key_frame_does_not() {
    let mut bench = Bench::new(ADAPTIVE).with_keys(&[20, 25]);
    for k in (0..40).filter(|k| ![15, 20].contains(k)) {
        bench.complete_frame(100 + 40 * i64::from(k), k);
        if k == 17 {
            assert!(bench.buffer.wants_key());
        }
        if k == 19 {
            // of the key frame the first packet comes, and the others do not
            bench.part(900, 20, 0);
            assert!(!bench.buffer.wants_key());
        }
        if k == 22 {
            assert!(bench.buffer.wants_key(), "frame 21 was due and needs frame 20");
        }
    }
    let frames = bench.until(10_000);
    let shown: Vec<u32> = frames.iter().filter(|frame| frame.2.is_some()).map(|frame| frame.0).collect();
    assert_eq!(shown, (0..15).chain(25..40).collect::<Vec<_>>());
    assert!(!bench.buffer.wants_key());
    // from frame 14 to frame 25: 440 ms, more than (14 x 40 + 440) / 15 + 150
    assert_eq!(bench.recorded.lock().expect("the log").freezes, [440]);
}

#[test]
fn with_requests_a_frame_waits_beyond_its_deadline_and_a_key_frame_is_requested_after_three_seconds() {
    let mut bench = Bench::new(ADAPTIVE).with_keys(&[90]);
    bench.buffer.set_requests(true, true);
    bench.buffer.set_first_repairable(Some(1));
    for k in 0..80 {
        if k == 1 {
            bench.part(140, 1, 0).part(141, 1, 2);
        } else {
            bench.complete_frame(100 + 40 * i64::from(k), k);
        }
        assert_eq!(bench.buffer.wants_key(), 100 + 40 * k >= 3100, "frame 0 was decoded at 100 ms");
    }
    assert_eq!(bench.recorded.lock().expect("the log").frames.len(), 1, "all others wait");
    bench.buffer.key_requested();
    // what comes at last is shown at once, long after its deadline; the frames that came in time with the longest delay
    bench.part(3300, 1, 1);
    let frames = bench.until(5000);
    assert_eq!(frames[1], (1, Some(3300), Some(3300)));
    assert!(frames[2..].iter().all(|frame| frame.2 == Some((40 * i64::from(frame.0) + 1100).max(3300))));
    assert_eq!(frames.len(), 80);
    assert!(!bench.buffer.wants_key());
    // a key frame is shown though packets before it are requested
    bench.buffer.set_first_repairable(Some(80));
    (81..=95).for_each(|k| _ = bench.complete_frame(100 + 40 * i64::from(k), k));
    let shown: Vec<u32> =
        bench.until(9000).iter().filter(|frame| frame.2.is_some()).map(|frame| frame.0).collect();
    assert_eq!(shown[80..], (90..=95).collect::<Vec<_>>());
}

#[test]
fn audio_goes_on_without_a_missing_frame() {
    let mut bench = Bench::of(ADAPTIVE, false);
    bench.complete_frame(100, 0).part(140, 1, 0).complete_frame(180, 2).part(221, 1, 1);
    assert_eq!(bench.until(2000), [(0, Some(100), Some(100)), (1, None, None), (2, Some(180), Some(180))]);
    assert_eq!(bench.recorded.lock().expect("the log").late, [1]);
    assert!(!bench.buffer.wants_key());
}

#[test]
fn a_jump_over_many_frames_loses_them_all() {
    let mut bench = Bench::new(Playout::default()).with_keys(&[10_000]);
    bench.complete_frame(100, 0).complete_frame(100 + 40 * 10_000, 10_000);
    let frames = bench.until(1_000_000);
    assert_eq!(frames.len(), 10_001);
    assert!(
        frames[1..10_000].iter().all(|&(_, complete, rendered)| complete.is_none() && rendered.is_none())
    );
    assert_eq!(frames[10_000], (10_000, Some(400_100), Some(400_100)));
}

#[test]
fn the_maximal_delay_holds_from_the_first_fast_frame_on() {
    let mode = Playout::Adaptive { min: Span::ZERO, max: Span::from_secs(1), shrink: 0.1 };
    let mut bench = Bench::new(mode);
    // 150 frames come at once after 6 s, one a millisecond; all later ones take 200 ms
    for k in 0..150u32 {
        bench.complete_frame(6000 + i64::from(k), k);
    }
    for k in 150..300u32 {
        bench.complete_frame(40 * i64::from(k) + 200, k);
    }
    let frames = bench.until(20_000);
    let rendered: Vec<i64> = frames.iter().map(|frame| frame.2.expect("shown")).collect();
    assert_eq!(rendered.len(), 300);
    // With frame k the fastest took 6000 - 39 k, and no frame waits for longer than a second more. So frame j, due at
    // 40 j + 7000 - 39 k, is shown when frame k = j + 25 comes, as long as there is one.
    assert_eq!(rendered[0], 6000);
    assert!((1..=124).all(|j| rendered[j] == 6025 + j as i64));
    // from then on the fastest is frame 149 with 189 ms
    assert!((125..300).all(|j| rendered[j] - 40 * j as i64 <= 1189), "{rendered:?}");
    assert_eq!(rendered[125], 40 * 125 + 1189);
    assert_eq!(bench.recorded.lock().expect("the log").freezes, [], "libwebrtc counts none at the beginning");
}
