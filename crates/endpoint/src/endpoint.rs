//! One endpoint: it hands packets and alarms to its sender and its receiver, and writes the RTCP of both.

use crate::breaker::Intervals;
use crate::coupling::Told;
use crate::receiver::Receiver;
use crate::reception::clock;
use crate::rtcp::schedule::{Chance, Due, Profile, Schedule, Timing};
use crate::sender::{Path, Sender};
use crate::settings::{EndpointSettings, RtcpMode, SettingsError};
use std::sync::Arc;
use tidegate_core::control::Urgency;
use tidegate_core::datagram::Attachment;
use tidegate_core::driver::{About, Driver, Peer};
use tidegate_core::record::RtcpRecord;
use tidegate_core::rng::Draws;
use tidegate_core::wire::rtcp::{self, Bye, ReceiverReport, Sdes};
use tidegate_core::{Body, Datagram, FlowId, Frame, Kind, Rate, Span, Stream, Time};

/// One participant of an RTP session.
pub struct Endpoint {
    name: String,
    /// The SSRC under which it reports while it does not send.
    ssrc: u32,
    path: Path,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    mode: RtcpMode,
    reduced_size: bool,
    schedule: Schedule,
    luck: Stream,
    /// Whether the schedule has been asked about the per-packet feedback that is due.
    asked: bool,
    /// Whether the schedule has been asked about the requests of repair that are due.
    repair_asked: bool,
    /// Since when the receiver half has had something to say.
    message_since: Option<Time>,
    wakeup: Time,
}

/// RTCP's first guess at the size of its packets: an RR with one block and an SDES with a short name,
/// and the headers below (RFC 3550 section 6.3.2: "the probable size of the first RTCP packet").
const FIRST_SIZE: u32 = 28 + 32 + 28;

impl Endpoint {
    /// # Errors
    /// When a setting makes no sense; the error names it.
    pub fn new(settings: EndpointSettings) -> Result<Self, SettingsError> {
        settings.check()?;
        let EndpointSettings { name, seed, clock_offset, ssrc, overhead, send, receive, rtcp } = settings;
        let sender = send
            .map(|send| Sender::new(send, overhead, &name, seed))
            .transpose()
            .map_err(|problem| SettingsError { endpoint: name.clone(), problem })?;
        let timing = Timing {
            profile: match rtcp.mode {
                RtcpMode::Free | RtcpMode::Avp => Profile::Avp,
                RtcpMode::Avpf => Profile::Avpf(rtcp.avpf),
            },
            session: rtcp.session_bandwidth,
            minimum: rtcp.minimum.span(rtcp.session_bandwidth),
            first_size: FIRST_SIZE,
        };
        let mut receiver = receive.map(|receive| Receiver::new(receive, &name, seed));
        if let Some(receiver) = &mut receiver
            && rtcp.mode != RtcpMode::Free
        {
            receiver.feedback.keep_small();
        }
        let mut endpoint = Self {
            receiver,
            sender,
            ssrc,
            path: Path { overhead, clock_offset, reports: Intervals::default() },
            mode: rtcp.mode,
            reduced_size: rtcp.reduced_size,
            schedule: Schedule::new(&timing),
            luck: Stream::new(seed, &name, "rtcp"),
            asked: false,
            repair_asked: false,
            message_since: None,
            wakeup: Time::ZERO,
            name,
        };
        endpoint.update_wakeup();
        Ok(endpoint)
    }

    /// Takes note that packets go another way from now on, and tells the controller so.
    pub fn route_changed(&mut self, now: Time, out: &mut dyn Driver) {
        if let Some(sender) = &mut self.sender {
            sender.route_changed(now, &self.path, out);
        }
        self.update_wakeup();
    }

    /// What its sender tells to those that it is coupled with; nothing while it has none at work, or one that pauses.
    #[must_use]
    pub fn coupled(&self) -> Option<Told> {
        self.sender.as_ref().and_then(Sender::coupled)
    }

    /// Lets its sender go on with the rate that coupling gives it.
    pub fn assign(&mut self, now: Time, rate: Rate, out: &mut dyn Driver) {
        if let Some(sender) = &mut self.sender {
            sender.assign(now, rate, &self.path, out);
        }
        self.update_wakeup();
    }

