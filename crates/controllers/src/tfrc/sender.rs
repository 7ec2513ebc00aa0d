//! The sending half: stamps, feedback, the nofeedback timer, and the decision made of them.

use super::equation;
use super::limited::DataLimited;
use super::rate::{Allowed, Heard};
use super::settings::Settings;
use super::wire::{Feedback, Stamp, micros};
use tidegate_core::control::{
    Context, Controller, Decision, FeedbackKind, Limits, Needs, Outgoing, Report, Sent,
};
use tidegate_core::datagram::Extension;
use tidegate_core::{Rate, Span, Time};

/// `at` to the microsecond, as a stamp of that time comes back.
fn ticks(at: Time) -> Time {
    Time::from_micros(at.as_nanos() / 1000)
}

/// The sending half of TFRC.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    allowed: Allowed,
    limited: DataLimited,
    /// Mean size of the packets sent, once there is one.
    size: Option<f64>,
    /// When the nofeedback timer runs out; set with the first limits.
    timer: Option<Time>,
    /// Whether nothing was sent since it was set.
    idle: bool,
    /// Bytes that waited in the pacer after the last packet, and when the last decision for the encoder
    /// was made.
    backlog: u64,
    owed: u64,
    /// The timestamp of the newest packet that feedback told of.
    told: Option<u32>,
}

impl Sender {
    /// A controller that begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            limits: Limits::default(),
            allowed: Allowed::new(settings.mss as f64),
            limited: DataLimited::default(),
            size: None,
            timer: None,
            idle: true,
            backlog: 0,
            owed: 0,
            told: None,
            settings,
        }
    }

    /// s of the equation, in bytes.
    fn segment(&self) -> f64 {
        match self.settings.segment {
            0 => self.size.unwrap_or(self.settings.mss as f64),
            segment => segment as f64,
        }
    }

    /// Sets the nofeedback timer.
    fn wait(&mut self, now: Time) {
        self.timer = Some(now + self.allowed.timeout(&self.settings, self.segment()));
        self.idle = true;
    }

    /// Does what the nofeedback timer asks for, if it has run out. Any event may come at its very instant and
    /// before its alarm.
    fn expire(&mut self, now: Time, cx: &mut Context<'_>) {
        if self.timer.is_some_and(|at| at <= now) {
            let segment = self.segment();
            self.allowed.no_feedback(now, self.idle, &self.settings, segment);
            self.wait(now);
            cx.note("x_bps", self.allowed.rate() * 8.0);
        }
    }

    /// Forgets the path and begins.
    fn begin(&mut self, now: Time) {
        self.allowed = Allowed::new(self.segment());
        self.limited = DataLimited::default();
        self.wait(now);
    }

    /// What a feedback says, if it can be true. The newest packet it tells of is no older than that of the
    /// feedback before, and was sent before now.
    fn hear(&mut self, now: Time, said: &Feedback) -> Option<Heard> {
        let overtaken = self.told.is_some_and(|told| (said.timestamp.wrapping_sub(told) as i32) < 0);
        let since = i64::from(micros(now).wrapping_sub(said.timestamp) as i32);
        let sample = since - i64::from(said.delay);
        if overtaken || sample < 0 {
            return None;
        }
        self.told = Some(said.timestamp);
        Some(Heard {
            // the clock's unit is a microsecond: nothing is nearer
            rtt: Span::from_micros(sample.max(1)),
            receive_rate: said.receive_rate,
            loss_event_rate: said.loss_event_rate,
            data_limited: self.limited.feedback(ticks(now) - Span::from_micros(since)),
        })
    }

    /// What packets of their size leave of X for what they carry (RFC 4828 section 4.2; all of it in TFRC).
    fn share(&self) -> f64 {
        equation::small_packet_share(self.mean_size(), self.settings.header as f64)
    }

    /// Mean size of its packets, in bytes.
    fn mean_size(&self) -> f64 {
        self.size.unwrap_or(self.settings.mss as f64)
    }

    /// What it may send, in bytes/s.
    fn usable(&self) -> f64 {
        self.allowed.rate() * self.share()
    }

    fn decide(&self) -> Decision {
        let set = &self.settings;
        let share = self.share();
        let x = self.usable();
        let instant = self.allowed.instant(set, self.segment()) * share;
        // the encoder gets what leaves the pacer and never more than X, and less while something waits
        // there: at the pacing rate alone a queue would never shrink
        let mut target = x.min(instant);
        if set.min_gap > 0.0 {
            target = target.min(self.mean_size() * 1000.0 / set.min_gap);
        }
        if set.drain_time > 0.0 {
            target = (target - self.owed as f64 / set.drain_time).max(target / 2.0);
        }
        let Limits { min, max, .. } = self.limits;
        let [target, pacing] = [target, instant].map(|rate| Rate::from_bps_f64(rate * 8.0).max(min));
        Decision {
            target: target.min(max.max(min)),
            // the session's maximum is for encoders: it need not have room for the headers of those that do
            // not adapt
            pacing,
            pace_audio: true,
            min_gap: (set.min_gap > 0.0).then(|| Span::from_millis_f64(set.min_gap)),
            alarm: self.timer,
            ..Decision::rate(target)
        }
    }

    fn note(&self, cx: &mut Context<'_>, heard: &Heard) {
        if !cx.wants_notes() {
            return;
        }
        cx.note("p", heard.loss_event_rate);
        cx.note("rtt_ms", self.allowed.rtt().unwrap_or_default().as_millis_f64());
        cx.note("x_recv_bps", heard.receive_rate * 8.0);
        cx.note("x_bps", self.allowed.rate() * 8.0);
        let equation = self.allowed.equation(&self.settings, self.segment()) * 8.0;
        if equation.is_finite() {
            cx.note("equation_bps", equation);
        }
        cx.note("data_limited", f64::from(u8::from(heard.data_limited)));
    }
}

