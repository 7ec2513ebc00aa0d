//! The allowed sending rate: its start, feedback, and the nofeedback timer (RFC 5348 sections 4.2 to 4.5).

use super::equation;
use super::received::ReceiveRates;
use super::settings::{InitialWindow, Rules, Settings};
use tidegate_core::{Span, Time, math};

/// What one feedback comes to at the sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heard {
    /// The round-trip time that it shows; positive.
    pub rtt: Span,
    /// X_recv in bytes/s.
    pub receive_rate: f64,
    /// p.
    pub loss_event_rate: f64,
    /// Whether the sender was data-limited in the whole interval that it covers.
    pub data_limited: bool,
}

/// What is known once there is a round-trip time.
#[derive(Clone, Debug)]
struct Path {
    /// R in seconds.
    rtt: f64,
    /// R_sqmean of section 4.5, and the last sample of it.
    sqmean: f64,
    sqrt_sample: f64,
    /// tld: when the rate was last doubled.
    doubled: Time,
    received: ReceiveRates,
    /// The last X_recv, as RFC 3448 section 4.4 changes it.
    cached: f64,
}

/// The allowed rate X in bytes/s, and what it is made of.
#[derive(Clone, Debug)]
pub struct Allowed {
    x: f64,
    p: f64,
    path: Option<Path>,
}

/// Feedback comes once a round-trip time as the stamps tell it, cut to microseconds at both ends: what
/// comes so much too early has waited a round trip.
const CLOCK: Span = Span::from_micros(2);

/// No nofeedback timer is shorter: a round-trip time of zero must not let it ring for ever.
const TIMER_LEAST: f64 = 1e-3;

impl Allowed {
    /// One segment a second, as long as there is no round-trip time (section 4.2).
    #[must_use]
    pub fn new(segment: f64) -> Self {
        Self { x: segment, p: 0.0, path: None }
    }

