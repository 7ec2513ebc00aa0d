//! Links: where they are, and what they carry over time.

use crate::link::LinkSettings;
use crate::link::capacity::Statuses;
use crate::link::leo::Leo;
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
    /// What it carries.
    pub capacity: Capacity,
    /// How it is computed.
    #[serde(default)]
    pub service: LinkService,
    /// Queue, delay, jitter and losses.
    #[serde(default)]
    pub settings: LinkSettings,
}

/// How a link with a drop-tail queue is computed: both give the same. Any other discipline needs the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkService {
    /// A packet's whole stay when it comes in: fast.
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
    /// The same for ever.
    Constant(Rate),
    /// From each time on the rate beside it; repeats with `period` if given.
    Schedule {
        /// Steps in order of time; the first at zero.
        steps: Vec<(Time, Rate)>,
        /// After this long it starts again.
        #[serde(default)]
        period: Option<Span>,
    },
    /// A recorded network: index into the traces handed over, begun at `offset`.
    Trace {
        /// Which trace.
        index: usize,
        /// Where in the trace the run begins.
        #[serde(default)]
        offset: Offset,
        /// The trace's rates are multiplied by this.
        #[serde(default = "one")]
        scale: f64,
        /// Whether delays and losses that it tells are left out.
        #[serde(default)]
        capacity_only: bool,
    },
    /// The generative process of the Sprout paper.
    Brownian(BrownianSpec),
    /// Satellites in low Earth orbit.
    Leo(Leo),
    /// One of several capacities at a time, and no queue: what is too much is lost.
    Statuses(Statuses),
    /// Whoever drives the run carries the packets.
    External,
}

/// Where in a trace a run begins.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Offset {
    /// There.
    At(Span),
    /// At random, by the run's seed.
    Random {
        /// Links that say the same name here begin at the same place: they are the two ways of a cable.
        random: String,
    },
}

impl Default for Offset {
    fn default() -> Self {
        Self::At(Span::ZERO)
    }
}

const fn one() -> f64 {
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
    /// Outages end at this rate, per second.
    pub outage_escape: f64,
}
