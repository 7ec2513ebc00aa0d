//! Freezes, as W3C webrtc-stats defines `freezeCount` and libwebrtc counts them, and the time without any picture at
//! the beginning, which they leave out.

use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// `kAvgInterframeDelaysWindowSizeFrames` of libwebrtc's `video_quality_observer2.cc`: 30 frames.
const WINDOW: usize = 30;
/// `kMinFrameSamplesToDetectFreeze`: fewer gaps than this say nothing.
const GAPS_MIN: usize = 5;
/// `kMinIncreaseForFreezeMs`: 150 ms.
const INCREASE_MIN: Span = Span::from_millis(150);
/// Ours: who sees no picture for longer than this since the start sees a screen that has frozen. Sooner a call has
/// just begun: its first key frame takes some 0.4 s at the usual 300 kbit/s.
const BEGIN_MAX: Span = Span::from_secs(1);

/// Watches the gaps between the frames that are shown.
#[derive(Debug)]
pub(super) struct FreezeWatch {
    /// From when on there should be pictures.
    start: Time,
    /// When the last frame was shown, its number, and when it was captured.
    last: Option<(Time, u32, Span)>,
    gaps: VecDeque<Span>,
    sum: Span,
}

impl FreezeWatch {
    /// For a stream that begins at `start`.
    pub(super) fn new(start: Time) -> Self {
        Self { start, last: None, gaps: VecDeque::new(), sum: Span::ZERO }
    }

    /// For how long there was no picture until `now`, if that is too long.
    fn without(&self, now: Time) -> Option<Span> {
        Some(now - self.start).filter(|&length| length > BEGIN_MAX)
    }

    /// A frame is shown; if the picture has stood still before it, for how long. As in libwebrtc the
    /// gap itself counts in the mean that it is measured against.
    ///
    /// A gap without a lost frame that was there at capture already is the source's: it has paused, and
    /// nothing was frozen on the way (libwebrtc is told of pauses by signalling).
    pub(super) fn shown(&mut self, now: Time, number: u32, media: Span) -> Option<Span> {
        let Some((before, last_number, last_media)) = self.last.replace((now, number, media)) else {
            return self.without(now);
        };
        let gap = now - before;
        if number == last_number.wrapping_add(1) && self.is_long(media - last_media) {
            return None;
        }
        if self.gaps.len() == WINDOW {
            self.sum -= self.gaps.pop_front().unwrap_or_default();
        }
        self.gaps.push_back(gap);
        self.sum += gap;
        debug_assert!(!gap.is_negative() && self.sum >= gap, "a gap of {gap} in {} altogether", self.sum);
        (self.gaps.len() >= GAPS_MIN && gap >= threshold(self.sum, self.gaps.len())).then_some(gap)
    }

    /// Whether a gap of `length` would be a freeze if it came now.
    fn is_long(&self, length: Span) -> bool {
        let kept = if self.gaps.len() == WINDOW { 1 } else { 0 };
        let dropped = if kept == 1 { self.gaps.front().copied().unwrap_or_default() } else { Span::ZERO };
        let count = self.gaps.len() + 1 - kept;
        count >= GAPS_MIN && length >= threshold(self.sum - dropped + length, count)
    }

    /// For how long the picture has stood still at `now`, if that is a freeze by now; since the start, if there was
    /// none yet.
    pub(super) fn standing(&self, now: Time) -> Option<Span> {
        let Some((last, ..)) = self.last else { return self.without(now) };
        let length = now - last;
        self.is_long(length).then_some(length)
    }
}

/// max(3 x mean, mean + 150 ms).
fn threshold(sum: Span, count: usize) -> Span {
    let mean = sum / count as i64;
    (mean * 3).max(mean + INCREASE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows frames with the given gaps in ms (captured evenly every 40 ms) and gives the freezes.
    fn freezes(gaps: &[i64]) -> Vec<i64> {
        let (mut watch, mut now, mut media) = (FreezeWatch::new(Time::ZERO), Time::ZERO, Span::ZERO);
        let mut number = 0;
        assert_eq!(watch.shown(now, number, media), None);
        let mut found = Vec::new();
        for &gap in gaps {
            now += Span::from_millis(gap);
            media += Span::from_millis(40);
            number += 1;
            found.extend(watch.shown(now, number, media).map(|span| span.as_nanos() / 1_000_000));
        }
        found
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
        let at = |k: i64| (Time::from_millis(40 * k), Span::from_millis(40 * k));
        for k in 0..40 {
            assert_eq!(watch.shown(at(k).0, k as u32, at(k).1), None);
        }
        assert_eq!(watch.shown(at(539).0, 40, at(539).1), None, "20 s without frames");
        assert_eq!(watch.shown(at(549).0, 50, at(549).1), Some(Span::from_millis(400)), "nine lost");
        assert_eq!(watch.standing(at(550).0), None);
        assert_eq!(watch.standing(at(649).0), Some(Span::from_secs(4)));
    }
    #[test]
    fn no_picture_yet_is_a_freeze_after_a_second() {
        let shown = |millis: i64| {
            let mut watch = FreezeWatch::new(Time::from_millis(3000));
            watch.shown(Time::from_millis(millis), 0, Span::ZERO)
        };
        assert_eq!(shown(4000), None);
        assert_eq!(shown(4001), Some(Span::from_millis(1001)));
        assert_eq!(shown(9000), Some(Span::from_secs(6)));
        let never = FreezeWatch::new(Time::from_millis(3000));
        assert_eq!(never.standing(Time::from_secs(2)), None, "it has not begun");
        assert_eq!(never.standing(Time::from_secs(20)), Some(Span::from_secs(17)));
    }
}
