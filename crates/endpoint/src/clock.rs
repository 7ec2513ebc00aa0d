//! The clock of an endpoint.

use crate::reception::rtp_clock;
use serde::{Deserialize, Serialize};
use tidegate_core::{RemoteTime, Span, Stream, Time};

/// The clock of an endpoint: an oscillator, which runs at a rate of its own, and the date that it keeps, which may be
/// set.
///
/// What an endpoint stamps for others has the date: NTP timestamps of sender reports, times of arrival in feedback,
/// abs-send-time. RTP timestamps and playout go by the oscillator, which nothing sets. Timers, pacing and rates keep to
/// the driver's time, from which an oscillator differs by some parts per million.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The date at the driver's time zero.
    pub offset: Span,
    /// Its drift, and the steps of its date.
    pub settings: ClockSettings,
}

/// Difference of a clock from one that runs true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockSettings {
    /// Drift of its oscillator.
    pub drift: Drift,
    /// Times at which the date is set, in order, and by how much it goes forward then.
    pub steps: Vec<(Time, Span)>,
}

/// Parts per billion by which an oscillator runs fast; negative: slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift(pub i64);

/// Most parts per billion by which an oscillator may run fast or slow: one in a thousand. Crystals keep to 100 parts in a
/// million.
const MAX_DRIFT: i64 = 1_000_000;

/// Longest time by which a date may be set.
const MAX_STEP: Span = Span::from_secs(1_000_000_000);

impl Drift {
    /// Gain of the oscillator in a time, rounded down.
    #[must_use]
    pub fn of(self, time: Span) -> Span {
        if self.0 == 0 {
            return Span::ZERO;
        }
        let gained = i128::from(time.as_nanos()) * i128::from(self.0);
        Span::from_nanos(gained.div_euclid(1_000_000_000) as i64)
    }

    /// The time that the oscillator counts at `time` of the driver.
    #[must_use]
    pub fn elapsed(self, time: Time) -> Time {
        time + self.of(time - Time::ZERO)
    }

    /// The RTP timestamp of media at `time` with `rate` ticks a second.
    pub(crate) fn rtp_timestamp(self, time: Time, rate: u32) -> u32 {
        rtp_clock(self.elapsed(time), rate)
    }
}

impl ClockSettings {
    /// Checks that the values are in their ranges.
    ///
    /// # Errors
    /// With the key and the problem.
    pub fn check(&self) -> Result<(), String> {
        if self.drift.0.abs() > MAX_DRIFT {
            return Err(format!(
                "drift: found {}; expected -{MAX_DRIFT} to {MAX_DRIFT} parts per billion",
                self.drift.0
            ));
        }
        if let Some((_, step)) = self.steps.iter().find(|(_, step)| step.abs() > MAX_STEP) {
            return Err(format!("steps: found {step}; expected at most {MAX_STEP} either way"));
        }
        if !self.steps.is_sorted_by(|earlier, later| earlier.0 < later.0) {
            return Err("steps: found times out of order; expected each one after the last".to_owned());
        }
        Ok(())
    }
}

impl Clock {
    /// The default clock of the endpoint `name` in the run with `seed`, which runs true: its date at the start is drawn
    /// from the substream (seed, name, "clock"), between 1968 and 2002 in NTP's count of seconds since 1900, so that no
    /// scheme can mistake a difference of two clocks for a delay.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        const EARLIEST_SECS: u64 = 1 << 31;
        const RANGE_NANOS: u64 = (1 << 30) * 1_000_000_000;
        let nanos = Stream::new(seed, name, "clock").below(RANGE_NANOS) + EARLIEST_SECS * 1_000_000_000;
        Self { offset: Span::from_nanos(nanos as i64), settings: ClockSettings::default() }
    }

    /// Its date at `time`.
    #[must_use]
    pub fn date(&self, time: Time) -> RemoteTime {
        let set: Span =
            self.settings.steps.iter().take_while(|(from, _)| *from <= time).map(|&(_, by)| by).sum();
        RemoteTime::from_nanos(self.settings.drift.elapsed(time).as_nanos()) + self.offset + set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_gains_its_drift_and_what_it_is_set_by() {
        let fast = ClockSettings {
            drift: Drift(50_000),
            steps: vec![
                (Time::from_secs(20), Span::from_millis(250)),
                (Time::from_secs(40), Span::from_millis(-300)),
            ],
        };
        assert_eq!(fast.check(), Ok(()));
        let clock = Clock { offset: Span::from_secs(1000), settings: fast.clone() };
        let date = |seconds| clock.date(Time::from_secs(seconds)).as_nanos() - 1_000_000_000_000;
        // 50 ppm: 50 us a second
        assert_eq!(date(10), 10_000_500_000);
        assert_eq!(date(20), 20_251_000_000);
        assert_eq!(date(60), 60_000_000_000 + 3_000_000 - 50_000_000);
        assert_eq!(fast.drift.elapsed(Time::from_secs(60)), Time::from_nanos(60_003_000_000));
        // rounded down also where it loses
        assert_eq!(Drift(-1).of(Span::from_nanos(1)), Span::from_nanos(-1));
        assert_eq!(Drift::default().elapsed(Time::MAX), Time::MAX);
    }

    #[test]
    fn impossible_clocks_are_refused() {
        let refused = |drift, steps| ClockSettings { drift: Drift(drift), steps }.check().unwrap_err();
        assert!(refused(1_000_001, Vec::new()).starts_with("drift: found 1000001"));
        let (early, late) = ((Time::from_secs(1), Span::ZERO), (Time::from_secs(2), Span::ZERO));
        assert!(refused(0, vec![late, early]).starts_with("steps: found times out of order"));
        assert!(refused(0, vec![early, early]).starts_with("steps: found times out of order"));
        assert!(refused(0, vec![(Time::ZERO, Span::MAX)]).starts_with("steps: found"));
    }
}
