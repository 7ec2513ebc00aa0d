//! Queues of links and their disciplines.

mod bucket;
mod codel;
#[cfg(test)]
mod desk;
mod discipline;
mod drop_tail;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod policer;
mod shaper;
mod ticks;

pub use bucket::BucketSettings;
pub use codel::CodelSettings;
pub use discipline::{Moment, QueueDiscipline, Waiting};
pub use drop_tail::DropTail;
pub(crate) use drop_tail::Room;
pub use dualpi2::DualPi2Settings;
pub use fq_codel::FqCodelSettings;
pub use pie::PieSettings;

use crate::refusal::Refusal;
use bucket::Tokens;
use codel::Codel;
use drop_tail::Tail;
use dualpi2::DualPi2;
use fq_codel::FqCodel;
use pie::Pie;
use policer::Policer;
use serde::Deserialize;
use shaper::Shaper;
use tidegate_core::Rate;

/// A queue discipline, with its parameters.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; packets that do not fit are dropped.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    Codel(CodelSettings),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelSettings),
    /// PIE (RFC 8033).
    Pie(PieSettings),
    /// DualPI2 (RFC 9332).
    Dualpi2(DualPi2Settings),
    /// A token bucket that drops packets without tokens.
    Policer(BucketSettings),
    /// A token bucket that delays packets without tokens.
    Shaper(BucketSettings),
}

impl Discipline {
    /// Its name for people.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq-codel",
            Self::Pie(_) => "pie",
            Self::Dualpi2(_) => "dualpi2",
            Self::Policer(_) => "policer",
            Self::Shaper(_) => "shaper",
        }
    }

    /// Largest rate that it lets pass in the long run.
    pub(crate) const fn max_rate(&self) -> Rate {
        match self {
            Self::Policer(bucket) | Self::Shaper(bucket) => bucket.rate,
            _ => Rate::MAX,
        }
    }

    /// The rate at which a queue on a link of `nominal` rate is emptied, from which limits in time are computed.
    pub(crate) fn drain_rate(&self, nominal: Rate) -> Rate {
        match self {
            Self::Shaper(bucket) => nominal.min(bucket.rate),
            _ => nominal,
        }
    }

    /// An empty queue with `room` for the link called `name` in the run with `seed`.
    pub(crate) fn start(
        self,
        room: Room,
        seed: u64,
        name: &str,
    ) -> Result<Box<dyn QueueDiscipline>, Refusal> {
        Ok(match self {
            Self::DropTail => Box::new(Tail::new(room)),
            Self::Codel(settings) => Box::new(Codel::new(settings, room)?),
            Self::FqCodel(settings) => Box::new(FqCodel::new(settings, room, seed, name)?),
            Self::Pie(settings) => Box::new(Pie::new(settings, room, seed, name)?),
            Self::Dualpi2(settings) => Box::new(DualPi2::new(settings, room)?),
            Self::Policer(settings) => {
                let tokens = Tokens::new(&settings)?;
                Box::new(Policer::new(tokens, settings.queue(room, seed, name)?))
            }
            Self::Shaper(settings) => {
                let tokens = Tokens::new(&settings)?;
                Box::new(Shaper::new(tokens, settings.queue(room, seed, name)?))
            }
        })
    }
}
