//! Two endpoints and a path between them: the world of a test of endpoints.
#![allow(unreachable_pub, reason = "a module of a test program")]

use std::sync::{Arc, Mutex};
use tidegate_core::control::{Context, Counts, Limits, Needs, PacketResult, Probes, Report};
use tidegate_core::record::{Breaker, EcnCheck, FrameRecord, FrameSent, LeastRate, RepairRecord, RtcpRecord};
use tidegate_core::wire::rtcp;
use tidegate_core::{
    Controller, Decision, Ecn, FlowId, Kind, Level, Node, Outbox, Packet, Port, Rate, Recorder, RouteId,
    Size, Span, Time,
};
use tidegate_endpoint::datagram::{encode, header_len};
use tidegate_endpoint::{
    Endpoint, EndpointSettings, FeedbackFormat, ReceiveSettings, SendSettings, StreamSettings,
};
use tidegate_sim::engine::host::{Destination, Host};

/// All that the recorder was told.
#[derive(Default, Debug)]
pub struct Recorded {
    pub sent: Vec<(Time, Packet)>,
    pub arrived: Vec<(Time, Packet)>,
    pub bytes: Vec<(Packet, Vec<u8>)>,
    pub frames_sent: Vec<(Time, FrameSent)>,
    pub frames: Vec<(Time, FrameRecord)>,
    pub freezes: Vec<(Time, Span)>,
    pub late: usize,
    pub goodput: u64,
    pub rtcp: Vec<(Time, RtcpRecord)>,
    pub repaired: Vec<(Time, RepairRecord)>,
    pub internal: Vec<(Time, String, f64)>,
    pub paced: Vec<(Time, Span)>,
    pub left_out: usize,
    pub below_least: Vec<(Time, Option<LeastRate>)>,
    pub decisions: Vec<(Time, Decision)>,
    pub tripped: Vec<(Time, Breaker)>,
    pub refused: u32,
    pub ecn_checks: Vec<(Time, EcnCheck)>,
}

pub struct Log(pub Arc<Mutex<Recorded>>, pub bool);

impl Recorder for Log {
    fn level(&self) -> Level {
        Level::Series
    }
    fn sent(&mut self, now: Time, packet: &Packet) {
        let mut recorded = self.0.lock().unwrap();
        recorded.sent.push((now, packet.clone()));
        if self.1 {
            assert_eq!(now, packet.sent);
            let mut bytes = Vec::new();
            encode(packet, 28, &mut bytes).expect("it fits");
            recorded.bytes.push((packet.clone(), bytes.split_off(28)));
        }
    }
    fn arrived(&mut self, now: Time, packet: &Packet) {
        self.0.lock().unwrap().arrived.push((now, packet.clone()));
    }
    fn goodput(&mut self, _now: Time, _flow: FlowId, bytes: Size) {
        self.0.lock().unwrap().goodput += bytes.as_bytes();
    }
    fn late(&mut self, _now: Time, _flow: FlowId, _packet: &Packet) {
        self.0.lock().unwrap().late += 1;
    }
    fn paced(&mut self, now: Time, _flow: FlowId, waited: Span) {
        self.0.lock().unwrap().paced.push((now, waited));
    }
    fn left_out(&mut self, _now: Time, _flow: FlowId) {
        self.0.lock().unwrap().left_out += 1;
    }
    fn below_least(&mut self, now: Time, _flow: FlowId, least: Option<LeastRate>) {
        self.0.lock().unwrap().below_least.push((now, least));
    }
    fn ecn_checked(&mut self, now: Time, _flow: FlowId, check: EcnCheck) {
        self.0.lock().unwrap().ecn_checks.push((now, check));
    }
    fn refused(&mut self, _now: Time, _flow: FlowId, count: u32) {
        self.0.lock().unwrap().refused += count;
    }
    fn tripped(&mut self, now: Time, _flow: FlowId, breaker: Breaker, _stops: bool) {
        self.0.lock().unwrap().tripped.push((now, breaker));
    }
    fn decision(&mut self, now: Time, _flow: FlowId, decision: &Decision) {
        self.0.lock().unwrap().decisions.push((now, *decision));
    }
    fn internal(&mut self, now: Time, _flow: FlowId, name: &str, value: f64) {
        self.0.lock().unwrap().internal.push((now, name.to_owned(), value));
    }
    fn frame_sent(&mut self, now: Time, frame: &FrameSent) {
        self.0.lock().unwrap().frames_sent.push((now, *frame));
    }
    fn frame(&mut self, now: Time, frame: &FrameRecord) {
        self.0.lock().unwrap().frames.push((now, *frame));
    }
    fn freeze(&mut self, now: Time, _flow: FlowId, length: Span) {
        self.0.lock().unwrap().freezes.push((now, length));
    }
    fn repaired(&mut self, now: Time, repair: &RepairRecord) {
        self.0.lock().unwrap().repaired.push((now, *repair));
    }
    fn rtcp(&mut self, now: Time, rtcp: &RtcpRecord) {
        self.0.lock().unwrap().rtcp.push((now, *rtcp));
    }
}

