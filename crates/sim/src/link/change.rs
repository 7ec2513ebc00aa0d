//! Changes of a link while a run goes on.

use super::jitter::Jitter;
use super::loss::Loss;
use super::medium::EcnPath;
use super::mtu::MtuSettings;
use super::netem::NetemSettings;
use super::phases::Phases;
use super::queue::{Discipline, DropTail};
use serde::Deserialize;
use tidegate_core::{Rate, Span};

/// A change of a link; `None` leaves a property as it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkChange {
    /// Its capacity, also where it followed a schedule, a trace or a random process until then. The remaining bits of a
    /// packet in service go at the new rate.
    pub capacity: Option<Rate>,
    /// Propagation delay of packets served from now on.
    pub delay: Option<Span>,
    /// Loss of packets served from now on; the times of several kinds count from the beginning of the run.
    pub loss: Option<Phases<Loss>>,
    /// Jitter of packets served from now on. They do not overtake earlier ones, unless it lets them.
    pub jitter: Option<Jitter>,
    /// Probability of an error in each byte of packets served from now on.
    pub byte_error: Option<f64>,
    /// Treatment of ECN-capable packets served from now on.
    pub ecn: Option<EcnPath>,
    /// The emulator for packets that come from now on; those in it keep their times.
    pub netem: Option<NetemSettings>,
    /// Limits of the queue, those in time at the capacity that was set last. Waiting packets that do not fit are dropped.
    pub queue: Option<DropTail>,
    /// The largest IP packet, for packets that come from now on.
    pub mtu: Option<MtuSettings>,
    /// Queue discipline, which begins anew. Waiting packets come into it in the order in which they came to the link.
    pub discipline: Option<Discipline>,
}

impl LinkChange {
    /// Whether it changes no property.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
