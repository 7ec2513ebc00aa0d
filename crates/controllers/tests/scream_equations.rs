//! Each equation of the draft of SCReAM version 2 by itself, against arithmetic done by hand or in closed form.

use serde_json::{Value, json};
use tidegate_controllers::scream::alpha::{DelayAverage, L4sAlpha};
use tidegate_controllers::scream::flight::Acked;
use tidegate_controllers::scream::rate::{AckedRate, Frames, overhead, pacing, target};
use tidegate_controllers::scream::settings::Settings;
use tidegate_controllers::scream::window::{RefWindow, Step};
use tidegate_core::control::NewFrame;
use tidegate_core::{Size, Span, Time};

fn with(overrides: Value) -> Settings {
    Settings::with("draft", &["draft"], &overrides).expect("valid")
}

fn draft() -> Settings {
    with(Value::Null)
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

/// A report after 25 ms without anything special, which acknowledges a window of 40 kB.
fn step(millis: i64) -> Step {
    Step {
        now: Time::from_millis(millis),
        acked: 40_000.0,
        marked_bytes: 0.0,
        lost: false,
        marked: false,
        qdelay: 0.0,
        qdelay_avg: 0.0,
        qdelay_target: 0.06,
        s_rtt: 0.025,
        l4s_alpha: 0.0,
        delay_scale: 1.0,
        max_in_flight: 60_000.0,
        max_in_flight_prev: 60_000.0,
        target: 1e6,
        target_max: 1e7,
        acked_rate: 0.0,
        policed: f64::INFINITY,
    }
}

fn window(bytes: f64, inflection: f64, set: &Settings) -> RefWindow {
    let mut window = RefWindow::new(set);
    (window.bytes, window.inflection) = (bytes, inflection);
    window
}

/// A window after one report: it was 40 kB and is far from its inflection point.
fn after(step: &Step, set: &Settings) -> f64 {
    let mut window = window(40_000.0, 1.0, set);
    window.update(step, set);
    window.bytes
}

#[test]
fn the_window_begins_at_its_least() {
    assert_eq!(RefWindow::new(&draft()).bytes, 3000.0);
}

#[test]
fn far_from_the_inflection_point_all_is_whole_and_near_it_a_tenth() {
    let scale = |bytes, factor| window(bytes, 40_000.0, &draft()).scale(factor);
    near(scale(40_000.0, 8.0), 0.1);
    near(scale(42_000.0, 8.0), 0.4 * 0.4);
    near(scale(38_000.0, 8.0), 0.4 * 0.4);
    near(scale(45_000.0, 8.0), 1.0);
    near(scale(42_000.0, 2.0), 0.1);
    near(scale(60_000.0, 2.0), 1.0);
}

#[test]
fn a_round_trip_adds_a_segment_and_a_fiftieth() {
    // 40000 x 1000/40000 = 1000 bytes, times 1 + 0.02 x 40000/1000
    near(after(&step(25), &draft()), 40_000.0 + 1000.0 * 1.8);
    near(after(&step(25), &with(json!({"mul_increase": 0.0}))), 41_000.0);
    // a shorter round trip adds less, so that a second adds the same; a longer one a segment, too
    let plain = with(json!({"mul_increase": 0.0}));
    near(after(&Step { s_rtt: 0.01, ..step(25) }, &plain), 40_400.0);
    near(after(&Step { s_rtt: 0.1, ..step(25) }, &plain), 41_000.0);
    // what was marked adds nothing
    near(after(&Step { marked_bytes: 10_000.0, ..step(25) }, &plain), 40_750.0);
    // nor is it jitter's time
    near(after(&Step { delay_scale: 0.5, ..step(25) }, &plain), 40_500.0);
    near(after(&Step { delay_scale: 0.0, ..step(25) }, &plain), 40_100.0);
    // whole bytes
    near(after(&Step { acked: 40_031.0, ..step(25) }, &plain), 41_000.0);
}

#[test]
fn the_window_does_not_outgrow_what_is_in_flight_nor_the_largest_target() {
    let grows = |step: &Step| after(step, &draft()) > 40_000.0;
    // 1000 + 1.5 x 27200 = 41800
    let flies = |a, b| Step { max_in_flight: a, max_in_flight_prev: b, ..step(25) };
    assert!(grows(&flies(27_200.0, 0.0)) && grows(&flies(0.0, 27_200.0)));
    assert!(!grows(&flies(27_199.0, 27_199.0)));
    assert!(grows(&Step { target: 9.99e6, ..step(25) }) && !grows(&Step { target: 1e7, ..step(25) }));
}

#[test]
fn a_loss_leaves_seven_tenths_once_a_round_trip() {
    let set = with(json!({"mul_increase": 0.0}));
    let lost = Step { lost: true, acked: 0.0, ..step(25) };
    let mut window = window(40_000.0, 1.0, &set);
    assert!(window.update(&lost, &set));
    near(window.bytes, 28_000.0);
    near(window.inflection, 40_000.0);
    // the next one is remembered until 25 ms are over, although nothing more is lost
    assert!(!window.update(&Step { now: Time::from_millis(49), ..lost }, &set));
    near(window.bytes, 28_000.0);
    assert!(window.update(&Step { acked: 0.0, ..step(50) }, &set));
    near(window.bytes, 19_600.0);
    near(window.inflection, 40_000.0);
    assert!(!window.update(&Step { acked: 0.0, ..step(75) }, &set), "and answered once");
    // a round trip shorter than the virtual one is the least time
    let mut window = self::window(40_000.0, 1.0, &set);
    let short = Step { s_rtt: 0.01, ..lost };
    assert!(
        window.update(&short, &set) && window.update(&Step { now: Time::from_millis(35), ..short }, &set)
    );
    let least = self::window(3500.0, 1.0, &set).update(&lost, &set);
    assert!(least);
    let mut window = self::window(3500.0, 1.0, &set);
    window.update(&lost, &set);
    near(window.bytes, 3000.0);
}

#[test]
fn a_classic_mark_leaves_eight_tenths() {
    let set = with(json!({"ecn": "classic"}));
    near(after(&Step { marked: true, acked: 0.0, l4s_alpha: 1.0, ..step(25) }, &set), 32_000.0);
    // a loss comes first
    near(after(&Step { marked: true, lost: true, acked: 0.0, ..step(25) }, &set), 28_000.0);
}

/// A window that has already reduced at zero, and then meets `marked` after 25 ms.
fn marked(marked: &Step, bytes: f64, inflection: f64) -> f64 {
    let set = draft();
    let mut window = window(100_000.0, 1.0, &set);
    window.update(&Step { lost: true, acked: 0.0, ..step(0) }, &set);
    (window.bytes, window.inflection) = (bytes, inflection);
    window.update(&Step { acked: 0.0, marked: true, ..*marked }, &set);
    window.bytes
}

#[test]
fn l4s_marks_take_half_their_share() {
    let marks = Step { l4s_alpha: 0.2, ..step(25) };
    near(marked(&marks, 40_000.0, 1.0), 36_000.0);
    // four times the virtual round trip: a quarter, for it is answered as often
    near(marked(&Step { s_rtt: 0.1, ..marks }, 40_000.0, 1.0), 39_000.0);
    near(marked(&Step { s_rtt: 0.01, ..marks }, 40_000.0, 1.0), 36_000.0);
    // near the inflection point a quarter, unless a queue stands (a quarter of 60 ms or more)
    near(marked(&marks, 40_000.0, 40_000.0), 39_000.0);
    near(marked(&Step { qdelay: 0.0149, ..marks }, 40_000.0, 40_000.0), 39_000.0);
    near(marked(&Step { qdelay: 0.015, ..marks }, 40_000.0, 40_000.0), 36_000.0);
    near(marked(&Step { delay_scale: 0.5, ..marks }, 40_000.0, 1.0), 38_000.0);
    near(marked(&Step { delay_scale: 0.0, ..marks }, 40_000.0, 1.0), 39_000.0);
    // less where the target is low already
    let set = with(json!({"undershoot": true}));
    assert_eq!((set.acked_margin, set.low_target_scale), (0.8, 0.25));
    near(marked(&Step { acked_rate: 1.26e6, ..marks }, 40_000.0, 1.0), 39_000.0);
    near(marked(&Step { acked_rate: 1.24e6, ..marks }, 40_000.0, 1.0), 36_000.0);
}

#[test]
fn the_first_marks_in_a_hundred_round_trips_find_what_is_in_flight() {
    let marks = |millis| Step { l4s_alpha: 0.2, max_in_flight_prev: 30_000.0, ..step(millis) };
    near(marked(&marks(2500), 40_000.0, 1.0), 36_000.0);
    near(marked(&marks(2501), 40_000.0, 1.0), 27_000.0);
    near(marked(&Step { s_rtt: 0.05, ..marks(2501) }, 40_000.0, 1.0), 38_000.0);
}

#[test]
fn delay_above_half_its_target_is_as_marks_are() {
    let set = draft();
    let delayed = |avg: f64| after(&Step { qdelay_avg: avg, acked: 0.0, ..step(25) }, &set);
    near(delayed(0.03), 40_000.0);
    near(delayed(0.045), 30_000.0);
    near(delayed(0.06), 20_000.0);
    near(delayed(0.6), 20_000.0);
    near(after(&Step { qdelay_avg: 0.06, acked: 0.0, s_rtt: 0.1, ..step(25) }, &set), 35_000.0);
    // marks come first
    let both = Step { qdelay_avg: 0.06, qdelay: 0.06, l4s_alpha: 0.1, ..step(25) };
    near(marked(&both, 40_000.0, 1.0), 38_000.0);
}

#[test]
fn after_congestion_the_multiplicative_part_comes_back_over_a_hundred_round_trips() {
    let set = draft();
    let grown = |millis: i64, s_rtt: f64| {
        let mut window = window(40_000.0, 1.0, &set);
        window.update(&Step { lost: true, acked: 0.0, ..step(0) }, &set);
        (window.bytes, window.inflection) = (40_000.0, 1.0);
        window.update(&Step { s_rtt, ..step(millis) }, &set);
        window.bytes - 40_000.0
    };
    near(grown(0, 0.025), 1000.0);
    near(grown(625, 0.025), 1200.0);
    near(grown(1250, 0.025), 1400.0);
    near(grown(2500, 0.025), 1800.0);
    near(grown(5000, 0.025), 1800.0);
    near(grown(1250, 0.05), 1200.0);
    // and is less near the inflection point, where the rest is a quarter at least: 8 x 0.025 squared is 0.04, a tenth at least
    let mut window = window(41_000.0, 40_000.0, &set);
    window.update(&Step { acked: 41_000.0, ..step(25) }, &set);
    near(window.bytes, 41_000.0 + (250.0_f64 * (1.0 + 0.82 * 0.1)).floor());
}

/// In balance the window loses what it gains: half the share of marked packets against a segment, or two marks a virtual
/// round trip, whatever the window is; for a round trip of R below the virtual one V these are 2 R/V in each.
#[test]
fn two_marks_a_round_trip_hold_the_window_where_it_is() {
    let set = with(json!({"mul_increase": 0.0}));
    for (rtt, segments) in [(0.025, 40.0), (0.025, 200.0), (0.0125, 40.0), (0.0125, 400.0), (0.005, 100.0)] {
        // marks in proportion to what the window has above `segments`: their number comes out by itself
        let mut window = window(segments * 1000.0, 1.0, &set);
        let mut alpha: f64 = 0.0;
        let (mut marks, mut rounds) = (0.0, 0.0);
        for round in 0..4000_i64 {
            let packets = window.bytes / 1000.0;
            let hit = ((packets - segments) * 0.5).clamp(0.0, packets);
            // the average of the share alone: alpha is the share itself where that is steady
            alpha += 0.125 * (hit / packets - alpha);
            let step = Step {
                now: Time::ZERO + Span::from_secs_f64(rtt) * round,
                acked: window.bytes,
                marked_bytes: hit * 1000.0,
                marked: hit > 0.0,
                l4s_alpha: alpha,
                s_rtt: rtt,
                max_in_flight: 1e9,
                max_in_flight_prev: 1e9,
                ..step(0)
            };
            window.update(&step, &set);
            window.inflection = 1.0;
            if round >= 2000 {
                (marks, rounds) = (marks + hit, rounds + 1.0);
            }
        }
        // what is marked adds nothing, which makes them fewer by their share; the segment is over the reduced window
        let (found, share) = (marks / rounds, marks / rounds / segments);
        let expected = 2.0 * (rtt / 0.025) * (1.0 - share) / (1.0 - share / 2.0);
        assert!((found / expected - 1.0).abs() < 0.01, "{rtt} s, {segments}: {found} marks, not {expected}");
    }
}

#[test]
fn marks_raise_their_average_quickly_and_lower_it_slowly() {
    let set = draft();
    let mut alpha = L4sAlpha::default();
    let acked = |packets, marked| Acked { packets, marked, ..Acked::default() };
    let at = Time::from_millis;
    alpha.take(at(0), &acked(8, 4), 0.025, &set);
    near(alpha.get(), 0.5 / 8.0);
    // not before 10 ms have passed, and then of all packets since
    alpha.take(at(9), &acked(8, 8), 0.025, &set);
    near(alpha.get(), 0.0625);
    alpha.take(at(10), &acked(8, 0), 0.025, &set);
    near(alpha.get(), 0.0625 * 0.875 + 0.0625);
    let before = alpha.get();
    alpha.take(at(20), &acked(16, 1), 0.025, &set);
    near(alpha.get(), before * 127.0 / 128.0);
    // a shorter round trip is the least time
    alpha.take(at(25), &acked(1, 0), 0.005, &set);
    near(alpha.get(), before * (127.0 / 128.0) * (127.0 / 128.0));
    alpha.take(at(60), &acked(0, 0), 0.005, &set);
    near(alpha.get(), before * (127.0 / 128.0) * (127.0 / 128.0));
}

#[test]
fn delay_is_averaged_on_its_way_up_and_taken_on_its_way_down() {
    let set = draft();
    let mut average = DelayAverage::new(0.06);
    let mut at = |millis, qdelay| {
        average.take(Time::from_millis(millis), qdelay, 0.06, 0.05, &set);
        average.get()
    };
    near(at(0, 0.04), 0.01);
    near(at(24, 0.04), 0.01);
    near(at(25, 0.04), 0.0175);
    near(at(50, 0.005), 0.005);
    near(average.scale(), 1.0);
}

#[test]
fn delay_that_varies_by_its_threshold_leaves_no_head_room() {
    let set = with(json!({"reduce_jitter": true}));
    let mut average = DelayAverage::new(0.06);
    for millis in 0..20_000 {
        average.take(Time::from_millis(millis), 0.0, 0.06, 0.025, &set);
    }
    assert!(average.scale() > 0.999, "{}", average.scale());
    near(overhead(1.0, &set), 3.0);
    near(overhead(0.5, &set), 2.25);
    near(overhead(0.0, &set), 1.5);
    // 40 ms in every other round trip: the highest is 37.5 ms at least, and the least far below
    for round in 0..2000 {
        let qdelay = if round % 2 == 0 { 0.04 } else { 0.0 };
        average.take(Time::from_millis(20_000 + 25 * round), qdelay, 0.06, 0.025, &set);
    }
    near(average.scale(), 0.0);
}

#[test]
fn the_target_is_window_over_round_trip_less_what_is_kept_back() {
    let set = draft();
    let frames = Frames::default();
    // 8 x 30000 / 0.05 = 4.8 Mbit/s; 1000/1020 for headers; 1.2
    near(target(30_000.0, 1.0 / 30.0, 0.05, &frames, &set), 4.8e6 / 1.02 / 1.2);
    // of a small window up to a fifth
    near(target(5000.0, 0.2, 0.05, &frames, &set), 0.9 * 0.8e6 / 1.02 / 1.2);
    near(target(3000.0, 1.0 / 3.0, 0.05, &frames, &set), 0.8 * 0.48e6 / 1.02 / 1.2);
}

fn frame(bytes: u64, delay_ms: i64) -> NewFrame {
    let size = Size::from_bytes(bytes);
    NewFrame { video: true, size, backlog: size, pacer_delay: Span::from_millis(delay_ms) }
}

#[test]
fn frames_that_wait_or_are_too_large_lower_the_target() {
    let set = draft();
    let mut frames = Frames::default();
    let mut at = |k: i64, bytes, delay| {
        frames.take(Time::from_millis(20 * k), &frame(bytes, delay), 1e6, &set);
        (frames.adjust(), frames.deviation())
    };
    // 2500 bytes are what 1 Mbit/s has in 20 ms, and a wait of a quarter of these is none
    near(at(0, 2500, 5).0, 0.0);
    near(at(1, 2500, 25).0, 1.0 / 16.0);
    near(at(2, 2500, 45).0, 3.0 / 16.0);
    near(at(3, 2500, 5).0, 3.0 / 16.0);
    near(at(4, 2500, 0).0, 3.0 / 16.0 - 0.25 / 16.0);
    near(at(5, 5000, 0).1, 1.0 / 64.0);
    near(at(6, 1000, 0).1, 63.0 / 64.0 / 64.0);
    for k in 7..200 {
        let (adjust, deviation) = at(k, 100_000, 1000);
        assert!(adjust <= 0.5 && deviation <= 0.2);
    }
    near(frames.adjust(), 0.5);
    near(frames.deviation(), 0.2);
    near(target(30_000.0, 1.0 / 30.0, 0.05, &frames, &set), 4.8e6 / 1.02 / 1.9);
    // 40 ms apart from now on
    for k in 1..30 {
        frames.take(Time::from_millis(3980 + 40 * k), &frame(5000, 0), 1e6, &set);
    }
    near(frames.period(), 0.04);
}

#[test]
fn packets_are_paced_above_the_target_and_far_above_near_its_maximum() {
    let set = draft();
    near(pacing(1e6, 1e7, &set), 1.5e6);
    near(pacing(8e6, 1e7, &set), 12e6);
    near(pacing(9e6, 1e7, &set), 13.5e6 / 0.5);
    near(pacing(9.5e6, 1e7, &set), 14.25e6 * 4.0);
    near(pacing(1e7, 1e7, &set), 15e6 * 4.0);
    near(pacing(20_000.0, 1e7, &set), 75_000.0);
}

#[test]
fn what_is_acknowledged_is_a_rate_over_the_time_it_took() {
    let mut rate = AckedRate::default();
    rate.take(Time::ZERO, 0.0, 0.04);
    rate.take(Time::from_millis(30), 5000.0, 0.04);
    near(rate.get(), 0.0);
    rate.take(Time::from_millis(50), 5000.0, 0.04);
    near(rate.get(), 1.6e6);
}
