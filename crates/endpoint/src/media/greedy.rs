//! A source that always has something to send.

use super::{Bounds, Frame, Source};
use tidegate_core::{Rate, Size, Span, Time};

/// Full packets, evenly spaced at the target rate, each of them a frame.
#[derive(Debug)]
pub struct Greedy {
    bounds: Bounds,
    payload: u32,
    gap: Span,
    last: Option<Time>,
    started: Time,
}

impl Greedy {
    /// A source of packets with `payload` bytes of media each. Nothing is sent before the first target.
    #[must_use]
    pub fn new(bounds: Bounds, payload: u32) -> Self {
        Self { bounds, payload, gap: Span::MAX, last: None, started: Time::MAX }
    }
}

impl Source for Greedy {
    fn start(&mut self, now: Time) {
        (self.started, self.last) = (now, None);
    }

    fn due(&self) -> Time {
        if self.gap == Span::MAX {
            return Time::MAX;
        }
        self.last.map_or(self.started, |last| last + self.gap)
    }

    fn frame(&mut self, now: Time) -> Frame {
        // a packet that is late because the rate has just risen must not shift later ones
        self.last = Some(self.due().max(now - self.gap));
        Frame { bytes: self.payload, key: true }
    }

    fn set_target(&mut self, now: Time, target: Rate) {
        let rate = self.bounds.clamp(target);
        let old = self.gap;
        self.gap = rate.time_for(Size::from_bytes(u64::from(self.payload)));
        // the time that has passed of the gap keeps its share of a packet
        if let Some(last) = self.last
            && old != Span::MAX
            && self.gap != Span::MAX
            && old != Span::ZERO
        {
            let passed = now.saturating_since(last).as_nanos().min(old.as_nanos());
            let share = i128::from(passed) * i128::from(self.gap.as_nanos()) / i128::from(old.as_nanos());
            self.last = Some(now - Span::from_nanos(i64::try_from(share).unwrap_or(i64::MAX)));
        }
    }

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn frame_rate(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_the_rate_through_changes() {
        let mut source = Greedy::new(Bounds::default(), 1250);
        source.start(Time::ZERO);
        assert_eq!(source.due(), Time::MAX, "no target, nothing to send");
        source.set_target(Time::ZERO, Rate::from_mbps(1));
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(source.due());
            assert_eq!(source.frame(source.due()), Frame { bytes: 1250, key: true });
        }
        assert_eq!(times, [0, 10, 20].map(Time::from_millis));
        // half of a gap has passed at 25 ms; the other half lasts twice as long at half the rate
        source.set_target(Time::from_millis(25), Rate::from_kbps(500));
        assert_eq!(source.due(), Time::from_millis(35));
        source.set_target(Time::from_millis(25), Rate::ZERO);
        assert_eq!(source.due(), Time::MAX);
    }
}
