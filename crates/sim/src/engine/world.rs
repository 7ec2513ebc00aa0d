//! The engine: nodes, static routes, virtual time.
//!
//! The world wakes the node with the earliest wakeup, carries each packet that it sends to the next node of
//! the packet's route, and goes on until the time is up. It counts every packet at every node, and a
//! run in which a packet went missing fails ([`World::check`]).

use crate::engine::bytes::InBytes;
use crate::engine::wakeups::WakeupQueue;
use std::any::Any;
use tidegate_core::RouteId;
use tidegate_core::node::Inside;
use tidegate_core::outbox::{Died, Handed, PacketAccount};
use tidegate_core::{Node, NodeId, Outbox, Packet, Port, Rate, Recorder, Span, Time};

/// Largest number of events at one instant, plus 100 for each node; more are an endless loop, which stops the run.
const EVENTS_AT_ONE_INSTANT: u64 = 100_000;
/// Largest number of packets at one instant, plus 1000 for each node: packets that answer packets at once need no
/// event.
const PACKETS_AT_ONE_INSTANT: u64 = 1_000_000;

/// The reason for which a world stopped before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The simulated time.
    pub time: Time,
    /// The node that failed, or that was about to act.
    pub node: String,
    /// The failure, in words.
    pub reason: String,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}", self.node, self.time, self.reason)
    }
}

impl std::error::Error for Stopped {}

/// The remains of a finished world: its recorder and its nodes.
pub type Ended = (Box<dyn Recorder>, Vec<Box<dyn Node>>);

/// All routes as rows of one table, because a hop is looked up for every packet at every node.
struct Routes {
    /// Cells in a row: the longest route, and one after its end.
    width: usize,
    cells: Vec<(NodeId, Port)>,
}

impl Routes {
    /// The cell that marks the end of a route.
    const END: (NodeId, Port) = (NodeId(u32::MAX), Port::ZERO);

    fn new(routes: &[Vec<(NodeId, Port)>]) -> Self {
        let width = routes.iter().map(Vec::len).max().unwrap_or(0) + 1;
        let mut cells = Vec::with_capacity(routes.len() * width);
        for route in routes {
            cells.extend(route);
            cells.resize(cells.len() + width - route.len(), Self::END);
        }
        Self { width, cells }
    }

    fn add(&mut self, route: &[(NodeId, Port)]) -> RouteId {
        if route.len() >= self.width {
            let rows = self
                .cells
                .chunks(self.width)
                .map(|row| row.iter().copied().take_while(|hop| *hop != Self::END));
            let mut all: Vec<Vec<_>> = rows.map(Iterator::collect).collect();
            all.push(route.to_vec());
            *self = Self::new(&all);
        } else {
            self.cells.extend(route);
            self.cells.resize(self.cells.len() + self.width - route.len(), Self::END);
        }
        RouteId((self.cells.len() / self.width) as u32 - 1)
    }

    #[inline]
    fn hop(&self, RouteId(route): RouteId, hop: u8) -> Option<(NodeId, Port)> {
        let cell = self.cells.get(route as usize * self.width + hop as usize);
        cell.copied().filter(|&(node, _)| node != Self::END.0)
    }
}

/// A node without its wrapper.
fn inside(node: &mut Box<dyn Node>) -> &mut dyn Any {
    let node: &mut dyn Any = &mut **node;
    if node.is::<InBytes>() {
        let wrapper = node.downcast_mut::<InBytes>();
        wrapper.map_or_else(|| unreachable!("the line above asks for it"), InBytes::node)
    } else {
        node
    }
}

/// A network under virtual time.
pub struct World {
    now: Time,
    nodes: Vec<Box<dyn Node>>,
    wakeups: WakeupQueue,
    routes: Routes,
    out: Outbox,
    events: u64,
    events_now: u64,
    packets_now: u64,
    /// Limits at one instant, beyond which it is an endless loop.
    max_events: u64,
    max_packets: u64,
    samples: Option<(Span, Time)>,
    watched: Vec<NodeId>,
    /// Nodes that can tell their capacity.
    measured: Vec<NodeId>,
    /// Interval between measurements of all capacities at once, and the time of the next one.
    intervals: Option<(Span, Time)>,
    /// The capacities of the last interval; a field so that the memory is reused.
    rates: Vec<(NodeId, Rate)>,
    /// Time of the next sample or measurement.
    next_sample: Time,
}

