//! The receiving half: when to speak, and the receive rate (RFC 5348 section 6).

use super::equation;
use super::history::{LossHistory, News};
use super::settings::{FirstInterval, Settings};
use super::wire::{Feedback, Stamp};
use std::collections::VecDeque;
use tidegate_core::control::{self, Arrived, Ask, Context, ReceiverHalf, Urgency};
use tidegate_core::wire::wrap;
use tidegate_core::{Ecn, Span, Time};

/// The packet with the highest sequence number.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sequence: i64,
    timestamp: u32,
    at: Time,
}

/// The receiving half of TFRC.
#[derive(Clone, Debug)]
pub struct Receiver {
    settings: Settings,
    history: LossHistory,
    newest: Option<Newest>,
    /// R as the newest packet tells it; zero while the sender has none.
    rtt: Span,
    /// When each packet came and its bytes: those of the last round trip, and those since the last feedback.
    arrivals: VecDeque<(Time, u64)>,
    /// Mean size of the packets received.
    size: f64,
    /// When the last feedback was written.
    spoke: Option<Time>,
    /// The largest X_recv so far.
    fastest: f64,
    /// p and X_recv of the last feedback.
    p: f64,
    receive_rate: f64,
    /// The feedback timer; at rest while nothing has come since the last feedback.
    timer: Option<Time>,
}

/// No feedback timer is shorter: while RTCP's profile holds feedback back, the timer rings each round trip, which may be
/// a microsecond.
const TIMER_LEAST: Span = Span::from_millis(1);

/// The receive rate of a stampede is counted over this many packets at most.
const ARRIVALS_MOST: usize = 1 << 16;

impl Receiver {
    /// A half that has heard nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            history: LossHistory::new(settings.history()),
            newest: None,
            rtt: Span::ZERO,
            arrivals: VecDeque::new(),
            size: settings.mss as f64,
            spoke: None,
            fastest: 0.0,
            p: 0.0,
            receive_rate: 0.0,
            timer: None,
            settings,
        }
    }

    /// X_recv in bytes/s: what came in the last round trip, or since the last feedback if that was longer
    /// ago (section 6.2 step 2). Zero in the first feedback (section 6.3).
    fn measure(&self, now: Time) -> f64 {
        let Some(spoke) = self.spoke else { return 0.0 };
        let span = (now - spoke).max(self.rtt);
        if span <= Span::ZERO {
            return self.receive_rate;
        }
        let since = now - span;
        let bytes: u64 =
            self.arrivals.iter().rev().take_while(|&&(at, _)| at > since).map(|&(_, size)| size).sum();
        bytes as f64 / span.as_secs_f64()
    }

    /// The length of the interval before the first loss: the equation's for the receive rate
    /// (section 6.3.1).
    fn first_interval(&self, now: Time) -> f64 {
        let present = self.measure(now);
        let rate = match self.settings.first_interval {
            FirstInterval::Largest => self.fastest.max(present),
            FirstInterval::Present => present,
        };
        let rtt = self.rtt.as_secs_f64();
        if rtt <= 0.0 {
            return 1.0;
        }
        let segment = if self.settings.segment > 0 { self.settings.segment as f64 } else { self.size };
        // what small packets carry is less than what the equation allowed them
        let allowed = rate / equation::small_packet_share(self.size, self.settings.header as f64);
        // half a segment a round trip if not even the first packet came
        let target = allowed.max(0.5 * segment / rtt);
        let acks = self.settings.delayed_acks as f64;
        1.0 / equation::loss_event_rate(segment, rtt, target, acks, self.settings.rto_rtts * rtt)
    }

    /// Takes the packet in. Says whether it is to be told at once.
    fn take(&mut self, now: Time, stamp: Stamp, packet: &Arrived<'_>) -> bool {
        let near = self.newest.map_or(i64::from(stamp.sequence), |newest| newest.sequence);
        let sequence = wrap::nearest(u32::from(stamp.sequence), 16, near);
        if self.newest.is_none_or(|newest| sequence > newest.sequence) {
            self.newest = Some(Newest { sequence, timestamp: stamp.timestamp, at: now });
            self.rtt = stamp.rtt;
        }
        let news = self.history.packet(sequence, now, self.rtt, packet.ecn == Ecn::Ce);
        if news == News::Duplicate {
            return false;
        }
        let size = packet.size.as_bytes();
        if self.arrivals.is_empty() && self.spoke.is_none() {
            self.size = size as f64;
        }
        self.size += (size as f64 - self.size) * self.settings.size_weight;
        let keep = self.spoke.map_or(now, |spoke| spoke.min(now - self.rtt));
        while self.arrivals.front().is_some_and(|&(at, _)| at <= keep) || self.arrivals.len() >= ARRIVALS_MOST
        {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back((now, size));
        if news == News::Loss && self.history.wants_first() {
            let first = self.first_interval(now);
            self.history.set_first(first);
        }
        // without R there is no timer yet, and at rest none has rung with something to say (section 6.1 step 4)
        self.timer.is_none() || (news == News::Loss && self.history.rate(now) > self.p)
    }

    fn speak(&mut self, now: Time) -> Ask {
        self.timer = (self.rtt > Span::ZERO).then(|| now + self.rtt.max(TIMER_LEAST));
        Ask { urgency: Urgency::Now, alarm: self.timer }
    }

    /// The feedback timer has run out (section 6.2).
    fn expire(&mut self, now: Time) -> Ask {
        let news = self.arrivals.back().is_some_and(|&(at, _)| self.spoke.is_none_or(|spoke| at > spoke));
        if news {
            return self.speak(now);
        }
        // no feedback about nothing: the next packet is told at once
        self.timer = None;
        Ask::default()
    }
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> Ask {
        let stamp = packet.extension.and_then(Stamp::read);
        match stamp {
            Some(stamp) if self.take(now, stamp, packet) => self.speak(now),
            // the packet has come at the very instant of the alarm, and before it
            _ if self.timer.is_some_and(|at| at <= now) => self.expire(now),
            _ => Ask { urgency: Urgency::None, alarm: self.timer },
        }
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> Ask {
        self.expire(now)
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> control::Feedback {
        let Some(newest) = self.newest else { return Vec::new() };
        self.receive_rate = self.measure(now);
        self.fastest = self.fastest.max(self.receive_rate);
        self.p = self.history.rate(now);
        self.spoke = Some(now);
        cx.note("receiver_p", self.p);
        let delay = ((now - newest.at).as_nanos() / 1000).clamp(0, i64::from(u32::MAX)) as u32;
        let said = Feedback {
            timestamp: newest.timestamp,
            delay,
            receive_rate: self.receive_rate,
            loss_event_rate: self.p,
        };
        vec![said.write()]
    }
}
