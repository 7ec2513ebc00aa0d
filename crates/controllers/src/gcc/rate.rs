//! Rate control: additive or multiplicative increase, multiplicative decrease.
//!
//! Draft 5.5; libwebrtc `aimd_rate_control.cc` with the gates of `delay_based_bwe.cc`; aiortc
//! `AimdRateControl`.

use super::capacity::Capacity;
use super::detector::Usage;
use tidegate_core::math;
use tidegate_core::units::{Span, Time};

/// Frames per second that the expected packet size assumes (draft 5.5 bits_per_frame).
const FRAMES: f64 = 30.0;
/// Bits of a full packet (draft 5.5: 1200 bytes).
const PACKET_BITS: f64 = 1200.0 * 8.0;
/// Bounds of the time between two decreases, ms, which is otherwise the round trip (libwebrtc TimeToReduceFurther).
const BITRATE_REDUCTION_INTERVAL: (f64, f64) = (10.0, 200.0);

/// Response time beyond the round trip, ms (draft 5.5; libwebrtc; aiortc).
const RESPONSE_TIME_OFFSET: f64 = 100.0;
/// Growth per second far from the link capacity (draft 5.5 eta; libwebrtc, aiortc alpha).
pub const ETA: f64 = 1.08;
/// Limit of an increase as a multiple of the received rate (draft 5.5 A_hat < 1.5 R_hat; libwebrtc increase_limit; aiortc).
pub const BOUND: f64 = 1.5;

/// Rate before the first limits or measurement, bit/s (libwebrtc `AimdRateControl` and aiortc).
pub const INITIAL_RATE: f64 = 30e6;

/// Implementation of the rate control; the three differ in states and formulas, not only in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The draft, with its table of states.
    Draft,
    /// libwebrtc's `AimdRateControl` of 2023: begins in Hold, to which each decrease returns; at most one decrease per
    /// round trip; a decrease that would raise the rate uses the link capacity instead of the received rate.
    Libwebrtc,
    /// aiortc, in whole bit/s: an older libwebrtc, which allows several decreases per round trip and ignores the link
    /// capacity in decreases.
    Aiortc,
}

/// Source of the first rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Start {
    /// The session's start rate (libwebrtc SetStartBitrate).
    Limits,
    /// Received rate, once it has been measured for more than this time, ms; the session's start rate until then.
    Received(f64),
}

/// Parameters of a rate control.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Implementation whose states and formulas are used.
    pub form: Form,
    /// Source of the first rate.
    pub start: Start,
    /// Shortest time between two updates without over-use, ms.
    pub interval: f64,
    /// Factor of the received rate in a decrease.
    pub beta: f64,
    /// Rate that a decrease subtracts, if it is less than the result, bit/s.
    pub decrease_offset: f64,
    /// Whether over-use may raise the rate: where `beta` times the received rate is above the present rate.
    pub may_raise: bool,
    /// Growth per second far from the link capacity.
    pub eta: f64,
    /// Limit of an increase as a multiple of the received rate.
    pub bound: Option<f64>,
}

/// Step sizes of a rate control.
struct Steps {
    /// Near the link capacity: packets per response time.
    gain: f64,
    /// Near it: whether at most one response time counts between two updates.
    capped: bool,
    /// Near it: smallest increase per second, bit/s.
    slope: f64,
    /// Near it: smallest increase per update, bit/s.
    additive: f64,
    /// Far from it: smallest increase per update, bit/s.
    multiplicative: f64,
    /// Constant added to the limit by the received rate, bit/s.
    beyond: f64,
}

/// Steps of draft 5.5: alpha = 0.5 * min(dt / response_time, 1); max(1000, ...).
const DRAFT: Steps =
    Steps { gain: 0.5, capped: true, slope: 0.0, additive: 1000.0, multiplicative: 0.0, beyond: 0.0 };
/// Steps of libwebrtc `aimd_rate_control.cc`: response_time * 2, kMinIncreaseRateBpsPerSecond, increase_limit.
const LIBWEBRTC: Steps = Steps {
    gain: 0.5,
    capped: false,
    slope: 4000.0,
    additive: 0.0,
    multiplicative: 1000.0,
    beyond: 10_000.0,
};
/// Steps of aiortc `AimdRateControl`.
const AIORTC: Steps = Steps { gain: 1.0, ..LIBWEBRTC };

