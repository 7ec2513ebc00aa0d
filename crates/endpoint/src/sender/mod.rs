//! The sending side: sources, packetizer, pacer and controller.

mod alr;
mod breaking;
mod ecn;
mod feedback;
mod floor;
mod history;
mod initiation;
mod keys;
mod limits;
mod pacer;
mod pushback;
mod repair;
mod share;
mod stream;
mod transmit;

use crate::breaker::{CircuitBreaker, Intervals};
use crate::clock::Clock;
use crate::coupling::FlowUpdate;
use crate::media::Source;
use crate::packetizer::{Extensions, Queued};
use crate::settings::{CircuitBreakerUse, FeedbackFormat, MediaKind, SendSettings};
use alr::AlrDetector;
use history::History;
use keys::{KeyLimit, Requests};
pub use limits::LimitChange;
use pacer::Pacer;
use repair::SenderRepair;
use stream::OutStream;
use tidegate_core::control::{Counts, Failure, Limits, NewFrame, Probes, Report};
use tidegate_core::driver::Driver;
use tidegate_core::frame::Marks;
use tidegate_core::record::{FrameSent, LeastRate};
use tidegate_core::rng::Draws;
use tidegate_core::wire::rtcp;
use tidegate_core::{
    Controller, ControllerHost, Decision, Ecn, FlowId, Frame, Level, Rate, Size, Span, Stream, Time,
};

/// Properties of the path and the clock that sending a packet needs.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) overhead: u32,
    pub(crate) clock: Clock,
    /// The intervals of RTCP.
    pub(crate) reports: Intervals,
    /// Whether the peer's sender reports have no blocks, since what it receives has reports of its own.
    pub(crate) separate_reports: bool,
}

/// Phase of a sender.
enum Life {
    /// Before its start.
    Waiting(Box<dyn Controller>),
    /// At work.
    Running(Box<ControllerHost>),
    /// After its stop.
    Over,
}

/// The sending side of an endpoint.
pub(crate) struct Sender {
    name: String,
    seed: u64,
    flow: FlowId,
    start: Time,
    stop: Time,
    /// RTP packets of media that are still to be sent before it ends.
    packets_left: u64,
    ecn: Ecn,
    /// Whether per-packet feedback reports ECN marks.
    feedback_has_ecn: bool,
    /// The check whether the path carries ECN, where it is made.
    initiation: Option<initiation::Initiation>,
    /// Number of impossible statements in the RTCP datagram at hand.
    refused: u32,
    payload: u16,
    padding_payload: u8,
    extensions: Extensions,
    /// Bytes below RTP that rates count on each packet.
    below: u32,
    queue_limit: Span,
    /// Bytes of an RTP header without marks: without a stamp, and with that of the last packet.
    header: u32,
    stamped_header: u32,
    /// Bytes of an RTP header with marks and no stamp: without the structure, and with it.
    marked_header: [u32; 2],
    life: Life,
    limits: Limits,
    decision: Decision,
    /// The least rate of the active sources, headers included; zero where no frames follow the target.
    least: Rate,
    /// The least rate while the target is below it.
    below_least: Option<LeastRate>,
    /// The streams of media, those of repair, and last the padding.
    streams: Vec<OutStream>,
    /// Repair of video losses, if any is set.
    repair: Option<SenderRepair>,
    key_limit: KeyLimit,
    pacer: Pacer,
    history: History,
    app_limit: AlrDetector,
    /// The circuit breaker; none after it has tripped.
    breaker: Option<CircuitBreaker>,
    /// Whether the sender stops when the breaker trips.
    obeys_breaker: bool,
    skipped_frames: u64,
    report: Report,
    /// The last round trip.
    rtt: Option<Span>,
    remote_clocks: feedback::Clocks,
    /// When the next frame is due or a source is switched on or off.
    media_due: Time,
    wakeup: Time,
}

