//! The receiver half of the second placement: delay-based part at the receiver, its rate as REMB.
//!
//! draft-ietf-rmcat-gcc-02 section 3 (b); aiortc `RemoteBitrateEstimator`; libwebrtc
//! `remote_bitrate_estimator_abs_send_time.cc` and, for when to speak, `vie_remb.cc`.

use super::delay::{Arrival, Delay};
use super::sender::DEFAULT_RTT;
use tidegate_core::control::{Arrived, Ask, Context, Feedback, ReceiverHalf, Urgency};
use tidegate_core::units::{Rate, RemoteTime, Span, Time};
use tidegate_core::wire::rtcp::{self, Remb};
use tidegate_core::wire::wrap;

/// Beyond this, bit/s, a rate that nothing bounds does not grow (ours: ten times the fastest access line).
const MOST: f64 = 1e11;

/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// A REMB names at most so many streams (draft-alvestrand-rmcat-remb-03 section 2.2: 8 bits).
const STREAMS: usize = 255;

/// When a receiver half speaks, and what it does about the sender's clock.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A REMB at least this often while packets arrive, and at once when the rate has fallen; none: one with each update
    /// of the rate, and never else.
    pub interval: Option<Span>,
    /// Fallen is a rate that is less than the last one said by more than this part of it.
    pub drop: f64,
    /// The estimate is never less, bit/s: it does not know the session's limits.
    pub least: f64,
    /// The filter begins anew when the sender's clock jumps by so much against ours.
    pub jump: Option<Span>,
}

impl Rules {
    /// Draft 3 (b): at least once every second, and as soon as congestion is detected, with libwebrtc's throttle (vie_remb
    /// kSendThresholdPercent 97, RembThrottler 103) and least rate (AimdRateControl min_configured_bitrate_); no clock is
    /// watched.
    pub const DRAFT: Self =
        Self { interval: Some(Span::from_secs(1)), drop: 0.03, least: 5000.0, jump: None };
}

/// The delay-based part at the receiver.
pub struct Receiver {
    rules: Rules,
    delay: Delay,
    /// The newest abs-send-time, unwrapped, in 2^-18 s; and when it arrived.
    newest: Option<(i64, Time)>,
    /// The estimate, bit/s, once there is one.
    estimate: Option<f64>,
    /// What was said last, bit/s, and when.
    said: Option<(f64, Time)>,
    /// Whether anything has arrived since.
    heard: bool,
    /// The streams heard.
    ssrcs: Vec<u32>,
}

impl Receiver {
    /// A receiver half around this delay-based part.
    #[must_use]
    pub fn new(rules: Rules, delay: Delay) -> Self {
        Self {
            rules,
            delay,
            newest: None,
            estimate: None,
            said: None,
            heard: false,
            ssrcs: Vec::with_capacity(4),
        }
    }

    /// The send time of a packet that arrives `now`, by a clock that began at any instant. 24 bits wrap
    /// every 64 s: the reading nearest to the newest one so far.
    fn sent(&mut self, now: Time, abs_send_time: u32) -> Time {
        let Some((newest, arrived)) = self.newest else {
            self.newest = Some((i64::from(abs_send_time), now));
            return instant(i64::from(abs_send_time));
        };
        let ticks = wrap::nearest(abs_send_time, 24, newest);
        let ahead = instant(ticks).saturating_since(instant(newest)) - now.saturating_since(arrived);
        if self.rules.jump.is_some_and(|most| ahead.as_millis_f64().abs() >= most.as_millis_f64()) {
            self.delay.start_anew();
            self.newest = Some((ticks, now));
        } else if ticks >= newest {
            self.newest = Some((ticks, now));
        }
        instant(ticks)
    }

    /// When to speak: at once when the rate has fallen, else in every interval; within its second half
    /// along with a report, if there is one, and by itself at its end.
    fn ask(&self, interval: Span, now: Time) -> Ask {
        let Some(estimate) = self.estimate.filter(|_| self.heard) else { return Ask::default() };
        let half = Span::from_nanos(interval.as_nanos() / 2 + 1);
        let (urgency, next) = match self.said {
            None => (Urgency::Now, now + half),
            Some((said, _)) if estimate < said * (1.0 - self.rules.drop) => (Urgency::Now, now + half),
            Some((_, at)) if now >= at + interval => (Urgency::Now, now + half),
            Some((_, at)) if now >= at + half => (Urgency::Regular, at + interval),
            Some((_, at)) => (Urgency::None, at + half),
        };
        Ask { urgency, alarm: Some(next) }
    }
}

/// An unwrapped abs-send-time as an instant, to the nearest nanosecond.
fn instant(ticks: i64) -> Time {
    let nanos = (i128::from(ticks) * SECOND + (1 << 17)) >> 18;
    Time::from_nanos(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, cx: &mut Context<'_>) -> Ask {
        self.heard = true;
        if !self.ssrcs.contains(&packet.ssrc) && self.ssrcs.len() < STREAMS {
            self.ssrcs.push(packet.ssrc);
        }
        // without its time of sending a packet tells nothing (libwebrtc drops it as well)
        let Some(abs_send_time) = packet.abs_send_time else {
            return Ask { urgency: Urgency::None, alarm: None };
        };
        let sent = self.sent(now, abs_send_time);
        let arrived = RemoteTime::from_nanos(now.as_nanos());
        let arrival = Arrival { arrived, sent, size: packet.size };
        self.delay.hear(now);
        self.delay.count(&arrival);
        self.delay.arrive(now, &arrival, cx);
        // the round trip is the sender's to know
        let (updated, received) = self.delay.update(DEFAULT_RTT, now, (self.rules.least, MOST));
        if cx.wants_notes() {
            self.delay.note_rates(received, cx);
        }
        if updated {
            self.estimate = Some(self.delay.rate());
        }
        match self.rules.interval {
            Some(interval) => self.ask(interval, now),
            None => Ask { urgency: if updated { Urgency::Now } else { Urgency::None }, alarm: None },
        }
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> Ask {
        self.rules.interval.map_or(Ask::default(), |interval| self.ask(interval, now))
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> Feedback {
        let Some(estimate) = self.estimate else { return Feedback::new() };
        self.said = Some((estimate, now));
        self.heard = false;
        let bitrate = Rate::from_bps_f64(estimate);
        cx.note("remb_sent", Remb::carried(bitrate).as_bps_f64());
        // the endpoint puts its own SSRC in
        vec![rtcp::Packet::Remb(Remb { sender_ssrc: 0, bitrate, ssrcs: self.ssrcs.clone() })]
    }
}
