//! Clocks that run apart, and that are set while a call goes on.

use crate::common::*;
use tidegate_core::wire::{ntp, rtcp, rtp};
use tidegate_core::{Body, Kind, Rate, RemoteTime, Span, Time};
use tidegate_endpoint::{
    Bounds, Clock, ClockSettings, Drift, FeedbackFormat, Playout, SourceSettings, StreamSettings, rtp_clock,
};

const VIDEO: u32 = 0x11;

/// 200 parts per million.
const FAST: Drift = Drift(200_000);

fn video() -> StreamSettings {
    StreamSettings::video(VIDEO, SourceSettings::Ideal { fps: 25.0, bounds: Bounds::default() })
}

fn set_at_ten_seconds() -> ClockSettings {
    ClockSettings { drift: FAST, steps: vec![(Time::from_secs(10), Span::from_millis(250))] }
}

/// The one-way delay of each packet as the controller sees it, less 20 ms and less the least difference of the clocks: the
/// time of its arrival, and milliseconds.
fn delays(
    format: FeedbackFormat,
    caller_clock: ClockSettings,
    callee_clock: ClockSettings,
) -> Vec<(Time, f64)> {
    let (controller, heard) = constant(Rate::from_mbps(1));
    let (mut caller, mut callee) = one_way(vec![video()], controller, format);
    (caller.clock.settings, callee.clock.settings) = (caller_clock, callee_clock);
    let offset = callee.clock.offset;
    if format == FeedbackFormat::Ccfb {
        caller.send.as_mut().unwrap().extensions.transport_sequence = false;
    }
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(20));
    let results = heard.lock().unwrap().results();
    // the clock in feedback has wraps, of which the controller sees none
    let wrap = if format == FeedbackFormat::Ccfb { 65_536.0 } else { 16_777_216.0 * 0.064 };
    let seen = |result: &tidegate_core::control::PacketResult| {
        let arrival = RemoteTime::from_nanos((result.sent + offset).as_nanos());
        let apart = (result.arrival? - arrival).as_secs_f64();
        Some((result.sent, (apart - (apart / wrap).round() * wrap) * 1e3 - 20.0))
    };
    let seen: Vec<_> = results.iter().filter_map(seen).collect();
    assert!(seen.len() > 1500, "{} results", seen.len());
    seen
}

/// Asserts that the clocks part at `ppm`, and by a step of so many milliseconds at ten seconds, to what feedback can say.
fn assert_apart(delays: &[(Time, f64)], ppm: f64, step: f64, exact: f64) {
    for (sent, delay) in delays {
        let at = sent.as_secs_f64();
        // what arrives at 10 s left before
        let stepped = if at >= 9.98 { step } else { 0.0 };
        let expected = ppm * 1e-3 * at + stepped;
        assert!((delay - expected).abs() < exact, "at {at} s {delay} ms for {expected}");
    }
}

#[test]
fn feedback_has_the_date_of_the_receiver_and_the_delay_of_the_sender() {
    // 250 us, and 1/1024 s rounded; what a clock gains in 20 ms is nothing beside it
    for (format, exact) in [(FeedbackFormat::Twcc, 0.3), (FeedbackFormat::Ccfb, 1.0)] {
        let (true_clock, fast) = (ClockSettings::default, set_at_ten_seconds);
        assert_apart(&delays(format, true_clock(), true_clock()), 0.0, 0.0, exact);
        assert_apart(&delays(format, true_clock(), fast()), 200.0, 250.0, exact);
        // the sender's own clock has no date: only what it counts
        assert_apart(&delays(format, fast(), true_clock()), -200.0, 0.0, exact);
        assert_apart(&delays(format, fast(), fast()), 0.0, 250.0, exact);
    }
}

#[test]
fn stamps_of_a_sender_have_its_date_and_those_of_media_its_oscillator() {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, callee) = one_way(vec![video()], controller, FeedbackFormat::Twcc);
    caller.clock.settings = set_at_ten_seconds();
    let clock: Clock = caller.clock.clone();
    let mut world = World::with_bytes(caller, callee, delay(20), true);
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    let (mut stamps, mut first) = (Vec::new(), None);
    for (now, packet) in recorded.sent.iter().filter(|(_, packet)| packet.kind == Kind::Video) {
        let Body::Rtp(body) = packet.body else { panic!("{packet:?}") };
        let [a, b, c] = body.abs_send_time.unwrap();
        let date = Time::from_nanos(clock.date(*now).as_nanos());
        assert_eq!(u32::from_be_bytes([0, a, b, c]), rtp::abs_send_time(date));
        stamps.push(body.timestamp);
        first.get_or_insert(body.timestamp);
    }
    // 25 frames a second from the start on to the end, by a clock that is 4 ms fast then
    let last = 25 * 20;
    let elapsed = rtp_clock(FAST.elapsed(Time::from_millis(40 * last)), 90_000);
    assert_eq!(stamps[stamps.len() - 1].wrapping_sub(stamps[0]), elapsed);
    assert!((f64::from(elapsed) / 90.0 - 40.0 * last as f64 - 4.0).abs() < 0.02);
    let reports: Vec<(Time, rtcp::SenderReport)> = rtcp_packets(&recorded)
        .into_iter()
        .flat_map(|(now, packets)| packets.into_iter().map(move |packet| (now, packet)))
        .filter_map(|(now, packet)| match packet {
            rtcp::Packet::SenderReport(report) => Some((now, report)),
            _ => None,
        })
        .collect();
    assert!(reports.iter().any(|(now, _)| *now > Time::from_secs(10)) && reports.len() > 3);
    for (now, report) in reports {
        assert_eq!(report.ntp, ntp::timestamp(clock.date(now)));
        let since = report.rtp_timestamp.wrapping_sub(stamps[0]);
        assert_eq!(since, rtp_clock(FAST.elapsed(now), 90_000));
    }
}

/// Delay of playout of each frame that was shown, in milliseconds.
fn playout(caller_clock: ClockSettings, callee_clock: ClockSettings) -> Vec<f64> {
    let (controller, _) = constant(Rate::from_mbps(1));
    let (mut caller, mut callee) = one_way(vec![video()], controller, FeedbackFormat::Twcc);
    (caller.clock.settings, callee.clock.settings) = (caller_clock, callee_clock);
    callee.receive.as_mut().unwrap().playout = Playout::Fixed { delay: Span::from_millis(100) };
    let mut world = World::new(caller, callee, delay(20));
    world.run(Time::from_secs(20));
    let recorded = world.finish();
    let shown = recorded.frames.iter().filter_map(|(_, frame)| Some((frame.frame, frame.rendered?)));
    shown.map(|(frame, shown)| (shown - Time::from_millis(40 * i64::from(frame))).as_millis_f64()).collect()
}

#[test]
fn playout_drifts_by_the_difference_of_the_oscillators_and_no_date_moves_it() {
    let drifts = |caller, callee| {
        let delays = playout(caller, callee);
        assert!(delays.len() > 490, "{} frames", delays.len());
        delays[delays.len() - 1] - delays[0]
    };
    let (true_clock, fast) = (ClockSettings::default, set_at_ten_seconds);
    // 200 ppm of 20 s: later where the sender counts more, sooner where the receiver does
    assert!(drifts(true_clock(), true_clock()).abs() < 0.05);
    assert!((drifts(fast(), true_clock()) - 4.0).abs() < 0.1);
    assert!((drifts(true_clock(), fast()) + 4.0).abs() < 0.1);
    assert!(drifts(fast(), fast()).abs() < 0.05);
}
