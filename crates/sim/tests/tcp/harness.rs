//! A dumbbell of TCP flows, a recorder that counts, and a link that loses, doubles and disorders.

use std::any::Any;
use std::collections::VecDeque;
use tidegate_core::datagram::TcpBody;
use tidegate_core::record::Backlog;
use tidegate_core::{
    Body, Cause, FlowId, Kind, Level, Node, NodeId, Outbox, Packet, Port, Rate, Recorder, RouteId, Size,
    Span, Stream, Time,
};
use tidegate_sim::link::queue::{DropTail, Moment, QueueDiscipline, Waiting};
use tidegate_sim::traffic::tcp::{TcpReceiver, TcpSender, TcpSettings};
use tidegate_sim::{Link, LinkSettings, ManagedLink, World};

/// Counts of one flow's packets from a given time on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) arrived: u64,
    pub(crate) arrived_bytes: u64,
    pub(crate) acks: u64,
    pub(crate) ack_bytes: u64,
    pub(crate) goodput: u64,
    /// Milliseconds that each data packet waited in queues, in order of arrival.
    pub(crate) queued: Vec<f64>,
    pub(crate) downloads: Vec<f64>,
    pub(crate) last_arrival: Time,
    /// Data packets that a queue marked, and those that report a reduced window.
    pub(crate) marked: u64,
    pub(crate) reductions: u64,
    /// (s, sequence number) of each data packet, if asked for.
    pub(crate) departures: Vec<(f64, u32)>,
}

/// A recorder that counts from `from` on.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) from: Time,
    pub(crate) detailed: bool,
    pub(crate) flows: Vec<Flow>,
}

impl Tally {
    fn flow(&mut self, flow: FlowId) -> &mut Flow {
        let index = flow.0 as usize;
        if self.flows.len() <= index {
            self.flows.resize(index + 1, Flow::default());
        }
        &mut self.flows[index]
    }
}

impl Recorder for Tally {
    fn level(&self) -> Level {
        if self.detailed { Level::Packets } else { Level::Series }
    }
    fn sent(&mut self, now: Time, packet: &Packet) {
        let detailed = self.detailed;
        if now < self.from {
            return;
        }
        let flow = self.flow(packet.flow);
        if packet.kind == Kind::Data {
            flow.sent += 1;
            if let Body::Tcp(body) = packet.body {
                flow.reductions += u64::from(body.flags & TcpBody::CWR != 0 && body.length > 0);
            }
            if let (true, Body::Tcp(body)) = (detailed, packet.body) {
                flow.departures.push((now.as_secs_f64(), body.sequence));
            }
        } else {
            flow.acks += 1;
            flow.ack_bytes += u64::from(packet.size);
        }
    }
    fn arrived(&mut self, now: Time, packet: &Packet) {
        if now >= self.from && packet.kind == Kind::Data {
            let flow = self.flow(packet.flow);
            flow.arrived += 1;
            flow.last_arrival = now;
            flow.arrived_bytes += u64::from(packet.size);
            flow.queued.push(packet.queued.as_millis_f64());
        }
    }
    fn dropped(&mut self, now: Time, packet: &Packet, _node: NodeId, _cause: Cause) {
        if now >= self.from && packet.kind == Kind::Data {
            self.flow(packet.flow).lost += 1;
        }
    }
    fn marked(&mut self, now: Time, packet: &Packet, _node: NodeId) {
        if now >= self.from {
            self.flow(packet.flow).marked += 1;
        }
    }
    fn goodput(&mut self, now: Time, flow: FlowId, bytes: Size) {
        if now >= self.from {
            self.flow(flow).goodput += bytes.as_bytes();
        }
    }
    fn internal(&mut self, _now: Time, flow: FlowId, name: &str, value: f64) {
        if name == "download_ms" {
            self.flow(flow).downloads.push(value);
        }
    }
}

