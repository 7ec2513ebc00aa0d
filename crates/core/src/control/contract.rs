//! Traits that a controller implements: [`Controller`] at the sender, [`ReceiverHalf`] at the receiver; and the [`Context`]
//! of a call.

use super::checks::{AlarmCheck, decision_error};
use super::messages::{
    Arrived, Decision, Feedback, FeedbackRequest, Limits, NewFrame, Outgoing, Report, Sent,
};
use super::needs::Needs;
use super::probes::Probes;
use crate::datagram::Extension;
use crate::rng::Stream;
use crate::units::{Rate, Size, Time};
use std::borrow::Cow;

/// Congestion controller at the sender.
pub trait Controller: Send {
    /// Needs of the controller in its session; called once, before the start.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Takes a feedback report, joined with the sent packets: the main input of a controller.
    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision;

    /// Handles the alarm of the last decision.
    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        let _ = now;
        cx.unchanged()
    }

    /// Takes new bounds, a new wanted rate, or a new route. Called once before all other events.
    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision;

    /// Takes a packet that has left. Called only if [`Controller::needs_sent`].
    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let _ = (now, packet);
        cx.unchanged()
    }

    /// Whether [`Controller::on_sent`] has to be called.
    fn needs_sent(&self) -> bool {
        false
    }

    /// Takes a media frame that has entered the pacer. Called only if [`Controller::needs_frames`].
    fn on_frame(&mut self, now: Time, frame: &NewFrame, cx: &mut Context<'_>) -> Decision {
        let _ = (now, frame);
        cx.unchanged()
    }

    /// Whether [`Controller::on_frame`] has to be called.
    fn needs_frames(&self) -> bool {
        false
    }

    /// Bytes in flight, for a scheme that learns from its own messages which packets have left the network; `None`: the
    /// number from per-packet feedback.
    fn in_flight(&self) -> Option<Size> {
        None
    }

    /// Header extension for a data packet, as real bytes.
    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        let _ = (now, packet);
        None
    }

    /// Calculated rate for coupling with other flows of the same sender (CC_R of RFC 8699 section 5.3). `None`: the
    /// controller cannot be coupled.
    fn coupled_rate(&self) -> Option<Rate> {
        None
    }

    /// Takes the rate after coupling (FSE_R, RFC 8699 section 5.3.1 step 3 (d)); the controller continues as if it had
    /// calculated it. Called only if [`Controller::coupled_rate`] is `Some`.
    fn on_coupled(&mut self, now: Time, rate: Rate, cx: &mut Context<'_>) -> Decision {
        let _ = (now, rate);
        cx.unchanged()
    }
}

/// Receiving half of a scheme that measures or decides at the receiver.
pub trait ReceiverHalf: Send {
    /// Takes a data packet that has arrived.
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, cx: &mut Context<'_>) -> FeedbackRequest;

    /// Handles the requested alarm.
    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> FeedbackRequest {
        let _ = (now, cx);
        FeedbackRequest::default()
    }

    /// Message to the sender, requested by the RTCP scheduler. An APP packet with the SSRC 0 gets that of the endpoint,
    /// which a half does not know.
    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> Feedback;

    /// Whether the half needs the simulator's one-way delays, for a document whose receiver reads the sender's clock. Its
    /// results travel in its messages.
    fn needs_true_delay(&self) -> bool {
        false
    }
}

/// Context of a call: what a controller may use besides its input.
pub struct Context<'a> {
    pub(super) now: Time,
    pub(super) last: &'a Decision,
    pub(super) alarms: AlarmCheck,
    /// Random substream of the controller.
    pub rng: &'a mut Stream,
    pub(super) notes: &'a mut Notes,
    pub(super) failure: &'a mut Option<String>,
}

impl Context<'_> {
    /// Last decision, without an alarm that has come and without probes that were sent.
    #[inline]
    pub fn unchanged(&self) -> Decision {
        let is_pending = self.alarms.is_pending(self.now);
        let alarm = self.last.alarm.filter(|&alarm| alarm > self.now || is_pending);
        Decision { alarm, probes: Probes::NONE, ..*self.last }
    }

    /// Last decision, unmodified.
    pub fn last(&self) -> Decision {
        *self.last
    }

    /// Violation of the contract by a decision, if there is one; such a decision ends the run.
    #[must_use]
    pub fn objection(&self, decision: &Decision) -> Option<String> {
        self.alarm_objection(decision.alarm).or_else(|| decision_error(decision))
    }

    /// Violation of the contract by an alarm, if there is one; such an alarm ends the run.
    #[must_use]
    pub fn alarm_objection(&self, alarm: Option<Time>) -> Option<String> {
        { self.alarms }.request(self.now, alarm).err()
    }

    /// Records an internal value as a named series.
    pub fn note(&mut self, name: impl Into<Cow<'static, str>>, value: f64) {
        if self.notes.wanted {
            self.notes.values.push((name.into(), value));
        }
    }

    /// Whether notes are recorded, for values that are costly to compute.
    #[must_use]
    pub fn wants_notes(&self) -> bool {
        self.notes.wanted
    }

    /// Ends the run with a reason.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.failure.get_or_insert_with(|| reason.into());
    }
}

/// Named values worth plotting, collected during one call.
#[derive(Debug, Default)]
pub struct Notes {
    /// Whether notes are recorded.
    pub wanted: bool,
    /// Names and values, in the order of the calls.
    pub values: Vec<(Cow<'static, str>, f64)>,
}
