//! FQ-CoDel (RFC 8290): a queue for each flow, served in turns by bytes, with CoDel in each; flows that build no queue
//! go first.

use super::codel::{CodelSettings, Control};
use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::{DropTail, Room};
use super::fifo::Fifo;
use crate::counts::take_away;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use std::collections::VecDeque;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Datagram, Size, Span, Stream};

/// The parameters of FQ-CoDel, by the names of RFC 8290 section 5.2; its limit is the room of the link's queue.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqCodelSettings {
    /// CoDel's target in each queue (section 5.2.2).
    pub target: Span,
    /// CoDel's interval (section 5.2.1).
    pub interval: Span,
    /// CoDel drops no packet if at most this many bytes remain in the queue (RFC 8289 section 5.3).
    pub maxpacket: Size,
    /// Whether packets of ECN-capable transports are marked instead of dropped (section 5.2.6).
    pub ecn: bool,
    /// Wait beyond which a packet of an ECN-capable transport is marked in any case (section 5.2.7).
    #[serde(default)]
    pub ce_threshold: Option<Span>,
    /// Bytes that a queue sends in a turn (section 5.2.4).
    pub quantum: Size,
    /// Number of queues (section 5.2.5).
    pub flows: u32,
}

impl FqCodelSettings {
    /// The defaults of RFC 8290 section 5.2.
    pub const RFC_8290: Self = Self {
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        maxpacket: Size::from_bytes(1500),
        ecn: true,
        ce_threshold: None,
        quantum: Size::from_bytes(1514),
        flows: 1024,
    };

    const fn codel(&self) -> CodelSettings {
        let Self { target, interval, maxpacket, ecn, ce_threshold, .. } = *self;
        CodelSettings { target, interval, maxpacket, ecn, ce_threshold }
    }

    fn check(&self) -> Result<(), Refusal> {
        self.codel().check()?;
        let quantum = self.quantum.as_bytes();
        ensure((1..=1 << 30).contains(&quantum), || {
            Refusal::new("quantum", quantum, "from 1 to 2^30 bytes")
        })?;
        ensure((1..=1 << 16).contains(&self.flows), || Refusal::new("flows", self.flows, "from 1 to 65536"))
    }
}

/// The list that a queue is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ListPlace {
    /// In neither list.
    #[default]
    Empty,
    /// In the list of new queues, which is served first.
    New,
    /// In the list of old queues.
    Old,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    packets: Fifo,
    control: Control,
    /// Bytes that it may send in this turn; may fall below zero by less than a packet.
    credits: i64,
    list: ListPlace,
}

/// The queues of FQ-CoDel and their scheduler.
#[derive(Clone, Debug)]
pub(crate) struct FqCodel {
    codel: CodelSettings,
    quantum: i64,
    room: Room,
    queues: Vec<Queue>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
    salt: u64,
    luck: Stream,
}

/// Largest number of packets that are dropped at once (section 4.1).
const BATCH: u64 = 64;

