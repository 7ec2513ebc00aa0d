//! Allowed sending rate: its start, feedback, and the nofeedback timer (RFC 5348 sections 4.2 to 4.5).

use super::equation;
use super::received::ReceiveRates;
use super::settings::{InitialWindow, RateRules, Settings};
use tidegate_core::{Span, Time, math};

/// Feedback as the sender evaluates it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FeedbackSample {
    /// Sample of the round-trip time; positive.
    pub rtt: Span,
    /// Receive rate X_recv, bytes/s.
    pub receive_rate: f64,
    /// Loss event rate p.
    pub loss_event_rate: f64,
    /// Whether the sender was data-limited throughout the interval that the feedback covers.
    pub data_limited: bool,
}

/// State after the first round-trip time.
#[derive(Clone, Debug)]
struct Path {
    /// Round-trip time R, s.
    rtt: f64,
    /// Mean of its square root (R_sqmean of section 4.5).
    sqmean: f64,
    /// Last sample of its square root.
    sqrt_sample: f64,
    /// Time of the last doubling of the rate (tld).
    doubled: Time,
    received: ReceiveRates,
    /// Last X_recv, changed as in RFC 3448 section 4.4.
    cached: f64,
}

/// Allowed rate X, bytes/s, with the values that enter it.
#[derive(Clone, Debug)]
pub struct Allowed {
    x: f64,
    p: f64,
    path: Option<Path>,
}

/// Time by which feedback may come early and still counts as a round trip after the last: both ends round the round-trip
/// time in the stamps down to microseconds.
const CLOCK_ERROR: Span = Span::from_micros(2);

/// Shortest nofeedback timer, s, so that a round-trip time of zero does not make it expire endlessly.
const MIN_TIMER: f64 = 1e-3;

impl Allowed {
    /// Creates a rate of one segment per second, which holds until the first round-trip time (section 4.2).
    #[must_use]
    pub fn new(segment: f64) -> Self {
        Self { x: segment, p: 0.0, path: None }
    }