    fn update_wakeup(&mut self) {
        let mut at = self.schedule.due();
        if let Some(sender) = &self.sender {
            at = at.min(sender.wakeup());
        }
        if let Some(receiver) = &self.receiver {
            at = at.min(receiver.wakeup());
            match self.mode {
                RtcpMode::Free => at = at.min(receiver.feedback.due()).min(receiver.request_due()),
                RtcpMode::Avpf => {
                    if !self.asked {
                        at = at.min(receiver.feedback.due());
                    }
                    if !self.repair_asked {
                        at = at.min(receiver.request_due());
                    }
                }
                RtcpMode::Avp => {}
            }
        }
        self.wakeup = at;
    }

    /// The SSRC under which it reports.
    fn reporter(&self) -> u32 {
        self.sender.as_ref().and_then(Sender::ssrc).unwrap_or(self.ssrc)
    }

    /// Does what the receiver half has asked for.
    fn ask(&mut self, now: Time, urgency: Urgency, out: &mut dyn Driver) {
        if urgency == Urgency::None {
            return;
        }
        self.message_since.get_or_insert(now);
        if urgency != Urgency::Regular {
            match self.mode {
                RtcpMode::Free => {
                    self.send_rtcp(now, &mut Vec::new(), out);
                }
                RtcpMode::Avp => {}
                RtcpMode::Avpf => self.request(now, out),
            }
        }
    }

    /// Per-packet feedback is due.
    fn feedback_due(&mut self, now: Time, out: &mut dyn Driver) {
        match self.mode {
            // between the compounds (RFC 5506)
            RtcpMode::Free => {
                let mut packets = self.take_feedback(now);
                if !packets.is_empty() {
                    self.send_rtcp(now, &mut packets, out);
                }
            }
            RtcpMode::Avpf if !self.asked => {
                self.asked = true;
                self.request(now, out);
            }
            RtcpMode::Avp | RtcpMode::Avpf => {}
        }
    }

    /// Repair may have something to ask for: that is urgent, and goes as feedback does.
    fn request_repair(&mut self, now: Time, out: &mut dyn Driver) {
        if self.receiver.as_ref().is_none_or(|receiver| receiver.request_due() > now) {
            return;
        }
        match self.mode {
            RtcpMode::Free => {
                self.send_rtcp(now, &mut Vec::new(), out);
            }
            RtcpMode::Avpf if !self.repair_asked => {
                self.repair_asked = true;
                self.request(now, out);
            }
            RtcpMode::Avp | RtcpMode::Avpf => {}
        }
    }

    /// Asks whether feedback may go early (RFC 4585 section 3.5.2). If not, it goes with the next regular
    /// packet, also where that is late: feedback on what has arrived is still news then.
    fn request(&mut self, now: Time, out: &mut dyn Driver) {
        if self.schedule.feedback(now, None, || self.luck.uniform()) == Chance::Early(now) {
            self.send_early(now, out);
        }
    }

    fn send_early(&mut self, now: Time, out: &mut dyn Driver) {
        let size = self.send_minimal(now, out);
        self.schedule.sent_early(size);
    }

    /// Sends the feedback that waits: alone (RFC 5506), or in a minimal compound (RFC 4585 section 3.1).
    fn send_minimal(&mut self, now: Time, out: &mut dyn Driver) -> u32 {
        let mut packets = if self.reduced_size { Vec::new() } else { self.report(now) };
        packets.extend(self.take_feedback(now));
        self.send_rtcp(now, &mut packets, out)
    }

    fn take_feedback(&mut self, now: Time) -> Vec<rtcp::Packet> {
        self.asked = false;
        let (reporter, at) = (self.reporter(), clock(now, self.path.clock_offset));
        self.receiver.as_mut().map_or_else(Vec::new, |receiver| receiver.feedback.take(now, at, reporter))
    }

    /// The report on what has been sent and received by now, and who makes it.
    fn report(&mut self, now: Time) -> Vec<rtcp::Packet> {
        let reporter = self.reporter();
        let mut reports =
            self.sender.as_mut().map_or_else(Vec::new, |sender| sender.reports(now, &self.path));
        let blocks = self.receiver.as_mut().map_or_else(Vec::new, |receiver| receiver.blocks(now));
        let mut packets = Vec::with_capacity(4);
        let mut chunks = Vec::new();
        if let Some(first) = reports.first_mut() {
            first.blocks = blocks;
            chunks.extend(reports.iter().flat_map(|report| Sdes::cname(report.ssrc, &self.name).chunks));
            packets.extend(reports.into_iter().map(rtcp::Packet::SenderReport));
        } else {
            chunks.extend(Sdes::cname(reporter, &self.name).chunks);
            let report = ReceiverReport { ssrc: reporter, blocks, ..Default::default() };
            packets.push(rtcp::Packet::ReceiverReport(report));
        }
        packets.push(rtcp::Packet::Sdes(Sdes { chunks }));
        let receiver = self.receiver.as_ref();
        packets.extend(receiver.and_then(|receiver| receiver.feedback.ecn_summary(reporter)));
        packets
    }

