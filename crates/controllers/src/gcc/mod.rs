//! Google congestion control, in both placements of draft-ietf-rmcat-gcc-02 section 3.
//!
//! `gcc`, (a): all at the sender, with per-packet feedback, as libwebrtc `goog_cc` without probing and
//! application-limited region. `gcc-remb`, (b): the delay-based part in [`receiver`], as aiortc
//! `rate.py`; its rate comes back as REMB, and losses in receiver reports. One file a part:
//!
//! ```text
//!                        delay: groups -> kalman | trendline -> detector (threshold) -> rate (capacity)
//!                          ^      +-> acked: received rate --------------------------------^    |
//! (a) report -> seen ------+                                                                    v
//!        +-> loss: fraction lost, loss-based rate ----------------------------------> min -> target
//!                                                                                      ^
//! (b) packet -> receiver -> delay -> REMB ---------------------------------------------+
//! ```
//!
//! What differs between the draft, the shipped implementations and the thesis that reads it is in
//! [`settings`], and only there.

pub mod acked;
pub mod bayes;
pub mod capacity;
pub mod delay;
pub mod detector;
pub mod groups;
pub mod kalman;
pub mod libwebrtc;
pub mod loss;
pub mod presets;
pub mod rate;
pub mod receiver;
pub mod seen;
pub mod settings;
pub mod silence;
pub mod threshold;
pub mod trendline;

use crate::Entry;
use delay::{Arrival, Delay};
use loss::Loss;
use presets::Placement;
use receiver::Receiver;
use seen::{News, Seen};
use settings::{Grouping, LossFrom, Settings, TABLE};
use silence::Silence;
use tidegate_core::control::{
    Context, Controller, Decision, FeedbackKind, Limits, Needs, PacketResult, Report, Sent,
};
use tidegate_core::units::{Rate, RemoteTime, Size, Span, Time};

/// The registry's entry for the first placement.
pub const ENTRY: Entry = Entry {
    name: Placement::Sender.name(),
    summary: "Google congestion control: delay gradient, received rate and loss, at the sender",
    presets: &[libwebrtc::NAME, "libwebrtc-v1", "draft-02", "aiortc", "hoang2017"],
    settings: |preset| if preset == libwebrtc::NAME { libwebrtc::settings::TABLE } else { TABLE },
    in_call: |preset| match preset {
        libwebrtc::NAME => libwebrtc::settings::Settings::in_call(),
        _ => (Entry::AS_IT_IS)(preset),
    },
    defaults: |preset| match preset {
        libwebrtc::NAME => libwebrtc::settings::Settings::defaults(),
        _ => Placement::Sender.defaults(preset),
    },
    build: |preset, overrides| match preset {
        libwebrtc::NAME => {
            Ok(Box::new(libwebrtc::GoogCc::new(libwebrtc::settings::Settings::with(overrides)?)))
        }
        _ => Ok(Box::new(Gcc::new(Placement::Sender, Placement::Sender.with(preset, overrides)?))),
    },
    receiver: None,
};

/// The registry's entry for the second placement.
pub const REMB: Entry = Entry {
    name: Placement::Receiver.name(),
    summary: "Google congestion control: delay gradient and received rate at the receiver, loss at the sender",
    presets: Placement::Receiver.presets(),
    settings: |_| TABLE,
    in_call: Entry::AS_IT_IS,
    defaults: |preset| Placement::Receiver.defaults(preset),
    build: |preset, overrides| {
        Ok(Box::new(Gcc::new(Placement::Receiver, Placement::Receiver.with(preset, overrides)?)))
    },
    receiver: Some(|preset, overrides| {
        Ok(Box::new(Receiver::new(Placement::Receiver.with(preset, overrides)?)))
    }),
};

