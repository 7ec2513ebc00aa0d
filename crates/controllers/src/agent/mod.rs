//! Controller whose decisions come from a policy, or from outside, as from an agent that learns.
//!
//! Time is divided into intervals from the flow's start on. At the beginning of each interval the rate is set, from
//! observations of the previous ones: by a [`Policy`], or from outside through [`AgentHandle`]. Both get the same
//! observations, so that an agent trained in one way decides the same in the other.

mod observation;

pub use observation::{COUNT, FEATURES, Feature, Observation};

use observation::{Collector, by_logarithm};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_core::control::{Context, Controller, Decision, FeedbackKind, Limits, Needs, Report, Sent};
use tidegate_core::math;
use tidegate_core::units::{Rate, Span, Time};

/// Meaning of an action, which is a number from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Rate, on a logarithmic scale from the lowest to the highest.
    Rate,
    /// Change of the rate: by this factor at 1, by its inverse at -1.
    Change(f64),
}

/// Parameters of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentConfig {
    /// Duration of a decision.
    pub interval: Span,
    /// Meaning of an action.
    pub action: Action,
    /// Lowest rate.
    pub min: Rate,
    /// Highest rate.
    pub max: Rate,
    /// Number of intervals in an observation.
    pub history: usize,
}

impl AgentConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Fails with a sentence that names the wrong parameter.
    pub fn check(&self) -> Result<(), String> {
        if self.interval <= Span::ZERO {
            return Err(format!("interval: found {}; expected more than zero", self.interval));
        }
        if self.min >= self.max || self.min == Rate::ZERO {
            return Err(format!(
                "rate: found {} to {}; expected a minimum above zero and below the maximum",
                self.min, self.max
            ));
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

    /// Rate of an action, which is clamped to -1 and 1.
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

    /// Action for a rate, if actions are rates.
    #[must_use]
    pub fn action(&self, rate: Rate) -> f64 {
        by_logarithm(rate.as_bps_f64(), self.bounds()).clamp(-1.0, 1.0)
    }
}

/// Policy, called at the beginning of each interval with the scaled numbers of the last ones, the newest last. It returns
/// an action, or the reason for which there is none.
pub type Policy = Box<dyn FnMut(&[f32]) -> Result<f64, String> + Send>;

/// State that the controller and its [`AgentHandle`] share.
struct State {
    config: AgentConfig,
    collector: Collector,
    /// Scaled numbers of the last intervals, the newest last.
    history: Vec<f32>,
    rate: Rate,
    /// Number of intervals that have begun.
    intervals: u64,
    /// End of the present interval.
    due: Time,
}

impl State {
    /// Ends the present interval.
    fn close(&mut self) {
        let observation = self.collector.close(self.due, self.config.interval, self.rate);
        self.history.copy_within(COUNT.., 0);
        let newest = self.history.len() - COUNT;
        self.history[newest..].copy_from_slice(&observation.scaled(self.config.bounds()));
        self.due += self.config.interval;
    }

    /// Ends the intervals that are over by `now`, so that an event counts in the present one.
    #[inline]
    fn advance(&mut self, now: Time) {
        while self.intervals > 0 && now >= self.due {
            self.close();
        }
    }
}

/// Handle through which an [`Agent`] is controlled from outside.
#[derive(Clone)]
pub struct AgentHandle(Arc<Mutex<State>>);

impl AgentHandle {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the rate from the next interval on by an action, and returns it.
    pub fn act(&self, action: f64) -> Rate {
        let mut state = self.lock();
        state.rate = state.config.rate(action, state.rate);
        state.rate
    }

    /// Ends the interval until `due`, if it has not ended yet, and returns its observation.
    #[must_use]
    pub fn see(&self, due: Time) -> Observation {
        let mut state = self.lock();
        state.advance(due);
        state.collector.last()
    }

    /// Number of intervals that have begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.lock().intervals
    }

    /// Passes the scaled numbers of the last intervals, the newest last, to `show`.
    pub fn show<R>(&self, show: impl FnOnce(&[f32]) -> R) -> R {
        show(&self.lock().history)
    }
}

/// Controller whose rate is set by a policy, or through [`AgentHandle`].
pub struct Agent {
    state: AgentHandle,
    policy: Option<Policy>,
    limits: Limits,
}

impl Agent {
    /// Creates an agent that begins with `rate`. Without a policy, the rate is set through the returned handle.
    #[must_use]
    pub fn new(config: AgentConfig, rate: Rate, policy: Option<Policy>) -> (Self, AgentHandle) {
        let handle = AgentHandle(Arc::new(Mutex::new(State {
            config,
            collector: Collector::default(),
            history: vec![0.0; config.history * COUNT],
            rate: rate.clamp(config.min, config.max),
            intervals: 0,
            due: Time::MAX,
        })));
        (Self { state: handle.clone(), policy, limits: Limits::default() }, handle)
    }