impl Form {
    const fn steps(self) -> Steps {
        match self {
            Self::Draft => DRAFT,
            Self::Libwebrtc => LIBWEBRTC,
            Self::Aiortc => AIORTC,
        }
    }
}

/// State of the rate control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The rate waits until the queues are empty.
    Hold,
    /// The rate grows.
    Increase,
    /// The rate falls.
    Decrease,
}

impl State {
    /// Code in recorded tables: 0 hold, 1 increase, 2 decrease.
    #[must_use]
    pub const fn code(self) -> f64 {
        match self {
            Self::Hold => 0.0,
            Self::Increase => 1.0,
            Self::Decrease => 2.0,
        }
    }
}

/// Rate control of the delay-based part.
#[derive(Clone)]
pub struct Aimd {
    config: Config,
    /// Delay-based rate A_hat, bit/s.
    pub rate: f64,
    /// State of the rate control.
    pub state: State,
    /// Whether there is a valid rate (libwebrtc bitrate_is_initialized_).
    started: bool,
    capacity: Capacity,
    /// Last received rate, bit/s, used when a report brings none.
    received: f64,
    measuring_since: Option<Time>,
    last_change: Option<Time>,
    last_update: Option<Time>,
}

/// Time from `earlier` to `later`, ms; zero instead of a negative one.
fn elapsed(earlier: Time, later: Time) -> f64 {
    later.as_nanos().saturating_sub(earlier.as_nanos()).max(0) as f64 / 1e6
}

impl Aimd {
    /// Creates a rate control that begins with `start` bit/s.
    #[must_use]
    pub fn new(config: Config, start: f64) -> Self {
        Self {
            config,
            rate: start,
            state: match config.form {
                Form::Draft => State::Increase,
                Form::Libwebrtc | Form::Aiortc => State::Hold,
            },
            started: config.start == Start::Limits,
            capacity: Capacity::default(),
            received: start,
            measuring_since: None,
            last_change: None,
            last_update: None,
        }
    }

    /// Forgets the path and begins with `start` bit/s.
    pub fn begin(&mut self, start: f64) {
        *self = Self::new(self.config, start);
    }

    /// Sets the rate from outside.
    pub fn set(&mut self, rate: f64, now: Time) {
        self.rate = rate;
        self.started = true;
        self.last_change = Some(now);
    }

    /// Multiplies the rate by `factor`. This does not count as a change: growth due since the last change stays due.
    pub fn scale(&mut self, factor: f64) {
        self.rate *= factor;
    }

    /// Updates the rate from the detector's verdict, the received rate (bit/s) and the round trip. Returns whether it was
    /// updated.
    pub fn update(&mut self, usage: Usage, received: Option<f64>, rtt: Span, now: Time) -> bool {
        let interval = self.config.interval;
        let early = |last| elapsed(last, now) <= interval;
        if usage != Usage::Over && interval > 0.0 && self.last_update.is_some_and(early) {
            return false;
        }
        if self.config.form == Form::Libwebrtc && usage == Usage::Over {
            let Some(received) = received else {
                // InitialTimeToReduceFurther passes less than half the rate, so it always allows a decrease
                if self.started {
                    self.set(self.rate / 2.0, now);
                }
                return self.started;
            };
            if !self.may_decrease(rtt, received, now) {
                return false;
            }
        }
        self.start(received, now);
        if let Some(received) = received {
            self.received = received;
        }
        // over-use gives a valid rate even before the first estimate
        if !self.started && usage != Usage::Over {
            return false;
        }
        self.change_state(usage, now);
        match self.state {
            State::Hold => {}
            State::Increase => self.increase(rtt, now),
            State::Decrease => self.decrease(now),
        }
        self.last_update = Some(now);
        true
    }

