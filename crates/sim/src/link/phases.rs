//! Values that change at given times.

use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::{Span, Time};

/// A value for each stretch of time, read in time order; may repeat. A scenario has either one value or a list of times
/// and values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written<T>")]
pub struct Phases<T> {
    phases: Vec<(Time, T)>,
    period: Option<Span>,
    /// Where the present repetition began, and which of its phases was read last.
    origin: Time,
    index: usize,
}

/// The two forms that a scenario has for them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written<T> {
    Steps(Vec<(Time, T)>),
    Constant(T),
}

impl<T> TryFrom<Written<T>> for Phases<T> {
    type Error = Refusal;

    fn try_from(written: Written<T>) -> Result<Self, Refusal> {
        match written {
            Written::Steps(steps) => Self::new(steps, None),
            Written::Constant(value) => Ok(Self::constant(value)),
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

    /// Each value from its time on. With a `period` they begin again after it, else the last one stays.
    ///
    /// # Errors
    /// Unless the times begin at zero and increase, and the period ends later than the last begins.
    pub fn new(phases: Vec<(Time, T)>, period: Option<Span>) -> Result<Self, Refusal> {
        let first = phases.first().map(|(at, _)| *at);
        ensure(first == Some(Time::ZERO), || match first {
            None => "no phase at all: at least one, from time 0 on, is needed".to_owned(),
            Some(at) => format!("the first phase begins at {at}: it must begin at 0"),
        })?;
        if let Some(pair) = phases.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            return Err(format!(
                "a phase at {} follows one at {}: times must increase",
                pair[1].0, pair[0].0
            )
            .into());
        }
        let last = phases[phases.len() - 1].0;
        ensure(period.is_none_or(|period| Time::ZERO + period > last), || {
            format!("a period of {} ends before the last phase begins, at {last}", period.unwrap_or_default())
        })?;
        Ok(Self { phases, period, origin: Time::ZERO, index: 0 })
    }

    /// The same phases with other values.
    #[must_use]
    pub fn map<U>(&self, value: impl Fn(&T) -> U) -> Phases<U> {
        let phases = self.phases.iter().map(|(at, old)| (*at, value(old))).collect();
        Phases { phases, period: self.period, origin: Time::ZERO, index: 0 }
    }

    /// The phases and their times.
    #[must_use]
    pub fn phases(&self) -> &[(Time, T)] {
        &self.phases
    }

    /// After how long they repeat.
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
        while self.phases.get(self.index + 1).is_some_and(|&(at, _)| at - Time::ZERO <= now - self.origin) {
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
        let at = Time::from_secs;
        let mut once = Phases::new(vec![(at(0), 'a'), (at(2), 'b'), (at(3), 'c')], None).unwrap();
        assert_eq!([0, 1, 2, 3, 100].map(|now| *once.at(at(now))), ['a', 'a', 'b', 'c', 'c']);
        let phases = once.phases().to_vec();
        let mut again = Phases::new(phases.clone(), Some(Span::from_secs(4))).unwrap();
        assert_eq!(
            [1, 3, 4, 6, 7, 4001, 4003].map(|now| *again.at(at(now))),
            ['a', 'c', 'a', 'b', 'c', 'a', 'c']
        );
        assert!(Phases::new(phases, Some(Span::from_secs(3))).is_err());
        assert!(Phases::new(vec![(at(1), 'a')], None).is_err());
        assert!(Phases::new(vec![(at(0), 'a'), (at(0), 'b')], None).is_err());
        assert!(Phases::<char>::new(vec![], None).is_err());
    }
}
