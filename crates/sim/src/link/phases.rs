//! Values that change at given times.

use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::{Span, Time};

/// A value for each stretch of time, looked up in time order; may repeat. A scenario has either one value or a list of
/// times and values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "PhasesSpec<T>")]
pub struct Phases<T> {
    phases: Vec<(Time, T)>,
    period: Option<Span>,
    /// Beginning of the present repetition, and index of the phase looked up last.
    origin: Time,
    index: usize,
}

/// The two forms of phases in a scenario.
#[derive(Deserialize)]
#[serde(untagged)]
enum PhasesSpec<T> {
    Steps(Vec<(Time, T)>),
    Constant(T),
}

impl<T> TryFrom<PhasesSpec<T>> for Phases<T> {
    type Error = Refusal;

    fn try_from(spec: PhasesSpec<T>) -> Result<Self, Refusal> {
        match spec {
            PhasesSpec::Steps(steps) => Self::new(steps, None),
            PhasesSpec::Constant(value) => Ok(Self::constant(value)),
        }
    }
}

impl<T: Default> Default for Phases<T> {
    fn default() -> Self {
        Self::constant(T::default())
    }
}

impl<T> Phases<T> {
    /// One value for ever.
    #[must_use]
    pub fn constant(value: T) -> Self {
        Self { phases: vec![(Time::ZERO, value)], period: None, origin: Time::ZERO, index: 0 }
    }

    /// Values that hold from their times on. After `period` they begin again; without one the last value stays.
    ///
    /// # Errors
    /// Unless the times begin at zero and increase, and the period ends later than the last begins.
    pub fn new(phases: Vec<(Time, T)>, period: Option<Span>) -> Result<Self, Refusal> {
        let first = phases.first().map(|(time, _)| *time);
        ensure(first == Some(Time::ZERO), || match first {
            None => "there is no phase; at least one must begin at 0".to_owned(),
            Some(time) => format!("the first phase begins at {time}; it must begin at 0"),
        })?;
        if let Some(pair) = phases.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            return Err(format!(
                "the phase at {} comes after the phase at {}; times must increase",
                pair[1].0, pair[0].0
            )
            .into());
        }
        let last = phases[phases.len() - 1].0;
        ensure(period.is_none_or(|period| Time::ZERO + period > last), || {
            format!(
                "the period of {} ends before the last phase begins at {last}",
                period.unwrap_or_default()
            )
        })?;
        Ok(Self { phases, period, origin: Time::ZERO, index: 0 })
    }

    /// The same phases with other values.
    #[must_use]
    pub fn map<U>(&self, value: impl Fn(&T) -> U) -> Phases<U> {
        let phases = self.phases.iter().map(|(time, previous)| (*time, value(previous))).collect();
        Phases { phases, period: self.period, origin: Time::ZERO, index: 0 }
    }

    /// The phases and their times.
    #[must_use]
    pub fn phases(&self) -> &[(Time, T)] {
        &self.phases
    }

    /// Time after which they repeat.
    #[must_use]
    pub fn period(&self) -> Option<Span> {
        self.period
    }

    /// The value at `now`, which must not be earlier than at the last call.
    pub fn at(&mut self, now: Time) -> &T {
        debug_assert!(
            self.phases[self.index].0 - Time::ZERO <= now - self.origin,
            "asked for {now} after a later time"
        );
        if let Some(period) = self.period
            && now - self.origin >= period
        {
            let periods = (now - self.origin).as_nanos() / period.as_nanos();
            self.origin += period * periods;
            self.index = 0;
        }
        while self.phases.get(self.index + 1).is_some_and(|&(time, _)| time - Time::ZERO <= now - self.origin)
        {
            self.index += 1;
        }
        &self.phases[self.index].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_and_repeat() {
        let seconds = Time::from_secs;
        let mut once =
            Phases::new(vec![(seconds(0), 'a'), (seconds(2), 'b'), (seconds(3), 'c')], None).unwrap();
        assert_eq!([0, 1, 2, 3, 100].map(|now| *once.at(seconds(now))), ['a', 'a', 'b', 'c', 'c']);
        let phases = once.phases().to_vec();
        let mut again = Phases::new(phases.clone(), Some(Span::from_secs(4))).unwrap();
        assert_eq!(
            [1, 3, 4, 6, 7, 4001, 4003].map(|now| *again.at(seconds(now))),
            ['a', 'c', 'a', 'b', 'c', 'a', 'c']
        );
        assert!(Phases::new(phases, Some(Span::from_secs(3))).is_err());
        assert!(Phases::new(vec![(seconds(1), 'a')], None).is_err());
        assert!(Phases::new(vec![(seconds(0), 'a'), (seconds(0), 'b')], None).is_err());
        assert!(Phases::<char>::new(vec![], None).is_err());
    }
}
