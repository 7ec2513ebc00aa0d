//! Hosts of controllers and of receiver halves: they call them, keep the last decision, and check the contract.

use super::checks::{AlarmCheck, decision_error};
use super::contract::{Context, Controller, Notes, ReceiverHalf};
use super::messages::{
    Arrived, Decision, Feedback, FeedbackRequest, Limits, NewFrame, Outgoing, Report, Sent, Urgency,
};
use super::needs::Needs;
use crate::datagram::Extension;
use crate::rng::Stream;
use crate::units::{Rate, Size, Time};

/// Failure of a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Time of the failure.
    pub at: Time,
    /// Name of the controller.
    pub who: String,
    /// Reason.
    pub reason: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}", self.who, self.at, self.reason)
    }
}

impl std::error::Error for Failure {}

/// Host of a controller with its substream and its last decision, which calls the controller and checks the contract.
pub struct ControllerHost {
    name: String,
    controller: Box<dyn Controller>,
    last: Decision,
    alarms: AlarmCheck,
    rng: Stream,
    /// Notes of the last call.
    pub notes: Notes,
}

impl ControllerHost {
    /// Creates a host: `name` stands for the controller in errors, `rng` is its substream. The first decision is its response
    /// to `limits` at `now`.
    ///
    /// # Errors
    /// Fails if the controller fails or breaks the contract.
    pub fn new(
        name: impl Into<String>,
        controller: Box<dyn Controller>,
        rng: Stream,
        now: Time,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let mut host = Self {
            name: name.into(),
            controller,
            last: Decision::rate(limits.start),
            alarms: AlarmCheck::default(),
            rng,
            notes: Notes::default(),
        };
        let _first = host.limits(now, limits)?;
        Ok(host)
    }

    /// Last decision.
    #[inline]
    pub fn decision(&self) -> &Decision {
        &self.last
    }

    /// Random substream.
    #[must_use]
    pub fn rng(&self) -> &Stream {
        &self.rng
    }

    /// Needs of the controller in its session.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.controller.needs()
    }

    /// Whether [`ControllerHost::sent`] has to be called.
    #[must_use]
    pub fn needs_sent(&self) -> bool {
        self.controller.needs_sent()
    }

    /// Whether [`ControllerHost::frame`] has to be called.
    #[must_use]
    pub fn needs_frames(&self) -> bool {
        self.controller.needs_frames()
    }

    /// Passes a feedback report.
    ///
    /// # Errors
    /// Fails if the controller fails or breaks the contract.
    pub fn report(&mut self, now: Time, report: &Report) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_report(now, report, cx))
    }

    /// Passes the alarm, which is due.
    ///
    /// # Errors
    /// Fails if the controller fails or breaks the contract.
    pub fn alarm(&mut self, now: Time) -> Result<&Decision, Failure> {
        self.alarms.fired();
        self.call(now, |controller, cx| controller.on_alarm(now, cx))
    }

    /// Passes new limits.
    ///
    /// # Errors
    /// Fails if the controller fails or breaks the contract.
    pub fn limits(&mut self, now: Time, limits: &Limits) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_limits(now, limits, cx))
    }

    /// Passes a packet that has left.
    ///
    /// # Errors
    /// Fails if the controller fails or breaks the contract.
    pub fn sent(&mut self, now: Time, packet: &Sent) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_sent(now, packet, cx))
    }

    /// Passes a media frame that has entered the pacer.
    ///
    /// # Errors
    /// Fails if the controller fails or breaks the contract.
    pub fn frame(&mut self, now: Time, frame: &NewFrame) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_frame(now, frame, cx))
    }

    /// Bytes in flight, if the controller counts them.
    #[must_use]
    pub fn in_flight(&self) -> Option<Size> {
        self.controller.in_flight()
    }

    /// Calculated rate, if the controller can be coupled with others.
    #[must_use]
    pub fn coupled_rate(&self) -> Option<Rate> {
        self.controller.coupled_rate()
    }

    /// Passes the rate after coupling.
    ///
    /// # Errors
    /// Fails if the controller fails or breaks the contract.
    pub fn coupled(&mut self, now: Time, rate: Rate) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_coupled(now, rate, cx))
    }

    /// Header extension for a packet that is about to leave.
    pub fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        self.controller.stamp(now, packet)
    }

    fn call(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn Controller, &mut Context<'_>) -> Decision,
    ) -> Result<&Decision, Failure> {
        self.notes.values.clear();
        let mut failure = None;
        let mut cx = Context {
            now,
            last: &self.last,
            alarms: self.alarms,
            rng: &mut self.rng,
            notes: &mut self.notes,
            failure: &mut failure,
        };
        let decision = event(self.controller.as_mut(), &mut cx);
        if failure.is_none() {
            failure = self.alarms.request(now, decision.alarm).err().or_else(|| decision_error(&decision));
        }
        match failure {
            Some(reason) => Err(Failure { at: now, who: self.name.clone(), reason }),
            None => {
                debug_assert!(
                    decision.alarm.is_none_or(|alarm| alarm >= now),
                    "checked: {decision:?} at {now}"
                );
                self.last = decision;
                Ok(&self.last)
            }
        }
    }
}

