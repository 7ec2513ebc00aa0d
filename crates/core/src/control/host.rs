//! The hosts of controllers and of receiver halves: they call them, keep what they said last, and hold them to the contract.

use super::checks::{AlarmCheck, broken};
use super::contract::{Context, Controller, Notes, ReceiverHalf};
use super::messages::{Arrived, Ask, Decision, Feedback, Limits, NewFrame, Outgoing, Report, Sent, Urgency};
use super::needs::Needs;
use crate::datagram::Extension;
use crate::rng::Stream;
use crate::units::{Rate, Size, Time};

/// Why a controller cannot go on, and when that was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// When.
    pub at: Time,
    /// Who.
    pub who: String,
    /// What went wrong.
    pub reason: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}", self.who, self.at, self.reason)
    }
}

impl std::error::Error for Failure {}

/// Holds a controller with its substream and its last decision, calls it, and checks that it keeps the contract.
pub struct ControllerHost {
    who: String,
    controller: Box<dyn Controller>,
    last: Decision,
    alarms: AlarmCheck,
    rng: Stream,
    /// What the controller said during the last call.
    pub notes: Notes,
}

impl ControllerHost {
    /// A host of `controller`: `who` names it in errors, `rng` is its substream. The first decision is
    /// its answer to `limits` at `now`.
    ///
    /// # Errors
    /// When the controller fails or breaks the contract.
    pub fn new(
        who: impl Into<String>,
        controller: Box<dyn Controller>,
        rng: Stream,
        now: Time,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let mut host = Self {
            who: who.into(),
            controller,
            last: Decision::rate(limits.start),
            alarms: AlarmCheck::default(),
            rng,
            notes: Notes::default(),
        };
        let _first = host.limits(now, limits)?;
        Ok(host)
    }

    /// The last decision.
    #[inline]
    pub fn decision(&self) -> &Decision {
        &self.last
    }

    /// Its substream.
    #[must_use]
    pub fn rng(&self) -> &Stream {
        &self.rng
    }

    /// What the controller needs of its session.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.controller.needs()
    }

    /// Whether the controller wants [`ControllerHost::sent`].
    #[must_use]
    pub fn needs_sent(&self) -> bool {
        self.controller.needs_sent()
    }

    /// Whether the controller wants [`ControllerHost::frame`].
    #[must_use]
    pub fn needs_frames(&self) -> bool {
        self.controller.needs_frames()
    }

    /// A feedback report.
    ///
    /// # Errors
    /// When the controller fails or breaks the contract.
    pub fn report(&mut self, now: Time, report: &Report) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_report(now, report, cx))
    }

    /// The alarm is due.
    ///
    /// # Errors
    /// When the controller fails or breaks the contract.
    pub fn alarm(&mut self, now: Time) -> Result<&Decision, Failure> {
        self.alarms.fired();
        self.call(now, |controller, cx| controller.on_alarm(now, cx))
    }

    /// New limits.
    ///
    /// # Errors
    /// When the controller fails or breaks the contract.
    pub fn limits(&mut self, now: Time, limits: &Limits) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_limits(now, limits, cx))
    }

    /// A packet has left.
    ///
    /// # Errors
    /// When the controller fails or breaks the contract.
    pub fn sent(&mut self, now: Time, packet: &Sent) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_sent(now, packet, cx))
    }

    /// A frame of media has come into the pacer.
    ///
    /// # Errors
    /// When the controller fails or breaks the contract.
    pub fn frame(&mut self, now: Time, frame: &NewFrame) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_frame(now, frame, cx))
    }

    /// Bytes in flight, if the controller counts them itself.
    #[must_use]
    pub fn in_flight(&self) -> Option<Size> {
        self.controller.in_flight()
    }

    /// The rate that it has calculated, if it can be coupled with others.
    #[must_use]
    pub fn coupled_rate(&self) -> Option<Rate> {
        self.controller.coupled_rate()
    }

    /// What coupling makes of that rate.
    ///
    /// # Errors
    /// When the controller fails or breaks the contract.
    pub fn coupled(&mut self, now: Time, rate: Rate) -> Result<&Decision, Failure> {
        self.call(now, |controller, cx| controller.on_coupled(now, rate, cx))
    }

    /// What rides on a packet that is about to leave.
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
            failure = self.alarms.ask(now, decision.alarm).err().or_else(|| broken(&decision));
        }
        match failure {
            Some(reason) => Err(Failure { at: now, who: self.who.clone(), reason }),
            None => {
                debug_assert!(decision.alarm.is_none_or(|at| at >= now), "checked: {decision:?} at {now}");
                self.last = decision;
                Ok(&self.last)
            }
        }
    }
}

/// Holds a receiver half with its substream and its alarm, calls it, and checks that it keeps the contract.
pub struct ReceiverHost {
    who: String,
    half: Box<dyn ReceiverHalf>,
    alarms: AlarmCheck,
    rng: Stream,
    /// When it wants [`ReceiverHost::alarm`].
    pub alarm_at: Option<Time>,
    /// What it said during the last call.
    pub notes: Notes,
}

impl ReceiverHost {
    /// A host of `half`: `who` names it in errors, `rng` is its substream.
    pub fn new(who: impl Into<String>, half: Box<dyn ReceiverHalf>, rng: Stream) -> Self {
        Self {
            who: who.into(),
            half,
            alarms: AlarmCheck::default(),
            rng,
            alarm_at: None,
            notes: Notes::default(),
        }
    }

    /// Its substream.
    #[must_use]
    pub fn rng(&self) -> &Stream {
        &self.rng
    }