/// No rate goes below this, whatever the limits say, unless their maximum does
/// (libwebrtc kCongestionControllerMinBitrate).
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
    settings: Settings,
    limits: Limits,
    /// Whether the first limits have come.
    begun: bool,
    seen: Seen,
    /// The delay-based part; none where it is at the receiver.
    delay: Option<Delay>,
    loss: Loss,
    silence: Silence,
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
    /// A sending half with these settings; it begins with the first limits.
    #[must_use]
    pub fn new(placement: Placement, settings: Settings) -> Self {
        let limits = Limits::default();
        let start = limits.start.as_bps_f64();
        Self {
            limits,
            begun: false,
            seen: Seen::default(),
            delay: (placement == Placement::Sender).then(|| Delay::new(&settings, start)),
            loss: Loss::new(start),
            silence: Silence::default(),
            rtt: Span::from_millis_f64(settings.default_rtt),
            remb: None,
            least_delay: i64::MAX,
            alarm: None,
            fresh: Vec::new(),
            settings,
        }
    }

    /// Forgets the path and begins with the start rate of the limits.
    fn begin(&mut self) {
        let start = self.limits.start.clamp(self.least(), self.limits.max).as_bps_f64();
        if let Some(delay) = &mut self.delay {
            *delay = Delay::new(&self.settings, start);
        }
        self.loss = Loss::new(start);
        self.silence = Silence::default();
        self.rtt = Span::from_millis_f64(self.settings.default_rtt);
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

    /// The delay-based rate, bit/s: ours, or the one that REMB tells; without bound while it tells none.
    fn delay_based(&self) -> f64 {
        match (&self.delay, self.remb) {
            (Some(delay), _) => delay.rate.rate,
            (None, Some(remb)) => remb.as_bps_f64(),
            (None, None) => f64::INFINITY,
        }
    }

    fn decision(&self, now: Time) -> Decision {
        let mut target = self.delay_based();
        if self.settings.loss_part {
            target = target.min(self.loss.target);
        } else if target.is_infinite() {
            target = self.limits.start.as_bps_f64();
        }
        if let Some(remb) = self.remb {
            target = target.min(remb.as_bps_f64());
        }
        let target = Rate::from_bps_f64(self.within_limits(target)).clamp(self.limits.min, self.limits.max);
        Decision {
            pacing: target.scaled(self.settings.pacing_factor),
            alarm: self.alarm.filter(|&at| at > now),
            ..Decision::rate(target)
        }
    }

    /// Whether a packet is so late that it is as good as lost.
    fn is_late(&mut self, packet: &PacketResult) -> bool {
        let Some(arrived) = packet.arrival.filter(|_| self.settings.late_after > 0.0) else { return false };
        let delay = arrived.as_nanos().saturating_sub(packet.sent.as_nanos());
        self.least_delay = self.least_delay.min(delay);
        delay.saturating_sub(self.least_delay) as f64 / 1e6 > self.settings.late_after
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
                    self.loss.packet(&self.settings, packet.sequence, packet.sent, missed);
                    (expected, lost) = (expected + 1, lost + i64::from(missed));
                }
                News::Recovered if !missed => {
                    self.loss.recovered(packet.sequence);
                    lost -= 1;
                }
                News::Recovered => {}
                News::Nothing => continue,
            }
            let &PacketResult { sequence, sent, size, arrival: arrived, .. } = packet;
            if arrived.is_some() || self.settings.lost_repeat {
                self.fresh.push(Fresh { sequence, sent, size, arrived });
            }
        }
        // in order of arrival; what never arrived last
        let order = |packet: &Fresh| (packet.arrived.is_none(), packet.arrived, packet.sequence);
        if !self.fresh.is_sorted_by_key(order) {
            self.fresh.sort_unstable_by_key(order);
        }
        if self.settings.loss_from == LossFrom::Packets && expected > 0 {
            self.loss.packets(&self.settings, expected, lost, now);
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
        let settings = &self.settings;
        if arrived {
            delay.hear(settings, now);
        }
        let arrival = |packet: &Fresh| {
            packet.arrived.map(|arrived| Arrival { arrived, sent: packet.sent, size: packet.size })
        };
        self.fresh.iter().filter_map(arrival).for_each(|packet| delay.count(settings, &packet));
        if settings.grouping == Grouping::Packets {
            self.fresh.sort_unstable_by_key(|packet| packet.sequence);
        }
        for packet in &self.fresh {
            match arrival(packet) {
                Some(packet) => delay.arrive(settings, now, &packet, cx),
                None => delay.lose(settings, cx),
            }
        }
        if arrived {
            let (_, received) = delay.update(settings, self.rtt, now, bounds);
            if cx.wants_notes() {
                delay.note_rates(received, cx);
            }
        }
    }

    fn note_rates(&self, cx: &mut Context<'_>) {
        if self.settings.loss_part {
            cx.note("loss_based", self.loss.target);
            cx.note("loss_fraction", self.loss.fraction);
        }
        if let Some(remb) = self.remb {
            cx.note("remb", remb.as_bps_f64());
        }
        cx.note("rtt_ms", self.rtt.as_millis_f64());
    }

    /// Lowers the rate for want of feedback, at most once in an interval, and sets the next alarm.
    fn back_off(&mut self, now: Time) {
        let settings = &self.settings;
        let interval = Span::from_millis_f64(settings.silence_interval);
        let due = self.loss.last_decrease.map_or(now, |last| last + interval);
        let rate = if settings.loss_part { self.loss.target } else { self.within_limits(self.delay_based()) };
        let floor = settings.silence_floor.max(self.least().as_bps_f64());
        if rate <= floor {
            self.alarm = None;
        } else if due > now {
            self.alarm = Some(due);
        } else {
            let rate = (rate * settings.silence_factor).max(floor);
            match &mut self.delay {
                _ if settings.loss_part => self.loss.target = rate,
                Some(delay) => delay.rate.set(rate, now),
                None => self.remb = Some(Rate::from_bps_f64(rate)),
            }
            self.loss.last_decrease = Some(now);
            self.alarm = Some(now + interval);
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
            && self.settings.measure_rtt
        {
            self.rtt = rtt;
        }
        if let (Some(loss), LossFrom::ReceiverReports) = (&report.loss, self.settings.loss_from) {
            self.loss.receiver_report(&self.settings, loss.expected, loss.cumulative_lost, now);
        }
        // with the delay-based part at the receiver, its messages and reports are the feedback
        let other = self.delay.is_none() && (report.remb.is_some() || report.loss.is_some());
        let heard = shortest.or(other.then_some(self.rtt));
        if let Some(rtt) = heard {
            self.silence.feedback(rtt, now);
        }
        self.follow_delay(now, shortest.is_some(), cx);
        if self.silence.too_long(self.settings.silence_limit) {
            self.back_off(now);
        } else {
            self.alarm = None;
            self.loss.update(&self.settings, self.delay_based(), self.rtt, now);
        }
        self.loss.target = self.within_limits(self.loss.target);
        if cx.wants_notes() && heard.is_some() {
            self.note_rates(cx);
        }
        self.decision(now)
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.alarm = None;
        if self.silence.too_long(self.settings.silence_limit) {
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
        self.loss.target = self.within_limits(self.loss.target);
        self.decision(now)
    }

    fn on_sent(&mut self, now: Time, _packet: &Sent, cx: &mut Context<'_>) -> Decision {
        self.silence.packet(now);
        if self.alarm.is_some() || !self.silence.too_long(self.settings.silence_limit) {
            return cx.unchanged();
        }
        self.back_off(now);
        self.decision(now)
    }

    fn needs_sent(&self) -> bool {
        self.settings.silence_limit > 0.0
    }
}
