//! One direction of a link: queue, service, propagation.
//!
//! * [`capacity`]: how fast it puts packets on the medium;
//! * [`queue`]: what waits, who goes next and who is dropped;
//! * `medium`: propagation, jitter and losses after service;
//! * `fifo` and `managed`: two nodes made of these. [`Link`] has a drop-tail queue and computes a packet's whole
//!   stay when it comes in, which is fast; [`ManagedLink`] goes packet by packet, has any [`queue::QueueDiscipline`],
//!   and its driver may change it while packets wait.

pub mod capacity;
mod fifo;
mod flight;
pub mod jitter;
pub mod leo;
pub mod loss;
mod managed;
mod medium;
mod overload;
pub mod phases;
pub mod queue;
pub mod trace;

pub use fifo::Link;
pub use managed::ManagedLink;
pub use medium::EcnPath;

use crate::refusal::{Refusal, ensure};
use capacity::Server;
use jitter::Jitter;
use loss::Loss;
use medium::Medium;
use overload::OverloadLoss;
use phases::Phases;
use queue::{Discipline, DropTail};
use serde::Deserialize;
use tidegate_core::{Rate, Span};

/// What a link is made of. A scenario has all of it but what follows from a link's capacity.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSettings {
    /// How fast it puts packets on the medium.
    #[serde(skip)]
    pub server: Server,
    /// The rate that a queue limit in time is computed from; `None`: [`Server::nominal_rate`].
    #[serde(skip)]
    pub nominal: Option<Rate>,
    /// How much it holds while the medium is busy.
    pub queue: DropTail,
    /// Who of those that wait goes next, and who is dropped before it is full. [`Link`] has drop-tail only.
    pub discipline: Discipline,
    /// How long a bit travels, by the time at which it leaves.
    pub delay: Phases<Span>,
    /// How that varies from packet to packet.
    pub jitter: Jitter,
    /// Losses on the medium, by the time at which a packet leaves.
    pub loss: Phases<Loss>,
    /// The probability that a byte is hit by an error, which the whole packet dies of.
    pub byte_error: f64,
    /// What becomes of packets of ECN-capable transports there.
    pub ecn: EcnPath,
}

impl LinkSettings {
    /// A link with `server` and propagation `delay`, an endless queue, and nothing lost.
    #[must_use]
    pub fn new(server: Server, delay: Span) -> Self {
        Self { server, delay: Phases::constant(delay), ..Self::default() }
    }

    /// A link of constant `rate` and propagation `delay` with an endless queue, and nothing lost.
    #[must_use]
    pub fn constant(rate: Rate, delay: Span) -> Self {
        Self::new(Server::constant(rate), delay)
    }

    /// This, with `queue`.
    #[must_use]
    pub fn with_queue(self, queue: DropTail) -> Self {
        Self { queue, ..self }
    }

    /// This, with a queue that `discipline` manages.
    #[must_use]
    pub fn with_discipline(self, discipline: Discipline) -> Self {
        Self { discipline, ..self }
    }

    /// This, with `jitter`.
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// This, with `loss` all the time.
    #[must_use]
    pub fn with_loss(self, loss: Loss) -> Self {
        Self { loss: Phases::constant(loss), ..self }
    }

    /// The rate that a queue limit in time is computed from.
    #[must_use]
    pub fn nominal_rate(&self) -> Rate {
        self.nominal.unwrap_or_else(|| self.server.nominal_rate())
    }

    /// The transmitter and the medium of the link called `name` in the run with `seed`.
    fn parts(mut self, name: &str, seed: u64) -> Result<(Server, Medium), Refusal> {
        let build = || -> Result<(Server, Medium), Refusal> {
            let server = std::mem::take(&mut self.server);
            let overload = server.status_process().map(|statuses| OverloadLoss::new(statuses, seed, name));
            if overload.is_some() {
                let limited = !self.queue.resolve(server.nominal_rate()).is_unlimited();
                ensure(!limited, || lossless("queue"))?;
                ensure(self.discipline == Discipline::DropTail, || lossless("discipline"))?;
                ensure(self.loss == Phases::default(), || lossless("loss"))?;
            }
            Ok((server, Medium::new(self, overload, seed, name)?))
        };
        build().map_err(|refusal| refusal.at(name))
    }
}

/// Statuses have neither a queue nor losses of their own, and nobody else's capacity.
fn lossless(key: &str) -> Refusal {
    let expected = "none beside statuses: what they cannot carry is lost, and nothing waits";
    Refusal::new(key, "a setting of its own", expected)
}
