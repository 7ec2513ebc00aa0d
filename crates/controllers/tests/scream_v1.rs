//! Each equation of RFC 8298 by itself, against arithmetic done by hand or in closed form.

use serde_json::{Value, json};
use tidegate_controllers::scream::v1::rate::{Interval, Target};
use tidegate_controllers::scream::v1::settings::Settings;
use tidegate_controllers::scream::v1::trend::Trend;
use tidegate_controllers::scream::v1::window::{Acknowledged, MaxInFlight, Window};
use tidegate_core::Time;

fn with(overrides: Value) -> Settings {
    Settings::with("rfc8298", &overrides).expect("valid")
}

fn rfc() -> Settings {
    with(Value::Null)
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

/// An acknowledgement of 5000 bytes, with a window's worth in flight and no queue.
const ACKED: Acknowledged = Acknowledged {
    bytes: 5000.0,
    in_flight: 20_000.0,
    max_in_flight: 30_000.0,
    qdelay: 0.0,
    qdelay_target: 0.1,
    trend: 0.0,
};

/// A window of 20 kB after an acknowledgement.
fn after(acked: &Acknowledged, fast: bool) -> Window {
    let set = rfc();
    let mut window = Window::new(&set);
    (window.bytes, window.fast) = (20_000.0, fast);
    window.acknowledged(acked, &set);
    window
}

#[test]
fn fast_increase_adds_what_is_acknowledged_while_the_window_is_used() {
    let begins = Window::new(&rfc());
    assert_eq!((begins.bytes, begins.fast), (3000.0, true));
    near(after(&ACKED, true).bytes, 25_000.0);
    // 1.5 times what is in flight, and what is acknowledged: 15000 + 5000 are not more than 20000
    near(after(&Acknowledged { in_flight: 10_000.0, ..ACKED }, true).bytes, 20_000.0);
    near(after(&Acknowledged { in_flight: 10_001.0, ..ACKED }, true).bytes, 25_000.0);
    let ended = after(&Acknowledged { trend: 0.2, ..ACKED }, true);
    assert!(!ended.fast, "a trend ends it");
    near(ended.bytes, 20_250.0);
    assert!(after(&Acknowledged { trend: 0.19, ..ACKED }, true).fast);
}

#[test]
fn the_window_goes_by_how_far_the_delay_is_from_its_target() {
    // 5000 x 1000/20000 = 250, in proportion
    let grown = |qdelay| after(&Acknowledged { qdelay, ..ACKED }, false).bytes - 20_000.0;
    near(grown(0.0), 250.0);
    near(grown(0.05), 125.0);
    near(grown(0.1), 0.0);
    near(grown(0.2), -250.0);
    near(grown(0.5), -1000.0);
    // growth needs a window that is used: 1.25 times what is in flight, and what is acknowledged
    near(after(&Acknowledged { in_flight: 12_000.0, ..ACKED }, false).bytes, 20_000.0);
    near(after(&Acknowledged { in_flight: 12_001.0, ..ACKED }, false).bytes, 20_250.0);
    let shrinks = Acknowledged { in_flight: 0.0, qdelay: 0.2, ..ACKED };
    near(after(&shrinks, false).bytes, 19_750.0);
    // 1.1 times what was in flight is the most, 3000 bytes the least
    near(after(&Acknowledged { max_in_flight: 15_000.0, ..ACKED }, false).bytes, 16_500.0);
    near(after(&Acknowledged { max_in_flight: 1000.0, ..ACKED }, false).bytes, 3000.0);
}

#[test]
fn losses_and_marks_leave_eight_and_nine_tenths() {
    let set = rfc();
    let reduced = |bytes, lost| {
        let mut window = Window::new(&set);
        window.bytes = bytes;
        window.congestion(lost, &set);
        assert!(!window.fast);
        window.bytes
    };
    near(reduced(20_000.0, true), 16_000.0);
    near(reduced(20_000.0, false), 18_000.0);
    near(reduced(3100.0, true), 3000.0);
}

#[test]
fn fast_increase_resumes_after_five_seconds_of_calm() {
    let set = rfc();
    let mut window = Window::new(&set);
    window.congestion(true, &set);
    let mut at = |seconds: i64, trend: f64| {
        window.resume(Time::from_secs(seconds), trend, &set);
        window.fast
    };
    assert!(!at(0, 0.1) && !at(4, 0.1));
    assert!(!at(4, 0.2), "not low: it begins anew");
    assert!(!at(5, 0.1) && !at(9, 0.1) && at(10, 0.1));
}

#[test]
fn the_send_window_is_a_segment_more_while_the_delay_is_below_its_target() {
    let set = rfc();
    let window = Window::new(&set);
    near(window.send(0.1, 0.1, &set), 4000.0);
    near(window.send(0.1001, 0.1, &set), 3000.0);
}

#[test]
fn the_most_in_flight_is_that_of_five_seconds() {
    let mut most = MaxInFlight::default();
    let mut at = |millis, bytes| {
        most.take(Time::from_millis(millis), bytes);
        most.get()
    };
    assert_eq!([at(0, 5), at(1000, 9), at(2000, 4), at(3000, 6), at(4000, 1)], [5, 9, 9, 9, 9]);
    assert_eq!([at(6000, 2), at(6001, 2), at(8000, 1), at(8001, 1)], [9, 6, 6, 2]);
}

#[test]
fn the_trend_is_the_autocorrelation_times_the_mean() {
    let mut trend = Trend::default();
    for _ in 0..200 {
        trend.take(0.5, 0.1);
    }
    near(trend.get(), 0.0);
    assert!((trend.average() - 0.5).abs() < 1e-8);
    // a ramp x = 0 ... 19 about its mean: the sum of (i - 9.5)(i + 1 - 9.5) over 19 of them is 565.25, of squares 665
    let mut trend = Trend::default();
    let mut average = 0.0;
    for step in 0..20 {
        trend.take(f64::from(step) / 20.0, 0.1);
        average = 0.9 * average + 0.1 * f64::from(step) / 20.0;
    }
    near(trend.average(), average);
    near(trend.get(), average * 565.25 / 665.0);
    near(trend.memory(), trend.get());
    let peak = trend.get();
    // what alternates is correlated negatively: no trend, and the memory fades
    for step in 0..40 {
        trend.take(f64::from(step % 2), 0.1);
    }
    near(trend.get(), 0.0);
    assert!(trend.memory() < peak && trend.memory() > 0.5 * peak);
}

/// An interval of 1 Mbit/s sent, acknowledged and made.
const INTERVAL: Interval = Interval {
    transmit: 1e6,
    acked: 1e6,
    media: 1e6,
    queue: 0.0,
    fast: false,
    trend: 0.0,
    trend_memory: 0.0,
    min: 30e3,
    max: 10e6,
};

/// A target after one interval: it was 1 Mbit/s, which is far from its last maximum.
fn adjusted(over: &Interval, set: &Settings) -> f64 {
    let mut target = Target::new(1e6);
    target.adjust(over, set);
    target.rate
}

#[test]
fn the_target_ramps_up_and_no_faster_than_by_half_a_second() {
    let set = rfc();
    near(adjusted(&Interval { fast: true, ..INTERVAL }, &set), 1.04e6);
    near(adjusted(&INTERVAL, &set), 1.04e6);
    let mut low = Target::new(100e3);
    low.adjust(&Interval { fast: true, ..INTERVAL }, &set);
    near(low.rate, 100e3 + 50e3 * 0.2);
}

#[test]
fn near_its_last_maximum_the_target_grows_slowly() {
    let set = rfc();
    let grown = |last_max: f64| {
        let mut target = Target::new(1e6);
        target.last_max = last_max;
        target.adjust(&Interval { fast: true, ..INTERVAL }, &set);
        (target.rate - 1e6) / 40e3
    };
    near(grown(1e6), 0.2);
    near(grown(1.25e6), 0.8 * 0.8);
    near(grown(2e6), 1.0);
    near(grown(0.8e6), 1.0);
}

#[test]
fn media_that_waits_holds_the_target_back() {
    let set = rfc();
    // 20 ms of queue are none; more leave 0.95
    near(adjusted(&Interval { queue: 20e3, ..INTERVAL }, &set), 1.04e6);
    near(adjusted(&Interval { queue: 20_001.0, ..INTERVAL }, &set), 1.04e6 * 0.95);
    // a second and a half of it: less by half a second, and 0.95 of that
    near(adjusted(&Interval { queue: 1.5e6, ..INTERVAL }, &set), 0.5e6 * 0.95);
    near(adjusted(&Interval { queue: 5e6, ..INTERVAL }, &set), 30e3);
    // a trend counts a tenth: 900 kbit/s less 1 Mbit of queue
    near(adjusted(&Interval { trend: 1.0, queue: 1e6, ..INTERVAL }, &set), 0.9e6 * 0.95);
    let guard = with(json!({"congestion_guard": 0.0}));
    near(adjusted(&Interval { trend: 1.0, queue: 1e6, ..INTERVAL }, &guard), 1e6 * 0.95);
}

#[test]
fn the_target_is_bounded_by_what_is_made_and_by_the_session() {
    let set = rfc();
    let little = Interval { transmit: 0.2e6, acked: 0.1e6, media: 0.3e6, ..INTERVAL };
    near(adjusted(&little, &set), 0.6e6);
    near(adjusted(&Interval { trend_memory: 0.5, ..little }, &set), 0.45e6);
    near(adjusted(&Interval { max: 0.9e6, ..INTERVAL }, &set), 0.9e6);
    near(adjusted(&Interval { min: 1.5e6, ..little }, &set), 1.5e6);
    // the median of 51 intervals holds it up while the encoder makes less for a while
    let mut target = Target::new(1e6);
    for _ in 0..51 {
        target.adjust(&INTERVAL, &set);
    }
    for _ in 0..25 {
        target.adjust(&little, &set);
    }
    near(target.rate, 2e6);
    (0..2).for_each(|_| target.adjust(&little, &set));
    near(target.rate, 0.6e6);
}

#[test]
fn losses_and_marks_lower_the_target_at_once() {
    let mut target = Target::new(1e6);
    target.reduce(0.9, 30e3);
    near(target.rate, 0.9e6);
    near(target.last_max, 1e6);
    target.reduce(0.01, 30e3);
    near(target.rate, 30e3);
}