impl Sender {
    /// `overhead`: bytes of IP and UDP on each packet.
    ///
    /// # Errors
    /// The problem of a source's settings.
    pub(crate) fn new(settings: SendSettings, path: &Path, name: &str, seed: u64) -> Result<Self, String> {
        let (overhead, drift) = (path.overhead, path.clock.settings.drift);
        let extensions = settings.extensions;
        let header = extensions.header_len(None, None);
        let below = match settings.controller.needs().counts {
            Counts::Rtp => 0,
            Counts::Ip => overhead,
        };
        let counted = header + below;
        let pacer = Pacer::new(settings.queue_limit, counted, counted + u32::from(settings.padding_payload));
        let by_rtp_sequence = settings.feedback == FeedbackFormat::Ccfb;
        let mut streams = Vec::with_capacity(settings.streams.len() + 1);
        for stream in &settings.streams {
            let component = format!("{name}/{}", stream.name);
            let source = stream
                .source
                .build(seed, &component, u32::from(settings.payload))
                .map_err(|problem| format!("stream {}: {problem}", stream.name))?;
            let frames = stream.kind == MediaKind::Video && stream.signalled().frames;
            let marks = Extensions { marks: extensions.marks && frames, ..extensions };
            let shape = stream::Shape {
                below,
                header: counted + marks.marks_len(Frame::default()),
                payload: u32::from(settings.payload),
            };
            let out = OutStream::new(
                (stream.signalled(), marks),
                Some((source, shape)),
                stream.pauses.clone(),
                by_rtp_sequence,
                Stream::new(seed, &component, "rtp"),
            );
            let requests = stream
                .requests
                .map(|rate| Requests::new(rate, Stream::new(seed, &component, "requests of key frames")));
            streams.push(out.with_keys(stream.key_interval, requests).with_below_min(stream.below_min));
        }
        let breaker = breaking::circuit_breaker(&settings);
        let repair = SenderRepair::new(&settings);
        let key_limit = KeyLimit::new(&settings);
        for signalled in settings.signalled().into_iter().skip(settings.streams.len()) {
            let part = match signalled.kind {
                MediaKind::Retransmission => "retransmission",
                MediaKind::Parity => "parity",
                _ => "padding",
            };
            let rng = Stream::new(seed, &format!("{name}/{part}"), "rtp");
            let marks = signalled.kind == MediaKind::Retransmission && settings.marks();
            let marks = Extensions { marks, ..extensions };
            streams.push(OutStream::new((signalled, marks), None, Vec::new(), by_rtp_sequence, rng));
        }
        streams.iter_mut().for_each(|stream| stream.drift = drift);
        let initiation = initiation::initiation(settings.ecn_initiation, settings.ecn, &streams);
        Ok(Self {
            name: name.to_owned(),
            seed,
            flow: settings.flow,
            start: settings.start,
            stop: settings.stop.unwrap_or(Time::MAX),
            packets_left: settings.packets.unwrap_or(u64::MAX),
            ecn: settings.ecn,
            feedback_has_ecn: by_rtp_sequence,
            initiation,
            refused: 0,
            payload: settings.payload,
            padding_payload: settings.padding_payload,
            extensions,
            below,
            queue_limit: settings.queue_limit,
            header,
            stamped_header: header,
            marked_header: [0, Frame::FIRST | Frame::KEY]
                .map(|flags| extensions.header_len(Some(Marks::of_frame(Frame { number: 0, flags })), None)),
            life: Life::Waiting(settings.controller),
            limits: Limits { wanted: None, app_limited: false, route_changed: false, ..settings.limits },
            decision: Decision::rate(Rate::ZERO),
            least: Rate::ZERO,
            below_least: None,
            streams,
            repair,
            key_limit,
            pacer,
            history: History::new(drift),
            app_limit: AlrDetector::new(settings.start),
            breaker,
            obeys_breaker: settings.circuit_breaker == CircuitBreakerUse::Act,
            skipped_frames: 0,
            report: Report::default(),
            rtt: None,
            remote_clocks: feedback::Clocks::default(),
            media_due: Time::MAX,
            wakeup: settings.start,
        })
    }

    pub(crate) fn flow(&self) -> FlowId {
        self.flow
    }

    /// When it has something to do.
    pub(crate) fn wakeup(&self) -> Time {
        self.wakeup
    }

    pub(crate) fn start(&self) -> Time {
        self.start
    }

    /// The target of its controller; before its start, the initial rate.
    pub(crate) fn may_send(&self) -> Rate {
        match self.life {
            Life::Waiting(_) => self.limits.start,
            Life::Running(_) | Life::Over => self.decision.target,
        }
    }