impl World {
    /// Largest number of nodes on a route: a packet counts its hops in 8 bits.
    pub const LONGEST_ROUTE: usize = u8::MAX as usize;

    /// A world of `nodes` whose packets follow `routes` (for each route the nodes after the sender, each
    /// with the port at which the packet enters it), writing to `record`.
    ///
    /// # Panics
    /// If a route names a node that is not there, or is longer than [`World::LONGEST_ROUTE`].
    #[must_use]
    pub fn new(
        nodes: Vec<Box<dyn Node>>,
        routes: Vec<Vec<(NodeId, Port)>>,
        record: Box<dyn Recorder>,
    ) -> Self {
        for (node, _) in routes.iter().flatten() {
            assert!((node.0 as usize) < nodes.len(), "a route leads to node {}, which is not there", node.0);
        }
        let longest = routes.iter().map(Vec::len).max().unwrap_or(0);
        assert!(
            longest <= Self::LONGEST_ROUTE,
            "a route over {longest} nodes: at most {}",
            Self::LONGEST_ROUTE
        );
        let mut wakeups = WakeupQueue::new(nodes.iter().map(|node| node.name()));
        for (id, node) in nodes.iter().enumerate() {
            wakeups.set(NodeId(id as u32), node.next_wakeup());
        }
        Self {
            now: Time::ZERO,
            wakeups,
            routes: Routes::new(&routes),
            out: Outbox::new(nodes.len().max(1), record),
            events: 0,
            events_now: 0,
            packets_now: 0,
            max_events: EVENTS_AT_ONE_INSTANT + 100 * nodes.len() as u64,
            max_packets: PACKETS_AT_ONE_INSTANT + 1000 * nodes.len() as u64,
            samples: None,
            watched: Vec::new(),
            measured: Vec::new(),
            intervals: None,
            rates: Vec::new(),
            next_sample: Time::MAX,
            nodes,
        }
    }

    /// Wraps each node (in a probe, say); the wrapper has the node's name and contents.
    ///
    /// # Panics
    /// If something has happened already.
    #[must_use]
    pub fn around(mut self, wrap: impl FnMut(Box<dyn Node>) -> Box<dyn Node>) -> Self {
        assert!(self.events == 0, "{} events have happened to the nodes that are to be wrapped", self.events);
        self.nodes = self.nodes.into_iter().map(wrap).collect();
        for (id, node) in self.nodes.iter().enumerate() {
            self.wakeups.set(NodeId(id as u32), node.next_wakeup());
        }
        self
    }

    /// Tells the recorder the backlog of every queue and the capacity of every link once every `bin`.
    pub fn sample_every(&mut self, bin: Span) {
        assert!(bin > Span::ZERO, "a bin of {bin}");
        self.watched = (0..self.nodes.len() as u32)
            .map(NodeId)
            .filter(|id| self.nodes[id.0 as usize].backlog(self.now).is_some())
            .collect();
        self.find_measured();
        self.samples = Some((bin, self.now));
        self.next_sample = self.now;
    }

    /// Tells the recorder the capacities of all links at once, at the end of every whole `interval`.
    pub fn measure_every(&mut self, interval: Span) {
        assert!(interval > Span::ZERO, "an interval of {interval}");
        self.find_measured();
        self.intervals = Some((interval, self.now + interval));
        self.next_sample = self.next_sample.min(self.now + interval);
    }

    fn find_measured(&mut self) {
        // an instant: a generated capacity of a whole bin, which may be years, is work
        let (now, next) = (self.now, self.now + Span::from_nanos(1));
        let nodes = (0_u32..).map(NodeId).zip(&mut self.nodes);
        let measured = nodes.filter_map(|(id, node)| node.capacity(now, next).map(|_| id));
        self.measured = measured.collect();
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of events handled so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Box<dyn Node>] {
        &self.nodes
    }

