//! Packets between the transmitter and the far end of a link.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tidegate_core::{Cause, Outbox, Packet, Port, Time};

/// A packet that has been served.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    /// Time at which it arrives at the far end.
    pub(super) arrival: Time,
    /// Cause of its death, if it dies.
    pub(super) fate: Option<Cause>,
    pub(super) packet: Box<Packet>,
}

impl Flying {
    /// Forwards the packet at the far end, or records it as dropped.
    #[inline]
    pub(super) fn land(self, now: Time, out: &mut Outbox) {
        match self.fate {
            None => out.forward(Port::ZERO, self.packet),
            Some(cause) => out.discard(now, &self.packet, cause),
        }
    }
}

/// A packet on a medium that reorders, in order of arrival; the order of service breaks ties.
#[derive(Clone, Debug)]
struct Scattered {
    order: u64,
    flying: Flying,
}

impl Scattered {
    const fn key(&self) -> (Time, u64) {
        (self.flying.arrival, self.order)
    }
}

impl PartialEq for Scattered {
    fn eq(&self, rhs: &Self) -> bool {
        self.key() == rhs.key()
    }
}
impl Eq for Scattered {}
impl PartialOrd for Scattered {
    fn partial_cmp(&self, rhs: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(rhs))
    }
}
impl Ord for Scattered {
    fn cmp(&self, rhs: &Self) -> std::cmp::Ordering {
        self.key().cmp(&rhs.key())
    }
}

/// The packets on a medium that reorders.
#[derive(Clone, Debug, Default)]
pub(super) struct Scatter {
    heap: BinaryHeap<Reverse<Scattered>>,
    order: u64,
}

impl Scatter {
    pub(super) fn push(&mut self, flying: Flying) {
        self.order += 1;
        self.heap.push(Reverse(Scattered { order: self.order, flying }));
    }

    /// Arrival of the first packet.
    pub(super) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(first)| first.flying.arrival)
    }

    /// Takes out the first packet if it has arrived.
    pub(super) fn arrived(&mut self, now: Time) -> Option<Flying> {
        self.next().filter(|&arrival| arrival <= now)?;
        self.heap.pop().map(|Reverse(first)| first.flying)
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&Packet)) {
        self.heap.iter().for_each(|Reverse(scattered)| visit(&scattered.flying.packet));
    }
}

/// All packets on the medium of a link.
#[derive(Clone, Debug)]
pub(super) enum Flight {
    /// In order of arrival.
    Ordered(VecDeque<Flying>),
    Scattered(Scatter),
}

impl Flight {
    pub(super) fn new(reorders: bool) -> Self {
        if reorders { Self::Scattered(Scatter::default()) } else { Self::Ordered(VecDeque::new()) }
    }

    pub(super) fn push(&mut self, flying: Flying) {
        match self {
            Self::Ordered(line) => {
                let last = line.back().map(|last| last.arrival);
                assert!(last <= Some(flying.arrival), "a packet overtakes on a medium that keeps order");
                line.push_back(flying);
            }
            Self::Scattered(scatter) => scatter.push(flying),
        }
    }

    /// Lets packets overtake each other from now on.
    pub(super) fn scatter(&mut self) {
        if let Self::Ordered(line) = self {
            let mut scatter = Scatter::default();
            line.drain(..).for_each(|flying| scatter.push(flying));
            *self = Self::Scattered(scatter);
        }
    }

    pub(super) fn next(&self) -> Option<Time> {
        match self {
            Self::Ordered(line) => line.front().map(|first| first.arrival),
            Self::Scattered(scatter) => scatter.next(),
        }
    }

    pub(super) fn arrived(&mut self, now: Time) -> Option<Flying> {
        match self {
            Self::Ordered(line) => {
                line.front().filter(|first| first.arrival <= now)?;
                line.pop_front()
            }
            Self::Scattered(scatter) => scatter.arrived(now),
        }
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&Packet)) {
        match self {
            Self::Ordered(line) => line.iter().for_each(|flying| visit(&flying.packet)),
            Self::Scattered(scatter) => scatter.for_each(visit),
        }
    }
}