/// Host of a receiver half with its substream and its alarm, which calls the half and checks the contract.
pub struct ReceiverHost {
    name: String,
    half: Box<dyn ReceiverHalf>,
    alarms: AlarmCheck,
    rng: Stream,
    /// Time at which [`ReceiverHost::alarm`] has to be called.
    pub alarm_at: Option<Time>,
    /// Notes of the last call.
    pub notes: Notes,
}

impl ReceiverHost {
    /// Creates a host: `name` stands for the half in errors, `rng` is its substream.
    pub fn new(name: impl Into<String>, half: Box<dyn ReceiverHalf>, rng: Stream) -> Self {
        Self {
            name: name.into(),
            half,
            alarms: AlarmCheck::default(),
            rng,
            alarm_at: None,
            notes: Notes::default(),
        }
    }

    /// Random substream.
    #[must_use]
    pub fn rng(&self) -> &Stream {
        &self.rng
    }

    /// Whether the half needs [`Arrived::true_delay`].
    #[must_use]
    pub fn needs_true_delay(&self) -> bool {
        self.half.needs_true_delay()
    }

    /// Passes a data packet that has arrived.
    ///
    /// # Errors
    /// Fails if the half fails or breaks the contract.
    pub fn packet(&mut self, now: Time, packet: &Arrived<'_>) -> Result<Urgency, Failure> {
        self.call(now, |half, cx| half.on_packet(now, packet, cx))
    }

    /// Passes the alarm, which is due.
    ///
    /// # Errors
    /// Fails if the half fails or breaks the contract.
    pub fn alarm(&mut self, now: Time) -> Result<Urgency, Failure> {
        self.alarms.fired();
        self.call(now, |half, cx| half.on_alarm(now, cx))
    }

    /// Message to the sender.
    ///
    /// # Errors
    /// Fails if the half fails.
    pub fn message(&mut self, now: Time) -> Result<Feedback, Failure> {
        let mut feedback = Feedback::new();
        let is_pending = self.alarms.is_pending(now);
        let alarm = self.alarm_at.filter(|&alarm| alarm > now || is_pending);
        self.call(now, |half, cx| {
            feedback = half.message(now, cx);
            FeedbackRequest { urgency: Urgency::None, alarm }
        })?;
        Ok(feedback)
    }

