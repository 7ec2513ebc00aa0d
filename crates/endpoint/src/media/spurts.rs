//! Talk spurts and pauses of one speaker (ITU-T P.59).

use serde::{Deserialize, Serialize};
use tidegate_core::rng::Draws;
use tidegate_core::{Span, Stream, Time};

/// Means of exponentially distributed times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Means {
    /// Mean length of a talk spurt.
    pub talk: Span,
    /// Mean length of a pause.
    pub pause: Span,
}

impl Means {
    /// ITU-T P.59 (1993) table 1: 1.004 s and 1.587 s, 38.75 % of the time in speech.
    pub const P59: Self = Self { talk: Span::from_millis(1004), pause: Span::from_millis(1587) };
}

/// A speaker who talks and falls silent in turns, and who begins in either state with its long-run probability.
#[derive(Clone, Debug)]
pub struct Spurts {
    means: Means,
    talks: bool,
    /// When the state changes; `None` before the first call of [`Spurts::talks`].
    until: Option<Time>,
    rng: Stream,
}

impl Spurts {
    /// # Errors
    /// When a mean is not positive.
    pub(crate) fn new(means: Means, mut rng: Stream) -> Result<Self, String> {
        let Means { talk, pause } = means;
        if talk <= Span::ZERO || pause <= Span::ZERO {
            return Err(format!(
                "the mean talk spurt is {talk} and the mean pause {pause}; both must be positive"
            ));
        }
        let (on, off) = (talk.as_secs_f64(), pause.as_secs_f64());
        let talks = rng.chance(on / (on + off));
        Ok(Self { means, talks, until: None, rng })
    }

    /// Whether there is speech at `now`; to be called in order of time.
    pub(crate) fn talks(&mut self, now: Time) -> bool {
        let mut until = self.until.unwrap_or_else(|| now + self.length());
        while until <= now {
            self.talks = !self.talks;
            until += self.length();
        }
        self.until = Some(until);
        self.talks
    }

    /// Draws the length of the current state: at least a nanosecond, so that time passes.
    fn length(&mut self) -> Span {
        let mean = if self.talks { self.means.talk } else { self.means.pause };
        Span::from_secs_f64(self.rng.exponential(mean.as_secs_f64())).max(Span::from_nanos(1))
    }

    pub(crate) fn draws(&self) -> Draws {
        self.rng.draws()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::math;

    #[test]
    fn sampled_every_20_ms_it_is_the_markov_chain_of_its_means() {
        let mut spurts = Spurts::new(Means::P59, Stream::new(3, "call/audio", "talk spurts")).expect("means");
        let count = 2_000_000;
        let talks: Vec<bool> =
            (0..count).map(|k| spurts.talks(Time::from_secs(7) + Span::from_millis(20 * k))).collect();
        let share = talks.iter().filter(|talks| **talks).count() as f64 / count as f64;
        let ends = talks.windows(2).filter(|pair| pair[0] && !pair[1]).count() as f64;
        // 15 400 cycles: the share's standard deviation is 0.002
        let long_run = 1.004 / 2.591;
        assert!((share - long_run).abs() < 0.007, "{share}");
        // P(talk, then pause 20 ms later) of a two-state chain
        let ending = (1.0 - long_run) * (1.0 - math::exp(-0.02 / 1.004 - 0.02 / 1.587));
        let mean = share * count as f64 / ends * 0.02;
        assert!((mean / (0.02 / ending) - 1.0).abs() < 0.03, "spurts of {mean} s");
        // exponential: a spurt of more than twice the mean has the probability e^-2
        let lengths: Vec<usize> = talks.split(|talks| !talks).map(<[bool]>::len).filter(|n| *n > 0).collect();
        let long = lengths.iter().filter(|n| **n as f64 * 0.02 > 2.0 * mean).count() as f64;
        let tail = long / lengths.len() as f64;
        assert!((tail - math::exp(-2.0)).abs() < 0.012, "{tail}");
    }

    #[test]
    fn means_must_be_positive() {
        let rng = || Stream::new(1, "x", "y");
        assert!(Spurts::new(Means { talk: Span::ZERO, ..Means::P59 }, rng()).is_err());
        assert!(Spurts::new(Means { pause: Span::ZERO, ..Means::P59 }, rng()).is_err());
    }
}
