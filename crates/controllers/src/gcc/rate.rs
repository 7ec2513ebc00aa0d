//! The rate controller: additive or multiplicative increase, multiplicative decrease.
//!
//! Draft 5.5; libwebrtc `aimd_rate_control.cc` with the gates of `delay_based_bwe.cc`; aiortc
//! `AimdRateControl`.

use super::capacity::Capacity;
use super::detector::Usage;
use super::settings::{DecreaseEnds, Settings, StartFrom, StartState};
use tidegate_core::math;
use tidegate_core::units::{Span, Time};

/// Frames a second assumed for the size of a packet (draft 5.5 bits_per_frame).
const FRAMES: f64 = 30.0;
/// Bits of a full packet (draft 5.5: 1200 bytes).
const PACKET_BITS: f64 = 1200.0 * 8.0;
/// A round trip between decreases is taken to be within these, ms (libwebrtc TimeToReduceFurther).
const DECREASE_GAP: (f64, f64) = (10.0, 200.0);

/// The rate control's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Wait until the queues are empty.
    Hold,
    /// Look for more.
    Increase,
    /// Give way.
    Decrease,
}

impl State {
    /// The code in recorded tables: 0 hold, 1 increase, 2 decrease.
    #[must_use]
    pub const fn code(self) -> f64 {
        match self {
            Self::Hold => 0.0,
            Self::Increase => 1.0,
            Self::Decrease => 2.0,
        }
    }
}

/// The delay-based rate and what moves it.
#[derive(Clone)]
pub struct Aimd {
    /// The delay-based rate A_hat, bit/s.
    pub rate: f64,
    /// What the rate does.
    pub state: State,
    /// Whether the rate means anything yet.
    started: bool,
    capacity: Capacity,
    /// The last received rate, bit/s, for reports that give none.
    received: f64,
    measuring_since: Option<Time>,
    last_change: Option<Time>,
    last_update: Option<Time>,
}

/// Milliseconds from `earlier` to `later`, zero where that is negative.
fn elapsed(earlier: Time, later: Time) -> f64 {
    later.as_nanos().saturating_sub(earlier.as_nanos()).max(0) as f64 / 1e6
}

impl Aimd {
    /// A rate control that begins with `start` bit/s.
    #[must_use]
    pub fn new(settings: &Settings, start: f64) -> Self {
        Self {
            rate: start,
            state: match settings.start_state {
                StartState::Hold => State::Hold,
                StartState::Increase => State::Increase,
            },
            started: settings.start_from == StartFrom::Limits,
            capacity: Capacity::default(),
            received: start,
            measuring_since: None,
            last_change: None,
            last_update: None,
        }
    }

    /// Whether there is a rate yet.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Sets the rate from outside.
    pub fn set(&mut self, rate: f64, now: Time) {
        self.rate = rate;
        self.started = true;
        self.last_change = Some(now);
    }

    /// Takes the detector's verdict, the received rate (bit/s) and the round trip as they are `now`.
    /// Answers whether the rate was updated.
    pub fn update(
        &mut self,
        settings: &Settings,
        usage: Usage,
        received: Option<f64>,
        rtt: Span,
        now: Time,
    ) -> bool {
        let early = |last| elapsed(last, now) <= settings.update_interval;
        if usage != Usage::Over && settings.update_interval > 0.0 && self.last_update.is_some_and(early) {
            return false;
        }
        if settings.gate_decreases && usage == Usage::Over {
            let Some(received) = received else {
                // InitialTimeToReduceFurther asks with less than half the rate, so its gate is always open
                if self.started {
                    self.set(self.rate / 2.0, now);
                }
                return self.started;
            };
            if !self.may_decrease(rtt, received, now) {
                return false;
            }
        }
        self.start(settings, received, now);
        if let Some(received) = received {
            self.received = received;
        }
        // over-use brings a valid rate even before the first estimate
        if !self.started && usage != Usage::Over {
            return false;
        }
        self.change_state(usage, now);
        match self.state {
            State::Hold => {}
            State::Increase => self.increase(settings, rtt, now),
            State::Decrease => self.decrease(settings, now),
        }
        self.last_update = Some(now);
        true
    }

