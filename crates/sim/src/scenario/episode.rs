//! A run in steps: an agent sets the rate of one of its flows at each step, and gets the step's outcome.

use super::run::Run;
use super::tightest_link::{capacity, tightest};
use crate::record::flow::FlowStats;
use crate::record::histogram::Histogram;
use crate::record::path::Path;
use crate::refusal::Refusal;
use tidegate_controllers::agent::{AgentConfig, AgentHandle, Observation};
use tidegate_core::{Rate, Span, Time, math};

/// The true state of a flow in one step, which its sender cannot know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truth {
    /// Mean capacity of the tightest link, in bit/s; `None`: no limit, or an unknown one.
    pub capacity: Option<f64>,
    /// Rate of the packets that arrived, in bit/s on the wire.
    pub received: f64,
    /// Lost packets as a share of those that arrived or died.
    pub loss: f64,
    /// Mean one-way delay of the packets that arrived, in ms; that of the last step if none did.
    pub delay: f64,
    /// Mean time that the packets that arrived had waited in queues, in ms; if none did, it grows with the time while
    /// packets are under way.
    pub queued: f64,
    /// Mean time that media packets had waited at the sender, in ms.
    pub paced: f64,
}

impl Truth {
    /// The default reward, at most 1: the share of the capacity that was received, minus a sixth of log2(1 + d / 100
    /// ms) for a delay d of queues in the network and at the sender (1/6 for 100 ms, 1/3 for 300 ms), minus the loss.
    /// The formula is tidegate's; its parts (throughput, latency, loss) are those of Jay et al., "A Deep Reinforcement
    /// Learning Perspective on Internet Congestion Control" (ICML 2019).
    ///
    /// No more than the capacity can arrive. So sending faster gains nothing and costs loss or delay, and silence gains
    /// nothing. The delay counts by its logarithm; otherwise an agent that sends nothing would do better, where queues
    /// are long, than one that keeps a changing link busy. A link that carries less than `min_capacity` counts as one
    /// that carries that. `None` without a capacity.
    #[must_use]
    pub fn reward(&self, min_capacity: Rate) -> Option<f64> {
        let capacity = self.capacity?.max(min_capacity.as_bps_f64());
        let used = (self.received / capacity).min(1.0);
        let late = math::log2(1.0 + (self.queued + self.paced) / 100.0) / 6.0;
        Some(used - late - self.loss)
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepped {
    /// The sender's actions and the feedback it received; empty without an agent.
    pub observed: Observation,
    /// The true state of the flow.
    pub truth: Truth,
    /// The end of the step.
    pub time: Time,
    /// Whether the flow's time is over.
    pub over: bool,
    /// Whether its sender had stopped before.
    pub stopped: bool,
}

/// Totals of a flow since its start.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    arrived: u64,
    bytes: u64,
    lost: u64,
    /// Number and sum in ms.
    delays: (u64, f64),
    queued: (u64, f64),
    paced: (u64, f64),
}

impl Counts {
    fn of(stats: &FlowStats) -> Self {
        let sum = |histogram: &Histogram| {
            (histogram.count(), histogram.mean_ms().unwrap_or(0.0) * histogram.count() as f64)
        };
        Self {
            sent: stats.sent.packets,
            arrived: stats.arrived.packets,
            bytes: stats.received.bytes,
            lost: stats.lost().packets,
            delays: sum(&stats.delay),
            queued: sum(&stats.queued),
            paced: sum(&stats.paced),
        }
    }
}

/// The mean of the samples between two totals, each a number and a sum.
fn mean((before, sum): (u64, f64), (after, total): (u64, f64)) -> Option<f64> {
    (after > before).then(|| ((total - sum) / (after - before) as f64).max(0.0))
}

/// A run in steps. For each: [`Episode::act`], then the [`Episode::run`] until [`Episode::until`], then [`Episode::end`].
pub struct Episode {
    run: Run,
    /// The agent's control of the sender; `None`: the flow has another controller, and is only watched.
    handle: Option<AgentHandle>,
    config: AgentConfig,
    flow: usize,
    path: Path,
    /// Beginning of the present step, and end of the episode.
    begin: Time,
    stop: Time,
    steps: u64,
    before: Counts,
    last: Truth,
}

impl Episode {
    /// The episode of a flow whose controller has this handle; without one the flow is only watched.
    ///
    /// # Errors
    /// When there is no such flow, or its time has no room for a step.
    pub fn new(
        run: Run,
        flow: &str,
        handle: Option<AgentHandle>,
        config: AgentConfig,
    ) -> Result<Self, Refusal> {
        let record = run.recording();
        let Some(index) = record.flows.iter().position(|info| info.name == flow) else {
            return Err(Refusal::new("flow", flow, "a flow of the scenario"));
        };
        let info = &record.flows[index];
        let (begin, stop) = (info.start, info.stop.min(Time::ZERO + run.duration));
        let path = info.path.clone();
        if begin + config.interval > stop {
            let available = format!("a duration of {}", (stop - begin).max(Span::ZERO));
            let expected = format!("at least one interval ({})", config.interval);
            return Err(Refusal::new("flow", available, expected));
        }
        let (before, last) = (Counts::default(), Truth::default());
        Ok(Self { run, handle, config, flow: index, path, begin, stop, steps: 0, before, last })
    }

