//! Sending half: stamps, feedback, the nofeedback timer, and the decision.

use super::equation;
use super::limited::DataLimited;
use super::rate::{Allowed, FeedbackSample};
use super::settings::Settings;
use super::wire::{Feedback, Stamp, micros};
use tidegate_core::control::{
    Context, Controller, Decision, FeedbackKind, Limits, Needs, Outgoing, Report, Sent,
};
use tidegate_core::datagram::Extension;
use tidegate_core::{Rate, Span, Time};

/// Rounds down to the microsecond, like a stamp of that time.
fn round_to_micros(time: Time) -> Time {
    Time::from_micros(time.as_nanos() / 1000)
}

/// Sending half of TFRC.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    allowed: Allowed,
    limited: DataLimited,
    /// Mean size of the packets sent, once there is one.
    size: Option<f64>,
    /// Expiry of the nofeedback timer; set with the first limits.
    timer: Option<Time>,
    /// Whether no packet was sent since the timer was set.
    idle: bool,
    /// Bytes waiting in the pacer after the last packet.
    backlog: u64,
    /// Bytes waiting in the pacer at the last report, which lower the encoder's target.
    reported_backlog: u64,
    /// Timestamp of the newest packet in feedback.
    newest_reported: Option<u32>,
}

impl Sender {
    /// Creates a controller, which begins with the first limits.
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
            reported_backlog: 0,
            newest_reported: None,
            settings,
        }
    }

    /// Segment size s of the equation, bytes.
    fn segment(&self) -> f64 {
        match self.settings.segment {
            0 => self.size.unwrap_or(self.settings.mss as f64),
            segment => segment as f64,
        }
    }

    /// Sets the nofeedback timer.
    fn set_timer(&mut self, now: Time) {
        self.timer = Some(now + self.allowed.timeout(&self.settings, self.segment()));
        self.idle = true;
    }

    /// Handles the nofeedback timer if it has expired. Called at each event, since any event may come at the time of the
    /// alarm, but before it.
    fn expire(&mut self, now: Time, cx: &mut Context<'_>) {
        if self.timer.is_some_and(|due| due <= now) {
            let segment = self.segment();
            self.allowed.no_feedback(now, self.idle, &self.settings, segment);
            self.set_timer(now);
            cx.note("x_bps", self.allowed.rate() * 8.0);
        }
    }

    /// Starts anew with one segment per second.
    fn begin(&mut self, now: Time) {
        self.allowed = Allowed::new(self.segment());
        self.limited = DataLimited::default();
        self.set_timer(now);
    }

    /// Evaluates a feedback, if it is valid: its newest packet is not older than that of the previous feedback, and was sent
    /// before now.
    fn evaluate(&mut self, now: Time, feedback: &Feedback) -> Option<FeedbackSample> {
        let is_overtaken =
            self.newest_reported.is_some_and(|newest| (feedback.timestamp.wrapping_sub(newest) as i32) < 0);
        let since = i64::from(micros(now).wrapping_sub(feedback.timestamp) as i32);
        let sample = since - i64::from(feedback.delay);
        if is_overtaken || sample < 0 {
            return None;
        }
        self.newest_reported = Some(feedback.timestamp);
        Some(FeedbackSample {
            // at least a microsecond, the unit of the clock
            rtt: Span::from_micros(sample.max(1)),
            receive_rate: feedback.receive_rate,
            loss_event_rate: feedback.loss_event_rate,
            data_limited: self.limited.feedback(round_to_micros(now) - Span::from_micros(since)),
        })
    }

    /// Part of X without the charge for headers (RFC 4828 section 4.2; 1 in TFRC).
    fn share(&self) -> f64 {
        equation::small_packet_share(self.mean_size(), self.settings.header as f64)
    }

    /// Mean size of the packets sent, bytes.
    fn mean_size(&self) -> f64 {
        self.size.unwrap_or(self.settings.mss as f64)
    }

    /// Allowed rate without the charge for headers, bytes/s.
    fn usable(&self) -> f64 {
        self.allowed.rate() * self.share()
    }

    fn decide(&self) -> Decision {
        let set = &self.settings;
        let share = self.share();
        let x = self.usable();
        let instant = self.allowed.instant(set, self.segment()) * share;
        // the encoder gets the pacing rate, at most X, and less while packets wait in the pacer: at the pacing rate
        // alone a queue would never shrink
        let mut target = x.min(instant);
        if set.min_gap > 0.0 {
            target = target.min(self.mean_size() * 1000.0 / set.min_gap);
        }
        if set.drain_time > 0.0 {
            target = (target - self.reported_backlog as f64 / set.drain_time).max(target / 2.0);
        }
        let Limits { min, max, .. } = self.limits;
        let [target, pacing] = [target, instant].map(|rate| Rate::from_bps_f64(rate * 8.0).max(min));
        Decision {
            target: target.min(max.max(min)),
            // the session's maximum is for encoders, and may not include the headers of media that does not adapt
            pacing,
            pace_audio: true,
            min_gap: (set.min_gap > 0.0).then(|| Span::from_millis_f64(set.min_gap)),
            alarm: self.timer,
            ..Decision::rate(target)
        }
    }

    fn note(&self, cx: &mut Context<'_>, sample: &FeedbackSample) {
        if !cx.wants_notes() {
            return;
        }
        cx.note("p", sample.loss_event_rate);
        cx.note("rtt_ms", self.allowed.rtt().unwrap_or_default().as_millis_f64());
        cx.note("x_recv_bps", sample.receive_rate * 8.0);
        cx.note("x_bps", self.allowed.rate() * 8.0);
        let equation = self.allowed.equation(&self.settings, self.segment()) * 8.0;
        if equation.is_finite() {
            cx.note("equation_bps", equation);
        }
        cx.note("data_limited", f64::from(u8::from(sample.data_limited)));
    }
}