    /// Allowed rate X, bytes/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.x
    }

    /// Round-trip time R, once there is one.
    #[must_use]
    pub fn rtt(&self) -> Option<Span> {
        self.path.as_ref().map(|path| Span::from_secs_f64(path.rtt))
    }

    /// Instantaneous rate X_inst, bytes/s (section 4.5): lower than X while the round-trip time is above its mean, higher
    /// below.
    #[must_use]
    pub fn instant(&self, set: &Settings, segment: f64) -> f64 {
        match &self.path {
            Some(path) if set.oscillation_reduction => {
                (self.x * path.sqmean / path.sqrt_sample).max(segment / set.max_backoff)
            }
            _ => self.x,
        }
    }

    /// Duration of the nofeedback timer: max(4R, 2s/X) (section 4.3 step 3).
    #[must_use]
    pub fn timeout(&self, set: &Settings, segment: f64) -> Span {
        let seconds = match &self.path {
            None => (2.0 * segment / self.x).max(set.start_timeout),
            Some(path) => (4.0 * path.rtt).max(2.0 * segment / self.x),
        };
        Span::from_secs_f64(seconds.max(MIN_TIMER))
    }

    /// Takes a feedback (section 4.3).
    pub fn feedback(&mut self, now: Time, feedback: &FeedbackSample, set: &Settings, segment: f64) {
        let rtt_sample = feedback.rtt.as_secs_f64();
        let sqrt_sample = math::sqrt(rtt_sample);
        let has_more_loss = feedback.loss_event_rate > self.p;
        self.p = feedback.loss_event_rate;
        let Some(path) = &mut self.path else {
            self.path = Some(Path {
                rtt: rtt_sample,
                sqmean: sqrt_sample,
                sqrt_sample,
                doubled: now,
                received: ReceiveRates::new(now),
                cached: feedback.receive_rate,
            });
            // "in responding to the initial feedback packet, this replaces step (4)" (section 4.2); RFC 3448
            // doubles one segment per second, with a minimum of s/R
            self.x = self.initial_rate(set, segment);
            return;
        };
        path.rtt += (rtt_sample - path.rtt) * set.rtt_weight;
        path.sqmean += (sqrt_sample - path.sqmean) * set.sqmean_weight;
        path.sqrt_sample = sqrt_sample;
        path.cached = feedback.receive_rate;
        let limit = match set.rules {
            RateRules::Rfc3448 => 2.0 * feedback.receive_rate,
            RateRules::Rfc5348 if !feedback.data_limited => {
                path.received.update(now, feedback.receive_rate, Span::from_secs_f64(path.rtt) + CLOCK_ERROR);
                2.0 * path.received.largest()
            }
            RateRules::Rfc5348 if has_more_loss => {
                path.received.halve();
                path.received.maximize(now, 0.85 * feedback.receive_rate);
                path.received.largest()
            }
            RateRules::Rfc5348 => {
                path.received.maximize(now, feedback.receive_rate);
                2.0 * path.received.largest()
            }
        };
        self.recalculate(now, limit, set, segment);
    }

    /// Lowers the rate when the nofeedback timer expires; `idle` if no packet was sent since it was set (section 4.4).
    pub fn no_feedback(&mut self, now: Time, idle: bool, set: &Settings, segment: f64) {
        match set.rules {
            RateRules::Rfc5348 => self.no_feedback_5348(now, idle, set, segment),
            RateRules::Rfc3448 => self.no_feedback_3448(now, idle, set, segment),
        }
    }

    fn no_feedback_5348(&mut self, now: Time, idle: bool, set: &Settings, segment: f64) {
        let min_rate = segment / set.max_backoff;
        let recover = self.initial_rate(set, segment);
        let received = self.path.as_ref().map_or(f64::INFINITY, |path| path.received.largest());
        let is_slow = if self.p > 0.0 { received < recover } else { self.x < 2.0 * recover };
        if self.path.is_none() && !idle {
            self.x = (self.x / 2.0).max(min_rate);
        } else if is_slow && idle {
            // an idle sender may resume at its initial rate
        } else if self.p == 0.0 {
            self.x = (self.x / 2.0).max(min_rate);
        } else {
            // half the previous limit, which was either 2 X_recv or X_Bps
            let equation = self.equation(set, segment);
            let limit = if equation > 2.0 * received { received } else { equation / 2.0 }.max(min_rate);
            if let Some(path) = &mut self.path {
                path.received.replace(now, limit / 2.0);
            }
            self.recalculate(now, limit, set, segment);
        }
    }

    /// Lowers the sender's copy of X_recv and calculates X from it (RFC 3448 section 4.4).
    fn no_feedback_3448(&mut self, now: Time, idle: bool, set: &Settings, segment: f64) {
        let min_rate = segment / set.max_backoff;
        let equation = self.equation(set, segment);
        let Some(path) = &mut self.path else {
            self.x = (self.x / 2.0).max(min_rate);
            return;
        };
        // "less than four packets per round-trip time"
        if idle && path.cached < 4.0 * segment / path.rtt {
            return;
        }
        path.cached = if equation > 2.0 * path.cached {
            (path.cached / 2.0).max(min_rate / 2.0)
        } else {
            equation / 4.0
        };
        let limit = 2.0 * path.cached;
        self.recalculate(now, limit, set, segment);
    }

    /// Calculates X from a limit (the end of step 4 in section 4.3).
    fn recalculate(&mut self, now: Time, limit: f64, set: &Settings, segment: f64) {
        let (equation, initial) = (self.equation(set, segment), self.initial_rate(set, segment));
        let Some(path) = &mut self.path else { return };
        if self.p > 0.0 {
            self.x = equation.min(limit).max(segment / set.max_backoff);
        } else if now - path.doubled + CLOCK_ERROR >= Span::from_secs_f64(path.rtt) {
            self.x = (2.0 * self.x).min(limit).max(initial);
            path.doubled = now;
        }
        debug_assert!(self.x > 0.0, "an allowed rate of {} bytes/s", self.x);
    }

    /// Rate of the equation, X_Bps, bytes/s; infinite without loss or without a round-trip time.
    #[must_use]
    pub fn equation(&self, set: &Settings, segment: f64) -> f64 {
        self.path.as_ref().map_or(f64::INFINITY, |path| {
            equation::throughput(segment, path.rtt, self.p, set.delayed_acks as f64, set.rto_rtts * path.rtt)
        })
    }

    /// Rate of the initial window, at which an idle sender may also resume (recover_rate), bytes/s. One segment per second
    /// without a round-trip time.
    fn initial_rate(&self, set: &Settings, segment: f64) -> f64 {
        let Some(path) = &self.path else { return segment };
        let window = match set.initial_window {
            InitialWindow::Rfc3390 => equation::initial_window(set.mss as f64),
            InitialWindow::OnePacket => segment,
        };
        window / path.rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const SEGMENT: f64 = 1000.0;
    const RTT: Span = Span::from_millis(100);
    /// Initial rate: min(4 * 1460, max(2 * 1460, 4380)) bytes in 100 ms.
    const INITIAL: f64 = 43_800.0;

    fn settings(preset: &str) -> Settings {
        Settings::with("tfrc", preset, &Value::Null).expect("a preset")
    }

    fn feedback(receive_rate: f64, loss_event_rate: f64) -> FeedbackSample {
        FeedbackSample { rtt: RTT, receive_rate, loss_event_rate, data_limited: false }
    }

    fn millis(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    /// Allowed rate after the first feedback, at 0 ms.
    fn started(set: &Settings) -> Allowed {
        let mut allowed = Allowed::new(SEGMENT);
        allowed.feedback(millis(0), &feedback(0.0, 0.0), set, SEGMENT);
        allowed
    }

    fn near(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-12, "{a} is not {b}");
    }

    /// Rate of the equation with a round trip of 100 ms.
    fn equation(p: f64) -> f64 {
        equation::throughput(SEGMENT, 0.1, p, 1.0, 0.4)
    }

    #[test]
    fn it_begins_with_a_segment_a_second_and_then_the_initial_window() {
        let set = settings("rfc5348");
        let mut allowed = Allowed::new(SEGMENT);
        assert_eq!(allowed.rate(), SEGMENT);
        assert_eq!(allowed.timeout(&set, SEGMENT), Span::from_secs(2));
        allowed.feedback(millis(0), &feedback(0.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        assert_eq!(allowed.timeout(&set, SEGMENT), Span::from_millis(400));
    }

    #[test]
    fn it_doubles_at_most_once_a_round_trip() {
        let set = settings("rfc5348");
        let mut allowed = started(&set);
        allowed.feedback(millis(99), &feedback(30_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        allowed.feedback(millis(100), &feedback(40_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 2.0 * INITIAL);
        allowed.feedback(millis(200), &feedback(10_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 4.0 * INITIAL);
        // now the infinite rate is older than two round trips, and twice the largest of the others counts
        allowed.feedback(millis(300), &feedback(10_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 80_000.0);
        // never below the initial rate without loss
        allowed.feedback(millis(600), &feedback(10_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), INITIAL);
    }

    #[test]
    fn with_losses_the_equation_and_twice_the_receive_rate_limit_it() {
        let set = settings("rfc5348");
        let mut allowed = started(&set);
        allowed.feedback(millis(250), &feedback(500_000.0, 0.01), &set, SEGMENT);
        near(allowed.rate(), equation(0.01));
        allowed.feedback(millis(700), &feedback(20_000.0, 0.01), &set, SEGMENT);
        near(allowed.rate(), 40_000.0);
        // at least a segment in 64 s
        allowed.feedback(millis(1000), &feedback(0.0, 1.0), &set, SEGMENT);
        allowed.feedback(millis(2000), &feedback(0.0, 1.0), &set, SEGMENT);
        near(allowed.rate(), SEGMENT / 64.0);
        assert_eq!(allowed.timeout(&set, SEGMENT), Span::from_secs(128));
    }

    #[test]
    fn a_data_limited_sender_keeps_its_largest_receive_rate_until_something_is_lost() {
        let set = settings("rfc5348");
        let limited = |receive_rate, p| FeedbackSample { data_limited: true, ..feedback(receive_rate, p) };
        let mut allowed = started(&set);
        allowed.feedback(millis(100), &limited(60_000.0, 0.0), &set, SEGMENT);
        for n in 2..50 {
            allowed.feedback(millis(100 * n), &limited(5_000.0, 0.0), &set, SEGMENT);
        }
        near(allowed.rate(), 120_000.0);
        // a loss: the old rates halved, 85 % of the new one, and no factor of two
        allowed.feedback(millis(5_000), &limited(5_000.0, 1e-5), &set, SEGMENT);
        near(allowed.rate(), 30_000.0);
        allowed.feedback(millis(5_100), &limited(40_000.0, 2e-5), &set, SEGMENT);
        near(allowed.rate(), 34_000.0);
        // no further increase
        allowed.feedback(millis(5_200), &limited(5_000.0, 2e-5), &set, SEGMENT);
        near(allowed.rate(), 68_000.0);
    }

    #[test]
    fn without_a_round_trip_time_the_timer_halves_what_a_busy_sender_may() {
        let set = settings("rfc5348");
        let mut allowed = Allowed::new(SEGMENT);
        allowed.no_feedback(millis(2000), true, &set, SEGMENT);
        near(allowed.rate(), SEGMENT);
        for n in 1..=8 {
            allowed.no_feedback(millis(2000 * n), false, &set, SEGMENT);
        }
        near(allowed.rate(), SEGMENT / 64.0);
    }

    #[test]
    fn the_timer_in_slow_start_halves_and_spares_the_idle() {
        let set = settings("rfc5348");
        let mut allowed = started(&set);
        for n in 1..=3 {
            allowed.feedback(millis(100 * n), &feedback(1e6, 0.0), &set, SEGMENT);
        }
        near(allowed.rate(), 8.0 * INITIAL);
        allowed.no_feedback(millis(700), false, &set, SEGMENT);
        near(allowed.rate(), 4.0 * INITIAL);
        allowed.no_feedback(millis(1100), true, &set, SEGMENT);
        near(allowed.rate(), 2.0 * INITIAL);
        allowed.no_feedback(millis(1500), true, &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        allowed.no_feedback(millis(1900), true, &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        allowed.no_feedback(millis(2300), false, &set, SEGMENT);
        near(allowed.rate(), INITIAL / 2.0);
    }

    #[test]
    fn the_timer_after_losses_halves_whatever_was_the_limit() {
        let set = settings("rfc5348");
        // 2 X_recv was the limit: 60 kB/s, with 112 kB/s by the equation
        let mut allowed = started(&set);
        allowed.feedback(millis(300), &feedback(30_000.0, 0.01), &set, SEGMENT);
        assert!(equation(0.01) > 60_000.0);
        near(allowed.rate(), 60_000.0);
        allowed.no_feedback(millis(700), false, &set, SEGMENT);
        near(allowed.rate(), 30_000.0);
        allowed.no_feedback(millis(1100), false, &set, SEGMENT);
        near(allowed.rate(), 15_000.0);
        // idle, and X_recv = 7.5 kB/s below the initial rate: unchanged
        allowed.no_feedback(millis(1500), true, &set, SEGMENT);
        near(allowed.rate(), 15_000.0);
        // the equation was the limit
        let mut allowed = started(&set);
        allowed.feedback(millis(300), &feedback(1e6, 0.01), &set, SEGMENT);
        near(allowed.rate(), equation(0.01));
        allowed.no_feedback(millis(700), true, &set, SEGMENT);
        near(allowed.rate(), equation(0.01) / 2.0);
    }

    #[test]
    fn rfc_3448_has_other_limits() {
        let set = settings("rfc3448");
        let mut allowed = started(&set);
        near(allowed.rate(), 10_000.0);
        allowed.feedback(millis(100), &feedback(4_000.0, 0.0), &set, SEGMENT);
        // twice the last receive rate from the first round trip on, but at least a segment per round trip
        near(allowed.rate(), 10_000.0);
        allowed.feedback(millis(200), &feedback(9_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 18_000.0);
        let limited = FeedbackSample { data_limited: true, ..feedback(6_000.0, 0.0) };
        allowed.feedback(millis(300), &limited, &set, SEGMENT);
        near(allowed.rate(), 12_000.0);
        // without feedback the copy of X_recv is halved
        allowed.feedback(millis(400), &feedback(60_000.0, 1e-3), &set, SEGMENT);
        near(allowed.rate(), 120_000.0);
        allowed.no_feedback(millis(800), false, &set, SEGMENT);
        near(allowed.rate(), 60_000.0);
        // idle, but 30 kB/s are less than four segments a round trip
        allowed.no_feedback(millis(1200), true, &set, SEGMENT);
        near(allowed.rate(), 60_000.0);
        allowed.feedback(millis(1300), &feedback(1e6, 0.01), &set, SEGMENT);
        allowed.no_feedback(millis(1700), true, &set, SEGMENT);
        near(allowed.rate(), equation(0.01) / 2.0);
    }

    #[test]
    fn a_round_trip_above_its_mean_slows_down_for_the_moment() {
        let set = settings("rfc5348");
        let mut allowed = started(&set);
        near(allowed.instant(&set, SEGMENT), allowed.rate());
        let slow = FeedbackSample { rtt: RTT * 4, ..feedback(1e6, 0.0) };
        allowed.feedback(millis(500), &slow, &set, SEGMENT);
        // sqrt 0.1 and sqrt 0.4 in the mean: 0.9 + 0.1 * 2 = 1.1 against 2
        near(allowed.instant(&set, SEGMENT) / allowed.rate(), 0.55);
        near(allowed.rtt().expect("one").as_secs_f64(), 0.13);
        let without = Settings { oscillation_reduction: false, ..set };
        assert_eq!(allowed.instant(&without, SEGMENT), allowed.rate());
    }
}
