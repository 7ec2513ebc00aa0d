//! When each node wants to be woken: one live entry per node.
//!
//! A tournament tree over the nodes' keys. Changing one node's time replays one path to the root and
//! stops where the winner stays the same; there are no stale entries to skip and nothing to search.
//! A key packs (time, order of insertion, node) into 128 bits, so that one comparison decides and ties
//! break by insertion.
//!
//! A node may wait for a time that only the driver can tell: its entry stands at [`Time::MAX`], is never the
//! first, and keeps its place among equals when the time is told ([`Agenda::hasten`]).

use tidegate_core::{NodeId, Time};

const NODE_BITS: u32 = 20;
const ORDER_BITS: u32 = 44;
const NEVER: u128 = u128::MAX;
/// The upper half of keys of a time that is not known yet, and of none: one word decides.
const UNKNOWN: u64 = (key(Time::MAX, 0, 0) >> 64) as u64;

/// The order of the nodes' next wakeups.
#[derive(Debug)]
pub struct Agenda {
    /// A heap-shaped tree: node `i` is the smaller one of `2i` and `2i + 1`; leaves fill the second half.
    tree: Vec<u128>,
    leaves: usize,
    order: u64,
}

const fn key(time: Time, order: u64, node: u32) -> u128 {
    // the sign bit is flipped so that negative times sort before positive ones
    let time = (time.as_nanos() as u64) ^ (1 << 63);
    ((time as u128) << 64) | ((order as u128) << NODE_BITS) | node as u128
}

const fn time_of(key: u128) -> Time {
    Time::from_nanos((((key >> 64) as u64) ^ (1 << 63)) as i64)
}

impl Agenda {
    /// The most nodes a world may have.
    pub const MAX_NODES: usize = 1 << NODE_BITS;

    /// An agenda for `nodes` nodes, none of which wants to be woken.
    ///
    /// # Panics
    /// With more than [`Agenda::MAX_NODES`] nodes.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        assert!(nodes <= Self::MAX_NODES, "{nodes} nodes: at most {} fit", Self::MAX_NODES);
        let leaves = nodes.next_power_of_two().max(2);
        Self { tree: vec![NEVER; 2 * leaves], leaves, order: 0 }
    }

    /// The earliest wakeup and whose it is.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Time, NodeId)> {
        let key = self.tree[1];
        ((key >> 64) as u64 != UNKNOWN).then(|| (time_of(key), NodeId((key as u32) & ((1 << NODE_BITS) - 1))))
    }

    /// Sets when `node` is to be woken. Setting the same time again keeps its place among equals.
    #[inline]
    pub fn set(&mut self, node: NodeId, at: Option<Time>) {
        let leaf = self.leaves + node.0 as usize;
        let old = self.tree[leaf];
        let new = match at {
            None if old == NEVER => return,
            None => NEVER,
            Some(at) if old != NEVER && time_of(old) == at => return,
            Some(at) => {
                self.order += 1;
                debug_assert!(self.order < 1 << ORDER_BITS, "more insertions than a key can count");
                key(at, self.order, node.0)
            }
        };
        self.replay(leaf, new);
    }

    /// Sets when `node` is to be woken, and leaves its place among equals as it is: it has wanted to be woken
    /// all the time, and now it is known when.
    pub fn hasten(&mut self, node: NodeId, at: Time) {
        let leaf = self.leaves + node.0 as usize;
        match self.tree[leaf] {
            NEVER => self.set(node, Some(at)),
            old => self.replay(leaf, key(at, (old as u64) >> NODE_BITS, node.0)),
        }
    }

    /// Moves `node` behind all others that are to be woken at the same time.
    pub fn requeue(&mut self, node: NodeId, at: Time) {
        self.order += 1;
        self.replay(self.leaves + node.0 as usize, key(at, self.order, node.0));
    }

    #[inline]
    fn replay(&mut self, leaf: usize, new: u128) {
        self.tree[leaf] = new;
        let mut place = leaf;
        let mut winner = new;
        while place > 1 {
            winner = winner.min(self.tree[place ^ 1]);
            place >>= 1;
            if self.tree[place] == winner {
                return;
            }
            self.tree[place] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Stream;

    #[test]
    fn the_earliest_comes_first_and_ties_break_by_insertion() {
        let mut agenda = Agenda::new(5);
        assert_eq!(agenda.first(), None);
        let at = Time::from_millis;
        agenda.set(NodeId(3), Some(at(5)));
        agenda.set(NodeId(1), Some(at(5)));
        agenda.set(NodeId(4), Some(at(7)));
        assert_eq!(agenda.first(), Some((at(5), NodeId(3))));
        agenda.set(NodeId(3), Some(at(5)));
        assert_eq!(agenda.first(), Some((at(5), NodeId(3))), "setting the same time keeps the place");
        agenda.requeue(NodeId(3), at(5));
        assert_eq!(agenda.first(), Some((at(5), NodeId(1))));
        agenda.set(NodeId(1), None);
        agenda.set(NodeId(3), Some(at(8)));
        assert_eq!(agenda.first(), Some((at(7), NodeId(4))));
        agenda.set(NodeId(0), Some(Time::from_nanos(-1)));
        assert_eq!(agenda.first(), Some((Time::from_nanos(-1), NodeId(0))));
    }

    #[test]
    fn a_time_that_is_told_late_keeps_the_place() {
        let mut agenda = Agenda::new(3);
        let at = Time::from_millis;
        agenda.set(NodeId(2), Some(Time::MAX));
        assert_eq!(agenda.first(), None, "nobody is woken at a time that is not known");
        agenda.set(NodeId(0), Some(at(5)));
        agenda.hasten(NodeId(2), at(5));
        assert_eq!(agenda.first(), Some((at(5), NodeId(2))), "it was there before");
        agenda.set(NodeId(2), Some(Time::MAX));
        agenda.hasten(NodeId(2), at(5));
        assert_eq!(agenda.first(), Some((at(5), NodeId(0))), "it wanted it anew, after the other");
        agenda.set(NodeId(2), None);
        agenda.hasten(NodeId(2), at(4));
        assert_eq!(agenda.first(), Some((at(4), NodeId(2))));
    }

    /// Against a plain sorted list, with many equal times.
    #[test]
    fn it_agrees_with_a_sorted_list() {
        let mut luck = Stream::new(1, "agenda", "test");
        let mut agenda = Agenda::new(37);
        let mut model: Vec<Option<(Time, u64)>> = vec![None; 37];
        for order in 0..100_000 {
            let node = luck.below(37) as usize;
            let at = luck.chance(0.9).then(|| Time::from_nanos(luck.below(50) as i64));
            agenda.set(NodeId(node as u32), at);
            match at {
                Some(at) if model[node].is_none_or(|(time, _)| time != at) => model[node] = Some((at, order)),
                Some(_) => {}
                None => model[node] = None,
            }
            let expected = model
                .iter()
                .enumerate()
                .filter_map(|(node, entry)| entry.map(|(at, order)| (at, order, node)))
                .min()
                .map(|(at, _, node)| (at, NodeId(node as u32)));
            assert_eq!(agenda.first(), expected);
        }
    }
}
