//! When each node wants to be woken, and who comes first at one instant: one live entry per node.
//!
//! A tournament tree over the nodes' times. Changing one node's time replays one path to the root and
//! stops where the winner stays the same; there are no stale entries to skip and nothing to search. Times alone are
//! compared; whether somebody else is due at the winner's time is asked of those that it has met on its way up.
//!
//! Nodes that are due at one instant act in rounds. Within a round the order is that of their ranks, a hash of
//! the instant and the node's name: drawn anew at each instant, so that no flow is preferred, and the same
//! whenever the wakeup was set, however often a node was woken in vain and whatever other nodes there are.
//! Whoever is still due after it has acted comes again in the next round. Whoever becomes due at the present
//! instant, by a packet or by the driver, is part of the present round.
//!
//! Ranks are worked out where two nodes meet at one instant, and only there: all that are due then go into a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::select_unpredictable;
use tidegate_core::{NodeId, Time};

const NODE_BITS: u32 = 20;
const RANK_BITS: u32 = 24;
const ROUND_BITS: u32 = 20;
/// Rounds after this one count as this one. The world stops a run long before, as an endless loop.
const LAST_ROUND: u32 = (1 << ROUND_BITS) - 1;

/// A time, and a node that is due then.
type Slot = (Time, u32);

/// The order of the nodes' next wakeups.
#[derive(Debug)]
pub struct WakeupQueue {
    /// A heap-shaped tree: place `i` is the smaller one of the places `2i` and `2i + 1`; the second half of the places
    /// are leaves, one a node. Place 1 is the root, and nothing is at place 0.
    tree: Vec<Slot>,
    /// How many leaves there are, and where they begin.
    leaves: usize,
    /// For each node a hash of its name, and the round at the present instant in which it is due, if it is.
    nodes: Vec<(u64, u32)>,
    /// The instant at which a node acted last, and the round.
    now: Time,
    round: u32,
    /// An instant at which several nodes are due, and a heap of these nodes in their order. An entry is out of date,
    /// and passed over, if its node is not due any more at that instant and in that round.
    met: Time,
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

