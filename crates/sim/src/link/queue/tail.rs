//! Drop-tail as a queue discipline.

use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::Room;
use crate::counts::take_away;
use std::collections::VecDeque;
use tidegate_core::record::Backlog;
use tidegate_core::{Packet, Size};

/// First in, first out, and what does not fit is dropped: a [`super::DropTail`] at work.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    room: Room,
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Tail {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Whether `size` more bytes are taken in.
    fn admits(&self, moment: &Moment<'_>, size: u32) -> bool {
        let (mut packets, mut bytes) = (self.waiting.len() as u64, self.bytes);
        if self.room.counts_in_service {
            packets += u64::from(moment.in_service.is_some());
            bytes += moment.in_service.map_or(0, u64::from);
        } else if packets == 0 && moment.is_free {
            return true;
        }
        self.room.fits(packets, bytes, size)
    }
}

impl QueueDiscipline for Tail {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        if self.admits(moment, waiting.packet.size) {
            self.bytes += u64::from(waiting.packet.size);
            self.waiting.push_back(waiting);
        } else {
            moment.drop(waiting.packet);
        }
    }

    fn dequeue(&mut self, _moment: &mut Moment<'_>) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        take_away(&mut self.bytes, u64::from(first.packet.size), "bytes of a queue");
        debug_assert!(!self.waiting.is_empty() || self.bytes == 0, "{} bytes of nothing", self.bytes);
        Some(first)
    }

    fn backlog(&self) -> Backlog {
        let packets = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        Backlog { packets, bytes: Size::from_bytes(self.bytes) }
    }

    fn each(&self, visit: &mut dyn FnMut(&Packet)) {
        self.waiting.iter().for_each(|waiting| visit(&waiting.packet));
    }
}
