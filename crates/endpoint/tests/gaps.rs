//! The minimum gap of a decision on the wire, and the true delays that a receiver half may request.

use crate::common::*;
use std::sync::{Arc, Mutex};
use tidegate_core::control::{Arrived, Context, Feedback, FeedbackRequest, ReceiverHalf};
use tidegate_core::wire::rtp;
use tidegate_core::{Decision, Rate, Span, Time};
use tidegate_endpoint::{Bounds, Clock, Extensions, FeedbackFormat, SourceSettings, StreamSettings};

const VIDEO: u32 = 0x11;
const SECOND: Time = Time::from_secs(1);

/// A decision of 100 Mb/s, which only the gap limits.
fn gap(micros: i64) -> Decision {
    Decision { min_gap: Some(Span::from_micros(micros)), ..Decision::rate(Rate::from_mbps(100)) }
}

fn departures(streams: Vec<StreamSettings>, script: Vec<(Time, Decision)>, until: Time) -> Vec<Time> {
    let (controller, _) = scripted(script);
    let (caller, callee) = one_way(streams, controller, FeedbackFormat::None);
    let mut world = World::new(caller, callee, delay(20));
    world.run(until);
    media(&world.finish()).iter().map(|(departed, _)| *departed).collect()
}

#[test]
fn with_always_a_packet_to_send_the_gap_is_the_distance_to_the_nanosecond() {
    let greedy = vec![StreamSettings::video(VIDEO, SourceSettings::Greedy(Bounds::default()))];
    // 100 Mb/s would have a packet each 98 us, and five in a burst at once
    let later = Time::from_micros(1_000_700);
    let script = vec![(Time::ZERO, gap(650)), (later, gap(2340))];
    let departed = departures(greedy, script, Time::from_secs(2));
    // up to 1 s plus 350 us a packet each 650 us; the new gap comes 200 us before the next one is due at 1000.9 ms, and
    // counts from the last packet
    let last = Time::from_micros(1_000_350);
    let expected = (0..=1539).map(|k| Time::from_micros(650 * k));
    let expected = expected.chain((1..=427).map(|k| last + Span::from_micros(2340 * k)));
    assert_eq!(departed, expected.collect::<Vec<Time>>());
}

#[test]
fn frames_are_spread_by_the_gap_and_no_further() {
    let frames = || {
        let bounds = Bounds::new(Rate::from_mbps(1), Rate::from_mbps(1));
        vec![StreamSettings::video(VIDEO, SourceSettings::Ideal { fps: 25.0, bounds })]
    };
    let before_the_26th = Time::from_millis(999);
    // 5000 bytes of a frame are five packets, each frame at once and four gaps after it
    let departed = departures(frames(), vec![(Time::ZERO, gap(650))], before_the_26th);
    assert_eq!(departed.len(), 125);
    let first = departed[0];
    let expected =
        (0..25).flat_map(|frame| (0..5).map(move |k| first + Span::from_micros(40_000 * frame + 650 * k)));
    assert_eq!(departed, expected.collect::<Vec<Time>>());
    // a gap of 10 ms is longer than a fifth of a frame's 40 ms: frames run into each other
    let departed = departures(frames(), vec![(Time::ZERO, gap(10_000))], before_the_26th);
    assert!(departed.windows(2).all(|pair| pair[1] - pair[0] == Span::from_millis(10)), "{departed:?}");
}

struct Ear {
    wants: bool,
    received: Arc<Mutex<Vec<Option<Span>>>>,
}

impl ReceiverHalf for Ear {
    fn on_packet(&mut self, _now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> FeedbackRequest {
        self.received.lock().unwrap().push(packet.true_delay);
        FeedbackRequest::default()
    }
    fn message(&mut self, _now: Time, _cx: &mut Context<'_>) -> Feedback {
        Feedback::new()
    }
    fn needs_true_delay(&self) -> bool {
        self.wants
    }
}

#[test]
fn true_delays_are_for_a_half_that_needs_them() {
    for wants in [true, false] {
        let greedy = vec![StreamSettings::video(VIDEO, SourceSettings::Greedy(Bounds::default()))];
        let (controller, _) = constant(Rate::from_mbps(1));
        let (caller, mut callee) = one_way(greedy, controller, FeedbackFormat::None);
        let received = Arc::new(Mutex::new(vec![]));
        callee.receive.as_mut().unwrap().half = Some(Box::new(Ear { wants, received: received.clone() }));
        // packets take 20 ms, and each a microsecond longer
        let mut late = 0;
        let path = move |now: Time, _: usize, _: &_| {
            late += 1;
            Some(now + Span::from_millis(20) + Span::from_micros(late))
        };
        let mut world = World::new(caller, callee, Box::new(path));
        world.run(SECOND);
        let recorded = world.finish();
        let received = received.lock().unwrap();
        assert!(received.len() > 90, "{}", received.len());
        let sent = media(&recorded);
        let arrivals = recorded.arrived.iter().filter(|(_, packet)| packet.rtcp().is_none());
        let delays: Vec<_> =
            sent.iter().zip(arrivals).map(|((sent, _), (arrival, _))| *arrival - *sent).collect();
        assert!(delays.iter().all(|delay| (20_000_000..21_000_000).contains(&delay.as_nanos())));
        assert_eq!(*received, delays.iter().map(|&delay| wants.then_some(delay)).collect::<Vec<_>>());
    }
}

/// Transport-wide number and abs-send-time of a packet.
type HeaderExtensions = (Option<u64>, Option<u32>);

/// A half that notes the contents of header extensions.
struct ExtensionReader(Arc<Mutex<Vec<HeaderExtensions>>>);

impl ReceiverHalf for ExtensionReader {
    fn on_packet(&mut self, _now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> FeedbackRequest {
        self.0.lock().unwrap().push((packet.sequence, packet.abs_send_time));
        FeedbackRequest::default()
    }
    fn message(&mut self, _now: Time, _cx: &mut Context<'_>) -> Feedback {
        Feedback::new()
    }
}

#[test]
fn a_half_gets_the_contents_of_header_extensions_and_no_more() {
    for (numbered, timed) in [(true, true), (true, false), (false, true), (false, false)] {
        let greedy = vec![StreamSettings::video(VIDEO, SourceSettings::Greedy(Bounds::default()))];
        let (controller, _) = constant(Rate::from_mbps(1));
        let (mut caller, mut callee) = one_way(greedy, controller, FeedbackFormat::None);
        let received = Arc::new(Mutex::new(vec![]));
        let extensions =
            Extensions { transport_sequence: numbered, abs_send_time: timed, ..Extensions::default() };
        caller.send.as_mut().unwrap().extensions = extensions;
        let receive = callee.receive.as_mut().unwrap();
        receive.half = Some(Box::new(ExtensionReader(received.clone())));
        let mut world = World::new(caller, callee, delay(20));
        world.run(SECOND);
        let recorded = world.finish();
        let received = received.lock().unwrap();
        assert!(received.len() > 90, "{}", received.len());
        // the sender's clock is not the driver's
        let clock = Clock::new(SEED, "caller").offset;
        for (k, ((sent, _), read)) in media(&recorded).iter().zip(&*received).enumerate() {
            let time = rtp::abs_send_time(*sent + clock);
            assert_eq!(*read, (numbered.then_some(k as u64), timed.then_some(time)));
        }
    }
}
