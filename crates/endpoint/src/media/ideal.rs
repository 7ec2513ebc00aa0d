//! Video without any variation: each frame has exactly its share of the target.

use super::{Bounds, Carry, Frame, Source, Ticker};
use tidegate_core::{Rate, Time};

/// Frames at an even clock, each exactly target / fps; fractions of a byte are carried over.
#[derive(Debug)]
pub struct Ideal {
    ticker: Ticker,
    bounds: Bounds,
    target: Rate,
    carry: Carry,
    key: bool,
}

impl Ideal {
    pub(crate) fn new(ticker: Ticker, bounds: Bounds) -> Self {
        Self { ticker, bounds, target: Rate::ZERO, carry: Carry::default(), key: true }
    }
}

impl Source for Ideal {
    fn start(&mut self, now: Time) {
        self.ticker.start(now);
        self.key = true;
    }

    fn due(&self) -> Time {
        self.ticker.due()
    }

    fn frame(&mut self, _now: Time) -> Frame {
        let length = self.ticker.advance();
        let bytes = self.carry.bytes(self.bounds.clamp(self.target), length);
        Frame { bytes, key: std::mem::take(&mut self.key) }
    }

    fn leaves_out(&self) -> bool {
        true
    }

    fn leave_out(&mut self) {
        self.ticker.advance();
    }

    fn set_target(&mut self, _now: Time, target: Rate) {
        self.target = target;
    }

    fn request_key(&mut self) {
        self.key = true;
    }

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn frame_rate(&self) -> Option<f64> {
        Some(self.ticker.fps())
    }

    fn set_frame_rate(&mut self, fps: f64) -> Result<(), String> {
        self.ticker.set_fps(fps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_target_over_fps() {
        let bounds = Bounds::new(Rate::from_kbps(150), Rate::from_kbps(1500));
        let mut source = Ideal::new(Ticker::new(25.0).expect("a frame rate"), bounds);
        source.start(Time::from_millis(7));
        source.set_target(Time::ZERO, Rate::from_kbps(1000));
        assert_eq!(source.due(), Time::from_millis(7));
        assert_eq!(source.frame(source.due()), Frame { bytes: 5000, key: true });
        assert_eq!(source.due(), Time::from_millis(47));
        assert_eq!(source.frame(source.due()), Frame { bytes: 5000, key: false });
        source.set_target(Time::ZERO, Rate::from_mbps(9));
        assert_eq!(source.frame(source.due()).bytes, 7500, "no more than its highest rate");
        source.set_target(Time::ZERO, Rate::ZERO);
        assert_eq!(source.frame(source.due()).bytes, 750, "no less than its lowest rate");
    }
}
