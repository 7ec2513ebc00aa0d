//! The view of a video at its receiver: the delay of each captured picture, and the time without a new picture.

use super::histogram::Histogram;
use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// Excess over the interval between frames above which a picture counts as standing still, if it exceeds
/// [`FACTOR`] intervals: the threshold of W3C webrtc-stats' `freezeCount`, with the source's interval for the mean.
const EXCESS: Span = Span::from_millis(150);
/// Number of intervals above which a picture counts as standing still.
const FACTOR: i64 = 3;

/// A captured picture that has not been shown, nor any later one.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    /// Its frame; that of the next frame, if it was not encoded.
    number: u32,
    captured: Time,
}

/// A stretch of time without a new picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Time of its beginning.
    pub begin: Time,
    /// Its length, without the time in which the source was off.
    pub length: Span,
}

/// The view of one video; without numbers before its source is on.
#[derive(Clone, Debug)]
pub struct Viewing {
    warmup: Time,
    /// Nominal interval between frames, once the source has been on.
    interval: Option<Span>,
    /// Times in which the source was off, in order; the last one may last.
    off: Vec<(Time, Time)>,
    unseen: VecDeque<Unseen>,
    /// Number of the next frame.
    next: u32,
    /// When the last new picture was shown; before the first one, when it was captured.
    last: Option<Time>,
    /// From capture to showing, for each captured picture. A picture that is never shown counts until a later one is
    /// shown, or until the end.
    pub delay: Histogram,
    /// Total length of the stretches without a new picture.
    pub without: Span,
}

impl Viewing {
    /// A view of which pictures and times before `warmup` do not count.
    #[must_use]
    pub fn new(warmup: Time) -> Self {
        Self {
            warmup,
            interval: None,
            off: Vec::new(),
            unseen: VecDeque::new(),
            next: 0,
            last: None,
            delay: Histogram::default(),
            without: Span::ZERO,
        }
    }

    /// Time without a new picture; `None` if no picture was captured.
    #[must_use]
    pub fn without(&self) -> Option<Span> {
        self.last.map(|_| self.without)
    }

    /// Notes that the source is on, with its nominal interval between frames, or that it is off.
    pub fn switched(&mut self, now: Time, interval: Option<Span>) {
        if let Some((_, to)) = self.off.last_mut().filter(|(_, to)| *to > now) {
            *to = now;
        }
        match interval {
            Some(_) => self.interval = interval,
            None => self.off.push((now, Time::MAX)),
        }
    }

    /// Notes a picture that was captured: that of frame `number`, or one that was not encoded.
    pub fn captured(&mut self, now: Time, number: Option<u32>) {
        if self.interval.is_none() {
            return;
        }
        self.last.get_or_insert(now);
        let number = number.inspect(|number| self.next = number.wrapping_add(1)).unwrap_or(self.next);
        self.unseen.push_back(Unseen { number, captured: now });
    }

    /// Notes that frame `number` is shown; returns the stretch without a picture that ends with it, if there was one.
    pub fn shown(&mut self, now: Time, number: u32) -> Option<Stretch> {
        while let Some(unseen) =
            self.unseen.front().copied().filter(|unseen| is_at_most(unseen.number, number))
        {
            self.unseen.pop_front();
            let is_last = self.unseen.front().is_none_or(|next| !is_at_most(next.number, number));
            let delay = if is_last { now - unseen.captured } else { self.on_time(unseen.captured, now) };
            if unseen.captured >= self.warmup {
                self.delay.add(delay);
            }
        }
        self.stretch(now)
    }

    /// Ends the view: what was not shown counts until `end`. Returns the last stretch without a picture, if there was
    /// one.
    pub fn end(&mut self, end: Time) -> Option<Stretch> {
        for unseen in std::mem::take(&mut self.unseen) {
            if unseen.captured >= self.warmup {
                self.delay.add(self.on_time(unseen.captured, end));
            }
        }
        self.stretch(end)
    }

    /// The stretch since the last picture up to `now`, if it is so long that it counts; the next one begins at `now`.
    fn stretch(&mut self, now: Time) -> Option<Stretch> {
        let (interval, last) = (self.interval?, self.last?);
        let begin = last.max(self.warmup);
        self.last = Some(now.max(last));
        let length = self.on_time(begin, now);
        (length > (interval * FACTOR).max(interval + EXCESS)).then(|| {
            self.without += length;
            Stretch { begin, length }
        })
    }

    /// Time from `from` to `to` in which the source was on.
    fn on_time(&self, from: Time, to: Time) -> Span {
        let overlap = |&(begin, end): &(Time, Time)| (end.min(to) - begin.max(from)).max(Span::ZERO);
        let off: Span = self.off.iter().rev().take_while(|(_, end)| *end > from).map(overlap).sum();
        (to - from - off).max(Span::ZERO)
    }
}