    /// Whether a round trip has passed since the last change, or far less than the rate arrives (libwebrtc
    /// TimeToReduceFurther).
    fn may_decrease(&self, rtt: Span, received: f64, now: Time) -> bool {
        let interval =
            rtt.as_millis_f64().max(BITRATE_REDUCTION_INTERVAL.0).min(BITRATE_REDUCTION_INTERVAL.1);
        self.last_change.is_none_or(|last| elapsed(last, now) >= interval)
            || (self.started && received < 0.5 * self.rate)
    }

    /// Takes the received rate as the first rate once it was measured for long enough.
    fn start(&mut self, received: Option<f64>, now: Time) {
        let (Start::Received(duration), false) = (self.config.start, self.started) else { return };
        match (self.measuring_since, received) {
            (None, Some(_)) => self.measuring_since = Some(now),
            (Some(since), Some(received)) if elapsed(since, now) > duration => {
                self.rate = received;
                self.started = true;
            }
            _ => {}
        }
    }

    /// Changes the state by the table of draft 5.5.
    fn change_state(&mut self, usage: Usage, now: Time) {
        self.state = match (usage, self.state) {
            (Usage::Over, _) => State::Decrease,
            (Usage::Under, _) | (Usage::Normal, State::Decrease) => State::Hold,
            (Usage::Normal, State::Hold) => {
                self.last_change = Some(now);
                State::Increase
            }
            (Usage::Normal, State::Increase) => State::Increase,
        };
    }

    /// Rounds down to whole bit/s in aiortc's form.
    fn round_down(&self, rate: f64) -> f64 {
        if self.config.form == Form::Aiortc { math::floor(rate) } else { rate }
    }

    fn increase(&mut self, rtt: Span, now: Time) {
        self.capacity.rise(self.received);
        let beyond = self.config.form.steps().beyond;
        let bound = self
            .config
            .bound
            .map_or(f64::INFINITY, |factor| self.round_down(factor * self.received) + beyond);
        if self.rate < bound {
            let near = self.capacity.estimate().is_some();
            let step = if near { self.additive(rtt, now) } else { self.multiplicative(now) };
            self.rate = (self.rate + self.round_down(step)).min(bound);
        }
        self.last_change = Some(now);
    }

    /// Additive step, bit/s (draft 5.5: alpha * expected_packet_size_bits).
    fn additive(&self, rtt: Span, now: Time) -> f64 {
        let Steps { gain, capped, slope: min_slope, additive, .. } = self.config.form.steps();
        let frame = self.rate / FRAMES;
        let packet = frame / math::ceil(frame / PACKET_BITS).max(1.0);
        let response = rtt.as_millis_f64().max(0.0) + RESPONSE_TIME_OFFSET;
        let mut passed = self.last_change.map_or(0.0, |last| elapsed(last, now));
        if capped {
            passed = passed.min(response);
        }
        let slope = self.round_down(gain * packet * 1000.0 / response);
        (passed * slope.max(min_slope) / 1000.0).max(additive)
    }

    /// Multiplicative step, bit/s (draft 5.5: (eta - 1) * A_hat).
    fn multiplicative(&self, now: Time) -> f64 {
        let passed = self.last_change.map_or(1000.0, |last| elapsed(last, now).min(1000.0));
        let eta = math::pow(self.config.eta, passed / 1000.0);
        ((eta - 1.0) * self.rate).max(self.config.form.steps().multiplicative)
    }

