//! The trace-driven video model of RFC 8593 section 6, and a variant with frames as they were recorded.
//!
//! The RFC interpolates sizes between two recordings, so that no bits correspond to them. With a length of groups, each
//! frame is one of a recording instead. Groups of pictures begin with a key frame in all recordings at once, and the
//! recording does not change within a group, because frames of one recording cannot be decoded after those of another.

use super::ladder::Ladder;
use super::{Bounds, Frame, Source, Ticker};
use std::sync::Arc;
use tidegate_core::{Rate, Time};

/// Recorded frame sizes at an even clock.
#[derive(Debug)]
pub struct Frames {
    ladder: Arc<Ladder>,
    ticker: Ticker,
    skip: usize,
    /// Frames from one key frame to the next, if frames have their recorded sizes.
    group: Option<usize>,
    bounds: Bounds,
    target: Rate,
    index: usize,
    /// The recording of the current group.
    rung: usize,
    /// Whether later frames may refer to the last one.
    is_reference: bool,
}

impl Frames {
    /// A source that plays `ladder` and goes on with frame `skip` after the last frame, so that the key frame at the
    /// beginning does not come again by itself. With a `group`, frames have their recorded sizes.
    pub(crate) fn new(
        ladder: Arc<Ladder>,
        ticker: Ticker,
        skip: u32,
        group: Option<u32>,
        bounds: Bounds,
    ) -> Result<Self, String> {
        let skip = skip as usize;
        if skip >= ladder.length() {
            let length = ladder.length();
            return Err(format!("skip is {skip}; it must be less than the {length} frames of the recording"));
        }
        let group = group.map(|group| group as usize);
        if let Some(group) = group {
            if group == 0 || !skip.is_multiple_of(group) {
                return Err(format!(
                    "skip is {skip} and group is {group}; group must be at least 1, and skip a multiple of group"
                ));
            }
            if let Some(size) = ladder.odd_size() {
                return Err(format!("a recorded frame has {size} bytes; expected from 1 to 1000000"));
            }
        }
        Ok(Self {
            ladder,
            ticker,
            skip,
            group,
            bounds,
            target: Rate::ZERO,
            index: 0,
            rung: 0,
            is_reference: true,
        })
    }

    /// Moves on to the next frame of the recording.
    fn next_frame(&mut self) {
        self.index += 1;
        if self.index == self.ladder.length() {
            self.index = self.skip;
        }
    }
}

impl Source for Frames {
    fn start(&mut self, now: Time) {
        self.ticker.start(now);
        // a camera has gone on meanwhile; likewise a recording with groups goes on with its next key frame
        self.index = self.group.map_or(0, |group| self.index.next_multiple_of(group));
        if self.index >= self.ladder.length() {
            self.index = self.skip;
        }
    }

    fn due(&self) -> Time {
        self.ticker.due()
    }

    fn frame(&mut self, _now: Time) -> Frame {
        self.ticker.advance();
        let rate = self.bounds.clamp(self.target);
        let key = self.index.is_multiple_of(self.group.unwrap_or(usize::MAX));
        let bytes = if self.group.is_some() {
            if key {
                self.rung = self.ladder.rung(rate);
            }
            self.is_reference = self.ladder.is_reference(self.index);
            self.ladder.recorded(self.rung, self.index)
        } else {
            self.ladder.size(rate, self.index)
        };
        self.next_frame();
        Frame { bytes, key }
    }

    fn leaves_out(&self) -> bool {
        // a recorded frame cannot be decoded without the one before
        self.group.is_none()
    }

    fn is_reference(&self) -> bool {
        self.is_reference
    }

    fn most_between(&self) -> u8 {
        self.group.map_or(0, |_| self.ladder.most_between() as u8)
    }

    fn leave_out(&mut self) {
        self.ticker.advance();
        // the first frame that is sent has to be a key frame
        if self.index > 0 {
            self.next_frame();
        }
    }

    fn set_target(&mut self, _now: Time, target: Rate) {
        self.target = target;
    }

