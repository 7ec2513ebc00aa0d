//! What a controller implements: [`Controller`] at the sender, [`ReceiverHalf`] at the receiver, and the [`Context`] of a
//! call.

use super::checks::{AlarmCheck, broken};
use super::messages::{Arrived, Ask, Decision, Feedback, Limits, NewFrame, Outgoing, Report, Sent};
use super::needs::Needs;
use super::probes::Probes;
use crate::datagram::Extension;
use crate::rng::Stream;
use crate::units::{Rate, Size, Time};
use std::borrow::Cow;

/// A sending-side congestion controller.
pub trait Controller: Send {
    /// What it needs of its session; asked once, before it begins.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A feedback report, joined with what was sent: the heart of every controller.
    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision;

    /// The alarm of the last decision.
    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        let _ = now;
        cx.unchanged()
    }

    /// New bounds, a new wanted rate, or a new route. Called once before everything else.
    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision;

    /// One packet has left. Called only if [`Controller::needs_sent`].
    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let _ = (now, packet);
        cx.unchanged()
    }

    /// Whether [`Controller::on_sent`] is to be called.
    fn needs_sent(&self) -> bool {
        false
    }

    /// A frame of media has come into the pacer. Called only if [`Controller::needs_frames`].
    fn on_frame(&mut self, now: Time, frame: &NewFrame, cx: &mut Context<'_>) -> Decision {
        let _ = (now, frame);
        cx.unchanged()
    }

    /// Whether [`Controller::on_frame`] is to be called.
    fn needs_frames(&self) -> bool {
        false
    }

    /// Bytes in flight, for a scheme that learns from messages of its own what has left the network; `None`:
    /// what per-packet feedback says.
    fn in_flight(&self) -> Option<Size> {
        None
    }

    /// What rides on a data packet, as real bytes.
    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        let _ = (now, packet);
        None
    }

    /// The rate that it has calculated for its path, for coupling with the other flows of its sender: CC_R of RFC 8699
    /// section 5.3. `None`: it cannot be coupled.
    fn coupled_rate(&self) -> Option<Rate> {
        None
    }

    /// What coupling makes of that rate (FSE_R, RFC 8699 section 5.3.1 step 3 (d)): it goes on from this one, as if it had
    /// calculated it. Called only if [`Controller::coupled_rate`] gives something.
    fn on_coupled(&mut self, now: Time, rate: Rate, cx: &mut Context<'_>) -> Decision {
        let _ = (now, rate);
        cx.unchanged()
    }
}

/// The receiving half of a scheme that measures or decides at the receiver.
pub trait ReceiverHalf: Send {
    /// A data packet has arrived.
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, cx: &mut Context<'_>) -> Ask;

    /// The alarm it asked for.
    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Ask {
        let _ = (now, cx);
        Ask::default()
    }

    /// What to say, written when the RTCP scheduler says so. An APP packet with the SSRC 0 gets that of the
    /// endpoint, which a half does not know.
    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> Feedback;

    /// Whether it is to get the simulator's one-way delays: for a document whose receiver reads the sender's
    /// clock. What it makes of them travels in its messages.
    fn needs_true_delay(&self) -> bool {
        false
    }
}

/// What a controller may use besides its input.
pub struct Context<'a> {
    pub(super) now: Time,
    pub(super) last: &'a Decision,
    pub(super) alarms: AlarmCheck,
    /// The controller's own random substream.
    pub rng: &'a mut Stream,
    pub(super) notes: &'a mut Notes,
    pub(super) failure: &'a mut Option<String>,
}

impl Context<'_> {
    /// The last decision without a fired alarm or spent probes.
    #[inline]
    pub fn unchanged(&self) -> Decision {
        let waits = self.alarms.at(self.now);
        let alarm = self.last.alarm.filter(|&at| at > self.now || waits);
        Decision { alarm, probes: Probes::NONE, ..*self.last }
    }

    /// The last decision as it was.
    pub fn last(&self) -> Decision {
        *self.last
    }

    /// What the contract has against a decision, if anything: the run ends with it.
    #[must_use]
    pub fn objection(&self, decision: &Decision) -> Option<String> {
        self.alarm_objection(decision.alarm).or_else(|| broken(decision))
    }

    /// What the contract has against an alarm, if anything: the run ends with it.
    #[must_use]
    pub fn alarm_objection(&self, alarm: Option<Time>) -> Option<String> {
        { self.alarms }.ask(self.now, alarm).err()
    }

    /// Records an internal value as a named series.
    pub fn note(&mut self, name: impl Into<Cow<'static, str>>, value: f64) {
        if self.notes.wanted {
            self.notes.values.push((name.into(), value));
        }
    }

    /// Whether anybody keeps notes: for values that cost something to compute.
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
    /// Whether anybody wants them.
    pub wanted: bool,
    /// Name and value, in the order of saying.
    pub values: Vec<(Cow<'static, str>, f64)>,
}
