//! What waits in a link, and who goes next or is dropped.

mod codel;
#[cfg(test)]
mod desk;
mod discipline;
mod drop_tail;
mod fifo;

pub use codel::CodelSettings;
pub use discipline::{Moment, QueueDiscipline, Waiting};
pub use drop_tail::DropTail;
pub(crate) use drop_tail::Room;

use crate::refusal::Refusal;
use codel::Codel;
use drop_tail::Tail;
use serde::Deserialize;

/// The queue disciplines that there are, with their parameters.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    Codel(CodelSettings),
}

impl Discipline {
    /// What people call it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Codel(_) => "codel",
        }
    }

    /// An empty queue with `room` for the link called `name` in the run with `seed`.
    pub(crate) fn start(
        self,
        room: Room,
        seed: u64,
        name: &str,
    ) -> Result<Box<dyn QueueDiscipline>, Refusal> {
        let _ = (seed, name);
        Ok(match self {
            Self::DropTail => Box::new(Tail::new(room)),
            Self::Codel(settings) => Box::new(Codel::new(settings, room)?),
        })
    }
}
