//! Receiving half, for the placement in which the receiver computes the congestion signal (RFC 8698 section 4.2).

use super::congestion::Congestion;
use super::rate::Mode;
use super::settings::{Placement, Settings};
use super::signals::Packet;
use super::window::Window;
use super::wire::{Feedback, Stamp};
use tidegate_core::control::{self, Arrived, Context, FeedbackRequest, ReceiverHalf, Urgency};
use tidegate_core::wire::wrap;
use tidegate_core::{Ecn, Span, Time};

/// Receiving half of NADA. It sends nothing if the sender computes the signal.
#[derive(Clone, Debug)]
pub struct Receiver {
    settings: Settings,
    window: Window,
    congestion: Congestion,
    /// Newest stamp, unwrapped: departure in us, and sequence number.
    newest: Option<(i64, i64)>,
    /// Time of the next feedback, while packets arrive.
    due: Option<Time>,
    /// Whether a packet has arrived since the last feedback.
    has_arrivals: bool,
}

impl Receiver {
    /// Creates a half without packets.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            window: Window::new(&settings),
            congestion: Congestion::default(),
            newest: None,
            due: None,
            has_arrivals: false,
            settings,
        }
    }

    fn delta(&self) -> Span {
        Span::from_millis_f64(self.settings.delta)
    }

    /// Requests a feedback message every DELTA while packets arrive.
    fn ask(&mut self, now: Time) -> FeedbackRequest {
        let mut urgency = Urgency::None;
        if self.due.is_some_and(|due| due <= now) {
            self.due = self.has_arrivals.then(|| now + self.delta());
            urgency = if self.has_arrivals { Urgency::Now } else { Urgency::None };
        }
        FeedbackRequest { urgency, alarm: self.due }
    }
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> FeedbackRequest {
        let stamp = packet.extension.and_then(Stamp::parse);
        let Some(stamp) = stamp.filter(|_| self.settings.placement == Placement::Receiver) else {
            return self.ask(now);
        };
        let reference = self.newest.unwrap_or((i64::from(stamp.timestamp), i64::from(stamp.sequence)));
        let sent = wrap::nearest(stamp.timestamp, 32, reference.0);
        let sequence = wrap::nearest(u32::from(stamp.sequence), 16, reference.1);
        let size = packet.size.as_bytes();
        let marked = packet.ecn == Ecn::Ce;
        let arrival = now.as_nanos();
        let received = Packet { sequence, size, sent: sent.saturating_mul(1000), arrival, marked };
        if self.window.add(now, received, None) {
            self.newest = Some((sent, sequence));
            self.has_arrivals = true;
            self.due = self.due.or(Some(now + self.delta()));
        }
        self.ask(now)
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> FeedbackRequest {
        self.ask(now)
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> control::Feedback {
        if !self.has_arrivals {
            return Vec::new();
        }
        self.has_arrivals = false;
        let signals = self.window.signals(now.as_nanos());
        self.congestion.update(&signals, &self.settings);
        cx.note("receiver_x_curr_ms", self.congestion.x);
        let feedback = Feedback {
            mode: if signals.ramp_up { Mode::RampUp } else { Mode::Gradual },
            x: self.congestion.x,
            receive_rate: signals.receive_rate.unwrap_or_default(),
        };
        vec![feedback.write()]
    }
}