    /// The nodes, mutable because [`Node::capacity`] needs that.
    pub(crate) fn nodes_mut(&mut self) -> &mut [Box<dyn Node>] {
        &mut self.nodes
    }

    /// The record so far.
    pub(crate) fn record(&self) -> &dyn Recorder {
        &*self.out.record
    }

    pub(crate) fn record_mut(&mut self) -> &mut dyn Recorder {
        &mut *self.out.record
    }

    /// The packet accounting of each node, by its number.
    #[must_use]
    pub fn accounts(&self) -> &[PacketAccount] {
        &self.out.accounts
    }

    /// The time of the next event (SimPy's `peek`).
    #[must_use]
    pub fn peek(&self) -> Option<Time> {
        self.wakeups.earliest()
    }

    /// Handles one event.
    ///
    /// # Errors
    /// When a node fails, asks for a time in the past, or never lets time pass.
    pub fn step(&mut self) -> Result<(), Stopped> {
        match self.wakeups.first() {
            Some((time, id)) => self.event(time, id),
            None => Ok(()),
        }
    }

    /// Handles all events up to and including `until`, and leaves the clock there.
    ///
    /// # Errors
    /// When a node fails, asks for a time in the past, or never lets time pass.
    pub fn run_until(&mut self, until: Time) -> Result<(), Stopped> {
        self.run_events(until, u64::MAX).map(drop)
    }

    /// Handles at most `events` events up to and including `until`; returns whether the clock got there. So a driver
    /// can look for Ctrl-C between calls, however slowly simulated time passes.
    ///
    /// # Errors
    /// When a node fails, asks for a time in the past, or never lets time pass.
    pub fn run_events(&mut self, until: Time, mut events: u64) -> Result<bool, Stopped> {
        while let Some((time, id)) = self.wakeups.first() {
            if time > until {
                break;
            }
            if events == 0 {
                return Ok(false);
            }
            events -= 1;
            self.event(time, id)?;
        }
        self.sample(until + Span::from_nanos(1));
        self.now = self.now.max(until);
        Ok(true)
    }

    /// Handles at most `events` events up to and including `until`, and stops after an event in which a packet was
    /// handed to the driver; returns whether no event is left up to `until`. The clock stays at the last event, so
    /// that the driver may act at any time from then on.
    ///
    /// # Errors
    /// When a node fails, asks for a time in the past, or never lets time pass.
    pub fn run_driven(&mut self, until: Time, mut events: u64) -> Result<bool, Stopped> {
        while self.out.handed.is_empty() {
            if self.peek().is_none_or(|time| time > until) {
                return Ok(true);
            }
            if events == 0 {
                return Ok(false);
            }
            events -= 1;
            self.step()?;
        }
        Ok(false)
    }

    /// Whether packets wait for the driver.
    #[must_use]
    pub fn has_handed(&self) -> bool {
        !self.out.handed.is_empty()
    }

    /// The packets that nodes have handed to the driver since the last call, oldest first.
    pub fn take_handed(&mut self) -> Vec<Handed> {
        std::mem::take(&mut self.out.handed)
    }

    /// Starts to collect the fed packets that die.
    pub fn watch_deaths(&mut self) {
        self.out.died.get_or_insert_default();
    }

    /// The fed packets that have died since the last call, oldest first, if they are watched.
    pub fn take_died(&mut self) -> Vec<Died> {
        self.out.died.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Numbers of the fed packets of which a copy was made since the last call, oldest first, if deaths are watched.
    pub fn take_doubled(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.out.doubled)
    }

    /// Adds a route over these hops, the last of which is its destination.
    ///
    /// # Panics
    /// If it has more nodes than [`World::LONGEST_ROUTE`].
    pub fn add_route(&mut self, hops: &[(NodeId, Port)]) -> RouteId {
        assert!(hops.len() <= Self::LONGEST_ROUTE, "a route of {} nodes", hops.len());
        self.routes.add(hops)
    }

