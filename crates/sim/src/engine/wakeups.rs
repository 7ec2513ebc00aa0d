//! The queue of wakeups: when each node wants to be woken, and in which order nodes act at one instant.
//!
//! It is a tournament tree over the nodes' times, with one entry per node. Changing one node's time replays one path to
//! the root and stops where the winner stays the same; there are no stale entries to skip, and no search. Only times
//! are compared; the opponents on the winner's path to the root tell whether another node is due at the same time.
//!
//! Nodes that are due at one instant act in rounds. Within a round their order is that of their ranks, a hash of
//! the instant and the node's name. So it is drawn anew at each instant, which prefers no flow, and it depends neither
//! on when the wakeup was set, nor on how often a node was woken in vain, nor on the other nodes.
//! A node that is still due after it has acted acts again in the next round. A node that becomes due at the present
//! instant, by a packet or by the driver, is part of the present round.
//!
//! Ranks are computed only where several nodes are due at one instant: these nodes go into a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::select_unpredictable;
use tidegate_core::{NodeId, Time};

const NODE_BITS: u32 = 20;
const RANK_BITS: u32 = 24;
const ROUND_BITS: u32 = 20;
/// Largest number of a round; later rounds count as this one. The world stops a run long before, as an endless loop.
const LAST_ROUND: u32 = (1 << ROUND_BITS) - 1;

/// A time, and a node that is due then.
type Slot = (Time, u32);

/// The order of the nodes' next wakeups.
#[derive(Debug)]
pub struct WakeupQueue {
    /// A tree in the layout of a heap: slot `i` is the earlier one of the slots `2i` and `2i + 1`. The second half of
    /// the slots are leaves, one a node. Slot 1 is the root, and slot 0 is unused.
    tree: Vec<Slot>,
    /// Number of leaves, and index of the first one.
    leaves: usize,
    /// For each node a hash of its name, and the round of the present instant in which it is due, if it is due.
    nodes: Vec<(u64, u32)>,
    /// The instant at which the last node acted, and the round.
    now: Time,
    round: u32,
    /// An instant at which several nodes are due, and a heap of these nodes in their order. An entry is stale, and is
    /// skipped, if its node is no longer due at that instant and in that round.
    contested: Time,
    due: BinaryHeap<Reverse<u64>>,
}

/// The rank of the node with `salt` among those that are due at `time`: folded multiplication, as in wyhash. The
/// factor depends on the node, too: with one factor for all, two nodes whose packets meet at multiples of a power of
/// two would keep their order over long stretches.
#[inline]
const fn rank(time: Time, salt: u64) -> u64 {
    let product = (time.as_nanos() as u64 ^ salt) as u128 * (salt.rotate_left(32) | 1) as u128;
    ((product >> 64) as u64 ^ product as u64) >> (64 - RANK_BITS)
}

