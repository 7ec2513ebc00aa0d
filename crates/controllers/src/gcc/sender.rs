//! The sending half of every preset but [`libwebrtc`](super::libwebrtc): reports in, rates out.
//!
//! In the first placement the delay-based part is here; in the second one its rate comes in REMBs, and losses come in
//! receiver reports.

use super::delay::{Arrival, Delay};
use super::loss::Loss;
use super::seen::{News, Seen};
use super::silence::Silence;
use tidegate_core::control::{
    Context, Controller, Decision, FeedbackKind, Limits, Needs, PacketResult, Report, Sent,
};
use tidegate_core::units::{Rate, RemoteTime, Size, Span, Time};

/// The round trip before it is measured (libwebrtc kDefaultRtt; aiortc rtt, which it never measures).
pub(super) const DEFAULT_RTT: Span = Span::from_millis(200);
/// Factor of a back-off for want of feedback (libwebrtc RttBasedBackoff fraction).
const BACK_OFF: f64 = 0.8;
/// Least time between two of them (libwebrtc RttBasedBackoff interval).
const BACK_OFF_INTERVAL: Span = Span::from_secs(1);

/// What a sending half goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Backs off when packets go out for so many ms, less a round trip, after the last feedback; 0: never.
    pub silence_limit: f64,
    /// Whether round trips are measured.
    pub measure_rtt: bool,
    /// A packet with so many ms more delay than the least so far is late, and counts as lost; 0: none is late.
    pub late_after: f64,
    /// Whether a lost packet repeats the last delay variation into filter and detector.
    pub lost_repeat: bool,
    /// The pacer may send this times the target.
    pub pacing_factor: f64,
}

impl Rules {
    /// What most presets have: the target is what the pacer sends (draft 4), and no preset but the thesis's knows late
    /// packets.
    #[must_use]
    pub const fn usual(silence_limit: f64) -> Self {
        Self { silence_limit, measure_rtt: true, late_after: 0.0, lost_repeat: false, pacing_factor: 1.0 }
    }
}

/// No rate goes below this, whatever the limits say, unless their maximum does
/// (libwebrtc kCongestionControllerMinBitrate, RttBasedBackoff floor).
const LEAST: Rate = Rate::from_kbps(5);

/// What a report newly says of one packet.
#[derive(Clone, Copy)]
struct Fresh {
    sequence: u64,
    sent: Time,
    size: Size,
    /// None: lost.
    arrived: Option<RemoteTime>,
}

/// The sending half.
pub struct Gcc {
    rules: Rules,
    limits: Limits,
    /// Whether the first limits have come.
    begun: bool,
    seen: Seen,
    /// The delay-based part; none where it is at the receiver.
    delay: Option<Delay>,
    /// The loss-based part, if there is one.
    loss: Option<Loss>,
    silence: Silence,
    /// When the rate was last lowered for want of feedback.
    backed_off: Option<Time>,
    rtt: Span,
    /// What a receiver allows by REMB.
    remb: Option<Rate>,
    /// The least delay of a packet so far, by the difference of two clocks, ns.
    least_delay: i64,
    alarm: Option<Time>,
    /// What one report newly says; kept for its room.
    fresh: Vec<Fresh>,
}

impl Gcc {
    /// A sending half of these parts, with the delay-based one at the receiver where there is none; it begins with the
    /// first limits.
    #[must_use]
    pub fn new(rules: Rules, delay: Option<Delay>, loss: Option<Loss>) -> Self {
        Self {
            rules,
            limits: Limits::default(),
            begun: false,
            seen: Seen::default(),
            delay,
            loss,
            silence: Silence::default(),
            backed_off: None,
            rtt: DEFAULT_RTT,
            remb: None,
            least_delay: i64::MAX,
            alarm: None,
            fresh: Vec::new(),
        }
    }

    /// Forgets the path and begins with the start rate of the limits.
    fn begin(&mut self) {
        let start = self.limits.start.clamp(self.least(), self.limits.max).as_bps_f64();
        if let Some(delay) = &mut self.delay {
            delay.begin(start);
        }
        if let Some(loss) = &mut self.loss {
            loss.begin(start);
        }
        (self.silence, self.backed_off, self.rtt) = (Silence::default(), None, DEFAULT_RTT);
        (self.remb, self.least_delay, self.alarm) = (None, i64::MAX, None);
        // the same packets may still be reported on: what was heard of them stays known
        self.begun = true;
    }

    fn least(&self) -> Rate {
        self.limits.min.max(LEAST.min(self.limits.max))
    }

    fn bounds(&self) -> (f64, f64) {
        (self.least().as_bps_f64(), self.limits.max.as_bps_f64())
    }

    fn within_limits(&self, rate: f64) -> f64 {
        let (least, most) = self.bounds();
        rate.min(most).max(least)
    }

    /// Keeps the loss-based rate within the limits.
    fn bound_loss(&mut self) {
        let (least, most) = self.bounds();
        if let Some(loss) = &mut self.loss {
            loss.target = loss.target.min(most).max(least);
        }
    }

