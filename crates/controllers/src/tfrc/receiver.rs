//! Receiving half: times of feedback, and the receive rate (RFC 5348 section 6).

use super::equation;
use super::history::{LossHistory, News};
use super::settings::{FirstInterval, Settings};
use super::wire::{Feedback, Stamp};
use std::collections::VecDeque;
use tidegate_core::control::{self, Arrived, Context, FeedbackRequest, ReceiverHalf, Urgency};
use tidegate_core::wire::wrap;
use tidegate_core::{Ecn, Span, Time};

/// Packet with the highest sequence number.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sequence: i64,
    timestamp: u32,
    arrival: Time,
}

/// Receiving half of TFRC.
#[derive(Clone, Debug)]
pub struct Receiver {
    settings: Settings,
    history: LossHistory,
    newest: Option<Newest>,
    /// Round-trip time R in the newest packet; zero while the sender has none.
    rtt: Span,
    /// Time and bytes of the packets of the last round trip, and of those since the last feedback.
    arrivals: VecDeque<(Time, u64)>,
    /// Mean size of the packets received.
    size: f64,
    /// Time of the last feedback.
    last_feedback: Option<Time>,
    /// Largest X_recv so far.
    max_receive_rate: f64,
    /// Loss event rate p of the last feedback.
    p: f64,
    /// X_recv of the last feedback.
    receive_rate: f64,
    /// Feedback timer; none while no packet has arrived since the last feedback.
    timer: Option<Time>,
}

/// Shortest feedback timer. While RTCP's profile delays feedback, the timer expires every round trip, which may be a
/// microsecond.
const MIN_TIMER: Span = Span::from_millis(1);

/// Largest number of packets over which the receive rate is measured.
const MAX_ARRIVALS: usize = 1 << 16;

impl Receiver {
    /// Creates a half without packets.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            history: LossHistory::new(settings.history()),
            newest: None,
            rtt: Span::ZERO,
            arrivals: VecDeque::new(),
            size: settings.mss as f64,
            last_feedback: None,
            max_receive_rate: 0.0,
            p: 0.0,
            receive_rate: 0.0,
            timer: None,
            settings,
        }
    }

    /// Receive rate X_recv, bytes/s, over the last round trip, or since the last feedback if that is longer (section 6.2
    /// step 2). Zero in the first feedback (section 6.3).
    fn measure(&self, now: Time) -> f64 {
        let Some(last_feedback) = self.last_feedback else { return 0.0 };
        let span = (now - last_feedback).max(self.rtt);
        if span <= Span::ZERO {
            return self.receive_rate;
        }
        let since = now - span;
        let bytes: u64 =
            self.arrivals.iter().rev().take_while(|&&(time, _)| time > since).map(|&(_, size)| size).sum();
        bytes as f64 / span.as_secs_f64()
    }

    /// Length of the interval before the first loss, which is the equation's for the receive rate (section 6.3.1).
    fn first_interval(&self, now: Time) -> f64 {
        let present = self.measure(now);
        let rate = match self.settings.first_interval {
            FirstInterval::Largest => self.max_receive_rate.max(present),
            FirstInterval::Present => present,
        };
        let rtt = self.rtt.as_secs_f64();
        if rtt <= 0.0 {
            return 1.0;
        }
        let segment = if self.settings.segment > 0 { self.settings.segment as f64 } else { self.size };
        // the receive rate of small packets is lower than the equation's rate, which includes headers
        let allowed = rate / equation::small_packet_share(self.size, self.settings.header as f64);
        // half a segment per round trip if not even the first packet arrived
        let target = allowed.max(0.5 * segment / rtt);
        let acks = self.settings.delayed_acks as f64;
        1.0 / equation::loss_event_rate(segment, rtt, target, acks, self.settings.rto_rtts * rtt)
    }

    /// Takes a packet and returns whether it requires feedback at once.
    fn take(&mut self, now: Time, stamp: Stamp, packet: &Arrived<'_>) -> bool {
        let reference = self.newest.map_or(i64::from(stamp.sequence), |newest| newest.sequence);
        let sequence = wrap::nearest(u32::from(stamp.sequence), 16, reference);
        if self.newest.is_none_or(|newest| sequence > newest.sequence) {
            self.newest = Some(Newest { sequence, timestamp: stamp.timestamp, arrival: now });
            self.rtt = stamp.rtt;
        }
        let news = self.history.packet(sequence, now, self.rtt, packet.ecn == Ecn::Ce);
        if news == News::Duplicate {
            return false;
        }
        let size = packet.size.as_bytes();
        if self.arrivals.is_empty() && self.last_feedback.is_none() {
            self.size = size as f64;
        }
        self.size += (size as f64 - self.size) * self.settings.size_weight;
        let oldest = self.last_feedback.map_or(now, |last_feedback| last_feedback.min(now - self.rtt));
        while self.arrivals.front().is_some_and(|&(time, _)| time <= oldest)
            || self.arrivals.len() >= MAX_ARRIVALS
        {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back((now, size));
        if news == News::Loss && self.history.wants_first() {
            let first = self.first_interval(now);
            self.history.set_first(first);
        }
        // without R, or when the timer has expired without new packets, each packet is reported at once (section 6.1
        // step 4)
        self.timer.is_none() || (news == News::Loss && self.history.rate(now) > self.p)
    }

    fn send_feedback(&mut self, now: Time) -> FeedbackRequest {
        self.timer = (self.rtt > Span::ZERO).then(|| now + self.rtt.max(MIN_TIMER));
        FeedbackRequest { urgency: Urgency::Now, alarm: self.timer }
    }

    /// Handles the expiry of the feedback timer (section 6.2).
    fn expire(&mut self, now: Time) -> FeedbackRequest {
        let has_arrivals = self
            .arrivals
            .back()
            .is_some_and(|&(time, _)| self.last_feedback.is_none_or(|last_feedback| time > last_feedback));
        if has_arrivals {
            return self.send_feedback(now);
        }
        // no feedback without new packets; the next packet is reported at once
        self.timer = None;
        FeedbackRequest::default()
    }
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, _cx: &mut Context<'_>) -> FeedbackRequest {
        let stamp = packet.extension.and_then(Stamp::parse);
        match stamp {
            Some(stamp) if self.take(now, stamp, packet) => self.send_feedback(now),
            // the packet comes at the time of the alarm, but before it
            _ if self.timer.is_some_and(|due| due <= now) => self.expire(now),
            _ => FeedbackRequest { urgency: Urgency::None, alarm: self.timer },
        }
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> FeedbackRequest {
        self.expire(now)
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> control::Feedback {
        let Some(newest) = self.newest else { return Vec::new() };
        self.receive_rate = self.measure(now);
        self.max_receive_rate = self.max_receive_rate.max(self.receive_rate);
        self.p = self.history.rate(now);
        self.last_feedback = Some(now);
        cx.note("receiver_p", self.p);
        let delay = ((now - newest.arrival).as_nanos() / 1000).clamp(0, i64::from(u32::MAX)) as u32;
        let feedback = Feedback {
            timestamp: newest.timestamp,
            delay,
            receive_rate: self.receive_rate,
            loss_event_rate: self.p,
        };
        vec![feedback.write()]
    }
}