    /// Calls `tell` with node `id`, so that the driver can change what the node does now or later; `None` if there is
    /// no such node, or it is no `T`.
    pub fn tell<T: Node, R>(&mut self, id: NodeId, tell: impl FnOnce(&mut T) -> R) -> Option<R> {
        let node = self.nodes.get_mut(id.0 as usize)?;
        let result = tell(inside(node).downcast_mut()?);
        self.wakeups.set(id, self.nodes[id.0 as usize].next_wakeup());
        Some(result)
    }

    /// Calls `tell` with node `id` at `time`, which no event has passed, and carries the packets that it sends.
    ///
    /// # Errors
    /// When a node fails.
    pub fn tell_at(
        &mut self,
        time: Time,
        id: NodeId,
        tell: impl FnOnce(&mut dyn Any, &mut Outbox),
    ) -> Result<(), Stopped> {
        self.advance_to(time);
        self.out.set_node(id);
        tell(inside(&mut self.nodes[id.0 as usize]), &mut self.out);
        self.wakeups.set(id, self.nodes[id.0 as usize].next_wakeup());
        self.check_failure()?;
        self.carry()
    }

    /// Ends the run: writes open facts, checks conservation and returns the recorder.
    ///
    /// # Errors
    /// When a node fails at the end, or a packet went missing.
    pub fn finish(self) -> Result<Box<dyn Recorder>, Stopped> {
        self.finish_with_nodes().map(|(record, _)| record)
    }

    /// Ends the run as [`World::finish`], and returns the nodes as well.
    ///
    /// # Errors
    /// As [`World::finish`].
    pub fn finish_with_nodes(mut self) -> Result<Ended, Stopped> {
        // the bin that the end cuts short
        if let Some((bin, next)) = self.samples
            && next - bin < self.now
        {
            self.measure(next - bin, self.now);
        }
        for id in 0..self.nodes.len() {
            self.out.set_node(NodeId(id as u32));
            self.nodes[id].finish(self.now, &mut self.out);
            self.check_failure()?;
        }
        self.check()?;
        for (id, node) in self.nodes.iter().enumerate() {
            let record = &mut self.out.record;
            node.contents(&mut |packet| record.under_way(packet, NodeId(id as u32)));
        }
        Ok((self.out.record, self.nodes))
    }

