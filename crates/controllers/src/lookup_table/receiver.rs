//! Receiver half, which sends the true delay of the last packet if the sender needs it.
//!
//! The document's receiver takes the delay from a timestamp of the sender's clock, which in a simulator is also its own,
//! and writes it into its report. Here the compound packet of the receiver report has an APP packet (RFC 3550 section 6.7)
//! with the name `DLAY`: eight bytes, the delay in nanoseconds.

use super::settings::{DelaySource, Settings};
use tidegate_core::control::{Arrived, Context, Feedback, FeedbackRequest, ReceiverHalf, Urgency};
use tidegate_core::wire::rtcp;
use tidegate_core::{Span, Time};

/// Name of the APP packet.
pub const APP_NAME: [u8; 4] = *b"DLAY";

/// Receiving half.
pub struct Receiver {
    sends_delay: bool,
    /// Delay of the last received packet.
    delay: Option<Span>,
}

impl Receiver {
    /// Creates a receiver half, which is silent unless the delay is the simulator's.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { sends_delay: settings.delay_source == DelaySource::Simulator, delay: None }
    }
}

/// Parses the delay in an APP packet; none if it is not a message of this controller.
pub(super) fn parse_delay(app: &rtcp::App) -> Option<Span> {
    let nanos: [u8; 8] = app.data.as_slice().try_into().ok()?;
    (app.name == APP_NAME && app.subtype == 0).then(|| Span::from_nanos(i64::from_be_bytes(nanos)))
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, _now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> FeedbackRequest {
        self.delay = packet.true_delay;
        let urgency = if self.delay.is_some() { Urgency::Regular } else { Urgency::None };
        FeedbackRequest { urgency, alarm: None }
    }

    fn message(&mut self, _now: Time, cx: &mut Context<'_>) -> Feedback {
        let Some(delay) = self.delay else { return Feedback::new() };
        cx.note("delay_said_ms", delay.as_millis_f64());
        // the endpoint fills in its own SSRC
        let data = delay.as_nanos().to_be_bytes().to_vec();
        vec![rtcp::Packet::App(rtcp::App { subtype: 0, ssrc: 0, name: APP_NAME, data })]
    }

    fn needs_true_delay(&self) -> bool {
        self.sends_delay
    }
}