/// The inputs of a scripted controller.
#[derive(Default, Debug)]
pub struct Heard {
    pub reports: Vec<(Time, Report)>,
    pub limits: Vec<(Time, Limits)>,
}

impl Heard {
    pub fn results(&self) -> Vec<PacketResult> {
        self.reports.iter().flat_map(|(_, report)| report.packets.clone()).collect()
    }
}

/// A controller that follows a script and remembers its inputs.
pub struct Scripted {
    /// Decisions with the times from which they hold; the first one holds from the start on.
    pub script: Vec<(Time, Decision)>,
    pub heard: Arc<Mutex<Heard>>,
    /// Number of decisions whose probes were requested.
    pub probed: usize,
    pub counts: Counts,
}

impl Scripted {
    fn decide(&mut self, now: Time) -> Decision {
        let index = self.script.partition_point(|&(from, _)| from <= now).max(1) - 1;
        let next = self.script.get(index + 1).map(|&(from, _)| from);
        let decision = self.script[index].1;
        let probes = if index >= self.probed { decision.probes } else { Probes::NONE };
        self.probed = index + 1;
        Decision { alarm: next, probes, ..decision }
    }
}

impl Controller for Scripted {
    fn needs(&self) -> Needs {
        Needs { counts: self.counts, ..Needs::default() }
    }
    fn on_report(&mut self, now: Time, report: &Report, _cx: &mut Context<'_>) -> Decision {
        self.heard.lock().unwrap().reports.push((now, report.clone()));
        self.decide(now)
    }
    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> Decision {
        self.decide(now)
    }
    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        self.heard.lock().unwrap().limits.push((now, *limits));
        self.decide(now)
    }
}

pub fn scripted(script: Vec<(Time, Decision)>) -> (Box<dyn Controller>, Arc<Mutex<Heard>>) {
    counting(Counts::Rtp, script)
}

/// A scripted controller whose rates count these bytes.
pub fn counting(counts: Counts, script: Vec<(Time, Decision)>) -> (Box<dyn Controller>, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    (Box::new(Scripted { script, heard: heard.clone(), probed: 0, counts }), heard)
}

pub fn constant(rate: Rate) -> (Box<dyn Controller>, Arc<Mutex<Heard>>) {
    scripted(vec![(Time::ZERO, Decision::rate(rate))])
}

/// The path's effect on a packet: its arrival, or none.
pub type Path = Box<dyn FnMut(Time, usize, &Packet) -> Option<Time>>;

pub fn delay(millis: i64) -> Path {
    Box::new(move |now, _, _| Some(now + Span::from_millis(millis)))
}

/// A node with an endpoint of these settings, which sends on `route`.
pub fn host(settings: EndpointSettings, route: u32) -> Host<Endpoint> {
    let destination = Destination::Call(settings.send.as_ref().map(|send| send.flow));
    Host::new(Endpoint::new(settings).expect("an endpoint"), RouteId(route), destination)
}

/// Two endpoints, a path each way, and the record.
pub struct World {
    pub nodes: [Host<Endpoint>; 2],
    pub path: Path,
    /// Whether a failure ends the run and not the test.
    pub fails: bool,
    /// The ECN field of a packet after the path.
    pub mark: Box<dyn FnMut(&Packet) -> Ecn>,
    pub out: Outbox,
    pub recorded: Arc<Mutex<Recorded>>,
    pub now: Time,
    /// (arrival, order, receiving node, packet)
    flying: Vec<(Time, u64, usize, Packet)>,
    order: u64,
}