    /// The delay-based rate, bit/s: ours, or the one that REMB tells; without bound while it tells none.
    fn delay_based(&self) -> f64 {
        match (&self.delay, self.remb) {
            (Some(delay), _) => delay.rate(),
            (None, Some(remb)) => remb.as_bps_f64(),
            (None, None) => f64::INFINITY,
        }
    }

    fn target(&self) -> Rate {
        let mut target = self.delay_based();
        if let Some(loss) = &self.loss {
            target = target.min(loss.target);
        } else if target.is_infinite() {
            target = self.limits.start.as_bps_f64();
        }
        if let Some(remb) = self.remb {
            target = target.min(remb.as_bps_f64());
        }
        Rate::from_bps_f64(self.within_limits(target)).clamp(self.limits.min, self.limits.max)
    }

    fn decision(&self, now: Time) -> Decision {
        let target = self.target();
        Decision {
            pacing: target.scaled(self.rules.pacing_factor),
            alarm: self.alarm.filter(|&at| at > now),
            ..Decision::rate(target)
        }
    }

    /// Whether a packet is so late that it is as good as lost.
    fn is_late(&mut self, packet: &PacketResult) -> bool {
        let Some(arrived) = packet.arrival.filter(|_| self.rules.late_after > 0.0) else { return false };
        let delay = arrived.as_nanos().saturating_sub(packet.sent.as_nanos());
        self.least_delay = self.least_delay.min(delay);
        delay.saturating_sub(self.least_delay) as f64 / 1e6 > self.rules.late_after
    }

    /// Takes what is new in a report, and tells the loss part. Answers with the shortest round trip in
    /// it: that of the packet that waited least at the receiver.
    fn sort(&mut self, now: Time, report: &Report) -> Option<Span> {
        self.fresh.clear();
        let (mut expected, mut lost) = (0, 0);
        for packet in &report.packets {
            let news = self.seen.note(packet.sequence, packet.arrival.is_some());
            let missed = packet.arrival.is_none() || self.is_late(packet);
            match news {
                News::Received | News::Lost => {
                    if let Some(loss) = &mut self.loss {
                        loss.packet(packet.sequence, packet.sent, missed);
                    }
                    (expected, lost) = (expected + 1, lost + i64::from(missed));
                }
                News::Recovered if !missed => {
                    if let Some(loss) = &mut self.loss {
                        loss.recovered(packet.sequence);
                    }
                    lost -= 1;
                }
                News::Recovered => {}
                News::Nothing => continue,
            }
            let &PacketResult { sequence, sent, size, arrival: arrived, .. } = packet;
            if arrived.is_some() || self.rules.lost_repeat {
                self.fresh.push(Fresh { sequence, sent, size, arrived });
            }
        }
        // in order of arrival; what never arrived last
        let order = |packet: &Fresh| (packet.arrived.is_none(), packet.arrived, packet.sequence);
        if !self.fresh.is_sorted_by_key(order) {
            self.fresh.sort_unstable_by_key(order);
        }
        // with the delay-based part at the receiver, losses come in receiver reports
        if let (Some(loss), true) = (&mut self.loss, self.delay.is_some() && expected > 0) {
            loss.packets(expected, lost, now);
        }
        let arrivals = || self.fresh.iter().filter_map(|packet| Some((packet.arrived?, packet.sent)));
        let (newest, _) = arrivals().next_back()?;
        let round_trip = |(arrived, sent): (RemoteTime, Time)| {
            let waited = newest.as_nanos().saturating_sub(arrived.as_nanos());
            now.as_nanos().saturating_sub(sent.as_nanos()).saturating_sub(waited)
        };
        arrivals().map(round_trip).min().map(|nanos| Span::from_nanos(nanos.max(0)))
    }

    /// The delay-based part of one report, `arrived` if anything has arrived.
    fn follow_delay(&mut self, now: Time, arrived: bool, cx: &mut Context<'_>) {
        let bounds = self.bounds();
        let Some(delay) = &mut self.delay else { return };
        if arrived {
            delay.hear(now);
        }
        let arrival = |packet: &Fresh| {
            packet.arrived.map(|arrived| Arrival { arrived, sent: packet.sent, size: packet.size })
        };
        self.fresh.iter().filter_map(arrival).for_each(|packet| delay.count(&packet));
        if delay.by_number() {
            self.fresh.sort_unstable_by_key(|packet| packet.sequence);
        }
        for packet in &self.fresh {
            match arrival(packet) {
                Some(packet) => delay.arrive(now, &packet, cx),
                None => delay.lose(cx),
            }
        }
        if arrived {
            let (_, received) = delay.update(self.rtt, now, bounds);
            if cx.wants_notes() {
                delay.note_rates(received, cx);
            }
        }
    }

