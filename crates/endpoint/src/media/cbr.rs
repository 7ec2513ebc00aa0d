//! Audio at a constant rate.

use super::{Bounds, Carry, Frame, Source};
use tidegate_core::{Rate, Span, Time};

/// One packet an interval, whatever the target says.
#[derive(Debug)]
pub struct Cbr {
    rate: Rate,
    interval: Span,
    next: Time,
    carry: Carry,
}

impl Cbr {
    /// Audio of `rate`, one packet every `interval`.
    ///
    /// # Errors
    /// When the interval is not positive.
    pub fn new(rate: Rate, interval: Span) -> Result<Self, String> {
        if interval <= Span::ZERO {
            return Err(format!("the packet interval is {interval}; it must be positive"));
        }
        Ok(Self { rate, interval, next: Time::MAX, carry: Carry::default() })
    }
}

impl Source for Cbr {
    fn start(&mut self, now: Time) {
        self.next = now;
    }

    fn due(&self) -> Time {
        self.next
    }

    fn frame(&mut self, _now: Time) -> Frame {
        self.next += self.interval;
        Frame { bytes: self.carry.bytes(self.rate, self.interval), key: true }
    }

    fn set_target(&mut self, _now: Time, _target: Rate) {}

    fn bounds(&self) -> Bounds {
        Bounds::new(self.rate, self.rate)
    }

    fn frame_rate(&self) -> Option<f64> {
        Some(1.0 / self.interval.as_secs_f64())
    }

    fn adapts(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g711_is_160_bytes_every_20_ms() {
        let mut source = Cbr::new(Rate::from_kbps(64), Span::from_millis(20)).expect("an interval");
        source.start(Time::ZERO);
        for k in 0..5 {
            assert_eq!(source.due(), Time::from_millis(20 * k));
            assert_eq!(source.frame(source.due()).bytes, 160);
        }
        assert!(Cbr::new(Rate::from_kbps(64), Span::ZERO).is_err());
    }
}
