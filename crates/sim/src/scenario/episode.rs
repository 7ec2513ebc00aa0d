//! A run that goes in the steps of an agent, who sets the rate of one of its flows; and what each step came to.

use super::run::Run;
use super::tightest_link::capacity;
use crate::record::flow::FlowStats;
use crate::record::histogram::Histogram;
use crate::refusal::Refusal;
use tidegate_controllers::agent::{Observation, Reins, Terms};
use tidegate_core::{NodeId, Rate, Span, Time, math};

/// How a flow really fared in one step, which its sender cannot know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truth {
    /// Mean capacity of the tightest link, in bit/s; `None`: no limit, or none that is known.
    pub capacity: Option<f64>,
    /// What arrived, in bit/s on the wire.
    pub received: f64,
    /// The share of packets lost, of those that arrived or died.
    pub loss: f64,
    /// Mean one-way delay of what arrived, in ms; without any, as before.
    pub delay: f64,
    /// Mean time that what arrived had waited in queues, in ms; without any it grows with the time, while something is under way.
    pub queued: f64,
    /// Mean time that media had waited at the sender, in ms.
    pub paced: f64,
}

impl Truth {
    /// The default reward, at most 1: the share of the capacity that was received, less a sixth of log2(1 + d / 100 ms) for a delay d of queues in
    /// the network and at the sender (1/6 for 100 ms, 1/3 for 300 ms), less the loss. Ours; its parts are those of Jay et al., "A Deep
    /// Reinforcement Learning Perspective on Internet Congestion Control" (ICML 2019): throughput, latency, loss.
    ///
    /// More than the capacity does not arrive, so that to send beyond it costs loss or delay and brings nothing; and silence brings nothing.
    /// The delay counts by its logarithm, or where a queue is long, who sends nothing would do better than who keeps a link busy that changes.
    /// A link that carries less than `least` counts as one that carries that. `None` without a capacity.
    #[must_use]
    pub fn reward(&self, least: Rate) -> Option<f64> {
        let capacity = self.capacity?.max(least.as_bps_f64());
        let used = (self.received / capacity).min(1.0);
        let late = math::log2(1.0 + (self.queued + self.paced) / 100.0) / 6.0;
        Some(used - late - self.loss)
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepped {
    /// What the sender did and heard; nothing without reins.
    pub observed: Observation,
    /// How the flow really fared.
    pub truth: Truth,
    /// When it ended.
    pub at: Time,
    /// Whether the flow's time is over.
    pub over: bool,
    /// Whether its sender had stopped before.
    pub stopped: bool,
}

/// Counts of a flow, from its beginning on.
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
        let sum = |of: &Histogram| (of.count(), of.mean_ms().unwrap_or(0.0) * of.count() as f64);
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

/// The mean of what came between two counts.
fn mean((before, sum): (u64, f64), (after, total): (u64, f64)) -> Option<f64> {
    (after > before).then(|| ((total - sum) / (after - before) as f64).max(0.0))
}

/// A run in steps. For each: [`Episode::act`], then the [`Episode::run`] until [`Episode::until`], then [`Episode::end`].
pub struct Episode {
    run: Run,
    /// `None`: the flow has another controller, and is only watched.
    reins: Option<Reins>,
    terms: Terms,
    flow: usize,
    links: Vec<NodeId>,
    /// The present step, and the end of all.
    begin: Time,
    stop: Time,
    steps: u64,
    before: Counts,
    last: Truth,
}

impl Episode {
    /// The episode of a flow, whose controller has these reins; without any it is only watched.
    ///
    /// # Errors
    /// When there is no such flow, or its time has no room for a step.
    pub fn new(run: Run, flow: &str, reins: Option<Reins>, terms: Terms) -> Result<Self, Refusal> {
        let record = run.recording();
        let Some(place) = record.flows.iter().position(|info| info.name == flow) else {
            return Err(Refusal::new("flow", flow, "the name of a flow"));
        };
        let info = &record.flows[place];
        let (begin, stop) = (info.start, info.stop.min(Time::ZERO + run.duration));
        let links = info.links.clone();
        if begin + terms.interval > stop {
            let found = format!("{} from its start to its end", (stop - begin).max(Span::ZERO));
            let expected = format!("at least an interval ({})", terms.interval);
            return Err(Refusal::new("flow", found, expected));
        }
        let (before, last) = (Counts::default(), Truth::default());
        Ok(Self { run, reins, terms, flow: place, links, begin, stop, steps: 0, before, last })
    }

    /// The run.
    pub fn run(&mut self) -> &mut Run {
        &mut self.run
    }

    /// The run, as it is.
    #[must_use]
    pub fn into_run(self) -> Run {
        self.run
    }

    /// Where the flow has got to: the beginning of the next step.
    #[must_use]
    pub fn at(&self) -> Time {
        self.begin
    }

    /// What holds its reins.
    #[must_use]
    pub fn reins(&self) -> Option<&Reins> {
        self.reins.as_ref()
    }

    /// Whether a capacity is known, at the beginning at least.
    pub fn knows_capacity(&mut self) -> bool {
        self.capacity(self.begin, self.begin + self.terms.interval).is_some()
    }

    /// Up to when the run must have gone before the first step.
    #[must_use]
    pub fn before(&self) -> Option<Time> {
        (self.begin > Time::ZERO).then(|| self.begin - Span::from_nanos(1))
    }

    /// Up to when the run must go in this step: whatever happens at its end is of the next one.
    #[must_use]
    pub fn until(&self) -> Time {
        (self.begin + self.terms.interval).min(self.stop) - Span::from_nanos(1)
    }

    /// Sets the rate of this step, where there are reins.
    pub fn act(&self, action: f64) {
        if let Some(reins) = &self.reins {
            reins.act(action);
        }
    }

    /// Whether there is time for another step.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.begin >= self.stop
    }

    fn capacity(&mut self, from: Time, to: Time) -> Option<f64> {
        let nodes = self.run.world.nodes_mut();
        let of = self.links.iter().filter_map(|&link| capacity(nodes, link, from, to));
        of.min().map(Rate::as_bps_f64)
    }

    /// What this step came to.
    pub fn end(&mut self) -> Stepped {
        let (from, to) = (self.begin, self.until() + Span::from_nanos(1));
        let observed = self.reins.as_ref().map(|reins| reins.see(to)).unwrap_or_default();
        let now = Counts::of(&self.run.recording().stats()[self.flow]);
        let before = std::mem::replace(&mut self.before, now);
        let (arrived, lost) = (now.arrived - before.arrived, now.lost - before.lost);
        let lasted = to - from;
        // what arrived or died was sent in this step or before it
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
        let stopped = self.reins.as_ref().is_some_and(|reins| reins.begun() < self.steps);
        Stepped { observed, truth, at: to, over: to >= self.stop, stopped }
    }
}