/// One bottleneck with flows of their own propagation delays.
pub(crate) struct Dumbbell {
    pub(crate) rate: Rate,
    pub(crate) one_way: Span,
    /// Packets that may wait, the one in service not counted.
    pub(crate) queue: u32,
    /// Number of waiting packets from which on a new one is marked.
    pub(crate) step: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) jitter: Option<Span>,
    /// Settings and additional one-way delay of each flow.
    pub(crate) flows: Vec<(TcpSettings, Span)>,
    /// Probability that a data packet is lost behind the bottleneck.
    pub(crate) loss: f64,
    /// Index of the first data packet that is lost there as well, and the period of the losses after it.
    pub(crate) periodic: Option<(u32, u32)>,
    pub(crate) from: Time,
    pub(crate) until: Time,
    pub(crate) detailed: bool,
}

impl Dumbbell {
    /// The reference path: 10 Mb/s, 20 ms one way, 33 packets, 120 s of which the last 100 count.
    pub(crate) fn reference(settings: TcpSettings) -> Self {
        Self {
            rate: Rate::from_mbps(10),
            one_way: Span::from_millis(20),
            // ns-2's limit of 33 lets 32 wait
            queue: 32,
            step: None,
            seed: 1,
            jitter: None,
            flows: vec![(settings, Span::ZERO)],
            loss: 0.0,
            periodic: None,
            from: Time::from_secs(20),
            until: Time::from_secs(120),
            detailed: false,
        }
    }

    pub(crate) fn run(self) -> Result {
        let mut nodes: Vec<Box<dyn Node>> = Vec::new();
        let mut routes = Vec::new();
        let mut add = |node: Box<dyn Node>| {
            nodes.push(node);
            (NodeId(nodes.len() as u32 - 1), Port::ZERO)
        };
        let link = |name: &str, settings| Box::new(Link::new(name, 1, settings).unwrap());
        let bottleneck = LinkSettings::constant(self.rate, self.one_way);
        let forward: Box<dyn Node> = match self.step {
            None => {
                link("forward", bottleneck.clone().with_queue(DropTail::packets(self.queue).of_waiting()))
            }
            Some(mark) => {
                let step = Step { mark, limit: self.queue, ..Step::default() };
                Box::new(ManagedLink::with_queue("forward", 1, bottleneck.clone(), Box::new(step)).unwrap())
            }
        };
        let forward = add(forward);
        let back = add(link("back", bottleneck));
        let mut loss = Chaos::new("loss", self.seed, self.loss, 0.0, None);
        loss.periodic = self.periodic;
        let loss = add(Box::new(loss));
        for (index, (settings, delay)) in self.flows.iter().enumerate() {
            let flow = FlowId(index as u32);
            let (data, acks) = (RouteId(2 * index as u32), RouteId(2 * index as u32 + 1));
            let name = format!("tcp{index}");
            let sender =
                TcpSender::new(name.clone(), self.seed, flow, data, settings.clone(), self.jitter).unwrap();
            let receiver = TcpReceiver::new(format!("{name}-receiver"), flow, acks, settings).unwrap();
            let access_settings = LinkSettings::constant(Rate::from_mbps(1000), *delay);
            let access = add(link("access", access_settings.clone()));
            let home = add(link("home", access_settings));
            let sender = add(Box::new(sender));
            let receiver = add(Box::new(receiver));
            routes.push(vec![access, forward, loss, receiver]);
            routes.push(vec![back, home, sender]);
        }
        let tally = Tally { from: self.from, detailed: self.detailed, flows: Vec::new() };
        let mut world = World::new(nodes, routes, Box::new(tally));
        world.run_until(self.until).unwrap();
        let record: Box<dyn Any> = world.finish().unwrap();
        let tally = *record.downcast::<Tally>().unwrap();
        Result { flows: tally.flows, rate: self.rate, length: self.until - self.from }
    }
}

/// Measurements of one run of a [`Dumbbell`].
pub(crate) struct Result {
    pub(crate) flows: Vec<Flow>,
    rate: Rate,
    length: Span,
}

