//! The receiver half: says the true delay of the last packet, where the sender is to have it.
//!
//! The document's receiver takes the delay from a timestamp of the sender's clock, which in a simulator is
//! its own, and writes it into its report. Here an APP packet (RFC 3550 section 6.7) of the name `DLAY`
//! rides in the compound of the receiver report: eight bytes, the delay in nanoseconds.

use super::settings::{DelaySource, Settings};
use tidegate_core::control::{Arrived, Ask, Context, Feedback, ReceiverHalf, Urgency};
use tidegate_core::wire::rtcp;
use tidegate_core::{Span, Time};

/// The name of the APP packet.
pub const APP_NAME: [u8; 4] = *b"DLAY";

/// The receiving half.
pub struct Receiver {
    tells: bool,
    /// The delay of the last packet that arrived.
    delay: Option<Span>,
}

impl Receiver {
    /// A receiver half with these settings: a silent one unless the delay is the simulator's.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { tells: settings.delay_source == DelaySource::Simulator, delay: None }
    }
}

/// The delay that an APP packet says; nothing if it is another one.
pub(super) fn read(app: &rtcp::App) -> Option<Span> {
    let nanos: [u8; 8] = app.data.as_slice().try_into().ok()?;
    (app.name == APP_NAME && app.subtype == 0).then(|| Span::from_nanos(i64::from_be_bytes(nanos)))
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, _now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> Ask {
        self.delay = packet.true_delay;
        let urgency = if self.delay.is_some() { Urgency::Regular } else { Urgency::None };
        Ask { urgency, alarm: None }
    }

    fn message(&mut self, _now: Time, cx: &mut Context<'_>) -> Feedback {
        let Some(delay) = self.delay else { return Feedback::new() };
        cx.note("delay_said_ms", delay.as_millis_f64());
        // the endpoint puts its own SSRC in
        let data = delay.as_nanos().to_be_bytes().to_vec();
        vec![rtcp::Packet::App(rtcp::App { subtype: 0, ssrc: 0, name: APP_NAME, data })]
    }

    fn needs_true_delay(&self) -> bool {
        self.tells
    }
}
