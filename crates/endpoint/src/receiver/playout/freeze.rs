//! Freezes, as W3C webrtc-stats defines `freezeCount` and libwebrtc counts them, and the time without any picture at
//! the beginning, which they leave out.

use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// Number of gaps in the mean. This constant and the next two are those of libwebrtc's `video_quality_observer2.cc`.
const AVG_INTERFRAME_DELAYS_WINDOW_SIZE_FRAMES: usize = 30;
/// Number of gaps below which no freeze is detected.
const MIN_FRAME_SAMPLES_TO_DETECT_FREEZE: usize = 5;
/// Excess over the mean gap that makes a freeze.
const MIN_INCREASE_FOR_FREEZE: Span = Span::from_millis(150);
/// Time from the start to the first picture above which it counts as a freeze (ours): before that a call has just
/// begun, since its first key frame takes some 0.4 s at the usual 300 kbit/s.
const FIRST_PICTURE_MAX: Span = Span::from_secs(1);

/// Watches the gaps between the frames that are shown.
#[derive(Debug)]
pub(super) struct FreezeWatch {
    /// The time from which on there should be pictures.
    start: Time,
    /// The last frame: when it was shown, its number, and its time of capture.
    last: Option<(Time, u32, Span)>,
    gaps: VecDeque<Span>,
    sum: Span,
}

impl FreezeWatch {
    /// A watch of a stream that begins at `start`.
    pub(super) fn new(start: Time) -> Self {
        Self { start, last: None, gaps: VecDeque::new(), sum: Span::ZERO }
    }

    /// Time without a picture from the start to `now`, if that is too long.
    fn without_picture(&self, now: Time) -> Option<Span> {
        Some(now - self.start).filter(|&length| length > FIRST_PICTURE_MAX)
    }

    /// Notes a shown frame; returns the length of the freeze before it, if there was one. As in libwebrtc, the mean
    /// that the gap is measured against includes the gap itself.
    ///
    /// A gap without a lost frame that was as long at capture is a pause of the source, and no freeze (libwebrtc learns
    /// of pauses by signalling).
    pub(super) fn frame_shown(&mut self, now: Time, number: u32, media: Span) -> Option<Span> {
        let Some((before, last_number, last_media)) = self.last.replace((now, number, media)) else {
            return self.without_picture(now);
        };
        let gap = now - before;
        if number == last_number.wrapping_add(1) && self.is_long(media - last_media) {
            return None;
        }
        if self.gaps.len() == AVG_INTERFRAME_DELAYS_WINDOW_SIZE_FRAMES {
            self.sum -= self.gaps.pop_front().unwrap_or_default();
        }
        self.gaps.push_back(gap);
        self.sum += gap;
        debug_assert!(!gap.is_negative() && self.sum >= gap, "a gap of {gap} in {} altogether", self.sum);
        (self.gaps.len() >= MIN_FRAME_SAMPLES_TO_DETECT_FREEZE && gap >= threshold(self.sum, self.gaps.len()))
            .then_some(gap)
    }

    /// Whether a gap of `length` would be a freeze if it came now.
    fn is_long(&self, length: Span) -> bool {
        let replaced = if self.gaps.len() == AVG_INTERFRAME_DELAYS_WINDOW_SIZE_FRAMES { 1 } else { 0 };
        let dropped = if replaced == 1 { self.gaps.front().copied().unwrap_or_default() } else { Span::ZERO };
        let count = self.gaps.len() + 1 - replaced;
        count >= MIN_FRAME_SAMPLES_TO_DETECT_FREEZE && length >= threshold(self.sum - dropped + length, count)
    }

    /// Time that the picture has stood still at `now`, if that is a freeze by now; counted from the start, if there was
    /// no picture yet.
    pub(super) fn standing(&self, now: Time) -> Option<Span> {
        let Some((last, ..)) = self.last else { return self.without_picture(now) };
        let length = now - last;
        self.is_long(length).then_some(length)
    }
}

/// max(3 x mean, mean + 150 ms).
fn threshold(sum: Span, count: usize) -> Span {
    let mean = sum / count as i64;
    (mean * 3).max(mean + MIN_INCREASE_FOR_FREEZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows frames with these gaps in ms (captured evenly every 40 ms); returns the lengths of freezes.
    fn freezes(gaps: &[i64]) -> Vec<i64> {
        let (mut watch, mut now, mut media) = (FreezeWatch::new(Time::ZERO), Time::ZERO, Span::ZERO);
        let mut number = 0;
        assert_eq!(watch.frame_shown(now, number, media), None);
        let mut lengths = Vec::new();
        for &gap in gaps {
            now += Span::from_millis(gap);
            media += Span::from_millis(40);
            number += 1;
            lengths.extend(watch.frame_shown(now, number, media).map(|span| span.as_nanos() / 1_000_000));
        }
        lengths
    }

    #[test]
    fn gaps_are_measured_against_the_mean_of_the_last_30() {
        let even = [40i64; 40];
        assert_eq!(freezes(&even), []);
        // 29 gaps of 40 ms and one of g: mean 38.67 + g/30, plus 150 ms: a freeze from 195.2 ms on
        let with = |gap: i64| freezes(&[&even[..], &[gap], &even[..]].concat());
        assert_eq!(with(195), []);
        assert_eq!(with(196), [196]);
        // at 200 ms a frame, three times the mean is the larger: 3 (29 x 200 + g) / 30 = g from 645 on
        let slow = [200i64; 40];
        assert_eq!(freezes(&[&slow[..], &[644]].concat()), []);
        assert_eq!(freezes(&[&slow[..], &[645]].concat()), [645]);
        // too few frames to know
        assert_eq!(freezes(&[40, 40, 40, 2000]), []);
        assert_eq!(freezes(&[40, 40, 40, 40, 2000]), [2000]);
    }

    #[test]
    fn a_pause_of_the_source_is_no_freeze_but_the_loss_of_frames_is() {
        let mut watch = FreezeWatch::new(Time::ZERO);
        let times = |k: i64| (Time::from_millis(40 * k), Span::from_millis(40 * k));
        for k in 0..40 {
            assert_eq!(watch.frame_shown(times(k).0, k as u32, times(k).1), None);
        }
        assert_eq!(watch.frame_shown(times(539).0, 40, times(539).1), None, "20 s without frames");
        assert_eq!(
            watch.frame_shown(times(549).0, 50, times(549).1),
            Some(Span::from_millis(400)),
            "nine lost"
        );
        assert_eq!(watch.standing(times(550).0), None);
        assert_eq!(watch.standing(times(649).0), Some(Span::from_secs(4)));
    }
    #[test]
    fn no_picture_yet_is_a_freeze_after_a_second() {
        let length_before = |millis: i64| {
            let mut watch = FreezeWatch::new(Time::from_millis(3000));
            watch.frame_shown(Time::from_millis(millis), 0, Span::ZERO)
        };
        assert_eq!(length_before(4000), None);
        assert_eq!(length_before(4001), Some(Span::from_millis(1001)));
        assert_eq!(length_before(9000), Some(Span::from_secs(6)));
        let never = FreezeWatch::new(Time::from_millis(3000));
        assert_eq!(never.standing(Time::from_secs(2)), None, "it has not begun");
        assert_eq!(never.standing(Time::from_secs(20)), Some(Span::from_secs(17)));
    }
}