    fn note_rates(&self, cx: &mut Context<'_>) {
        if let Some(loss) = &self.loss {
            cx.note("loss_based", loss.target);
            cx.note("loss_fraction", loss.fraction);
        }
        if let Some(remb) = self.remb {
            cx.note("remb", remb.as_bps_f64());
        }
        cx.note("rtt_ms", self.rtt.as_millis_f64());
    }

    /// Lowers the rate for want of feedback, at most once in an interval, and sets the next alarm.
    fn back_off(&mut self, now: Time) {
        let last = self.loss.as_ref().map_or(self.backed_off, |loss| loss.last_decrease);
        let due = last.map_or(now, |last| last + BACK_OFF_INTERVAL);
        let rate = self.loss.as_ref().map_or(self.within_limits(self.delay_based()), |loss| loss.target);
        let floor = LEAST.as_bps_f64().max(self.least().as_bps_f64());
        if rate <= floor {
            self.alarm = None;
        } else if due > now {
            self.alarm = Some(due);
        } else {
            let rate = (rate * BACK_OFF).max(floor);
            match (&mut self.loss, &mut self.delay) {
                (Some(loss), _) => (loss.target, loss.last_decrease) = (rate, Some(now)),
                (None, Some(delay)) => delay.set_rate(rate, now),
                (None, None) => self.remb = Some(Rate::from_bps_f64(rate)),
            }
            self.backed_off = Some(now);
            self.alarm = Some(now + BACK_OFF_INTERVAL);
        }
    }
}

impl Controller for Gcc {
    fn needs(&self) -> Needs {
        // the delay-based part lives in one half
        let here = self.delay.is_some();
        Needs::feedback(if here { FeedbackKind::PerPacket } else { FeedbackKind::OwnMessages })
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        if let Some(remb) = report.remb {
            // a REMB of zero lifts the limit (libwebrtc UpdateReceiverEstimate)
            self.remb = Some(if remb == Rate::ZERO { Rate::MAX } else { remb });
        }
        let shortest = self.sort(now, report);
        if let Some(rtt) = report.rtt().or(shortest).filter(|&rtt| rtt > Span::ZERO)
            && self.rules.measure_rtt
        {
            self.rtt = rtt;
        }
        if let (Some(said), Some(loss), None) = (&report.loss, &mut self.loss, &self.delay) {
            loss.receiver_report(said.expected, said.cumulative_lost, now);
        }
        // with the delay-based part at the receiver, its messages and reports are the feedback
        let other = self.delay.is_none() && (report.remb.is_some() || report.loss.is_some());
        let heard = shortest.or(other.then_some(self.rtt));
        if let Some(rtt) = heard {
            self.silence.feedback(rtt, now);
        }
        self.follow_delay(now, shortest.is_some(), cx);
        if self.silence.too_long(self.rules.silence_limit) {
            self.back_off(now);
        } else {
            self.alarm = None;
            let delay_based = self.delay_based();
            if let Some(loss) = &mut self.loss {
                loss.update(delay_based, self.rtt, now);
            }
        }
        self.bound_loss();
        if cx.wants_notes() && heard.is_some() {
            self.note_rates(cx);
        }
        self.decision(now)
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.alarm = None;
        if self.silence.too_long(self.rules.silence_limit) {
            self.back_off(now);
            if let Some(delay) = &self.delay {
                delay.note_rates(None, cx);
            }
            self.note_rates(cx);
        }
        self.decision(now)
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        let limit_ended = self.limits.app_limited && !limits.app_limited;
        self.limits = *limits;
        if let (Some(delay), true) = (&mut self.delay, limit_ended) {
            delay.limit_ended();
        }
        if limits.route_changed || !self.begun {
            self.begin();
        }
        let bounds = self.bounds();
        if let Some(delay) = &mut self.delay {
            delay.bound(bounds);
        }
        self.bound_loss();
        self.decision(now)
    }

    fn on_sent(&mut self, now: Time, _packet: &Sent, cx: &mut Context<'_>) -> Decision {
        self.silence.packet(now);
        if self.alarm.is_some() || !self.silence.too_long(self.rules.silence_limit) {
            return cx.unchanged();
        }
        self.back_off(now);
        self.decision(now)
    }

    fn needs_sent(&self) -> bool {
        self.rules.silence_limit > 0.0
    }

    /// A_hat (RFC 8699 appendix A), where it is calculated here.
    fn coupled_rate(&self) -> Option<Rate> {
        self.delay.is_some().then(|| self.target())
    }

    fn on_coupled(&mut self, now: Time, rate: Rate, _cx: &mut Context<'_>) -> Decision {
        // both parts, also the one that does not limit the target: how far above it is stays
        let factor = self.within_limits(rate.as_bps_f64()) / self.target().as_bps_f64().max(1.0);
        if let Some(delay) = &mut self.delay {
            delay.scale(factor);
        }
        if let Some(loss) = &mut self.loss {
            loss.target *= factor;
        }
        self.bound_loss();
        self.decision(now)
    }
}
