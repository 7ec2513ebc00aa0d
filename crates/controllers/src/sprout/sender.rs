//! The sending half: what the last forecast lets into the network, and what is there already
//! (`sproutconn.cc`).

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

/// Flights leave at once: Sprout does not pace.
const AT_ONCE: Rate = Rate::from_mbps(1000);

/// The largest UDP datagram.
const LARGEST: u64 = 65_507;

/// The forecast in force.
#[derive(Clone, Copy, Debug)]
struct Heard {
    forecast: Forecast,
    /// When it came.
    at: Time,
    /// How many of its ticks have passed, at most all but one.
    passed: usize,
    /// The receiver's tick after which it was made.
    tick: u32,
}

/// The sending half of Sprout and of Sprout-EWMA.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    limits: Limits,
    heard: Option<Heard>,
    /// The number of the next byte.
    next: i64,
    /// Bytes believed to be in the network (`current_queue_bytes_estimate`).
    queue: u64,
    /// Bytes that wait in the pacer.
    backlog: u64,
    /// Bytes of the largest packet so far.
    largest: u64,
    /// First byte and time of the packets that may still be overtaken, the oldest first.
    recent: VecDeque<(i64, Time)>,
}

impl Sender {
    /// A controller that begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            limits: Limits::default(),
            heard: None,
            next: 0,
            queue: 0,
            backlog: 0,
            largest: 0,
            recent: VecDeque::new(),
        }
    }

    /// Lets the ticks of the forecast pass that are over by `now`: what it says that the link delivers has
    /// left the network. The original subtracts all that was to be delivered since the forecast with each
    /// tick, and not what that tick adds.
    fn pass(&mut self, now: Time) {
        let Some(heard) = &mut self.heard else { return };
        let over = (now - heard.at).as_nanos() / TICK.as_nanos();
        let over = usize::try_from(over).unwrap_or(0).min(TICKS - 1);
        while heard.passed < over {
            let delivered = self.settings.forecast_packet * u64::from(heard.forecast[heard.passed]);
            self.queue = self.queue.saturating_sub(delivered);
            heard.passed += 1;
        }
    }

    /// How many bytes the forecast lets into the network, and over which time they are delivered.
    fn window(&self) -> (u64, Span) {
        let Some(heard) = &self.heard else { return (0, TICK) };
        let ahead = (heard.passed + self.settings.delay_ticks as usize).min(TICKS - 1);
        let packets = heard.forecast[ahead] - heard.forecast[heard.passed];
        (self.settings.forecast_packet * u64::from(packets), TICK * (ahead - heard.passed).max(1) as i64)
    }

    /// Takes a forecast up, if it can be true: it is no older than the one in force, and tells of nothing
    /// that was not sent.
    fn hear(&mut self, now: Time, said: &Message) {
        let overtaken = self.heard.is_some_and(|heard| (said.tick.wrapping_sub(heard.tick) as i32) <= 0);
        let received_or_lost = wrap::nearest(said.received_or_lost, 32, self.next);
        if overtaken || received_or_lost > self.next {
            return;
        }
        self.queue = (self.next - received_or_lost).unsigned_abs();
        self.heard = Some(Heard { forecast: said.forecast, at: now, passed: 0, tick: said.tick });
    }

    /// `rate` less what drains the pacer, but at least half of it.
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
        // a whole packet goes while there is any room (as in the authors' tunnel program): the original's bulk sender cuts its last
        // packet to what is left, which media cannot
        let window = Size::from_bytes(window.saturating_add(self.largest.saturating_sub(1)));
        let alarm = self.heard.filter(|heard| heard.passed < TICKS - 1);
        Decision {
            target: target.max(min).min(max.max(min)),
            pacing: AT_ONCE,
            pace_audio: true,
            window: Some(window),
            heartbeat: Some(Span::from_millis_f64(self.settings.heartbeat)),
            alarm: alarm.map(|heard| heard.at + TICK * (heard.passed as i64 + 1)),
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
        self.pass(now);
        for said in report.messages.iter().filter_map(Message::read) {
            self.hear(now, &said);
            self.note(cx);
        }
        self.decide()
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        self.pass(now);
        self.note(cx);
        self.decide()
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, _cx: &mut Context<'_>) -> Decision {
        self.limits = *limits;
        self.pass(now);
        self.decide()
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, _cx: &mut Context<'_>) -> Decision {
        let size = packet.size.as_bytes();
        self.next = self.next.saturating_add_unsigned(size.saturating_add(self.settings.packet_overhead));
        self.queue = self.queue.saturating_add(size);
        self.backlog = packet.backlog.as_bytes();
        self.largest = self.largest.max(size.min(LARGEST));
        self.pass(now);
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
        // the next one follows at once if there is one and this one leaves any room
        let limited = packet.backlog == Size::ZERO;
        let room = self.window().0.saturating_sub(self.queue);
        let more = !limited && room > size;
        let stamp = Stamp {
            sequence: self.next as u32,
            throwaway: u16::try_from(self.next - oldest).unwrap_or(u16::MAX),
            time_to_next: if more { Span::ZERO } else { Span::from_millis_f64(self.settings.heartbeat) },
            limited,
        };
        Some(stamp.write())
    }
}
