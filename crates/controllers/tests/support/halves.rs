//! Both halves of a scheme with messages of its own, and a path between them: a drop-tail queue of one
//! rate, a delay each way, losses and marks by chance.

use super::decisions::Decisions;
use std::collections::VecDeque;
use tidegate_controllers::find;
use tidegate_core::control::{
    Arrived, Decision, FeedbackRequest, Limits, Notes, Outgoing, ReceiverHost, Report, Sent, Urgency,
};
use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp::{self, App};
use tidegate_core::{ControllerHost, Ecn, Rate, Size, Span, Stream, Time};

/// A packet on its way.
struct Data {
    at: Time,
    sequence: u64,
    size: Size,
    stamp: Option<Extension>,
    ecn: Ecn,
}

pub struct Halves {
    pub sender: ControllerHost,
    pub receiver: ReceiverHost,
    pub now: Time,
    /// All that the sender has decided, and what the receiver has asked for.
    pub decisions: Decisions,
    pub capacity: Rate,
    pub delay: Span,
    pub queue: Span,
    pub loss: f64,
    pub marks: f64,
    pub feedback_loss: f64,
    /// Bytes of each packet.
    pub size: u64,
    /// The application's maximum rate; zero: it sends nothing.
    pub wanted: Rate,
    /// Bytes that arrived, packets sent and feedbacks heard, since set to zero.
    pub delivered: u64,
    pub sent: u64,
    pub heard: u64,
    data: VecDeque<Data>,
    feedback: VecDeque<(Time, App)>,
    last_sent: Option<Time>,
    /// When the source makes the next packet, where a window holds them back.
    made: Time,
    free_at: Time,
    sequence: u64,
    luck: Stream,
}

/// Bytes of the RTP packet of a heartbeat: header, extensions, stamp, one byte of padding.
const HEARTBEAT: u64 = 37;

/// A packet that waits longer for the window is discarded.
const WAITS: Span = Span::from_secs(2);

impl Halves {
    pub fn new(name: &str, preset: &str, settings: &serde_json::Value, limits: &Limits, seed: u64) -> Self {
        let entry = find(name).expect("registered");
        let half = entry.receiver.expect("a half")(preset, settings).expect("valid");
        let controller = (entry.build)(preset, settings).expect("valid");
        let sender = ControllerHost::new(name, controller, Stream::new(seed, name, "s"), Time::ZERO, limits);
        Self {
            sender: sender.expect("the contract is kept"),
            receiver: ReceiverHost::new(name, half, Stream::new(seed, name, "r")),
            now: Time::ZERO,
            decisions: Decisions::default(),
            capacity: Rate::from_mbps(1),
            delay: Span::from_millis(50),
            queue: Span::from_millis(300),
            loss: 0.0,
            marks: 0.0,
            feedback_loss: 0.0,
            size: 1200,
            wanted: Rate::from_bps(u64::MAX),
            delivered: 0,
            sent: 0,
            heard: 0,
            data: VecDeque::new(),
            feedback: VecDeque::new(),
            last_sent: None,
            made: Time::ZERO,
            free_at: Time::ZERO,
            sequence: 0,
            luck: Stream::new(seed, "path", "luck"),
        }
    }

    /// Runs for `span`; `look` sees each decision and what was said with it.
    pub fn run(&mut self, span: Span, look: &mut dyn FnMut(Time, &Decision, &Notes)) {
        let end = self.now + span;
        loop {
            let none = Time::MAX;
            let alarm = self.sender.decision().alarm.unwrap_or(none);
            let half = self.receiver.alarm_at.unwrap_or(none);
            let data = self.data.front().map_or(none, |data| data.at);
            let feedback = self.feedback.front().map_or(none, |feedback| feedback.0);
            let send = self.next_send();
            let next = alarm.min(half).min(data).min(feedback).min(send);
            if next > end {
                break;
            }
            self.now = next.max(self.now);
            let now = self.now;
            if next == data {
                self.arrive(now);
            } else if next == feedback {
                let (_, app) = self.feedback.pop_front().expect("there is one");
                self.heard += 1;
                let report = Report { messages: vec![app], ..Report::default() };
                let decision = *self.sender.report(now, &report).expect("contract");
                self.decisions.add(&decision);
                look(now, &decision, &self.sender.notes);
            } else if next == half {
                let urgency = self.receiver.alarm(now).expect("contract");
                self.speak(now, urgency);
            } else if next == alarm {
                let decision = *self.sender.alarm(now).expect("contract");
                self.decisions.add(&decision);
                look(now, &decision, &self.sender.notes);
            } else {
                self.send(now);
                let decision = self.sender.decision();
                look(now, decision, &Notes::default());
            }
        }
        self.now = end;
    }

