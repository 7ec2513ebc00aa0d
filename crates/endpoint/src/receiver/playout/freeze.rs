//! Freezes as libwebrtc counts them: `freezeCount` and `totalFreezesDuration` of W3C webrtc-stats.
//!
//! The rules and their constants are those of libwebrtc's `video/video_quality_observer2.cc`, and of
//! `video/video_receive_stream2.cc` for pauses. A freeze counts when a later frame is shown, so that neither the time
//! before the first frame nor the time after the last one is part of any.

use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// Number of intervals in the mean.
const AVG_INTERFRAME_DELAYS_WINDOW_SIZE_FRAMES: usize = 30;
/// Number of intervals below which no freeze is detected.
const MIN_FRAME_SAMPLES_TO_DETECT_FREEZE: usize = 5;
/// Excess over the mean interval that makes a freeze, in milliseconds.
const MIN_INCREASE_FOR_FREEZE_MS: i64 = 150;
/// Time without a decodable frame after which the receiver looks whether the stream is inactive, each time.
pub(super) const MAX_WAIT_FOR_FRAME: Span = Span::from_secs(3);
/// Time without a packet after which a stream is inactive.
pub(super) const INACTIVE_DURATION: Span = Span::from_secs(5);

/// The watch over the intervals between the frames that are shown, in whole milliseconds as in libwebrtc.
#[derive(Debug, Default)]
pub(super) struct FreezeWatch {
    last_shown_ms: Option<i64>,
    last_packet: Option<Time>,
    last_decoded: Option<Time>,
    intervals_ms: VecDeque<i64>,
    sum_ms: i64,
    /// Whether the stream has been inactive since the last frame that was shown.
    paused: bool,
}

impl FreezeWatch {
    /// Notes a packet of the stream.
    pub(super) fn packet(&mut self, now: Time) {
        self.paused |= self.is_inactive(now);
        self.last_packet = Some(now);
    }

    /// Notes a frame that was decoded.
    pub(super) fn decoded(&mut self, now: Time) {
        self.paused |= self.is_inactive(now);
        self.last_decoded = Some(now);
    }

    /// Whether the receiver has seen by `now` that the stream is inactive. It looks each [`MAX_WAIT_FOR_FRAME`] after
    /// the last frame that was decoded.
    fn is_inactive(&self, now: Time) -> bool {
        let (Some(packet), Some(decoded)) = (self.last_packet, self.last_decoded) else { return false };
        let wait = MAX_WAIT_FOR_FRAME.as_nanos();
        let looks = ((packet + INACTIVE_DURATION - decoded).as_nanos() + wait - 1) / wait;
        decoded + Span::from_nanos(looks.max(1) * wait) <= now
    }

    /// Notes a frame that is shown; returns the length of the freeze before it, if there was one. The mean to which
    /// the interval is compared includes the interval. An interval in which the stream was inactive is a pause, and no
    /// freeze.
    pub(super) fn frame_shown(&mut self, now: Time) -> Option<Span> {
        let now_ms = now.as_nanos() / 1_000_000;
        let paused = std::mem::take(&mut self.paused);
        let interval_ms = now_ms - self.last_shown_ms.replace(now_ms)?;
        if paused {
            return None;
        }
        if self.intervals_ms.len() == AVG_INTERFRAME_DELAYS_WINDOW_SIZE_FRAMES {
            self.sum_ms -= self.intervals_ms.pop_front().unwrap_or_default();
        }
        self.intervals_ms.push_back(interval_ms);
        self.sum_ms += interval_ms;
        debug_assert!(interval_ms >= 0, "an interval of {interval_ms} ms");
        let mean_ms = self.sum_ms / self.intervals_ms.len() as i64;
        let freeze = self.intervals_ms.len() >= MIN_FRAME_SAMPLES_TO_DETECT_FREEZE
            && interval_ms >= (3 * mean_ms).max(mean_ms + MIN_INCREASE_FOR_FREEZE_MS);
        freeze.then(|| Span::from_millis(interval_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows frames at these intervals in ms; returns the lengths of freezes.
    fn freezes(intervals: &[i64]) -> Vec<i64> {
        let (mut watch, mut now) = (FreezeWatch::default(), Time::from_millis(7000));
        assert_eq!(watch.frame_shown(now), None, "the time before the first frame is no freeze");
        let mut lengths = Vec::new();
        for &interval in intervals {
            now += Span::from_millis(interval);
            lengths.extend(watch.frame_shown(now).map(|span| span.as_nanos() / 1_000_000));
        }
        lengths
    }

    #[test]
    fn intervals_are_compared_to_the_mean_of_the_last_30() {
        let even = [40i64; 40];
        assert_eq!(freezes(&even), []);
        // 29 intervals of 40 ms and one of 195: the mean is 45.2, rounded down to 45, and 150 ms more are 195
        let with = |interval: i64| freezes(&[&even[..], &[interval], &even[..]].concat());
        assert_eq!(with(194), []);
        assert_eq!(with(195), [195]);
        // at 200 ms a frame, three times the mean is the larger: 3 x floor((29 x 200 + 642) / 30) = 642
        let slow = [200i64; 40];
        assert_eq!(freezes(&[&slow[..], &[641]].concat()), []);
        assert_eq!(freezes(&[&slow[..], &[642]].concat()), [642]);
        // from the fifth interval on
        assert_eq!(freezes(&[40, 40, 40, 2000]), []);
        assert_eq!(freezes(&[40, 40, 40, 40, 2000]), [2000]);
    }

    #[test]
    fn the_facts_of_libwebrtc_s_reference_hold() {
        // one picture a second for a minute after 30 frames a second: each interval is a freeze until the mean has grown
        let slow = [vec![33i64; 300], vec![1000; 60]].concat();
        assert_eq!(freezes(&slow), [1000; 9]);
        // FreezeDetection of receive_statistics_proxy2_unittest.cc: a very long interval that is in the mean no more
        let after = |interval: i64, freeze: i64| {
            freezes(&[&[2000 + interval], &[interval; 30][..], &[freeze]].concat()).len()
        };
        assert_eq!([after(30, 184), after(30, 185), after(150, 482), after(150, 483)], [0, 1, 0, 1]);
    }

    #[test]
    fn an_interval_without_packets_is_a_pause() {
        let lengths = |packets_until: i64| {
            let mut watch = FreezeWatch::default();
            let mut freezes = Vec::new();
            let mut show = |watch: &mut FreezeWatch, millis: i64| {
                let now = Time::from_millis(millis);
                watch.packet(now);
                watch.decoded(now);
                freezes.extend(watch.frame_shown(now).map(|span| span.as_nanos() / 1_000_000));
            };
            (0..=40).for_each(|k| show(&mut watch, 40 * k));
            // the last frame of these is decoded at 1.6 s; the receiver looks at 4.6, 7.6, 10.6 s
            (1601..packets_until).step_by(100).for_each(|millis| watch.packet(Time::from_millis(millis)));
            (0..=10).for_each(|k| show(&mut watch, 10_000 + 40 * k));
            freezes
        };
        // silence from 1.6 s on: at 7.6 s the stream is inactive
        assert_eq!(lengths(0), []);
        assert_eq!(lengths(2502), []);
        // a packet at 2.7 s: at 7.6 s it is 4.9 s old, and the receiver looks next at 10.6 s
        assert_eq!(lengths(2702), [8400]);
    }
}
