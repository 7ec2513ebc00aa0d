//! When each node wants to be woken, and who comes first at one instant: one live entry per node.
//!
//! A tournament tree over the nodes' keys. Changing one node's time replays one path to the root and
//! stops where the winner stays the same; there are no stale entries to skip and nothing to search.
//! A key packs (time, round, rank, node) into 128 bits, so that one comparison decides.
//!
//! Nodes that are due at one instant act in rounds. Within a round the order is that of their ranks, a hash of
//! the instant and the node's name: drawn anew at each instant, so that no flow is preferred, and the same
//! whenever the wakeup was set, however often a node was woken in vain and whatever other nodes there are.
//! Whoever is still due after it has acted comes again in the next round. Whoever becomes due at the present
//! instant, by a packet or by the driver, is part of the present round.

use tidegate_core::{NodeId, Time};

const NODE_BITS: u32 = 20;
const RANK_BITS: u32 = 24;
const ROUND_BITS: u32 = 20;
/// Later rounds of one instant are one: so many events at one instant the world takes for an endless loop.
const LAST_ROUND: u32 = (1 << ROUND_BITS) - 1;
const NEVER: u128 = u128::MAX;

/// The order of the nodes' next wakeups.
#[derive(Debug)]
pub struct WakeupQueue {
    /// A heap-shaped tree: node `i` is the smaller one of `2i` and `2i + 1`; leaves fill the second half.
    tree: Vec<u128>,
    leaves: usize,
    /// For each node a hash of its name.
    salts: Vec<u64>,
    /// The instant at which a node acted last, and the round.
    now: Time,
    round: u32,
}

/// The place of whoever has `salt` among those that are due at `time`: folded multiplication, as in wyhash. The
/// factor depends on the node, too: with one factor for all, two nodes whose packets meet at multiples of a
/// power of two would keep their order over long stretches.
#[inline]
const fn rank(time: Time, salt: u64) -> u64 {
    let product = (time.as_nanos() as u64 ^ salt) as u128 * (salt.rotate_left(32) | 1) as u128;
    ((product >> 64) as u64 ^ product as u64) >> (64 - RANK_BITS)
}

#[inline]
const fn key(time: Time, round: u32, salt: u64, node: NodeId) -> u128 {
    // the sign bit is flipped so that negative times sort before positive ones
    let instant = (time.as_nanos() as u64) ^ (1 << 63);
    let place = (round as u64) << (RANK_BITS + NODE_BITS) | rank(time, salt) << NODE_BITS | node.0 as u64;
    (instant as u128) << 64 | place as u128
}

const fn time_of(key: u128) -> Time {
    Time::from_nanos((((key >> 64) as u64) ^ (1 << 63)) as i64)
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
        let salts: Vec<u64> = names.into_iter().map(salt).collect();
        let nodes = salts.len();
        assert!(nodes <= Self::MAX_NODES, "{nodes} nodes: at most {} fit", Self::MAX_NODES);
        let leaves = nodes.next_power_of_two().max(2);
        Self { tree: vec![NEVER; 2 * leaves], leaves, salts, now: Time::from_nanos(i64::MIN), round: 0 }
    }

    /// The earliest wakeup and whose it is.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Time, NodeId)> {
        let key = self.tree[1];
        (key != NEVER).then(|| (time_of(key), NodeId((key as u32) & ((1 << NODE_BITS) - 1))))
    }

    /// Says that the first one acts: its instant and round are the present ones.
    #[inline]
    pub fn begin(&mut self) {
        let key = self.tree[1];
        self.now = time_of(key);
        self.round = (key as u64 >> (RANK_BITS + NODE_BITS)) as u32;
    }

    /// Sets when `node` is to be woken; [`Time::MAX`] is never. If that is the present instant it has its place
    /// in the present round.
    #[inline]
    pub fn set(&mut self, node: NodeId, at: Option<Time>) {
        let leaf = self.leaves + node.0 as usize;
        let old = self.tree[leaf];
        let new = match at {
            None | Some(Time::MAX) if old == NEVER => return,
            None | Some(Time::MAX) => NEVER,
            Some(at) if at == self.now => key(at, self.round, self.salts[node.0 as usize], node),
            Some(at) if old != NEVER && time_of(old) == at => return,
            Some(at) => key(at, 0, self.salts[node.0 as usize], node),
        };
        self.replay(leaf, new);
    }

    /// Sets that `node`, which has just acted at `at`, is to be woken again at that instant, in the next round.
    pub fn again(&mut self, node: NodeId, at: Time) {
        let round = (self.round + 1).min(LAST_ROUND);
        self.replay(self.leaves + node.0 as usize, key(at, round, self.salts[node.0 as usize], node));
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

    fn queue(nodes: usize) -> WakeupQueue {
        let names: Vec<String> = (0..nodes).map(|node| format!("node {node}")).collect();
        WakeupQueue::new(names.iter().map(String::as_str))
    }

    /// Who acts, one after the other, at the instant of the first; nobody is due afterwards.
    fn order(queue: &mut WakeupQueue) -> Vec<u32> {
        let at = queue.first().unwrap().0;
        let mut order = Vec::new();
        while let Some((_, node)) = queue.first().filter(|&(time, _)| time == at) {
            queue.begin();
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
            let (_, node) = other.first().unwrap();
            other.begin();
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
        queue.begin();
        queue.again(first, at);
        assert_eq!(queue.first(), Some((at, third)), "whoever is due in this round comes before the next");
        queue.begin();
        queue.set(third, None);
        queue.set(second, Some(at));
        assert_eq!(queue.first(), Some((at, second)), "it became due in this round");
        queue.set(first, Some(at));
        assert_eq!(queue.first(), Some((at, first)), "and so did the first by what it was given");
        queue.begin();
        queue.again(first, at);
        queue.begin();
        queue.again(second, at);
        queue.begin();
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
}
