//! One endpoint: hands packets and alarms to its sender and its receiver, and writes the RTCP of both.

use crate::breaker::Intervals;
use crate::coupling::FlowUpdate;
use crate::receiver::Receiver;
use crate::rtcp::reports::{Parts, Reports};
use crate::rtcp::schedule::{Chance, Due, Profile, Schedule, Timing};
use crate::sender::{LimitChange, Path, Sender};
use crate::settings::{EndpointSettings, MediaKind, RtcpMinimum, RtcpMode, SettingsError, Signalled};
use std::sync::Arc;
use tidegate_core::control::Urgency;
use tidegate_core::datagram::Attachment;
use tidegate_core::driver::{DatagramInfo, Driver, Peer};
use tidegate_core::record::RtcpRecord;
use tidegate_core::rng::Draws;
use tidegate_core::wire::rtcp::{self, Bye, ReceiverReport, Sdes};
use tidegate_core::{Body, Datagram, FlowId, Frame, Kind, Rate, Span, Stream, Time};

/// One participant of an RTP session.
pub struct Endpoint {
    name: String,
    /// The SSRC in its reports while it does not send.
    ssrc: u32,
    path: Path,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    mode: RtcpMode,
    reduced_size: bool,
    schedule: Schedule,
    /// The times of reports by libwebrtc's rule, where they do not go by `schedule`.
    reports: Option<Reports>,
    rng: Stream,
    /// Whether the per-packet feedback that is due has been submitted to the schedule.
    feedback_requested: bool,
    /// Whether the repair requests that are due have been submitted to the schedule.
    repair_requested: bool,
    /// When the oldest unsent message of the receiver half was submitted.
    message_since: Option<Time>,
    wakeup: Time,
}

/// Assumed size of the first RTCP packet in bytes: an RR with one block, an SDES with a short name, and the headers
/// below (RFC 3550 section 6.3.2: "the probable size of the first RTCP packet").
const FIRST_SIZE: u32 = 28 + 32 + 28;

impl Endpoint {
    /// # Errors
    /// When a setting makes no sense; the error names it.
    pub fn new(settings: EndpointSettings) -> Result<Self, SettingsError> {
        settings.check()?;
        let reports = (settings.rtcp.minimum == RtcpMinimum::Libwebrtc).then(|| {
            let video = |streams: &[Signalled]| streams.iter().any(|stream| stream.kind == MediaKind::Video);
            let sending = settings.send.as_ref().map(|send| video(&send.signalled()));
            Reports::new(sending, settings.receive.as_ref().map(|receive| video(&receive.streams)))
        });
        let EndpointSettings { name, seed, clock, ssrc, overhead, send, receive, rtcp } = settings;
        let mut receiver = receive.map(|receive| Receiver::new(receive, clock.settings.drift, &name, seed));
        let path = Path {
            overhead,
            clock,
            reports: Intervals::default(),
            separate_reports: reports.as_ref().is_some_and(Reports::are_separate),
        };
        let sender = send
            .map(|send| Sender::new(send, &path, &name, seed))
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
        if let Some(receiver) = &mut receiver
            && rtcp.mode != RtcpMode::Free
        {
            receiver.feedback.keep_small();
        }
        let mut endpoint = Self {
            receiver,
            sender,
            ssrc,
            path,
            mode: rtcp.mode,
            reduced_size: rtcp.reduced_size,
            schedule: Schedule::new(&timing),
            reports,
            rng: Stream::new(seed, &name, "rtcp"),
            feedback_requested: false,
            repair_requested: false,
            message_since: None,
            wakeup: Time::ZERO,
            name,
        };
        endpoint.update_wakeup();
        Ok(endpoint)
    }

    /// Notes that packets take another route from now on, and tells the controller.
    pub fn route_changed(&mut self, now: Time, out: &mut dyn Driver) {
        if let Some(sender) = &mut self.sender {
            sender.route_changed(now, &self.path, out);
        }
        self.update_wakeup();
    }

    /// Sets limits of what it sends.
    pub fn limit(&mut self, now: Time, change: &LimitChange, out: &mut dyn Driver) {
        if let Some(sender) = &mut self.sender {
            sender.limit(now, change, &self.path, out);
        }
        self.update_wakeup();
    }

    /// Ends the repair of what it receives, or begins it anew.
    pub fn switch_repair(&mut self, now: Time, on: bool, out: &mut dyn Driver) {
        if let Some(receiver) = &mut self.receiver {
            receiver.switch_repair(now, on, out);
        }
        self.update_wakeup();
    }

