//! Packets of one size at a fixed rate: the constant-bit-rate source of network simulators.

use super::{Bounds, Frame, Source};
use tidegate_core::{Rate, Span, Time};

/// Parameters of the source.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes of each packet on the wire.
    pub size: u32,
    /// Bytes of IP and UDP headers in `size`.
    pub overhead: u32,
    /// Pairs of a time since the start and the rate from then on, in order, the first at zero; rates count the bytes
    /// that `size` counts.
    pub rates: Vec<(Span, Rate)>,
}

/// A packet each time that the rate has carried its size, the first one as soon as the rate is not zero; the target has
/// no effect.
#[derive(Debug)]
pub struct Packets {
    settings: Settings,
    /// When it first started, from which the times of the rates count, also after a pause.
    origin: Option<Time>,
    /// When the next packet is due, since the origin; [`Span::MAX`]: never.
    offset: Span,
    /// Bit-nanoseconds per second that the rate has carried up to `offset` for the packet after it: less than those of
    /// one nanosecond.
    surplus: u128,
    /// Index of the rate at `offset`.
    step: usize,
}

/// One byte in bit-nanoseconds per second.
const BYTE: u128 = 8_000_000_000;

impl Packets {
    /// # Errors
    /// When the size or the rates are not usable.
    pub(crate) fn new(settings: Settings) -> Result<Self, String> {
        let Settings { size, overhead, rates } = &settings;
        if size <= overhead {
            return Err(format!(
                "the packets have {size} bytes; they must be larger than the {overhead} bytes of headers"
            ));
        }
        if rates.first().is_none_or(|first| first.0 != Span::ZERO) || !rates.is_sorted_by(|a, b| a.0 < b.0) {
            return Err("the rates must begin at zero and be in order of time".to_owned());
        }
        Ok(Self { settings, origin: None, offset: Span::MAX, surplus: 0, step: 0 })
    }

    /// The end of the rate at `step`.
    fn end(&self) -> Span {
        self.settings.rates.get(self.step + 1).map_or(Span::MAX, |next| next.0)
    }

    fn rate(&self) -> u128 {
        u128::from(self.settings.rates[self.step].1.as_bps())
    }

    /// Moves `offset` on to the first whole nanosecond at which the rate has carried `work`.
    fn advance(&mut self, work: u128) {
        let mut need = work - self.surplus.min(work);
        loop {
            let (rate, remaining) = (self.rate(), (self.end() - self.offset).as_nanos() as u128);
            if rate > 0 && need <= rate * remaining {
                let nanos = need.div_ceil(rate);
                self.offset += Span::from_nanos(nanos as i64);
                self.surplus = nanos * rate - need;
                return;
            }
            if self.step + 1 == self.settings.rates.len() {
                self.offset = Span::MAX;
                return;
            }
            need -= rate * remaining;
            self.offset = self.end();
            self.step += 1;
        }
    }
}

impl Source for Packets {
    fn begin(&mut self, now: Time) {
        self.origin = Some(now);
    }

    fn start(&mut self, now: Time) {
        let origin = *self.origin.get_or_insert(now);
        (self.offset, self.surplus) = (now - origin, 0);
        self.step = self.settings.rates.partition_point(|&(from, _)| from <= self.offset) - 1;
        if self.rate() == 0 {
            // the first packet goes with the first rate that is not zero
            let later = self.settings.rates[self.step..].iter().position(|&(_, rate)| rate > Rate::ZERO);
            self.step += later.unwrap_or(0);
            self.offset = if later.is_some() { self.settings.rates[self.step].0 } else { Span::MAX };
        }
    }

    fn due(&self) -> Time {
        match self.origin {
            Some(origin) if self.offset < Span::MAX => origin + self.offset,
            _ => Time::MAX,
        }
    }

    fn frame(&mut self, _now: Time) -> Frame {
        self.advance(u128::from(self.settings.size) * BYTE);
        Frame { bytes: self.settings.size - self.settings.overhead, key: true }
    }