/// FNV-1a, and a finalizer that spreads short names over all bits.
fn salt(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // the finalizer of MurmurHash3
    let hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

impl WakeupQueue {
    /// The most nodes a world may have.
    pub const MAX_NODES: usize = 1 << NODE_BITS;

    /// A queue for nodes of these names, without wakeups.
    ///
    /// # Panics
    /// With more than [`WakeupQueue::MAX_NODES`] nodes.
    #[must_use]
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let nodes: Vec<_> = names.into_iter().map(|name| (salt(name), 0)).collect();
        assert!(nodes.len() <= Self::MAX_NODES, "{} nodes: at most {} fit", nodes.len(), Self::MAX_NODES);
        let leaves = nodes.len().max(2);
        let never = Time::from_nanos(i64::MIN);
        Self {
            tree: (0..2 * leaves).map(|index| (Time::MAX, index.saturating_sub(leaves) as u32)).collect(),
            leaves,
            nodes,
            now: never,
            round: 0,
            contested: never,
            due: BinaryHeap::new(),
        }
    }

    /// The time of the earliest wakeup.
    #[inline]
    #[must_use]
    pub fn earliest(&self) -> Option<Time> {
        Some(self.tree[1].0).filter(|&time| time != Time::MAX)
    }

    /// The earliest wakeup and its node.
    #[inline]
    #[must_use]
    pub fn first(&mut self) -> Option<(Time, NodeId)> {
        let (time, node) = self.tree[1];
        if time == Time::MAX {
            return None;
        }
        if time != self.contested {
            if self.is_alone(time, node) {
                return Some((time, NodeId(node)));
            }
            self.collect_due(time);
        }
        Some((time, self.first_due()))
    }

    /// Whether `node`, the winner, is the only node due at `time`.
    #[inline]
    fn is_alone(&self, time: Time, node: u32) -> bool {
        let mut index = self.leaves + node as usize;
        while index > 1 {
            if self.tree[index ^ 1].0 == time {
                return false;
            }
            index /= 2;
        }
        true
    }

    /// Puts all nodes that are due at `time`, the earliest, into the heap.
    #[cold]
    fn collect_due(&mut self, time: Time) {
        self.contested = time;
        self.due.clear();
        // depth first, past the branches without a due node; on each level at most one slot is postponed
        let (mut postponed, mut count) = ([0; NODE_BITS as usize + 2], 0);
        let mut index = 1;
        loop {
            if index < self.leaves {
                let (earlier, later) = (self.tree[2 * index].0, self.tree[2 * index + 1].0);
                if earlier == time && later == time {
                    postponed[count] = 2 * index + 1;
                    count += 1;
                }
                index = 2 * index + usize::from(earlier != time);
                continue;
            }
            let node = index - self.leaves;
            if time != self.now {
                self.nodes[node].1 = 0;
            }
            self.push_due(time, NodeId(node as u32));
            if count == 0 {
                return;
            }
            count -= 1;
            index = postponed[count];
        }
    }

    /// Adds `node`, which is due at `time`, to the heap.
    fn push_due(&mut self, time: Time, node: NodeId) {
        let (salt, round) = self.nodes[node.0 as usize];
        let order = u64::from(round) << (RANK_BITS + NODE_BITS) | rank(time, salt) << NODE_BITS;
        self.due.push(Reverse(order | u64::from(node.0)));
    }

    fn leaf(&self, NodeId(node): NodeId) -> Time {
        self.tree[self.leaves + node as usize].0
    }

    /// The first node of the heap that is still due; there is always one.
    fn first_due(&mut self) -> NodeId {
        while let Some(&Reverse(entry)) = self.due.peek() {
            let node = entry as u32 & ((1 << NODE_BITS) - 1);
            let round = (entry >> (RANK_BITS + NODE_BITS)) as u32;
            if self.leaf(NodeId(node)) == self.contested && self.nodes[node as usize].1 == round {
                return NodeId(node);
            }
            self.due.pop();
        }
        unreachable!("no node in the heap is due at {}", self.contested)
    }

    /// Makes `time` and the round of `node`, the first one, the present ones: it is about to act.
    #[inline]
    pub fn begin(&mut self, time: Time, node: NodeId) {
        debug_assert_eq!(self.leaf(node), time, "node {} acts when it is not due", node.0);
        let entry = &mut self.nodes[node.0 as usize];
        if time != self.now {
            // rounds are counted anew
            self.now = time;
            entry.1 = 0;
        }
        self.round = entry.1;
    }

    /// Sets when `node` is to be woken; [`Time::MAX`] is never. At the present instant that is in the present round.
    #[inline]
    pub fn set(&mut self, node: NodeId, time: Option<Time>) {
        let time = time.unwrap_or(Time::MAX);
        if time == self.now || time == self.contested {
            self.set_due(node, time, if time == self.now { self.round } else { 0 });
        } else {
            self.replay(node, time);
        }
    }

    /// Sets `node`, which has just acted at `time`, to be woken again at that instant, in the next round.
    pub fn again(&mut self, node: NodeId, time: Time) {
        self.set_due(node, time, (self.round + 1).min(LAST_ROUND));
    }

    fn set_due(&mut self, node: NodeId, time: Time, round: u32) {
        let same_round = std::mem::replace(&mut self.nodes[node.0 as usize].1, round) == round;
        if same_round && self.leaf(node) == time {
            return;
        }
        self.replay(node, time);
        if time == self.contested {
            self.push_due(time, node);
        }
    }

    #[inline]
    fn replay(&mut self, node: NodeId, time: Time) {
        let tree = &mut self.tree[..];
        let mut index = self.leaves + node.0 as usize;
        let mut winner = (time, node.0);
        while tree[index] != winner {
            tree[index] = winner;
            if index == 1 {
                return;
            }
            // the winner is unpredictable for the processor
            let rival = tree[index ^ 1];
            winner = select_unpredictable(rival.0 < winner.0, rival, winner);
            index /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Span, Stream};

    fn queue(nodes: usize) -> WakeupQueue {
        let names: Vec<String> = (0..nodes).map(|node| format!("node {node}")).collect();
        WakeupQueue::new(names.iter().map(String::as_str))
    }

    fn begin(queue: &mut WakeupQueue) {
        let (time, node) = queue.first().unwrap();
        queue.begin(time, node);
    }

    /// The nodes that act at the earliest instant, in order; afterwards none is due.
    fn order(queue: &mut WakeupQueue) -> Vec<u32> {
        let instant = queue.earliest().unwrap();
        let mut order = Vec::new();
        while let Some((_, node)) = queue.first().filter(|&(time, _)| time == instant) {
            queue.begin(instant, node);
            order.push(node.0);
            queue.set(node, None);
        }
        order
    }

    #[test]
    fn the_earliest_comes_first() {
        let mut queue = queue(5);
        assert_eq!(queue.first(), None);
        let millis = Time::from_millis;
        queue.set(NodeId(3), Some(millis(5)));
        queue.set(NodeId(4), Some(millis(7)));
        assert_eq!(queue.first(), Some((millis(5), NodeId(3))));
        queue.set(NodeId(3), Some(millis(8)));
        assert_eq!(queue.first(), Some((millis(7), NodeId(4))));
        queue.set(NodeId(0), Some(Time::from_nanos(-1)));
        assert_eq!(queue.first(), Some((Time::from_nanos(-1), NodeId(0))));
        queue.set(NodeId(0), Some(Time::MAX));
        queue.set(NodeId(4), None);
        queue.set(NodeId(3), Some(Time::MAX));
        assert_eq!(queue.first(), None, "no node is woken at the end of time");
    }

    #[test]
    fn the_order_at_one_instant_does_not_depend_on_when_it_was_set() {
        let instant = Time::from_millis(5);
        let mut forwards = queue(9);
        (0..9).for_each(|node| forwards.set(NodeId(node), Some(instant)));
        let mut backwards = queue(9);
        for node in (0..9).rev() {
            backwards.set(NodeId(node), Some(Time::from_millis(1 + i64::from(node) % 3)));
        }
        for _ in 0..9 {
            let (time, node) = backwards.first().unwrap();
            backwards.begin(time, node);
            backwards.set(node, Some(instant));
        }
        let mut expected: Vec<u32> = (0..9).collect();
        expected.sort_by_key(|node| rank(instant, salt(&format!("node {node}"))));
        assert_eq!(order(&mut forwards), expected);
        assert_eq!(order(&mut backwards), expected);
    }

    #[test]
    fn a_node_still_due_comes_in_the_next_round_and_one_that_becomes_due_in_this_one() {
        let mut queue = queue(3);
        let instant = Time::from_millis(5);
        let mut ranked: Vec<u32> = (0..3).collect();
        ranked.sort_by_key(|node| rank(instant, salt(&format!("node {node}"))));
        let [first, second, third] = [0, 1, 2].map(|index: usize| NodeId(ranked[index]));
        queue.set(first, Some(instant));
        queue.set(third, Some(instant));
        begin(&mut queue);
        queue.again(first, instant);
        assert_eq!(
            queue.first(),
            Some((instant, third)),
            "a node that is due in this round comes before the next round"
        );
        begin(&mut queue);
        queue.set(third, None);
        queue.set(second, Some(instant));
        assert_eq!(queue.first(), Some((instant, second)), "it became due in this round");
        queue.set(first, Some(instant));
        assert_eq!(queue.first(), Some((instant, first)), "and so did the first, which was set anew");
        begin(&mut queue);
        queue.again(first, instant);
        begin(&mut queue);
        queue.again(second, instant);
        begin(&mut queue);
        assert_eq!(queue.first(), Some((instant, first)), "the second round");
    }

    /// Number of `n` instants, `pitch` nanoseconds apart, at which `name` comes before `rival`.
    fn wins(name: &str, rival: &str, pitch: i64, n: i64) -> i64 {
        let (name, rival) = (salt(name), salt(rival));
        let first = |turn: &i64| {
            let time = Time::from_nanos(turn * pitch);
            rank(time, name) < rank(time, rival)
        };
        (0..n).filter(first).count() as i64
    }

    #[test]
    fn no_node_is_preferred_whatever_the_pitch() {
        let names = ["a", "b", "call-1", "call-2", "first", "second", "udp.left", "udp.right", "x", ""];
        let n = 10_000_i64;
        let (mut worst, mut pairs) = (0, 0);
        for (index, name) in names.iter().enumerate() {
            for rival in &names[index + 1..] {
                for pitch in [1, 1000, 1 << 20, 1_000_000, 9_600_000, 20_000_000, 1 << 30, 1_000_000_000] {
                    worst = worst.max((2 * wins(name, rival, pitch, n) - n).abs());
                    pairs += 1;
                }
            }
        }
        // 360 fair coins thrown 10000 times: a lead of 5 standard deviations (100) comes with 2e-4
        assert_eq!(pairs, 360);
        assert!(worst < 500, "a lead of {worst} in {n}");
    }

    /// Compares the queue with a sorted list, with many equal times.
    #[test]
    fn it_agrees_with_a_sorted_list() {
        let mut luck = Stream::new(1, "wakeups", "test");
        let mut queue = queue(37);
        let mut model: Vec<Option<Time>> = vec![None; 37];
        for _ in 0..100_000 {
            let node = luck.below(37) as usize;
            let time = luck.chance(0.9).then(|| Time::from_nanos(luck.below(50) as i64));
            queue.set(NodeId(node as u32), time);
            model[node] = time;
            let due = model.iter().enumerate().filter_map(|(node, time)| time.map(|time| (time, node)));
            let expected = due.min_by_key(|&(time, node)| (time, rank(time, salt(&format!("node {node}")))));
            assert_eq!(queue.first(), expected.map(|(time, node)| (time, NodeId(node as u32))));
        }
    }
    /// Compares the queue with the minimum of (time, round, rank), while nodes act repeatedly at one instant and set
    /// the wakeups of other nodes.
    #[test]
    fn rounds_agree_with_a_sorted_list() {
        const NODES: usize = 21;
        let mut luck = Stream::new(2, "wakeups", "test");
        let mut queue = queue(NODES);
        let mut model: Vec<Option<(Time, u32)>> = vec![None; NODES];
        let (mut now, mut round) = (Time::ZERO, 0);
        let (mut meetings, mut acted) = (0, 0);
        while acted < 100_000 {
            // a few nodes are set, mostly to now or soon
            for _ in 0..1 + luck.below(3) {
                let node = luck.below(NODES as u64) as usize;
                let time = luck.chance(0.95).then(|| now + Span::from_nanos(luck.below(12) as i64));
                queue.set(NodeId(node as u32), time);
                let due = |time| if time == now { (time, round) } else { (time, 0) };
                // setting the same time again changes nothing, unless it is the present one
                let same = model[node].is_some_and(|(previous, _)| Some(previous) == time && previous != now);
                model[node] = if same { model[node] } else { time.map(due) };
            }
            let key = |node: usize, (time, round)| (time, round, rank(time, salt(&format!("node {node}"))));
            let due =
                model.iter().enumerate().filter_map(|(node, due)| due.map(|due| (key(node, due), node)));
            let Some(((time, its_round, _), node)) = due.min() else { continue };
            meetings += model.iter().flatten().filter(|&&(due_time, _)| due_time == time).count().min(2) / 2;
            assert_eq!(queue.first(), Some((time, NodeId(node as u32))));
            if luck.chance(0.5) {
                queue.begin(time, NodeId(node as u32));
                (now, round, acted) = (time, its_round, acted + 1);
                if luck.chance(0.3) {
                    queue.again(NodeId(node as u32), time);
                    model[node] = Some((time, round + 1));
                } else {
                    queue.set(NodeId(node as u32), None);
                    model[node] = None;
                }
            }
        }
        assert!(meetings > 50_000, "only {meetings} meetings");
    }
}