    /// X in bytes/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.x
    }

    /// R, once there is one.
    #[must_use]
    pub fn rtt(&self) -> Option<Span> {
        self.path.as_ref().map(|path| Span::from_secs_f64(path.rtt))
    }

    /// X_inst in bytes/s (section 4.5): X, less while the round-trip time is above its mean, more below.
    #[must_use]
    pub fn instant(&self, set: &Settings, segment: f64) -> f64 {
        match &self.path {
            Some(path) if set.oscillation_reduction => {
                (self.x * path.sqmean / path.sqrt_sample).max(segment / set.max_backoff)
            }
            _ => self.x,
        }
    }

    /// How long to wait for feedback: max(4R, 2s/X) (section 4.3 step 3).
    #[must_use]
    pub fn timeout(&self, set: &Settings, segment: f64) -> Span {
        let seconds = match &self.path {
            None => (2.0 * segment / self.x).max(set.start_timeout),
            Some(path) => (4.0 * path.rtt).max(2.0 * segment / self.x),
        };
        Span::from_secs_f64(seconds.max(TIMER_LEAST))
    }

    /// Takes a feedback in (section 4.3).
    pub fn feedback(&mut self, now: Time, heard: &Heard, set: &Settings, segment: f64) {
        let sample = heard.rtt.as_secs_f64();
        let sqrt_sample = math::sqrt(sample);
        let worse = heard.loss_event_rate > self.p;
        self.p = heard.loss_event_rate;
        let Some(path) = &mut self.path else {
            self.path = Some(Path {
                rtt: sample,
                sqmean: sqrt_sample,
                sqrt_sample,
                doubled: now,
                received: ReceiveRates::new(now),
                cached: heard.receive_rate,
            });
            // "in responding to the initial feedback packet, this replaces step (4)" (section 4.2); RFC 3448
            // doubles one segment a second, and has s/R as the least
            self.x = self.initial_rate(set, segment);
            return;
        };
        path.rtt += (sample - path.rtt) * set.rtt_weight;
        path.sqmean += (sqrt_sample - path.sqmean) * set.sqmean_weight;
        path.sqrt_sample = sqrt_sample;
        path.cached = heard.receive_rate;
        let limit = match set.rules {
            Rules::Rfc3448 => 2.0 * heard.receive_rate,
            Rules::Rfc5348 if !heard.data_limited => {
                path.received.update(now, heard.receive_rate, Span::from_secs_f64(path.rtt) + CLOCK);
                2.0 * path.received.largest()
            }
            Rules::Rfc5348 if worse => {
                path.received.halve();
                path.received.maximize(now, 0.85 * heard.receive_rate);
                path.received.largest()
            }
            Rules::Rfc5348 => {
                path.received.maximize(now, heard.receive_rate);
                2.0 * path.received.largest()
            }
        };
        self.recalculate(now, limit, set, segment);
    }

    /// The nofeedback timer has run out; `idle` if nothing was sent since it was set (section 4.4).
    pub fn no_feedback(&mut self, now: Time, idle: bool, set: &Settings, segment: f64) {
        match set.rules {
            Rules::Rfc5348 => self.no_feedback_5348(now, idle, set, segment),
            Rules::Rfc3448 => self.no_feedback_3448(now, idle, set, segment),
        }
    }

    fn no_feedback_5348(&mut self, now: Time, idle: bool, set: &Settings, segment: f64) {
        let least = segment / set.max_backoff;
        let recover = self.initial_rate(set, segment);
        let received = self.path.as_ref().map_or(f64::INFINITY, |path| path.received.largest());
        let slow = if self.p > 0.0 { received < recover } else { self.x < 2.0 * recover };
        if self.path.is_none() && !idle {
            self.x = (self.x / 2.0).max(least);
        } else if slow && idle {
            // an idle sender may come back with as much as it began with
        } else if self.p == 0.0 {
            self.x = (self.x / 2.0).max(least);
        } else {
            // either 2 X_recv was the limit, or X_Bps was: in both cases half of it is
            let equation = self.equation(set, segment);
            let limit = if equation > 2.0 * received { received } else { equation / 2.0 }.max(least);
            if let Some(path) = &mut self.path {
                path.received.replace(now, limit / 2.0);
            }
            self.recalculate(now, limit, set, segment);
        }
    }

    /// RFC 3448 section 4.4: the sender's copy of X_recv is lowered, and X calculated from it.
    fn no_feedback_3448(&mut self, now: Time, idle: bool, set: &Settings, segment: f64) {
        let least = segment / set.max_backoff;
        let equation = self.equation(set, segment);
        let Some(path) = &mut self.path else {
            self.x = (self.x / 2.0).max(least);
            return;
        };
        // "less than four packets per round-trip time"
        if idle && path.cached < 4.0 * segment / path.rtt {
            return;
        }
        path.cached =
            if equation > 2.0 * path.cached { (path.cached / 2.0).max(least / 2.0) } else { equation / 4.0 };
        let limit = 2.0 * path.cached;
        self.recalculate(now, limit, set, segment);
    }

    /// Step 4 of section 4.3, from where the limit is known.
    fn recalculate(&mut self, now: Time, limit: f64, set: &Settings, segment: f64) {
        let (equation, initial) = (self.equation(set, segment), self.initial_rate(set, segment));
        let Some(path) = &mut self.path else { return };
        if self.p > 0.0 {
            self.x = equation.min(limit).max(segment / set.max_backoff);
        } else if now - path.doubled + CLOCK >= Span::from_secs_f64(path.rtt) {
            self.x = (2.0 * self.x).min(limit).max(initial);
            path.doubled = now;
        }
        debug_assert!(self.x > 0.0, "an allowed rate of {} bytes/s", self.x);
    }

    /// X_Bps; infinite without loss, and without a round-trip time.
    #[must_use]
    pub fn equation(&self, set: &Settings, segment: f64) -> f64 {
        self.path.as_ref().map_or(f64::INFINITY, |path| {
            equation::throughput(segment, path.rtt, self.p, set.delayed_acks as f64, set.rto_rtts * path.rtt)
        })
    }

    /// The rate of the initial window, which is also what an idle sender may come back to (recover_rate).
    /// Without a round-trip time, what it began with: one segment a second.
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
    /// min(4 * 1460, max(2 * 1460, 4380)) bytes in 100 ms.
    const INITIAL: f64 = 43_800.0;

    fn settings(preset: &str) -> Settings {
        Settings::with("tfrc", preset, &Value::Null).expect("a preset")
    }

    fn heard(receive_rate: f64, loss_event_rate: f64) -> Heard {
        Heard { rtt: RTT, receive_rate, loss_event_rate, data_limited: false }
    }

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    /// After the first feedback, at 0 ms.
    fn begun(set: &Settings) -> Allowed {
        let mut allowed = Allowed::new(SEGMENT);
        allowed.feedback(at(0), &heard(0.0, 0.0), set, SEGMENT);
        allowed
    }

    fn near(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-12, "{a} is not {b}");
    }

    /// Of the equation at 100 ms.
    fn equation(p: f64) -> f64 {
        equation::throughput(SEGMENT, 0.1, p, 1.0, 0.4)
    }

    #[test]
    fn it_begins_with_a_segment_a_second_and_then_the_initial_window() {
        let set = settings("rfc5348");
        let mut allowed = Allowed::new(SEGMENT);
        assert_eq!(allowed.rate(), SEGMENT);
        assert_eq!(allowed.timeout(&set, SEGMENT), Span::from_secs(2));
        allowed.feedback(at(0), &heard(0.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        assert_eq!(allowed.timeout(&set, SEGMENT), Span::from_millis(400));
    }

    #[test]
    fn it_doubles_at_most_once_a_round_trip() {
        let set = settings("rfc5348");
        let mut allowed = begun(&set);
        allowed.feedback(at(99), &heard(30_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        allowed.feedback(at(100), &heard(40_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 2.0 * INITIAL);
        allowed.feedback(at(200), &heard(10_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 4.0 * INITIAL);
        // now the infinite one is older than two round trips, and twice the largest of the others counts
        allowed.feedback(at(300), &heard(10_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 80_000.0);
        // never below the initial rate while nothing is lost
        allowed.feedback(at(600), &heard(10_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), INITIAL);
    }

    #[test]
    fn with_losses_the_equation_and_twice_the_receive_rate_limit_it() {
        let set = settings("rfc5348");
        let mut allowed = begun(&set);
        allowed.feedback(at(250), &heard(500_000.0, 0.01), &set, SEGMENT);
        near(allowed.rate(), equation(0.01));
        allowed.feedback(at(700), &heard(20_000.0, 0.01), &set, SEGMENT);
        near(allowed.rate(), 40_000.0);
        // at least a segment in 64 s
        allowed.feedback(at(1000), &heard(0.0, 1.0), &set, SEGMENT);
        allowed.feedback(at(2000), &heard(0.0, 1.0), &set, SEGMENT);
        near(allowed.rate(), SEGMENT / 64.0);
        assert_eq!(allowed.timeout(&set, SEGMENT), Span::from_secs(128));
    }

    #[test]
    fn a_data_limited_sender_keeps_its_largest_receive_rate_until_something_is_lost() {
        let set = settings("rfc5348");
        let limited = |receive_rate, p| Heard { data_limited: true, ..heard(receive_rate, p) };
        let mut allowed = begun(&set);
        allowed.feedback(at(100), &limited(60_000.0, 0.0), &set, SEGMENT);
        for n in 2..50 {
            allowed.feedback(at(100 * n), &limited(5_000.0, 0.0), &set, SEGMENT);
        }
        near(allowed.rate(), 120_000.0);
        // a loss: the old ones halved, 85 % of the new one, and no factor of two
        allowed.feedback(at(5_000), &limited(5_000.0, 1e-5), &set, SEGMENT);
        near(allowed.rate(), 30_000.0);
        allowed.feedback(at(5_100), &limited(40_000.0, 2e-5), &set, SEGMENT);
        near(allowed.rate(), 34_000.0);
        // no more of it
        allowed.feedback(at(5_200), &limited(5_000.0, 2e-5), &set, SEGMENT);
        near(allowed.rate(), 68_000.0);
    }

    #[test]
    fn without_a_round_trip_time_the_timer_halves_what_a_busy_sender_may() {
        let set = settings("rfc5348");
        let mut allowed = Allowed::new(SEGMENT);
        allowed.no_feedback(at(2000), true, &set, SEGMENT);
        near(allowed.rate(), SEGMENT);
        for n in 1..=8 {
            allowed.no_feedback(at(2000 * n), false, &set, SEGMENT);
        }
        near(allowed.rate(), SEGMENT / 64.0);
    }

    #[test]
    fn the_timer_in_slow_start_halves_and_spares_the_idle() {
        let set = settings("rfc5348");
        let mut allowed = begun(&set);
        for n in 1..=3 {
            allowed.feedback(at(100 * n), &heard(1e6, 0.0), &set, SEGMENT);
        }
        near(allowed.rate(), 8.0 * INITIAL);
        allowed.no_feedback(at(700), false, &set, SEGMENT);
        near(allowed.rate(), 4.0 * INITIAL);
        allowed.no_feedback(at(1100), true, &set, SEGMENT);
        near(allowed.rate(), 2.0 * INITIAL);
        allowed.no_feedback(at(1500), true, &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        allowed.no_feedback(at(1900), true, &set, SEGMENT);
        near(allowed.rate(), INITIAL);
        allowed.no_feedback(at(2300), false, &set, SEGMENT);
        near(allowed.rate(), INITIAL / 2.0);
    }

    #[test]
    fn the_timer_after_losses_halves_whatever_was_the_limit() {
        let set = settings("rfc5348");
        // 2 X_recv was: 60 kB/s of an equation of 112 kB/s
        let mut allowed = begun(&set);
        allowed.feedback(at(300), &heard(30_000.0, 0.01), &set, SEGMENT);
        assert!(equation(0.01) > 60_000.0);
        near(allowed.rate(), 60_000.0);
        allowed.no_feedback(at(700), false, &set, SEGMENT);
        near(allowed.rate(), 30_000.0);
        allowed.no_feedback(at(1100), false, &set, SEGMENT);
        near(allowed.rate(), 15_000.0);
        // idle, and X_recv = 7.5 kB/s below the initial rate: as it is
        allowed.no_feedback(at(1500), true, &set, SEGMENT);
        near(allowed.rate(), 15_000.0);
        // the equation was
        let mut allowed = begun(&set);
        allowed.feedback(at(300), &heard(1e6, 0.01), &set, SEGMENT);
        near(allowed.rate(), equation(0.01));
        allowed.no_feedback(at(700), true, &set, SEGMENT);
        near(allowed.rate(), equation(0.01) / 2.0);
    }

    #[test]
    fn rfc_3448_has_other_limits() {
        let set = settings("rfc3448");
        let mut allowed = begun(&set);
        near(allowed.rate(), 10_000.0);
        allowed.feedback(at(100), &heard(4_000.0, 0.0), &set, SEGMENT);
        // twice the last receive rate from the first round trip on, but a segment each
        near(allowed.rate(), 10_000.0);
        allowed.feedback(at(200), &heard(9_000.0, 0.0), &set, SEGMENT);
        near(allowed.rate(), 18_000.0);
        let limited = Heard { data_limited: true, ..heard(6_000.0, 0.0) };
        allowed.feedback(at(300), &limited, &set, SEGMENT);
        near(allowed.rate(), 12_000.0);
        // the copy of X_recv is halved when no feedback comes
        allowed.feedback(at(400), &heard(60_000.0, 1e-3), &set, SEGMENT);
        near(allowed.rate(), 120_000.0);
        allowed.no_feedback(at(800), false, &set, SEGMENT);
        near(allowed.rate(), 60_000.0);
        // idle, but 30 kB/s are less than four segments a round trip
        allowed.no_feedback(at(1200), true, &set, SEGMENT);
        near(allowed.rate(), 60_000.0);
        allowed.feedback(at(1300), &heard(1e6, 0.01), &set, SEGMENT);
        allowed.no_feedback(at(1700), true, &set, SEGMENT);
        near(allowed.rate(), equation(0.01) / 2.0);
    }

    #[test]
    fn a_round_trip_above_its_mean_slows_down_for_the_moment() {
        let set = settings("rfc5348");
        let mut allowed = begun(&set);
        near(allowed.instant(&set, SEGMENT), allowed.rate());
        let slow = Heard { rtt: RTT * 4, ..heard(1e6, 0.0) };
        allowed.feedback(at(500), &slow, &set, SEGMENT);
        // sqrt 0.1 and sqrt 0.4 in the mean: 0.9 + 0.1 * 2 = 1.1 against 2
        near(allowed.instant(&set, SEGMENT) / allowed.rate(), 0.55);
        near(allowed.rtt().expect("one").as_secs_f64(), 0.13);
        let plain = Settings { oscillation_reduction: false, ..set };
        assert_eq!(allowed.instant(&plain, SEGMENT), allowed.rate());
    }
}