    /// A queue for nodes of these names, none of which wants to be woken.
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
            tree: (0..2 * leaves).map(|place| (Time::MAX, place.saturating_sub(leaves) as u32)).collect(),
            leaves,
            nodes,
            now: never,
            round: 0,
            met: never,
            due: BinaryHeap::new(),
        }
    }

    /// The time of the earliest wakeup.
    #[inline]
    #[must_use]
    pub fn earliest(&self) -> Option<Time> {
        Some(self.tree[1].0).filter(|&time| time != Time::MAX)
    }

    /// The earliest wakeup and whose it is.
    #[inline]
    #[must_use]
    pub fn first(&mut self) -> Option<(Time, NodeId)> {
        let (time, node) = self.tree[1];
        if time == Time::MAX {
            return None;
        }
        if time != self.met {
            if self.is_alone(time, node) {
                return Some((time, NodeId(node)));
            }
            self.meet(time);
        }
        Some((time, self.first_due()))
    }

    /// Whether nobody but `node`, the winner, is due at `time`.
    #[inline]
    fn is_alone(&self, time: Time, node: u32) -> bool {
        let mut place = self.leaves + node as usize;
        while place > 1 {
            if self.tree[place ^ 1].0 == time {
                return false;
            }
            place /= 2;
        }
        true
    }

    /// Finds all that are due at `time`, the earliest.
    #[cold]
    fn meet(&mut self, time: Time) {
        self.met = time;
        self.due.clear();
        // depth first, past the branches where nobody is due; of each level one place at most waits for its turn
        let (mut waiting, mut waits) = ([0; NODE_BITS as usize + 2], 0);
        let mut place = 1;
        loop {
            if place < self.leaves {
                let (left, right) = (self.tree[2 * place].0, self.tree[2 * place + 1].0);
                if left == time && right == time {
                    waiting[waits] = 2 * place + 1;
                    waits += 1;
                }
                place = 2 * place + usize::from(left != time);
                continue;
            }
            let node = place - self.leaves;
            if time != self.now {
                self.nodes[node].1 = 0;
            }
            self.push_due(time, NodeId(node as u32));
            if waits == 0 {
                return;
            }
            waits -= 1;
            place = waiting[waits];
        }
    }

    /// Puts `node`, which is due at `time`, among those that are due then.
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
            if self.leaf(NodeId(node)) == self.met && self.nodes[node as usize].1 == round {
                return NodeId(node);
            }
            self.due.pop();
        }
        unreachable!("whoever is due at {} is in the heap", self.met)
    }

    /// Says that `node`, the first one, acts at `time`: its instant and round are the present ones.
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

    /// Sets when `node` is to be woken; [`Time::MAX`] is never. If that is the present instant it has its place
    /// in the present round.
    #[inline]
    pub fn set(&mut self, node: NodeId, at: Option<Time>) {
        let at = at.unwrap_or(Time::MAX);
        if at == self.now || at == self.met {
            self.set_due(node, at, if at == self.now { self.round } else { 0 });
        } else {
            self.replay(node, at);
        }
    }

    /// Sets `node`, which has just acted at `at`, to be woken again at that instant, in the next round.
    pub fn again(&mut self, node: NodeId, at: Time) {
        self.set_due(node, at, (self.round + 1).min(LAST_ROUND));
    }

    fn set_due(&mut self, node: NodeId, at: Time, round: u32) {
        let known = std::mem::replace(&mut self.nodes[node.0 as usize].1, round) == round;
        if known && self.leaf(node) == at {
            return;
        }
        self.replay(node, at);
        if at == self.met {
            self.push_due(at, node);
        }
    }

    #[inline]
    fn replay(&mut self, node: NodeId, at: Time) {
        let tree = &mut self.tree[..];
        let mut place = self.leaves + node.0 as usize;
        let mut winner = (at, node.0);
        while tree[place] != winner {
            tree[place] = winner;
            if place == 1 {
                return;
            }
            // nobody can foretell who wins
            let other = tree[place ^ 1];
            winner = select_unpredictable(other.0 < winner.0, other, winner);
            place /= 2;
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
        let (at, node) = queue.first().unwrap();
        queue.begin(at, node);
    }

    /// Who acts, one after the other, at the instant of the first; nobody is due afterwards.
    fn order(queue: &mut WakeupQueue) -> Vec<u32> {
        let at = queue.earliest().unwrap();
        let mut order = Vec::new();
        while let Some((_, node)) = queue.first().filter(|&(time, _)| time == at) {
            queue.begin(at, node);
            order.push(node.0);
            queue.set(node, None);
        }
        order
    }

    #[test]
    fn the_earliest_comes_first() {
        let mut queue = queue(5);
        assert_eq!(queue.first(), None);
        let at = Time::from_millis;
        queue.set(NodeId(3), Some(at(5)));
        queue.set(NodeId(4), Some(at(7)));
        assert_eq!(queue.first(), Some((at(5), NodeId(3))));
        queue.set(NodeId(3), Some(at(8)));
        assert_eq!(queue.first(), Some((at(7), NodeId(4))));
        queue.set(NodeId(0), Some(Time::from_nanos(-1)));
        assert_eq!(queue.first(), Some((Time::from_nanos(-1), NodeId(0))));
        queue.set(NodeId(0), Some(Time::MAX));
        queue.set(NodeId(4), None);
        queue.set(NodeId(3), Some(Time::MAX));
        assert_eq!(queue.first(), None, "nobody is woken at the end of time");
    }

    #[test]
    fn the_order_at_one_instant_does_not_depend_on_when_it_was_set() {
        let at = Time::from_millis(5);
        let mut one = queue(9);
        (0..9).for_each(|node| one.set(NodeId(node), Some(at)));
        let mut other = queue(9);
        for node in (0..9).rev() {
            other.set(NodeId(node), Some(Time::from_millis(1 + i64::from(node) % 3)));
        }
        for _ in 0..9 {
            let (time, node) = other.first().unwrap();
            other.begin(time, node);
            other.set(node, Some(at));
        }
        let mut expected: Vec<u32> = (0..9).collect();
        expected.sort_by_key(|node| rank(at, salt(&format!("node {node}"))));
        assert_eq!(order(&mut one), expected);
        assert_eq!(order(&mut other), expected);
    }

    #[test]
    fn who_is_still_due_comes_in_the_next_round_and_who_becomes_due_in_this_one() {
        let mut queue = queue(3);
        let at = Time::from_millis(5);
        let mut ranked: Vec<u32> = (0..3).collect();
        ranked.sort_by_key(|node| rank(at, salt(&format!("node {node}"))));
        let [first, second, third] = [0, 1, 2].map(|place: usize| NodeId(ranked[place]));
        queue.set(first, Some(at));
        queue.set(third, Some(at));
        begin(&mut queue);
        queue.again(first, at);
        assert_eq!(queue.first(), Some((at, third)), "whoever is due in this round comes before the next");
        begin(&mut queue);
        queue.set(third, None);
        queue.set(second, Some(at));
        assert_eq!(queue.first(), Some((at, second)), "it became due in this round");
        queue.set(first, Some(at));
        assert_eq!(queue.first(), Some((at, first)), "and so did the first by what it was given");
        begin(&mut queue);
        queue.again(first, at);
        begin(&mut queue);
        queue.again(second, at);
        begin(&mut queue);
        assert_eq!(queue.first(), Some((at, first)), "the second round");
    }

    /// In how many of `n` meetings `pitch` nanoseconds apart the first of two names comes first.
    fn wins(one: &str, other: &str, pitch: i64, n: i64) -> i64 {
        let (one, other) = (salt(one), salt(other));
        let first = |turn: &i64| {
            let at = Time::from_nanos(turn * pitch);
            rank(at, one) < rank(at, other)
        };
        (0..n).filter(first).count() as i64
    }

    #[test]
    fn nobody_is_preferred_whatever_the_pitch() {
        let names = ["a", "b", "call-1", "call-2", "first", "second", "udp.left", "udp.right", "x", ""];
        let n = 10_000_i64;
        let (mut worst, mut pairs) = (0, 0);
        for (place, one) in names.iter().enumerate() {
            for other in &names[place + 1..] {
                for pitch in [1, 1000, 1 << 20, 1_000_000, 9_600_000, 20_000_000, 1 << 30, 1_000_000_000] {
                    worst = worst.max((2 * wins(one, other, pitch, n) - n).abs());
                    pairs += 1;
                }
            }
        }
        // 360 fair coins thrown 10000 times: a lead of 5 standard deviations (100) comes with 2e-4
        assert_eq!(pairs, 360);
        assert!(worst < 500, "a lead of {worst} in {n}");
    }

    /// Against a plain sorted list, with many equal times.
    #[test]
    fn it_agrees_with_a_sorted_list() {
        let mut luck = Stream::new(1, "wakeups", "test");
        let mut queue = queue(37);
        let mut model: Vec<Option<Time>> = vec![None; 37];
        for _ in 0..100_000 {
            let node = luck.below(37) as usize;
            let at = luck.chance(0.9).then(|| Time::from_nanos(luck.below(50) as i64));
            queue.set(NodeId(node as u32), at);
            model[node] = at;
            let due = model.iter().enumerate().filter_map(|(node, at)| at.map(|at| (at, node)));
            let expected = due.min_by_key(|&(at, node)| (at, rank(at, salt(&format!("node {node}")))));
            assert_eq!(queue.first(), expected.map(|(at, node)| (at, NodeId(node as u32))));
        }
    }
    /// Against the least of (time, round, rank), while nodes act, at one instant again and again, and set one another.
    #[test]
    fn rounds_agree_with_a_sorted_list() {
        const NODES: usize = 21;
        let mut luck = Stream::new(2, "wakeups", "test");
        let mut queue = queue(NODES);
        let mut model: Vec<Option<(Time, u32)>> = vec![None; NODES];
        let (mut now, mut round) = (Time::ZERO, 0);
        let (mut met, mut acted) = (0, 0);
        while acted < 100_000 {
            // somebody is set, mostly to now or soon
            for _ in 0..1 + luck.below(3) {
                let node = luck.below(NODES as u64) as usize;
                let at = luck.chance(0.95).then(|| now + Span::from_nanos(luck.below(12) as i64));
                queue.set(NodeId(node as u32), at);
                let due = |at| if at == now { (at, round) } else { (at, 0) };
                // a time that it has already changes nothing, unless it is the present one
                let same = model[node].is_some_and(|(known, _)| Some(known) == at && known != now);
                model[node] = if same { model[node] } else { at.map(due) };
            }
            let place = |node: usize, (at, round)| (at, round, rank(at, salt(&format!("node {node}"))));
            let due =
                model.iter().enumerate().filter_map(|(node, due)| due.map(|due| (place(node, due), node)));
            let Some(((at, its_round, _), node)) = due.min() else { continue };
            met += model.iter().flatten().filter(|&&(other, _)| other == at).count().min(2) / 2;
            assert_eq!(queue.first(), Some((at, NodeId(node as u32))));
            if luck.chance(0.5) {
                queue.begin(at, NodeId(node as u32));
                (now, round, acted) = (at, its_round, acted + 1);
                if luck.chance(0.3) {
                    queue.again(NodeId(node as u32), at);
                    model[node] = Some((at, round + 1));
                } else {
                    queue.set(NodeId(node as u32), None);
                    model[node] = None;
                }
            }
        }
        assert!(met > 50_000, "only {met} meetings");
    }
}