    /// Sends a compound of what is to be reported by now.
    fn send_compound(&mut self, now: Time, goodbye: Vec<u32>, out: &mut dyn Driver) {
        let mut packets = self.report(now);
        if self.mode != RtcpMode::Free {
            packets.extend(self.take_feedback(now));
        }
        if !goodbye.is_empty() {
            packets.push(rtcp::Packet::Bye(Bye { ssrcs: goodbye, reason: None }));
        }
        let size = self.send_rtcp(now, &mut packets, out);
        self.schedule.sent(now, size, || self.luck.uniform());
    }

    /// Sends `packets` as one datagram, with what the receiver half has to say; gives its size on the wire.
    fn send_rtcp(&mut self, now: Time, packets: &mut Vec<rtcp::Packet>, out: &mut dyn Driver) -> u32 {
        let (since, reporter) = (self.message_since.take(), self.reporter());
        self.repair_asked = false;
        if let Some(receiver) = &mut self.receiver {
            // a goodbye stays last (RFC 3550 section 6.1), and before it what may need padding (section 6.4.1)
            let tail = |packet: &rtcp::Packet| matches!(packet, rtcp::Packet::Twcc(_) | rtcp::Packet::Bye(_));
            let end = packets.iter().position(tail).unwrap_or(packets.len());
            let mut said = if since.is_some() { receiver.message(now, out) } else { Vec::new() };
            said.extend(receiver.requests(now, reporter));
            for packet in &mut said {
                match packet {
                    // a half does not know under which SSRC it speaks
                    rtcp::Packet::Remb(remb) => remb.sender_ssrc = reporter,
                    rtcp::Packet::App(app) if app.ssrc == 0 => app.ssrc = reporter,
                    _ => {}
                }
            }
            packets.splice(end..end, said);
        }
        if packets.is_empty() {
            return 0;
        }
        let mut bytes = Vec::with_capacity(128);
        if let Err(error) = rtcp::encode(packets, &mut bytes) {
            out.fail(format!("{} at {now}: RTCP: {error}", self.name));
            return 0;
        }
        let size = bytes.len() as u32 + self.path.overhead;
        let flow = self.rtcp_flow();
        out.record().rtcp(
            now,
            &RtcpRecord {
                flow,
                from_receiver: self.receiver.is_some(),
                size: tidegate_core::Size::from_bytes(u64::from(size)),
                contents: rtcp::Contents::of(packets),
                waited: since.map_or(Span::ZERO, |since| now - since),
            },
        );
        let datagram = Datagram {
            size,
            body: Body::Rtcp,
            attachment: Some(Arc::new(Attachment::Rtcp(bytes))),
            ..Datagram::default()
        };
        out.send(now, datagram, About { flow, kind: Kind::Rtcp, frame: Frame::default() });
        size
    }

    /// The flow that its RTCP belongs to: what it receives, or else what it sends.
    fn rtcp_flow(&self) -> FlowId {
        let received = self.receiver.as_ref().map(Receiver::flow);
        received.or(self.sender.as_ref().map(Sender::flow)).unwrap_or_default()
    }

    /// Whether there is feedback that the next packet would carry.
    fn waiting(&self, now: Time) -> bool {
        let due = self
            .receiver
            .as_ref()
            .is_some_and(|receiver| receiver.feedback.due().min(receiver.request_due()) <= now);
        due || self.message_since.is_some()
    }

    /// Says goodbye for the streams that have ended, and to the session if it receives nothing (any more) either.
    fn goodbye(&mut self, now: Time, out: &mut dyn Driver) {
        let ssrcs: Vec<u32> = self.sender.as_ref().map_or_else(Vec::new, |sender| sender.ssrcs().collect());
        self.send_compound(now, ssrcs, out);
        if let Some(sender) = &mut self.sender {
            out.record().ended(now, sender.flow());
            sender.end();
        }
        if self.receiver.as_ref().is_none_or(Receiver::is_deserted) {
            self.schedule.leave();
        }
        self.count_senders();
    }

