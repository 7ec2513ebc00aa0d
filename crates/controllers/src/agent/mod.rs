//! A controller that somebody else decides for: an agent that learns, or what it has learned.
//!
//! Time goes in intervals from the flow's start on. At the beginning of each its rate is set, from what its sender did and heard in those
//! before: by a [`Policy`] that is called then, or from outside through [`Reins`]. It sees the same in both cases, so that what was
//! trained in one way decides the same in the other.

mod observation;

pub use observation::{COUNT, FEATURES, Feature, Observation};

use observation::{Collector, by_logarithm};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_core::control::{Context, Controller, Decision, FeedbackKind, Limits, Needs, Report, Sent};
use tidegate_core::math;
use tidegate_core::units::{Rate, Span, Time};

/// What an action, a number from -1 to 1, means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The rate: by its logarithm, from the least to the largest.
    Rate,
    /// A change of the rate, by this factor at 1, and by one over it at -1.
    Change(f64),
}

/// The terms on which an agent acts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// How long a decision holds.
    pub interval: Span,
    /// What an action means.
    pub action: Action,
    /// The least rate.
    pub min: Rate,
    /// The largest rate.
    pub max: Rate,
    /// How many intervals it sees.
    pub history: usize,
}

impl Terms {
    /// What is wrong with them, if anything.
    ///
    /// # Errors
    /// In a sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.interval <= Span::ZERO {
            return Err(format!("interval: found {}; expected more than zero", self.interval));
        }
        if self.min >= self.max || self.min == Rate::ZERO {
            return Err(format!("rate: found {} to {}; expected two rates that rise", self.min, self.max));
        }
        if !(1..=1000).contains(&self.history) {
            return Err(format!("history: found {}; expected 1 to 1000 intervals", self.history));
        }
        match self.action {
            Action::Change(factor) if !(factor > 1.0 && factor <= 1000.0) => {
                Err(format!("change: found {factor}; expected a factor above 1, and at most 1000"))
            }
            _ => Ok(()),
        }
    }

    fn bounds(&self) -> (f64, f64) {
        (self.min.as_bps_f64(), self.max.as_bps_f64())
    }

    /// The rate that an action asks for; what is beyond -1 and 1 counts as these.
    #[must_use]
    pub fn rate(&self, action: f64, last: Rate) -> Rate {
        let (min, max) = self.bounds();
        let action = action.clamp(-1.0, 1.0);
        let rate = match self.action {
            Action::Rate => min * math::pow(max / min, f64::midpoint(action, 1.0)),
            Action::Change(factor) => last.as_bps_f64() * math::pow(factor, action),
        };
        Rate::from_bps_f64(rate).clamp(self.min, self.max)
    }

    /// The action that asks for a rate, where actions are rates.
    #[must_use]
    pub fn action(&self, rate: Rate) -> f64 {
        by_logarithm(rate.as_bps_f64(), self.bounds()).clamp(-1.0, 1.0)
    }
}

/// Decides at the beginning of each interval: gets the scaled numbers of the last ones, the newest last, and answers with an
/// action, or why there is none.
pub type Policy = Box<dyn FnMut(&[f32]) -> Result<f64, String> + Send>;

/// What the controller and whoever holds its reins share.
struct State {
    terms: Terms,
    collector: Collector,
    /// The last intervals, scaled, the newest last.
    history: Vec<f32>,
    rate: Rate,
    /// Beginnings of intervals that have come.
    begun: u64,
    /// When the present interval ends.
    due: Time,
}

impl State {
    /// The present interval is over.
    fn close(&mut self) {
        let seen = self.collector.close(self.due, self.terms.interval, self.rate);
        self.history.copy_within(COUNT.., 0);
        let newest = self.history.len() - COUNT;
        self.history[newest..].copy_from_slice(&seen.scaled(self.terms.bounds()));
        self.due += self.terms.interval;
    }

    /// Whatever happens now happens in the interval that has begun.
    #[inline]
    fn pass(&mut self, now: Time) {
        while self.begun > 0 && now >= self.due {
            self.close();
        }
    }
}

/// Whoever holds them decides for an [`Agent`].
#[derive(Clone)]
pub struct Reins(Arc<Mutex<State>>);