    /// Whether the half wants [`Arrived::true_delay`].
    #[must_use]
    pub fn needs_true_delay(&self) -> bool {
        self.half.needs_true_delay()
    }

    /// A data packet has arrived.
    ///
    /// # Errors
    /// When the half fails or breaks the contract.
    pub fn packet(&mut self, now: Time, packet: &Arrived<'_>) -> Result<Urgency, Failure> {
        self.call(now, |half, cx| half.on_packet(now, packet, cx))
    }

    /// Its alarm is due.
    ///
    /// # Errors
    /// When the half fails or breaks the contract.
    pub fn alarm(&mut self, now: Time) -> Result<Urgency, Failure> {
        self.alarms.fired();
        self.call(now, |half, cx| half.on_alarm(now, cx))
    }

    /// What it has to say.
    ///
    /// # Errors
    /// When the half fails.
    pub fn message(&mut self, now: Time) -> Result<Feedback, Failure> {
        let mut said = Feedback::new();
        let waits = self.alarms.at(now);
        let alarm = self.alarm_at.filter(|&at| at > now || waits);
        self.call(now, |half, cx| {
            said = half.message(now, cx);
            Ask { urgency: Urgency::None, alarm }
        })?;
        Ok(said)
    }

    fn call(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn ReceiverHalf, &mut Context<'_>) -> Ask,
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
            failure = self.alarms.ask(now, ask.alarm).err();
        }
        match failure {
            Some(reason) => Err(Failure { at: now, who: self.who.clone(), reason }),
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

    /// Answers each call with the next decision; `None`: no change.
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

    fn alarm(at: Time) -> Option<Decision> {
        Some(Decision::rate(Rate::from_mbps(1)).with_alarm(at))
    }

    fn why(answer: Result<&Decision, Failure>) -> String {
        answer.expect_err("it breaks the contract").to_string()
    }

    #[test]
    fn the_present_instant_is_granted_once() {
        let later = NOW + Span::from_nanos(1);
        let mut host = host(vec![alarm(NOW), None, alarm(later), alarm(later), alarm(later), alarm(later)]);
        let report = Report::default();
        assert_eq!(host.report(NOW, &report).expect("granted").alarm, Some(NOW));
        assert_eq!(host.report(NOW, &report).expect("unchanged").alarm, Some(NOW), "it is yet to come");
        assert_eq!(host.alarm(NOW).expect("later").alarm, Some(later));
        assert_eq!(host.report(NOW, &report).expect("later").alarm, Some(later));
        assert_eq!(host.alarm(later).expect("the present again, an instant later").alarm, Some(later));
        assert_eq!(
            why(host.alarm(later)),
            "it at 2.000000001s: asked for an alarm at the present instant (2.000000001s) once more; that is granted \
             once, then time has to pass"
        );
        // an alarm that came in its own time may be followed by one at once
        let mut host = self::host(vec![alarm(NOW), alarm(NOW), alarm(NOW)]);
        assert_eq!(host.report(Time::ZERO, &report).expect("later").alarm, Some(NOW));
        assert_eq!(host.alarm(NOW).expect("granted").alarm, Some(NOW));
        assert!(why(host.alarm(NOW)).contains("once more"));
        // what is due at the same instant and comes first does not take it away, and is no grant
        let mut host = self::host(vec![alarm(NOW), None, alarm(NOW), alarm(NOW), alarm(NOW)]);
        assert_eq!(host.report(Time::ZERO, &report).expect("later").alarm, Some(NOW));
        assert_eq!(
            host.report(NOW, &report).expect("no change").alarm,
            Some(NOW),
            "it is due and yet to come"
        );
        assert_eq!(host.report(NOW, &report).expect("the same").alarm, Some(NOW));
        assert_eq!(host.alarm(NOW).expect("granted").alarm, Some(NOW));
        assert!(why(host.alarm(NOW)).contains("once more"));
        // once it has come, no change means no alarm
        let mut host = self::host(vec![alarm(NOW), None]);
        assert_eq!(host.report(NOW, &report).expect("granted").alarm, Some(NOW));
        assert_eq!(host.alarm(NOW).expect("no change").alarm, None);
        let mut host = self::host(vec![alarm(NOW)]);
        let early = host.report(later, &report);
        assert_eq!(
            why(early),
            "it at 2.000000001s: asked for an alarm at 2.000000000s, which is in the past (now is 2.000000001s)"
        );
    }

    #[test]
    fn decisions_that_make_no_sense_end_the_run() {
        let plain = Decision::rate(Rate::from_mbps(1));
        let negative = Some(-Span::from_nanos(1));
        let probe = Probe { id: 7, rate: Rate::from_mbps(1), ..Probe::default() };
        let with = |probe: Probe| Decision { probes: Probes::from(probe), ..plain };
        for (decision, said) in [
            (Decision { min_gap: negative, ..plain }, "a least gap of -0.000001ms, which is negative"),
            (Decision { heartbeat: negative, ..plain }, "a heartbeat of -0.000001ms, which is negative"),
            (with(Probe { rate: Rate::ZERO, ..probe }), "probe 7 at 0"),
            (with(Probe { length: -Span::from_nanos(1), ..probe }), "probe 7"),
            (with(Probe { spacing: -Span::from_nanos(1), ..probe }), "probe 7"),
        ] {
            let why = why(host(vec![Some(decision)]).report(NOW, &Report::default()));
            assert!(why.contains(said), "{why}");
        }
        let _ = host(vec![Some(with(probe))]).report(NOW, &Report::default()).expect("this one is fine");
    }
}