impl World {
    pub fn new(first: EndpointSettings, second: EndpointSettings, path: Path) -> Self {
        Self::with_bytes(first, second, path, false)
    }

    pub fn with_bytes(first: EndpointSettings, second: EndpointSettings, path: Path, bytes: bool) -> Self {
        let recorded = Arc::new(Mutex::new(Recorded::default()));
        Self {
            nodes: [host(first, 0), host(second, 1)],
            path,
            fails: false,
            mark: Box::new(|packet| packet.ecn),
            out: Outbox::new(1, Box::new(Log(recorded.clone(), bytes))),
            recorded,
            now: Time::ZERO,
            flying: Vec::new(),
            order: 0,
        }
    }

    pub fn run(&mut self, until: Time) {
        let mut same = 0;
        loop {
            let wake = |node: &Host<Endpoint>| node.next_wakeup().unwrap_or(Time::MAX);
            let first = self.flying.iter().enumerate().min_by_key(|(_, f)| (f.0, f.1)).map(|(i, f)| (f.0, i));
            let next = wake(&self.nodes[0]).min(wake(&self.nodes[1])).min(first.map_or(Time::MAX, |f| f.0));
            if next > until || self.out.failure.is_some() {
                self.now = until;
                return;
            }
            same = if next == self.now { same + 1 } else { 0 };
            assert!(same < 10_000, "a hot loop at {next}");
            assert!(next >= self.now, "time goes back");
            self.now = next;
            if let Some((arrival, index)) = first
                && arrival == next
            {
                let (_, _, to, packet) = self.flying.swap_remove(index);
                self.nodes[to].receive(next, Port::ZERO, Box::new(packet), &mut self.out);
                self.collect(to);
                continue;
            }
            let awake = usize::from(wake(&self.nodes[0]) != next);
            self.nodes[awake].advance(next, &mut self.out);
            self.collect(awake);
        }
    }

    fn collect(&mut self, from: usize) {
        assert!(self.fails || self.out.failure.is_none(), "{:?}", self.out.failure);
        for (_, mut packet) in self.out.packets.drain(..) {
            if let Some(arrival) = (self.path)(self.now, from, &packet) {
                self.order += 1;
                packet.ecn = (self.mark)(&packet);
                self.flying.push((arrival, self.order, 1 - from, *packet));
            }
        }
    }

    pub fn finish(&mut self) -> Recorded {
        for node in &mut self.nodes {
            node.finish(self.now, &mut self.out);
        }
        std::mem::take(&mut self.recorded.lock().unwrap())
    }
}

pub const SEED: u64 = 11;

/// A sender "caller" of `streams` and a receiver "callee".
pub fn one_way(
    streams: Vec<StreamSettings>,
    controller: Box<dyn Controller>,
    format: FeedbackFormat,
) -> (EndpointSettings, EndpointSettings) {
    let mut send = SendSettings::new(FlowId(1), controller);
    send.streams = streams;
    send.feedback = format;
    let mut caller = EndpointSettings::new("caller", SEED);
    let mut callee = EndpointSettings::new("callee", SEED);
    callee.receive = Some(ReceiveSettings::new(&send));
    caller.send = Some(send);
    (caller, callee)
}

/// Bytes of the payload of a packet of RTP.
pub fn payload(packet: &Packet) -> u32 {
    let header = header_len(packet.rtp().expect("RTP"), packet.extension());
    packet.size - 28 - header
}

pub fn media(recorded: &Recorded) -> Vec<(Time, Packet)> {
    recorded.sent.iter().filter(|(_, p)| matches!(p.kind, Kind::Video | Kind::Audio)).cloned().collect()
}

pub fn rtcp_packets(recorded: &Recorded) -> Vec<(Time, Vec<rtcp::Packet>)> {
    let bytes = recorded.sent.iter().filter_map(|(time, p)| p.rtcp().map(|bytes| (*time, bytes)));
    bytes.map(|(time, bytes)| (time, rtcp::decode(bytes).expect("our own RTCP"))).collect()
}