impl Reins {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rate from the beginning of the next interval on, by an action; gives it.
    pub fn act(&self, action: f64) -> Rate {
        let mut state = self.lock();
        state.rate = state.terms.rate(action, state.rate);
        state.rate
    }

    /// Ends the interval that ends at `due`, unless that has happened; gives what was seen in it.
    #[must_use]
    pub fn see(&self, due: Time) -> Observation {
        let mut state = self.lock();
        state.pass(due);
        state.collector.last()
    }

    /// Beginnings of intervals that have come.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.lock().begun
    }

    /// Shows the scaled numbers of the last intervals, the newest last.
    pub fn show<R>(&self, show: impl FnOnce(&[f32]) -> R) -> R {
        show(&self.lock().history)
    }
}

/// A controller that somebody else decides for.
pub struct Agent {
    state: Reins,
    policy: Option<Policy>,
    limits: Limits,
}

impl Agent {
    /// One that begins with `rate`. Without a policy its reins decide.
    #[must_use]
    pub fn new(terms: Terms, rate: Rate, policy: Option<Policy>) -> (Self, Reins) {
        let reins = Reins(Arc::new(Mutex::new(State {
            terms,
            collector: Collector::default(),
            history: vec![0.0; terms.history * COUNT],
            rate: rate.clamp(terms.min, terms.max),
            begun: 0,
            due: Time::MAX,
        })));
        (Self { state: reins.clone(), policy, limits: Limits::default() }, reins)
    }

    /// The decision for the interval that begins now.
    fn decide(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        let mut state = self.state.lock();
        state.pass(now);
        if state.begun == 0 {
            state.due = now + state.terms.interval;
            state.collector.begin(now);
        }
        state.begun += 1;
        if let Some(policy) = &mut self.policy {
            match policy(&state.history) {
                Ok(action) if action.is_nan() => cx.fail("the policy's action is not a number"),
                Ok(action) => state.rate = state.terms.rate(action, state.rate),
                Err(reason) => cx.fail(reason),
            }
        }
        Decision::rate(state.rate.clamp(self.limits.min, self.limits.max)).with_alarm(state.due)
    }
}

impl Controller for Agent {
    fn needs(&self) -> Needs {
        Needs::feedback(FeedbackKind::PerPacket)
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let mut state = self.state.lock();
        state.pass(now);
        state.collector.report(now, report);
        cx.unchanged()
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.decide(now, cx)
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        if self.state.begun() > 0 { cx.unchanged() } else { self.decide(now, cx) }
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let mut state = self.state.lock();
        state.pass(now);
        state.collector.sent(packet);
        cx.unchanged()
    }

    fn needs_sent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::control::PacketResult;
    use tidegate_core::datagram::Ecn;
    use tidegate_core::units::Size;
    use tidegate_core::{ControllerHost, RemoteTime, Stream};

    const TERMS: Terms = Terms {
        interval: Span::from_millis(100),
        action: Action::Rate,
        min: Rate::from_kbps(100),
        max: Rate::from_mbps(10),
        history: 2,
    };

    fn ms(at: i64) -> Time {
        Time::from_millis(at)
    }

    fn host(agent: Agent) -> ControllerHost {
        let limits = Limits { min: TERMS.min, max: TERMS.max, ..Limits::default() };
        ControllerHost::new("it", Box::new(agent), Stream::new(1, "it", "rng"), Time::ZERO, &limits)
            .expect("the contract is kept")
    }

    #[test]
    fn actions_are_rates_by_their_logarithm_or_factors() {
        assert_eq!(
            [-1.0, 0.0, 1.0, 9.0].map(|action| TERMS.rate(action, Rate::ZERO).as_bps()),
            [100_000, 1_000_000, 10_000_000, 10_000_000]
        );
        assert!((TERMS.action(Rate::from_mbps(1)) - 0.0).abs() < 1e-12);
        let change = Terms { action: Action::Change(2.0), ..TERMS };
        assert_eq!(change.rate(-1.0, Rate::from_mbps(1)), Rate::from_kbps(500));
        assert_eq!(change.rate(-1.0, Rate::from_kbps(150)), Rate::from_kbps(100));
        for broken in [
            Terms { interval: Span::ZERO, ..TERMS },
            Terms { max: TERMS.min, ..TERMS },
            Terms { history: 0, ..TERMS },
            Terms { action: Action::Change(1.0), ..TERMS },
            Terms { action: Action::Change(f64::NAN), ..TERMS },
        ] {
            assert!(broken.check().is_err(), "{broken:?}");
        }
    }