    /// State of its sender for coupled congestion control; none without a running sender or while that pauses.
    #[must_use]
    pub fn coupled(&self) -> Option<FlowUpdate> {
        self.sender.as_ref().and_then(Sender::coupled)
    }

    /// Applies the rate that coupling assigns to its sender.
    pub fn assign(&mut self, now: Time, rate: Rate, out: &mut dyn Driver) {
        if let Some(sender) = &mut self.sender {
            sender.assign(now, rate, &self.path, out);
        }
        self.update_wakeup();
    }

    fn update_wakeup(&mut self) {
        let mut wakeup = self.report_due();
        if let Some(sender) = &self.sender {
            wakeup = wakeup.min(sender.wakeup());
        }
        if let Some(receiver) = &self.receiver {
            wakeup = wakeup.min(receiver.wakeup());
            match self.mode {
                RtcpMode::Free => wakeup = wakeup.min(receiver.feedback.due()).min(receiver.request_due()),
                RtcpMode::Avpf => {
                    if !self.feedback_requested {
                        wakeup = wakeup.min(receiver.feedback.due());
                    }
                    if !self.repair_requested {
                        wakeup = wakeup.min(receiver.request_due());
                    }
                }
                RtcpMode::Avp => {}
            }
        }
        self.wakeup = wakeup;
    }

    /// When the next report, or an early packet, is due.
    fn report_due(&self) -> Time {
        self.reports.as_ref().map_or_else(|| self.schedule.due(), Reports::due)
    }

    /// The SSRC in its reports: that of its sender, or else its own.
    fn reporter(&self) -> u32 {
        self.sender.as_ref().and_then(Sender::ssrc).unwrap_or(self.ssrc)
    }

