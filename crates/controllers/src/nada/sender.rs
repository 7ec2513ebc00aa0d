//! Sending half: takes feedback, updates the reference rate and decides.

use super::congestion::Congestion;
use super::ns3_rmcat::History;
use super::rate::{Mode, Reference, Update};
use super::settings::{Estimates, Placement, Settings};
use super::shaping;
use super::signals::{Packet, Signals};
use super::window::Window;
use super::wire::{Feedback, Stamp};
use tidegate_core::control::{
    Context, Controller, Decision, EcnUse, FeedbackKind, Limits, Needs, Outgoing, PacketResult, Report,
};
use tidegate_core::datagram::Extension;
use tidegate_core::{Ecn, Rate, Span, Time};

/// Estimator of delay, losses and rates.
#[derive(Clone, Debug)]
enum Estimator {
    Rfc8698(Window),
    Ns3Rmcat(History),
}

/// Sending half of NADA.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    estimator: Estimator,
    congestion: Congestion,
    reference: Reference,
    /// Last round trip, ms (rtt); zero before the first.
    rtt: f64,
    receive_rate: f64,
    /// Bytes waiting in the pacer as of the last report.
    waiting: f64,
    mode: Mode,
    /// Time of the last update of the rate; before the first one, the start, or the first departure.
    updated: Option<Time>,
    started: bool,
    /// Newest sequence number in feedback.
    newest_reported: i64,
    /// Packets reported as lost since the newest received one. A gap may be longer, because feedback is lost, too.
    lost: u64,
    /// Marks that were reported as counts (RFC 6679) and are not yet assigned to a packet.
    marks: u64,
}

/// Largest error of a delay in feedback: RFC 8888 reports arrivals in 1/1024 s (its section 3.1).
const DELAY_ERROR: Span = Span::from_millis(2);

