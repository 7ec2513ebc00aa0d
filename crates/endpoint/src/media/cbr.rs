//! Audio at a constant rate.

use super::spurts::Spurts;
use super::{Bounds, Carry, Frame, Source};
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Time};

/// A packet in each interval, whatever the target; with talk spurts, only if there is speech when the interval begins.
#[derive(Debug)]
pub struct Cbr {
    rate: Rate,
    interval: Span,
    next: Time,
    carry: Carry,
    spurts: Option<Spurts>,
}

impl Cbr {
    /// Audio of `rate`, a packet every `interval`.
    ///
    /// # Errors
    /// When the interval is not positive.
    pub(crate) fn new(rate: Rate, interval: Span, spurts: Option<Spurts>) -> Result<Self, String> {
        if interval <= Span::ZERO {
            return Err(format!("the packet interval is {interval}; it must be positive"));
        }
        Ok(Self { rate, interval, next: Time::MAX, carry: Carry::default(), spurts })
    }
}

impl Source for Cbr {
    fn start(&mut self, now: Time) {
        self.next = now;
    }

    fn due(&self) -> Time {
        self.next
    }

    fn frame(&mut self, now: Time) -> Frame {
        self.next += self.interval;
        let speech = self.spurts.as_mut().is_none_or(|spurts| spurts.talks(now));
        let bytes = if speech { self.carry.bytes(self.rate, self.interval) } else { 0 };
        Frame { bytes, key: true }
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

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.spurts.iter().for_each(|spurts| visit(spurts.draws()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g711_is_160_bytes_every_20_ms() {
        let mut source = Cbr::new(Rate::from_kbps(64), Span::from_millis(20), None).expect("an interval");
        source.start(Time::ZERO);
        for k in 0..5 {
            assert_eq!(source.due(), Time::from_millis(20 * k));
            assert_eq!(source.frame(source.due()).bytes, 160);
        }
        assert!(Cbr::new(Rate::from_kbps(64), Span::ZERO, None).is_err());
    }
}
