//! Statistics of one flow: counts and distributions of its whole life, and the bins of its series.

use super::bins::Bins;
use super::count::Count;
use super::digest::Digest;
use super::histogram::Histogram;
use super::jitter::Jitter;
use super::least::BelowLeast;
use super::repair::Repairs;
use super::speech::Speech;
use super::viewing::Viewing;
use tidegate_core::record::{Breaker, EcnCheck, LeastRate, VideoStep};
use tidegate_core::{Body, Cause, Kind, Packet, Size, Span, Time};
use tidegate_endpoint::{AUDIO_CLOCK, VIDEO_CLOCK, rtp_clock};

/// One bin of a flow's series.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    /// Bytes put on the wire in this bin; 64 bits, because a wide bin can exceed the 34 Gbit of 32 bits.
    pub sent: u64,
    /// Bytes that arrived in this bin.
    pub arrived: u64,
    /// Useful bytes that reached the application in this bin.
    pub good: u64,
    /// Packets put on the wire in this bin.
    pub packets_sent: u32,
    /// Packets that arrived in this bin.
    pub packets_arrived: u32,
    /// Packets that died in this bin.
    pub packets_lost: u32,
    /// Times that a queue marked a packet with congestion experienced in this bin.
    pub packets_marked: u32,
    /// Sum of the one-way delays of those that arrived.
    pub delay_sum: Span,
    /// Largest one-way delay of those that arrived.
    pub delay_max: Span,
    /// Sum of the queueing delays of those that arrived.
    pub queued_sum: Span,
}

/// Resolution of a video that follows its rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolution {
    /// Height of the pictures now.
    height: u32,
    /// Switches of resolution or frame rate after the warm-up.
    pub switches: u64,
    /// Sum of the heights of the frames after the warm-up, and their number.
    heights: (u64, u64),
}

impl Resolution {
    /// Counts a frame.
    fn frame(&mut self) {
        self.heights.0 += u64::from(self.height);
        self.heights.1 += 1;
    }

    /// Mean height of the frames; `None` without any.
    #[must_use]
    pub fn mean_height(&self) -> Option<f64> {
        let (sum, count) = self.heights;
        (count > 0).then(|| sum as f64 / count as f64)
    }
}

/// All statistics of one flow at level `summary`.
#[derive(Clone, Debug)]
pub struct FlowStats {
    /// Start of the statistics; earlier packets are counted in the series only.
    warmup: Time,
    /// Packets sent after the warm-up, except feedback.
    pub sent: Count,
    /// Packets of `sent` that arrived: with `dropped` the base of the loss.
    pub arrived: Count,
    /// Packets that arrived after the warm-up, whenever they were sent: the base of rates. If only packets sent after
    /// the warm-up counted, a rate would lack the whole queue of the warm-up.
    pub received: Count,
    /// Packets of `sent` that died, by [`Cause`].
    pub dropped: [Count; Cause::ALL.len()],
    /// Packets that a queue marked with congestion experienced.
    pub marked: u64,
    /// Feedback (RTCP, bare ACKs) sent after the warm-up.
    pub feedback: Count,
    /// Useful bytes after the warm-up.
    pub good: u64,
    /// Media packets that came too late for playout.
    pub late: u64,
    /// Time that media packets waited for their turn at the sender.
    pub paced: Histogram,
    /// Media frames that were not sent, because too much waited at the sender.
    pub skipped_frames: u64,
    /// The packets that these frames would have made.
    pub skipped_packets: u64,
    /// The bytes of these frames.
    pub skipped_bytes: u64,
    /// Pictures that were not encoded, because of the controller's congestion window or the pacer's queue.
    pub left_out_frames: u64,
    /// Times in which the target was below the least rate of the sources.
    pub below_least: BelowLeast,
    /// Result of the sender's check of ECN on its path.
    pub ecn_check: Option<EcnCheck>,
    /// Invalid pieces of feedback that were refused.
    pub refused: u64,
    /// The first circuit breaker that tripped, with the time, and whether the sender stopped.
    pub tripped: Option<(Time, Breaker, bool)>,
    /// One-way delay.
    pub delay: Histogram,
    /// One-way delay of the last packet, for the jitter.
    transit: Option<Span>,
    /// Jitter by the time on the wire, in milliseconds.
    pub jitter: Jitter,
    /// Last relative transit times of the streams of audio and video, in units of their RTP clocks.
    media_transit: [Option<u32>; 2],
    /// Jitter by RTP timestamps, of audio and video, in milliseconds.
    pub media_jitter: [Jitter; 2],
    /// Audio frames.
    pub speech: Speech,
    /// Time spent waiting in queues.
    pub queued: Histogram,
    /// The view of its video.
    pub viewing: Viewing,
    /// The view that its video would have, if each frame that is whole in time could be decoded.
    pub whole: Viewing,
    /// Video frames captured after the warm-up.
    pub frames_sent: u64,
    /// Video frames of these that can be decoded without earlier ones.
    pub key_frames: u64,
    /// The resolution of its video, if it follows the rate.
    pub resolution: Option<Resolution>,
    /// Media packets lost and repaired.
    pub repair: Repairs,
    /// Video frames rendered.
    pub frames_rendered: u64,
    /// Freezes.
    pub freezes: u64,
    /// Total length of the freezes.
    pub freeze_time: Span,
    /// Bytes that arrived in each second: for fairness, convergence and oscillation.
    pub seconds: Bins<u64>,
    /// Hash of all facts about this flow.
    pub digest: Digest,
}

