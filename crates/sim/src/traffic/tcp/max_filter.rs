//! A windowed maximum in constant space (Kathleen Nichols' algorithm, Linux's `lib/win_minmax.c`).

/// A value and the round of its measurement.
#[derive(Clone, Copy, Debug, Default)]
struct MinmaxSample {
    round: u64,
    value: f64,
}

/// The largest value of the last rounds, with the largest value after it and the largest after that.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter {
    window: u64,
    best: [MinmaxSample; 3],
}

impl MaxFilter {
    pub(super) fn new(window: u64) -> Self {
        Self { window, best: [MinmaxSample::default(); 3] }
    }

    /// Changes the number of rounds that count.
    pub(super) fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    pub(super) fn get(&self) -> f64 {
        self.best[0].value
    }

    /// Takes in `value`, measured in `round`.
    pub(super) fn update(&mut self, round: u64, value: f64) {
        let new = MinmaxSample { round, value };
        if value >= self.best[0].value || round - self.best[2].round > self.window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            (self.best[1], self.best[2]) = (new, new);
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        let age = round - self.best[0].round;
        if age > self.window {
            self.best = [self.best[1], self.best[2], new];
            if round - self.best[0].round > self.window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].round == self.best[0].round && age > self.window / 4 {
            (self.best[1], self.best[2]) = (new, new);
        } else if self.best[2].round == self.best[1].round && age > self.window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Stream;

    /// It is never below the maximum of the last rounds, nor above that of a whole window; and a maximum is forgotten
    /// after its window.
    #[test]
    fn it_is_between_the_maximum_of_one_window_and_of_a_little_more() {
        let mut luck = Stream::new(1, "test", "filter");
        let mut filter = MaxFilter::new(10);
        let mut values = Vec::new();
        for round in 0..2000_u64 {
            values.push(luck.uniform() * (1.0 + (round / 100 % 7) as f64));
            filter.update(round, values[round as usize]);
            let over = |rounds: u64| {
                values[round.saturating_sub(rounds) as usize..].iter().fold(0.0, |a: f64, &b| a.max(b))
            };
            assert!(filter.get() <= over(10), "{round}");
            // it keeps three values, so it may have forgotten the second largest of a window
            assert!(filter.get() >= over(2), "{round}");
        }
        let mut filter = MaxFilter::new(10);
        filter.update(0, 9.0);
        for round in 1..=10 {
            filter.update(round, 1.0);
            assert_eq!(filter.get(), 9.0, "{round}");
        }
        filter.update(11, 1.0);
        assert_eq!(filter.get(), 1.0);
    }
}
