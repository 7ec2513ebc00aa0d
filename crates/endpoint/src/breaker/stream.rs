//! One stream of media as its circuit breakers see it: its traffic, and the reports on it.

use super::{Intervals, NEWEST_WEIGHT};
use std::collections::VecDeque;
use tidegate_core::record::Breaker;
use tidegate_core::wire::rtcp::ReportBlock;
use tidegate_core::{Span, Time, math};

/// k: reports in a row without reception that trip the breaker (RFC 8083 section 4.2).
const NON_REPORTING_THRESHOLD: f64 = 5.0;
/// Multiple of TCP's rate above which a stream trips the breaker (section 4.3).
const TCP_RATE_FACTOR: f64 = 10.0;
/// Window in which the longest time between two frames is taken (section 3, Tf).
const FRAME_GAPS_WINDOW: Span = Span::from_secs(10);
/// Frames over which the size of a packet is averaged: 4 G, and G = 1, because the encoders here follow their rate with each
/// frame (section 3, s and G).
const PACKET_SIZE_FRAMES: usize = 4;
/// Largest CB_INTERVAL, for reports every few milliseconds: it covers 15 s, or three intervals of RTCP, at most
/// (section 4.3).
const INTERVALS_MAX: usize = 4096;

/// Traffic that a stream has sent since its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// RTP packets, modulo 2^32.
    pub packets: u32,
    /// Their bytes, RTP headers included.
    pub bytes: u64,
}

/// A reporting interval: from one report block on the stream to the next.
#[derive(Clone, Copy, Debug)]
struct Interval {
    length_s: f64,
    lost: f64,
    bytes: u64,
}

/// One stream.
#[derive(Debug, Default)]
pub(super) struct WatchedStream {
    /// Packets and bytes of the last frames.
    frames: VecDeque<(u32, u64)>,
    last_frame: Option<Time>,
    /// Traffic sent when RTCP came last.
    pub(super) traffic: Traffic,
    /// Times between frames of the last 10 s, each with its end; only those that are longer than all later ones.
    gaps: VecDeque<(Time, Span)>,
    /// The block of the current report.
    block: Option<ReportBlock>,
    /// Marks that came with the current report.
    pub(super) marked: u32,
    highest: Option<u32>,
    /// When the last block came, and the traffic sent by then.
    reported: Option<(Time, Traffic)>,
    /// Packets sent when the last report came, with a block on this stream or without.
    sent_at_report: u32,
    intervals: VecDeque<Interval>,
    /// CB_INTERVAL, in reporting intervals.
    cb_interval: usize,
    /// The fraction lost, smoothed as the round trip is.
    loss: Option<f64>,
    /// Reports in a row by which nothing has arrived, and MEDIA_TIMEOUT.
    silent: f64,
    timeout: f64,
}

impl WatchedStream {
    pub(super) fn frame(&mut self, now: Time, packets: u32, bytes: u64) {
        if self.frames.len() == PACKET_SIZE_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((packets, bytes));
        if let Some(last) = self.last_frame.replace(now) {
            let gap = now - last;
            while self.gaps.back().is_some_and(|&(_, shorter)| shorter <= gap) {
                self.gaps.pop_back();
            }
            self.gaps.push_back((now, gap));
        }
    }

    pub(super) fn switched(&mut self) {
        self.last_frame = None;
        (self.silent, self.timeout) = (0.0, 0.0);
    }

    pub(super) fn block(&mut self, block: &ReportBlock) {
        self.block = Some(*block);
    }

    pub(super) fn loss(&self) -> f64 {
        self.loss.unwrap_or(0.0)
    }

    /// Tf in seconds: the longest time between two frames in the last 10 s.
    fn framing(&mut self, now: Time) -> f64 {
        while self.gaps.front().is_some_and(|&(time, _)| now - time > FRAME_GAPS_WINDOW) {
            self.gaps.pop_front();
        }
        self.gaps.front().map_or(0.0, |&(_, gap)| gap.as_secs_f64())
    }