    /// Checks the conservation of packets at every node:
    /// entered + created + copied = left + consumed + dropped + inside.
    ///
    /// # Errors
    /// With the node and the counts, when a packet went missing.
    pub fn check(&self) -> Result<(), Stopped> {
        for (node, account) in self.nodes.iter().zip(&self.out.accounts) {
            let Inside { packets: inside, .. } = node.inside();
            let arrived = account.entered + account.created + account.copied;
            let gone = account.departed + account.consumed + account.dropped + inside;
            if arrived != gone {
                return Err(Stopped {
                    time: self.now,
                    node: node.name().to_owned(),
                    reason: format!(
                        "packets are not conserved: {arrived} came in, {gone} went out or stayed ({account:?}, inside \
                         {inside})"
                    ),
                });
            }
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, time: Time, id: NodeId) -> Result<(), Stopped> {
        if time < self.now {
            return Err(self.stopped(id, format!("requested a wake-up at {time}, which is in the past")));
        }
        self.advance_to(time);
        self.events += 1;
        self.events_now += 1;
        if self.events_now > self.max_events {
            return Err(
                self.stopped(id, format!("endless loop of {} events at one simulated time", self.events_now))
            );
        }
        self.wakeups.begin(time, id);
        self.out.set_node(id);
        let node = &mut self.nodes[id.0 as usize];
        node.advance(time, &mut self.out);
        match node.next_wakeup() {
            // still due: the other nodes at this instant come first
            Some(again) if again <= time => self.wakeups.again(id, again),
            next => self.wakeups.set(id, next),
        }
        self.check_failure()?;
        self.carry()
    }

    #[inline]
    fn advance_to(&mut self, time: Time) {
        if time != self.now {
            self.sample(time);
            self.now = time;
            self.events_now = 0;
            self.packets_now = 0;
        }
    }

    /// Carries the packets sent to the next nodes of their routes, until none is under way.
    #[inline]
    fn carry(&mut self) -> Result<(), Stopped> {
        while let Some((_, mut packet)) = self.out.packets.pop_front() {
            let Some((next, port)) = self.routes.hop(packet.route, packet.hop) else {
                return Err(self.off_route(&packet));
            };
            packet.hop += 1;
            self.deliver(next, port, packet)?;
        }
        Ok(())
    }

    #[inline]
    fn deliver(&mut self, id: NodeId, port: Port, packet: Box<Packet>) -> Result<(), Stopped> {
        self.out.set_node(id);
        self.out.enter();
        self.packets_now += 1;
        if self.packets_now > self.max_packets {
            return Err(self
                .stopped(id, format!("endless loop of {} packets at one simulated time", self.packets_now)));
        }
        let node = &mut self.nodes[id.0 as usize];
        node.receive(self.now, port, packet, &mut self.out);
        self.wakeups.set(id, node.next_wakeup());
        self.check_failure()
    }

    /// Returns an error if the node that was called last has given up.
    #[inline]
    fn check_failure(&mut self) -> Result<(), Stopped> {
        match self.out.failure {
            None => Ok(()),
            Some(_) => {
                let reason = self.out.failure.take().unwrap_or_default();
                Err(self.stopped(self.out.node(), reason))
            }
        }
    }

    #[cold]
    fn off_route(&self, packet: &Packet) -> Stopped {
        let RouteId(route) = packet.route;
        let reason = format!(
            "a {} packet of flow {} was forwarded beyond the end of route {route}",
            packet.kind.name(),
            packet.flow.0
        );
        self.stopped(self.out.node(), reason)
    }

    /// Samples the queues at every bin boundary before `until`, and the capacities in the bins and intervals that end
    /// there.
    #[inline]
    fn sample(&mut self, until: Time) {
        // called at every event, and mostly with nothing to sample
        if self.next_sample < until {
            self.sample_all(until);
        }
    }

    #[cold]
    fn sample_all(&mut self, until: Time) {
        if let Some((bin, next)) = self.samples {
            self.sample_from(bin, next, until);
        }
        if let Some((interval, mut next)) = self.intervals {
            while next < until {
                self.end_interval(next - interval, next);
                next += interval;
            }
            self.intervals = Some((interval, next));
        }
        let next = [self.samples, self.intervals].into_iter().flatten().map(|(_, next)| next);
        self.next_sample = next.min().unwrap_or(Time::MAX);
    }

    /// Tells the recorder the mean capacities of all links in `[from, to)`.
    fn end_interval(&mut self, from: Time, to: Time) {
        let Self { nodes, measured, rates, out, .. } = self;
        rates.clear();
        rates.extend(measured.iter().filter_map(|&id| Some((id, nodes[id.0 as usize].capacity(from, to)?))));
        out.record.capacities(from, to, rates);
    }

    fn sample_from(&mut self, bin: Span, mut next: Time, until: Time) {
        while next < until {
            for &id in &self.watched {
                let Self { nodes, out, .. } = self;
                let node = &nodes[id.0 as usize];
                if let Some(backlog) = node.backlog(next) {
                    out.record.backlog(next, id, backlog);
                }
                node.queue_parts(&mut |part, backlog| out.record.queue_part(next, id, part, backlog));
            }
            if next > Time::ZERO {
                self.measure(next - bin, next);
            }
            next += bin;
        }
        self.samples = Some((bin, next));
    }

    /// Tells the recorder the mean capacity of each link in `[from, to)`.
    fn measure(&mut self, from: Time, to: Time) {
        for &id in &self.measured {
            if let Some(rate) = self.nodes[id.0 as usize].capacity(from, to) {
                self.out.record.capacity(from, id, rate);
            }
        }
    }

    #[cold]
    fn stopped(&self, id: NodeId, reason: String) -> Stopped {
        Stopped { time: self.now, node: self.nodes[id.0 as usize].name().to_owned(), reason }
    }
}