    fn request_key(&mut self) {
        // with groups a key frame comes soon, and the recording cannot be changed
        if self.group.is_none() {
            self.index = 0;
        }
    }

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn frame_rate(&self) -> Option<f64> {
        Some(self.ticker.fps())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ladder::Rung;
    use super::*;

    #[test]
    fn the_sequence_wraps_past_its_beginning() {
        let rung = Rung { rate: Rate::from_kbps(100), sizes: vec![1000, 20, 30, 40, 50] };
        let ladder = Arc::new(Ladder::new(vec![rung]).expect("a rung"));
        let ticker = Ticker::new(10.0).expect("a frame rate");
        let mut source = Frames::new(ladder.clone(), ticker, 2, None, Bounds::default()).expect("a source");
        source.start(Time::ZERO);
        source.set_target(Time::ZERO, Rate::from_kbps(100));
        let mut sizes: Vec<u32> = (0..10).map(|_| source.frame(source.due()).bytes).collect();
        assert_eq!(sizes, [1000, 20, 30, 40, 50, 30, 40, 50, 30, 40]);
        assert_eq!(source.due(), Time::from_secs(1));
        source.request_key();
        sizes = (0..2).map(|_| source.frame(source.due()).bytes).collect();
        assert_eq!(sizes, [1000, 20]);
        assert!(Frames::new(ladder, ticker, 5, None, Bounds::default()).is_err());
    }

    #[test]
    fn pictures_are_left_out_but_the_first_one_sent_is_a_key_frame() {
        let rung = Rung { rate: Rate::from_kbps(100), sizes: vec![1000, 20, 30, 40, 50] };
        let ladder = Arc::new(Ladder::new(vec![rung]).expect("a rung"));
        let make = |group| {
            let ticker = Ticker::new(10.0).expect("a frame rate");
            Frames::new(ladder.clone(), ticker, 0, group, Bounds::default()).expect("a source")
        };
        let mut source = make(None);
        source.start(Time::ZERO);
        source.set_target(Time::ZERO, Rate::from_kbps(100));
        source.leave_out();
        assert_eq!(source.frame(source.due()).bytes, 1000);
        source.leave_out();
        source.leave_out();
        assert_eq!((source.frame(source.due()).bytes, source.due()), (40, Time::from_millis(500)));
        assert!(source.leaves_out() && !make(Some(5)).leaves_out(), "none of a group can be missing");
    }

    #[test]
    fn a_group_says_to_which_of_its_frames_none_refers() {
        let rung = Rung { rate: Rate::from_kbps(100), sizes: vec![900, 70, 20, 20, 70, 20] };
        let ladder = Ladder::new(vec![rung]).expect("a rung");
        let ladder = Arc::new(ladder.with_unreferenced(vec![2, 3, 5]).expect("in order"));
        let source = |group| {
            let ticker = Ticker::new(10.0).expect("a frame rate");
            Frames::new(ladder.clone(), ticker, 0, group, Bounds::default()).expect("a source")
        };
        let mut grouped = source(Some(6));
        grouped.start(Time::ZERO);
        let mut next = || (grouped.frame(grouped.due()).bytes, grouped.is_reference());
        let expected = [(900, true), (70, true), (20, false), (20, false), (70, true), (20, false)];
        for _ in 0..2 {
            assert_eq!(expected.map(|_| next()), expected);
        }
        assert_eq!((source(Some(6)).most_between(), source(None).most_between()), (2, 0));
        for wrong in [vec![2, 1], vec![1, 1], vec![1, 2, 3, 4, 5]] {
            assert!(Ladder::clone(&ladder).with_unreferenced(wrong).is_err());
        }
    }

    #[test]
    fn a_recording_changes_at_key_frames_only() {
        let rung =
            |kbps, first: u32| Rung { rate: Rate::from_kbps(kbps), sizes: (first..first + 7).collect() };
        let ladder = Arc::new(Ladder::new(vec![rung(100, 100), rung(200, 200)]).expect("rungs"));
        let ticker = Ticker::new(10.0).expect("a frame rate");
        let make = |skip, group| Frames::new(ladder.clone(), ticker, skip, Some(group), Bounds::default());
        let mut source = make(0, 3).expect("a source");
        source.start(Time::ZERO);
        let mut frame_at = |kbps| {
            source.set_target(Time::ZERO, Rate::from_kbps(kbps));
            let frame = source.frame(source.due());
            (frame.bytes, frame.key)
        };
        // target of each frame: a change inside a group waits for the next one
        let frames: Vec<(u32, bool)> =
            [199, 500, 500, 500, 1, 1, 1, 1].into_iter().map(&mut frame_at).collect();
        let expected =
            [(100, true), (101, false), (102, false), (203, true), (204, false), (205, false), (106, true)];
        assert_eq!(frames[..7], expected);
        assert_eq!(frames[7], (100, true), "the recording's end cuts its last group short");
        source.request_key();
        assert_eq!(source.frame(source.due()).bytes, 101, "no key frame on demand");
        source.start(Time::from_secs(9));
        let frame = source.frame(source.due());
        assert_eq!((frame.bytes, frame.key), (103, true), "after a pause the next group");
        assert!(make(2, 3).is_err() && make(0, 0).is_err());
        let empty = Ladder::new(vec![Rung { rate: Rate::from_kbps(1), sizes: vec![0] }]).expect("a rung");
        assert!(Frames::new(Arc::new(empty), ticker, 0, Some(1), Bounds::default()).is_err());
    }
}