    /// Sends the message of the receiver half, or schedules it, as its urgency demands.
    fn act_on(&mut self, now: Time, urgency: Urgency, out: &mut dyn Driver) {
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
                RtcpMode::Avpf => self.request_early(now, out),
            }
        }
    }

    /// Sends the per-packet feedback that is due, or submits it to the schedule.
    fn feedback_due(&mut self, now: Time, out: &mut dyn Driver) {
        match self.mode {
            // between the compounds (RFC 5506)
            RtcpMode::Free => {
                let mut packets = self.take_feedback(now);
                if !packets.is_empty() {
                    self.send_rtcp(now, &mut packets, out);
                }
            }
            RtcpMode::Avpf if !self.feedback_requested => {
                self.feedback_requested = true;
                self.request_early(now, out);
            }
            RtcpMode::Avp | RtcpMode::Avpf => {}
        }
    }

    /// Sends the repair requests that are due, or submits them to the schedule: they are urgent, as feedback is.
    fn request_repair(&mut self, now: Time, out: &mut dyn Driver) {
        if self.receiver.as_ref().is_none_or(|receiver| receiver.request_due() > now) {
            return;
        }
        match self.mode {
            RtcpMode::Free => {
                self.send_rtcp(now, &mut Vec::new(), out);
            }
            RtcpMode::Avpf if !self.repair_requested => {
                self.repair_requested = true;
                self.request_early(now, out);
            }
            RtcpMode::Avp | RtcpMode::Avpf => {}
        }
    }

    /// Sends feedback early if the schedule allows it (RFC 4585 section 3.5.2). If not, feedback goes with the next
    /// regular packet, however late: its arrival times are still news then.
    fn request_early(&mut self, now: Time, out: &mut dyn Driver) {
        if self.schedule.feedback(now, None, || self.rng.uniform()) == Chance::Early(now) {
            self.send_early(now, out);
        }
    }

    fn send_early(&mut self, now: Time, out: &mut dyn Driver) {
        let size = self.send_minimal(now, out);
        self.schedule.sent_early(size);
    }

    /// Sends the pending feedback: alone (RFC 5506), or in a minimal compound (RFC 4585 section 3.1).
    fn send_minimal(&mut self, now: Time, out: &mut dyn Driver) -> u32 {
        let mut packets = if self.reduced_size { Vec::new() } else { self.report(now, Parts::ALL) };
        packets.extend(self.take_feedback(now));
        self.send_rtcp(now, &mut packets, out)
    }

    fn take_feedback(&mut self, now: Time) -> Vec<rtcp::Packet> {
        self.feedback_requested = false;
        let (reporter, local_time) = (self.reporter(), self.path.clock.date(now));
        let receiver = self.receiver.as_mut();
        receiver.map_or_else(Vec::new, |receiver| receiver.feedback.take(now, local_time, reporter))
    }

    /// SR or RR, and SDES: the report on what has been sent and received by now. With `parts`, on one of them alone.
    fn report(&mut self, now: Time, parts: Parts) -> Vec<rtcp::Packet> {
        let reporter = self.reporter();
        let (sender, receiver) = (
            self.sender.as_mut().filter(|_| parts.sending),
            self.receiver.as_mut().filter(|_| parts.receiving),
        );
        let mut reports = sender.map_or_else(Vec::new, |sender| sender.reports(now, &self.path));
        let blocks = receiver.map_or_else(Vec::new, |receiver| receiver.blocks(now));
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
        let receiver = self.receiver.as_ref().filter(|_| parts.receiving);
        packets.extend(receiver.and_then(|receiver| receiver.feedback.ecn_summary(reporter)));
        packets
    }

    /// Sends what is due by the schedule, or by libwebrtc's rule.
    fn report_regularly(&mut self, now: Time, out: &mut dyn Driver) {
        if self.reports.is_some() {
            return self.send_reports(now, out);
        }
        match self.schedule.expire(now, self.waiting(now), || self.rng.uniform()) {
            // with two members, this participant's goodbye never backs off
            Due::Nothing | Due::Goodbye => {}
            Due::Regular => self.send_compound(now, Vec::new(), out),
            Due::Early => self.send_early(now, out),
            Due::Minimal => {
                let size = self.send_minimal(now, out);
                self.schedule.sent(now, size, || self.rng.uniform());
            }
        }
    }

    /// Sends the reports that are due by libwebrtc's rule. A sender that has not sent lately has nothing to say, if the
    /// end receives, too: a receiver report is the other direction's.
    fn send_reports(&mut self, now: Time, out: &mut dyn Driver) {
        let Some(reports) = &self.reports else { return };
        let parts = reports.first_due();
        let mut packets = self.report(now, parts);
        let of_receiver = self.receiver.is_some() && !parts.receiving && reports_nothing(&packets);
        if !of_receiver {
            let size = self.send_rtcp(now, &mut packets, out);
            self.schedule.received(size);
        }
        let bytes = self.sender.as_ref().map_or(0, Sender::sent_bytes);
        if let Some(reports) = &mut self.reports {
            reports.reported(now, parts, bytes, || self.rng.uniform());
        }
    }

    /// Sends a regular compound packet, with a BYE for the SSRCs in `goodbye`.
    fn send_compound(&mut self, now: Time, goodbye: Vec<u32>, out: &mut dyn Driver) {
        let mut packets = self.report(now, Parts::ALL);
        if self.mode != RtcpMode::Free {
            packets.extend(self.take_feedback(now));
        }
        if !goodbye.is_empty() {
            packets.push(rtcp::Packet::Bye(Bye { ssrcs: goodbye, reason: None }));
        }
        let size = self.send_rtcp(now, &mut packets, out);
        self.schedule.sent(now, size, || self.rng.uniform());
    }

    /// Sends `packets` and the messages of the receiver half as one datagram; returns its size on the wire.
    fn send_rtcp(&mut self, now: Time, packets: &mut Vec<rtcp::Packet>, out: &mut dyn Driver) -> u32 {
        let (since, reporter) = (self.message_since.take(), self.reporter());
        self.repair_requested = false;
        if let Some(receiver) = &mut self.receiver {
            // a goodbye stays last (RFC 3550 section 6.1), after the packet that may need padding (section 6.4.1)
            let tail = |packet: &rtcp::Packet| matches!(packet, rtcp::Packet::Twcc(_) | rtcp::Packet::Bye(_));
            let end = packets.iter().position(tail).unwrap_or(packets.len());
            let mut messages = if since.is_some() { receiver.message(now, out) } else { Vec::new() };
            messages.extend(receiver.requests(now, reporter));
            for packet in &mut messages {
                match packet {
                    // the receiver half does not know the SSRC of its endpoint
                    rtcp::Packet::Remb(remb) => remb.sender_ssrc = reporter,
                    rtcp::Packet::App(app) if app.ssrc == 0 => app.ssrc = reporter,
                    _ => {}
                }
            }
            packets.splice(end..end, messages);
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
        out.send(now, datagram, DatagramInfo { flow, kind: Kind::Rtcp, frame: Frame::default() });
        size
    }

    /// The flow that its RTCP belongs to: the one that it receives, or else the one that it sends.
    fn rtcp_flow(&self) -> FlowId {
        let received = self.receiver.as_ref().map(Receiver::flow);
        received.or(self.sender.as_ref().map(Sender::flow)).unwrap_or_default()
    }

    /// Whether feedback or a message waits for the next packet.
    fn waiting(&self, now: Time) -> bool {
        let due = self
            .receiver
            .as_ref()
            .is_some_and(|receiver| receiver.feedback.due().min(receiver.request_due()) <= now);
        due || self.message_since.is_some()
    }

    /// Says goodbye for the streams that have ended, and leaves the session unless it still receives.
    fn goodbye(&mut self, now: Time, out: &mut dyn Driver) {
        let ssrcs: Vec<u32> = self.sender.as_ref().map_or_else(Vec::new, |sender| sender.ssrcs().collect());
        self.send_compound(now, ssrcs, out);
        if let Some(sender) = &mut self.sender {
            out.record().ended(now, sender.flow());
            sender.end();
        }
        if self.receiver.as_ref().is_none_or(Receiver::is_deserted) {
            self.leave();
        }
        self.count_senders();
    }

    fn leave(&mut self) {
        self.schedule.leave();
        if let Some(reports) = &mut self.reports {
            reports.leave();
        }
    }

    fn count_senders(&mut self) {
        let we_sent = self.sender.as_ref().is_some_and(|sender| sender.ssrc().is_some());
        let they_sent = self.receiver.as_ref().is_some_and(|receiver| receiver.heard);
        self.schedule.set_senders(u32::from(we_sent) + u32::from(they_sent), we_sent);
    }

    /// Joins the session, which has two members with the peer.
    fn join(&mut self, now: Time) {
        self.count_senders();
        self.schedule.join(now, 2, || self.rng.uniform());
        if let Some(reports) = &mut self.reports {
            reports.join(now);
        }
    }

    fn rtcp(&mut self, now: Time, bytes: &[u8], size: u32, out: &mut dyn Driver) {
        // a packet that cannot be parsed is as good as lost: hostile bytes must not end a run
        let Ok(packets) = rtcp::decode(bytes) else {
            let flow = self.sender.as_ref().map_or_else(|| self.rtcp_flow(), Sender::flow);
            out.record().refused(now, flow, 1);
            return;
        };
        self.join(now);
        // freely sent feedback has no share of bandwidth to keep; in the other modes each packet counts (RFC 5506)
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
                // no member remains to report to
                self.leave();
            }
        }
        if let Some(sender) = &mut self.sender {
            let (local, peer) = self.reports.as_ref().map_or_else(
                || (self.schedule.deterministic(), self.schedule.peer_interval()),
                Reports::intervals,
            );
            self.path.reports = Intervals { timeout: self.schedule.timeout_interval(), local, peer };
            sender.rtcp(now, packets, &self.path, out);
        }
    }
}