    fn call(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn ReceiverHalf, &mut Context<'_>) -> FeedbackRequest,
    ) -> Result<Urgency, Failure> {
        self.notes.values.clear();
        const NONE: Decision = Decision::rate(Rate::ZERO);
        let mut failure = None;
        let mut cx = Context {
            now,
            last: &NONE,
            alarms: self.alarms,
            rng: &mut self.rng,
            notes: &mut self.notes,
            failure: &mut failure,
        };
        let ask = event(self.half.as_mut(), &mut cx);
        if failure.is_none() {
            failure = self.alarms.request(now, ask.alarm).err();
        }
        match failure {
            Some(reason) => Err(Failure { at: now, who: self.name.clone(), reason }),
            None => {
                self.alarm_at = ask.alarm;
                Ok(ask.urgency)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Probe, Probes};
    use crate::units::Span;

    /// Controller that returns the next decision of a list at each call; `None`: no change.
    struct Scripted(std::vec::IntoIter<Option<Decision>>);

    impl Controller for Scripted {
        fn on_report(&mut self, _: Time, _: &Report, cx: &mut Context<'_>) -> Decision {
            self.0.next().flatten().unwrap_or_else(|| cx.unchanged())
        }

        fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
            self.on_report(now, &Report::default(), cx)
        }

        fn on_limits(&mut self, _: Time, limits: &Limits, _: &mut Context<'_>) -> Decision {
            Decision::rate(limits.start)
        }
    }

    const NOW: Time = Time::from_secs(2);

    fn host(script: Vec<Option<Decision>>) -> ControllerHost {
        let controller = Box::new(Scripted(script.into_iter()));
        ControllerHost::new("it", controller, Stream::new(1, "it", "test"), Time::ZERO, &Limits::default())
            .expect("valid")
    }

    fn alarm(time: Time) -> Option<Decision> {
        Some(Decision::rate(Rate::from_mbps(1)).with_alarm(time))
    }

    fn refusal(result: Result<&Decision, Failure>) -> String {
        result.expect_err("it breaks the contract").to_string()
    }

    #[test]
    fn the_present_instant_is_granted_once() {
        let later = NOW + Span::from_nanos(1);
        let mut host = host(vec![alarm(NOW), None, alarm(later), alarm(later), alarm(later), alarm(later)]);
        let report = Report::default();
        assert_eq!(host.report(NOW, &report).expect("granted").alarm, Some(NOW));
        assert_eq!(host.report(NOW, &report).expect("unchanged").alarm, Some(NOW), "it is pending");
        assert_eq!(host.alarm(NOW).expect("later").alarm, Some(later));
        assert_eq!(host.report(NOW, &report).expect("later").alarm, Some(later));
        assert_eq!(host.alarm(later).expect("the present again, a nanosecond later").alarm, Some(later));
        assert_eq!(
            refusal(host.alarm(later)),
            "it at 2.000000001s: asked for a second alarm at the present instant (2.000000001s); only one is granted, \
             and the next has to be later"
        );
        // an alarm that was not requested for the present may be followed by one at once
        let mut host = self::host(vec![alarm(NOW), alarm(NOW), alarm(NOW)]);
        assert_eq!(host.report(Time::ZERO, &report).expect("later").alarm, Some(NOW));
        assert_eq!(host.alarm(NOW).expect("granted").alarm, Some(NOW));
        assert!(refusal(host.alarm(NOW)).contains("a second alarm"));
        // another event at the same time that comes first does not clear it, and does not count as a request
        let mut host = self::host(vec![alarm(NOW), None, alarm(NOW), alarm(NOW), alarm(NOW)]);
        assert_eq!(host.report(Time::ZERO, &report).expect("later").alarm, Some(NOW));
        assert_eq!(host.report(NOW, &report).expect("no change").alarm, Some(NOW), "it is due and pending");
        assert_eq!(host.report(NOW, &report).expect("the same").alarm, Some(NOW));
        assert_eq!(host.alarm(NOW).expect("granted").alarm, Some(NOW));
        assert!(refusal(host.alarm(NOW)).contains("a second alarm"));
        // once it has come, no change means no alarm
        let mut host = self::host(vec![alarm(NOW), None]);
        assert_eq!(host.report(NOW, &report).expect("granted").alarm, Some(NOW));
        assert_eq!(host.alarm(NOW).expect("no change").alarm, None);
        let mut host = self::host(vec![alarm(NOW)]);
        let early = host.report(later, &report);
        assert_eq!(
            refusal(early),
            "it at 2.000000001s: asked for an alarm at 2.000000000s, which is in the past (now is 2.000000001s)"
        );
    }

    #[test]
    fn decisions_that_make_no_sense_end_the_run() {
        let base = Decision::rate(Rate::from_mbps(1));
        let negative = Some(-Span::from_nanos(1));
        let probe = Probe { id: 7, rate: Rate::from_mbps(1), ..Probe::default() };
        let with = |probe: Probe| Decision { probes: Probes::from(probe), ..base };
        for (decision, expected) in [
            (Decision { min_gap: negative, ..base }, "a minimum gap of -0.000001ms, which is negative"),
            (Decision { heartbeat: negative, ..base }, "a heartbeat of -0.000001ms, which is negative"),
            (with(Probe { rate: Rate::ZERO, ..probe }), "probe 7 at 0"),
            (with(Probe { length: -Span::from_nanos(1), ..probe }), "probe 7"),
            (with(Probe { spacing: -Span::from_nanos(1), ..probe }), "probe 7"),
        ] {
            let reason = refusal(host(vec![Some(decision)]).report(NOW, &Report::default()));
            assert!(reason.contains(expected), "{reason}");
        }
        let _ = host(vec![Some(with(probe))]).report(NOW, &Report::default()).expect("this one is fine");
    }
}