    /// Checks the breakers after a report has come in. Its block on this stream, if it has one, was noted before. A
    /// report without a block says that nothing was received since the last one (RFC 3550 section 6.4).
    pub(super) fn report(
        &mut self,
        now: Time,
        intervals: &Intervals,
        round_trip: Option<f64>,
    ) -> Option<Breaker> {
        let sent = self.traffic.packets;
        let sending = std::mem::replace(&mut self.sent_at_report, sent) != sent;
        let framing = self.framing(now);
        let block = self.block.take();
        let marked = std::mem::take(&mut self.marked);
        let before = block.and_then(|block| self.highest.replace(block.highest_sequence));
        let expected = block.zip(before).map_or(0, |(block, before)| {
            i32::try_from(block.highest_sequence.wrapping_sub(before)).unwrap_or(0)
        });
        let advanced = block.is_some() && (before.is_none() || expected > 0);
        let marked = f64::from(marked) / f64::from(expected.max(1));
        let timeout = self.media_timeout(advanced, sending, framing, intervals, round_trip);
        let congested =
            block.is_some_and(|block| self.congestion(now, &block, marked, intervals, round_trip));
        // recalculated after the checks
        self.cb_interval = cb_interval(framing, intervals, round_trip.unwrap_or(0.0));
        match (timeout, congested && advanced) {
            (true, _) => Some(Breaker::MediaTimeout),
            (false, true) => Some(Breaker::Congestion),
            (false, false) => None,
        }
    }

    /// Whether the media timeout has come (section 4.2).
    fn media_timeout(
        &mut self,
        advanced: bool,
        sending: bool,
        framing: f64,
        intervals: &Intervals,
        round_trip: Option<f64>,
    ) -> bool {
        let peer = intervals.peer_s();
        let longest = framing.max(round_trip.unwrap_or(0.0)).max(peer);
        let timeout = math::ceil(NON_REPORTING_THRESHOLD * longest / peer);
        if advanced {
            (self.silent, self.timeout) = (0.0, timeout);
            return false;
        }
        self.timeout = self.timeout.max(timeout);
        if sending {
            self.silent += 1.0;
        }
        self.silent >= self.timeout
    }

    /// Whether the stream is congested (section 4.3).
    fn congestion(
        &mut self,
        now: Time,
        block: &ReportBlock,
        marked: f64,
        intervals: &Intervals,
        round_trip: Option<f64>,
    ) -> bool {
        let lost = f64::from(block.fraction_lost) / 256.0;
        let congested = (lost + marked).min(1.0);
        let traffic = self.traffic;
        let Some((before, sent)) = self.reported.replace((now, traffic)) else { return false };
        let length_s = (now - before).as_secs_f64();
        let smoothed = self.loss.map_or(lost, |loss| (1.0 - NEWEST_WEIGHT) * loss + NEWEST_WEIGHT * lost);
        self.loss = Some(smoothed);
        // the loss of too few packets says nothing
        let packets = f64::from(traffic.packets.wrapping_sub(sent.packets));
        let packets_min = length_s / intervals.peer_s().max(round_trip.unwrap_or(0.0));
        if packets < packets_min {
            return false;
        }
        self.intervals.push_back(Interval { length_s, lost: congested, bytes: traffic.bytes - sent.bytes });
        while self.intervals.len() > self.cb_interval.clamp(1, INTERVALS_MAX) {
            self.intervals.pop_front();
        }
        if self.intervals.len() < self.cb_interval {
            return false;
        }
        let sum = |part: fn(&Interval) -> f64| self.intervals.iter().map(part).sum::<f64>();
        let length = sum(|interval| interval.length_s);
        let loss = sum(|interval| interval.lost * interval.length_s) / length;
        let rate = sum(|interval| interval.bytes as f64) / length;
        let Some(tcp) = round_trip.and_then(|rtt| tcp_rate(self.packet_size(), rtt, loss)) else {
            return false;
        };
        rate > TCP_RATE_FACTOR * tcp
    }

    /// s: the mean size of a packet of the last frames in bytes.
    fn packet_size(&self) -> f64 {
        let (packets, bytes) =
            self.frames.iter().fold((0, 0), |(p, b), &(packets, bytes)| (p + u64::from(packets), b + bytes));
        bytes as f64 / packets.max(1) as f64
    }
}

/// X: the rate of TCP in bytes a second by the simple equation (section 4.3; b = 1); none where it has no bound.
fn tcp_rate(size: f64, round_trip: f64, loss: f64) -> Option<f64> {
    let slowness = round_trip * math::sqrt(2.0 * loss / 3.0);
    (slowness > 0.0 && size > 0.0).then(|| size / slowness)
}

/// CB_INTERVAL: number of reporting intervals over which loss and rate are averaged (section 4.3), with G = 1.
pub(super) fn cb_interval(framing: f64, intervals: &Intervals, round_trip: f64) -> usize {
    let peer = intervals.peer_s();
    let reaction = (10.0 * framing).max(10.0 * round_trip).max(3.0 * peer);
    let reaction_max = (3.0 * intervals.local.as_secs_f64()).max(15.0);
    math::ceil(3.0 * reaction.min(reaction_max) / (3.0 * peer)).min(INTERVALS_MAX as f64) as usize
}