/// Whether a report begins with no sender report and has no blocks.
fn reports_nothing(packets: &[rtcp::Packet]) -> bool {
    matches!(packets.first(), Some(rtcp::Packet::ReceiverReport(report)) if report.blocks.is_empty())
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
            self.act_on(now, urgency, out);
            if due {
                self.feedback_due(now, out);
            }
            self.request_repair(now, out);
        }
        if self.report_due() <= now {
            self.report_regularly(now, out);
        }
        self.update_wakeup();
    }

    fn receive(&mut self, now: Time, datagram: &Datagram, out: &mut dyn Driver) {
        if let Body::Rtp(body) = &datagram.body {
            if let Some(receiver) = &mut self.receiver {
                let first = !receiver.heard;
                if let Some(sender) = &self.sender {
                    receiver.feedback.ticks.set_send_rate(sender.may_send());
                }
                let Path { overhead, ref clock, .. } = self.path;
                let urgency = receiver.packet(now, datagram, body, overhead, clock.date(now), out);
                if first {
                    self.join(now);
                }
                self.act_on(now, urgency, out);
                self.request_repair(now, out);
            }
        } else if let Some(bytes) = datagram.rtcp() {
            self.rtcp(now, bytes, datagram.size, out);
        }
        self.update_wakeup();
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.rng.draws());
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