    fn count_senders(&mut self) {
        let we_sent = self.sender.as_ref().is_some_and(|sender| sender.ssrc().is_some());
        let they_sent = self.receiver.as_ref().is_some_and(|receiver| receiver.heard);
        self.schedule.set_senders(u32::from(we_sent) + u32::from(they_sent), we_sent);
    }

    /// Joins the session: with the peer there are two members.
    fn join(&mut self, now: Time) {
        self.count_senders();
        self.schedule.join(now, 2, || self.luck.uniform());
    }

    fn rtcp(&mut self, now: Time, bytes: &[u8], size: u32, out: &mut dyn Driver) {
        // what cannot be read is as good as lost: hostile bytes must not end a run
        let Ok(packets) = rtcp::decode(bytes) else {
            let flow = self.sender.as_ref().map_or_else(|| self.rtcp_flow(), Sender::flow);
            out.record().refused(now, flow, 1);
            return;
        };
        self.join(now);
        // feedback that goes whenever it likes has no share to keep; else every packet counts (RFC 5506)
        if self.mode != RtcpMode::Free || rtcp::is_compound(&packets) {
            self.schedule.received(size);
        }
        if let Some(receiver) = &mut self.receiver {
            for packet in &packets {
                match packet {
                    rtcp::Packet::SenderReport(report) => {
                        receiver.sender_report(now, report.ssrc, report.middle());
                    }
                    rtcp::Packet::Bye(bye) => receiver.bye(now, &bye.ssrcs),
                    _ => {}
                }
            }
            if receiver.is_deserted() && self.sender.as_ref().is_none_or(|sender| sender.ssrc().is_none()) {
                // nobody is left to report to
                self.schedule.leave();
            }
        }
        if let Some(sender) = &mut self.sender {
            self.path.reports = Intervals {
                timeout: self.schedule.timeout_interval(),
                own: self.schedule.deterministic(),
                peer: self.schedule.peer_interval(),
            };
            sender.rtcp(now, packets, &self.path, out);
        }
    }
}

impl Peer for Endpoint {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_wakeup(&self) -> Option<Time> {
        (self.wakeup != Time::MAX).then_some(self.wakeup)
    }

    fn advance(&mut self, now: Time, out: &mut dyn Driver) {
        if now < self.wakeup {
            return;
        }
        if let Some(sender) = &mut self.sender
            && sender.wakeup() <= now
        {
            let begins = sender.start() <= now;
            let ended = sender.advance(now, &self.path, out);
            if ended {
                self.goodbye(now, out);
            } else if begins {
                self.join(now);
            }
        }
        if let Some(receiver) = &mut self.receiver {
            let urgency = receiver.advance(now, out);
            let due = receiver.feedback.due() <= now;
            self.ask(now, urgency, out);
            if due {
                self.feedback_due(now, out);
            }
            self.request_repair(now, out);
        }
        if self.schedule.due() <= now {
            match self.schedule.expire(now, self.waiting(now), || self.luck.uniform()) {
                // this participant never waits with its goodbye: there are two members
                Due::Nothing | Due::Goodbye => {}
                Due::Regular => self.send_compound(now, Vec::new(), out),
                Due::Early => self.send_early(now, out),
                Due::Minimal => {
                    let size = self.send_minimal(now, out);
                    self.schedule.sent(now, size, || self.luck.uniform());
                }
            }
        }
        self.update_wakeup();
    }

    fn receive(&mut self, now: Time, datagram: &Datagram, out: &mut dyn Driver) {
        if let Body::Rtp(body) = &datagram.body {
            if let Some(receiver) = &mut self.receiver {
                let first = !receiver.heard;
                if let Some(sender) = &self.sender {
                    receiver.feedback.ticks.set_own(sender.may_send());
                }
                let Path { overhead, clock_offset, .. } = self.path;
                let urgency = receiver.packet(now, datagram, body, overhead, clock_offset, out);
                if first {
                    self.join(now);
                }
                self.ask(now, urgency, out);
                self.request_repair(now, out);
            }
        } else if let Some(bytes) = datagram.rtcp() {
            self.rtcp(now, bytes, datagram.size, out);
        }
        self.update_wakeup();
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.luck.draws());
        if let Some(sender) = &self.sender {
            sender.draws(visit);
        }
        if let Some(receiver) = &self.receiver {
            receiver.draws(visit);
        }
    }

    fn finish(&mut self, now: Time, out: &mut dyn Driver) {
        if let Some(receiver) = &mut self.receiver {
            receiver.finish(now, out);
        }
    }
}
