//! The sending half: feedback, the reference rate, and the decision made of it.

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

/// Who estimates.
#[derive(Clone, Debug)]
enum Estimator {
    Rfc8698(Window),
    Ns3Rmcat(History),
}

/// The sending half of NADA.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    estimator: Estimator,
    congestion: Congestion,
    reference: Reference,
    /// The last round trip in ms (rtt); zero before there is one.
    rtt: f64,
    receive_rate: f64,
    /// Bytes that waited in the pacer as of the last report.
    waiting: f64,
    mode: Mode,
    /// When the rate was updated last; before that the time of beginning, or of the first departure.
    updated: Option<Time>,
    begun: bool,
    /// The newest packet that feedback told of, and how many it told to be lost since the newest one that came. Of others in
    /// a gap nothing was told: the feedback itself was lost.
    told: i64,
    lost: u64,
    /// Marks that were told as counts (RFC 6679), not yet of any packet.
    marks: u64,
}

/// As much as a delay that feedback tells may be too long: RFC 8888 tells arrivals in 1/1024 s (its section 3.1).
const SLACK: Span = Span::from_millis(2);

impl Sender {
    /// A controller that begins with the first limits.
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
            begun: false,
            told: -1,
            lost: 0,
            marks: 0,
            settings,
        }
    }

    /// RMIN and RMAX, in bit/s.
    fn range(&self) -> (f64, f64) {
        let Limits { min, max, .. } = self.limits;
        (min.as_bps_f64(), max.max(min).as_bps_f64())
    }

    /// Forgets the path and begins.
    fn begin(&mut self, now: Time) {
        *self = Self { limits: self.limits, begun: true, ..Self::new(self.settings.clone()) };
        self.reference = Reference::new(self.limits.start.as_bps_f64());
        // ns3-rmcat counts from the departure of its first packet (nada-controller.cc `processSendPacket`)
        self.updated = (self.settings.estimates == Estimates::Rfc8698).then_some(now);
    }

    fn since_update(&self, now: Time) -> Option<f64> {
        self.updated.map(|updated| (now - updated).as_millis_f64())
    }

    /// A packet that was received, as those who estimate want it.
    fn packet(result: &PacketResult) -> Option<Packet> {
        Some(Packet {
            sequence: i64::try_from(result.sequence).ok()?,
            size: result.size.as_bytes(),
            sent: result.sent.as_nanos(),
            arrival: result.arrival?.as_nanos(),
            marked: result.ecn == Ecn::Ce,
        })
    }

    /// Takes in a packet that was reported as not received; again and again, perhaps.
    fn lost(&mut self, result: &PacketResult) {
        if let Ok(sequence) = i64::try_from(result.sequence)
            && result.arrival.is_none()
            && sequence > self.told
        {
            (self.told, self.lost) = (sequence, self.lost + 1);
        }
    }

    /// Takes in per-packet feedback and updates the rate from it.
    fn hear_packets(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) {
        let follows = self.settings.estimates == Estimates::Ns3Rmcat;
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
                self.lost(result);
                continue;
            };
            if !packet.marked && self.marks > 0 {
                (packet.marked, self.marks) = (true, self.marks - 1);
            }
            let heard = match &mut self.estimator {
                Estimator::Rfc8698(window) => window.add(now, packet, Some(self.lost)),
                Estimator::Ns3Rmcat(history) => history.add(now.as_nanos(), &packet),
            };
            if heard {
                self.lost = 0;
                self.told = packet.sequence;
                newest = Some(packet);
                self.distrust(now, &packet);
            }
            // ns3-rmcat takes a batch packet by packet through a virtual function, which updates as soon as DELTA is over:
            // most of the time at the first packet of a batch, before it has seen the others
            if follows && self.since_update(now).is_some_and(|since| since >= self.settings.delta) {
                self.update(now, packet.arrival, cx);
            }
        }
        let Some(newest) = newest else { return };
        if !follows {
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

    /// A packet cannot have queued for longer than it took until we heard of it: if it seems so, a clock was set, and the
    /// least delay is not of this clock.
    fn distrust(&mut self, now: Time, packet: &Packet) {
        let queueing = match &self.estimator {
            Estimator::Rfc8698(window) => window.newest_queueing(),
            Estimator::Ns3Rmcat(history) => history.newest_queueing(),
        };
        let heard = Span::from_nanos(now.as_nanos().saturating_sub(packet.sent));
        if queueing.is_none_or(|queueing| queueing <= heard + SLACK) {
            return;
        }
        match &mut self.estimator {
            Estimator::Rfc8698(window) => window.begin_anew(now, *packet),
            Estimator::Ns3Rmcat(history) => history.begin_anew(),
        }
    }

    /// Updates the rate from what is known at `arrival` of the far clock.
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
        self.step(now, cx);
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

    /// Updates the rate from the signal, the receive rate and the mode that are known.
    fn step(&mut self, now: Time, cx: &mut Context<'_>) {
        let update = Update {
            mode: self.mode,
            x: self.congestion.x,
            receive_rate: self.receive_rate,
            rtt: self.rtt,
            delta: self.since_update(now).unwrap_or_default(),
        };
        let (least, most) = self.range();
        self.reference.update(&update, least, most, &self.settings);
        self.updated = Some(now);
        if cx.wants_notes() {
            cx.note("r_ref_bps", self.reference.rate);
            cx.note("r_recv_bps", update.receive_rate);
            cx.note("x_curr_ms", update.x);
            cx.note("rtt_ms", update.rtt);
            cx.note("rmode", f64::from(u8::from(update.mode == Mode::Gradual)));
        }
    }

    /// Takes in what the receiving half says.
    fn hear_messages(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) {
        if let Some(sample) = report.rtt() {
            self.rtt = sample.as_millis_f64().max(0.0);
        }
        for said in report.messages.iter().filter_map(Feedback::read) {
            (self.congestion.x, self.receive_rate, self.mode) = (said.x, said.receive_rate, said.mode);
            self.step(now, cx);
        }
    }

    fn decide(&self) -> Decision {
        let (least, most) = self.range();
        let (target, pacing) = shaping::rates(self.reference.rate, self.waiting, least, most, &self.settings);
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
            Placement::Sender => self.hear_packets(now, report, cx),
            Placement::Receiver => self.hear_messages(now, report, cx),
        }
        self.waiting = report.backlog.as_bytes() as f64;
        self.decide()
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        if !self.begun || limits.route_changed {
            self.begin(now);
        }
        let (least, most) = self.range();
        self.reference.clip(least, most);
        self.decide()
    }

    /// r_ref (RFC 8699 section 6.1).
    fn coupled_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(self.reference.rate))
    }

    fn on_coupled(&mut self, _now: Time, rate: Rate, _cx: &mut Context<'_>) -> Decision {
        let (least, most) = self.range();
        self.reference.rate = rate.as_bps_f64();
        self.reference.clip(least, most);
        self.decide()
    }

    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        let receives = self.settings.placement == Placement::Receiver;
        receives.then(|| Stamp::new(now, packet.sequence).write())
    }
}