impl Controller for Sender {
    fn needs(&self) -> Needs {
        Needs::feedback(FeedbackKind::OwnMessages)
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        for feedback in report.messages.iter().filter_map(Feedback::parse) {
            let Some(sample) = self.evaluate(now, &feedback) else { continue };
            let segment = self.segment();
            self.allowed.feedback(now, &sample, &self.settings, segment);
            self.set_timer(now);
            self.note(cx, &sample);
        }
        self.reported_backlog = self.backlog;
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
        // waiting packets show that the sender uses its full rate. An encoder that uses its full target leaves no
        // packet waiting, either; `app_limited` shows half a second late that it uses less, `wanted` at once that it
        // cannot use all
        let wanted = self.limits.wanted.map_or(self.limits.max, |wanted| wanted.min(self.limits.max));
        let is_limited = self.limits.app_limited || wanted.as_bps_f64() < 8.0 * self.usable();
        let is_busy = packet.backlog.as_bytes() > 0 || !is_limited;
        self.limited.sent(round_to_micros(now), is_busy);
        if self.timer.is_some_and(|due| due <= now) {
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
    fn an_event_at_the_time_of_the_timer_comes_after_it() {
        let limits = Limits { min: Rate::from_bps(1), ..Limits::default() };
        let sent =
            Sent { sequence: 0, size: Size::from_bytes(1460), in_flight: Size::ZERO, backlog: Size::ZERO };
        for event in 0..4 {
            let controller = Sender::new(Settings::with("tfrc", "rfc5348", &Value::Null).expect("a preset"));
            let rng = Stream::new(1, "sender", "test");
            let mut host = ControllerHost::new("sender", Box::new(controller), rng, Time::ZERO, &limits)
                .expect("the contract is kept");
            let _ = host.sent(Time::from_secs(1), &sent).expect("fine");
            let due = host.decision().alarm.expect("the nofeedback timer");
            assert_eq!(due, Time::from_secs(2));
            let decision = match event {
                0 => host.alarm(due),
                1 => host.report(due, &Report::default()),
                2 => host.limits(due, &limits),
                _ => host.sent(due, &sent),
            }
            .expect("the contract holds");
            assert_eq!(decision.pacing, Rate::from_bps(1460 * 4), "halved by event {event}");
            assert_eq!(decision.alarm, Some(due + Span::from_secs(4)), "2 s/X");
        }
    }
}
