//! Which packets a link takes in.

mod drop_tail;

pub use drop_tail::DropTail;
pub(crate) use drop_tail::Room;
