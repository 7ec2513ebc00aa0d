//! One direction of a link: queue, service, propagation.
//!
//! * [`capacity`]: the rate at which it puts packets on the medium;
//! * [`queue`]: waiting packets, their order, and drops;
//! * [`netem`]: Linux's network emulator, before the queue;
//! * `medium`: propagation, jitter and losses after service;
//! * `fifo` and `managed`: two nodes made of these. [`Link`] has a drop-tail queue and computes a packet's departure
//!   and arrival when it comes in, which is fast; [`ManagedLink`] serves packet by packet, has any
//!   [`queue::QueueDiscipline`], and its driver may change it while packets wait.

pub mod capacity;
mod change;
mod fifo;
mod flight;
pub mod jitter;
pub mod leo;
pub mod loss;
mod managed;
mod medium;
mod mtu;
pub mod netem;
mod overload;
pub mod phases;
pub mod queue;
pub mod trace;

pub use change::LinkChange;
pub use fifo::Link;
pub use managed::ManagedLink;
pub use medium::EcnPath;
pub use mtu::{MtuSettings, TooBig};

use crate::refusal::{Refusal, ensure};
use capacity::Server;
use jitter::Jitter;
use loss::Loss;
use medium::Medium;
use netem::NetemSettings;
use overload::OverloadLoss;
use phases::Phases;
use queue::{Discipline, DropTail};
use serde::Deserialize;
use tidegate_core::{Rate, Span};

/// The settings of a link. A scenario has all of them except those that follow from the link's capacity.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSettings {
    /// The transmitter, which puts packets on the medium.
    #[serde(skip)]
    pub server: Server,
    /// The rate from which a queue limit in time is computed; `None`: [`Server::nominal_rate`].
    #[serde(skip)]
    pub nominal: Option<Rate>,
    /// Size of the queue.
    pub queue: DropTail,
    /// Queue discipline: order of service, and drops before the queue is full. [`Link`] has drop-tail only.
    pub discipline: Discipline,
    /// Propagation delay, by the time at which a packet leaves.
    pub delay: Phases<Span>,
    /// Variation of the delay from packet to packet.
    pub jitter: Jitter,
    /// Losses on the medium, by the time at which a packet leaves.
    pub loss: Phases<Loss>,
    /// The probability that an error hits a byte; it kills the whole packet.
    pub byte_error: f64,
    /// Treatment of packets of ECN-capable transports on the medium.
    pub ecn: EcnPath,
    /// Linux's network emulator before the queue; [`Link`] has none.
    pub netem: Option<NetemSettings>,
    /// The largest IP packet; [`Link`] takes packets of all sizes.
    pub mtu: Option<MtuSettings>,
}

impl LinkSettings {
    /// A link with `server` and propagation `delay`, an unlimited queue, and no loss.
    #[must_use]
    pub fn new(server: Server, delay: Span) -> Self {
        Self { server, delay: Phases::constant(delay), ..Self::default() }
    }

    /// A link of constant `rate` and propagation `delay`, an unlimited queue, and no loss.
    #[must_use]
    pub fn constant(rate: Rate, delay: Span) -> Self {
        Self::new(Server::constant(rate), delay)
    }

    /// Sets the size of the queue.
    #[must_use]
    pub fn with_queue(self, queue: DropTail) -> Self {
        Self { queue, ..self }
    }

    /// Sets the queue discipline.
    #[must_use]
    pub fn with_discipline(self, discipline: Discipline) -> Self {
        Self { discipline, ..self }
    }

    /// Sets the jitter.
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// Sets a loss that holds all the time.
    #[must_use]
    pub fn with_loss(self, loss: Loss) -> Self {
        Self { loss: Phases::constant(loss), ..self }
    }

    /// The rate from which a queue limit in time is computed.
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
                ensure(!limited, || beside_statuses("queue"))?;
                ensure(self.discipline == Discipline::DropTail, || beside_statuses("discipline"))?;
                ensure(self.loss == Phases::default(), || beside_statuses("loss"))?;
            }
            Ok((server, Medium::new(self, overload, seed, name)?))
        };
        build().map_err(|refusal| refusal.at(name))
    }
}

/// The refusal of a setting beside statuses, which define the losses and exclude a queue.
fn beside_statuses(key: &str) -> Refusal {
    let expected =
        "no such setting with statuses: packets above their capacity are lost, and no packet waits";
    Refusal::new(key, "a setting", expected)
}