    fn send(&mut self, now: Time) {
        // nothing but a heartbeat goes while the window is shut or the source has nothing
        let media = self.media_due() <= now;
        let size = Size::from_bytes(if media { self.size } else { HEARTBEAT });
        if media && self.sender.decision().window.is_some() {
            let gap = self.rate().time_for(Size::from_bytes(self.size));
            self.made = self.made.max(now - WAITS) + gap;
        }
        let windowed = self.sender.decision().window.is_some();
        let waits = windowed && self.made <= now && self.rate() > Rate::ZERO;
        let backlog = if waits { Size::from_bytes(self.size) } else { Size::ZERO };
        let outgoing = Outgoing { sequence: self.sequence, size, backlog };
        let stamp = self.sender.stamp(now, &outgoing);
        let waits = self.free_at.saturating_since(now);
        if !self.luck.chance(self.loss) && waits <= self.queue && self.capacity > Rate::ZERO {
            self.free_at = self.free_at.max(now) + self.capacity.time_for(size);
            let ecn = if self.luck.chance(self.marks) { Ecn::Ce } else { Ecn::Ect0 };
            let at = self.free_at + self.delay;
            self.data.push_back(Data { at, sequence: self.sequence, size, stamp, ecn });
        }
        let sent = Sent { sequence: self.sequence, size, in_flight: size, backlog };
        let decision = self.sender.sent(now, &sent).expect("contract");
        self.decisions.add(decision);
        self.sequence += 1;
        self.sent += 1;
        self.last_sent = Some(now);
    }

    /// When the next packet goes at the present rate and window, or as a heartbeat.
    fn next_send(&self) -> Time {
        let beat = match (self.sender.decision().heartbeat, self.last_sent) {
            (None, _) => Time::MAX,
            (Some(_), None) => self.now,
            (Some(most), Some(last)) => last + most,
        };
        self.media_due().min(beat)
    }

    /// The source's rate.
    fn rate(&self) -> Rate {
        self.sender.decision().target.min(self.wanted)
    }

    fn media_due(&self) -> Time {
        let decision = self.sender.decision();
        let (rate, size) = (self.rate(), Size::from_bytes(self.size));
        let flight = self.sender.in_flight().unwrap_or_default();
        match (decision.window, self.last_sent) {
            _ if rate == Rate::ZERO => Time::MAX,
            (Some(window), _) if flight + size > window => Time::MAX,
            // what waits for the window is made in the meantime
            (Some(_), _) => self.made.max(self.now),
            (None, None) => self.now,
            (None, Some(last)) => {
                let gap = rate.time_for(size).max(decision.min_gap.unwrap_or_default());
                (last + gap).max(self.now)
            }
        }
    }

    fn arrive(&mut self, now: Time) {
        let data = self.data.pop_front().expect("there is one");
        self.delivered += data.size.as_bytes();
        let arrived = Arrived {
            sequence: Some(data.sequence),
            size: data.size,
            header: Size::from_bytes(20),
            padding: Size::ZERO,
            payload_type: 96,
            abs_send_time: None,
            ssrc: 1,
            rtp_sequence: data.sequence,
            timestamp: 0,
            marker: false,
            ecn: data.ecn,
            extension: data.stamp.as_ref(),
            true_delay: None,
        };
        let urgency = self.receiver.packet(now, &arrived).expect("contract");
        self.speak(now, urgency);
    }

    /// Sends what the receiver has to say as bytes, if it wants to speak.
    fn speak(&mut self, now: Time, urgency: Urgency) {
        self.decisions.add_ask(FeedbackRequest { urgency, alarm: self.receiver.alarm_at });
        if urgency == Urgency::None {
            return;
        }
        let said = self.receiver.message(now).expect("contract");
        let mut bytes = Vec::new();
        rtcp::encode(&said, &mut bytes).expect("fits");
        for packet in rtcp::decode(&bytes).expect("whole") {
            let rtcp::Packet::App(app) = packet else { panic!("an APP packet: {packet:?}") };
            if !self.luck.chance(self.feedback_loss) {
                self.feedback.push_back((now + self.delay, app));
            }
        }
    }

    /// The current waiting time at the bottleneck.
    pub fn backlog(&self) -> Span {
        self.free_at.saturating_since(self.now)
    }

    /// Tells the sender whether the application is the limit.
    pub fn want(&mut self, wanted: Rate, app_limited: bool, limits: &Limits) {
        self.wanted = wanted;
        let limits = Limits { app_limited, ..*limits };
        let decision = self.sender.limits(self.now, &limits).expect("contract");
        self.decisions.add(decision);
    }
}

/// The last value said by this name.
pub fn said(notes: &Notes, name: &str) -> Option<f64> {
    notes.values.iter().rev().find(|(said, _)| said == name).map(|&(_, value)| value)
}