    /// The SSRC that speaks for it in RTCP, while it takes part.
    pub(crate) fn ssrc(&self) -> Option<u32> {
        match self.life {
            Life::Over => None,
            _ => self.streams.first().map(|stream| stream.signalled.ssrc),
        }
    }

    /// All its SSRCs.
    pub(crate) fn ssrcs(&self) -> impl Iterator<Item = u32> {
        self.streams.iter().map(|stream| stream.signalled.ssrc)
    }

    /// Passes the draws of each of its random substreams to `visit`.
    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        for stream in &self.streams {
            stream.draws(visit);
        }
        if let Life::Running(host) = &self.life {
            visit(host.rng().draws());
        }
    }

    /// Does what is due; returns whether its stop has come, after which [`Sender::end`] has to be called.
    pub(crate) fn advance(&mut self, now: Time, path: &Path, out: &mut dyn Driver) -> bool {
        if matches!(self.life, Life::Waiting(_)) && now >= self.start {
            self.begin(now, path, out);
        }
        if !self.is_running() {
            self.update_wakeup();
            return false;
        }
        self.expire(now, out);
        if now >= self.stop {
            return true;
        }
        if now >= self.media_due {
            self.media(now, out);
        }
        if self.decision.alarm.is_some_and(|alarm| alarm <= now) {
            self.call(now, out, true, |host| host.alarm(now));
        }
        self.work(now, path, out);
        false
    }

    /// Sends the packets that may leave, and tells the controller if the application's limit has changed.
    fn work(&mut self, now: Time, path: &Path, out: &mut dyn Driver) {
        if !self.is_running() {
            return;
        }
        if self.forget_due() <= now {
            self.history.forget(now);
        }
        self.drain(now, path, out);
        if self.app_limit.limited() != self.limits.app_limited {
            self.refresh_limits(now, out);
            self.drain(now, path, out);
        }
        self.update_wakeup();
    }

    fn is_running(&self) -> bool {
        matches!(self.life, Life::Running(_))
    }

    /// Bytes in flight by the controller's own count, if it has one.
    fn controller_in_flight(&self) -> Option<Size> {
        match &self.life {
            Life::Running(host) => host.in_flight(),
            _ => None,
        }
    }

    fn in_flight(&self) -> Size {
        self.controller_in_flight().unwrap_or_else(|| self.history.in_flight())
    }

    /// When to forget the oldest packet: if all feedback is lost, only forgetting opens a window again.
    fn forget_due(&self) -> Time {
        let waits = self.decision.window.is_some() && self.controller_in_flight().is_none();
        if waits { self.history.expiry() } else { Time::MAX }
    }

    fn begin(&mut self, now: Time, path: &Path, out: &mut dyn Driver) {
        if let Some(breaker) = &mut self.breaker {
            breaker.begin(now, path.reports);
        }
        for stream in &mut self.streams {
            stream.begin(now);
            if let Some(interval) = stream.video() {
                out.record().video_switched(now, self.flow, interval);
            }
        }
        self.limits.wanted = self.wanted();
        self.update_least(now);
        let Life::Waiting(controller) = std::mem::replace(&mut self.life, Life::Over) else { return };
        let rng = Stream::new(self.seed, &self.name, "controller");
        match ControllerHost::new(format!("controller of {}", self.name), controller, rng, now, &self.limits)
        {
            Ok(mut host) => {
                host.notes.wanted = out.record().level() >= Level::Series;
                self.life = Life::Running(Box::new(host));
                self.apply(now, out, true);
            }
            Err(failure) => out.fail(failure.reason),
        }
        self.schedule_media();
    }

    /// Ends sending for good, and drops the queued packets.
    pub(crate) fn end(&mut self) {
        self.life = Life::Over;
        self.pacer.clear();
        self.update_wakeup();
    }

    /// Computes when it has to be called next.
    fn update_wakeup(&mut self) {
        self.wakeup = match self.life {
            Life::Waiting(_) => self.start,
            Life::Over => Time::MAX,
            // the rest of its last frame stays in the queue
            Life::Running(_) if self.packets_left == 0 => self.stop,
            Life::Running(_) => self
                .pacer
                .due(self.in_flight())
                .min(self.forget_due())
                .min(self.media_due)
                .min(self.decision.alarm.unwrap_or(Time::MAX))
                .min(self.stop),
        };
    }

    fn schedule_media(&mut self) {
        self.media_due = self.streams.iter().map(OutStream::due).min().unwrap_or(Time::MAX);
    }

    /// Switches sources on and off and takes the frames that are due.
    fn media(&mut self, now: Time, out: &mut dyn Driver) {
        let (mut switched, mut adapted) = (false, false);
        self.take_requests(now);
        for index in 0..self.streams.len() {
            if self.streams[index].switch(now) {
                switched = true;
                if let Some(interval) = self.streams[index].video() {
                    out.record().video_switched(now, self.flow, interval);
                }
                self.breaker.iter_mut().for_each(|breaker| breaker.switched(index));
            }
            let before = self.streams[index].left_out();
            let paused = self.paused();
            while let Some(frame) = self.streams[index].frame(now, self.stamped_header, paused) {
                adapted |= self.note_step(now, index, out);
                self.enqueue(now, index, frame, out);
            }
            let left_out = self.streams[index].left_out();
            (before..left_out).for_each(|_| out.record().left_out(now, self.flow));
            if left_out > before && out.record().level() >= Level::Series {
                out.record().internal(now, self.flow, "frames_left_out", left_out as f64);
            }
            if let Some(reason) = self.streams[index].failure() {
                out.fail(reason.to_owned());
            }
        }
        self.schedule_media();
        if switched {
            self.update_least(now);
            self.share_target(now);
            self.note_least(now, out);
            self.refresh_limits(now, out);
        } else if self.repair.as_mut().is_some_and(|repair| repair.pass(now)) || adapted {
            self.share_target(now);
        }
    }

    fn enqueue(&mut self, now: Time, index: usize, frame: stream::Numbered, out: &mut dyn Driver) {
        let stream = &self.streams[index];
        let signalled = stream.signalled;
        if signalled.frames {
            out.record().frame_sent(
                now,
                &FrameSent {
                    flow: self.flow,
                    video: signalled.kind == MediaKind::Video,
                    frame: frame.number,
                    size: Size::from_bytes(u64::from(frame.bytes)),
                    key: frame.first.flags & Frame::KEY != 0,
                },
            );
        }
        let limit = if stream.packet_size().is_some() { u16::MAX } else { self.payload };
        let series = out.record().level() >= Level::Series;
        let unsliced = [frame.bytes];
        let slices = stream.slices().unwrap_or(&unsliced);
        let rate = self.decision.target.max(self.sent_least());
        if !self.decision.drain_queue && self.pacer.backlog() > rate.bytes_in(self.queue_limit) {
            self.skipped_frames += 1;
            let packets = slices.iter().map(|bytes| bytes.div_ceil(limit.into())).sum();
            out.record().skipped(now, self.flow, packets, Size::from_bytes(u64::from(frame.bytes)));
            if series {
                out.record().internal(now, self.flow, "frames_skipped", self.skipped_frames as f64);
            }
            return;
        }
        let audio = signalled.kind == MediaKind::Audio;
        let before = self.pacer.backlog();
        let first = Queued { stream: index as u8, ..frame.first };
        let extensions = stream.extensions;
        if let Some(breaker) = &mut self.breaker {
            let packets = slices.iter().map(|bytes| bytes.div_ceil(limit.into())).sum::<u32>();
            let headers = u64::from(packets) * u64::from(self.stamped_header);
            breaker.frame(now, index, packets, u64::from(frame.bytes) + headers);
        }
        for packet in crate::packetizer::packets(slices, limit, first) {
            self.pacer
                .push(audio, Queued { marks: extensions.marks_len(packet.frame_position()) as u8, ..packet });
        }
        if series && signalled.frames {
            self.note_backlog(now, out);
        }
        if let Life::Running(host) = &self.life
            && host.needs_frames()
        {
            let backlog = self.pacer.backlog();
            let frame = NewFrame {
                video: !audio,
                size: backlog - before,
                backlog,
                pacer_delay: self.pacer.delay(now),
            };
            self.call(now, out, false, |host| host.frame(now, &frame));
        }
    }

    fn note_backlog(&self, now: Time, out: &mut dyn Driver) {
        out.record().internal(now, self.flow, "pacer_backlog", self.pacer.backlog().as_bytes() as f64);
    }

    /// Calls the controller and applies its decision. `always_record`: the decision is recorded even if it is the same
    /// as before.
    fn call(
        &mut self,
        now: Time,
        out: &mut dyn Driver,
        always_record: bool,
        event: impl FnOnce(&mut ControllerHost) -> Result<&Decision, Failure>,
    ) {
        let Life::Running(host) = &mut self.life else { return };
        if let Err(failure) = event(host) {
            // the driver names the endpoint and the time
            out.fail(failure.reason);
            return;
        }
        for (name, value) in &host.notes.values {
            out.record().internal(now, self.flow, name, *value);
        }
        self.apply(now, out, always_record);
    }

    /// Applies the decision of the controller: called after every packet, and mostly nothing is new.
    fn apply(&mut self, now: Time, out: &mut dyn Driver, always_record: bool) {
        let Life::Running(host) = &self.life else { return };
        let decision = host.decision();
        let same = decision.same_but_alarm(&self.decision);
        if always_record || !same {
            out.record().decision(now, self.flow, decision);
        }
        self.decision.alarm = decision.alarm;
        if same {
            return;
        }
        let paced = self.with_least(decision);
        self.pacer.decide(now, &paced);
        let retarget = (decision.target, decision.pushback) != (self.decision.target, self.decision.pushback);
        // the pacer has the probes now
        self.decision = Decision { probes: Probes::NONE, ..*decision };
        if retarget {
            self.app_limit.set_target(now, self.decision.target);
            self.share_target(now);
            self.note_least(now, out);
        }
    }

    /// Counts the stamp, which is known from the first packet on, in the sizes that the sources and the pacer use.
    fn set_header(&mut self, now: Time, header: u32) {
        self.stamped_header = header;
        let counted = header + self.below;
        self.pacer.set_header(counted, counted + u32::from(self.padding_payload));
        self.streams.iter_mut().for_each(|stream| stream.set_header(counted));
        self.update_least(now);
        self.share_target(now);
    }

    /// Passes the limits to the controller if they have changed.
    fn refresh_limits(&mut self, now: Time, out: &mut dyn Driver) {
        let limits = Limits { wanted: self.wanted(), app_limited: self.app_limit.limited(), ..self.limits };
        if limits != self.limits {
            self.set_limits(now, limits, out);
        }
    }

    fn set_limits(&mut self, now: Time, limits: Limits, out: &mut dyn Driver) {
        self.limits = Limits { route_changed: false, ..limits };
        self.call(now, out, true, |host| host.limits(now, &limits));
    }

    /// Its state for coupled congestion control; none while it is not running, or pauses.
    pub(crate) fn coupled(&self) -> Option<FlowUpdate> {
        let Life::Running(host) = &self.life else { return None };
        if !self.streams.iter().any(OutStream::on) {
            return None;
        }
        Some(FlowUpdate {
            initial: self.limits.start,
            rate: host.coupled_rate()?,
            desired: self.limits.desired(),
            rtt: self.rtt,
        })
    }

    /// Applies the rate that coupling assigns to it.
    pub(crate) fn assign(&mut self, now: Time, rate: Rate, path: &Path, out: &mut dyn Driver) {
        if out.record().level() >= Level::Series {
            out.record().internal(now, self.flow, "coupled_rate", rate.as_bps_f64());
        }
        self.call(now, out, true, |host| host.coupled(now, rate));
        self.work(now, path, out);
    }

    /// Tells the controller that the route has changed.
    pub(crate) fn route_changed(&mut self, now: Time, path: &Path, out: &mut dyn Driver) {
        if let Some(repair) = &mut self.repair {
            repair.route_changed();
        }
        self.history.route_changed();
        self.set_limits(now, Limits { route_changed: true, ..self.limits }, out);
        self.work(now, path, out);
    }

    /// The sender reports of the streams that have sent since the last report but one.
    pub(crate) fn reports(&mut self, now: Time, path: &Path) -> Vec<rtcp::SenderReport> {
        if !self.is_running() {
            return Vec::new();
        }
        let clock = path.clock.date(now);
        self.streams.iter_mut().filter_map(|stream| stream.report(now, clock)).collect()
    }
}