    fn set_target(&mut self, _now: Time, _target: Rate) {}

    fn bounds(&self) -> Bounds {
        let Settings { size, overhead, rates } = &self.settings;
        let max_rate = rates.iter().map(|&(_, rate)| rate).max().unwrap_or(Rate::ZERO);
        let share = f64::from(size - overhead) / f64::from(*size);
        let max_rate = Rate::from_bps_f64(max_rate.as_bps_f64() * share);
        Bounds::new(max_rate, max_rate)
    }

    fn frame_rate(&self) -> Option<f64> {
        None
    }

    fn adapts(&self) -> bool {
        false
    }

    fn packet_size(&self) -> Option<u32> {
        Some(self.settings.size - self.settings.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(size: u32, rates: &[(i64, u64)]) -> Packets {
        let rates = rates.iter().map(|&(s, bps)| (Span::from_secs(s), Rate::from_bps(bps))).collect();
        Packets::new(Settings { size, overhead: 28, rates }).expect("settings")
    }

    fn times(source: &mut Packets, until: Time) -> Vec<Time> {
        let mut times = Vec::new();
        while source.due() < until {
            times.push(source.due());
            assert_eq!(source.frame(source.due()).bytes + 28, source.settings.size);
        }
        times
    }

    #[test]
    fn the_kth_packet_leaves_after_k_times_size_over_rate() {
        let mut source = source(1000, &[(0, 448_000)]);
        source.start(Time::from_secs(3));
        let times = times(&mut source, Time::from_secs(103));
        assert_eq!(times.len(), 5600);
        for (k, time) in times.iter().enumerate() {
            // 8000 bit over 448 kbit/s are 125/7 ms
            let exact = (k as i64 * 125_000_000 + 6) / 7;
            assert_eq!(*time - Time::from_secs(3), Span::from_nanos(exact), "{k}");
        }
    }

    #[test]
    fn a_schedule_is_kept_by_the_bit_across_pauses() {
        // the video conference of the document vardhan, section 4.6
        let rates = [(0, 448_000), (20, 20_000), (50, 1_000_000), (80, 448_000)];
        let mut first = source(1000, &rates);
        first.start(Time::ZERO);
        let complete = times(&mut first, Time::from_secs(100));
        let bits = 448_000 * 20 + 20_000 * 30 + 1_000_000 * 30 + 448_000 * 20;
        // one at the start, and one at each 8000 bits after it; the last ones come together at 100 s
        assert_eq!(complete.len(), bits / 8000);
        let until = |s| complete.iter().filter(|time| **time < Time::from_secs(s)).count();
        assert_eq!([until(20), until(50), until(80)], [1120, 1195, 4945]);
        let mut paused = source(1000, &rates);
        paused.start(Time::ZERO);
        paused.start(Time::from_secs(60));
        assert_eq!(paused.due(), Time::from_secs(60));
        paused.frame(paused.due());
        assert_eq!(paused.due(), Time::from_millis(60_008), "1 Mbit/s holds from 50 s on");
    }

    #[test]
    fn at_a_rate_of_zero_no_packet_is_due() {
        let mut late = source(1000, &[(0, 0), (5, 8000), (8, 0)]);
        late.start(Time::ZERO);
        assert_eq!(times(&mut late, Time::MAX), [5, 6, 7, 8].map(Time::from_secs));
        let mut never = source(1000, &[(0, 0)]);
        never.start(Time::ZERO);
        assert_eq!(never.due(), Time::MAX);
    }

    #[test]
    fn bad_settings_are_refused() {
        let packets = |size, rates| Packets::new(Settings { size, overhead: 28, rates });
        assert!(packets(28, vec![(Span::ZERO, Rate::from_kbps(1))]).is_err());
        assert!(packets(100, vec![]).is_err());
        assert!(packets(100, vec![(Span::from_secs(1), Rate::from_kbps(1))]).is_err());
        assert!(packets(100, vec![(Span::ZERO, Rate::from_kbps(1)), (Span::ZERO, Rate::ZERO)]).is_err());
    }
}
