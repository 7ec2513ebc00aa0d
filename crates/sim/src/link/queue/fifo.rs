//! A first-in, first-out queue that counts its bytes.

use super::discipline::Waiting;
use crate::counts::take_away;
use std::collections::VecDeque;
use tidegate_core::Size;
use tidegate_core::record::Backlog;

/// A queue without limits, the building block of disciplines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    /// Adds a packet at the tail.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.packet.size);
        self.waiting.push_back(waiting);
    }

    /// Takes the packet that has waited longest.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        take_away(&mut self.bytes, u64::from(first.packet.size), "bytes of a queue");
        debug_assert!(
            !self.waiting.is_empty() || self.bytes == 0,
            "{} bytes counted in an empty queue",
            self.bytes
        );
        Some(first)
    }

    /// Takes the packet that came last.
    pub(crate) fn pop_last(&mut self) -> Option<Waiting> {
        let last = self.waiting.pop_back()?;
        take_away(&mut self.bytes, u64::from(last.packet.size), "bytes of a queue");
        Some(last)
    }

    /// All packets, the oldest first.
    pub(crate) fn into_waiting(self) -> Vec<Waiting> {
        self.waiting.into()
    }

    /// The packet that has waited longest.
    pub(crate) fn head(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// Number of waiting packets.
    pub(crate) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Number of waiting bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Waiting packets and bytes, for the record.
    pub(crate) fn backlog(&self) -> Backlog {
        let packets = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        Backlog { packets, bytes: Size::from_bytes(self.bytes) }
    }

    /// Visits each packet, the oldest first.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.waiting.iter().for_each(visit);
    }
}