impl FlowStats {
    /// Empty statistics, in which packets sent before `warmup` will not count.
    #[must_use]
    pub fn new(warmup: Time) -> Self {
        Self {
            warmup,
            sent: Count::default(),
            arrived: Count::default(),
            received: Count::default(),
            dropped: Default::default(),
            marked: 0,
            feedback: Count::default(),
            good: 0,
            late: 0,
            paced: Histogram::default(),
            skipped_frames: 0,
            skipped_packets: 0,
            skipped_bytes: 0,
            left_out_frames: 0,
            below_least: BelowLeast::default(),
            ecn_check: None,
            refused: 0,
            tripped: None,
            delay: Histogram::default(),
            transit: None,
            jitter: Jitter::default(),
            media_transit: [None; 2],
            media_jitter: Default::default(),
            speech: Speech::default(),
            queued: Histogram::default(),
            viewing: Viewing::new(warmup),
            whole: Viewing::new(warmup),
            frames_sent: 0,
            key_frames: 0,
            resolution: None,
            repair: Repairs::default(),
            frames_rendered: 0,
            freezes: 0,
            freeze_time: Span::ZERO,
            seconds: Bins::new(Span::from_secs(1)),
            digest: Digest::default(),
        }
    }

    /// Whether the statistics count an event at `time`.
    #[inline]
    #[must_use]
    pub fn counts(&self, time: Time) -> bool {
        time >= self.warmup
    }

    /// Notes a picture that was captured: that of frame `number`, or one that was not encoded.
    pub fn captured(&mut self, now: Time, number: Option<u32>) {
        self.viewing.captured(now, number);
        self.whole.captured(now, number);
        let counts = self.counts(now) && number.is_some();
        self.resolution.iter_mut().filter(|_| counts).for_each(Resolution::frame);
    }

    /// Notes that the video source is on, with its nominal interval between frames, or that it is off.
    pub fn video_switched(&mut self, now: Time, interval: Option<Span>) {
        self.viewing.switched(now, interval);
        self.whole.switched(now, interval);
    }

    /// Notes the resolution and the frame rate of the next frames.
    pub fn video_step(&mut self, now: Time, step: &VideoStep) {
        let counts = self.counts(now);
        match &mut self.resolution {
            None => self.resolution = Some(Resolution { height: step.height, ..Resolution::default() }),
            Some(resolution) => {
                resolution.height = step.height;
                resolution.switches += u64::from(counts);
            }
        }
    }

    /// Notes that the target falls below this least rate, or no longer is below one.
    pub fn set_below_least(&mut self, now: Time, least: Option<LeastRate>) {
        self.below_least.change(now, least, self.warmup);
    }

    /// Packets that died, whatever the cause.
    #[must_use]
    pub fn lost(&self) -> Count {
        self.dropped.iter().fold(Count::default(), |sum, count| Count {
            packets: sum.packets + count.packets,
            bytes: sum.bytes + count.bytes,
        })
    }

    /// Updates the jitter with a packet that arrived at `now`, `delay` after it was put on the wire.
    #[inline]
    pub fn interarrival(&mut self, now: Time, delay: Span, packet: &Packet) {
        if let Some(last) = self.transit.replace(delay) {
            self.jitter.add((delay - last).as_nanos().unsigned_abs() as f64 / 1e6);
        }
        let (stream, clock) = match packet.kind {
            Kind::Audio => (0, AUDIO_CLOCK),
            Kind::Video => (1, VIDEO_CLOCK),
            _ => return,
        };
        let Body::Rtp(body) = packet.body else { return };
        // in units of the timestamp, modulo 2^32, as in RFC 3550 appendix A.8
        let transit = rtp_clock(now, clock).wrapping_sub(body.timestamp);
        if let Some(last) = self.media_transit[stream].replace(transit) {
            let difference = (transit.wrapping_sub(last) as i32).unsigned_abs();
            self.media_jitter[stream].add(f64::from(difference) * 1e3 / f64::from(clock));
        }
    }

    /// Counts useful bytes that reached the application.
    #[inline]
    pub fn goodput(&mut self, now: Time, bytes: Size) {
        if self.counts(now) {
            self.good += bytes.as_bytes();
        }
    }
}
