//! Traces played from an offset, or with scaled capacity.

use super::{Capacity, Trace};
use crate::link::capacity::{OpportunityTrace, Steps};
use crate::link::phases::Phases;
use crate::refusal::{Refusal, ensure};
use tidegate_core::{Span, Time};

impl Trace {
    /// This trace played from `offset`, with its capacity multiplied by `scale`. Opportunities keep their
    /// instants and change their size.
    ///
    /// # Errors
    /// When the offset is negative, or the scale is not positive, or it is too small for an opportunity of
    /// one byte.
    pub fn played(&self, offset: Span, scale: f64) -> Result<Self, Refusal> {
        ensure(!offset.is_negative(), || Refusal::new("capacity.offset", offset, "zero or more"))?;
        ensure(scale.is_finite() && scale > 0.0, || Refusal::new("capacity.scale", scale, "more than 0"))?;
        if offset == Span::ZERO && scale == 1.0 {
            return Ok(self.clone());
        }
        let period = self.duration();
        let offset = Span::from_nanos(offset.as_nanos() % period.as_nanos().max(1));
        let capacity = match &self.capacity {
            Capacity::Opportunities(list) => {
                let bytes = tidegate_core::math::round(f64::from(list.bytes()) * scale);
                ensure((1.0..=1e9).contains(&bytes), || {
                    Refusal::new(
                        "capacity.scale",
                        scale,
                        format!("a scale that gives opportunities of 1 byte to 1 GB, not {bytes} bytes"),
                    )
                })?;
                let begin = (offset.as_nanos() / 1_000_000) as u32;
                let length = (period.as_nanos() / 1_000_000) as u32;
                let later = list
                    .millis()
                    .iter()
                    .filter(|&&millis_at| millis_at > begin)
                    .map(|millis_at| millis_at - begin);
                let earlier = list
                    .millis()
                    .iter()
                    .filter(|&&millis_at| millis_at <= begin)
                    .map(|millis_at| millis_at + length - begin);
                let mut millis: Vec<u32> = later.chain(earlier).collect();
                // a recording repeats at its last opportunity: the one nearest to the end moves there, so
                // that the period does not change
                if let Some(last) = millis.last_mut() {
                    *last = length;
                }
                Capacity::Opportunities(OpportunityTrace::new(millis, bytes as u32)?)
            }
            Capacity::Rates(steps) => {
                let rates: Vec<_> = steps.rates().map(|(time, rate)| (time, rate.scaled(scale))).collect();
                Capacity::Rates(Steps::new(&rotated(&rates, offset, period), Some(period))?)
            }
        };
        let loss = match &self.loss {
            Some(loss) => Some(Phases::new(rotated(loss.phases(), offset, period), Some(period))?),
            None => None,
        };
        let delay = match &self.delay {
            Some(delay) => Some(Phases::new(rotated(delay.phases(), offset, period), Some(period))?),
            None => None,
        };
        let remarks = self.remarks.clone();
        Ok(Self { name: self.name.clone(), capacity, loss, delay, remarks })
    }
}

/// Phases that repeat after `period`, played from `offset`.
fn rotated<T: Copy>(phases: &[(Time, T)], offset: Span, period: Span) -> Vec<(Time, T)> {
    let begin = Time::ZERO + offset;
    let mut out = Vec::with_capacity(phases.len() + 1);
    if let Some(&(_, now)) = phases.iter().rev().find(|(time, _)| *time <= begin) {
        out.push((Time::ZERO, now));
    }
    out.extend(phases.iter().filter(|(time, _)| *time > begin).map(|&(time, value)| (time - offset, value)));
    let wrapped =
        phases.iter().filter(|(time, _)| *time < begin).map(|&(time, value)| (time + period - offset, value));
    out.extend(wrapped);
    // without an offset no phase wraps; with one the first phase comes again where the period begins anew
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Rate;

    fn rates(list: &[(i64, u64)], period: i64) -> Trace {
        let steps: Vec<_> =
            list.iter().map(|&(millis, kbps)| (Time::from_millis(millis), Rate::from_kbps(kbps))).collect();
        let steps = Steps::new(&steps, Some(Span::from_millis(period))).unwrap();
        let capacity = Capacity::Rates(steps);
        Trace { name: "x".into(), capacity, loss: None, delay: None, remarks: Vec::new() }
    }

    fn capacity(trace: &Trace) -> Vec<(i64, u64)> {
        let Capacity::Rates(steps) = &trace.capacity else { panic!("rates") };
        steps.rates().map(|(time, rate)| (time.as_nanos() / 1_000_000, rate.as_bps() / 1000)).collect()
    }

    #[test]
    fn a_schedule_begins_in_the_middle() {
        let trace = rates(&[(0, 100), (10, 200), (30, 300)], 50);
        assert_eq!(
            capacity(&trace.played(Span::from_millis(20), 1.0).unwrap()),
            [(0, 200), (10, 300), (30, 100), (40, 200)]
        );
        assert_eq!(
            capacity(&trace.played(Span::from_millis(50), 2.0).unwrap()),
            [(0, 200), (10, 400), (30, 600)]
        );
        let played = trace.played(Span::from_millis(17), 0.5).unwrap();
        assert_eq!(played.mean_rate().as_bps() * 2, trace.mean_rate().as_bps());
        assert_eq!(played.duration(), trace.duration());
    }

    #[test]
    fn opportunities_keep_their_number_and_period() {
        let trace = Trace::of_opportunities("x".into(), vec![1, 4, 4, 9, 20], 1504).unwrap();
        let played = trace.played(Span::from_millis(4), 0.5).unwrap();
        let Capacity::Opportunities(list) = &played.capacity else { panic!("opportunities") };
        assert_eq!((list.millis(), list.bytes()), (&[5, 16, 17, 20, 20][..], 752));
        assert_eq!(played.duration(), trace.duration());
        assert!(trace.played(Span::ZERO, 0.0).is_err());
        assert!(trace.played(Span::from_nanos(-1), 1.0).is_err());
    }
}