impl Controller for Sender {
    fn needs(&self) -> Needs {
        Needs::feedback(FeedbackKind::OwnMessages)
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        for said in report.messages.iter().filter_map(Feedback::read) {
            let Some(heard) = self.hear(now, &said) else { continue };
            let segment = self.segment();
            self.allowed.feedback(now, &heard, &self.settings, segment);
            self.wait(now);
            self.note(cx, &heard);
        }
        self.owed = self.backlog;
        self.expire(now, cx);
        self.decide()
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.expire(now, cx);
        self.decide()
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        if self.timer.is_none() || limits.route_changed {
            self.begin(now);
        }
        self.expire(now, cx);
        self.decide()
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        self.idle = false;
        self.backlog = packet.backlog.as_bytes();
        let size = packet.size.as_bytes() as f64;
        let mean = self.size.get_or_insert(size);
        *mean += (size - *mean) * self.settings.size_weight;
        // what waits shows that all was sent that may be; and an encoder that follows the target leaves
        // nothing waiting while it uses what it gets. That it uses less is told half a second late; that it
        // could not use all is known at once
        let most = self.limits.wanted.map_or(self.limits.max, |wanted| wanted.min(self.limits.max));
        let little = self.limits.app_limited || most.as_bps_f64() < 8.0 * self.usable();
        let all = packet.backlog.as_bytes() > 0 || !little;
        self.limited.sent(ticks(now), all);
        if self.timer.is_some_and(|at| at <= now) {
            self.expire(now, cx);
            return self.decide();
        }
        cx.unchanged()
    }

    fn needs_sent(&self) -> bool {
        true
    }

    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        let stamp = Stamp {
            rtt: self.allowed.rtt().unwrap_or_default(),
            timestamp: micros(now),
            sequence: packet.sequence as u16,
        };
        Some(stamp.write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tidegate_core::{ControllerHost, Size, Stream};

    #[test]
    fn whatever_comes_at_the_instant_of_the_timer_comes_after_it() {
        let limits = Limits { min: Rate::from_bps(1), ..Limits::default() };
        let sent =
            Sent { sequence: 0, size: Size::from_bytes(1460), in_flight: Size::ZERO, backlog: Size::ZERO };
        for event in 0..4 {
            let controller = Sender::new(Settings::with("tfrc", "rfc5348", &Value::Null).expect("a preset"));
            let rng = Stream::new(1, "sender", "test");
            let mut host = ControllerHost::new("sender", Box::new(controller), rng, Time::ZERO, &limits)
                .expect("the contract is kept");
            let _ = host.sent(Time::from_secs(1), &sent).expect("fine");
            let at = host.decision().alarm.expect("the nofeedback timer");
            assert_eq!(at, Time::from_secs(2));
            let decision = match event {
                0 => host.alarm(at),
                1 => host.report(at, &Report::default()),
                2 => host.limits(at, &limits),
                _ => host.sent(at, &sent),
            }
            .expect("the contract holds");
            assert_eq!(decision.pacing, Rate::from_bps(1460 * 4), "halved by event {event}");
            assert_eq!(decision.alarm, Some(at + Span::from_secs(4)), "2 s/X");
        }
    }
}