    #[test]
    fn a_rate_holds_from_one_interval_to_the_next() {
        let (agent, reins) = Agent::new(TERMS, Rate::from_kbps(300), None);
        let mut host = host(agent);
        assert_eq!((host.decision().target, host.decision().alarm), (Rate::from_kbps(300), Some(ms(100))));
        let _ = reins.act(0.0);
        assert_eq!(host.report(ms(50), &Report::default()).expect("fine").target, Rate::from_kbps(300));
        let second = *host.alarm(ms(100)).expect("fine");
        assert_eq!((second.target, second.alarm), (Rate::from_mbps(1), Some(ms(200))));
        assert_eq!(reins.begun(), 2);
    }

    #[test]
    fn it_sees_what_feedback_tells_and_no_more() {
        let (agent, reins) = Agent::new(TERMS, Rate::from_mbps(1), None);
        let mut host = host(agent);
        // ten packets of 1000 bytes, 10 ms apart, on a far clock an hour ahead; each is on its way 1 ms longer than the one
        // before, and the last one is lost
        let packet = |at: i64| PacketResult {
            sequence: at as u64,
            size: Size::from_bytes(1000),
            sent: ms(10 * at),
            arrival: (at < 9).then(|| RemoteTime::from_nanos((3_600_000 + 20 + 11 * at) * 1_000_000)),
            ecn: Ecn::NotEct,
            probe: None,
        };
        let report = |range: std::ops::Range<i64>| Report {
            packets: range.map(packet).collect(),
            packet_rtt: Some(Span::from_millis(40)),
            ..Report::default()
        };
        let _ = host.report(ms(80), &report(0..5)).expect("fine");
        let first = reins.see(ms(100));
        // 0 to 4 ms above the least, 5000 bytes over the 44 ms between the first and the last
        assert_eq!((first.delay, first.loss, first.round_trip, first.silence), (2.0, 0.0, 40.0, 20.0));
        assert!((first.acknowledged - 40_000.0 / 0.044).abs() < 1e-6, "{first:?}");
        // what comes at the end of an interval is of the next one
        let _ = host.report(ms(100), &report(5..10)).expect("fine");
        assert_eq!(reins.see(ms(100)), first);
        let second = reins.see(ms(200));
        assert_eq!((second.delay, second.loss, second.silence), (6.5, 0.2, 100.0));
        // 4.5 ms more after 49.5 ms
        assert!((second.gradient - 4.5 / 49.5).abs() < 1e-12, "{second:?}");
        assert!((second.acknowledged - 32_000.0 / 0.044).abs() < 1e-6, "{second:?}");
        // nothing is heard: what was heard stays, but for what counts events
        let third = reins.see(ms(300));
        assert_eq!((third.delay, third.loss, third.gradient, third.silence), (6.5, 0.0, 0.0, 200.0));
        reins.show(|seen| {
            assert_eq!(seen.len(), 2 * COUNT);
            let inside = seen.chunks(COUNT).flat_map(|row| row.iter().zip(&FEATURES));
            inside.for_each(|(&value, one)| assert!(value >= one.low && value <= one.high, "{}", one.name));
        });
    }

    #[test]
    fn a_policy_decides_at_the_beginning_of_each_interval() {
        let mut calls = 0;
        let policy: Policy = Box::new(move |seen| {
            calls += 1;
            assert_eq!(
                seen.iter().all(|&value| value == 0.0),
                calls == 1,
                "only the first one has seen nothing"
            );
            if calls < 3 { Ok(1.0) } else { Err("enough".to_owned()) }
        });
        let mut host = host(Agent::new(TERMS, Rate::from_kbps(300), Some(policy)).0);
        assert_eq!(host.decision().target, TERMS.max);
        assert_eq!(host.alarm(ms(100)).expect("fine").target, TERMS.max);
        assert_eq!(host.alarm(ms(200)).expect_err("it fails").reason, "enough");
    }
}
