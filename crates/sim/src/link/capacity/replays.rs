//! Copies of a random process for readers that go forward in time, each at its own pace.

use tidegate_core::Time;

/// Number of copies: for the series, for the intervals of available rates, and for stretches that begin anywhere.
const COPIES: usize = 3;

/// A random process from its beginning, and copies of it that have run up to some time.
#[derive(Clone, Debug)]
pub struct Replays<P> {
    start: P,
    /// Copies, each with the end of the last stretch that was read from it.
    copies: Vec<(P, Time)>,
}

impl<P: Clone> Replays<P> {
    pub(super) const fn new(start: P) -> Self {
        Self { start, copies: Vec::new() }
    }

    /// The process at its beginning.
    pub(super) const fn start(&self) -> &P {
        &self.start
    }

    /// A copy that has not run beyond `begin`, and will be read up to `end`: the furthest one, so that no reader makes
    /// another one begin again.
    pub(super) fn at(&mut self, begin: Time, end: Time) -> &mut P {
        let copies = || self.copies.iter().enumerate();
        let furthest =
            copies().filter(|(_, (_, until))| *until <= begin).max_by_key(|(_, (_, until))| *until);
        let index = match furthest {
            Some((index, _)) => index,
            None => {
                let earliest = copies().min_by_key(|(_, (_, until))| *until);
                let index = earliest.filter(|_| self.copies.len() >= COPIES).map(|(index, _)| index);
                let copy = (self.start.clone(), Time::ZERO);
                match index {
                    Some(index) => self.copies[index] = copy,
                    None => self.copies.push(copy),
                }
                index.unwrap_or(self.copies.len() - 1)
            }
        };
        self.copies[index].1 = end;
        &mut self.copies[index].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that counts how often it was begun, by the copies that stand at zero when they are read.
    fn reads(replays: &mut Replays<i64>, stretches: &[(i64, i64)]) -> usize {
        let mut begun = 0;
        for &(begin, end) in stretches {
            let copy = replays.at(Time::from_millis(begin), Time::from_millis(end));
            assert!(*copy <= begin, "a copy at {copy} does not go back to {begin}");
            begun += usize::from(*copy == 0);
            *copy = end;
        }
        begun
    }

    #[test]
    fn readers_of_several_widths_begin_once_each() {
        let fine = (0..100).map(|n| (200 * n, 200 * (n + 1)));
        let coarse = |end: i64| (end % 1000 == 0).then_some((end - 1000, end));
        let stretches: Vec<_> =
            fine.flat_map(|(begin, end)| [Some((begin, end)), coarse(end)]).flatten().collect();
        assert_eq!(stretches.len(), 120);
        assert_eq!(reads(&mut Replays::new(0), &stretches), 2);
    }

    #[test]
    fn a_stretch_from_the_beginning_makes_only_its_own_copy_begin_again() {
        let stretches: Vec<_> = (0..50)
            .flat_map(|n| [(200 * n, 200 * (n + 1)), (100 * (2 * n), 100 * (2 * n + 2)), (0, 200 * (n + 1))])
            .collect();
        // two readers that go forward, and one that begins again each time
        assert_eq!(reads(&mut Replays::new(0), &stretches), 2 + 50);
    }
}
