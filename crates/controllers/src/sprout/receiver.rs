//! The receiving half: a forecast at the end of every tick.

use super::received_or_lost::ReceivedOrLost;
use super::settings::Settings;
use super::ticks::Ticks;
use super::wire::{Message, Stamp};
use tidegate_core::control::{Arrived, Ask, Context, Feedback, ReceiverHalf, Urgency};
use tidegate_core::{Span, Time};

/// After so much silence the ticks rest until the next packet: nothing is believed any more that another
/// minute of silence would change.
const REST: Span = Span::from_secs(60);

/// The receiving half of Sprout and of Sprout-EWMA.
#[derive(Clone, Debug)]
pub struct Receiver {
    settings: Settings,
    /// From the first packet on.
    ticks: Option<Ticks>,
    received_or_lost: ReceivedOrLost,
    /// Ticks that have ended.
    ended: u32,
    /// When the last packet came.
    heard: Time,
}

impl Receiver {
    /// A half that has heard nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ticks: None,
            received_or_lost: ReceivedOrLost::default(),
            ended: 0,
            heard: Time::ZERO,
        }
    }

    /// Ends the ticks that are over by `now`. Says whether there were any.
    fn advance(&mut self, now: Time) -> bool {
        let Some(ticks) = &mut self.ticks else { return false };
        let before = self.ended;
        if now - ticks.ends() > REST {
            self.ended = self.ended.wrapping_add(ticks.rest_until(now));
        }
        while ticks.ends() <= now {
            ticks.end();
            self.ended = self.ended.wrapping_add(1);
        }
        self.ended != before
    }

    fn ask(&self, now: Time, news: bool) -> Ask {
        let resting = now - self.heard >= REST;
        Ask {
            urgency: if news { Urgency::Now } else { Urgency::None },
            alarm: self.ticks.as_ref().filter(|_| !resting).map(Ticks::ends),
        }
    }
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> Ask {
        if let Some(stamp) = packet.extension.and_then(Stamp::read) {
            self.heard = now;
            let news = self.advance(now);
            let ticks = self.ticks.get_or_insert_with(|| Ticks::new(&self.settings, now));
            ticks.packet(packet.size.as_bytes(), stamp.time_to_next, stamp.limited);
            self.received_or_lost.packet(stamp.sequence, stamp.throwaway, packet.size.as_bytes());
            return self.ask(now, news);
        }
        let news = self.advance(now);
        self.ask(now, news)
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> Ask {
        let news = self.advance(now);
        self.ask(now, news)
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