impl Sender {
    /// Creates a controller, which begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            limits: Limits::default(),
            estimator: match settings.estimates {
                Estimates::Rfc8698 => Estimator::Rfc8698(Window::new(&settings)),
                Estimates::Ns3Rmcat => Estimator::Ns3Rmcat(History::new(&settings)),
            },
            congestion: Congestion::default(),
            reference: Reference::new(0.0),
            rtt: 0.0,
            receive_rate: 0.0,
            waiting: 0.0,
            mode: Mode::Gradual,
            updated: None,
            started: false,
            newest_reported: -1,
            lost: 0,
            marks: 0,
            settings,
        }
    }

    /// RMIN and RMAX, bit/s.
    fn range(&self) -> (f64, f64) {
        let Limits { min, max, .. } = self.limits;
        (min.as_bps_f64(), max.max(min).as_bps_f64())
    }

    /// Starts anew with the start rate.
    fn begin(&mut self, now: Time) {
        *self = Self { limits: self.limits, started: true, ..Self::new(self.settings.clone()) };
        self.reference = Reference::new(self.limits.start.as_bps_f64());
        // ns3-rmcat counts from the departure of its first packet (nada-controller.cc `processSendPacket`)
        self.updated = (self.settings.estimates == Estimates::Rfc8698).then_some(now);
    }

    fn since_update(&self, now: Time) -> Option<f64> {
        self.updated.map(|updated| (now - updated).as_millis_f64())
    }

    /// Converts the result of a received packet for the estimators.
    fn packet(result: &PacketResult) -> Option<Packet> {
        Some(Packet {
            sequence: i64::try_from(result.sequence).ok()?,
            size: result.size.as_bytes(),
            sent: result.sent.as_nanos(),
            arrival: result.arrival?.as_nanos(),
            marked: result.ecn == Ecn::Ce,
        })
    }

    /// Counts a packet reported as lost, once even if it is reported repeatedly.
    fn count_lost(&mut self, result: &PacketResult) {
        if let Ok(sequence) = i64::try_from(result.sequence)
            && result.arrival.is_none()
            && sequence > self.newest_reported
        {
            (self.newest_reported, self.lost) = (sequence, self.lost + 1);
        }
    }

    /// Takes per-packet feedback and updates the rate.
    fn on_packets(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) {
        let is_ns3_rmcat = self.settings.estimates == Estimates::Ns3Rmcat;
        if let Some(first) = report.packets.first() {
            let sent = first.sent.max(Time::ZERO);
            self.updated.get_or_insert(if sent < now { sent } else { now });
        }
        let marked = report.packets.iter().filter(|packet| packet.ecn == Ecn::Ce).count() as u64;
        let counted = report.ecn.map_or(0, |counts| u64::from(counts.ce));
        self.marks = self.marks.saturating_add(counted.saturating_sub(marked));
        let mut newest = None;
        for result in &report.packets {
            let Some(mut packet) = Self::packet(result) else {
                self.count_lost(result);
                continue;
            };
            if !packet.marked && self.marks > 0 {
                (packet.marked, self.marks) = (true, self.marks - 1);
            }
            let is_new = match &mut self.estimator {
                Estimator::Rfc8698(window) => window.add(now, packet, Some(self.lost)),
                Estimator::Ns3Rmcat(history) => history.add(now.as_nanos(), &packet),
            };
            if is_new {
                self.lost = 0;
                self.newest_reported = packet.sequence;
                newest = Some(packet);
                self.check_clock(now, &packet);
            }
            // ns3-rmcat passes the packets of a batch singly to a virtual function, which updates as soon as DELTA is over:
            // mostly at the first packet of a batch, before the others
            if is_ns3_rmcat && self.since_update(now).is_some_and(|since| since >= self.settings.delta) {
                self.update(now, packet.arrival, cx);
            }
        }
        let Some(newest) = newest else { return };
        if !is_ns3_rmcat {
            let sample = report.rtt().map_or_else(
                || now.as_nanos().saturating_sub(newest.sent) as f64 / 1e6,
                |sample| sample.as_millis_f64(),
            );
            self.rtt = sample.max(0.0);
        }
        if self.since_update(now).is_some_and(|since| since >= self.settings.least_interval) {
            self.update(now, newest.arrival, cx);
        }
    }

    /// Starts anew if a clock was set: a packet seems to have queued for longer than the time until its feedback, so that
    /// the base delay is from another clock.
    fn check_clock(&mut self, now: Time, packet: &Packet) {
        let queueing = match &self.estimator {
            Estimator::Rfc8698(window) => window.newest_queueing(),
            Estimator::Ns3Rmcat(history) => history.newest_queueing(),
        };
        let until_feedback = Span::from_nanos(now.as_nanos().saturating_sub(packet.sent));
        if queueing.is_none_or(|queueing| queueing <= until_feedback + DELAY_ERROR) {
            return;
        }
        match &mut self.estimator {
            Estimator::Rfc8698(window) => window.start_anew(now, *packet),
            Estimator::Ns3Rmcat(history) => history.start_anew(),
        }
    }

    /// Updates estimates and rate; `arrival` is the present time of the far clock.
    fn update(&mut self, now: Time, arrival: i64, cx: &mut Context<'_>) {
        let signals: Signals = match &mut self.estimator {
            Estimator::Rfc8698(window) => window.signals(arrival),
            Estimator::Ns3Rmcat(history) => {
                self.rtt = history.rtt().unwrap_or(self.rtt).max(0.0);
                history.signals()
            }
        };
        self.congestion.update(&signals, &self.settings);
        self.mode = if signals.ramp_up { Mode::RampUp } else { Mode::Gradual };
        self.receive_rate = signals.receive_rate.unwrap_or(self.receive_rate);
        self.update_rate(now, cx);
        if cx.wants_notes() {
            cx.note("queueing_ms", signals.queueing.unwrap_or_default().as_millis_f64());
            cx.note("p_loss", self.congestion.loss);
            cx.note("p_mark", self.congestion.marks);
            if let Some(losses) = signals.losses {
                cx.note("loss_int", losses.mean);
                cx.note("since_loss", losses.since);
            }
        }
    }

    /// Updates the rate from the last signal, receive rate and mode.
    fn update_rate(&mut self, now: Time, cx: &mut Context<'_>) {
        let update = Update {
            mode: self.mode,
            x: self.congestion.x,
            receive_rate: self.receive_rate,
            rtt: self.rtt,
            delta: self.since_update(now).unwrap_or_default(),
        };
        let (rmin, rmax) = self.range();
        self.reference.update(&update, rmin, rmax, &self.settings);
        self.updated = Some(now);
        if cx.wants_notes() {
            cx.note("r_ref_bps", self.reference.rate);
            cx.note("r_recv_bps", update.receive_rate);
            cx.note("x_curr_ms", update.x);
            cx.note("rtt_ms", update.rtt);
            cx.note("rmode", f64::from(u8::from(update.mode == Mode::Gradual)));
        }
    }

    /// Takes the messages of the receiving half.
    fn on_messages(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) {
        if let Some(sample) = report.rtt() {
            self.rtt = sample.as_millis_f64().max(0.0);
        }
        for feedback in report.messages.iter().filter_map(Feedback::parse) {
            (self.congestion.x, self.receive_rate, self.mode) =
                (feedback.x, feedback.receive_rate, feedback.mode);
            self.update_rate(now, cx);
        }
    }

    fn decide(&self) -> Decision {
        let (rmin, rmax) = self.range();
        let (target, pacing) = shaping::rates(self.reference.rate, self.waiting, rmin, rmax, &self.settings);
        Decision { pacing: Rate::from_bps_f64(pacing), ..Decision::rate(Rate::from_bps_f64(target)) }
    }
}

impl Controller for Sender {
    fn needs(&self) -> Needs {
        let ecn = if self.settings.ecn { EcnUse::Ect0 } else { EcnUse::Off };
        match self.settings.placement {
            Placement::Sender => Needs { ecn, ..Needs::feedback(FeedbackKind::PerPacket) },
            Placement::Receiver => Needs { ecn, ..Needs::feedback(FeedbackKind::OwnMessages) },
        }
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        match self.settings.placement {
            Placement::Sender => self.on_packets(now, report, cx),
            Placement::Receiver => self.on_messages(now, report, cx),
        }
        self.waiting = report.backlog.as_bytes() as f64;
        self.decide()
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        if !self.started || limits.route_changed {
            self.begin(now);
        }
        let (rmin, rmax) = self.range();
        self.reference.clip(rmin, rmax);
        self.decide()
    }

    /// Reference rate, r_ref (RFC 8699 section 6.1).
    fn coupled_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.reference.rate))
    }

    fn on_coupled(&mut self, _now: Time, rate: Rate, _cx: &mut Context<'_>) -> Decision {
        let (rmin, rmax) = self.range();
        self.reference.rate = rate.as_bps_f64();
        self.reference.clip(rmin, rmax);
        self.decide()
    }

    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        let needs_stamp = self.settings.placement == Placement::Receiver;
        needs_stamp.then(|| Stamp::new(now, packet.sequence).write())
    }
}