    /// The run.
    pub fn run(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Ends the episode and returns its run, which is not finished.
    #[must_use]
    pub fn into_run(self) -> Run {
        self.run
    }

    /// The beginning of the next step.
    #[must_use]
    pub fn at(&self) -> Time {
        self.begin
    }

    /// The handle of the flow's controller, if that is an agent.
    #[must_use]
    pub fn handle(&self) -> Option<&AgentHandle> {
        self.handle.as_ref()
    }

    /// Whether the capacity of the present step is known.
    pub fn knows_capacity(&mut self) -> bool {
        self.capacity(self.begin, self.begin + self.config.interval).is_some()
    }

    /// The time up to which the run must go before the first step.
    #[must_use]
    pub fn before(&self) -> Option<Time> {
        (self.begin > Time::ZERO).then(|| self.begin - Span::from_nanos(1))
    }

    /// The time up to which the run must go in this step; events at its end belong to the next step.
    #[must_use]
    pub fn until(&self) -> Time {
        (self.begin + self.config.interval).min(self.stop) - Span::from_nanos(1)
    }

    /// Sets the rate of this step, if the controller is an agent.
    pub fn act(&self, action: f64) {
        if let Some(handle) = &self.handle {
            handle.act(action);
        }
    }

    /// Whether there is time for another step.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.begin >= self.stop
    }

    fn capacity(&mut self, from: Time, to: Time) -> Option<f64> {
        let nodes = self.run.world.nodes_mut();
        let rate = tightest(&self.path, (from, to), |link, from, to| capacity(nodes, link, from, to));
        rate.map(Rate::as_bps_f64)
    }

    /// Ends this step and returns its outcome.
    pub fn end(&mut self) -> Stepped {
        let (from, to) = (self.begin, self.until() + Span::from_nanos(1));
        let observed = self.handle.as_ref().map(|handle| handle.see(to)).unwrap_or_default();
        let now = Counts::of(&self.run.recording().stats()[self.flow]);
        let before = std::mem::replace(&mut self.before, now);
        let (arrived, lost) = (now.arrived - before.arrived, now.lost - before.lost);
        let lasted = to - from;
        // packets that arrived or died were sent in this step or before it
        let under_way = now.sent > now.arrived + now.lost;
        let queued = mean(before.queued, now.queued).unwrap_or(if under_way {
            self.last.queued + lasted.as_millis_f64()
        } else {
            0.0
        });
        let truth = Truth {
            capacity: self.capacity(from, to),
            received: (now.bytes - before.bytes) as f64 * 8.0 / lasted.as_secs_f64(),
            loss: if lost == 0 { 0.0 } else { lost as f64 / (arrived + lost) as f64 },
            delay: mean(before.delays, now.delays).unwrap_or(self.last.delay),
            queued,
            paced: mean(before.paced, now.paced).unwrap_or(0.0),
        };
        (self.begin, self.last) = (to, truth);
        self.steps += 1;
        let stopped = self.handle.as_ref().is_some_and(|handle| handle.begun() < self.steps);
        Stepped { observed, truth, time: to, over: to >= self.stop, stopped }
    }
}
