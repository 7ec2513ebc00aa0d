//! Sending half of all presets but [`libwebrtc`](super::libwebrtc).
//!
//! In the first placement it contains the delay-based part; in the second one that rate comes in REMBs, and losses come
//! in receiver reports.

use super::delay::{Arrival, Delay};
use super::loss::Loss;
use super::report_history::{News, ReportHistory};
use super::silence::Silence;
use tidegate_core::control::{
    Context, Controller, Decision, FeedbackKind, Limits, Needs, PacketResult, Report, Sent,
};
use tidegate_core::units::{Rate, RemoteTime, Size, Span, Time};

/// Round trip before it is measured (libwebrtc kDefaultRtt; aiortc rtt, which it never measures).
pub(super) const DEFAULT_RTT: Span = Span::from_millis(200);
/// Factor of a back-off without feedback (libwebrtc RttBasedBackoff fraction).
const BACK_OFF: f64 = 0.8;
/// Shortest time between two back-offs (libwebrtc RttBasedBackoff interval).
const BACK_OFF_INTERVAL: Span = Span::from_secs(1);

/// Parameters of a sending half.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Time without feedback, including a round trip, in which packets are sent before the rate backs off, ms; 0: never.
    pub silence_limit: f64,
    /// Whether round trips are measured.
    pub measure_rtt: bool,
    /// Delay above the lowest so far from which a packet is late and counts as lost, ms; 0: no packet is late.
    pub late_after: f64,
    /// Whether a lost packet passes the last delay variation to filter and detector once more.
    pub lost_repeat: bool,
    /// Pacing rate as a multiple of the target.
    pub pacing_factor: f64,
}

impl Config {
    /// Parameters of most presets: the pacer sends at the target (draft 4), and only `hoang2017` has late packets.
    #[must_use]
    pub const fn usual(silence_limit: f64) -> Self {
        Self { silence_limit, measure_rtt: true, late_after: 0.0, lost_repeat: false, pacing_factor: 1.0 }
    }
}

/// Lowest rate whatever the limits' minimum, unless their maximum is lower (libwebrtc; also RttBasedBackoff floor).
const CONGESTION_CONTROLLER_MIN_BITRATE: Rate = Rate::from_kbps(5);

/// New result of one packet.
#[derive(Clone, Copy)]
struct NewResult {
    sequence: u64,
    sent: Time,
    size: Size,
    /// Arrival by the receiver's clock; none for a lost packet.
    arrived: Option<RemoteTime>,
}

/// Sending half.
pub struct Gcc {
    config: Config,
    limits: Limits,
    /// Whether the first limits have come.
    started: bool,
    history: ReportHistory,
    /// Delay-based part; none if it is at the receiver.
    delay: Option<Delay>,
    /// Loss-based part, if there is one.
    loss: Option<Loss>,
    silence: Silence,
    /// Time of the last back-off.
    last_back_off: Option<Time>,
    rtt: Span,
    /// Receiver's limit by REMB.
    remb: Option<Rate>,
    /// Lowest delay of a packet so far, as the difference of two clocks, ns.
    min_delay: i64,
    alarm: Option<Time>,
    /// New results of one report; a field so that the memory is reused.
    fresh: Vec<NewResult>,
}

impl Gcc {
    /// Creates a sending half, which begins with the first limits. Without `delay`, that part is at the receiver.
    #[must_use]
    pub fn new(config: Config, delay: Option<Delay>, loss: Option<Loss>) -> Self {
        Self {
            config,
            limits: Limits::default(),
            started: false,
            history: ReportHistory::default(),
            delay,
            loss,
            silence: Silence::default(),
            last_back_off: None,
            rtt: DEFAULT_RTT,
            remb: None,
            min_delay: i64::MAX,
            alarm: None,
            fresh: Vec::new(),
        }
    }

    /// Forgets the path and begins with the start rate of the limits.
    fn begin(&mut self) {
        let start = self.limits.start.clamp(self.min_rate(), self.limits.max).as_bps_f64();
        if let Some(delay) = &mut self.delay {
            delay.begin(start);
        }
        if let Some(loss) = &mut self.loss {
            loss.begin(start);
        }
        (self.silence, self.last_back_off, self.rtt) = (Silence::default(), None, DEFAULT_RTT);
        (self.remb, self.min_delay, self.alarm) = (None, i64::MAX, None);
        // the history stays, because packets of before may still be reported
        self.started = true;
    }

    fn min_rate(&self) -> Rate {
        self.limits.min.max(CONGESTION_CONTROLLER_MIN_BITRATE.min(self.limits.max))
    }

    fn bounds(&self) -> (f64, f64) {
        (self.min_rate().as_bps_f64(), self.limits.max.as_bps_f64())
    }

    fn within_limits(&self, rate: f64) -> f64 {
        let (min_rate, max_rate) = self.bounds();
        rate.min(max_rate).max(min_rate)
    }

    /// Keeps the loss-based rate within the limits.
    fn bound_loss(&mut self) {
        let (min_rate, max_rate) = self.bounds();
        if let Some(loss) = &mut self.loss {
            loss.target = loss.target.min(max_rate).max(min_rate);
        }
    }