/// Whether frame `number` is `newest` or an earlier one; numbers wrap.
fn is_at_most(number: u32, newest: u32) -> bool {
    newest.wrapping_sub(number) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    /// A view of frames at 25 fps from 0 on; `shown` gives when each is shown, in ms.
    fn view(warmup: i64, frames: u32, shown: impl Fn(u32) -> Option<i64>) -> Viewing {
        let mut viewing = Viewing::new(time(warmup));
        viewing.switched(Time::ZERO, Some(Span::from_millis(40)));
        let mut events: Vec<(i64, bool, u32)> = (0..frames).map(|k| (40 * i64::from(k), false, k)).collect();
        events.extend((0..frames).filter_map(|k| shown(k).map(|millis| (millis, true, k))));
        events.sort_unstable();
        for (millis, is_shown, number) in events {
            if is_shown {
                viewing.shown(time(millis), number);
            } else {
                viewing.captured(time(millis), Some(number));
            }
        }
        viewing
    }

    fn length(millis: i64) -> Option<Span> {
        Some(Span::from_millis(millis))
    }

    #[test]
    fn stretches_above_the_threshold_count_from_the_first_capture_to_the_end() {
        let even = |k: u32| Some(40 * i64::from(k) + 100);
        let mut viewing = view(0, 250, even);
        // the last of 250 is shown at 10 060 ms: 190 ms are max(3 x 40, 40 + 150)
        assert_eq!((viewing.end(time(10_250)), viewing.without()), (None, length(0)));
        assert_eq!(view(0, 250, even).end(time(10_251)).map(|stretch| stretch.length), length(191));
        // four pictures of 25 a second are missing: 200 ms; three are 160 ms
        let lossy = |count| view(0, 250, move |k| even(k).filter(|_| k < 50 || k % 25 >= count));
        assert_eq!((lossy(3).without(), lossy(4).without()), (length(0), length(8 * 200)));
        // nothing for 6 s, and never anything
        assert_eq!(view(0, 10, |k| Some(6000 + i64::from(k))).without(), length(6000));
        let mut never = view(0, 10, |_| None);
        never.end(time(20_000));
        assert_eq!(never.without(), length(20_000));
        let mut late = view(5000, 10, |_| None);
        late.end(time(20_000));
        assert_eq!(late.without(), length(15_000), "the warm-up does not count");
        assert_eq!(view(0, 0, |_| None).without(), None, "no picture was captured");
    }

    #[test]
    fn a_picture_that_is_never_shown_counts_until_a_later_one_is() {
        // of 10 frames each but every fifth is shown 100 ms after its capture
        let mut viewing = view(0, 10, |k| (k % 5 != 4).then_some(40 * i64::from(k) + 100));
        // frame 4, captured at 160 ms, counts until frame 5 is shown at 300 ms
        assert_eq!(viewing.delay.count(), 9);
        assert_eq!(viewing.delay.max_ms(), Some(140.0));
        // frame 9, captured at 360 ms, counts until the end
        viewing.end(time(1000));
        assert_eq!((viewing.delay.count(), viewing.delay.max_ms()), (10, Some(640.0)));
        // as many if half of the pictures are left out, and none has a smaller delay
        let mut halved = Viewing::new(Time::ZERO);
        halved.switched(Time::ZERO, Some(Span::from_millis(40)));
        for k in 0..10u32 {
            halved.captured(time(40 * i64::from(k)), (k % 2 == 0).then_some(k / 2));
            if k % 2 == 0 {
                halved.shown(time(40 * i64::from(k) + 30), k / 2);
            }
        }
        halved.end(time(400));
        assert_eq!(halved.delay.count(), 10);
        assert_eq!((halved.delay.min_ms(), halved.delay.max_ms()), (Some(30.0), Some(70.0)));
    }

    #[test]
    fn time_in_which_the_source_is_off_does_not_count() {
        let mut viewing = Viewing::new(Time::ZERO);
        let interval = Some(Span::from_millis(40));
        viewing.switched(Time::ZERO, interval);
        viewing.captured(time(0), Some(0));
        viewing.shown(time(50), 0);
        viewing.captured(time(40), Some(1));
        viewing.switched(time(60), None);
        viewing.switched(time(20_060), interval);
        viewing.captured(time(20_060), Some(2));
        // 10 ms before and 190 after the pause: 200 ms are more than 190
        let stretch = Stretch { begin: time(50), length: Span::from_millis(200) };
        assert_eq!(viewing.shown(time(20_250), 2), Some(stretch));
        // frame 1 was never shown: 20 ms before the pause and 190 after
        assert_eq!(viewing.delay.max_ms(), Some(210.0));
        viewing.switched(time(20_260), None);
        assert_eq!(viewing.end(time(50_000)), None);
        assert_eq!(viewing.without(), length(200));
    }
}
