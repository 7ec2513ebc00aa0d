//! Links of a scenario: their ends and their capacity over time.

use crate::link::LinkSettings;
use crate::link::capacity::Statuses;
use crate::link::leo::Leo;
use crate::traffic::leg::LegSettings;
use serde::Deserialize;
use tidegate_core::{Rate, Span, Time};

/// A link in one direction between two nodes of the graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Its name; unique.
    pub name: String,
    /// Graph node at its head.
    pub from: String,
    /// Graph node at its tail.
    pub to: String,
    /// Its capacity.
    pub capacity: Capacity,
    /// The way in which it is computed.
    #[serde(default)]
    pub service: LinkService,
    /// Queue, delay, jitter and losses.
    #[serde(default)]
    pub settings: LinkSettings,
    /// The connection that carries calls over it; by default their datagrams go as they are.
    #[serde(default)]
    pub via: Option<LegSettings>,
}

/// The way in which a link with a drop-tail queue is computed: both give the same results. Any other discipline needs
/// [`LinkService::Managed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkService {
    /// A packet's departure is computed when it comes in, which is fast.
    #[default]
    Fifo,
    /// Packet by packet, so that the driver can change the link while packets wait.
    Managed,
}

/// A link's capacity over time.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capacity {
    /// No serialisation at all.
    Infinite,
    /// The same rate for ever.
    Constant(Rate),
    /// A list of steps, which repeats after `period` if given.
    Schedule {
        /// Time from which each rate holds, in order of time; the first is zero.
        steps: Vec<(Time, Rate)>,
        /// Time after which the steps start again.
        #[serde(default)]
        period: Option<Span>,
    },
    /// A recorded network.
    Trace {
        /// Index of the trace among those handed over.
        index: usize,
        /// Time in the trace at which the run begins.
        #[serde(default)]
        offset: Offset,
        /// Factor of the trace's rates.
        #[serde(default = "unit_scale")]
        scale: f64,
        /// Whether delays and losses in the trace are ignored.
        #[serde(default)]
        capacity_only: bool,
    },
    /// The generative process of the Sprout paper.
    Brownian(BrownianSpec),
    /// Satellites in low Earth orbit.
    Leo(Leo),
    /// One of several capacities at a time, and no queue: packets beyond the capacity are lost.
    Statuses(Statuses),
    /// The driver of the run carries the packets.
    External,
}

/// The time in a trace at which a run begins.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Offset {
    /// At this time.
    At(Span),
    /// At random, by the run's seed.
    Random {
        /// Links with the same name here begin at the same time: they are the two directions of a cable.
        random: String,
    },
}

impl Default for Offset {
    fn default() -> Self {
        Self::At(Span::ZERO)
    }
}

const fn unit_scale() -> f64 {
    1.0
}

/// Brownian rate with sticky outages (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrownianSpec {
    /// Rate at the start.
    pub start: Rate,
    /// Largest rate.
    pub max: Rate,
    /// Standard deviation of the rate's change over one second, in bit/s.
    pub sigma: Rate,
    /// Rate at which outages end, per second.
    pub outage_escape: f64,
}