    /// Delay-based rate, bit/s: our own, or that of the last REMB; infinite before the first.
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
            pacing: target.scaled(self.config.pacing_factor),
            alarm: self.alarm.filter(|&alarm| alarm > now),
            ..Decision::rate(target)
        }
    }

    /// Whether a packet is so late that it counts as lost.
    fn is_late(&mut self, packet: &PacketResult) -> bool {
        let Some(arrived) = packet.arrival.filter(|_| self.config.late_after > 0.0) else { return false };
        let delay = arrived.as_nanos().saturating_sub(packet.sent.as_nanos());
        self.min_delay = self.min_delay.min(delay);
        delay.saturating_sub(self.min_delay) as f64 / 1e6 > self.config.late_after
    }

    /// Collects the new results of a report and passes them to the loss part. Returns the shortest round trip among them,
    /// without the packets' waits at the receiver.
    fn collect_new(&mut self, now: Time, report: &Report) -> Option<Span> {
        self.fresh.clear();
        let (mut expected, mut lost) = (0, 0);
        for packet in &report.packets {
            let news = self.history.note(packet.sequence, packet.arrival.is_some());
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
                News::Stale => continue,
            }
            let &PacketResult { sequence, sent, size, arrival: arrived, .. } = packet;
            if arrived.is_some() || self.config.lost_repeat {
                self.fresh.push(NewResult { sequence, sent, size, arrived });
            }
        }
        // in order of arrival, lost packets last
        let order = |packet: &NewResult| (packet.arrived.is_none(), packet.arrived, packet.sequence);
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

    /// Passes the new results to the delay-based part; `has_arrivals` if a packet among them was received.
    fn update_delay(&mut self, now: Time, has_arrivals: bool, cx: &mut Context<'_>) {
        let bounds = self.bounds();
        let Some(delay) = &mut self.delay else { return };
        if has_arrivals {
            delay.on_arrivals(now);
        }
        let arrival = |packet: &NewResult| {
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
        if has_arrivals {
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

    /// Lowers the rate without feedback, at most once per interval, and sets the next alarm.
    fn back_off(&mut self, now: Time) {
        let last = self.loss.as_ref().map_or(self.last_back_off, |loss| loss.last_decrease);
        let due = last.map_or(now, |last| last + BACK_OFF_INTERVAL);
        let rate = self.loss.as_ref().map_or(self.within_limits(self.delay_based()), |loss| loss.target);
        let floor = CONGESTION_CONTROLLER_MIN_BITRATE.as_bps_f64().max(self.min_rate().as_bps_f64());
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
            self.last_back_off = Some(now);
            self.alarm = Some(now + BACK_OFF_INTERVAL);
        }
    }
}

impl Controller for Gcc {
    fn needs(&self) -> Needs {
        let is_local = self.delay.is_some();
        Needs::feedback(if is_local { FeedbackKind::PerPacket } else { FeedbackKind::OwnMessages })
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        if let Some(remb) = report.remb {
            // a REMB of zero lifts the limit (libwebrtc UpdateReceiverEstimate)
            self.remb = Some(if remb == Rate::ZERO { Rate::MAX } else { remb });
        }
        let shortest = self.collect_new(now, report);
        if let Some(rtt) = report.rtt().or(shortest).filter(|&rtt| rtt > Span::ZERO)
            && self.config.measure_rtt
        {
            self.rtt = rtt;
        }
        if let (Some(report), Some(loss), None) = (&report.loss, &mut self.loss, &self.delay) {
            loss.receiver_report(report.expected, report.cumulative_lost, now);
        }
        // with the delay-based part at the receiver, its messages and reports are the feedback
        let remote_feedback = self.delay.is_none() && (report.remb.is_some() || report.loss.is_some());
        let feedback_rtt = shortest.or(remote_feedback.then_some(self.rtt));
        if let Some(rtt) = feedback_rtt {
            self.silence.feedback(rtt, now);
        }
        self.update_delay(now, shortest.is_some(), cx);
        if self.silence.too_long(self.config.silence_limit) {
            self.back_off(now);
        } else {
            self.alarm = None;
            let delay_based = self.delay_based();
            if let Some(loss) = &mut self.loss {
                loss.update(delay_based, self.rtt, now);
            }
        }
        self.bound_loss();
        if cx.wants_notes() && feedback_rtt.is_some() {
            self.note_rates(cx);
        }
        self.decision(now)
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.alarm = None;
        if self.silence.too_long(self.config.silence_limit) {
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
        if limits.route_changed || !self.started {
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
        if self.alarm.is_some() || !self.silence.too_long(self.config.silence_limit) {
            return cx.unchanged();
        }
        self.back_off(now);
        self.decision(now)
    }

    fn needs_sent(&self) -> bool {
        self.config.silence_limit > 0.0
    }

    /// Target, which is A_hat in RFC 8699 appendix A, if it is calculated at the sender.
    fn coupled_rate(&self) -> Option<Rate> {
        self.delay.is_some().then(|| self.target())
    }

    fn on_coupled(&mut self, now: Time, rate: Rate, _cx: &mut Context<'_>) -> Decision {
        // scales both parts, so that the one above the target keeps its distance from it
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
