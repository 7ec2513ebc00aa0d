//! Receiver half of the second placement: the delay-based part at the receiver, with its rate sent as REMB.
//!
//! draft-ietf-rmcat-gcc-02 section 3 (b); aiortc `RemoteBitrateEstimator`; libwebrtc
//! `remote_bitrate_estimator_abs_send_time.cc` and, for the times of REMBs, `vie_remb.cc`.

use super::delay::{Arrival, Delay};
use super::sender::DEFAULT_RTT;
use tidegate_core::control::{Arrived, Context, Feedback, FeedbackRequest, ReceiverHalf, Urgency};
use tidegate_core::units::{Rate, RemoteTime, Span, Time};
use tidegate_core::wire::rtcp::{self, Remb};
use tidegate_core::wire::wrap;

/// Highest rate, bit/s, where no other bound applies (ours: ten times the fastest access line).
const MAX_RATE: f64 = 1e11;

/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// Largest number of streams in a REMB (draft-alvestrand-rmcat-remb-03 section 2.2: 8 bits).
const MAX_STREAMS: usize = 255;

/// Times of REMBs, and treatment of the sender's clock.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Longest time between two REMBs while packets arrive; a fallen rate is sent at once. None: a REMB with each update
    /// of the rate, and only then.
    pub interval: Option<Span>,
    /// Part by which the rate has to be below the last REMB's to count as fallen.
    pub drop: f64,
    /// Lowest estimate, bit/s; the receiver does not know the session's limits.
    pub min_rate: f64,
    /// Jump of the sender's clock against ours from which on grouping, filter and detector are reset.
    pub max_jump: Option<Span>,
}

impl Config {
    /// Draft 3 (b): at least once every second, and as soon as congestion is detected. With libwebrtc's throttle (vie_remb
    /// kSendThresholdPercent 97, RembThrottler 103) and lowest rate (AimdRateControl min_configured_bitrate_); clock jumps
    /// are ignored.
    pub const DRAFT: Self =
        Self { interval: Some(Span::from_secs(1)), drop: 0.03, min_rate: 5000.0, max_jump: None };
}

/// Receiver half with the delay-based part.
pub struct Receiver {
    config: Config,
    delay: Delay,
    /// Newest abs-send-time, unwrapped, in 2^-18 s, and its arrival.
    newest: Option<(i64, Time)>,
    /// Estimate, bit/s, once there is one.
    estimate: Option<f64>,
    /// Rate of the last REMB, bit/s, and its time.
    last_remb: Option<(f64, Time)>,
    /// Whether a packet has arrived since the last REMB.
    has_arrivals: bool,
    /// SSRCs of the streams received.
    ssrcs: Vec<u32>,
}

impl Receiver {
    /// Creates a receiver half with the delay-based part.
    #[must_use]
    pub fn new(config: Config, delay: Delay) -> Self {
        Self {
            config,
            delay,
            newest: None,
            estimate: None,
            last_remb: None,
            has_arrivals: false,
            ssrcs: Vec::with_capacity(4),
        }
    }

    /// Send time of a packet that arrives `now`, by the sender's clock, whose origin is unknown. The 24 bits wrap every
    /// 64 s; of the possible times the one nearest to the newest send time is taken. If the sender's clock has jumped
    /// against ours, grouping, filter and detector are reset.
    fn send_time(&mut self, now: Time, abs_send_time: u32) -> Time {
        let Some((newest, arrived)) = self.newest else {
            self.newest = Some((i64::from(abs_send_time), now));
            return time_from_ticks(i64::from(abs_send_time));
        };
        let ticks = wrap::nearest(abs_send_time, 24, newest);
        let sent_since = time_from_ticks(ticks).saturating_since(time_from_ticks(newest));
        let clock_jump = sent_since - now.saturating_since(arrived);
        if self.config.max_jump.is_some_and(|max| clock_jump.as_millis_f64().abs() >= max.as_millis_f64()) {
            self.delay.start_anew();
            self.newest = Some((ticks, now));
        } else if ticks >= newest {
            self.newest = Some((ticks, now));
        }
        time_from_ticks(ticks)
    }

    /// Time of the next REMB: at once for a fallen rate, else once per interval, in its second half along with a regular
    /// report if there is one, or by itself at its end.
    fn ask(&self, interval: Span, now: Time) -> FeedbackRequest {
        let Some(estimate) = self.estimate.filter(|_| self.has_arrivals) else {
            return FeedbackRequest::default();
        };
        let half = Span::from_nanos(interval.as_nanos() / 2 + 1);
        let (urgency, next) = match self.last_remb {
            None => (Urgency::Now, now + half),
            Some((last, _)) if estimate < last * (1.0 - self.config.drop) => (Urgency::Now, now + half),
            Some((_, sent)) if now >= sent + interval => (Urgency::Now, now + half),
            Some((_, sent)) if now >= sent + half => (Urgency::Regular, sent + interval),
            Some((_, sent)) => (Urgency::None, sent + half),
        };
        FeedbackRequest { urgency, alarm: Some(next) }
    }
}

/// Converts an unwrapped abs-send-time, to the nearest nanosecond.
fn time_from_ticks(ticks: i64) -> Time {
    let nanos = (i128::from(ticks) * SECOND + (1 << 17)) >> 18;
    Time::from_nanos(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

impl ReceiverHalf for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, cx: &mut Context<'_>) -> FeedbackRequest {
        self.has_arrivals = true;
        if !self.ssrcs.contains(&packet.ssrc) && self.ssrcs.len() < MAX_STREAMS {
            self.ssrcs.push(packet.ssrc);
        }
        // a packet without a send time is of no use (libwebrtc drops it as well)
        let Some(abs_send_time) = packet.abs_send_time else {
            return FeedbackRequest { urgency: Urgency::None, alarm: None };
        };
        let sent = self.send_time(now, abs_send_time);
        let arrived = RemoteTime::from_nanos(now.as_nanos());
        let arrival = Arrival { arrived, sent, size: packet.size };
        self.delay.on_arrivals(now);
        self.delay.count(&arrival);
        self.delay.arrive(now, &arrival, cx);
        // only the sender knows the round trip
        let (updated, received) = self.delay.update(DEFAULT_RTT, now, (self.config.min_rate, MAX_RATE));
        if cx.wants_notes() {
            self.delay.note_rates(received, cx);
        }
        if updated {
            self.estimate = Some(self.delay.rate());
        }
        match self.config.interval {
            Some(interval) => self.ask(interval, now),
            None => {
                FeedbackRequest { urgency: if updated { Urgency::Now } else { Urgency::None }, alarm: None }
            }
        }
    }

    fn on_alarm(&mut self, now: Time, _cx: &mut Context<'_>) -> FeedbackRequest {
        self.config.interval.map_or(FeedbackRequest::default(), |interval| self.ask(interval, now))
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> Feedback {
        let Some(estimate) = self.estimate else { return Feedback::new() };
        self.last_remb = Some((estimate, now));
        self.has_arrivals = false;
        let bitrate = Rate::from_bps_f64(estimate);
        cx.note("remb_sent", Remb::carried(bitrate).as_bps_f64());
        // the endpoint fills in its own SSRC
        vec![rtcp::Packet::Remb(Remb { sender_ssrc: 0, bitrate, ssrcs: self.ssrcs.clone() })]
    }
}
