//! The window of the preset `ericsson-2026-07` by itself, against what ScreamV2Tx.cpp's `updateCwnd` comes to by hand.

use serde_json::{Value, json};
use tidegate_controllers::scream::ericsson::delay::{Delay, RoundTrips};
use tidegate_controllers::scream::ericsson::settings::with;
use tidegate_controllers::scream::ericsson::window::{Events, Step, Window};

const STEP: Step = Step {
    now: 1000,
    acked: 0,
    mss: 1000,
    l4s_alpha: 0.2,
    qdelay_target: 0.06,
    max_in_flight: 60_000,
    max_in_flight_prev: 60_000,
    target: 1e6,
    target_max: 1e7,
    acked_rate: 0.0,
};
const NONE: Events = Events { loss: false, marked: false, delayed: false, delay_alpha: 0.0 };
const MARKED: Events = Events { marked: true, ..NONE };

/// The result of one update of a window of 40 kB whose inflection point is far away, at a round trip of 30 ms.
struct After {
    overrides: Value,
    rtt_ticks: i64,
    inflection: i64,
    qdelay: f64,
    jitter_scale: f64,
}

impl Default for After {
    fn default() -> Self {
        Self { overrides: json!({}), rtt_ticks: 1966, inflection: 1, qdelay: 0.0, jitter_scale: 1.0 }
    }
}

impl After {
    fn bytes(self, step: &Step, events: &Events) -> i64 {
        let set = with(&self.overrides).expect("valid");
        let mut rtt = RoundTrips::default();
        (rtt.slow, rtt.s_rtt) = (self.rtt_ticks, self.rtt_ticks as f64 / 65_536.0);
        let mut delay = Delay::default();
        (delay.now, delay.scale) = (self.qdelay, self.jitter_scale);
        let mut window = Window::new(&set);
        (window.bytes, window.inflection) = (40_000, self.inflection);
        window.update(step, events, &delay, &rtt, &set);
        window.bytes
    }
}

/// Whole bytes, cut or rounded.
fn near(found: i64, expected: i64) {
    assert!((found - expected).abs() <= 1, "{found} is not {expected}");
}

#[test]
fn marks_take_half_their_share_and_less_for_five_reasons() {
    near(After::default().bytes(&STEP, &MARKED), 36_000);
    // round trips above 30 ms are answered as often
    near(After { rtt_ticks: 4 * 1966, ..After::default() }.bytes(&STEP, &MARKED), 39_000);
    near(After { rtt_ticks: 983, ..After::default() }.bytes(&STEP, &MARKED), 36_000);
    // a target that is low already
    near(After::default().bytes(&Step { acked_rate: 1.26e6, ..STEP }, &MARKED), 39_000);
    near(After::default().bytes(&Step { acked_rate: 1.24e6, ..STEP }, &MARKED), 36_000);
    // near the inflection point, and where the delay varies, but not where a queue stands
    near(After { inflection: 40_000, ..After::default() }.bytes(&STEP, &MARKED), 39_000);
    near(After { inflection: 40_000, qdelay: 0.015, ..After::default() }.bytes(&STEP, &MARKED), 36_000);
    near(After { jitter_scale: 0.5, ..After::default() }.bytes(&STEP, &MARKED), 38_000);
}

#[test]
fn the_first_marks_in_a_hundred_round_trips_find_what_was_in_flight() {
    // of 30 ms: 3 s
    let step = |now| Step { now, max_in_flight_prev: 20_000, ..STEP };
    near(After::default().bytes(&step(196_000), &MARKED), 36_000);
    near(After::default().bytes(&step(197_000), &MARKED), 18_000);
}

#[test]
fn losses_classic_marks_and_delay() {
    near(After::default().bytes(&STEP, &Events { loss: true, ..MARKED }), 28_000);
    let classic = After { overrides: json!({"ecn": "classic"}), ..After::default() };
    near(classic.bytes(&STEP, &MARKED), 32_000);
    let delayed = Events { delayed: true, delay_alpha: 0.5, ..NONE };
    near(After::default().bytes(&STEP, &delayed), 30_000);
    near(After { rtt_ticks: 2 * 1966, ..After::default() }.bytes(&STEP, &delayed), 35_000);
    near(After::default().bytes(&Step { acked_rate: 2e6, ..STEP }, &delayed), 37_500);
}

#[test]
fn growth_is_a_segment_and_a_twentieth_once_congestion_is_long_ago() {
    let step = |now| Step { now, acked: 40_000, ..STEP };
    // 200 round trips of 1966 ticks are 393200
    near(After::default().bytes(&step(0), &NONE), 41_000);
    near(After::default().bytes(&step(196_600), &NONE), 42_000);
    near(After::default().bytes(&step(800_000), &NONE), 43_000);
    // nothing multiplicative right after a mark, and not beyond twice what was in flight and a segment
    near(After::default().bytes(&Step { l4s_alpha: 0.0, ..step(800_000) }, &MARKED), 41_000);
    let little = Step { max_in_flight: 20_000, max_in_flight_prev: 20_900, ..step(800_000) };
    near(After::default().bytes(&little, &NONE), 40_000);
    near(After::default().bytes(&Step { target: 1e7, ..step(0) }, &NONE), 40_000);
    near(After { jitter_scale: 0.0, ..After::default() }.bytes(&step(0), &NONE), 40_100);
}
