//! Receiving half: a forecast at the end of each tick.

use super::received_or_lost::ReceivedOrLost;
use super::settings::Settings;
use super::ticks::Ticks;
use super::wire::{Message, Stamp};
use tidegate_core::control::{Arrived, Context, Feedback, FeedbackRequest, ReceiverHalf, Urgency};
use tidegate_core::{Span, Time};

/// Silence after which ticks stop until the next packet, because a further minute of silence would not change the belief.
const MAX_SILENCE: Span = Span::from_secs(60);

/// Receiving half of Sprout and of Sprout-EWMA.
#[derive(Clone, Debug)]
pub struct Receiver {
    settings: Settings,
    /// Ticks, from the first packet on.
    ticks: Option<Ticks>,
    received_or_lost: ReceivedOrLost,
    /// Number of ticks that have ended.
    ended: u32,
    /// Arrival of the last packet.
    last_arrival: Time,
}

impl Receiver {
    /// Creates a half without packets.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ticks: None,
            received_or_lost: ReceivedOrLost::default(),
            ended: 0,
            last_arrival: Time::ZERO,
        }
    }

    /// Ends the ticks that are over by `now`; returns whether there was one.
    fn advance(&mut self, now: Time) -> bool {
        let Some(ticks) = &mut self.ticks else { return false };
        let before = self.ended;
        if now - ticks.end_time() > MAX_SILENCE {
            self.ended = self.ended.wrapping_add(ticks.skip_until(now));
        }
        while ticks.end_time() <= now {
            ticks.end();
            self.ended = self.ended.wrapping_add(1);
        }
        self.ended != before
    }

    fn ask(&self, now: Time, has_forecast: bool) -> FeedbackRequest {
        let is_stopped = now - self.last_arrival >= MAX_SILENCE;
        FeedbackRequest {
            urgency: if has_forecast { Urgency::Now } else { Urgency::None },
            alarm: self.ticks.as_ref().filter(|_| !is_stopped).map(Ticks::end_time),
        }
    }
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> FeedbackRequest {
        if let Some(stamp) = packet.extension.and_then(Stamp::parse) {
            self.last_arrival = now;
            let has_forecast = self.advance(now);
            let ticks = self.ticks.get_or_insert_with(|| Ticks::new(&self.settings, now));
            ticks.packet(packet.size.as_bytes(), stamp.time_to_next, stamp.limited);
            self.received_or_lost.packet(stamp.sequence, stamp.throwaway, packet.size.as_bytes());
            return self.ask(now, has_forecast);
        }
        let has_forecast = self.advance(now);
        self.ask(now, has_forecast)
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> FeedbackRequest {
        let has_forecast = self.advance(now);
        self.ask(now, has_forecast)
    }

    fn message(&mut self, _now: Time, cx: &mut Context<'_>) -> Feedback {
        let Some(ticks) = &mut self.ticks else { return Vec::new() };
        let forecast = ticks.forecast();
        if cx.wants_notes() {
            cx.note("receiver_rate", ticks.mean());
            for (name, count) in [("forecast_20ms", forecast[0]), ("forecast_160ms", forecast[7])] {
                cx.note(name, f64::from(count));
            }
        }
        let received_or_lost = self.received_or_lost.bytes() as u32;
        vec![Message { received_or_lost, tick: self.ended, forecast }.write()]
    }
}