    /// libwebrtc TimeToReduceFurther: a round trip since the last change, or far below the rate.
    fn may_decrease(&self, rtt: Span, received: f64, now: Time) -> bool {
        let gap = rtt.as_millis_f64().max(DECREASE_GAP.0).min(DECREASE_GAP.1);
        self.last_change.is_none_or(|last| elapsed(last, now) >= gap)
            || (self.started && received < 0.5 * self.rate)
    }

    /// Starts from the received rate once it was measured for long enough.
    fn start(&mut self, settings: &Settings, received: Option<f64>, now: Time) {
        if self.started {
            return;
        }
        match (self.measuring_since, received) {
            (None, Some(_)) => self.measuring_since = Some(now),
            (Some(since), Some(received)) if elapsed(since, now) > settings.start_after => {
                self.rate = received;
                self.started = true;
            }
            _ => {}
        }
    }

    /// The table of states in draft 5.5.
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

    fn increase(&mut self, settings: &Settings, rtt: Span, now: Time) {
        self.capacity.rise(self.received);
        let whole = |rate: f64| if settings.whole_rates { math::floor(rate) } else { rate };
        let bound = match settings.bound_factor {
            0.0 => f64::INFINITY,
            factor => whole(factor * self.received) + settings.bound_offset,
        };
        if self.rate < bound {
            let step = if self.capacity.estimate().is_some() {
                self.additive(settings, rtt, now)
            } else {
                self.multiplicative(settings, now)
            };
            self.rate = (self.rate + whole(step)).min(bound);
        }
        self.last_change = Some(now);
    }

    /// Draft 5.5: alpha * expected_packet_size_bits.
    fn additive(&self, settings: &Settings, rtt: Span, now: Time) -> f64 {
        let frame = self.rate / FRAMES;
        let packet = frame / math::ceil(frame / PACKET_BITS).max(1.0);
        let response = rtt.as_millis_f64().max(0.0) + settings.response_time;
        let mut passed = self.last_change.map_or(0.0, |last| elapsed(last, now));
        if settings.additive_capped {
            passed = passed.min(response);
        }
        let mut slope = settings.additive_gain * packet * 1000.0 / response;
        if settings.whole_rates {
            slope = math::floor(slope);
        }
        (passed * slope.max(settings.additive_slope) / 1000.0).max(settings.additive_floor)
    }

    /// Draft 5.5: (eta - 1) * A_hat.
    fn multiplicative(&self, settings: &Settings, now: Time) -> f64 {
        let passed = self.last_change.map_or(1000.0, |last| elapsed(last, now).min(1000.0));
        let eta = math::pow(settings.increase_per_second, passed / 1000.0);
        ((eta - 1.0) * self.rate).max(settings.increase_floor)
    }