    /// Decides for the interval that begins now.
    fn decide(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        let mut state = self.state.lock();
        state.advance(now);
        if state.intervals == 0 {
            state.due = now + state.config.interval;
            state.collector.begin(now);
        }
        state.intervals += 1;
        if let Some(policy) = &mut self.policy {
            match policy(&state.history) {
                Ok(action) if action.is_nan() => cx.fail("the policy's action is not a number"),
                Ok(action) => state.rate = state.config.rate(action, state.rate),
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
        state.advance(now);
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
        state.advance(now);
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

    const CONFIG: AgentConfig = AgentConfig {
        interval: Span::from_millis(100),
        action: Action::Rate,
        min: Rate::from_kbps(100),
        max: Rate::from_mbps(10),
        history: 2,
    };

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn host(agent: Agent) -> ControllerHost {
        let limits = Limits { min: CONFIG.min, max: CONFIG.max, ..Limits::default() };
        ControllerHost::new("it", Box::new(agent), Stream::new(1, "it", "rng"), Time::ZERO, &limits)
            .expect("the contract is kept")
    }

    #[test]
    fn actions_are_rates_by_their_logarithm_or_factors() {
        assert_eq!(
            [-1.0, 0.0, 1.0, 9.0].map(|action| CONFIG.rate(action, Rate::ZERO).as_bps()),
            [100_000, 1_000_000, 10_000_000, 10_000_000]
        );
        assert!((CONFIG.action(Rate::from_mbps(1)) - 0.0).abs() < 1e-12);
        let change = AgentConfig { action: Action::Change(2.0), ..CONFIG };
        assert_eq!(change.rate(-1.0, Rate::from_mbps(1)), Rate::from_kbps(500));
        assert_eq!(change.rate(-1.0, Rate::from_kbps(150)), Rate::from_kbps(100));
        for broken in [
            AgentConfig { interval: Span::ZERO, ..CONFIG },
            AgentConfig { max: CONFIG.min, ..CONFIG },
            AgentConfig { history: 0, ..CONFIG },
            AgentConfig { action: Action::Change(1.0), ..CONFIG },
            AgentConfig { action: Action::Change(f64::NAN), ..CONFIG },
        ] {
            assert!(broken.check().is_err(), "{broken:?}");
        }
    }

    #[test]
    fn a_rate_holds_from_one_interval_to_the_next() {
        let (agent, handle) = Agent::new(CONFIG, Rate::from_kbps(300), None);
        let mut host = host(agent);
        assert_eq!((host.decision().target, host.decision().alarm), (Rate::from_kbps(300), Some(ms(100))));
        let _ = handle.act(0.0);
        assert_eq!(host.report(ms(50), &Report::default()).expect("fine").target, Rate::from_kbps(300));
        let second = *host.alarm(ms(100)).expect("fine");
        assert_eq!((second.target, second.alarm), (Rate::from_mbps(1), Some(ms(200))));
        assert_eq!(handle.begun(), 2);
    }

    #[test]
    fn it_sees_what_feedback_tells_and_no_more() {
        let (agent, handle) = Agent::new(CONFIG, Rate::from_mbps(1), None);
        let mut host = host(agent);
        // ten packets of 1000 bytes, 10 ms apart, on a far clock an hour ahead; the delay of each is 1 ms longer than that of
        // the previous one, and the last one is lost
        let packet = |index: i64| PacketResult {
            sequence: index as u64,
            size: Size::from_bytes(1000),
            sent: ms(10 * index),
            arrival: (index < 9).then(|| RemoteTime::from_nanos((3_600_000 + 20 + 11 * index) * 1_000_000)),
            ecn: Ecn::NotEct,
            probe: None,
        };
        let report = |range: std::ops::Range<i64>| Report {
            packets: range.map(packet).collect(),
            packet_rtt: Some(Span::from_millis(40)),
            ..Report::default()
        };
        let _ = host.report(ms(80), &report(0..5)).expect("fine");
        let first = handle.see(ms(100));
        // 0 to 4 ms above the least, 5000 bytes over the 44 ms between the first and the last
        assert_eq!((first.delay, first.loss, first.round_trip, first.silence), (2.0, 0.0, 40.0, 20.0));
        assert!((first.acknowledged - 40_000.0 / 0.044).abs() < 1e-6, "{first:?}");
        // an event at the end of an interval belongs to the next one
        let _ = host.report(ms(100), &report(5..10)).expect("fine");
        assert_eq!(handle.see(ms(100)), first);
        let second = handle.see(ms(200));
        assert_eq!((second.delay, second.loss, second.silence), (6.5, 0.2, 100.0));
        // 4.5 ms more after 49.5 ms
        assert!((second.gradient - 4.5 / 49.5).abs() < 1e-12, "{second:?}");
        assert!((second.acknowledged - 32_000.0 / 0.044).abs() < 1e-6, "{second:?}");
        // without feedback the old values stay, except counts of events
        let third = handle.see(ms(300));
        assert_eq!((third.delay, third.loss, third.gradient, third.silence), (6.5, 0.0, 0.0, 200.0));
        handle.show(|history| {
            assert_eq!(history.len(), 2 * COUNT);
            let values = history.chunks(COUNT).flat_map(|row| row.iter().zip(&FEATURES));
            values.for_each(|(&value, feature)| {
                assert!(value >= feature.low && value <= feature.high, "{}", feature.name);
            });
        });
    }

    #[test]
    fn a_policy_decides_at_the_beginning_of_each_interval() {
        let mut calls = 0;
        let policy: Policy = Box::new(move |history| {
            calls += 1;
            assert_eq!(
                history.iter().all(|&value| value == 0.0),
                calls == 1,
                "only the first history is empty"
            );
            if calls < 3 { Ok(1.0) } else { Err("enough".to_owned()) }
        });
        let mut host = host(Agent::new(CONFIG, Rate::from_kbps(300), Some(policy)).0);
        assert_eq!(host.decision().target, CONFIG.max);
        assert_eq!(host.alarm(ms(100)).expect("fine").target, CONFIG.max);
        assert_eq!(host.alarm(ms(200)).expect_err("it fails").reason, "enough");
    }
}