    fn decrease(&mut self, now: Time) {
        let Config { form, beta, decrease_offset, may_raise, .. } = self.config;
        let mut lower = beta * self.received;
        if form == Form::Aiortc {
            lower = lower.round_ties_even();
        }
        if lower > decrease_offset {
            lower -= decrease_offset;
        }
        if lower > self.rate && form == Form::Libwebrtc {
            lower = self.capacity.estimate().map_or(lower, |capacity| beta * capacity);
        }
        if lower < self.rate || may_raise {
            self.rate = lower;
        }
        self.capacity.overuse(self.received);
        // a decrease ends the wait for a first rate (libwebrtc bitrate_is_initialized_); in aiortc the wait goes on, and
        // only over-use changes the rate
        self.started |= form != Form::Aiortc;
        self.last_change = Some(now);
        if form != Form::Draft {
            self.state = State::Hold;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc::presets::{Placement, aiortc, draft_02, hoang2017, libwebrtc_v1};

    const RTT: Span = Span::from_millis(100);

    fn millis(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn libwebrtc() -> Config {
        libwebrtc_v1::Settings::default().rate()
    }

    fn draft() -> Config {
        draft_02::Settings::default().rate(Placement::Sender)
    }

    fn aiortc() -> Config {
        aiortc::Settings::default().rate()
    }

    fn thesis() -> Config {
        hoang2017::Settings::default().rate(Placement::Sender)
    }

    struct Run {
        aimd: Aimd,
    }

    impl Run {
        fn new(config: Config, start: f64) -> Self {
            Self { aimd: Aimd::new(config, start) }
        }
        fn step(&mut self, usage: Usage, received: f64, ms: i64) -> f64 {
            self.aimd.update(usage, Some(received), RTT, millis(ms));
            self.aimd.rate
        }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn multiplicative_increase_is_eight_percent_a_second_with_the_shipped_floor() {
        let mut run = Run::new(libwebrtc(), 300_000.0);
        near(run.step(Usage::Normal, 300_000.0, 0), 301_000.0);
        near(run.step(Usage::Normal, 300_000.0, 50), 302160.49505979696);
        let before = run.aimd.rate;
        near(run.step(Usage::Normal, 300_000.0, 1050), before * 1.08);
        let before = run.aimd.rate;
        near(run.step(Usage::Normal, 300_000.0, 9050), before * 1.08);
        // the draft has no floor there, and its first step counts as a full second
        let mut run = Run::new(draft(), 300_000.0);
        near(run.step(Usage::Normal, 300_000.0, 0), 324_000.0);
        near(run.step(Usage::Normal, 300_000.0, 0), 324_000.0);
    }

    #[test]
    fn the_received_rate_bounds_an_increase_but_lowers_nothing() {
        let mut run = Run::new(libwebrtc(), 300_000.0);
        near(run.step(Usage::Normal, 194_000.0, 0), 301_000.0);
        near(run.step(Usage::Normal, 194_000.0, 10_000), 301_000.0);
        near(run.step(Usage::Normal, 20_000.0, 11_000), 301_000.0);
        let mut run = Run::new(draft(), 300_000.0);
        near(run.step(Usage::Normal, 210_000.0, 0), 315_000.0);
    }

    #[test]
    fn without_a_bound_the_received_rate_does_not_hold_an_increase() {
        let mut run = Run::new(thesis(), 7.2e6);
        near(run.step(Usage::Normal, 1e5, 0), 7.2e6 * 1.08);
        near(run.step(Usage::Normal, 0.0, 500), 7.2e6 * 1.08 * math::sqrt(1.08));
        // and a decrease is to beta times what was received, be that more or less
        near(run.step(Usage::Over, 9e6, 600), 0.95 * 9e6);
        near(run.step(Usage::Over, 2e6, 700), 0.95 * 2e6);
    }

    #[test]
    fn decreases_are_as_each_preset_says() {
        // 0.85 R - 5 kb/s
        near(Run::new(libwebrtc(), 1e6).step(Usage::Over, 800_000.0, 0), 675_000.0);
        near(Run::new(draft(), 1e6).step(Usage::Over, 800_000.0, 0), 680_000.0);
        near(Run::new(aiortc(), 1e6).step(Usage::Over, 799_999.0, 0), 679_999.0);
        // never up, except in aiortc
        near(Run::new(libwebrtc(), 1e6).step(Usage::Over, 2e6, 0), 1e6);
        near(Run::new(draft(), 1e6).step(Usage::Over, 2e6, 0), 1e6);
        near(Run::new(aiortc(), 1e6).step(Usage::Over, 2e6, 0), 1.7e6);
        // libwebrtc then falls back on the capacity
        let mut run = Run::new(libwebrtc(), 1e6);
        run.step(Usage::Over, 1e6, 0);
        near(run.aimd.rate, 845_000.0);
        run.aimd.set(849_000.0, millis(500));
        near(run.step(Usage::Over, 1.01e6, 1000), 849_000.0);
        run.aimd.set(900_000.0, millis(1500));
        // 0.85 * 1.07e6 - 5000 is above; 0.85 of the estimate (1.004 Mb/s) is below
        let capacity = run.aimd.capacity.estimate().expect("some");
        near(run.step(Usage::Over, 1.07e6, 2000), 0.85 * capacity);
    }

    #[test]
    fn near_the_capacity_it_adds_half_a_packet_in_a_response_time() {
        let mut run = Run::new(libwebrtc(), 1e6);
        let after = run.step(Usage::Over, 1e6, 0);
        assert_eq!(run.aimd.state, State::Hold);
        near(run.step(Usage::Normal, 1e6, 1000), after);
        // frames of 28167 bits in three packets of 9389; half of one in 200 ms
        let slope = 0.5 * (after / 30.0 / 3.0) / 0.2;
        near(run.step(Usage::Normal, 1e6, 1500), after + slope * 0.5);
        // draft: capped at one response time, at least 1000 bit/s
        let mut run = Run::new(draft(), 1e6);
        let after = run.step(Usage::Over, 1e6, 0);
        assert_eq!(run.aimd.state, State::Decrease);
        run.step(Usage::Normal, 1e6, 10);
        assert_eq!(run.aimd.state, State::Hold);
        near(run.step(Usage::Normal, 1e6, 20), after + 1000.0);
        let packet = (after + 1000.0) / 30.0 / 3.0;
        near(run.step(Usage::Normal, 1e6, 5020), after + 1000.0 + 0.5 * packet);
        // aiortc: a whole packet, and at least 4000 bit/s in a second, in whole bits
        let mut run = Run::new(aiortc(), 1e6);
        run.aimd.set(1e6, millis(0));
        let after = run.step(Usage::Over, 1e6, 0);
        near(run.step(Usage::Normal, 1e6, 501), after);
        let slope = (after / 30.0 / 3.0 * 1000.0 / 200.0).floor();
        near(run.step(Usage::Normal, 1e6, 1002), after + (501.0 * slope / 1000.0).floor());
    }

    #[test]
    fn libwebrtc_decreases_once_in_a_round_trip_or_when_far_below() {
        let mut run = Run::new(libwebrtc(), 1e6);
        near(run.step(Usage::Over, 1e6, 0), 845_000.0);
        near(run.step(Usage::Over, 600_000.0, 99), 845_000.0);
        near(run.step(Usage::Over, 600_000.0, 100), 505_000.0);
        near(run.step(Usage::Over, 252_000.0, 101), 0.85 * 252_000.0 - 5000.0);
        // nothing measured: halve, with every report
        let mut run = Run::new(libwebrtc(), 1e6);
        for (ms, expected) in [(0, 500_000.0), (1, 250_000.0), (100, 125_000.0)] {
            run.aimd.update(Usage::Over, None, RTT, millis(ms));
            near(run.aimd.rate, expected);
        }
    }

    #[test]
    fn aiortc_starts_from_three_seconds_of_throughput_and_updates_twice_a_second() {
        let mut run = Run::new(aiortc(), 300_000.0);
        for ms in [0, 1000, 3000] {
            assert!(!run.aimd.update(Usage::Normal, Some(123_456.0), RTT, millis(ms)));
        }
        // started with the throughput; the first increase is the floor
        near(run.step(Usage::Normal, 123_456.0, 3001), 124_456.0);
        assert!(!run.aimd.update(Usage::Normal, Some(123_456.0), RTT, millis(3501)));
        assert!(run.aimd.update(Usage::Normal, Some(123_456.0), RTT, millis(3502)));
    }

    #[test]
    fn the_table_of_states_is_the_drafts() {
        use State::{Decrease, Hold, Increase};
        let mut run = Run::new(draft(), 1e6);
        assert_eq!(run.aimd.state, Increase);
        let table = [
            (Hold, [Decrease, Increase, Hold]),
            (Increase, [Decrease, Increase, Hold]),
            (Decrease, [Decrease, Hold, Hold]),
        ];
        for (from, to) in table {
            for (usage, to) in [Usage::Over, Usage::Normal, Usage::Under].into_iter().zip(to) {
                run.aimd.state = from;
                run.aimd.change_state(usage, millis(0));
                assert_eq!(run.aimd.state, to, "{from:?} and {usage:?}");
            }
        }
    }
}
