//! Links: capacity over time, queue, losses, jitter.

use crate::link::capacity::Statuses;
use crate::loss::GilbertElliott;
use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span, Time};

/// A link in one direction between two nodes of the graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Propagation delay.
    #[serde(default)]
    pub delay: Span,
    /// How it is computed.
    #[serde(default)]
    pub service: LinkService,
    /// Drop-tail queue.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Loss on the wire.
    #[serde(default)]
    pub loss: LossSpec,
    /// Probability that a byte is hit; a packet with a hit byte is dropped.
    #[serde(default)]
    pub byte_error: f64,
    /// Delay jitter.
    #[serde(default)]
    pub jitter: JitterSpec,
}

/// How a link is computed; with a drop-tail queue both give the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkService {
    /// A packet's whole stay when it comes in: fast.
    #[default]
    Fifo,
    /// Packet by packet, so that the driver can change the link while packets wait.
    Managed,
}

/// A link's capacity over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
        offset: Span,
        /// The trace's rates are multiplied by this.
        #[serde(default = "one")]
        scale: f64,
    },
    /// The generative process of the Sprout paper.
    Brownian(BrownianSpec),
    /// One of several capacities at a time, and no queue: what is too much is lost.
    Statuses(Statuses),
    /// Whoever drives the run carries the packets.
    External,
}

const fn one() -> f64 {
    1.0
}

/// Brownian rate with sticky outages (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3).
#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// Limits of a drop-tail queue; several hold at once, none is no limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSpec {
    /// In packets.
    pub packets: Option<u32>,
    /// In bytes.
    pub bytes: Option<u64>,
    /// In time at the link's mean rate.
    pub time: Option<Span>,
    /// Whether the packet in service counts: then no packet waits longer than limit / rate, and a limit
    /// of n packets is ns-2's; a device queue of ns-3 does not count it.
    pub counts_in_service: bool,
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self { packets: None, bytes: None, time: None, counts_in_service: true }
    }
}

/// Loss on the wire.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// None.
    #[default]
    None,
    /// Each packet independently.
    Bernoulli(f64),
    /// Two states (Gilbert, Elliott).
    GilbertElliott(GilbertElliott),
    /// From each time on the Bernoulli loss beside it.
    Schedule(Vec<(Time, f64)>),
}

/// Delay jitter on a link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JitterSpec {
    /// None.
    #[default]
    None,
    /// RFC 8868 section 4.5.2: bounded, no reordering.
    Rfc8868 {
        /// Standard deviation.
        std: Span,
        /// Bound in standard deviations.
        n_std: f64,
        /// x_mean, which adds to the propagation delay.
        #[serde(default)]
        mean: Span,
    },
    /// U(0, max) of this largest value, packets may overtake.
    Uniform(Span),
    /// N(0, std^2) of this deviation, but nothing arrives before it has left; packets may overtake.
    Normal(Span),
}
