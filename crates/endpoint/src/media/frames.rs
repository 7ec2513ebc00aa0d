//! The trace-driven video model of RFC 8593 section 6.

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
    bounds: Bounds,
    target: Rate,
    index: usize,
}

impl Frames {
    /// Plays `ladder`; after its last frame it goes on with frame `skip`, so that the key frame at the
    /// beginning does not come again by itself.
    pub(crate) fn new(
        ladder: Arc<Ladder>,
        ticker: Ticker,
        skip: u32,
        bounds: Bounds,
    ) -> Result<Self, String> {
        let skip = skip as usize;
        if skip >= ladder.length() {
            let length = ladder.length();
            return Err(format!("skip is {skip}; it must be less than the {length} frames of the recording"));
        }
        Ok(Self { ladder, ticker, skip, bounds, target: Rate::ZERO, index: 0 })
    }
}

impl Source for Frames {
    fn start(&mut self, now: Time) {
        self.ticker.start(now);
        self.index = 0;
    }

    fn due(&self) -> Time {
        self.ticker.due()
    }

    fn frame(&mut self, _now: Time) -> Frame {
        self.ticker.advance();
        let bytes = self.ladder.size(self.bounds.clamp(self.target), self.index);
        let key = self.index == 0;
        self.index += 1;
        if self.index == self.ladder.length() {
            self.index = self.skip;
        }
        Frame { bytes, key }
    }

    fn set_target(&mut self, _now: Time, target: Rate) {
        self.target = target;
    }

    fn request_key(&mut self) {
        self.index = 0;
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
        let mut source = Frames::new(ladder.clone(), ticker, 2, Bounds::default()).expect("a source");
        source.start(Time::ZERO);
        source.set_target(Time::ZERO, Rate::from_kbps(100));
        let mut sizes: Vec<u32> = (0..10).map(|_| source.frame(source.due()).bytes).collect();
        assert_eq!(sizes, [1000, 20, 30, 40, 50, 30, 40, 50, 30, 40]);
        assert_eq!(source.due(), Time::from_secs(1));
        source.request_key();
        sizes = (0..2).map(|_| source.frame(source.due()).bytes).collect();
        assert_eq!(sizes, [1000, 20]);
        assert!(Frames::new(ladder, ticker, 5, Bounds::default()).is_err());
    }
}
