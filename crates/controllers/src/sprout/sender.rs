//! Sending half: the bytes that the last forecast allows in the network, and the bytes already there (`sproutconn.cc`).

use super::forecast::{Forecast, TICKS};
use super::model::TICK;
use super::settings::{Offer, Settings};
use super::wire::{Message, Stamp};
use std::collections::VecDeque;
use tidegate_core::control::{
    Context, Controller, Decision, FeedbackKind, Limits, Needs, Outgoing, Report, Sent,
};
use tidegate_core::datagram::Extension;
use tidegate_core::wire::wrap;
use tidegate_core::{Rate, Size, Span, Time};

/// Pacing rate that sends flights at once, since Sprout does not pace.
const UNPACED: Rate = Rate::from_mbps(1000);

/// Largest UDP datagram, bytes.
const MAX_DATAGRAM: u64 = 65_507;

/// Present forecast.
#[derive(Clone, Copy, Debug)]
struct ReceivedForecast {
    forecast: Forecast,
    /// Arrival of its message.
    arrival: Time,
    /// Number of its ticks that have passed, at most all but one.
    passed: usize,
    /// Receiver's tick after which it was made.
    tick: u32,
}

/// Sending half of Sprout and of Sprout-EWMA.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    received: Option<ReceivedForecast>,
    /// Number of the next byte.
    next: i64,
    /// Estimated bytes in the network (`current_queue_bytes_estimate`).
    queue: u64,
    /// Bytes waiting in the pacer.
    backlog: u64,
    /// Largest packet so far, bytes.
    largest: u64,
    /// First byte and departure of the packets that may still be overtaken, the oldest first.
    recent: VecDeque<(i64, Time)>,
}

impl Sender {
    /// Creates a controller, which begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            limits: Limits::default(),
            received: None,
            next: 0,
            queue: 0,
            backlog: 0,
            largest: 0,
            recent: VecDeque::new(),
        }
    }

    /// Ends the forecast's ticks that are over by `now`: the packets forecast for them have left the network. As in the
    /// original, each tick subtracts the cumulated deliveries since the forecast, not those of the tick alone.
    fn advance(&mut self, now: Time) {
        let Some(received) = &mut self.received else { return };
        let ended = (now - received.arrival).as_nanos() / TICK.as_nanos();
        let ended = usize::try_from(ended).unwrap_or(0).min(TICKS - 1);
        while received.passed < ended {
            let delivered = self.settings.forecast_packet * u64::from(received.forecast[received.passed]);
            self.queue = self.queue.saturating_sub(delivered);
            received.passed += 1;
        }
    }

    /// Bytes that the forecast allows in the network, and the time in which they are delivered.
    fn window(&self) -> (u64, Span) {
        let Some(received) = &self.received else { return (0, TICK) };
        let ahead = (received.passed + self.settings.delay_ticks as usize).min(TICKS - 1);
        let packets = received.forecast[ahead] - received.forecast[received.passed];
        (self.settings.forecast_packet * u64::from(packets), TICK * (ahead - received.passed).max(1) as i64)
    }

    /// Takes a forecast if it is valid: newer than the present one, and without bytes that were not sent.
    fn on_forecast(&mut self, now: Time, message: &Message) {
        let is_overtaken =
            self.received.is_some_and(|received| (message.tick.wrapping_sub(received.tick) as i32) <= 0);
        let received_or_lost = wrap::nearest(message.received_or_lost, 32, self.next);
        if is_overtaken || received_or_lost > self.next {
            return;
        }
        self.queue = (self.next - received_or_lost).unsigned_abs();
        self.received = Some(ReceivedForecast {
            forecast: message.forecast,
            arrival: now,
            passed: 0,
            tick: message.tick,
        });
    }

    /// `rate` without the part that drains the pacer, but at least half of it.
    fn drained(&self, rate: Rate) -> Rate {
        if self.settings.drain_time <= 0.0 {
            return rate;
        }
        let drain = Rate::from_bps_f64(self.backlog as f64 * 8.0 / self.settings.drain_time);
        rate.saturating_sub(drain).max(rate.scaled(0.5))
    }

    fn decide(&self) -> Decision {
        let (window, span) = self.window();
        let Limits { min, max, .. } = self.limits;
        let target = match self.settings.offer {
            Offer::Forecast => self.drained(Size::from_bytes(window).per(span)),
            Offer::All => max,
        };
        // a full packet is sent while there is any room, as in the authors' tunnel program; the original's bulk sender
        // shortens its last packet to the remaining room, which media cannot do
        let window = Size::from_bytes(window.saturating_add(self.largest.saturating_sub(1)));
        let alarm = self.received.filter(|received| received.passed < TICKS - 1);
        Decision {
            target: target.max(min).min(max.max(min)),
            pacing: UNPACED,
            pace_audio: true,
            window: Some(window),
            heartbeat: Some(Span::from_millis_f64(self.settings.heartbeat)),
            alarm: alarm.map(|received| received.arrival + TICK * (received.passed as i64 + 1)),
            ..Decision::rate(target)
        }
    }

    fn note(&self, cx: &mut Context<'_>) {
        if cx.wants_notes() {
            cx.note("window_bytes", self.window().0 as f64);
            cx.note("queue_bytes", self.queue as f64);
        }
    }
}

impl Controller for Sender {
    fn needs(&self) -> Needs {
        Needs::feedback(FeedbackKind::OwnMessages)
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        self.advance(now);
        for message in report.messages.iter().filter_map(Message::parse) {
            self.on_forecast(now, &message);
            self.note(cx);
        }
        self.decide()
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.advance(now);
        self.note(cx);
        self.decide()
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        self.advance(now);
        self.decide()
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, _cx: &mut Context<'_>) -> Decision {
        let size = packet.size.as_bytes();
        self.next = self.next.saturating_add_unsigned(size.saturating_add(self.settings.packet_overhead));
        self.queue = self.queue.saturating_add(size);
        self.backlog = packet.backlog.as_bytes();
        self.largest = self.largest.max(size.min(MAX_DATAGRAM));
        self.advance(now);
        self.decide()
    }

    fn needs_sent(&self) -> bool {
        true
    }

    fn in_flight(&self) -> Option<Size> {
        Some(Size::from_bytes(self.queue))
    }

    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        let limit = now - Span::from_millis_f64(self.settings.reordering);
        self.recent.push_back((self.next, now));
        while self.recent.front().is_some_and(|&(_, sent)| sent < limit) {
            self.recent.pop_front();
        }
        let oldest = self.recent.front().map_or(self.next, |&(first, _)| first);
        let size = packet.size.as_bytes();
        // the next packet follows at once if there is one and this one leaves any room
        let limited = packet.backlog == Size::ZERO;
        let room = self.window().0.saturating_sub(self.queue);
        let next_follows = !limited && room > size;
        let stamp = Stamp {
            sequence: self.next as u32,
            throwaway: u16::try_from(self.next - oldest).unwrap_or(u16::MAX),
            time_to_next: if next_follows {
                Span::ZERO
            } else {
                Span::from_millis_f64(self.settings.heartbeat)
            },
            limited,
        };
        Some(stamp.write())
    }
}