    fn decrease(&mut self, settings: &Settings, now: Time) {
        let mut lower = settings.beta * self.received;
        if settings.whole_rates {
            lower = lower.round_ties_even();
        }
        if lower > settings.decrease_offset {
            lower -= settings.decrease_offset;
        }
        if lower > self.rate && settings.decrease_by_capacity {
            lower = self.capacity.estimate().map_or(lower, |capacity| settings.beta * capacity);
        }
        if lower < self.rate || settings.decrease_may_raise {
            self.rate = lower;
        }
        self.capacity.overuse(settings, self.received);
        self.started |= settings.start_by_decrease;
        self.last_change = Some(now);
        if settings.decrease_ends == DecreaseEnds::AtOnce {
            self.state = State::Hold;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    struct Run {
        settings: Settings,
        aimd: Aimd,
    }

    impl Run {
        fn new(preset: &str, start: f64) -> Self {
            let settings = Settings::preset(preset).expect("known");
            let aimd = Aimd::new(&settings, start);
            Self { settings, aimd }
        }
        fn step(&mut self, usage: Usage, received: f64, ms: i64) -> f64 {
            self.aimd.update(&self.settings, usage, Some(received), RTT, at(ms));
            self.aimd.rate
        }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn multiplicative_increase_is_eight_percent_a_second_with_the_shipped_floor() {
        let mut run = Run::new("libwebrtc-v1", 300_000.0);
        near(run.step(Usage::Normal, 300_000.0, 0), 301_000.0);
        near(run.step(Usage::Normal, 300_000.0, 50), 302160.49505979696);
        let before = run.aimd.rate;
        near(run.step(Usage::Normal, 300_000.0, 1050), before * 1.08);
        let before = run.aimd.rate;
        near(run.step(Usage::Normal, 300_000.0, 9050), before * 1.08);
        // the draft has no floor there, and its first step counts as a full second
        let mut run = Run::new("draft-02", 300_000.0);
        near(run.step(Usage::Normal, 300_000.0, 0), 324_000.0);
        near(run.step(Usage::Normal, 300_000.0, 0), 324_000.0);
    }

    #[test]
    fn the_received_rate_bounds_an_increase_but_lowers_nothing() {
        let mut run = Run::new("libwebrtc-v1", 300_000.0);
        near(run.step(Usage::Normal, 194_000.0, 0), 301_000.0);
        near(run.step(Usage::Normal, 194_000.0, 10_000), 301_000.0);
        near(run.step(Usage::Normal, 20_000.0, 11_000), 301_000.0);
        let mut run = Run::new("draft-02", 300_000.0);
        near(run.step(Usage::Normal, 210_000.0, 0), 315_000.0);
    }

    #[test]
    fn without_a_bound_the_received_rate_does_not_hold_an_increase() {
        let mut run = Run::new("hoang2017", 7.2e6);
        near(run.step(Usage::Normal, 1e5, 0), 7.2e6 * 1.08);
        near(run.step(Usage::Normal, 0.0, 500), 7.2e6 * 1.08 * math::sqrt(1.08));
        // and a decrease is to beta times what was received, be that more or less
        near(run.step(Usage::Over, 9e6, 600), 0.95 * 9e6);
        near(run.step(Usage::Over, 2e6, 700), 0.95 * 2e6);
    }

    #[test]
    fn decreases_are_as_each_preset_says() {
        // 0.85 R - 5 kb/s
        near(Run::new("libwebrtc-v1", 1e6).step(Usage::Over, 800_000.0, 0), 675_000.0);
        near(Run::new("draft-02", 1e6).step(Usage::Over, 800_000.0, 0), 680_000.0);
        near(Run::new("aiortc", 1e6).step(Usage::Over, 799_999.0, 0), 679_999.0);
        // never up, except in aiortc
        near(Run::new("libwebrtc-v1", 1e6).step(Usage::Over, 2e6, 0), 1e6);
        near(Run::new("draft-02", 1e6).step(Usage::Over, 2e6, 0), 1e6);
        near(Run::new("aiortc", 1e6).step(Usage::Over, 2e6, 0), 1.7e6);
        // libwebrtc then falls back on the capacity
        let mut run = Run::new("libwebrtc-v1", 1e6);
        run.step(Usage::Over, 1e6, 0);
        near(run.aimd.rate, 845_000.0);
        run.aimd.set(849_000.0, at(500));
        near(run.step(Usage::Over, 1.01e6, 1000), 849_000.0);
        run.aimd.set(900_000.0, at(1500));
        // 0.85 * 1.07e6 - 5000 is above; 0.85 of the estimate (1.004 Mb/s) is below
        let capacity = run.aimd.capacity.estimate().expect("some");
        near(run.step(Usage::Over, 1.07e6, 2000), 0.85 * capacity);
    }

    #[test]
    fn near_the_capacity_it_adds_half_a_packet_in_a_response_time() {
        let mut run = Run::new("libwebrtc-v1", 1e6);
        let after = run.step(Usage::Over, 1e6, 0);
        assert_eq!(run.aimd.state, State::Hold);
        near(run.step(Usage::Normal, 1e6, 1000), after);
        // frames of 28167 bits in three packets of 9389; half of one in 200 ms
        let slope = 0.5 * (after / 30.0 / 3.0) / 0.2;
        near(run.step(Usage::Normal, 1e6, 1500), after + slope * 0.5);
        // draft: capped at one response time, at least 1000 bit/s
        let mut run = Run::new("draft-02", 1e6);
        let after = run.step(Usage::Over, 1e6, 0);
        assert_eq!(run.aimd.state, State::Decrease);
        run.step(Usage::Normal, 1e6, 10);
        assert_eq!(run.aimd.state, State::Hold);
        near(run.step(Usage::Normal, 1e6, 20), after + 1000.0);
        let packet = (after + 1000.0) / 30.0 / 3.0;
        near(run.step(Usage::Normal, 1e6, 5020), after + 1000.0 + 0.5 * packet);
        // aiortc: a whole packet, and at least 4000 bit/s in a second, in whole bits
        let mut run = Run::new("aiortc", 1e6);
        run.aimd.set(1e6, at(0));
        let after = run.step(Usage::Over, 1e6, 0);
        near(run.step(Usage::Normal, 1e6, 501), after);
        let slope = (after / 30.0 / 3.0 * 1000.0 / 200.0).floor();
        near(run.step(Usage::Normal, 1e6, 1002), after + (501.0 * slope / 1000.0).floor());
    }

    #[test]
    fn libwebrtc_decreases_once_in_a_round_trip_or_when_far_below() {
        let mut run = Run::new("libwebrtc-v1", 1e6);
        near(run.step(Usage::Over, 1e6, 0), 845_000.0);
        near(run.step(Usage::Over, 600_000.0, 99), 845_000.0);
        near(run.step(Usage::Over, 600_000.0, 100), 505_000.0);
        near(run.step(Usage::Over, 252_000.0, 101), 0.85 * 252_000.0 - 5000.0);
        // nothing measured: halve, with every report
        let mut run = Run::new("libwebrtc-v1", 1e6);
        for (ms, expected) in [(0, 500_000.0), (1, 250_000.0), (100, 125_000.0)] {
            run.aimd.update(&run.settings, Usage::Over, None, RTT, at(ms));
            near(run.aimd.rate, expected);
        }
    }

    #[test]
    fn aiortc_starts_from_three_seconds_of_throughput_and_updates_twice_a_second() {
        let mut run = Run::new("aiortc", 300_000.0);
        for ms in [0, 1000, 3000] {
            assert!(!run.aimd.update(&run.settings, Usage::Normal, Some(123_456.0), RTT, at(ms)));
        }
        // started with the throughput; the first increase is the floor
        near(run.step(Usage::Normal, 123_456.0, 3001), 124_456.0);
        assert!(!run.aimd.update(&run.settings, Usage::Normal, Some(123_456.0), RTT, at(3501)));
        assert!(run.aimd.update(&run.settings, Usage::Normal, Some(123_456.0), RTT, at(3502)));
    }

    #[test]
    fn the_table_of_states_is_the_drafts() {
        use State::{Decrease, Hold, Increase};
        let mut run = Run::new("draft-02", 1e6);
        assert_eq!(run.aimd.state, Increase);
        let table = [
            (Hold, [Decrease, Increase, Hold]),
            (Increase, [Decrease, Increase, Hold]),
            (Decrease, [Decrease, Hold, Hold]),
        ];
        for (from, to) in table {
            for (usage, to) in [Usage::Over, Usage::Normal, Usage::Under].into_iter().zip(to) {
                run.aimd.state = from;
                run.aimd.change_state(usage, at(0));
                assert_eq!(run.aimd.state, to, "{from:?} and {usage:?}");
            }
        }
    }
}