impl Result {
    /// Data that passed the bottleneck, over its capacity.
    pub(crate) fn utilisation(&self) -> f64 {
        let bytes: u64 = self.flows.iter().map(|flow| flow.arrived_bytes).sum();
        8.0 * bytes as f64 / (self.rate.as_bps_f64() * self.length.as_secs_f64())
    }
    pub(crate) fn loss(&self) -> f64 {
        let lost: u64 = self.flows.iter().map(|flow| flow.lost).sum();
        let sent: u64 = self.flows.iter().map(|flow| flow.sent).sum();
        lost as f64 / sent as f64
    }
    /// Mean and 95th percentile of the time in queues, ms.
    pub(crate) fn queueing(&self) -> (f64, f64) {
        let mut delays: Vec<f64> = self.flows.iter().flat_map(|flow| flow.queued.iter().copied()).collect();
        delays.sort_by(f64::total_cmp);
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        (mean, delays[delays.len() * 95 / 100])
    }
    /// Goodput of a flow in Mb/s.
    pub(crate) fn goodput(&self, flow: usize) -> f64 {
        8e-6 * self.flows[flow].goodput as f64 / self.length.as_secs_f64()
    }
}

/// A pipe that loses and doubles packets, and delays each by up to `disorder`.
pub(crate) struct Chaos {
    name: String,
    loss: f64,
    copies: f64,
    disorder: Option<Span>,
    luck: Stream,
    held: Vec<(Time, Box<Packet>)>,
    /// Index of the first data packet that is lost in any case, and the period of the losses after it.
    pub(crate) periodic: Option<(u32, u32)>,
    passed: u32,
}

impl Chaos {
    pub(crate) fn new(name: &str, seed: u64, loss: f64, copies: f64, disorder: Option<Span>) -> Self {
        let luck = Stream::new(seed, name, "chaos");
        Self { name: name.into(), loss, copies, disorder, luck, held: Vec::new(), periodic: None, passed: 0 }
    }
}

impl Node for Chaos {
    fn name(&self) -> &str {
        &self.name
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.held.iter().map(|&(time, _)| time).min()
    }
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        while let Some(index) = self.held.iter().position(|&(time, _)| time <= now) {
            let (_, packet) = self.held.remove(index);
            out.forward(Port::ZERO, packet);
        }
    }
    fn receive(&mut self, now: Time, _port: Port, packet: Box<Packet>, out: &mut Outbox) {
        self.passed += u32::from(packet.kind == Kind::Data);
        let periodic_loss = packet.kind == Kind::Data
            && self.periodic.is_some_and(|(first, period)| {
                self.passed >= first && (self.passed - first).is_multiple_of(period)
            });
        if self.luck.chance(self.loss) || periodic_loss {
            out.discard(now, &packet, Cause::Loss);
            return;
        }
        if self.luck.chance(self.copies) {
            out.copy(now, Port::ZERO, (*packet).clone());
        }
        match self.disorder {
            None => out.forward(Port::ZERO, packet),
            Some(limit) => self.held.push((now + limit.scaled(self.luck.uniform()), packet)),
        }
    }
    fn contents(&self, visit: &mut dyn FnMut(&Packet)) {
        self.held.iter().for_each(|(_, packet)| visit(packet));
    }
}

/// A drop-tail queue that marks a packet when `mark` or more are waiting, as a switch for DCTCP does (RFC 8257
/// section 3.1).
#[derive(Default)]
struct Step {
    mark: u32,
    limit: u32,
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl QueueDiscipline for Step {
    fn enqueue(&mut self, moment: &mut Moment<'_>, mut new: Waiting) {
        let waiting = self.waiting.len() as u32;
        if waiting >= self.limit || (waiting >= self.mark && !moment.mark(&mut new.packet)) {
            moment.drop(new.packet);
            return;
        }
        self.bytes += u64::from(new.packet.size);
        self.waiting.push_back(new);
    }
    fn dequeue(&mut self, _: &mut Moment<'_>) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.packet.size);
        Some(first)
    }
    fn limit(&mut self, _: &mut Moment<'_>, _: &DropTail) {}
    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.waiting.into()
    }
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u32, bytes: Size::from_bytes(self.bytes) }
    }
    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.waiting.iter().for_each(visit);
    }
}