impl FqCodel {
    /// Draws its salt from the substream of `name` for "hash".
    pub(crate) fn new(settings: FqCodelSettings, room: Room, seed: u64, name: &str) -> Result<Self, Refusal> {
        settings.check()?;
        let mut luck = Stream::new(seed, name, "hash");
        Ok(Self {
            codel: settings.codel(),
            quantum: settings.quantum.as_bytes() as i64,
            room,
            queues: vec![Queue::default(); settings.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            salt: luck.next_u64(),
            luck,
        })
    }

    /// Takes all queues out of both lists, as calls of the transmitter to empty queues would do.
    fn rest(&mut self) {
        for index in self.new.drain(..).chain(self.old.drain(..)) {
            self.queues[index as usize].list = ListPlace::Empty;
        }
    }

    /// Whether the waiting packets exceed the limits.
    fn is_over(&self, moment: &Moment<'_>) -> bool {
        !self.room.holds(moment, u64::from(self.packets), self.bytes)
    }

    /// Drops half of the packets of the longest queue from its head, and at most a batch (section 4.1).
    fn shed(&mut self, moment: &mut Moment<'_>) {
        let longest = self.queues.iter_mut().max_by_key(|queue| queue.packets.bytes());
        let Some(longest) = longest else { return };
        for _ in 0..(longest.packets.packets() / 2).clamp(1, BATCH) {
            let Some(Waiting { packet, .. }) = longest.packets.pop() else { return };
            self.packets -= 1;
            take_away(&mut self.bytes, u64::from(packet.size), "bytes of all queues");
            moment.drop(packet);
        }
    }
}

/// A hash of the five-tuple (addresses, ports and protocol), with a salt.
fn hash(datagram: &Datagram, salt: u64) -> u64 {
    let (from, to) = datagram.hosts.addresses();
    let hosts = u64::from(u32::from_be_bytes(from)) << 32 | u64::from(u32::from_be_bytes(to));
    let (from, to) = datagram.ports;
    let rest = u64::from(from) << 32 | u64::from(to) << 16 | datagram.protocol() as u64;
    mix_bits(mix_bits(hosts.wrapping_add(salt)) ^ rest)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), in place of Jenkins' hash of section 4.1.
const fn mix_bits(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl QueueDiscipline for FqCodel {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        if self.packets == 0 && moment.in_service.is_none() {
            self.rest();
            self.room.takes_one(waiting.packet.size);
        }
        let index = (hash(&waiting.packet, self.salt) % self.queues.len() as u64) as u32;
        let queue = &mut self.queues[index as usize];
        self.packets += 1;
        self.bytes += u64::from(waiting.packet.size);
        queue.packets.push(waiting);
        if queue.list == ListPlace::Empty {
            queue.list = ListPlace::New;
            queue.credits = self.quantum;
            self.new.push_back(index);
        }
        while self.is_over(moment) {
            self.shed(moment);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let &index = list.front()?;
            let queue = &mut self.queues[index as usize];
            // "has already dequeued at least a quantum of bytes": this includes zero credits, as in Linux
            if queue.credits <= 0 {
                queue.credits += self.quantum;
                queue.list = ListPlace::Old;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (queue.packets.packets(), queue.packets.bytes());
            let going = queue.control.dequeue(&self.codel, &mut queue.packets, moment);
            self.packets -= (packets - queue.packets.packets()) as u32;
            take_away(&mut self.bytes, bytes - queue.packets.bytes(), "bytes of all queues");
            if let Some(going) = going {
                queue.credits -= i64::from(going.packet.size);
                return Some(going);
            }
            list.pop_front();
            if is_new {
                // at the tail of the old ones; otherwise a queue that fills again at once would be served before them
                // for ever
                queue.list = ListPlace::Old;
                self.old.push_back(index);
            } else {
                queue.list = ListPlace::Empty;
            }
        }
    }

    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
        self.room = self.room.with(limits.resolve(moment.nominal));
        while self.is_over(moment) {
            self.shed(moment);
        }
    }

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.queues.into_iter().flat_map(|queue| queue.packets.into_waiting()).collect()
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets, bytes: Size::from_bytes(self.bytes) }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.queues.iter().for_each(|queue| queue.packets.for_each(visit));
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.luck.draws());
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.room.warnings(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::super::desk::Desk;
    use super::*;
    use std::collections::BTreeMap;
    use tidegate_core::address::{Direction, Service};
    use tidegate_core::{Ecn, FlowId, Rate, Time, math};

    const NOW: Time = Time::from_millis(1000);

    fn desk(seed: u64, queue: DropTail) -> Desk<FqCodel> {
        let room = queue.resolve(Rate::from_mbps(10));
        Desk::new(FqCodel::new(FqCodelSettings::RFC_8290, room, seed, "link").unwrap())
    }

    #[test]
    fn flows_that_wait_share_by_bytes_within_a_quantum_and_a_packet() {
        let mut desk = desk(1, DropTail::UNLIMITED);
        let sizes: [u32; 4] = [1500, 1000, 300, 64];
        for (flow, &size) in (0..).zip(&sizes) {
            (0..3_000_000 / size).for_each(|_| desk.put(NOW, Span::ZERO, flow, size, Ecn::NotEct));
        }
        let mut sent = [0_i64; 4];
        let quantum = desk.queue.quantum;
        for _ in 0..4000 {
            let (flow, _, size) = desk.take(NOW).unwrap();
            sent[flow as usize] += i64::from(size);
            // m turns are worth m quanta, and a queue may exceed them by less than a packet
            for (sent_bytes, &largest) in sent.iter().zip(&sizes) {
                for peer_bytes in &sent {
                    assert!(sent_bytes - peer_bytes <= quantum + i64::from(largest), "{sent:?}");
                }
            }
        }
        assert!(sent.iter().all(|&bytes| bytes > 100 * quantum), "{sent:?}");
        assert!(desk.take_events().is_empty());
    }

    #[test]
    fn a_flow_that_builds_no_queue_goes_first_and_one_that_only_appears_sparse_gets_no_more_than_its_share() {
        let mut desk = desk(1, DropTail::UNLIMITED);
        (0..9000).for_each(|turn| desk.put(NOW, Span::ZERO, turn % 3, 1500, Ecn::NotEct));
        for _ in 0..7 {
            desk.take(NOW);
        }
        desk.put(NOW, Span::ZERO, 7, 200, Ecn::NotEct);
        assert_eq!(desk.take(NOW).unwrap().0, 7, "the sparse flow goes first");
        assert_ne!(desk.take(NOW).unwrap().0, 7);
        // a flow that sends a packet whenever another flow has just been served, so that its queue is found empty each
        // time
        let (mut sparse_turns, mut last) = (0, 7);
        for _ in 0..3000 {
            if last != 8 {
                desk.put(NOW, Span::ZERO, 8, 1400, Ecn::NotEct);
            }
            last = desk.take(NOW).unwrap().0;
            sparse_turns += u32::from(last == 8);
        }
        let share = f64::from(sparse_turns) / 3000.0;
        assert!((0.2..=0.27).contains(&share), "{share} of four");
    }

    #[test]
    fn a_full_buffer_takes_half_of_the_longest_queue_or_a_batch_from_its_head() {
        for (waiting, dropped) in [(40, 20), (128, 64), (400, 64)] {
            let limit = waiting + 10;
            let mut desk = desk(1, DropTail::packets(limit).of_waiting());
            (0..waiting).for_each(|_| desk.put(NOW, Span::ZERO, 7, 1000, Ecn::NotEct));
            // many packets, few bytes: the longest queue is the one with most bytes
            (0..10).for_each(|_| desk.put(NOW, Span::ZERO, 8, 50, Ecn::Ect0));
            assert!(desk.take_events().is_empty());
            desk.put(NOW, Span::ZERO, 9, 1500, Ecn::Ect0);
            let numbers: Vec<u32> = desk.take_events().into_iter().map(|(_, number, _)| number).collect();
            assert_eq!(numbers, (0..dropped).collect::<Vec<_>>());
            assert_eq!(desk.queue.backlog().packets, waiting + 11 - dropped);
        }
        // with a limit in bytes it drops no more packets than necessary
        let mut desk = desk(1, DropTail::bytes(Size::from_bytes(5000)).of_waiting());
        for (flow, size) in [(1, 1500), (2, 1500), (3, 1500), (4, 1500)] {
            desk.put(NOW, Span::ZERO, flow, size, Ecn::NotEct);
        }
        assert_eq!(desk.take_events().len(), 1);
        assert_eq!(desk.queue.backlog().bytes.as_bytes(), 4500);
        // if the packet in service alone exceeds the limit, no packet waits behind it
        let mut desk = self::desk(1, DropTail::bytes(Size::from_bytes(900)));
        desk.put(NOW, Span::ZERO, 1, 100, Ecn::NotEct);
        assert_eq!((desk.take_events().len(), desk.queue.backlog().packets), (1, 0));
    }

    /// Of n flows thrown into m queues, m (1 - (1 - 1/m)^n) queues are hit in the mean.
    #[test]
    fn the_seed_throws_flows_into_queues_at_random() {
        let (flows, queues) = (100, 1024_f64);
        let expected = queues * (1.0 - math::pow(1.0 - 1.0 / queues, f64::from(flows)));
        let mut hit = 0;
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        let seeds = 400;
        for seed in 0..seeds {
            let salt = desk(seed, DropTail::UNLIMITED).queue.salt;
            let mut occupied: Vec<u64> = (0..flows as u32)
                .map(|flow| Datagram::default().between(FlowId(flow), Direction::Forward, Service::Rtp))
                .map(|datagram| hash(&datagram, salt) % 1024)
                .collect();
            *counts.entry(occupied[0]).or_default() += 1;
            occupied.sort_unstable();
            occupied.dedup();
            hit += occupied.len();
        }
        let mean = hit as f64 / seeds as f64;
        // the standard deviation of one seed's number is 2.1: of the mean of 400 it is 0.1
        assert!((mean - expected).abs() < 0.4, "{mean} instead of {expected}");
        assert!(counts.len() > 300, "one flow is in {} of 1024 places over 400 seeds", counts.len());
        // RTP and RTCP of one flow, and its two directions, are different flows
        let salt = desk(1, DropTail::UNLIMITED).queue.salt;
        let directions = [
            (Direction::Forward, Service::Rtp),
            (Direction::Forward, Service::Rtcp),
            (Direction::Reverse, Service::Rtp),
        ];
        let mut hashes = directions
            .map(|(way, service)| hash(&Datagram::default().between(FlowId(3), way, service), salt));
        hashes.sort_unstable();
        assert!(hashes.windows(2).all(|two| two[0] != two[1]));
    }

    #[test]
    fn codel_drops_from_the_flow_that_waits_and_from_no_other() {
        let mut desk = desk(1, DropTail::UNLIMITED);
        (0..200).for_each(|_| desk.put(Time::ZERO, Span::ZERO, 0, 1500, Ecn::NotEct));
        let mut now = Time::ZERO;
        for turn in 0..180 {
            now = Time::from_millis(2 * turn);
            desk.put(now, Span::ZERO, 1, 100, Ecn::NotEct);
            desk.take(now);
            desk.take(now);
        }
        let events = desk.take_events();
        // the wait reaches 5 ms at 6 ms, and the number of drops in 360 ms is that of the control law
        assert_eq!(events[0].0, Time::from_millis(106));
        assert!((4..=8).contains(&events.len()), "{} until {now}", events.len());
        assert!(events.iter().all(|&(_, number, died)| number < 200 && died));
    }
}
