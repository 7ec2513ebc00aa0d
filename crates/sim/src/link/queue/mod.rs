//! What waits in a link, and who goes next or is dropped.

mod discipline;
mod drop_tail;

pub use discipline::{Moment, QueueDiscipline, Waiting};
pub use drop_tail::DropTail;
pub(crate) use drop_tail::{Room, Tail};
